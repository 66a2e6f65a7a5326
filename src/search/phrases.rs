use super::postings::{Cursor, Extent, Places};
use super::question::Phrase;
use super::segments::{Found, Segment};
use std::io;

/// A phrase's words in a segment, the rarest first.
pub(super) struct PhraseHere {
    words: Vec<WordHere>,
    /// Where the phrase may end by the words that were looked at.
    ends: Vec<u32>,
}

struct WordHere {
    /// Which of the question's words it is.
    word: usize,
    to_end: u32,
    places: Places,
}

impl PhraseHere {
    /// `found` are the question's words in the segment.
    pub fn of(phrase: &Phrase, segment: &Segment, found: &[Found]) -> io::Result<PhraseHere> {
        let mut words = Vec::with_capacity(phrase.0.len());
        for (word, to_end) in &phrase.0 {
            let here = &found[*word];
            let at = here.at + u64::from(here.postings_bytes);
            let extent: Extent = segment.extent(at, here.places_bytes)?;
            words.push(WordHere { word: *word, to_end: *to_end, places: Places::new(extent) });
        }
        words.sort_by_key(|here| found[here.word].stories);
        Ok(PhraseHere { words, ends: Vec::new() })
    }

    /// True if the phrase is in the story that the words' cursors are at.
    pub fn is_in<'c>(&mut self, cursor: impl Fn(usize) -> &'c Cursor) -> io::Result<bool> {
        let PhraseHere { words, ends } = self;
        for (number, here) in words.iter_mut().enumerate() {
            match number {
                0 => here.places.read(cursor(here.word), here.to_end, ends)?,
                _ => here.places.keep(cursor(here.word), here.to_end, ends)?,
            }
            if ends.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
