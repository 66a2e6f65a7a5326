use super::page_date::DateFrom;
use crate::base::{u16_at, u32_at, u64_at};
use std::io;

/// What is kept of a story's page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoryText {
    pub story: u32,
    pub doc_id: u32,
    /// By which rules it was made.
    pub rules: u16,
    pub title: String,
    pub author: String,
    pub published_s: Option<i64>,
    pub date_from: DateFrom,
    /// By two letters, empty if unknown.
    pub language: String,
    pub text: String,
    /// Why there is no text.
    pub failed: Option<String>,
}

/// The first bytes of a record, by which it is found again behind damage.
pub(super) const MAGIC: [u8; 4] = *b"TXT1";
/// Magic, bytes of the packed rest, its bytes unpacked, its checksum, story, document, rules, two of nothing, and the
/// checksum of all that.
pub(super) const HEAD_BYTES: usize = 32;
/// No record is longer, unpacked.
pub(super) const PLAIN_BYTES_MAX: usize = 8 << 20;

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub packed_bytes: usize,
    plain_bytes: usize,
    packed_crc: u32,
    pub story: u32,
    doc_id: u32,
    pub rules: u16,
}

impl Head {
    /// `None` for bytes that are no head.
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let bytes = bytes.get(..HEAD_BYTES)?;
        let (head, crc) = bytes.split_at(HEAD_BYTES - 4);
        if head[..4] != MAGIC || u32_at(crc, 0) != crc32c::crc32c(head) {
            return None;
        }
        let head = Head {
            packed_bytes: u32_at(head, 4) as usize,
            plain_bytes: u32_at(head, 8) as usize,
            packed_crc: u32_at(head, 12),
            story: u32_at(head, 16),
            doc_id: u32_at(head, 20),
            rules: u16_at(head, 24),
        };
        let is_possible = head.plain_bytes <= PLAIN_BYTES_MAX
            && head.packed_bytes <= lz4_flex::block::get_maximum_output_size(PLAIN_BYTES_MAX);
        is_possible.then_some(head)
    }

    pub fn record_bytes(&self) -> u64 {
        (HEAD_BYTES + self.packed_bytes) as u64
    }

    /// The record; `None` if its bytes are not what was written.
    pub fn unpack(&self, packed: &[u8]) -> Option<StoryText> {
        if packed.len() != self.packed_bytes || crc32c::crc32c(packed) != self.packed_crc {
            return None;
        }
        let plain = lz4_flex::block::decompress(packed, self.plain_bytes).ok()?;
        let mut fields = Fields(&plain);
        let date_from = DateFrom::of_byte(fields.take(1)?[0])?;
        let has_date = fields.take(1)?[0] != 0;
        let date = u64_at(fields.take(8)?, 0) as i64;
        let is_failed = fields.take(1)?[0] != 0;
        let failed = fields.text()?;
        Some(StoryText {
            story: self.story,
            doc_id: self.doc_id,
            rules: self.rules,
            title: fields.text()?,
            author: fields.text()?,
            published_s: has_date.then_some(date),
            date_from,
            language: fields.text()?,
            text: fields.text()?,
            failed: is_failed.then_some(failed),
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<String> {
        let bytes = u32_at(self.take(4)?, 0) as usize;
        String::from_utf8(self.take(bytes)?.to_vec()).ok()
    }
}

impl StoryText {
    /// Appends the record to `out`.
    pub(super) fn pack(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut plain = Vec::with_capacity(self.text.len() + 256);
        plain.push(self.date_from.to_byte());
        plain.push(u8::from(self.published_s.is_some()));
        plain.extend(self.published_s.unwrap_or(0).to_le_bytes());
        plain.push(u8::from(self.failed.is_some()));
        let failed = self.failed.as_deref().unwrap_or_default();
        for text in [failed, &self.title, &self.author, &self.language, &self.text] {
            plain.extend((text.len() as u32).to_le_bytes());
            plain.extend(text.as_bytes());
        }
        if plain.len() > PLAIN_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the text of a story is too long"));
        }
        let packed = lz4_flex::block::compress(&plain);
        let start = out.len();
        out.extend(MAGIC);
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend((plain.len() as u32).to_le_bytes());
        out.extend(crc32c::crc32c(&packed).to_le_bytes());
        out.extend(self.story.to_le_bytes());
        out.extend(self.doc_id.to_le_bytes());
        out.extend(self.rules.to_le_bytes());
        out.extend([0; 2]);
        let crc = crc32c::crc32c(&out[start..]);
        out.extend(crc.to_le_bytes());
        out.extend(packed);
        Ok(())
    }
}
