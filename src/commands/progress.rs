//! How a crawl is going: a line that rewrites itself on a terminal, a plain line every few seconds elsewhere.

use crate::engine::Snapshot;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    live: bool,
    started: Instant,
    last: (Instant, Snapshot),
    shown: bool,
}

const LIVE_EVERY: Duration = Duration::from_millis(200);
const PLAIN_EVERY: Duration = Duration::from_secs(3);

impl Progress {
    pub fn new() -> Progress {
        let now = Instant::now();
        let live = std::io::stderr().is_terminal();
        Progress { live, started: now, last: (now, Snapshot::default()), shown: false }
    }

    /// Shows a snapshot if it is time for one.
    pub fn show(&mut self, now: Instant, take: impl FnOnce() -> Snapshot) {
        let passed = now - self.last.0;
        if passed < if self.live { LIVE_EVERY } else { PLAIN_EVERY } {
            return;
        }
        let snapshot = take();
        let seconds = passed.as_secs_f64();
        let before = &self.last.1;
        let pages_s = snapshot.pages.saturating_sub(before.pages) as f64 / seconds;
        let mb_s = snapshot.bytes.saturating_sub(before.bytes) as f64 / seconds / 1e6;
        let line = format!(
            "{:>5.1}s  {} pages  {pages_s:.0}/s  {mb_s:.1} MB/s  {} open  {} hosts  {} known  {} pending  {} errors",
            (now - self.started).as_secs_f64(),
            snapshot.pages,
            snapshot.open,
            snapshot.hosts,
            snapshot.known,
            snapshot.pending,
            snapshot.errors,
        );
        let mut stderr = std::io::stderr().lock();
        // A progress line that cannot be written is no reason to stop a crawl.
        let _ = if self.live { write!(stderr, "\r\x1b[K{line}") } else { writeln!(stderr, "{line}") };
        let _ = stderr.flush();
        self.shown = true;
        self.last = (now, snapshot);
    }

    /// A line for the user, without tearing the live one.
    pub fn say(&mut self, text: &str) {
        self.end();
        eprintln!("{text}");
    }

    /// Ends the live line.
    pub fn end(&mut self) {
        if self.live && std::mem::take(&mut self.shown) {
            eprintln!();
        }
    }
}
