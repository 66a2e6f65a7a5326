use super::note::NoteOwner;
use crate::base;
use crate::doc_index::ledger::{Origin, PRIORITY_MAX};
use crate::proto::job::Provenance;
use crate::proto::record::ResultCode;
use serde::{Deserialize, Serialize};

/// What became of a document. In a table of rows of one size, by the document's number; one that was never answered for
/// has none. Little-endian:
///
/// | offset | bytes | field                                                                   |
/// |--------|-------|-------------------------------------------------------------------------|
/// | 0      | 4     | crc32c of the rest; a row that is damaged is none, and its URL is fetched again |
/// | 4      | 1     | state; 64 if a wish was told later, and 128 if that is for the head     |
/// | 5      | 1     | result code of the last answer                                          |
/// | 6      | 2     | HTTP status of it, 0 without one                                        |
/// | 8      | 1     | failures in a row that were worth another try                           |
/// | 9      | 1     | a priority that was told later, and 1; 0 without one                    |
/// | 10     | 2     | answers, as far as they can be counted                                  |
/// | 12     | 2     | of them, those that brought another document than the one before        |
/// | 14     | 2     | bytes of the note's place                                               |
/// | 16     | 4     | when it was last answered for, seconds since 1970                       |
/// | 20     | 4     | when it is due again, 0 for never                                       |
/// | 24     | 4     | seconds from an answer to the next question                             |
/// | 28     | 4     | when its document last changed                                          |
/// | 32     | 8     | digest of its document, 0 without one                                   |
/// | 40     | 8     | bytes of the ledger that must be there for this to count                |
/// | 48     | 8     | place of the note                                                       |
/// | 56     | 4     | update tag, as a hash; 0 without one                                    |
/// | 60     | 4     | hits that were told later                                               |
///
/// A row tells of links that the ledger has: if a crash took the end of the ledger, rows that were written after it are
/// void, and their pages are read once more. The same number tells by which rules the links of a page were read: those
/// of the process that the ledger says was at work there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub state: DocState,
    pub result: Option<ResultCode>,
    pub status: u16,
    pub retries: u8,
    pub fetches: u16,
    pub changes: u16,
    pub fetched_s: u32,
    pub due_s: u32,
    pub interval_s: u32,
    pub changed_s: u32,
    pub digest: u64,
    pub update_tag: u32,
    /// What was told since it was discovered: the higher counts.
    pub priority: Option<u8>,
    pub hits: u32,
    /// Whether its head alone is wanted, if that was told since it was discovered: the last word counts.
    pub head_only: Option<bool>,
    pub(crate) after: u64,
    pub(crate) note: NotePlace,
}

/// Where the note of a document is, and how much room it has there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotePlace {
    pub at: u64,
    pub bytes: u16,
}

/// What is known of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum DocState {
    /// To be fetched, now or when it is due.
    #[default]
    Pending = 0,
    /// Fetched, or followed to where it leads.
    Success = 1,
    /// Nothing to be had, for the reason that the result tells.
    Error = 2,
    /// The rules of this crawl keep it out. With other rules it is pending.
    Excluded = 3,
    /// Handed out, not answered for. Never on disk.
    HandedOut = 4,
}

impl DocState {
    pub const STORED: [DocState; 4] =
        [DocState::Pending, DocState::Success, DocState::Error, DocState::Excluded];

    pub fn name(self) -> &'static str {
        match self {
            DocState::Pending => "pending",
            DocState::HandedOut => "handed_out",
            DocState::Success => "success",
            DocState::Error => "error",
            DocState::Excluded => "excluded",
        }
    }
}

pub(crate) const ROW_BYTES: usize = 64;
/// Beside the state.
const WISH: u8 = 64;
const WISH_HEAD: u8 = 128;

impl Row {
    /// Whose note it finds.
    pub(crate) fn note_owner(&self, doc_id: u32) -> NoteOwner {
        NoteOwner { doc_id, digest: self.digest }
    }

    /// Where a document comes from, with what was told of it since.
    pub fn raise(&self, origin: Origin) -> Origin {
        let priority = self.priority.map_or(origin.priority, |priority| priority.max(origin.priority));
        let head_only = self.head_only.unwrap_or(origin.provenance.head_only);
        let provenance = Provenance { head_only, ..origin.provenance };
        Origin { priority, hits: origin.hits.max(self.hits), provenance, ..origin }
    }

    /// As if no answer had ever come: what was told of the document is left.
    pub(crate) fn unanswered(&self) -> Row {
        let Row { priority, hits, head_only, update_tag, .. } = *self;
        Row { priority, hits, head_only, update_tag, ..Row::default() }
    }

    pub(crate) fn encode(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        debug_assert_ne!(self.state, DocState::HandedOut);
        bytes[4] =
            self.state as u8 | self.head_only.map_or(0, |head| WISH | if head { WISH_HEAD } else { 0 });
        bytes[5] = self.result.map_or(0, |result| result as u8);
        bytes[6..8].copy_from_slice(&self.status.to_le_bytes());
        bytes[8] = self.retries;
        bytes[9] = self.priority.map_or(0, |priority| priority.min(PRIORITY_MAX) + 1);
        let halves = [(10, self.fetches), (12, self.changes), (14, self.note.bytes)];
        for (at, field) in halves {
            bytes[at..at + 2].copy_from_slice(&field.to_le_bytes());
        }
        let words = [
            (16, self.fetched_s),
            (20, self.due_s),
            (24, self.interval_s),
            (28, self.changed_s),
            (56, self.update_tag),
            (60, self.hits),
        ];
        for (at, field) in words {
            bytes[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        for (at, field) in [(32, self.digest), (40, self.after), (48, self.note.at)] {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        // An empty place reads as zeros, so a row must never do.
        let crc = crc32c::crc32c(&bytes[4..]).max(1);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` where there is no row, or a damaged one.
    pub(crate) fn decode(bytes: &[u8; ROW_BYTES]) -> Option<Row> {
        let u16_at = |at: usize| base::u16_at(bytes, at);
        let u32_at = |at: usize| base::u32_at(bytes, at);
        let u64_at = |at: usize| base::u64_at(bytes, at);
        let crc = u32_at(0);
        if crc == 0 || crc != crc32c::crc32c(&bytes[4..]).max(1) {
            return None;
        }
        Some(Row {
            state: *DocState::STORED.get(usize::from(bytes[4] & !(WISH | WISH_HEAD)))?,
            result: ResultCode::from_u8(bytes[5]),
            status: u16_at(6),
            retries: bytes[8],
            fetches: u16_at(10),
            changes: u16_at(12),
            fetched_s: u32_at(16),
            due_s: u32_at(20),
            interval_s: u32_at(24),
            changed_s: u32_at(28),
            digest: u64_at(32),
            update_tag: u32_at(56),
            priority: bytes[9].checked_sub(1),
            hits: u32_at(60),
            head_only: (bytes[4] & WISH != 0).then_some(bytes[4] & WISH_HEAD != 0),
            after: u64_at(40),
            note: NotePlace { at: u64_at(48), bytes: u16_at(14) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_went_or_not_at_all() {
        let row = Row {
            state: DocState::Error,
            result: Some(ResultCode::HttpError),
            status: 404,
            retries: 3,
            fetches: 700,
            changes: 7,
            fetched_s: 1 << 31,
            due_s: 5,
            interval_s: 6,
            changed_s: 8,
            digest: u64::MAX,
            update_tag: 9,
            priority: Some(0),
            hits: 10,
            head_only: None,
            after: 1 << 40,
            note: NotePlace { at: 1 << 41, bytes: 64 },
        };
        let [head, whole] = [true, false].map(|head| Row { head_only: Some(head), ..row });
        for row in [row, head, whole, Row::default()] {
            let bytes = row.encode();
            assert_eq!(Row::decode(&bytes), Some(row));
            for at in 0..ROW_BYTES {
                let mut bad = bytes;
                bad[at] ^= 4;
                assert_eq!(Row::decode(&bad), None, "byte {at}");
            }
        }
        assert_eq!(Row::decode(&[0; ROW_BYTES]), None, "a hole in the file");
    }
}
