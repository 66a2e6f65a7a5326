use super::output::{say, write_stderr};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How far a command is: a line on a terminal that rewrites itself; elsewhere a plain one now and then, or none.
pub(crate) struct Ticker {
    is_live: bool,
    /// `None`: no line.
    every: Option<Duration>,
    last: Instant,
    is_shown: bool,
}

const LIVE_EVERY: Duration = Duration::from_millis(200);

impl Ticker {
    /// On a terminal only.
    pub fn new() -> Ticker {
        Ticker::with_plain(None)
    }

    /// With a plain line every so often where there is no terminal.
    pub fn with_plain(every: Option<Duration>) -> Ticker {
        let is_live = std::io::stderr().is_terminal();
        let every = if is_live { Some(LIVE_EVERY) } else { every };
        Ticker { is_live, every, last: Instant::now(), is_shown: false }
    }

    /// Shows a line if it is time for one. The line is given the time since the one before.
    pub fn show(&mut self, line: impl FnOnce(Duration) -> Option<String>) {
        let passed = self.last.elapsed();
        if self.every.is_none_or(|every| passed < every) {
            return;
        }
        let Some(line) = line(passed) else { return };
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
