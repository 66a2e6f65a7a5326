use crate::base::u32_at;
use crate::storage::Bytes;
use std::io;
use std::ops::ControlFlow;

/// The header of a block of the ledger. Little-endian:
///
/// | offset | bytes | field                                                         |
/// |--------|-------|---------------------------------------------------------------|
/// | 0      | 4     | magic; its bytes stand in no URL, so that no page can forge one |
/// | 4      | 4     | crc32c of all that follows, payload included                  |
/// | 8      | 4     | bytes of the payload                                          |
/// | 12     | 4     | number of the first document in it, or that would come next   |
/// | 16     | 4     | documents in it                                               |
/// | 20     | 4     | when it was closed, seconds since 1970                        |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub payload_bytes: u32,
    pub first_doc: u32,
    pub docs: u32,
    pub at_s: u32,
}

const MAGIC: [u8; 4] = [0xfe, b'N', 0xff, 0x01];
const CRC: usize = 4;
const CHECKED: usize = 8;
pub(crate) const BLOCK_HEADER_BYTES: usize = 24;
/// No block is larger: an entry with the longest URL begins before a block is full.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 1024;

impl BlockHeader {
    /// Writes a block.
    pub fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        debug_assert_eq!(self.payload_bytes as usize, payload.len());
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        for field in [self.payload_bytes, self.first_doc, self.docs, self.at_s] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(payload);
        let crc = crc32c::crc32c(&out[start + CHECKED..]);
        out[start + CRC..start + CHECKED].copy_from_slice(&crc.to_le_bytes());
    }

    /// A header, its block not checked.
    fn parse(bytes: &[u8]) -> Option<BlockHeader> {
        let head = bytes.get(..BLOCK_HEADER_BYTES)?;
        let [payload_bytes, first_doc, docs, at_s] = [8, 12, 16, 20].map(|at| u32_at(head, at));
        let header = BlockHeader { payload_bytes, first_doc, docs, at_s };
        (head[..4] == MAGIC && header.payload_bytes as usize <= BLOCK_BYTES_MAX).then_some(header)
    }

    /// The block at the front, if it is whole and right.
    pub fn read(bytes: &[u8]) -> Option<(BlockHeader, &[u8])> {
        let header = BlockHeader::parse(bytes)?;
        let end = BLOCK_HEADER_BYTES + header.payload_bytes as usize;
        let checked = bytes.get(CHECKED..end)?;
        (crc32c::crc32c(checked) == u32_at(bytes, CRC)).then(|| (header, &bytes[BLOCK_HEADER_BYTES..end]))
    }

    /// Whether a document is in the block, by its number.
    pub fn has(&self, doc_id: u32) -> bool {
        doc_id >= self.first_doc && !self.is_before(doc_id)
    }

    /// Whether all documents of the block come before this one.
    pub fn is_before(&self, doc_id: u32) -> bool {
        doc_id >= self.first_doc + self.docs
    }

    pub fn bytes(&self) -> u64 {
        (BLOCK_HEADER_BYTES + self.payload_bytes as usize) as u64
    }
}

/// What a scan came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The end of the last good block: what lies behind is a torn tail.
    pub end: u64,
    /// Bytes in the middle that are no blocks, with good ones behind them.
    pub damaged_bytes: u64,
}

/// The first good block from a place on, if there is one nearby.
pub(crate) fn block_from(bytes: &Bytes, at: u64) -> io::Result<Option<(u64, BlockHeader)>> {
    let mut buffer = vec![0; 2 * (BLOCK_HEADER_BYTES + BLOCK_BYTES_MAX)];
    let read = bytes.read_at(&mut buffer, at)?;
    let good = |&from: &usize| BlockHeader::read(&buffer[from..read]).is_some();
    let found = memchr::memmem::find_iter(&buffer[..read], &MAGIC).find(good);
    Ok(found.and_then(|from| Some((at + from as u64, BlockHeader::read(&buffer[from..read])?.0))))
}

const READ_BYTES_FIRST: usize = 2 * (BLOCK_HEADER_BYTES + BLOCK_BYTES_MAX);
const READ_BYTES: usize = 1 << 20;

/// Goes through all blocks from `at`, one after the other, until `each` breaks with what it has found. Where there is no
/// block, the next good one is looked for.
pub(crate) fn scan<B>(
    bytes: &Bytes,
    mut at: u64,
    mut each: impl FnMut(u64, BlockHeader, &[u8]) -> ControlFlow<B>,
) -> io::Result<(Scanned, Option<B>)> {
    let mut scanned = Scanned { end: at, damaged_bytes: 0 };
    // A short look needs no long read.
    let mut buffer = vec![0; READ_BYTES_FIRST];
    loop {
        let read = bytes.read_at(&mut buffer, at)?;
        let mut rest = &buffer[..read];
        let is_end = read < buffer.len();
        while rest.len() >= if is_end { 1 } else { BLOCK_HEADER_BYTES + BLOCK_BYTES_MAX } {
            match BlockHeader::read(rest) {
                Some((header, payload)) => {
                    scanned.damaged_bytes += at - scanned.end;
                    if let ControlFlow::Break(found) = each(at, header, payload) {
                        scanned.end = at;
                        return Ok((scanned, Some(found)));
                    }
                    at += header.bytes();
                    scanned.end = at;
                    rest = &rest[header.bytes() as usize..];
                }
                None => {
                    let next = memchr::memmem::find(&rest[1..], &MAGIC).map_or(rest.len(), |found| found + 1);
                    // A magic may be cut by the end of what was read.
                    let next = if next == rest.len() && !is_end { next - (MAGIC.len() - 1) } else { next };
                    at += next as u64;
                    rest = &rest[next..];
                }
            }
        }
        if is_end {
            return Ok((scanned, None));
        }
        buffer.resize(READ_BYTES, 0);
    }
}
