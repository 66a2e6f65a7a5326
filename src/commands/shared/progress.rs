use super::progress_line::Recent;
use super::say;
use super::ticker::Ticker;
use crate::engine::Snapshot;
use std::time::{Duration, Instant};

/// How a crawl is going: a line that rewrites itself on a terminal, a plain line every few seconds elsewhere.
pub(super) struct Progress {
    ticker: Ticker,
    started: Instant,
    recent: Recent,
}

const PLAIN_EVERY: Duration = Duration::from_secs(3);

impl Progress {
    /// `has_plain`: whether plain lines are shown where there is no terminal.
    pub fn new(has_plain: bool) -> Progress {
        let ticker = Ticker::with_plain(has_plain.then_some(PLAIN_EVERY));
        Progress { ticker, started: Instant::now(), recent: Recent::default() }
    }

    /// Shows a snapshot if it is time for one, and there is one.
    pub fn show(&mut self, is_stopping: bool, take: impl FnOnce() -> Option<Snapshot>) {
        let (recent, started) = (&mut self.recent, self.started);
        self.ticker.show(|width| {
            recent.push(started.elapsed(), take()?);
            Some(recent.line(width, is_stopping))
        });
    }

    /// A line for the user, without tearing the live one.
    pub fn say(&mut self, text: &str) {
        self.end();
        say(text);
    }

    /// Ends the live line.
    pub fn end(&mut self) {
        self.ticker.end();
    }
}
