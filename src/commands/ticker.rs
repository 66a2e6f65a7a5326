//! How far a command is: a line on a terminal that rewrites itself, and nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Ticker {
    live: bool,
    last: Instant,
    shown: bool,
}

const EVERY: Duration = Duration::from_millis(200);

impl Ticker {
    pub fn new() -> Ticker {
        Ticker { live: std::io::stderr().is_terminal(), last: Instant::now(), shown: false }
    }

    /// Shows a line if it is time for one.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        if !self.live || self.last.elapsed() < EVERY {
            return;
        }
        let mut stderr = std::io::stderr().lock();
        // A line that cannot be written is no reason to stop.
        let _ = write!(stderr, "\r\x1b[K{}", line()).and_then(|()| stderr.flush());
        (self.last, self.shown) = (Instant::now(), true);
    }

    /// Ends the line.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprintln!();
        }
    }
}
