use super::super::segment_header::SegmentHeader;
use crate::limits::SEGMENT_HEADER_BYTES;
use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The keeper's half: what is published, what is durable, and the file.
pub struct Segment {
    number: u64,
    map: MmapRaw,
    /// Absent for a segment in memory, as the simulation uses.
    file: Option<(File, PathBuf)>,
    /// Bytes that are complete records. Stored before `sequence`, so a reader of both takes them in reverse.
    tail: AtomicU64,
    /// Sequence number of the last complete record.
    sequence: AtomicU64,
    /// The writer is gone; nothing more will be published.
    finished: AtomicBool,
    /// The disk refused some of it: the writer has to take another.
    condemned: AtomicBool,
}

/// The shard's half: the only one that may write.
pub struct SegmentWriter {
    segment: Arc<Segment>,
    tail: usize,
}

impl Segment {
    /// Maps an allocated file, writes its header and makes its pages present.
    pub fn map_file(file: File, path: PathBuf, header: &SegmentHeader) -> io::Result<SegmentWriter> {
        let map = MmapOptions::new().map_raw(&file)?;
        // Old kernels lack it; then the shard takes the faults, which is slower and nothing else.
        let _ = map.advise(Advice::PopulateWrite);
        Ok(Segment::start(map, Some((file, path)), header))
    }

    /// A segment that lives in memory only.
    pub fn map_memory(bytes: usize, header: &SegmentHeader) -> io::Result<SegmentWriter> {
        Ok(Segment::start(MmapRaw::from(MmapMut::map_anon(bytes)?), None, header))
    }

    fn start(map: MmapRaw, file: Option<(File, PathBuf)>, header: &SegmentHeader) -> SegmentWriter {
        let segment = Arc::new(Segment {
            number: header.number,
            map,
            file,
            tail: AtomicU64::new(SEGMENT_HEADER_BYTES as u64),
            sequence: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            condemned: AtomicBool::new(false),
        });
        let mut writer = SegmentWriter { segment, tail: 0 };
        writer.rest()[..SEGMENT_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        writer.tail = SEGMENT_HEADER_BYTES;
        writer
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn file(&self) -> Option<&(File, PathBuf)> {
        self.file.as_ref()
    }

    /// The last published record and the bytes up to its end. The end may belong to a later record still, never
    /// to an earlier one.
    pub fn published(&self) -> (u64, usize) {
        let sequence = self.sequence.load(Ordering::Acquire);
        (sequence, self.tail.load(Ordering::Acquire) as usize)
    }

    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    pub fn condemn(&self) {
        self.condemned.store(true, Ordering::Release);
    }

    pub fn is_condemned(&self) -> bool {
        self.condemned.load(Ordering::Acquire)
    }

    /// Everything that was published, once the writer is gone.
    pub fn written(&self) -> Option<&[u8]> {
        if !self.is_finished() {
            return None;
        }
        let tail = self.published().1;
        // JUSTIFICATION: the keeper copies records elsewhere when the disk has refused them, and indexes are made from
        // what is still in memory; both without a second copy of the segment.
        // SAFETY: `finished` is set when the only writer is dropped, after its last write and with release order, so from
        // here on no thread writes to the map; `tail` lies within it. A file is cut to its tail at the earliest, so every
        // page below it is there.
        Some(unsafe { std::slice::from_raw_parts(self.map.as_ptr(), tail) })
    }

    /// Waits until the bytes of `from..to` are on the disk.
    pub fn sync(&self, from: usize, to: usize) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        self.map.flush_range(from, to - from)?;
        // Syncing write-protects the last page, which the shard is about to write again: the keeper takes that
        // fault here.
        let page = to & !4095;
        if page < self.map.len() {
            let _ = self.map.advise_range(Advice::PopulateWrite, page, 4096.min(self.map.len() - page));
        }
        Ok(())
    }
}

impl SegmentWriter {
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Where the next record begins.
    pub fn tail(&self) -> usize {
        self.tail
    }

    pub fn room(&self) -> usize {
        self.segment.map.len() - self.tail
    }

    /// Every byte that is not published yet.
    pub fn rest(&mut self) -> &mut [u8] {
        let len = self.segment.map.len();
        // JUSTIFICATION: the map is shared with the keeper, so no safe exclusive slice of it can exist.
        // SAFETY: there is one `SegmentWriter` per segment and it is borrowed exclusively; `tail <= len` is kept by
        // `publish`; no other code makes a reference into the map, the keeper only names ranges of it to the kernel.
        // The file was allocated in full before it was mapped and is cut only after the writer is gone, so no
        // page of it can be missing.
        unsafe {
            std::slice::from_raw_parts_mut(self.segment.map.as_mut_ptr().add(self.tail), len - self.tail)
        }
    }

    /// Makes the next `bytes` bytes, a complete record, visible to the keeper.
    pub fn publish(&mut self, bytes: usize, sequence: u64) {
        assert!(bytes <= self.room(), "a record lies within its segment");
        self.tail += bytes;
        self.segment.tail.store(self.tail as u64, Ordering::Release);
        self.segment.sequence.store(sequence, Ordering::Release);
    }
}

impl Drop for SegmentWriter {
    /// Whatever ends the writer (a full segment, the end of the crawl, a shard that died) finishes the segment at
    /// its last complete record.
    fn drop(&mut self) {
        self.segment.finished.store(true, Ordering::Release);
    }
}
