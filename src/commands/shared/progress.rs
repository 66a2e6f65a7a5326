use super::say;
use super::ticker::Ticker;
use crate::engine::Snapshot;
use std::time::{Duration, Instant};

/// How a crawl is going: a line that rewrites itself on a terminal, a plain line every few seconds elsewhere.
pub(super) struct Progress {
    ticker: Ticker,
    started: Instant,
    before: Snapshot,
}

const PLAIN_EVERY: Duration = Duration::from_secs(3);

impl Progress {
    pub fn new() -> Progress {
        let ticker = Ticker::with_plain(Some(PLAIN_EVERY));
        Progress { ticker, started: Instant::now(), before: Snapshot::default() }
    }

    /// Shows a snapshot if it is time for one, and there is one.
    pub fn show(&mut self, take: impl FnOnce() -> Option<Snapshot>) {
        let (before, started) = (&mut self.before, self.started);
        self.ticker.show(|passed| {
            let snapshot = take()?;
            let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed.as_secs_f64();
            let pages_s = per_second(snapshot.pages, before.pages);
            let mb_s = per_second(snapshot.bytes, before.bytes) / 1e6;
            *before = snapshot;
            let Snapshot { pages, open, hosts, known, pending, errors, .. } = before;
            let seconds = started.elapsed().as_secs_f64();
            Some(format!("{seconds:>5.1}s  {pages} pages  {pages_s:.0}/s  {mb_s:.1} MB/s  {open} open  {hosts} hosts  {known} known  {pending} pending  {errors} errors"))
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
