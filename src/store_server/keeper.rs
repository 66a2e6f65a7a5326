use super::data_dir::DataDir;
use super::dedup::StoredDigests;
use super::mmap::{Segment, SegmentWriter};
use super::policy::{Compress, Dedup};
use super::rewrite::rewrite;
use super::segment_file::SegmentFile;
use super::segment_header::SegmentHeader;
use super::shard_share::ShardShare;
use crate::limits::SEGMENT_HEADER_BYTES;
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use thiserror::Error;

/// Makes segments ready ahead of need, commits what shards have published, and seals full segments. Everything that may
/// wait for a disk happens here and on no shard.
pub struct Keeper {
    medium: Medium,
    rules: StoreRules,
    shards: Vec<KeptShard>,
    /// Sealed since [`Keeper::take_sealed`] was last called.
    sealed: Vec<Sealed>,
    /// Time of the last turn.
    unix_ms: u64,
}

/// How documents are stored.
#[derive(Clone, Debug)]
pub struct StoreRules {
    pub segment_bytes: u64,
    /// The user agent of requests, for the headers of segments; empty where it is not known.
    pub agent: String,
    pub dedup: Dedup,
    pub compress: Compress,
    /// No segment is made that would leave less than this free. Without a figure: 64 MiB, or a twentieth of a small disk.
    pub free_bytes_min: Option<u64>,
}

impl StoreRules {
    /// Defaults but for the size of segments.
    pub fn of_size(segment_bytes: u64) -> StoreRules {
        StoreRules {
            segment_bytes,
            agent: String::new(),
            dedup: Dedup::default(),
            compress: Compress::default(),
            free_bytes_min: None,
        }
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

/// A segment that has its final name, and is still in memory.
pub struct Sealed {
    pub(super) segment: Arc<Segment>,
    pub(super) file: SegmentFile,
}

struct KeptShard {
    share: Arc<ShardShare>,
    /// Segments not sealed yet, oldest first. A segment that waits in `ready` is here too.
    live: VecDeque<Live>,
}

struct Live {
    segment: Arc<Segment>,
    /// Bytes that are on disk, here or, of a bad one, elsewhere.
    synced: usize,
    /// The disk refused what came after this.
    bad_from: Option<usize>,
}

#[derive(Debug, Error)]
pub enum KeeperError {
    /// No segment could be made; what is stored is safe, and the keeper will try again.
    #[error("cannot make a segment of {bytes} bytes: {cause} ({})", mend(.cause))]
    NoSegment { bytes: u64, cause: io::Error },
    #[error("{}", low_disk(*.free, *.floor, *.bytes))]
    LowDisk { free: u64, floor: u64, bytes: u64 },
    /// The disk refused what was written; it will be written again elsewhere.
    #[error(
        "the disk refused records of segment {number}, which are being written again: {cause} (look at the disk)"
    )]
    Sync { number: u64, cause: io::Error },
    #[error("cannot seal segment {number}: {cause} (look at the disk)")]
    Seal { number: u64, cause: io::Error },
    /// The records that the disk refused are no longer in memory, either.
    #[error("the disk refused records of segment {number}, and they cannot be read back: {cause}")]
    Lost { number: u64, cause: io::Error },
}

impl KeeperError {
    /// Another turn may succeed, and nothing is lost meanwhile.
    pub fn is_passing(&self) -> bool {
        !matches!(self, KeeperError::Lost { .. })
    }

    /// The disk is full, which a user can mend.
    pub fn is_full(&self) -> bool {
        match self {
            KeeperError::LowDisk { .. } => true,
            KeeperError::NoSegment { cause, .. } => is_full(cause),
            _ => false,
        }
    }
}

fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Names what helps: where a segment does not fit at all, no other floor does.
fn low_disk(free: u64, floor: u64, bytes: u64) -> String {
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let (free_mb, segment_mb) = (mb(free), mb(bytes));
    match free < bytes {
        true => format!(
            "{free_mb} are free, and a segment takes {segment_mb} (free some space, or set segment_bytes lower)"
        ),
        false => format!(
            "{free_mb} are free, and {} must stay free beside a segment of {segment_mb} (free some space, or set free_bytes_min lower)",
            mb(floor)
        ),
    }
}

fn mend(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_full(cause) => "free some space, or set segment_bytes lower",
        io::ErrorKind::FileTooLarge => "raise the limit of file sizes, ulimit -f, or set segment_bytes lower",
        _ => "look at the disk; it is tried again",
    }
}

impl Keeper {
    pub fn new(medium: Medium, rules: StoreRules, shards: usize) -> Keeper {
        let (key, stored) = match &medium {
            Medium::Directory(directory) => (directory.key(), directory.stored_digests(rules.dedup)),
            Medium::Memory { .. } => (0, StoredDigests::default()),
        };
        let stored = Arc::new(stored);
        let kept = || {
            let share = Arc::new(ShardShare::new(key, (rules.dedup, rules.compress), stored.clone()));
            KeptShard { share, live: VecDeque::new() }
        };
        let shards = (0..shards).map(|_| kept()).collect();
        Keeper { medium, rules, shards, sealed: Vec::new(), unix_ms: 0 }
    }

    /// So much of the disk stays free from now on; `None` for what is usual.
    pub fn set_free_bytes_min(&mut self, bytes: Option<u64>) {
        self.rules.free_bytes_min = bytes;
    }

    /// The share of one shard: it writes through it, and others learn from it what is durable.
    pub fn share(&self, shard: usize) -> Arc<ShardShare> {
        self.shards[shard].share.clone()
    }

    /// The shares of all shards.
    pub fn shares(&self) -> Vec<Arc<ShardShare>> {
        self.shards.iter().map(|shard| shard.share.clone()).collect()
    }

    /// Fills up the ready segments, commits, seals. True if a durable point moved.
    pub fn turn(&mut self, unix_ms: u64) -> Result<bool, KeeperError> {
        let moved = self.commit_at(unix_ms)?;
        self.prepare(unix_ms)?;
        Ok(moved)
    }

    /// As [`Keeper::commit`], at this time.
    pub fn commit_at(&mut self, unix_ms: u64) -> Result<bool, KeeperError> {
        self.unix_ms = unix_ms;
        self.commit()
    }

    /// Segments that are not sealed.
    pub fn segments_open(&self) -> usize {
        self.shards.iter().map(|shard| shard.live.len()).sum()
    }

    /// Keeps a segment ready for every shard.
    pub fn prepare(&mut self, unix_ms: u64) -> Result<(), KeeperError> {
        for (index, shard) in self.shards.iter_mut().enumerate() {
            while !shard.share.has_enough() {
                let writer = self.medium.make(&self.rules, index as u32, unix_ms)?;
                shard.live.push_back(Live { segment: writer.segment().clone(), synced: 0, bad_from: None });
                if shard.share.offer(writer).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Group commit: whatever was published since the last time becomes durable. Full segments are sealed. What the disk
    /// refuses is written again elsewhere, as soon as its shard has dropped the segment.
    pub fn commit(&mut self) -> Result<bool, KeeperError> {
        let mut moved = false;
        let mut trouble = None;
        let unix_ms = self.unix_ms;
        for (index, shard) in self.shards.iter_mut().enumerate() {
            for live in &mut shard.live {
                // Before the tail: nothing is published between the two that would be missed for good.
                let finished = live.segment.is_finished();
                let (sequence, tail) = live.segment.published();
                if tail > live.synced && sequence > 0 {
                    let kept = match live.bad_from {
                        None => live.segment.sync(live.synced, tail).map_err(|cause| {
                            live.bad_from = Some(live.synced);
                            live.segment.condemn();
                            KeeperError::Sync { number: live.segment.number(), cause }
                        }),
                        Some(from) if finished => {
                            let make = |bytes: u64| {
                                let rules = StoreRules {
                                    segment_bytes: self.rules.segment_bytes.max(bytes),
                                    ..self.rules.clone()
                                };
                                self.medium.make(&rules, index as u32, unix_ms)
                            };
                            rewrite(&live.segment, from, make).map(|rescued| self.sealed.push(rescued))
                        }
                        // Its shard has not dropped it yet.
                        Some(_) => break,
                    };
                    if let Err(error) = kept {
                        trouble.get_or_insert(error);
                        break;
                    }
                    live.synced = tail;
                    moved |= shard.share.advance_durable(sequence);
                }
                // Records of a later segment count only after those of this one.
                if !finished {
                    break;
                }
            }
            while let Some(live) = shard.live.front() {
                let Live { segment, synced, bad_from } = live;
                if !segment.is_finished() || segment.published().1 > (*synced).max(SEGMENT_HEADER_BYTES) {
                    break;
                }
                match seal(segment, *bad_from) {
                    Ok(sealed) => self.sealed.extend(sealed),
                    Err(cause) => {
                        trouble.get_or_insert(KeeperError::Seal { number: segment.number(), cause });
                        break;
                    }
                }
                shard.live.pop_front();
            }
        }
        match trouble {
            // What has moved is reported by the next turn, which finds the shards' durable points where they are.
            Some(error) => Err(error),
            None => Ok(moved),
        }
    }

    /// What a loss of power leaves at the worst, for the simulation: of segments in use, nothing that was not synced.
    pub fn lose_power(&self) -> io::Result<()> {
        let live = self.shards.iter().flat_map(|shard| &shard.live);
        for (live, (file, _)) in live.filter_map(|live| Some((live, live.segment.file()?))) {
            let from = live.synced.max(SEGMENT_HEADER_BYTES);
            let lost = live.segment.published().1.saturating_sub(from);
            file.write_all_at(&vec![0; lost], from as u64)?;
        }
        Ok(())
    }

    /// Segments sealed since the last call, for [`Maintenance`](super::Maintenance).
    pub fn take_sealed(&mut self) -> Vec<Sealed> {
        std::mem::take(&mut self.sealed)
    }

    /// The disk has refused a segment that its shard still holds: shards have to be woken, so that they drop it.
    pub fn waits_for_shards(&self) -> bool {
        let mut live = self.shards.iter().flat_map(|shard| &shard.live);
        live.any(|live| live.bad_from.is_some() && !live.segment.is_finished())
    }

    /// A shard has no segment to write to: what it fetches has to wait.
    pub fn is_waited_for(&self) -> bool {
        let is_full = |shard: &KeptShard| shard.live.iter().all(|live| live.segment.is_finished());
        self.shards.iter().any(is_full)
    }

    /// Commits and seals everything, after the shards have ended. Unused segments are removed.
    pub fn close(&mut self) -> Result<(), KeeperError> {
        for shard in &mut self.shards {
            while shard.share.take_ready().is_some() {}
        }
        // A segment that the disk refuses now is written again in the second round.
        self.commit().or_else(|_| self.commit())?;
        Ok(())
    }
}

/// Cuts a finished segment to its records and gives it its final name; one without records is removed. Of a bad one
/// only what was synced before counts, and its extension says so.
fn seal(segment: &Arc<Segment>, bad_from: Option<usize>) -> io::Result<Option<Sealed>> {
    let Some((file, path)) = segment.file() else {
        return Ok(None);
    };
    let (sequence, tail) = segment.published();
    if sequence == 0 {
        std::fs::remove_file(path)?;
        return Ok(None);
    }
    if let Some(from) = bad_from {
        DataDir::set_aside(file, path, from as u64)?;
        return Ok(None);
    }
    let path = DataDir::seal_file(file, path, tail as u64)?;
    let file = SegmentFile { number: segment.number(), sealed: true, path };
    Ok(Some(Sealed { segment: segment.clone(), file }))
}

/// Seals a segment that is whole and synced.
pub(super) fn seal_synced(segment: &Arc<Segment>) -> io::Result<Option<Sealed>> {
    seal(segment, None)
}

impl Medium {
    fn make(
        &mut self,
        rules: &StoreRules,
        shard: u32,
        made_unix_ms: u64,
    ) -> Result<SegmentWriter, KeeperError> {
        let bytes = rules.segment_bytes;
        let no_segment = |cause| KeeperError::NoSegment { bytes, cause };
        let agent = &rules.agent;
        let header = |number| SegmentHeader { number, shard, made_unix_ms, agent: agent.clone(), packed: 0 };
        match self {
            Medium::Directory(directory) => {
                let space = directory.space().map_err(no_segment)?;
                let floor = rules.free_bytes_min.unwrap_or_else(|| free_bytes_min(space.total));
                if space.free < floor.saturating_add(bytes) {
                    return Err(KeeperError::LowDisk { free: space.free, floor, bytes });
                }
                let (file, path, number) = directory.create_segment(bytes, shard).map_err(no_segment)?;
                let mapped = Segment::map_file(file, path.clone(), &header(number));
                mapped.inspect_err(|_| drop(std::fs::remove_file(&path))).map_err(no_segment)
            }
            Medium::Memory { next_number } => {
                *next_number += 1;
                Segment::map_memory(bytes as usize, &header(*next_number)).map_err(no_segment)
            }
        }
    }
}

/// Free space kept without a setting on a disk of so many bytes: for indexes, logs and other files of the disk.
pub fn free_bytes_min(disk_bytes: u64) -> u64 {
    (disk_bytes / 20).min(64 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TestDir, framed, new_record};
    use super::super::{Reader, ShardStore};
    use super::*;

    /// Their bases are in a segment that is given up: they are compressed anew where they go.
    #[test]
    fn pages_with_a_base_are_written_again_elsewhere_when_the_disk_refuses_them() {
        let dir = TestDir::new("rewrite-templates");
        let rules = StoreRules { compress: Compress::Template, ..StoreRules::of_size(1 << 20) };
        let mut keeper = Keeper::new(Medium::Directory(DataDir::open(&dir.0).unwrap()), rules, 1);
        keeper.prepare(0).unwrap();
        let mut store = ShardStore::new(keeper.share(0));
        let url = |page: u64| format!("http://h{}/{page}", page % 2);
        let mut append = |pages: std::ops::Range<u64>| {
            for page in pages {
                store.append(&new_record(&url(page), &framed(page), 0)).unwrap();
            }
        };
        append(0..10);
        assert!(keeper.commit().unwrap());
        append(10..40);
        let live = &mut keeper.shards[0].live[0];
        live.bad_from = Some(live.synced);
        live.segment.condemn();
        assert!(keeper.waits_for_shards());
        store.tidy();
        assert!(keeper.commit().unwrap());
        assert_eq!(keeper.share(0).durable(), 40);
        store.finish();
        keeper.close().unwrap();
        let reader = Reader::open(&dir.0).unwrap();
        for page in 0..40 {
            let (located, document) = reader.find(&url(page)).unwrap().expect("it was counted");
            assert_eq!(document.expect("with its document").body, framed(page), "{page} {located:?}");
        }
        assert!(reader.verify().unwrap().is_sound());
    }
}
