use super::log::{self, FILE_HEAD_BYTES};
use super::places::{Places, Told};
use super::story_text::StoryText;
use crate::storage::Bytes;
use std::io;
use std::path::{Path, PathBuf};

pub(super) const LOG: &str = "texts";
pub(super) const PLACES: &str = "texts.places";

/// Reads the texts of stories, also while they are written. A directory without any has none.
pub struct TextsView {
    dir: PathBuf,
    log: Bytes,
    places: Places,
}

impl TextsView {
    pub fn open(dir: &Path) -> io::Result<TextsView> {
        let path = dir.join(LOG);
        let log = Bytes::read_only(&path)?;
        log::check_file_head(&log, &path)?;
        let places = Places::over(Bytes::read_only(&dir.join(PLACES))?);
        Ok(TextsView { dir: dir.to_path_buf(), log, places })
    }

    /// Takes note of what was written since.
    pub fn refresh(&mut self) -> io::Result<()> {
        *self = TextsView::open(&self.dir)?;
        Ok(())
    }

    /// The latest text of a story.
    pub fn by_story(&self, story: u32) -> io::Result<Option<StoryText>> {
        let covered = self.places.covered()?;
        let known = match self.places.of(story)? {
            Told::At(at) => {
                log::record_at(&self.log, at)?.map(|(text, _)| text).filter(|text| text.story == story)
            }
            Told::Nothing | Told::Unknown => None,
        };
        // A place that leads nowhere says nothing: all of the log is looked through.
        let is_told = known.is_some() || self.places.of(story)? == Told::Nothing && covered > 0;
        let from = if is_told { covered } else { 0 };
        let mut latest = known;
        let mut at = from;
        while let Some(read) = log::next_record(&self.log, at)? {
            at = read.end;
            if read.text.story == story {
                latest = Some(read.text);
            }
        }
        Ok(latest)
    }

    /// Whether a story has a text that is synced. Only its place is asked: a list of many stories may.
    pub fn has(&self, story: u32) -> io::Result<bool> {
        let Told::At(at) = self.places.of(story)? else { return Ok(false) };
        let read = log::record_at(&self.log, at)?;
        Ok(read.is_some_and(|(text, _)| text.story == story && text.failed.is_none()))
    }

    /// All texts from a position on, 0 for the first, each with the position behind it, by which a reader goes on later.
    /// What is damaged is passed over; one that is being written ends it.
    pub fn since(&self, position: u64) -> impl Iterator<Item = io::Result<(u64, StoryText)>> + '_ {
        let mut at = position.max(FILE_HEAD_BYTES);
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            match log::next_record(&self.log, at) {
                Ok(Some(read)) => {
                    at = read.end;
                    Some(Ok((read.end, read.text)))
                }
                Ok(None) => None,
                Err(cause) => {
                    is_over = true;
                    Some(Err(cause))
                }
            }
        })
    }
}
