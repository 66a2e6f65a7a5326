use super::super::ServerId;
use super::block::BlockKind;
use super::error::QueueError;
use super::position::{read_position, write_position};
use super::segment::{BlockPlace, Segment, segment_path};
use crate::proto::reflog::Stamp;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// What is committed of a queue, for its writer and those who read it.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(super) folder: PathBuf,
    pub(super) server: ServerId,
    shelved: Mutex<Shelved>,
}

#[derive(Debug)]
pub(super) struct Shelved {
    pub segments: Vec<Segment>,
    pub next_seq: u64,
    /// The latest time of what was committed, to any server.
    pub latest_s: u32,
    /// The earliest time of what is held; `u32::MAX` if nothing is.
    pub held_s: u32,
    position: u64,
}

impl Shelf {
    pub(super) fn new(folder: &Path, server: ServerId, segments: Vec<Segment>, next_seq: u64) -> Shelf {
        let position = read_position(folder).min(next_seq);
        let shelved = Shelved { segments, next_seq, latest_s: 0, held_s: u32::MAX, position };
        Shelf { folder: folder.to_path_buf(), server, shelved: Mutex::new(shelved) }
    }

    /// Nobody panics while holding it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shelved> {
        self.shelved.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What every commit tells every queue: the latest time so far, and the earliest that is held.
    pub fn told(&self, latest_s: u32, held_s: Option<u32>) {
        let mut shelved = self.lock();
        (shelved.latest_s, shelved.held_s) = (latest_s, held_s.unwrap_or(u32::MAX));
    }

    /// Takes what the node says that it has. `Ok(false)` if that was known.
    pub fn done(&self, seq: u64) -> Result<bool, QueueError> {
        let mut shelved = self.lock();
        if seq > shelved.next_seq {
            return Err(QueueError::Beyond { asked: seq, next: shelved.next_seq });
        }
        if seq <= shelved.position {
            return Ok(false);
        }
        write_position(&self.folder, seq)?;
        shelved.position = seq;
        Ok(true)
    }

    /// Bytes on disk that the node does not have.
    pub fn waiting_bytes(&self) -> u64 {
        let shelved = self.lock();
        let from = shelved.position;
        let of = |segment: &Segment| -> u64 {
            let blocks = segment.blocks.iter().rev().take_while(|block| block.header.end_seq() > from);
            blocks.map(|block| block.header.bytes()).sum()
        };
        shelved.segments.iter().rev().take_while(|segment| segment.end_seq() > from).map(of).sum()
    }

    pub fn position(&self) -> u64 {
        self.lock().position
    }

    pub fn next_seq(&self) -> u64 {
        self.lock().next_seq
    }

    pub fn first_seq(&self) -> u64 {
        let shelved = self.lock();
        shelved.segments.first().map_or(shelved.next_seq, |segment| segment.first_seq)
    }

    pub fn bytes(&self) -> u64 {
        self.lock().segments.iter().map(|segment| segment.bytes).sum()
    }

    /// The blocks of an epoch.
    pub(super) fn of_epoch(&self, epoch: u64) -> Option<(u64, u64)> {
        let shelved = self.lock();
        let blocks = shelved.segments.iter().flat_map(|segment| &segment.blocks);
        let mut of = blocks
            .map(|block| block.header)
            .filter(|header| header.epoch == epoch && header.kind == BlockKind::Epoch);
        let first = of.next()?;
        Some((first.first_seq, of.next_back().unwrap_or(first).end_seq()))
    }

    /// The first number of a block that has something as late as that.
    pub fn seq_since(&self, at: Stamp) -> u64 {
        let shelved = self.lock();
        let blocks = || shelved.segments.iter().flat_map(|segment| &segment.blocks);
        let by_time = blocks().find(|block| block.header.latest_s >= at.s());
        // Words to the node that it has not taken from this master are not to be passed over, whatever its time.
        let word = blocks().find(|block| {
            block.header.kind == BlockKind::Control && block.header.end_seq() > shelved.position
        });
        let first = by_time.into_iter().chain(word).map(|block| block.header.first_seq).min();
        first.unwrap_or(shelved.next_seq)
    }

    /// The time up to which everything that was given to this master and committed is below a number.
    pub fn mark(&self, seq: u64) -> Stamp {
        let shelved = self.lock();
        let before_held = shelved.held_s.saturating_sub(u32::from(shelved.held_s < u32::MAX));
        let Some(block) = shelved.block_of(seq) else {
            return Stamp::from_s(shelved.latest_s.min(before_held));
        };
        let segment = shelved.segments.partition_point(|segment| segment.end_seq() <= seq);
        let own = shelved.segments.get(segment).into_iter().flat_map(|segment| &segment.blocks);
        let own = own.filter(|block| block.header.end_seq() > seq).map(|block| block.header.earliest_s);
        let later = shelved.segments.iter().skip(segment + 1).map(|segment| segment.earliest_s);
        let earliest = own.chain(later).min().unwrap_or(u32::MAX);
        Stamp::from_s(block.header.before_s.min(earliest.saturating_sub(1)).min(before_held))
    }

    /// Lets segments go that the node is past, and that were full `keep_s` ago.
    pub(super) fn let_go(&self, now_s: u32, keep_s: u32) -> io::Result<u64> {
        let mut shelved = self.lock();
        let (position, mut gone) = (shelved.position, 0);
        while shelved.segments.len() > 1 {
            let first = &shelved.segments[0];
            // It was full before any later one was, whatever the clock said then.
            let full_s = |segment: &Segment| segment.blocks.last().map(|block| block.header.at_s);
            let at_s = shelved.segments.iter().filter_map(full_s).min().unwrap_or(0);
            if first.end_seq() > position || now_s.saturating_sub(at_s) <= keep_s {
                break;
            }
            match std::fs::remove_file(segment_path(&self.folder, first.first_seq)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            shelved.segments.remove(0);
            gone += 1;
        }
        Ok(gone)
    }
}

impl Shelved {
    /// The block that has an entry, or the next behind it.
    pub fn block_of(&self, seq: u64) -> Option<BlockPlace> {
        let at = self.segments.partition_point(|segment| segment.end_seq() <= seq);
        let blocks = &self.segments.get(at)?.blocks;
        blocks.get(blocks.partition_point(|block| block.header.end_seq() <= seq)).copied()
    }

    /// The segment that a block is in.
    pub fn segment_of(&self, seq: u64) -> Option<u64> {
        let at = self.segments.partition_point(|segment| segment.end_seq() <= seq);
        Some(self.segments.get(at)?.first_seq)
    }
}

impl Segment {
    /// The number behind its last entry.
    pub fn end_seq(&self) -> u64 {
        self.blocks.last().map_or(self.first_seq, |block| block.header.end_seq())
    }
}
