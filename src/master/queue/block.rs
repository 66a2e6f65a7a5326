use crate::base::{u32_at, u64_at};
use crate::limits::MASTER_LINE_BYTES_MAX;

/// The header of a block. Little-endian:
///
/// | offset | bytes | field                                                                    |
/// |--------|-------|--------------------------------------------------------------------------|
/// | 0      | 4     | magic; its bytes stand in no line                                        |
/// | 4      | 4     | crc32c of the header behind it                                           |
/// | 8      | 4     | crc32c of the payload                                                    |
/// | 12     | 4     | bytes of the payload: lines, each with its LF, by LZ4                    |
/// | 16     | 4     | bytes of the lines                                                       |
/// | 20     | 4     | entries in it                                                            |
/// | 24     | 8     | number of the first entry                                                |
/// | 32     | 8     | number of the epoch; of control entries, that of the epoch before        |
/// | 40     | 4     | earliest time of an entry, seconds since 1970                            |
/// | 44     | 4     | latest time of an entry                                                  |
/// | 48     | 4     | latest time of any entry that was committed, to any server, before this  |
/// | 52     | 4     | `now` of the commit                                                      |
/// | 56     | 4     | kind                                                                     |
/// | 60     | 4     | zero                                                                     |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    pub payload_crc: u32,
    pub payload_bytes: u32,
    pub plain_bytes: u32,
    pub entries: u32,
    pub first_seq: u64,
    pub epoch: u64,
    pub earliest_s: u32,
    pub latest_s: u32,
    pub before_s: u32,
    pub at_s: u32,
    pub kind: BlockKind,
}

/// Where the entries of a block come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// URLs that an epoch sent.
    Epoch,
    /// Words to the node, and what a domain brought along.
    Control,
}

pub(super) const MAGIC: [u8; 4] = [0xfe, b'Q', 0xff, 0x01];
pub(crate) const BLOCK_HEADER_BYTES: usize = 64;
const CHECKED: usize = 8;

/// An entry, without its LF.
pub const ENTRY_BYTES_MAX: usize = MASTER_LINE_BYTES_MAX;
/// Entries are added to a block up to this size.
pub(super) const BLOCK_PLAIN_BYTES: usize = 128 * 1024;
pub(super) const PLAIN_BYTES_MAX: usize = BLOCK_PLAIN_BYTES + ENTRY_BYTES_MAX + 1;
pub(super) const PAYLOAD_BYTES_MAX: usize = PLAIN_BYTES_MAX + PLAIN_BYTES_MAX / 255 + 64;

impl BlockHeader {
    pub fn write(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let words = [
            (8, self.payload_crc),
            (12, self.payload_bytes),
            (16, self.plain_bytes),
            (20, self.entries),
            (40, self.earliest_s),
            (44, self.latest_s),
            (48, self.before_s),
            (52, self.at_s),
            (56, u32::from(self.kind == BlockKind::Control)),
        ];
        for (at, word) in words {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[CHECKED..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at the front, if it is one that we wrote.
    pub fn read(bytes: &[u8]) -> Option<BlockHeader> {
        let head = bytes.get(..BLOCK_HEADER_BYTES)?;
        if head[..4] != MAGIC || crc32c::crc32c(&head[CHECKED..]) != u32_at(head, 4) {
            return None;
        }
        let header = BlockHeader {
            payload_crc: u32_at(head, 8),
            payload_bytes: u32_at(head, 12),
            plain_bytes: u32_at(head, 16),
            entries: u32_at(head, 20),
            first_seq: u64_at(head, 24),
            epoch: u64_at(head, 32),
            earliest_s: u32_at(head, 40),
            latest_s: u32_at(head, 44),
            before_s: u32_at(head, 48),
            at_s: u32_at(head, 52),
            kind: if u32_at(head, 56) == 0 { BlockKind::Epoch } else { BlockKind::Control },
        };
        let is_bounded = header.payload_bytes as usize <= PAYLOAD_BYTES_MAX
            && header.plain_bytes as usize <= PLAIN_BYTES_MAX
            && header.entries > 0
            && header.entries <= header.plain_bytes
            && header.first_seq <= u64::MAX / 2;
        is_bounded.then_some(header)
    }

    /// The lines of a block, if they are whole and right.
    pub fn unpack(&self, payload: &[u8], plain: &mut Vec<u8>) -> bool {
        plain.resize(self.plain_bytes as usize, 0);
        crc32c::crc32c(payload) == self.payload_crc
            && lz4_flex::block::decompress_into(payload, plain).is_ok_and(|bytes| bytes == plain.len())
            && plain.last() == Some(&b'\n')
    }

    /// The number behind its last entry.
    pub fn end_seq(&self) -> u64 {
        self.first_seq + u64::from(self.entries)
    }

    /// Header and payload.
    pub fn bytes(&self) -> u64 {
        (BLOCK_HEADER_BYTES + self.payload_bytes as usize) as u64
    }
}
