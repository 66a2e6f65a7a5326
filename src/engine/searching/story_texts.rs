use crate::extractor::{StoryText, TextsView};
use crate::feeds::{FeedsView, Source, StoriesView, Story, StoryId};
use crate::search::{SearchDoc, SearchSource};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Texts that were extracted, with what the ledger of stories and the book of feeds say of each. A place is one in the log of
/// texts.
pub struct StoryTexts {
    data: PathBuf,
    texts: TextsView,
    stories: Option<StoriesView>,
    feeds: Option<FeedsView>,
    at: u64,
    /// What lies before it survives the loss of power, so that no place of an index is ever behind the end.
    durable: u64,
}

/// The folder of texts in a data directory, and their log.
const STORIES: &str = "stories";
const TEXTS: &str = "texts";

impl StoryTexts {
    pub fn open(data: &Path) -> io::Result<StoryTexts> {
        let mut opened = StoryTexts {
            data: data.to_path_buf(),
            texts: TextsView::open(&data.join(STORIES))?,
            stories: StoriesView::open(data)?,
            feeds: FeedsView::open(data)?,
            at: 0,
            durable: 0,
        };
        opened.refresh()?;
        Ok(opened)
    }

    /// Takes note of what was appended; false if nothing was. It is made durable here: whoever appended may do so later, or
    /// never.
    fn refresh(&mut self) -> io::Result<bool> {
        let log = match File::open(self.data.join(STORIES).join(TEXTS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            log => log?,
        };
        let len = log.metadata()?.len();
        if len == self.durable {
            return Ok(false);
        }
        log.sync_data()?;
        self.texts.refresh()?;
        self.durable = len;
        Ok(true)
    }

    /// The next text that is durable, with the place behind it.
    fn next_text(&mut self) -> io::Result<Option<(u64, StoryText)>> {
        loop {
            let next = self.texts.since(self.at).next().transpose()?;
            let next = next.filter(|(end, _)| *end <= self.durable);
            if next.is_some() || !self.refresh()? {
                return Ok(next);
            }
        }
    }

    fn story(&mut self, story: StoryId) -> io::Result<Option<Story>> {
        let find =
            |stories: &Option<StoriesView>| stories.as_ref().map_or(Ok(None), |stories| stories.story(story));
        if let Some(found) = find(&self.stories)? {
            return Ok(Some(found));
        }
        // It may be younger than the view.
        self.stories = StoriesView::open(&self.data)?;
        find(&self.stories)
    }

    fn source(&mut self, story: &Story) -> io::Result<String> {
        let find = |feeds: &Option<FeedsView>| {
            let source: Option<&Source> = feeds.as_ref().and_then(|feeds| feeds.source(story.source));
            source.map(|source| source.name.to_string())
        };
        if let Some(found) = find(&self.feeds) {
            return Ok(found);
        }
        self.feeds = FeedsView::open(&self.data)?;
        Ok(find(&self.feeds).unwrap_or_default())
    }

    fn joined(&mut self, text: StoryText) -> io::Result<Option<SearchDoc>> {
        // A text whose story is not in the ledger has no URL to be found at.
        let Some(story) = self.story(StoryId(text.story))? else { return Ok(None) };
        let or =
            |first: &str, second: &str| if first.is_empty() { second.to_string() } else { first.to_string() };
        Ok(Some(SearchDoc {
            story: text.story.into(),
            source: self.source(&story)?,
            title: or(&story.title, &text.title),
            language: or(&text.language, &story.language),
            published_s: text.published_s.or(Some(i64::from(story.published_s))),
            url: story.url.into(),
            text: text.text,
            after: self.at,
        }))
    }
}

impl SearchSource for StoryTexts {
    fn place(&self) -> u64 {
        self.at
    }

    fn seek(&mut self, place: u64) -> io::Result<bool> {
        if place >= self.durable {
            self.refresh()?;
        }
        self.at = place;
        Ok(place <= self.durable)
    }

    fn next(&mut self) -> io::Result<Option<SearchDoc>> {
        loop {
            let Some((end, text)) = self.next_text()? else { return Ok(None) };
            self.at = end;
            // What has no text is passed over, and so is its place with the next.
            if text.failed.is_none()
                && let Some(story) = self.joined(text)?
            {
                return Ok(Some(story));
            }
        }
    }
}
