use crate::base::{u32_at, u64_at};
use xxhash_rust::xxh3::xxh3_64;

/// A row of current_log: a URL that was sent lately, or that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentRow {
    /// The keyed hash of the normal form.
    pub id: u64,
    /// In reflog time; 0 if it was never sent, because its lines are held.
    pub sent_s: u32,
    /// When it was last asked for.
    pub seen_s: u32,
    /// Hits since it was sent. More than fit are as many as fit.
    pub hits: u32,
    /// The last tag that said something.
    pub tag: TagMark,
}

/// An update tag as far as a row has room for it: one of up to seven bytes is there whole, of a longer one its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagMark(u64);

/// Bytes of a row on disk: id, sent, seen, hits, tag.
pub(super) const ROW_BYTES: usize = 28;

/// Bytes of a tag that a row has room for.
const WHOLE_BYTES_MAX: usize = 7;
const HASHED: u64 = 0xff << 56;

impl CurrentRow {
    pub(super) fn bytes(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sent_s.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.seen_s.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.hits.to_le_bytes());
        bytes[20..].copy_from_slice(&self.tag.0.to_le_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8; ROW_BYTES]) -> CurrentRow {
        CurrentRow {
            id: u64_at(bytes, 0),
            sent_s: u32_at(bytes, 8),
            seen_s: u32_at(bytes, 12),
            hits: u32_at(bytes, 16),
            tag: TagMark(u64_at(bytes, 20)),
        }
    }

    /// As far as its times can be true: what is further ahead than clocks are apart was made by a clock that was wrong, and
    /// counts as now, so that it is over when as much time has passed as for any other row.
    pub(super) fn believed(self, now_s: u32, ahead_s: u32) -> CurrentRow {
        let believed = |at_s: u32| if at_s > now_s.saturating_add(ahead_s) { now_s } else { at_s };
        CurrentRow { sent_s: believed(self.sent_s), seen_s: believed(self.seen_s), ..self }
    }

    pub(super) fn partition(&self) -> u8 {
        (self.id >> 56) as u8
    }
}

impl TagMark {
    pub const NONE: TagMark = TagMark(0);

    pub fn of(tag: &[u8]) -> TagMark {
        if tag.len() > WHOLE_BYTES_MAX {
            return TagMark(xxh3_64(tag) | HASHED);
        }
        let length = (tag.len() as u64) << 56;
        TagMark(tag.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)) | length)
    }

    /// Nothing was said.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Both say something, and not the same.
    pub fn differs(self, other: TagMark) -> bool {
        !self.is_none() && !other.is_none() && self != other
    }

    /// This one, or the other where this one says nothing.
    pub fn or(self, other: TagMark) -> TagMark {
        if self.is_none() { other } else { self }
    }

    /// The tag itself, written to `out`; `None` if it is too long for a row.
    pub fn text(self, out: &mut [u8; 8]) -> Option<&[u8]> {
        *out = self.0.to_le_bytes();
        out.get(..usize::from(out[7])).filter(|_| out[7] <= WHOLE_BYTES_MAX as u8)
    }

    /// As it lies in a row.
    pub fn word(self) -> u64 {
        self.0
    }

    pub(super) fn from_word(word: u64) -> TagMark {
        TagMark(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_was_written() {
        let row = CurrentRow { id: u64::MAX - 5, sent_s: 7, seen_s: 8, hits: 9, tag: TagMark::of(b"abc") };
        assert_eq!((CurrentRow::read(&row.bytes()), row.partition()), (row, 255));
    }

    #[test]
    fn a_short_tag_is_there_whole_and_every_other_one_differs() {
        let mut out = [0; 8];
        for tag in ["", "0", "1", "abcdefg"] {
            assert_eq!(TagMark::of(tag.as_bytes()).text(&mut out), Some(tag.as_bytes()));
        }
        assert_eq!(TagMark::of(b"abcdefgh").text(&mut out), None);
        let all = ["", "0", "1", "00", "0\0", "abcdefg", "abcdefgh", "abcdefgi"]
            .map(|tag| TagMark::of(tag.as_bytes()));
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one.differs(*other), at != other_at && at > 0 && other_at > 0);
            }
        }
        assert_eq!((all[0].or(all[1]), all[2].or(all[1])), (all[1], all[2]));
    }
}
