use super::dictionary::DictionaryWriter;
use super::footer::{Footer, Lengths, MAGIC};
use super::output::Output;
use crate::base::varint::put;
use crate::search::fields::LANGUAGES;
use crate::search::postings::PostingsWriter;
use std::io;
use std::path::Path;

/// What a segment says of each story at a place of its own.
#[derive(Default)]
pub struct Columns {
    /// Codes of lengths.
    pub lengths: Vec<u8>,
    /// Seconds, or [`NO_TIME`].
    pub times: Vec<i64>,
    /// Stories in their order with their numbers in the segment.
    pub by_story: Vec<(u64, u32)>,
}

pub const NO_TIME: i64 = i64::MIN;

/// Stories whose times are read at once.
pub const TIMES: usize = 4_096;

/// A segment on its way: first what is shown of its stories, then its words in order, then the rest.
pub struct SegmentWriter {
    out: Output,
    shown_index: Vec<u8>,
    /// Where the block before begins.
    last_shown_at: u64,
    footer: Footer,
    dictionary: Option<DictionaryWriter>,
}

impl SegmentWriter {
    pub fn create(path: &Path) -> io::Result<SegmentWriter> {
        let mut out = Output::create(path)?;
        out.put(&MAGIC)?;
        Ok(SegmentWriter {
            out,
            shown_index: Vec::new(),
            last_shown_at: 0,
            footer: Footer::default(),
            dictionary: None,
        })
    }

    /// How much was written so far.
    pub fn bytes(&self) -> u64 {
        self.out.at()
    }

    /// Adds a block of what is shown, with the number of its first story.
    pub fn put_shown(&mut self, first: u32, packed: &[u8]) -> io::Result<()> {
        let at = self.out.at();
        self.shown_index.extend_from_slice(&first.to_le_bytes());
        put(&mut self.shown_index, at - self.last_shown_at);
        self.last_shown_at = at;
        self.out.put(packed)
    }

    /// Adds a word that so many stories have. Words come in the order of their keys.
    pub fn put_word(&mut self, key: &str, stories: u32, postings: &[u8], places: &[u8]) -> io::Result<()> {
        let at = self.out.at();
        let dictionary = self.dictionary.get_or_insert_with(|| {
            self.footer.words_at = at;
            DictionaryWriter::new(at)
        });
        dictionary.put(key, stories, postings.len() as u32, places.len() as u32);
        self.out.put(postings)?;
        self.out.put(places)
    }

    /// Makes the segment durable under its name.
    pub fn finish(mut self, columns: &Columns, languages: [Lengths; LANGUAGES]) -> io::Result<()> {
        let (out, footer) = (&mut self.out, &mut self.footer);
        let (words, index) = match self.dictionary {
            Some(dictionary) => dictionary.finish(),
            None => {
                footer.words_at = out.at();
                (Vec::new(), Vec::new())
            }
        };
        footer.stories = columns.lengths.len() as u32;
        footer.languages = languages;
        footer.dictionary_at = out.at();
        out.put(&words)?;
        footer.index_at = out.at();
        out.put(&index)?;
        footer.shown_index_at = out.at();
        out.put(&self.shown_index)?;
        footer.times_index_at = out.at();
        let times_index = times_index(&columns.times);
        out.put(&times_index)?;
        let indexes = [&index, &self.shown_index, &times_index];
        footer.indexes_crc = indexes.iter().fold(0, |crc, index| crc32c::crc32c_append(crc, index));
        footer.lengths_at = out.at();
        out.put(&columns.lengths)?;
        footer.times_at = out.at();
        columns.times.iter().try_for_each(|at_s| out.put(&at_s.to_le_bytes()))?;
        footer.by_story_at = out.at();
        for (story, number) in &columns.by_story {
            out.put(&story.to_le_bytes())?;
            out.put(&number.to_le_bytes())?;
        }
        footer.at = out.at();
        footer.crc = out.crc()?;
        out.put(&footer.written())?;
        self.out.commit()
    }
}

/// The first and the last time of each part of the stories; of a part without any time they are the wrong way round.
fn times_index(times: &[i64]) -> Vec<u8> {
    let bounds = times.chunks(TIMES).map(|part| {
        let timed = || part.iter().copied().filter(|at_s| *at_s != NO_TIME);
        (timed().min().unwrap_or(i64::MAX), timed().max().unwrap_or(i64::MIN))
    });
    bounds.flat_map(|(first, last)| [first, last]).flat_map(i64::to_le_bytes).collect()
}

/// The data of one word after the other, as its stories come.
pub struct WordWriter {
    pub postings: PostingsWriter,
    pub places: Vec<u8>,
    packed: Vec<u8>,
}

impl WordWriter {
    pub fn new() -> WordWriter {
        WordWriter { postings: PostingsWriter::new(), places: Vec::new(), packed: Vec::new() }
    }

    /// Writes the word, if any story has it, and begins anew.
    pub fn finish(&mut self, key: &str, segment: &mut SegmentWriter) -> io::Result<()> {
        self.packed.clear();
        let stories = self.postings.finish(&mut self.packed);
        if stories > 0 {
            segment.put_word(key, stories, &self.packed, &self.places)?;
        }
        self.places.clear();
        Ok(())
    }
}
