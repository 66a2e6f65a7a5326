use super::dedup::{Digests, StoredDigests};
use super::mmap::SegmentWriter;
use super::policy::{Compress, Dedup};
use crate::limits::SEGMENTS_AHEAD;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state that a shard and the keeper share.
pub struct ShardShare {
    /// Segments ready to be written.
    ready: ArrayQueue<SegmentWriter>,
    /// Sequence number of the last record that survives a power loss.
    durable: AtomicU64,
    /// Sequence number of the last record written; a restarted shard continues from here.
    written: AtomicU64,
    /// Documents in segments up to this number may be dropped: no new reference may depend on them.
    retired: AtomicU64,
    /// A record is being written that may depend on an older one.
    appending: AtomicBool,
    /// The key of the store's digests, which documents are not stored twice, and which are stored already.
    key: u64,
    dedup: Dedup,
    stored: Arc<StoredDigests>,
    compress: Compress,
}

impl ShardShare {
    pub(super) fn new(
        key: u64,
        (dedup, compress): (Dedup, Compress),
        stored: Arc<StoredDigests>,
    ) -> ShardShare {
        ShardShare {
            ready: ArrayQueue::new(SEGMENTS_AHEAD),
            durable: AtomicU64::new(0),
            written: AtomicU64::new(0),
            retired: AtomicU64::new(0),
            appending: AtomicBool::new(false),
            key,
            dedup,
            stored,
            compress,
        }
    }

    pub(super) fn compress(&self) -> Compress {
        self.compress
    }

    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Moves the durable point on. True if it did move.
    pub(super) fn advance_durable(&self, sequence: u64) -> bool {
        self.durable.fetch_max(sequence, Ordering::AcqRel) < sequence
    }

    /// Sequence number of the last record that was written.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(super) fn set_written(&self, sequence: u64) {
        self.written.store(sequence, Ordering::Release);
    }

    pub(super) fn set_appending(&self, appending: bool) {
        self.appending.store(appending, Ordering::SeqCst);
    }

    pub(super) fn digests(&self) -> Digests {
        Digests::new(self.key, self.dedup, self.stored.clone())
    }

    /// A segment that is ready to be written.
    pub(super) fn take_ready(&self) -> Option<SegmentWriter> {
        self.ready.pop()
    }

    /// Takes a segment for the shard; gives it back if there are enough.
    pub(super) fn offer(&self, writer: SegmentWriter) -> Result<(), SegmentWriter> {
        self.ready.push(writer)
    }

    pub(super) fn has_enough(&self) -> bool {
        self.ready.is_full()
    }

    /// Documents in segments up to this number may be dropped at any time.
    pub fn retired(&self) -> u64 {
        self.retired.load(Ordering::SeqCst)
    }

    /// Retires the segments up to this number: from its return on, no record is written that depends on a document in them.
    /// False if the shard did not finish its record in time.
    pub fn retire(&self, segment: u64) -> bool {
        self.retired.fetch_max(segment, Ordering::SeqCst);
        // A record takes microseconds, and the next one sees the number. A shard that the scheduler of the kernel has
        // suspended in the middle of one is not waited for.
        (0..RETIRE_SPINS).any(|_| {
            std::hint::spin_loop();
            !self.appending.load(Ordering::SeqCst)
        })
    }
}

/// Some milliseconds of polling.
const RETIRE_SPINS: u32 = 200_000;
