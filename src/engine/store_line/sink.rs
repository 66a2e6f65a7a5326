use crate::engine::runtime::shard_lane::DurablePoint;
use crate::limits::{STORE_LINE_BYTES_MAX, URL_BYTES_MAX};
use crate::proto::record::{WIRE_HEADER_BYTES, WireRecord};
use crate::rings::{Doorbell, Sender};
use crate::store_server::{AppendError, Appended, NewRecord, ShardShare, ShardStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the records of a shard go, for everybody who asks how far they have come.
#[derive(Clone)]
pub(in crate::engine) enum RecordPlace {
    /// Segments of this process.
    Segments(Arc<ShardShare>),
    /// A store server.
    Line(LinePort),
}

/// The shard's own way to that place.
pub(in crate::engine) enum RecordSink {
    Segments(Box<ShardStore>),
    Line(LinePort),
}

/// A shard's end of its line.
#[derive(Clone)]
pub(in crate::engine) struct LinePort {
    pub share: Arc<LineShare>,
    pub parcels: Sender<Parcel>,
    /// Of the thread that sends them.
    pub bell: Arc<Doorbell>,
}

/// A record as it is sent.
pub(super) type Parcel = Vec<u8>;

/// What a shard and the thread that sends its records have in common.
#[derive(Default)]
pub(in crate::engine) struct LineShare {
    /// Sequence number of the last record that was handed over; a shard that takes over goes on from here.
    written: AtomicU64,
    /// Sequence number of the last record that is done with.
    pub(super) durable: AtomicU64,
    /// What all records between the two cost in memory.
    pub(super) held_bytes: AtomicU64,
}

/// What a record costs in memory, its place in the queue included.
pub(super) fn cost(parcel_bytes: usize) -> u64 {
    parcel_bytes as u64 + 64
}

impl RecordPlace {
    pub fn sink(&self) -> RecordSink {
        match self {
            RecordPlace::Segments(share) => RecordSink::Segments(Box::new(ShardStore::new(share.clone()))),
            RecordPlace::Line(port) => RecordSink::Line(port.clone()),
        }
    }

    pub fn durable_point(&self) -> Arc<dyn DurablePoint> {
        match self {
            RecordPlace::Segments(share) => share.clone(),
            RecordPlace::Line(port) => port.share.clone(),
        }
    }
}

impl DurablePoint for LineShare {
    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }
}

impl RecordSink {
    /// Sees to it that a response of `bytes` bytes can be appended.
    pub fn make_room(&mut self, bytes: usize) -> Result<(), AppendError> {
        match self {
            RecordSink::Segments(store) => store.make_room(bytes),
            RecordSink::Line(port) if port.has_room(bytes) => Ok(()),
            RecordSink::Line(_) => Err(AppendError::NoSegment),
        }
    }

    pub fn append(&mut self, new: &NewRecord<'_>) -> Result<Appended, AppendError> {
        match self {
            RecordSink::Segments(store) => store.append(new),
            RecordSink::Line(port) => port.append(new),
        }
    }

    /// Documents in segments up to this number may go away.
    pub fn retired(&self) -> u64 {
        match self {
            RecordSink::Segments(store) => store.retired(),
            RecordSink::Line(_) => 0,
        }
    }

    /// Lets go of a segment that the disk refused.
    pub fn tidy(&mut self) {
        match self {
            RecordSink::Segments(store) => store.tidy(),
            RecordSink::Line(_) => {}
        }
    }

    /// The shard is done.
    pub fn finish(&mut self) {
        match self {
            RecordSink::Segments(store) => store.finish(),
            RecordSink::Line(_) => {}
        }
    }
}

impl LinePort {
    fn has_room(&self, bytes: usize) -> bool {
        let held = self.share.held_bytes.load(Ordering::Relaxed);
        let fits = held + cost(WIRE_HEADER_BYTES + 2 * URL_BYTES_MAX + bytes) <= STORE_LINE_BYTES_MAX;
        (fits || held == 0) && self.parcels.room() > 0
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
        let mut parcel = Vec::new();
        record.write(&mut parcel);
        let bytes = parcel.len();
        self.share.held_bytes.fetch_add(cost(bytes), Ordering::Relaxed);
        if self.parcels.push(parcel).is_err() {
            self.share.held_bytes.fetch_sub(cost(bytes), Ordering::Relaxed);
            return Err(AppendError::NoSegment);
        }
        // One shard at a time writes to a line.
        let sequence = self.share.written.fetch_add(1, Ordering::AcqRel) + 1;
        self.bell.ring_if_asleep();
        // The digest is made where it is stored.
        Ok(Appended { sequence, bytes, digest: 0, segment: 0, offset: 0, is_reference: false })
    }
}
