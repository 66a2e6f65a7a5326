use crate::engine::links::Reliable;
use crate::engine::runtime::shard_lane::DurablePoint;
use crate::limits::{UNCOUNTED_BYTES_MAX, URL_BYTES_MAX};
use crate::proto::record::{WIRE_HEADER_BYTES, WireRecord};
use crate::rings::{Doorbell, Sender};
use crate::store_server::{AppendError, Appended, NewRecord, ShardShare, ShardStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the records of a shard go, for those who ask how far they have come.
#[derive(Clone)]
pub(in crate::engine) enum RecordPlace {
    /// Segments of this process.
    Segments(Arc<ShardShare>),
    /// A store server.
    Server(SenderPort),
}

/// The shard's own way to that place.
pub(crate) enum RecordSink {
    Segments(Box<ShardStore>),
    Server(SenderPort),
}

/// A shard's end of the way to the record sender.
#[derive(Clone)]
pub(crate) struct SenderPort {
    pub share: Arc<SenderShare>,
    pub records: Sender<EncodedRecord>,
    /// Of the thread that sends them.
    pub bell: Arc<Doorbell>,
}

/// A record as it is sent.
pub(super) type EncodedRecord = Vec<u8>;

/// What a shard and the thread that sends its records have in common.
#[derive(Default)]
pub(crate) struct SenderShare {
    /// Sequence number of the last record that was handed over; a shard that takes over goes on from here.
    written: AtomicU64,
    /// Sequence number of the last record that is done with.
    pub(super) durable: AtomicU64,
    /// What all records up to the one cost in memory, and up to the other.
    written_bytes: AtomicU64,
    pub(super) durable_bytes: AtomicU64,
}

impl RecordPlace {
    pub fn sink(&self) -> RecordSink {
        match self {
            RecordPlace::Segments(share) => RecordSink::Segments(Box::new(ShardStore::new(share.clone()))),
            RecordPlace::Server(port) => RecordSink::Server(port.clone()),
        }
    }

    pub fn durable_point(&self) -> Arc<dyn DurablePoint> {
        match self {
            RecordPlace::Segments(share) => share.clone(),
            RecordPlace::Server(port) => port.share.clone(),
        }
    }
}

impl DurablePoint for SenderShare {
    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }
}

impl RecordSink {
    /// Sees to it that a response of `bytes` bytes can be appended.
    pub fn make_room(&mut self, bytes: usize) -> Result<(), AppendError> {
        match self {
            RecordSink::Segments(store) => store.make_room(bytes),
            RecordSink::Server(port) if port.has_room(bytes) => Ok(()),
            RecordSink::Server(_) => Err(AppendError::NoSegment),
        }
    }

    pub fn append(&mut self, new: &NewRecord<'_>) -> Result<Appended, AppendError> {
        match self {
            RecordSink::Segments(store) => store.append(new),
            RecordSink::Server(port) => port.append(new),
        }
    }

    /// As [`ShardStore::records`]; what a store server writes is counted there.
    pub fn records(&self) -> [u64; 3] {
        match self {
            RecordSink::Segments(store) => store.records(),
            RecordSink::Server(_) => [0; 3],
        }
    }

    /// Documents in segments up to this number may go away.
    pub fn retired(&self) -> u64 {
        match self {
            RecordSink::Segments(store) => store.retired(),
            RecordSink::Server(_) => 0,
        }
    }

    /// Lets go of a segment that the disk refused.
    pub fn tidy(&mut self) {
        match self {
            RecordSink::Segments(store) => store.tidy(),
            RecordSink::Server(_) => {}
        }
    }

    /// The shard is done.
    pub fn finish(&mut self) {
        match self {
            RecordSink::Segments(store) => store.finish(),
            RecordSink::Server(_) => {}
        }
    }
}

impl SenderPort {
    fn has_room(&self, bytes: usize) -> bool {
        let share = &self.share;
        let held = share.written_bytes.load(Ordering::Relaxed) - share.durable_bytes.load(Ordering::Relaxed);
        let fits =
            held + Reliable::cost(WIRE_HEADER_BYTES + 2 * URL_BYTES_MAX + bytes) <= UNCOUNTED_BYTES_MAX;
        (fits || held == 0) && self.records.room() > 0
    }

    fn append(&self, new: &NewRecord<'_>) -> Result<Appended, AppendError> {
        let record = WireRecord {
            doc_id: new.doc_id,
            success: new.success,
            result: new.result,
            http_code: new.http_code,
            took_ms: new.took_ms,
            url: new.url,
            new_url: new.new_url,
            document: &new.bytes[new.head_len..],
        };
        let mut encoded = EncodedRecord::new();
        record.write(&mut encoded);
        let bytes = encoded.len();
        // Before it is handed over: what is done with was written.
        self.share.written_bytes.fetch_add(Reliable::cost(bytes), Ordering::Relaxed);
        if self.records.push(encoded).is_err() {
            self.share.written_bytes.fetch_sub(Reliable::cost(bytes), Ordering::Relaxed);
            return Err(AppendError::NoSegment);
        }
        // One shard at a time writes here.
        let sequence = self.share.written.fetch_add(1, Ordering::AcqRel) + 1;
        self.bell.ring_if_asleep();
        // The digest is made where it is stored.
        Ok(Appended { sequence, bytes, digest: 0, segment: 0, offset: 0, is_reference: false })
    }
}
