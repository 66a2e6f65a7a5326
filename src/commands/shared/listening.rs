//! The listener of a process: where it is, and that it is there.

use super::{Failure, say, say_more};
use crate::admin::metrics::Beside;
use crate::admin::{Doors, DoorsError, Listener, TOKEN_FILE};
use crate::config::Config;
use crate::engine::Desk;
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
fn beside() -> Beside {
    Beside::default()
}

/// Listens for a process that has started. It runs without, if that cannot be.
pub(crate) fn listen(doors: Doors, desk: Arc<Desk>) -> Option<Listener> {
    let at = doors.bound().map(|addr| match doors.data() {
        Some(data) => format!("admin: http://{addr}/ (the token is in {})", data.join(TOKEN_FILE).display()),
        None => {
            format!("admin: http://{addr}/ (without a data directory nothing that needs a token is answered)")
        }
    });
    match Listener::start_with(doors, desk, Box::new(beside)) {
        Ok(listener) => {
            at.iter().for_each(say);
            listener.trouble.iter().for_each(say);
            say_more(format_args!("admin: the control thread runs on {}", listener.runs_on));
            Some(listener)
        }
        Err(cause) => {
            say(format_args!("nobody can ask this process: no control thread: {cause}"));
            None
        }
    }
}
