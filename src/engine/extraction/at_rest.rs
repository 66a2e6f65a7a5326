use super::actor::Extraction;
use super::hands::{ThreadHands, Work};
use super::store_pages::StorePages;
use super::stories::StoriesLedger;
use crate::engine::runtime::actor::{Actor, ActorBell, Seated, Turned, now_since};
use crate::extractor::{ExtractDepth, Extractor, RULES, Texts};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What texts are made of, and how.
#[derive(Clone, Copy, Debug)]
pub struct ExtractionSetup<'a> {
    /// The data directory of a crawl.
    pub data: &'a Path,
    pub depth: ExtractDepth,
    pub threads: usize,
    /// Texts of older rules are made again.
    pub redo: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextsMade {
    pub texts: u64,
    /// Stories that have none, for a reason that their text says.
    pub failed: u64,
}

/// The extraction of a crawl, as its assembly seats it.
pub(crate) type CrawlExtraction = Extraction<StoriesLedger, StorePages, ThreadHands>;

impl ExtractionSetup<'_> {
    /// Opens the texts and starts the threads; `None` if nothing is to be done, or cannot be in this build.
    pub(crate) fn seat(&self) -> io::Result<Option<Seated<CrawlExtraction>>> {
        let Some(extractor) = Extractor::new(self.depth) else { return Ok(None) };
        let bell = ActorBell::default();
        let work: Work = Arc::new(move |job| job.run_by(&extractor));
        let hands = ThreadHands::start(self.threads.max(1), work, bell.door.clone())?;
        let texts = Texts::open(&self.data.join("stories"))?;
        let (ledger, pages) = (StoriesLedger::new(self.data.into()), StorePages::new(self.data.into()));
        let mut actor = Extraction::new(ledger, pages, hands, texts);
        if self.redo {
            actor = actor.redo_before(RULES);
        }
        Ok(Some(Seated { actor, bell }))
    }

    /// Makes the texts of a directory at rest: of all stories that were fetched and have none, unless it is to hurry, or too
    /// many pages hold up their threads. The next run makes the rest.
    pub fn make_texts(&self, is_in_haste: impl Fn() -> bool) -> io::Result<TextsMade> {
        let Some(Seated { mut actor, .. }) = self.seat()? else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this build has no extraction"));
        };
        let started = Instant::now();
        while !actor.is_done() && !actor.is_stuck() && !is_in_haste() {
            if actor.turn(now_since(started)) != Turned::Busy {
                std::thread::sleep(Duration::from_millis(2));
            }
            if actor.refused() > 0 {
                return Err(actor.take_refusal());
            }
        }
        actor.end(now_since(started));
        actor.turn(now_since(started));
        let (texts, failed) = actor.made();
        Ok(TextsMade { texts, failed })
    }
}
