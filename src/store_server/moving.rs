use super::block::{BlockOf, BlockWriter, Records, Unpacked, stands_alone};
use super::policy::Compress;
use super::record::{self, Record, move_to};
use std::io;

/// Records on their way to another segment, in their order. What was compressed against a page of the old segment is compressed anew,
/// against one that has come along.
pub(super) struct Moving {
    to: u64,
    blocks: BlockWriter,
    block: Vec<u8>,
    moved: Vec<u8>,
}

impl Moving {
    pub fn new(to: u64) -> Moving {
        let blocks = BlockWriter::new(Compress::Template);
        Moving { to, blocks, block: Vec::new(), moved: Vec::new() }
    }

    /// Bytes behind the header that a record which does not stand alone takes at most, padding aside.
    pub fn bytes_max(record: &Record) -> usize {
        record.names_len() + BlockWriter::room_for(record.plain_len())
    }

    /// The bytes of a record of segment `from` as it will be at `offset` of the other; `None` if its document cannot be read any
    /// more.
    pub fn record(
        &mut self,
        (record, bytes): (&Record, &[u8]),
        from: u64,
        (records, unpacked): (&dyn Records, &Unpacked),
        offset: u64,
    ) -> io::Result<Option<&[u8]>> {
        if stands_alone(record) {
            self.moved.clear();
            self.moved.extend_from_slice(bytes);
            move_to(&mut self.moved, self.to);
            return Ok(Some(&self.moved));
        }
        let Some(document) = unpacked.document(records, from, record, bytes)? else { return Ok(None) };
        let plain = [document.head, document.body].concat();
        self.block.resize(BlockWriter::room_for(plain.len()), 0);
        let of = BlockOf { url: &record.url, segment: self.to, is_page: true };
        let (codec, len) = self.blocks.write(of, &plain, &mut self.block);
        self.moved = record::with_block(record, bytes, self.to, (codec, &self.block[..len]));
        self.blocks.wrote(of, &self.moved, offset, &plain);
        Ok(Some(&self.moved))
    }
}
