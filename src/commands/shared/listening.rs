//! The listener of a process: where it is, and that it is there.

use super::Failure;
use super::event_log::tell;
use crate::admin::metrics::Beside;
use crate::admin::{Doors, DoorsError, Listener, TOKEN_FILE};
use crate::config::Config;
use crate::engine::{Desk, Event, Level, messages_told};
use crate::tune::Tally;
use std::path::Path;
use std::sync::Arc;

/// Takes the address that a process is to listen on, before it starts. `data` is its directory, if it has one.
pub(crate) fn take_doors(config: &Config, data: Option<&Path>) -> Result<Doors, Failure> {
    Doors::take(&config.admin, data).map_err(|error| match error {
        DoorsError::Taken { .. } => Failure::CannotRun(error.to_string()),
        DoorsError::NotLoopback(_) | DoorsError::NoToken(_) => Failure::Usage(error.to_string()),
    })
}

/// Figures that commands keep, for whoever scrapes the process.
fn beside(machine: &Tally, desk: &Desk) -> Beside {
    let (changes, reload_succeeded, reloaded_s) = desk.settings_news().unwrap_or((0, true, 0));
    let level = |name: &str| Level::ALL.into_iter().find(|level| level.name() == name);
    Beside {
        log_messages: Beside::LEVELS.map(|name| level(name).map_or(0, messages_told)),
        tune_checks: [machine.ok, machine.slower, machine.stops, machine.cannot_tell].map(u64::from),
        settings_changes: [changes, 0],
        reload_succeeded,
        reloaded_seconds: (reloaded_s > 0).then_some(reloaded_s as f64),
        ..Beside::default()
    }
}

/// Listens for a process that has started. It runs without, if that cannot be.
pub(crate) fn listen(doors: Doors, desk: Arc<Desk>, machine: Tally) -> Option<Listener> {
    let at = doors.bound().map(|addr| match doors.data() {
        Some(data) => (addr, format!("the token is in {}", data.join(TOKEN_FILE).display())),
        None => (addr, "what needs a token is not answered, as there is no data directory".to_string()),
    });
    match Listener::start_with(doors, desk.clone(), Box::new(move || beside(&machine, &desk))) {
        Ok(listener) => {
            if let Some((addr, token)) = at {
                let text = format!("admin: http://{addr}/ ({token})");
                tell(Event::AdminListening, vec![("addr", addr.to_string().into())], text);
            }
            for trouble in &listener.trouble {
                tell(Event::NoControl, vec![("cause", trouble.into())], trouble);
            }
            let text = format!("admin: the control thread runs on {}", listener.runs_on);
            tell(Event::ControlThread, vec![("runtime", listener.runs_on.into())], text);
            Some(listener)
        }
        Err(cause) => {
            let text = format!("nobody can ask this process: no control thread: {cause}");
            tell(Event::NoControl, vec![("cause", cause.to_string().into())], text);
            None
        }
    }
}
