use crate::base::rfc3339;
use crate::commands::shared::Failure;
use crate::extractor::TextsView;
use crate::feeds::{DateFrom, FeedsView, SourceId, StoriesView, Story, StoryState};
use serde::Serialize;
use std::path::Path;

/// A story, as it is told.
#[derive(Serialize)]
pub(super) struct StoryTold {
    pub id: u32,
    pub source: String,
    pub feed: u32,
    pub url: String,
    pub guid: String,
    pub title: String,
    pub published: String,
    /// Where that date is from.
    pub provenance: DateFrom,
    pub seen: String,
    pub language: Option<String>,
    pub state: StoryState,
    pub doc_id: Option<u32>,
}

/// Feeds and stories of a directory, to be looked at.
pub(super) struct Views {
    pub feeds: FeedsView,
    pub stories: StoriesView,
    pub texts: TextsView,
}

impl Views {
    pub fn open(data: &Path) -> Result<Views, Failure> {
        let none = || {
            Failure::CannotRun(format!(
                "{} has no stories (nephila feeds add, then nephila crawl --wait, brings some)",
                data.display()
            ))
        };
        let feeds = FeedsView::open(data)?.ok_or_else(none)?;
        let stories = StoriesView::open(data)?.ok_or_else(none)?;
        Ok(Views { feeds, stories, texts: TextsView::open(&data.join("stories"))? })
    }

    pub fn source_name(&self, source: SourceId) -> String {
        self.feeds.source(source).map_or(String::new(), |source| source.name.to_string())
    }

    /// The ledger knows nothing of texts.
    fn state(&self, story: &Story) -> StoryState {
        let has_text = || self.texts.has(story.id.0).unwrap_or(false);
        match story.state {
            StoryState::Fetched if has_text() => StoryState::Extracted,
            state => state,
        }
    }

    pub fn told(&self, story: &Story) -> StoryTold {
        StoryTold {
            id: story.id.0,
            source: self.source_name(story.source),
            feed: story.feed.0,
            url: story.url.to_string(),
            guid: story.guid.to_string(),
            title: story.title.to_string(),
            published: time(story.published_s),
            provenance: story.provenance,
            seen: time(story.seen_s),
            language: Some(story.language.to_string()).filter(|language| !language.is_empty()),
            state: self.state(story),
            doc_id: story.doc_id,
        }
    }
}

pub(super) fn time(at_s: u32) -> String {
    rfc3339(u64::from(at_s) * 1_000)
}
