use super::super::ServerId;
use super::block::{BLOCK_HEADER_BYTES, BlockHeader, MAGIC, PAYLOAD_BYTES_MAX};
use crate::base::{u16_at, u32_at, u64_at};
use crate::storage::Bytes;
use std::io;
use std::path::{Path, PathBuf};

/// The header of a segment: magic and version, the server, the number of the first entry, a checksum.
pub const SEGMENT_HEADER_BYTES: usize = 32;
const SEGMENT_MAGIC: &[u8; 8] = b"NEPHQUE1";
const CHECKED: usize = 24;

/// A segment as far as it is committed: where its blocks are.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub first_seq: u64,
    /// Committed bytes.
    pub bytes: u64,
    pub blocks: Vec<BlockPlace>,
    pub earliest_s: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BlockPlace {
    pub at: u64,
    pub header: BlockHeader,
}

/// What is wrong with a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub at: u64,
    pub what: &'static str,
}

/// What a segment begins with.
pub fn segment_header(server: ServerId, first_seq: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[..8].copy_from_slice(SEGMENT_MAGIC);
    bytes[8..10].copy_from_slice(&server.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&first_seq.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..CHECKED]);
    bytes[CHECKED..28].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn read_header(bytes: &[u8]) -> Option<(ServerId, u64)> {
    let head = bytes.get(..SEGMENT_HEADER_BYTES)?;
    let good = head[..8] == *SEGMENT_MAGIC
        && crc32c::crc32c(&head[..CHECKED]) == u32_at(head, CHECKED)
        && head[28..] == [0; 4];
    good.then(|| (ServerId(u16_at(head, 8)), u64_at(head, 16)))
}

pub(super) fn segment_path(folder: &Path, first_seq: u64) -> PathBuf {
    folder.join(format!("{first_seq:020}.seg"))
}

/// The segments of a folder by their names, in order.
pub(super) fn segments_in(folder: &Path) -> io::Result<Vec<u64>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".seg")).map(str::parse::<u64>);
        found.extend(number.and_then(Result::ok));
    }
    found.sort_unstable();
    Ok(found)
}

impl Segment {
    pub fn fresh(first_seq: u64) -> Segment {
        Segment { first_seq, bytes: SEGMENT_HEADER_BYTES as u64, blocks: Vec::new(), earliest_s: u32::MAX }
    }

    pub fn push(&mut self, at: u64, header: BlockHeader) {
        self.bytes = at + header.bytes();
        self.earliest_s = self.earliest_s.min(header.earliest_s);
        self.blocks.push(BlockPlace { at, header });
    }

    /// Finds the blocks of a file up to `end`, by their headers alone. Where there is none, the next one is looked for;
    /// what is missing shows in the numbers.
    pub fn index(
        file: &Bytes,
        server: ServerId,
        first_seq: u64,
        end: u64,
    ) -> io::Result<(Segment, Option<Damage>)> {
        let mut segment = Segment::fresh(first_seq);
        let mut damage = None;
        let mut head = [0; SEGMENT_HEADER_BYTES];
        let read = file.read_at(&mut head, 0)?;
        if read_header(&head[..read]) != Some((server, first_seq)) {
            damage = Some(Damage { at: 0, what: "its header is not that of this segment" });
        }
        if file.len() < end {
            damage =
                damage.or(Some(Damage { at: file.len(), what: "it is shorter than what was committed" }));
        }
        let end = end.min(file.len());
        let mut at = SEGMENT_HEADER_BYTES as u64;
        let mut next_seq = first_seq;
        while at < end {
            let mut head = [0; BLOCK_HEADER_BYTES];
            let read = file.read_at(&mut head, at)?;
            let fits = |header: &BlockHeader| header.first_seq >= next_seq && at + header.bytes() <= end;
            match BlockHeader::read(&head[..read]).filter(fits) {
                Some(header) => {
                    if header.first_seq != next_seq {
                        damage = damage.or(Some(Damage { at, what: "entries are missing before it" }));
                    }
                    segment.push(at, header);
                    next_seq = header.end_seq();
                    at += header.bytes();
                }
                None => {
                    damage = damage.or(Some(Damage { at, what: "there is no block" }));
                    match next_block(file, at + 1, end)? {
                        Some(found) => at = found,
                        None => break,
                    }
                }
            }
        }
        segment.bytes = end;
        Ok((segment, damage))
    }
}

/// The next place from which on a block header can be read.
fn next_block(file: &Bytes, mut at: u64, end: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; 1 << 20];
    while at < end {
        let read = file.read_at(&mut buffer, at)?;
        let found = memchr::memmem::find_iter(&buffer[..read], &MAGIC)
            .find(|from| BlockHeader::read(&buffer[*from..read]).is_some());
        if let Some(from) = found {
            return Ok(Some(at + from as u64));
        }
        if read < buffer.len() {
            return Ok(None);
        }
        at += (read - BLOCK_HEADER_BYTES) as u64;
    }
    Ok(None)
}

/// Reads a whole segment, and tells its entries with their numbers. An error names the first thing that is wrong.
pub fn segment_entries(bytes: &[u8], mut each: impl FnMut(u64, &[u8])) -> Result<u64, Damage> {
    let Some((_, mut next_seq)) = read_header(bytes) else {
        return Err(Damage { at: 0, what: "its header is not that of a segment" });
    };
    let mut at = SEGMENT_HEADER_BYTES;
    let mut plain = Vec::new();
    while at < bytes.len() {
        let damage = |what| Damage { at: at as u64, what };
        let header = BlockHeader::read(&bytes[at..]).ok_or(damage("there is no block"))?;
        if header.first_seq != next_seq {
            return Err(damage("its entries do not follow those before"));
        }
        let payload = at + BLOCK_HEADER_BYTES..at + header.bytes() as usize;
        let payload = bytes.get(payload).ok_or(damage("the block is cut"))?;
        debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
        if !header.unpack(payload, &mut plain)
            || memchr::memchr_iter(b'\n', &plain).count() != header.entries as usize
        {
            return Err(damage("the block is damaged"));
        }
        for line in plain[..plain.len() - 1].split(|byte| *byte == b'\n') {
            each(next_seq, line);
            next_seq += 1;
        }
        at += header.bytes() as usize;
    }
    Ok(next_seq)
}
