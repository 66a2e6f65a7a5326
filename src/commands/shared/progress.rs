use super::event_log::{is_text, tell, tell_aside, tell_more};
use super::progress_line::Recent;
use super::ticker::Ticker;
use crate::engine::{Event, Fields, Snapshot, Untaken};
use std::time::{Duration, Instant};

/// How a crawl is going: a line that rewrites itself on a terminal, a plain line every few seconds elsewhere; an event a
/// minute where programs read.
pub(super) struct Progress {
    ticker: Ticker,
    started: Instant,
    recent: Recent,
    /// When programs were told last.
    told: Instant,
}

const PLAIN_EVERY: Duration = Duration::from_secs(3);
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Of a line that no terminal shows.
const TOLD_WIDTH: usize = 400;

impl Progress {
    /// `has_plain`: whether plain lines are shown where there is no terminal.
    pub fn new(has_plain: bool) -> Progress {
        let (ticker, started) = (Ticker::with_plain(has_plain.then_some(PLAIN_EVERY)), Instant::now());
        Progress { ticker, started, recent: Recent::default(), told: started }
    }

    /// Shows a snapshot if it is time for one, and there is one.
    pub fn show(&mut self, is_stopping: bool, take: impl FnOnce() -> Option<Snapshot>) {
        if !is_text() {
            return self.tell_progress(is_stopping, take);
        }
        let (recent, started) = (&mut self.recent, self.started);
        self.ticker.show(|width| {
            recent.push(started.elapsed(), take()?);
            Some(recent.line(width, is_stopping))
        });
    }

    fn tell_progress(&mut self, is_stopping: bool, take: impl FnOnce() -> Option<Snapshot>) {
        if self.told.elapsed() < TOLD_EVERY {
            return;
        }
        self.told = Instant::now();
        let Some(snapshot) = take() else { return };
        let Snapshot { pages, pending, open, errors, bytes, known, .. } = snapshot;
        let fields = [
            ("pages", pages),
            ("pending", pending),
            ("open", open),
            ("errors", errors),
            ("bytes", bytes),
            ("known", known),
        ];
        self.recent.push(self.started.elapsed(), snapshot);
        let fields = fields.map(|(name, count)| (name, count.into())).to_vec();
        tell_aside(Event::Progress, fields, self.recent.line(TOLD_WIDTH, is_stopping));
    }

    /// Tells of an event, without tearing the live line.
    pub fn tell(&mut self, event: Event, fields: Fields, text: impl Into<String>) {
        self.end();
        tell(event, fields, text);
    }

    /// Tells what a node has to tell.
    pub fn tell_more(&mut self, untaken: Untaken) {
        if !untaken.notices.is_empty() || !untaken.more.is_empty() {
            self.end();
            tell_more(untaken);
        }
    }

    /// Ends the live line.
    pub fn end(&mut self) {
        self.ticker.end();
    }
}
