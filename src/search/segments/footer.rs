use crate::base::{u32_at, u64_at};
use crate::search::fields::LANGUAGES;
use crate::search::postings::damaged;
use std::io;

/// Stories of a language and the words that they have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    pub stories: u32,
    pub words: u64,
}

/// Where everything is in a segment. A section ends where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    pub stories: u32,
    /// Behind what is shown.
    pub words_at: u64,
    pub dictionary_at: u64,
    pub index_at: u64,
    pub shown_index_at: u64,
    pub times_index_at: u64,
    pub lengths_at: u64,
    pub times_at: u64,
    pub by_story_at: u64,
    /// The end of the last section.
    pub at: u64,
    /// The checksum of all before the footer, and that of the indexes.
    pub crc: u32,
    pub indexes_crc: u32,
    pub languages: [Lengths; LANGUAGES],
}

pub const MAGIC: [u8; 8] = *b"NPHSRCH3";
const SECTIONS: usize = 9;
pub const FOOTER_BYTES: usize = 4 + 8 * SECTIONS + 8 + 12 * LANGUAGES + 4;

impl Footer {
    pub fn written(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&self.stories.to_le_bytes());
        self.sections().iter().for_each(|at| out.extend_from_slice(&at.to_le_bytes()));
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&self.indexes_crc.to_le_bytes());
        for language in &self.languages {
            out.extend_from_slice(&language.stories.to_le_bytes());
            out.extend_from_slice(&language.words.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    fn sections(&self) -> [u64; SECTIONS] {
        [
            self.words_at,
            self.dictionary_at,
            self.index_at,
            self.shown_index_at,
            self.times_index_at,
            self.lengths_at,
            self.times_at,
            self.by_story_at,
            self.at,
        ]
    }

    /// The footer of a file of so many bytes.
    pub fn read(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> io::Result<Footer> {
        let end = FOOTER_BYTES - 4;
        if crc32c::crc32c(&bytes[..end]) != u32_at(bytes, end) {
            return Err(damaged("the checksum of its footer is wrong"));
        }
        let section = |number: usize| u64_at(bytes, 4 + 8 * number);
        let from = 4 + 8 * SECTIONS;
        let footer = Footer {
            stories: u32_at(bytes, 0),
            words_at: section(0),
            dictionary_at: section(1),
            index_at: section(2),
            shown_index_at: section(3),
            times_index_at: section(4),
            lengths_at: section(5),
            times_at: section(6),
            by_story_at: section(7),
            at: section(8),
            crc: u32_at(bytes, from),
            indexes_crc: u32_at(bytes, from + 4),
            languages: std::array::from_fn(|number| {
                let at = from + 8 + 12 * number;
                Lengths { stories: u32_at(bytes, at), words: u64_at(bytes, at + 4) }
            }),
        };
        let sections = footer.sections();
        let is_whole = sections.is_sorted()
            && footer.words_at >= MAGIC.len() as u64
            && footer.at.checked_add(FOOTER_BYTES as u64) == Some(file_bytes)
            && footer.times_at - footer.lengths_at == u64::from(footer.stories)
            && footer.by_story_at - footer.times_at == 8 * u64::from(footer.stories)
            && footer.at - footer.by_story_at == 12 * u64::from(footer.stories);
        if is_whole { Ok(footer) } else { Err(damaged("its footer is of another file")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_comes_back_and_no_bit_of_it_may_change() {
        let mut footer =
            Footer { stories: 2, words_at: 9, dictionary_at: 9, index_at: 30, crc: 7, ..Footer::default() };
        (footer.shown_index_at, footer.times_index_at) = (40, 45);
        (footer.lengths_at, footer.times_at) = (50, 52);
        (footer.by_story_at, footer.at, footer.indexes_crc) = (68, 92, 8);
        footer.languages[3] = Lengths { stories: 2, words: 1 << 40 };
        let written: [u8; FOOTER_BYTES] = footer.written().try_into().unwrap();
        let whole = 92 + FOOTER_BYTES as u64;
        assert_eq!(Footer::read(&written, whole).unwrap(), footer);
        assert!(Footer::read(&written, whole + 1).is_err());
        for bit in 0..8 * FOOTER_BYTES {
            let mut wrong = written;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::read(&wrong, whole).is_err());
        }
    }
}
