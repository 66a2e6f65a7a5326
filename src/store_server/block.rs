//! The block of a record: its response, compressed, and back.

use super::layout::{CODEC_LZ4, CODEC_PLAIN, CODEC_TEMPLATE, HEADER_BYTES, PAYLOAD_CRC};
use super::policy::Compress;
use super::record::{self, Document, Record};
use super::scan::read_record;
use super::templates::{Against, BaseName, DEPTH_MAX, Templates, dictionary};
use crate::base::u32_at;
use crate::limits::RECORD_ALIGN;
use lz4_flex::block::{
    CompressError, CompressTable, compress_into_with_dict, compress_into_with_table, decompress,
    decompress_with_dict, get_maximum_output_size,
};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Compresses responses.
pub(super) struct BlockWriter {
    /// The compressor's memory. The large variant hashes five bytes and not four: a sixth faster on web pages, for
    /// half a per cent of ratio.
    table: CompressTable,
    templates: Option<Templates>,
}

/// The record that a block is of, as far as its block depends on it.
#[derive(Clone, Copy)]
pub(super) struct BlockOf<'a> {
    pub url: &'a str,
    pub segment: u64,
    /// It has a document of its own. Others are compressed by themselves.
    pub is_page: bool,
}

/// Bytes before the compressed ones of a block with a base.
const BASE_HEAD: usize = 8;
/// A byte of an LZ4 block expands to no more bytes than this.
const LZ4_RATIO_MAX: usize = 255;

impl BlockWriter {
    pub fn new(compress: Compress) -> BlockWriter {
        let templates = (compress == Compress::Template).then(Templates::new);
        BlockWriter { table: CompressTable::large(), templates }
    }

    /// Room that the block of a response of so many bytes needs while it is written.
    pub fn room_for(plain: usize) -> usize {
        get_maximum_output_size(plain) + BASE_HEAD
    }

    /// Compresses a response into the room for it. Returns the codec and how much was used.
    pub fn write(&mut self, of: BlockOf<'_>, plain: &[u8], block: &mut [u8]) -> (u8, usize) {
        let templates = self.templates.as_mut().filter(|_| of.is_page);
        let base = templates.and_then(|templates| templates.base_for(of.url, plain.len(), of.segment));
        let Some(Against { name, bytes, is_trial }) = base else {
            let alone = compress_into_with_table(plain, block, &mut self.table);
            return shrunk(alone.map(|len| (CODEC_LZ4, len)), plain, block);
        };
        let alone = is_trial.then(|| compress_into_with_table(plain, block, &mut self.table));
        let (head, rest) = block.split_at_mut(BASE_HEAD);
        head[..4].copy_from_slice(&((name.offset / RECORD_ALIGN as u64) as u32).to_le_bytes());
        head[4..].copy_from_slice(&name.payload_crc.to_le_bytes());
        let based = compress_into_with_dict(plain, rest, bytes).map(|len| BASE_HEAD + len);
        if let (Some(Ok(alone)), Ok(based), Some(templates)) = (alone, &based, &mut self.templates) {
            templates.tried(alone, *based);
        }
        shrunk(based.map(|len| (CODEC_TEMPLATE, len)), plain, block)
    }

    /// The record of the block that was written last is complete, and begins there in its segment.
    pub fn wrote(&mut self, of: BlockOf<'_>, record: &[u8], offset: u64, plain: &[u8]) {
        if let Some(templates) = self.templates.as_mut().filter(|_| of.is_page) {
            templates.note(BaseName { offset, payload_crc: u32_at(record, PAYLOAD_CRC) }, plain);
        }
    }
}

/// What does not shrink (images, archives) is kept as it is.
fn shrunk(written: Result<(u8, usize), CompressError>, plain: &[u8], block: &mut [u8]) -> (u8, usize) {
    match written {
        Ok((codec, len)) if len < plain.len() => (codec, len),
        _ => {
            block[..plain.len()].copy_from_slice(plain);
            (CODEC_PLAIN, plain.len())
        }
    }
}

/// Where the records of one segment are to be had.
pub(super) trait Records {
    /// The whole record at a place, and its bytes; `None` if there is none.
    fn record_at(&self, offset: u64) -> io::Result<Option<(Record, Vec<u8>)>>;
}

/// A segment by its file.
pub(super) struct InFile<'a>(pub &'a File, pub u64);

impl Records for InFile<'_> {
    fn record_at(&self, offset: u64) -> io::Result<Option<(Record, Vec<u8>)>> {
        read_record(self.0, self.1, offset)
    }
}

/// A segment in memory.
pub(super) struct InMemory<'a>(pub &'a [u8], pub u64);

impl Records for InMemory<'_> {
    fn record_at(&self, offset: u64) -> io::Result<Option<(Record, Vec<u8>)>> {
        let bytes = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let found = record::parse(bytes, self.1).ok();
        Ok(found.map(|record| {
            let own = bytes[..record.record_bytes as usize].to_vec();
            (record, own)
        }))
    }
}

/// Whether a record can be unpacked by itself.
pub(super) fn stands_alone(record: &Record) -> bool {
    record.codec != CODEC_TEMPLATE
}

/// Unpacks the block of a record whose checksums hold and that stands alone; `None` if it does not hold what it promises. The body
/// of a reference is elsewhere, and empty here.
pub(super) fn unpack(record: &Record, bytes: &[u8]) -> Option<Document> {
    let block = block_of(record, bytes)?;
    document_of(record, plain_of(record, block, None)?)
}

/// Bases that were unpacked, for those who read many pages.
#[derive(Default)]
pub(super) struct Unpacked {
    kept: Mutex<Vec<Kept>>,
}

#[derive(Clone)]
struct Kept {
    segment: u64,
    name: BaseName,
    bytes: Arc<[u8]>,
}

/// Bases kept, each in the place that its own place in the store gives it.
const KEPT_MAX: usize = 128;

impl Unpacked {
    /// Unpacks the block of a record of a segment whose checksums hold, with the bases that it has there. `None` if it, or one of
    /// them, is not what it was.
    pub fn document(
        &self,
        records: &dyn Records,
        segment: u64,
        record: &Record,
        bytes: &[u8],
    ) -> io::Result<Option<Document>> {
        let plain = self.plain(records, segment, (record, bytes), DEPTH_MAX)?;
        Ok(plain.and_then(|plain| document_of(record, plain)))
    }

    fn plain(
        &self,
        records: &dyn Records,
        segment: u64,
        (record, bytes): (&Record, &[u8]),
        depth: u8,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(block) = block_of(record, bytes) else { return Ok(None) };
        if stands_alone(record) {
            return Ok(plain_of(record, block, None));
        }
        let (Some((name, block)), Some(depth)) = (base_of(block), depth.checked_sub(1)) else {
            return Ok(None);
        };
        let base = self.base(records, segment, name, depth)?;
        Ok(base.and_then(|base| plain_of(record, block, Some(&base))))
    }

    fn base(
        &self,
        records: &dyn Records,
        segment: u64,
        name: BaseName,
        depth: u8,
    ) -> io::Result<Option<Arc<[u8]>>> {
        if let Some(kept) = self.kept(segment, name) {
            return Ok(Some(kept));
        }
        let found = records.record_at(name.offset)?;
        let found = found.filter(|(_, bytes)| u32_at(bytes, PAYLOAD_CRC) == name.payload_crc);
        let Some((record, bytes)) = found else { return Ok(None) };
        let plain = self.plain(records, segment, (&record, &bytes), depth)?;
        Ok(plain.map(|plain| self.keep(segment, name, dictionary(&plain))))
    }

    fn kept(&self, segment: u64, name: BaseName) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(place(segment, name));
        // A base by this name is what it was, also where its segment was packed meanwhile.
        found.filter(|kept| kept.segment == segment && kept.name == name).map(|kept| kept.bytes.clone())
    }

    fn keep(&self, segment: u64, name: BaseName, bytes: &[u8]) -> Arc<[u8]> {
        let bytes: Arc<[u8]> = bytes.into();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let none = Kept { segment: 0, name: BaseName::default(), bytes: [].into() };
        if kept.is_empty() {
            kept.resize(KEPT_MAX, none);
        }
        kept[place(segment, name)] = Kept { segment, name, bytes: bytes.clone() };
        bytes
    }
}

fn place(segment: u64, name: BaseName) -> usize {
    (segment ^ (name.offset / RECORD_ALIGN as u64) ^ u64::from(name.payload_crc)) as usize % KEPT_MAX
}

fn block_of<'a>(record: &Record, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let start = HEADER_BYTES + record.names_len();
    bytes.get(start..start + record.block_len as usize)
}

/// The base of a block, and the rest of it.
fn base_of(block: &[u8]) -> Option<(BaseName, &[u8])> {
    let (head, rest) = block.split_at_checked(BASE_HEAD)?;
    let offset = u64::from(u32_at(head, 0)) * RECORD_ALIGN as u64;
    Some((BaseName { offset, payload_crc: u32_at(head, 4) }, rest))
}

fn plain_of(record: &Record, block: &[u8], base: Option<&[u8]>) -> Option<Vec<u8>> {
    let plain_len = record.plain_len();
    // Room is made for the promised length at once, so it must be one that the block can hold.
    let is_possible = plain_len / LZ4_RATIO_MAX <= block.len();
    let plain = match (record.codec, base) {
        (CODEC_PLAIN, None) => block.to_vec(),
        (CODEC_LZ4, None) if is_possible => decompress(block, plain_len).ok()?,
        (CODEC_TEMPLATE, Some(base)) if is_possible => decompress_with_dict(block, plain_len, base).ok()?,
        _ => return None,
    };
    (plain.len() == plain_len).then_some(plain)
}

fn document_of(record: &Record, plain: Vec<u8>) -> Option<Document> {
    let body = plain.get(record.head_len as usize..)?.to_vec();
    let mut head = plain;
    head.truncate(record.head_len as usize);
    Some(Document { head, body })
}
