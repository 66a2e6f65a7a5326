use super::log::{self, FILE_HEAD_BYTES};
use super::places::{Places, Told};
use super::story_text::StoryText;
use super::texts_view::{LOG, PLACES};
use crate::storage::{Bytes, make_data_directory, sync_directory};
use std::io;
use std::path::Path;

/// The writer of the texts of stories. There is one for a directory, which whoever opens it sees to.
///
/// ```text
///   append ──► at the end of `texts` ──► sync: log, then places, then how far they go
/// ```
///
/// What was appended is there after a kill once it is synced. What lies behind that and is not whole is cut when the log is
/// opened again.
pub struct Texts {
    log: Bytes,
    places: Places,
    record: Vec<u8>,
    /// Bytes that are no record, found when it was opened.
    damaged: u64,
    cut: u64,
}

impl Texts {
    /// Opens `texts` in a directory, which is made if it is not there.
    pub fn open(dir: &Path) -> io::Result<Texts> {
        make_data_directory(dir)?;
        let path = dir.join(LOG);
        let log = Bytes::open_secret(&path)?;
        log::check_file_head(&log, &path)?;
        let places = Places::over(Bytes::open_secret(&dir.join(PLACES))?);
        let texts = Texts::over(log, places)?;
        sync_directory(dir)?;
        Ok(texts)
    }

    /// Texts that are gone with the process.
    pub fn in_memory() -> io::Result<Texts> {
        Texts::over(Bytes::Memory(Vec::new()), Places::over(Bytes::Memory(Vec::new())))
    }

    fn over(log: Bytes, places: Places) -> io::Result<Texts> {
        let mut texts = Texts { log, places, record: Vec::new(), damaged: 0, cut: 0 };
        if texts.log.len() < FILE_HEAD_BYTES {
            texts.log.truncate(0)?;
            texts.log.write_at(&log::file_head(), 0)?;
        }
        let mut at = texts.places.covered()?;
        if at < FILE_HEAD_BYTES || at > texts.log.len() {
            texts.places.clear()?;
            at = FILE_HEAD_BYTES;
        }
        while let Some(read) = log::next_record(&texts.log, at)? {
            texts.damaged += read.damaged;
            texts.places.note(read.text.story, read.at)?;
            at = read.end;
        }
        texts.cut = texts.log.len() - at;
        if texts.cut > 0 {
            texts.log.truncate(at)?;
        }
        texts.sync()?;
        Ok(texts)
    }

    /// Appends a text, and returns where it lies. The latest of a story counts.
    pub fn append(&mut self, text: &StoryText) -> io::Result<u64> {
        self.record.clear();
        text.pack(&mut self.record)?;
        let at = self.log.len();
        if let Err(cause) = self.log.write_at(&self.record, at) {
            // The next one begins where this one would have.
            let _ = self.log.truncate(at);
            return Err(cause);
        }
        self.places.note(text.story, at)?;
        Ok(at)
    }

    /// Makes durable what was appended.
    pub fn sync(&mut self) -> io::Result<()> {
        self.log.sync()?;
        self.places.sync(self.log.len())
    }

    /// Whether a story has a text, of these rules or later ones.
    pub fn has(&self, story: u32, rules_min: u16) -> io::Result<bool> {
        let Told::At(at) = self.places.of(story)? else { return Ok(false) };
        // The place of a text that was lost with the power may have outlived it.
        let head = log::head_at(&self.log, at)?;
        Ok(head.is_some_and(|head| head.story == story && head.rules >= rules_min))
    }

    /// Where the next one will lie.
    pub fn end(&self) -> u64 {
        self.log.len()
    }

    /// Bytes that were no record, and bytes of an unfinished one that were cut, when it was opened.
    pub fn mended(&self) -> (u64, u64) {
        (self.damaged, self.cut)
    }
}
