use super::clauses::Asked;
use tantivy::columnar::Column;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TantivyError, Term};

/// Words that follow each other, with their places in the phrase.
pub(super) struct Phrase(pub Vec<(usize, Term)>);

/// When a story was published, both ends included.
#[derive(Clone, Copy)]
pub(super) struct Published {
    since_s: i64,
    until_s: i64,
}

/// What a story of a segment is looked at for once its words are known to be good enough. Stories come in ascending order.
pub(super) struct Conditions {
    phrases: Vec<PhraseHere>,
    published: Option<(Published, Column<i64>)>,
}

/// A phrase's words in a segment, the rarest first.
struct PhraseHere {
    words: Vec<(u32, SegmentPostings)>,
    /// Where the phrase may end by the words that were looked at, and where it may by the next one.
    ends: Vec<u32>,
    next: Vec<u32>,
    marks: Marks,
}

/// No text has so many words.
const PLACE_MAX: u32 = 1 << 22;

/// A bit for each place of a text; all are unset between two uses.
#[derive(Default)]
struct Marks(Vec<u64>);

impl Published {
    /// None if any time will do, none included.
    pub fn between(since_s: Option<i64>, until_s: Option<i64>) -> Option<Published> {
        let bounds = Published { since_s: since_s.unwrap_or(i64::MIN), until_s: until_s.unwrap_or(i64::MAX) };
        (since_s.is_some() || until_s.is_some()).then_some(bounds)
    }
}

impl Conditions {
    /// None where a segment has not all of a phrase's words.
    pub fn here(asked: &Asked, segment: &SegmentReader) -> Result<Option<Conditions>, TantivyError> {
        let mut phrases = Vec::with_capacity(asked.phrases.len());
        for phrase in &asked.phrases {
            let Some(here) = PhraseHere::of(phrase, segment)? else { return Ok(None) };
            phrases.push(here);
        }
        let column = || segment.fast_fields().i64("published");
        let published = asked.published.map(|bounds| Ok::<_, TantivyError>((bounds, column()?)));
        Ok(Some(Conditions { phrases, published: published.transpose()? }))
    }

    pub fn hold(&mut self, story: DocId) -> bool {
        let in_time = self.published.as_ref().is_none_or(|(bounds, column)| {
            column.first(story).is_some_and(|at_s| (bounds.since_s..=bounds.until_s).contains(&at_s))
        });
        in_time && self.phrases.iter_mut().all(|phrase| phrase.is_in(story))
    }
}

impl PhraseHere {
    fn of(phrase: &Phrase, segment: &SegmentReader) -> Result<Option<PhraseHere>, TantivyError> {
        let last = phrase.0.iter().map(|(at, _)| *at).max().unwrap_or(0);
        let mut words = Vec::with_capacity(phrase.0.len());
        for (at, term) in &phrase.0 {
            let index = segment.inverted_index(term.field())?;
            let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
                return Ok(None);
            };
            words.push(((last - at) as u32, postings));
        }
        words.sort_by_key(|(_, postings)| postings.doc_freq());
        Ok(Some(PhraseHere { words, ends: Vec::new(), next: Vec::new(), marks: Marks::default() }))
    }

    fn is_in(&mut self, story: DocId) -> bool {
        let PhraseHere { words, ends, next, marks } = self;
        for (number, (to_end, postings)) in words.iter_mut().enumerate() {
            if postings.doc() < story {
                postings.seek(story);
            }
            if postings.doc() != story {
                return false;
            }
            match number {
                0 => postings.positions_with_offset(*to_end, ends),
                _ => {
                    postings.positions_with_offset(*to_end, next);
                    marks.keep_common(next, ends);
                    std::mem::swap(ends, next);
                }
            }
            if ends.is_empty() {
                return false;
            }
        }
        true
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
