use crate::config::Config;
use crate::engine::extraction::{CrawlExtraction, ExtractionSetup};
#[cfg(feature = "search")]
use crate::engine::runtime::actor::ActorBell;
use crate::engine::runtime::actor::{ActorThread, Seated};
use crate::engine::runtime::counters::Counters;
use crate::engine::runtime::health::{Health, NodeError};
#[cfg(feature = "search")]
use crate::engine::searching::{IndexingActor, StoryTexts, search_folder};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// What becomes of stories once they are fetched: their texts, and the index of their words. No page waits for it.
pub struct StoryThreads {
    extraction: ActorThread<CrawlExtraction>,
    #[cfg(feature = "search")]
    searching: ActorThread<IndexingActor<StoryTexts>>,
}

impl StoryThreads {
    /// `None` where no texts are made, by the settings or by this build.
    pub fn start(
        config: &Config,
        started: Instant,
        health: &Arc<Health>,
        counters: Arc<Counters>,
    ) -> Result<Option<StoryThreads>, NodeError> {
        let seated = setup(config).seat().map_err(NodeError::Feeds)?;
        let Some(Seated { actor, bell }) = seated else { return Ok(None) };
        let extraction = Seated { actor: actor.counting_in(counters), bell };
        let extraction = ActorThread::start_unwatched("extraction", extraction, started, health)?;
        #[cfg(feature = "search")]
        let searching = {
            let data = &config.store.data;
            let texts = StoryTexts::open(data).map_err(NodeError::Feeds)?;
            let actor = IndexingActor::new(search_folder(data), texts, health.clone());
            let seated = Seated { actor, bell: ActorBell::default() };
            ActorThread::start_unwatched("search", seated, started, health)?
        };
        Ok(Some(StoryThreads {
            extraction,
            #[cfg(feature = "search")]
            searching,
        }))
    }

    /// Ends them. A crawl that ends by itself leaves no story without its text: then nothing may be written to the store any
    /// more.
    pub fn end(self, config: &Config, is_over: bool, is_in_haste: impl Fn() -> bool) -> io::Result<()> {
        self.extraction.end();
        let made = if is_over { setup(config).make_texts(is_in_haste).map(drop) } else { Ok(()) };
        #[cfg(feature = "search")]
        self.searching.end();
        made
    }
}

fn setup(config: &Config) -> ExtractionSetup<'_> {
    ExtractionSetup {
        data: &config.store.data,
        depth: config.feeds.extract,
        threads: config.feeds.extract_threads,
        redo: false,
    }
}
