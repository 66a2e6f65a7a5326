use super::layout::{
    SEGMENT_AGENT, SEGMENT_AGENT_LEN, SEGMENT_AGENT_MAX, SEGMENT_CRC, SEGMENT_MADE_AT, SEGMENT_MAGIC,
    SEGMENT_NUMBER, SEGMENT_PACKED, SEGMENT_SHARD,
};
use crate::base::{u16_at, u32_at, u64_at};
use crate::limits::SEGMENT_HEADER_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The first page of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub number: u64,
    pub shard: u32,
    pub made_unix_ms: u64,
    /// The user agent that requested the documents; empty where it is not known.
    pub agent: String,
    /// How often it was packed.
    pub packed: u32,
}

impl SegmentHeader {
    pub(super) fn to_bytes(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let mut agent_len = self.agent.len().min(SEGMENT_AGENT_MAX);
        while !self.agent.is_char_boundary(agent_len) {
            agent_len -= 1;
        }
        let agent = &self.agent.as_bytes()[..agent_len];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, SEGMENT_MAGIC);
        put(SEGMENT_NUMBER, &self.number.to_le_bytes());
        put(SEGMENT_SHARD, &self.shard.to_le_bytes());
        put(SEGMENT_MADE_AT, &self.made_unix_ms.to_le_bytes());
        put(SEGMENT_AGENT_LEN, &(agent.len() as u16).to_le_bytes());
        put(SEGMENT_AGENT, agent);
        put(SEGMENT_PACKED, &self.packed.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[SEGMENT_CRC..SEGMENT_MADE_AT].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` for bytes that are no such page.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<SegmentHeader> {
        let bytes: &[u8; SEGMENT_HEADER_BYTES] = bytes.get(..SEGMENT_HEADER_BYTES)?.try_into().ok()?;
        if bytes[..8] != *SEGMENT_MAGIC || checksum(bytes) != u32_at(bytes, SEGMENT_CRC) {
            return None;
        }
        let agent = bytes.get(SEGMENT_AGENT..)?.get(..usize::from(u16_at(bytes, SEGMENT_AGENT_LEN)))?;
        Some(SegmentHeader {
            number: u64_at(bytes, SEGMENT_NUMBER),
            shard: u32_at(bytes, SEGMENT_SHARD),
            made_unix_ms: u64_at(bytes, SEGMENT_MADE_AT),
            agent: String::from_utf8_lossy(agent).into_owned(),
            packed: u32_at(bytes, SEGMENT_PACKED),
        })
    }

    /// The header of a file; `None` for one that was never finished, or of another number than its name says.
    pub(super) fn of(file: &File, number: u64) -> io::Result<Option<SegmentHeader>> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(SegmentHeader::from_bytes(&bytes).filter(|header| header.number == number)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn checksum(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..SEGMENT_CRC]), &bytes[SEGMENT_MADE_AT..])
}
