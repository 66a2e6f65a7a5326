use super::postings::{Cursor, Extent, Places};
use super::question::Phrase;
use super::segments::{Found, Segment};
use std::io;

/// A phrase's words in a segment, the rarest first.
pub(super) struct PhraseHere {
    words: Vec<WordHere>,
    /// Where the phrase may end by the words that were looked at, and where it may by the next one.
    ends: Vec<u32>,
    next: Vec<u32>,
    marks: Marks,
}

struct WordHere {
    /// Which of the question's words it is.
    word: usize,
    to_end: u32,
    places: Places,
}

/// No text has so many words.
const PLACE_MAX: u32 = 1 << 22;

/// A bit for each place of a text; all are unset between two uses.
#[derive(Default)]
struct Marks(Vec<u64>);

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
        Ok(PhraseHere { words, ends: Vec::new(), next: Vec::new(), marks: Marks::default() })
    }

    /// True if the phrase is in the story that the words' cursors are at.
    pub fn is_in<'c>(&mut self, cursor: impl Fn(usize) -> &'c Cursor) -> io::Result<bool> {
        let PhraseHere { words, ends, next, marks } = self;
        for (number, here) in words.iter_mut().enumerate() {
            match number {
                0 => here.places.read(cursor(here.word), here.to_end, ends)?,
                _ => {
                    here.places.read(cursor(here.word), here.to_end, next)?;
                    marks.keep_common(next, ends);
                    std::mem::swap(ends, next);
                }
            }
            if ends.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Marks {
    /// Leaves those of some places that are among others, which ascend. Both lists are short, and which of the two goes on
    /// next cannot be foreseen: so nothing here branches on it.
    fn keep_common(&mut self, kept: &mut Vec<u32>, others: &[u32]) {
        let last = others.last().copied().unwrap_or(0);
        // No text is so long: the index is damaged.
        if last > PLACE_MAX {
            return kept.clear();
        }
        let words = last as usize / 64 + 1;
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        for &at in others {
            self.0[at as usize / 64] |= 1 << (at % 64);
        }
        let mut count = 0;
        for number in 0..kept.len() {
            let at = kept[number];
            kept[count] = at;
            let word = self.0.get(at as usize / 64).copied().unwrap_or(0);
            count += (word >> (at % 64) & 1) as usize;
        }
        kept.truncate(count);
        for &at in others {
            self.0[at as usize / 64] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_common_to_two_lists_is_that_of_sets() {
        let (mut rng, mut marks) = (Rng::new(3), Marks::default());
        for _ in 0..300 {
            let mut places = || -> BTreeSet<u32> {
                let (count, below) = (rng.below(40), 1 + rng.below(500));
                (0..count).map(|_| rng.below(below) as u32).collect()
            };
            let (some, others) = (places(), places());
            let mut kept: Vec<u32> = some.iter().copied().collect();
            marks.keep_common(&mut kept, &others.iter().copied().collect::<Vec<_>>());
            assert_eq!(kept, some.intersection(&others).copied().collect::<Vec<_>>());
            assert!(marks.0.iter().all(|word| *word == 0), "nothing stays for the next one");
        }
    }
}
