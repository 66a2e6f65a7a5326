use super::super::ServerId;
use super::block::{BLOCK_PLAIN_BYTES, BlockHeader, BlockKind, ENTRY_BYTES_MAX};
use super::reader::QueueReader;
use super::segment::{Damage, SEGMENT_HEADER_BYTES, Segment, segment_header, segment_path, segments_in};
use super::shelf::Shelf;
use crate::proto::reflog::Stamp;
use crate::storage::{Bytes, make_directory, sync_directory};
use lz4_flex::block::{compress_into, get_maximum_output_size};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The writer of a queue. What is appended is seen by nobody before [`Queue::publish`], which follows the journal's
/// COMMIT; [`Queue::cut`] takes it back.
pub struct Queue {
    folder: PathBuf,
    shelf: Arc<Shelf>,
    limits: QueueLimits,
    batch: Batch,
    block: OpenBlock,
    /// Segments with what is written and not committed: the last committed one, as it will be, and those behind it.
    staged: Vec<Segment>,
    file: Option<File>,
    packed: Vec<u8>,
    next_seq: u64,
    /// Bytes of blocks that were written and are not committed.
    staged_bytes: u64,
    is_dirty: bool,
}

/// What is wrong with a queue, by file.
pub type Damages = Vec<(PathBuf, Damage)>;

/// Where a queue ends, as the journal says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEnd {
    /// The name of the last segment.
    pub segment: u64,
    /// Its bytes; 0 if there is none.
    pub bytes: u64,
    pub next: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// A segment takes blocks up to this size.
    pub segment_bytes: u64,
}

/// What the entries of one commit have in common.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub epoch: u64,
    pub now_s: u32,
    /// The latest time of what was committed before, to any server.
    pub before_s: u32,
    pub kind: BlockKind,
}

#[derive(Default)]
struct OpenBlock {
    plain: Vec<u8>,
    entries: u32,
    earliest_s: u32,
    latest_s: u32,
}

const SEGMENT_BYTES: u64 = 64 << 20;

impl Default for QueueLimits {
    fn default() -> QueueLimits {
        QueueLimits { segment_bytes: SEGMENT_BYTES }
    }
}

impl Queue {
    /// Opens the queue of a server as it was committed, and cuts away what was not. Damage is told, and read around.
    pub fn open(
        folder: &Path,
        server: ServerId,
        end: QueueEnd,
        limits: QueueLimits,
    ) -> io::Result<(Queue, Damages)> {
        make_directory(folder)?;
        cut_files(folder, end)?;
        let (shelf, damages) = open_shelf(folder, server, end)?;
        let queue = Queue {
            folder: folder.to_path_buf(),
            shelf,
            limits,
            batch: Batch { epoch: 0, now_s: 0, before_s: 0, kind: BlockKind::Control },
            block: OpenBlock::default(),
            staged: Vec::new(),
            file: None,
            packed: Vec::new(),
            next_seq: end.next,
            staged_bytes: 0,
            is_dirty: false,
        };
        Ok((queue, damages))
    }

    pub fn reader(&self) -> QueueReader {
        QueueReader::new(self.shelf.clone())
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Begins a commit.
    pub fn begin(&mut self, batch: Batch) {
        debug_assert!(!self.is_dirty);
        self.batch = batch;
    }

    /// Adds an entry, a line without its end, and says its number. `at` is its time in the reflog; that of a word to the
    /// node is when it was said.
    pub fn append(&mut self, line: &[u8], at: Stamp) -> io::Result<u64> {
        if line.is_empty() || line.len() > ENTRY_BYTES_MAX || memchr::memchr(b'\n', line).is_some() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an entry of a queue is one line, not too long",
            ));
        }
        self.is_dirty = true;
        let block = &mut self.block;
        if block.entries == 0 {
            (block.earliest_s, block.latest_s) = (at.s(), at.s());
        }
        block.earliest_s = block.earliest_s.min(at.s());
        block.latest_s = block.latest_s.max(at.s());
        block.plain.extend_from_slice(line);
        block.plain.push(b'\n');
        block.entries += 1;
        self.next_seq += 1;
        if self.block.plain.len() >= BLOCK_PLAIN_BYTES {
            self.write_block()?;
        }
        Ok(self.next_seq - 1)
    }

    /// Bytes that were written since the last commit.
    pub fn staged_bytes(&self) -> u64 {
        self.staged_bytes + self.block.plain.len() as u64 / 3
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.entries == 0 {
            return Ok(());
        }
        let first_seq = self.next_seq - u64::from(self.block.entries);
        self.packed.resize(get_maximum_output_size(self.block.plain.len()), 0);
        let packed = compress_into(&self.block.plain, &mut self.packed)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
        let payload = &self.packed[..packed];
        let header = BlockHeader {
            payload_crc: crc32c::crc32c(payload),
            payload_bytes: packed as u32,
            plain_bytes: self.block.plain.len() as u32,
            entries: self.block.entries,
            first_seq,
            epoch: self.batch.epoch,
            earliest_s: self.block.earliest_s,
            latest_s: self.block.latest_s,
            before_s: self.batch.before_s,
            at_s: self.batch.now_s,
            kind: self.batch.kind,
        };
        if self.staged.is_empty() {
            let shelved = self.shelf.lock();
            self.staged.extend(shelved.segments.last().map(
                |&Segment { first_seq, bytes, earliest_s, .. }| Segment {
                    first_seq,
                    bytes,
                    earliest_s,
                    blocks: Vec::new(),
                },
            ));
        }
        let is_full = |segment: &Segment| segment.bytes >= self.limits.segment_bytes;
        if self.staged.last().is_none_or(is_full) {
            self.begin_segment(first_seq)?;
        }
        let Some(segment) = self.staged.last_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        let file = match &mut self.file {
            Some(file) => file,
            slot => slot
                .insert(OpenOptions::new().write(true).open(segment_path(&self.folder, segment.first_seq))?),
        };
        let at = segment.bytes;
        file.write_all_at(&header.write(), at)?;
        file.write_all_at(&self.packed[..packed], at + super::block::BLOCK_HEADER_BYTES as u64)?;
        segment.push(at, header);
        self.staged_bytes += header.bytes();
        self.block.plain.clear();
        self.block.entries = 0;
        Ok(())
    }

    fn begin_segment(&mut self, first_seq: u64) -> io::Result<()> {
        if let Some(full) = self.file.take() {
            full.sync_data()?;
        }
        let path = segment_path(&self.folder, first_seq);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&segment_header(self.shelf.server, first_seq), 0)?;
        self.file = Some(file);
        self.staged.push(Segment::fresh(first_seq));
        Ok(())
    }

    /// Makes what was appended durable, and says where the queue will end; `None` if nothing was appended.
    pub fn seal(&mut self) -> io::Result<Option<QueueEnd>> {
        if !self.is_dirty {
            return Ok(None);
        }
        self.write_block()?;
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        // The committed segment has its name on the disk.
        if self.staged.iter().any(|segment| segment.first_seq >= self.shelf.next_seq()) {
            sync_directory(&self.folder)?;
        }
        let last = self.staged.last().ok_or(io::ErrorKind::NotFound)?;
        Ok(Some(QueueEnd { segment: last.first_seq, bytes: last.bytes, next: self.next_seq }))
    }

    /// Lets readers see what is committed.
    pub fn publish(&mut self) {
        let mut shelved = self.shelf.lock();
        for staged in self.staged.drain(..) {
            match shelved.segments.last_mut() {
                Some(last) if last.first_seq == staged.first_seq => {
                    last.bytes = staged.bytes;
                    last.earliest_s = last.earliest_s.min(staged.earliest_s);
                    last.blocks.extend(staged.blocks);
                }
                _ => shelved.segments.push(staged),
            }
        }
        shelved.next_seq = self.next_seq;
        drop(shelved);
        (self.is_dirty, self.staged_bytes) = (false, 0);
    }

    /// Takes back what was appended since the last commit.
    pub fn cut(&mut self) -> io::Result<()> {
        if !self.is_dirty {
            return Ok(());
        }
        (self.block.plain, self.block.entries) = (Vec::new(), 0);
        self.staged.clear();
        (self.file, self.staged_bytes) = (None, 0);
        let end = {
            let shelved = self.shelf.lock();
            self.next_seq = shelved.next_seq;
            let last = shelved.segments.last();
            QueueEnd {
                segment: last.map_or(0, |segment| segment.first_seq),
                bytes: last.map_or(0, |segment| segment.bytes),
                next: shelved.next_seq,
            }
        };
        cut_files(&self.folder, end)?;
        self.is_dirty = false;
        Ok(())
    }

    /// Lets segments go that the node is past and that are older than `keep_s`.
    pub fn let_go(&mut self, now_s: u32, keep_s: u32) -> io::Result<u64> {
        debug_assert!(!self.is_dirty);
        let gone = self.shelf.let_go(now_s, keep_s)?;
        // A full segment takes no more.
        if self.shelf.lock().segments.last().is_some_and(|last| last.bytes >= self.limits.segment_bytes) {
            self.file = None;
        }
        Ok(gone)
    }
}

/// Opens what is committed of a queue, to be read.
pub(crate) fn open_shelf(
    folder: &Path,
    server: ServerId,
    end: QueueEnd,
) -> io::Result<(Arc<Shelf>, Damages)> {
    let (mut segments, mut damages) = (Vec::new(), Vec::new());
    let committed = |first: &u64| end.bytes > 0 && *first <= end.segment;
    let mut next_seq = None;
    let mut names: Vec<u64> = segments_in(folder)?.into_iter().filter(committed).collect();
    if end.bytes > 0 && names.last() != Some(&end.segment) {
        names.push(end.segment);
    }
    for first_seq in names {
        let path = segment_path(folder, first_seq);
        let bytes = Bytes::read_only(&path)?;
        let upto = if first_seq == end.segment { end.bytes } else { bytes.len() };
        let (segment, damage) = Segment::index(&bytes, server, first_seq, upto)?;
        if next_seq.is_some_and(|next| next != first_seq) {
            damages.push((path.clone(), Damage { at: 0, what: "entries are missing before it" }));
        }
        next_seq = Some(segment.end_seq());
        damages.extend(damage.map(|damage| (path, damage)));
        segments.push(segment);
    }
    if let Some(next) = next_seq.filter(|next| *next != end.next) {
        let what =
            if next < end.next { "entries are missing at its end" } else { "it has more than was committed" };
        damages.push((segment_path(folder, end.segment), Damage { at: end.bytes, what }));
    }
    Ok((Arc::new(Shelf::new(folder, server, segments, end.next)), damages))
}

/// Cuts away what was not committed.
fn cut_files(folder: &Path, end: QueueEnd) -> io::Result<()> {
    let mut is_changed = false;
    for first_seq in segments_in(folder)? {
        let path = segment_path(folder, first_seq);
        if end.bytes == 0 || first_seq > end.segment {
            std::fs::remove_file(path)?;
            is_changed = true;
        } else if first_seq == end.segment {
            let file = OpenOptions::new().write(true).open(path)?;
            if file.metadata()?.len() > end.bytes {
                file.set_len(end.bytes)?;
                file.sync_all()?;
            }
        }
    }
    if is_changed { sync_directory(folder) } else { Ok(()) }
}

const _: () = assert!(SEGMENT_HEADER_BYTES < BLOCK_PLAIN_BYTES);
