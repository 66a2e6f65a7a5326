use super::waiting::{FetchedStory, Ledger, StoryWork};
use crate::feeds::{DateFrom, StoriesView, Story, StoryId, StoryState};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The ledger of stories of a data directory, as it is on disk. A story is fetched there once its record is durable.
pub(crate) struct StoriesLedger {
    data: PathBuf,
}

impl StoriesLedger {
    pub fn new(data: PathBuf) -> StoriesLedger {
        StoriesLedger { data }
    }
}

impl Ledger for StoriesLedger {
    fn each(&mut self, from: u32, show: &mut dyn FnMut(u32, StoryWork) -> ControlFlow<()>) -> io::Result<()> {
        let Some(view) = StoriesView::open(&self.data)? else { return Ok(()) };
        // The place of one that is not there yet is not known, that of the one before it is.
        for story in view.since(StoryId(from.saturating_sub(1)))? {
            let story = story?;
            if story.id.0 >= from && show(story.id.0, work(story)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn work(story: Story) -> StoryWork {
    match (story.state, story.doc_id) {
        (StoryState::Fetched | StoryState::Extracted, Some(doc_id)) => StoryWork::Fetched(FetchedStory {
            story: story.id.0,
            doc_id,
            url: story.url,
            title: story.title,
            published_s: (story.provenance == DateFrom::Feed).then_some(i64::from(story.published_s)),
            language: story.language,
        }),
        (StoryState::Failed, _) => StoryWork::Settled,
        _ => StoryWork::Pending,
    }
}
