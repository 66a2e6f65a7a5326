use super::Verbosity;
use super::event_log::is_text;
use super::output::{say, write_stderr};
use std::io::{IsTerminal, stderr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use terminal_size::terminal_size_of;

/// How far a command is: a line on a terminal that rewrites itself; elsewhere a plain one now and then, or none.
pub(crate) struct Ticker {
    is_live: bool,
    /// `None`: no line.
    every: Option<Duration>,
    last: Instant,
    is_shown: bool,
}

const LIVE_EVERY: Duration = Duration::from_millis(200);
/// Of a line that is not cut: more than any is long.
const PLAIN_WIDTH: usize = 400;
/// Of a terminal that does not say.
const DEFAULT_WIDTH: usize = 80;

impl Ticker {
    /// On a terminal only.
    pub fn new() -> Ticker {
        Ticker::with_plain(None)
    }

    /// With a plain line every so often where there is no terminal.
    pub fn with_plain(every: Option<Duration>) -> Ticker {
        let is_live = stderr().is_terminal() && is_text();
        let every = if is_live { Some(LIVE_EVERY) } else { every };
        let every = every.filter(|_| Verbosity::Normal.is_on());
        Ticker { is_live, every, last: Instant::now(), is_shown: false }
    }

    /// Shows a line if it is time for one. The line is given the width it must stay below; what is longer is cut, as a
    /// line that wraps could not be rewritten.
    pub fn show(&mut self, line: impl FnOnce(usize) -> Option<String>) {
        if self.every.is_none_or(|every| self.last.elapsed() < every) {
            return;
        }
        let width = if self.is_live { columns(stderr(), DEFAULT_WIDTH) } else { PLAIN_WIDTH };
        let Some(line) = line(width) else { return };
        let line: String = line.chars().take(width.saturating_sub(1)).collect();
        match self.is_live {
            true => drop(write_stderr(&format!("\r\x1b[K{line}"))),
            false => say(line),
        }
        (self.last, self.is_shown) = (Instant::now(), true);
    }

    /// Ends the live line.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) && self.is_live {
            let _ = write_stderr("\n");
        }
    }
}

/// The width of a terminal: as it says itself, as the environment says, or this.
pub(crate) fn columns(of: impl AsFd, else_width: usize) -> usize {
    let said = terminal_size_of(of).map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
    let set = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    said.or_else(set).unwrap_or(else_width)
}
