use super::append::ShardShare;
use super::digests::StoredDigests;
use super::directory::DataDir;
use super::header::SegmentHeader;
use super::mmap::{Segment, SegmentWriter};
use crate::config::Dedup;
use crate::limits::SEGMENT_HEADER_BYTES;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thiserror::Error;

/// Makes segments ready ahead of need, commits what shards have published, seals what is full. Everything that
/// may wait for a disk happens here and on no shard.
pub struct Keeper {
    medium: Medium,
    rules: StoreRules,
    shards: Vec<KeptShard>,
}

/// How documents are kept.
#[derive(Clone, Debug)]
pub struct StoreRules {
    pub segment_bytes: u64,
    /// What documents are asked for with, as segments tell it; empty where it is not known.
    pub agent: String,
    pub dedup: Dedup,
}

impl StoreRules {
    /// Of a store that is told nothing but the size of its segments.
    pub fn of_size(segment_bytes: u64) -> StoreRules {
        StoreRules { segment_bytes, agent: String::new(), dedup: Dedup::default() }
    }
}

/// Where segments live.
pub enum Medium {
    Directory(DataDir),
    /// For the simulation: nothing survives.
    Memory {
        next_number: u64,
    },
}

struct KeptShard {
    share: Arc<ShardShare>,
    /// Segments not sealed yet, oldest first, with the bytes already on disk. A segment that waits in `ready` is
    /// here too.
    live: VecDeque<(Arc<Segment>, usize)>,
}

#[derive(Debug, Error)]
pub enum KeeperError {
    /// No segment could be made; what is stored is safe, and the keeper will try again.
    #[error("cannot make a segment of {bytes} bytes: {cause} (free some space, or set segment_bytes lower)")]
    NoRoom { bytes: u64, cause: io::Error },
    /// The disk refused what was written. Nothing that was not synced before counts as stored.
    #[error("cannot sync segment {number}: {cause}")]
    Sync { number: u64, cause: io::Error },
    #[error("cannot seal segment {number}: {cause}")]
    Seal { number: u64, cause: io::Error },
}

impl Keeper {
    pub fn new(medium: Medium, rules: StoreRules, shards: usize) -> Keeper {
        let (key, stored) = match &medium {
            Medium::Directory(directory) => (directory.key(), directory.stored_digests(rules.dedup)),
            Medium::Memory { .. } => (0, StoredDigests::default()),
        };
        let stored = Arc::new(stored);
        let kept = || {
            let share = Arc::new(ShardShare::new(key, rules.dedup, stored.clone()));
            KeptShard { share, live: VecDeque::new() }
        };
        let shards = (0..shards).map(|_| kept()).collect();
        Keeper { medium, rules, shards }
    }

    /// What a shard needs to write, and others to know what is durable.
    pub fn share(&self, shard: usize) -> Arc<ShardShare> {
        self.shards[shard].share.clone()
    }

    /// Fills up the ready segments, commits, seals. True if a durable point moved.
    pub fn turn(&mut self, unix_ms: u64) -> Result<bool, KeeperError> {
        let moved = self.commit()?;
        self.prepare(unix_ms)?;
        Ok(moved)
    }

    /// Keeps a segment ready for every shard.
    pub fn prepare(&mut self, unix_ms: u64) -> Result<(), KeeperError> {
        for (index, shard) in self.shards.iter_mut().enumerate() {
            while !shard.share.ready.is_full() {
                let writer = self
                    .medium
                    .make(&self.rules, index as u32, unix_ms)
                    .map_err(|cause| KeeperError::NoRoom { bytes: self.rules.segment_bytes, cause })?;
                shard.live.push_back((writer.segment().clone(), 0));
                if shard.share.ready.push(writer).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Group commit: whatever was published since the last time becomes durable. Full segments are sealed.
    pub fn commit(&mut self) -> Result<bool, KeeperError> {
        let mut moved = false;
        for shard in &mut self.shards {
            for (segment, synced) in &mut shard.live {
                // Before the tail: nothing is published between the two that would be missed for good.
                let finished = segment.is_finished();
                let (sequence, tail) = segment.published();
                if tail > *synced && sequence > 0 {
                    segment
                        .sync(*synced, tail)
                        .map_err(|cause| KeeperError::Sync { number: segment.number(), cause })?;
                    *synced = tail;
                    moved |= shard.share.durable.fetch_max(sequence, Ordering::AcqRel) < sequence;
                }
                // Records of a later segment count only after those of this one.
                if !finished {
                    break;
                }
            }
            while let Some((segment, synced)) = shard.live.front() {
                if !segment.is_finished() || segment.published().1 > (*synced).max(SEGMENT_HEADER_BYTES) {
                    break;
                }
                seal(segment).map_err(|cause| KeeperError::Seal { number: segment.number(), cause })?;
                shard.live.pop_front();
            }
        }
        Ok(moved)
    }

    /// The crawl is over and the shards are gone: commits and seals everything. Unused segments vanish.
    pub fn close(&mut self) -> Result<(), KeeperError> {
        for shard in &mut self.shards {
            while shard.share.ready.pop().is_some() {}
        }
        self.commit()?;
        Ok(())
    }
}

/// Cuts a finished segment to its records and gives it its lasting name; one without records is removed.
fn seal(segment: &Segment) -> io::Result<()> {
    let Some((file, path)) = segment.file() else {
        return Ok(());
    };
    let (sequence, tail) = segment.published();
    if sequence == 0 {
        return std::fs::remove_file(path);
    }
    DataDir::seal_file(file, path, tail as u64)
}

impl Medium {
    fn make(&mut self, rules: &StoreRules, shard: u32, made_unix_ms: u64) -> io::Result<SegmentWriter> {
        let header = |number| SegmentHeader { number, shard, made_unix_ms, agent: rules.agent.clone() };
        match self {
            Medium::Directory(directory) => {
                let (file, path, number) = directory.create_segment(rules.segment_bytes, shard)?;
                Segment::map_file(file, path, &header(number))
            }
            Medium::Memory { next_number } => {
                *next_number += 1;
                Segment::map_memory(rules.segment_bytes as usize, &header(*next_number))
            }
        }
    }
}
