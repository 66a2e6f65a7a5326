use super::row::TagMark;
use crate::base::{u16_at, u32_at, u64_at};
use crate::master::{FilteredRow, RowPlace};
use crate::proto::reflog::{ReflogRecord, Stamp};
use std::ops::Range;

/// A row of filtered_log as it waits for its place: its fixed part, then URL, page, batch and tag.
///
/// | at | bytes | what                        | at | bytes | what                    |
/// |----|-------|-----------------------------|----|-------|-------------------------|
/// | 0  | 8     | id                          | 32 | 2     | bytes of the URL        |
/// | 8  | 4     | row in its partition        | 34 | 2     | where the domain begins |
/// | 12 | 4     | sent before                 | 36 | 2     | bytes of the domain     |
/// | 16 | 8     | tag before                  | 38 | 1 + 1 | bytes of tag and page   |
/// | 24 | 4 + 4 | time, hits                  | 40 | 1 + 1 | of the batch; priority  |
pub(super) struct Sent<'a> {
    pub row: FilteredRow<'a>,
    pub tag_before: TagMark,
}

const FIXED_BYTES: usize = 42;

impl<'a> Sent<'a> {
    /// Writes it; the domain stands at this place in its URL.
    pub fn write(&self, domain: Range<usize>, out: &mut Vec<u8>) {
        let FilteredRow { id, record, at, sent_before_s, .. } = &self.row;
        let mut fixed = [0; FIXED_BYTES];
        fixed[..8].copy_from_slice(&id.to_le_bytes());
        fixed[8..12].copy_from_slice(&at.row.to_le_bytes());
        fixed[12..16].copy_from_slice(&sent_before_s.to_le_bytes());
        fixed[16..24].copy_from_slice(&self.tag_before.word().to_le_bytes());
        fixed[24..28].copy_from_slice(&record.at.s().to_le_bytes());
        fixed[28..32].copy_from_slice(&record.hits.to_le_bytes());
        fixed[32..34].copy_from_slice(&(record.url.len() as u16).to_le_bytes());
        fixed[34..36].copy_from_slice(&(domain.start as u16).to_le_bytes());
        fixed[36..38].copy_from_slice(&(domain.len() as u16).to_le_bytes());
        fixed[38..].copy_from_slice(&[
            record.tag.len() as u8,
            record.page.len() as u8,
            record.batch.len() as u8,
            record.priority,
        ]);
        out.extend_from_slice(&fixed);
        for text in [record.url, record.page, record.batch, record.tag] {
            out.extend_from_slice(text);
        }
    }

    /// The first of some, and the others.
    pub fn read(bytes: &'a [u8]) -> Option<(Sent<'a>, &'a [u8])> {
        let (fixed, rest) = bytes.split_at_checked(FIXED_BYTES)?;
        let (url, rest) = rest.split_at_checked(usize::from(u16_at(fixed, 32)))?;
        let (page, rest) = rest.split_at_checked(usize::from(fixed[39]))?;
        let (batch, rest) = rest.split_at_checked(usize::from(fixed[40]))?;
        let (tag, rest) = rest.split_at_checked(usize::from(fixed[38]))?;
        let domain_at = usize::from(u16_at(fixed, 34));
        let domain = url.get(domain_at..domain_at + usize::from(u16_at(fixed, 36)))?;
        let id = u64_at(fixed, 0);
        let record = ReflogRecord {
            batch,
            priority: fixed[41],
            at: Stamp::from_s(u32_at(fixed, 24)),
            page,
            url,
            hits: u32_at(fixed, 28),
            tag,
        };
        let row = FilteredRow {
            id,
            record,
            domain: str::from_utf8(domain).ok()?,
            at: RowPlace { partition: (id >> 56) as u8, row: u32_at(fixed, 8) },
            sent_before_s: u32_at(fixed, 12),
        };
        Some((Sent { row, tag_before: TagMark::from_word(u64_at(fixed, 16)) }, rest))
    }
}
