use super::postings::{Cursor, NONE, each_posting};
use super::segments::{Found, Segment};
use std::io;

/// Stories of a segment one of whose words will do, whichever it is.
pub(super) enum Among {
    /// Those of one word.
    Listed(Box<Cursor>),
    /// Those of several: a bit for each story of the segment.
    Marked { bits: Vec<u64>, count: u32 },
}

impl Among {
    /// Those that have one of these words; None if there are none.
    pub fn any_of(segment: &Segment, keys: &[String]) -> io::Result<Option<Among>> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            found.extend(segment.dictionary().find(key)?);
        }
        Among::of(segment, &found)
    }

    /// Those that have a word that begins like this; None if there are none.
    pub fn beginning_with(segment: &Segment, beginning: &str) -> io::Result<Option<Among>> {
        let (mut scan, mut found) = (segment.dictionary().scan(beginning), Vec::new());
        while let Some(word) = scan.next()? {
            match scan.key() {
                key if key.starts_with(beginning) => found.push(word),
                key if key > beginning => break,
                _ => {}
            }
        }
        Among::of(segment, &found)
    }

    fn of(segment: &Segment, words: &[Found]) -> io::Result<Option<Among>> {
        match words {
            [] => Ok(None),
            [word] => Ok(Some(Among::Listed(Box::new(cursor(segment, word)?)))),
            words => {
                let mut bits = vec![0_u64; (segment.stories() as usize).div_ceil(64)];
                for word in words {
                    let len = word.postings_bytes as usize;
                    let mut extent = segment.extent(word.at, word.postings_bytes)?;
                    let mark = |story: u32, _| {
                        *bits.get_mut(story as usize / 64)? |= 1 << (story % 64);
                        Some(())
                    };
                    each_posting(word.stories, extent.bytes(0, len)?, mark)
                        .ok_or_else(|| super::postings::damaged("the data of a word is damaged"))?;
                }
                let count = bits.iter().map(|word| word.count_ones()).sum();
                Ok(Some(Among::Marked { bits, count }))
            }
        }
    }

    pub fn stories(&self) -> u32 {
        match self {
            Among::Listed(cursor) => cursor.stories(),
            Among::Marked { count, .. } => *count,
        }
    }

    /// The first story that is not before this one; [`NONE`] if there is none.
    pub fn seek(&mut self, story: u32) -> io::Result<u32> {
        match self {
            Among::Listed(cursor) => cursor.seek(story),
            Among::Marked { bits, .. } => {
                let first = story as usize / 64;
                let Some(word) = bits.get(first) else { return Ok(NONE) };
                let rest = word & (u64::MAX << (story % 64));
                let next =
                    [rest].into_iter().chain(bits[first + 1..].iter().copied()).position(|word| word != 0);
                Ok(next.map_or(NONE, |ahead| {
                    let word = if ahead == 0 { rest } else { bits[first + ahead] };
                    (first + ahead) as u32 * 64 + word.trailing_zeros()
                }))
            }
        }
    }
}

/// The beginning of a word's postings.
pub(super) fn cursor(segment: &Segment, word: &Found) -> io::Result<Cursor> {
    Cursor::new(word.stories, segment.extent(word.at, word.postings_bytes)?)
}
