use super::block::{BlockOf, BlockWriter};
use super::dedup::{Digests, Solid};
use super::layout::{HEADER_BYTES, KIND_REFERENCE, KIND_WHOLE, aligned};
use super::mmap::SegmentWriter;
use super::record::{Lengths, NewRecord, Stamp, write_header};
use super::shard_share::ShardShare;
use crate::limits::URL_BYTES_MAX;
use std::sync::Arc;
use thiserror::Error;

/// A shard's access to the store.
pub struct ShardStore {
    share: Arc<ShardShare>,
    writer: Option<SegmentWriter>,
    blocks: BlockWriter,
    digests: Digests,
    sequence: u64,
    records: [u64; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The record is durable once the shard's durable point has come to this.
    pub sequence: u64,
    /// Bytes the record takes in its segment.
    pub bytes: usize,
    /// Of the document, under the store's key; 0 without one.
    pub digest: u128,
    /// The segment it is in, and where.
    pub segment: u64,
    pub offset: u64,
    /// Its document is another record's.
    pub is_reference: bool,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AppendError {
    /// The keeper has no segment ready: try again later, nothing was written.
    #[error("no segment is ready")]
    NoSegment,
    /// It would not even fit into an empty segment.
    #[error("the record is larger than a segment")]
    TooLarge,
}

impl ShardStore {
    pub fn new(share: Arc<ShardShare>) -> ShardStore {
        let sequence = share.written();
        // The shard that was here before may have died in the middle of a record.
        share.set_appending(false);
        let (digests, blocks) = (share.digests(), BlockWriter::new(share.compress()));
        ShardStore { share, writer: None, blocks, digests, sequence, records: [0; 3] }
    }

    /// Makes sure that a response of `bytes` bytes can be appended, whatever its URLs.
    pub fn make_room(&mut self, bytes: usize) -> Result<(), AppendError> {
        // Here, and not when a record is appended: whoever made room has it. The keeper writes the records of such a segment
        // again when it is dropped, also those that came after the disk refused it.
        self.tidy();
        self.room_for(aligned(HEADER_BYTES + 2 * URL_BYTES_MAX + BlockWriter::room_for(bytes)))
    }

    fn room_for(&mut self, bytes: usize) -> Result<(), AppendError> {
        if self.writer.as_ref().is_some_and(|writer| writer.room() >= bytes) {
            return Ok(());
        }
        // Dropping the writer finishes its segment.
        self.writer = None;
        let writer = self.share.take_ready().ok_or(AppendError::NoSegment)?;
        let fits = writer.room() >= bytes;
        self.writer = Some(writer);
        if fits { Ok(()) } else { Err(AppendError::TooLarge) }
    }

    /// Compresses a record straight into the shard's segment.
    /// A document that is stored already becomes a reference, which has the response head alone.
    pub fn append(&mut self, new: &NewRecord<'_>) -> Result<Appended, AppendError> {
        self.share.set_appending(true);
        let appended = self.append_record(new);
        self.share.set_appending(false);
        appended
    }

    fn append_record(&mut self, new: &NewRecord<'_>) -> Result<Appended, AppendError> {
        let document = &new.bytes[new.head_len..];
        let solid = Solid { durable: self.share.durable(), retired: self.share.retired() };
        let (digest, is_stored) = self.digests.look(new.url, document, solid);
        // A record that repeats the document of another is neither an original nor a reference.
        let is_stored = is_stored && !new.is_unchanged();
        let (kind, plain) = match is_stored {
            true => (KIND_REFERENCE, &new.bytes[..new.head_len]),
            false => (KIND_WHOLE, new.bytes),
        };
        let new_url = new.new_url.unwrap_or("");
        let names = new.url.len() + new_url.len();
        let bytes_max = aligned(HEADER_BYTES + names + BlockWriter::room_for(plain.len()));
        self.room_for(bytes_max)?;
        let writer = self.writer.as_mut().ok_or(AppendError::NoSegment)?;
        let (number, offset) = (writer.segment().number(), writer.tail() as u64);
        let record = &mut writer.rest()[..bytes_max];
        record[HEADER_BYTES..HEADER_BYTES + new.url.len()].copy_from_slice(new.url.as_bytes());
        record[HEADER_BYTES + new.url.len()..HEADER_BYTES + names].copy_from_slice(new_url.as_bytes());
        let block = &mut record[HEADER_BYTES + names..];
        let of = BlockOf { url: new.url, segment: number, is_page: !is_stored && !new.is_unchanged() };
        let (codec, block_len) = self.blocks.write(of, plain, block);
        let used = HEADER_BYTES + names + block_len;
        let lengths =
            Lengths { record: aligned(used), url: new.url.len(), new_url: new_url.len(), block: block_len };
        record[used..lengths.record].fill(0);
        // The compressor may have used bytes past the record; a reader must find nothing there.
        let scratch_end = (lengths.record + HEADER_BYTES).min(bytes_max);
        record[lengths.record..scratch_end].fill(0);
        self.sequence += 1;
        self.share.set_written(self.sequence);
        let stamp = Stamp { sequence: self.sequence, segment: number, codec, kind, digest, lengths };
        write_header(record, new, stamp);
        self.blocks.wrote(of, record, offset, plain);
        writer.publish(lengths.record, self.sequence);
        if !is_stored && !new.is_unchanged() {
            self.digests.note(new.url, digest, self.sequence, number);
        }
        let kind = if new.is_unchanged() { 2 } else { usize::from(is_stored) };
        self.records[kind] += 1;
        Ok(Appended {
            sequence: self.sequence,
            bytes: lengths.record,
            digest,
            segment: number,
            offset,
            is_reference: is_stored,
        })
    }

    /// Records written: with their document, as a reference to another record's, and of pages that have not changed.
    pub fn records(&self) -> [u64; 3] {
        self.records
    }

    /// As [`ShardShare::retired`].
    pub fn retired(&self) -> u64 {
        self.share.retired()
    }

    /// Drops a segment that the disk refused, so that the keeper can write its records again elsewhere.
    pub fn tidy(&mut self) {
        if self.writer.as_ref().is_some_and(|writer| writer.segment().is_condemned()) {
            self.writer = None;
        }
    }

    /// Ends writing: the keeper may seal the segment.
    pub fn finish(&mut self) {
        self.writer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_record;
    use super::super::{Keeper, Medium, StoreRules};
    use super::*;

    #[test]
    fn who_made_room_has_it_though_the_disk_refuses_the_segment_meanwhile() {
        let mut keeper = Keeper::new(Medium::Memory { next_number: 0 }, StoreRules::of_size(1 << 20), 1);
        keeper.prepare(0).unwrap();
        let mut store = ShardStore::new(keeper.share(0));
        store.make_room(1_000).unwrap();
        store.writer.as_ref().unwrap().segment().condemn();
        // No other segment is ready.
        while store.share.take_ready().is_some() {}
        let first = store.append(&new_record("http://h/1", b"<p>page</p>", 0)).unwrap();
        assert_eq!(store.make_room(1_000), Err(AppendError::NoSegment));
        assert!(store.writer.is_none(), "it is dropped, so that its records are written again elsewhere");
        keeper.prepare(0).unwrap();
        store.make_room(1_000).unwrap();
        let second = store.append(&new_record("http://h/2", b"<p>other</p>", 0)).unwrap();
        assert!(second.segment > first.segment, "{first:?} {second:?}");
    }
}
