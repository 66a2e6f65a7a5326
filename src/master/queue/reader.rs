use super::super::ServerId;
use super::block::{BLOCK_HEADER_BYTES, BlockHeader};
use super::error::QueueError;
use super::segment::segment_path;
use super::shelf::Shelf;
use crate::limits::MASTER_OVERLAP_S;
use crate::proto::reflog::Stamp;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Reads a queue, committed entries only, also while it is written.
#[derive(Debug)]
pub struct QueueReader {
    shelf: Arc<Shelf>,
    /// The segment that was read last.
    file: Option<(u64, File)>,
    /// The block that was read last: its header, and its lines.
    block: Option<BlockHeader>,
    plain: Vec<u8>,
    payload: Vec<u8>,
}

/// Where a reading stands.
struct Rest {
    entries: u64,
    bytes: usize,
}

impl QueueReader {
    pub(crate) fn new(shelf: Arc<Shelf>) -> QueueReader {
        QueueReader { shelf, file: None, block: None, plain: Vec::new(), payload: Vec::new() }
    }

    pub fn server(&self) -> ServerId {
        self.shelf.server
    }

    /// Tells entries from a number on, without their LF, and says which number is next. One entry is told even if it has
    /// more bytes than asked for.
    pub fn read(
        &mut self,
        from: u64,
        max: u64,
        bytes_max: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<u64, QueueError> {
        self.runs(from, max, bytes_max, |lines| {
            let mut at = 0;
            for end in memchr::memchr_iter(b'\n', lines) {
                each(&lines[at..end]);
                at = end + 1;
            }
        })
    }

    /// The same as they are sent: lines, each with its LF.
    pub fn copy(
        &mut self,
        from: u64,
        max: u64,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<u64, QueueError> {
        self.runs(from, max, bytes_max, |lines| out.extend_from_slice(lines))
    }

    fn runs(
        &mut self,
        from: u64,
        max: u64,
        bytes_max: usize,
        mut run: impl FnMut(&[u8]),
    ) -> Result<u64, QueueError> {
        let mut seq = from;
        let mut rest = Rest { entries: max, bytes: bytes_max };
        while rest.entries > 0 && (rest.bytes > 0 || seq == from) {
            let header = match self.load(seq) {
                Ok(Some(header)) => header,
                Ok(None) => break,
                // What was read is told first.
                Err(QueueError::Damaged { .. }) if seq > from => break,
                Err(e) => return Err(e),
            };
            let lines = skip_lines(&self.plain, (seq - header.first_seq) as usize);
            let left = header.end_seq() - seq;
            let (taken, lines) = if left <= rest.entries && lines.len() <= rest.bytes {
                (left, lines)
            } else {
                first_lines(lines, &rest, seq == from)
            };
            if taken == 0 {
                break;
            }
            run(lines);
            seq += taken;
            rest.entries -= taken;
            rest.bytes = rest.bytes.saturating_sub(lines.len());
        }
        Ok(seq)
    }

    /// Tells blocks whole, from that with an entry on, until `each` says no: what it is, and its lines. Says which number is
    /// next.
    pub fn blocks(
        &mut self,
        from: u64,
        mut each: impl FnMut(&BlockHeader, &[u8]) -> bool,
    ) -> Result<u64, QueueError> {
        let mut seq = from;
        while let Some(header) = self.load(seq)? {
            seq = header.end_seq();
            if !each(&header, &self.plain) {
                break;
            }
        }
        Ok(seq)
    }

    /// Has the block with an entry in memory; `None` at the end of the queue.
    fn load(&mut self, seq: u64) -> Result<Option<BlockHeader>, QueueError> {
        let within = |header: &BlockHeader| (header.first_seq..header.end_seq()).contains(&seq);
        if let Some(header) = self.block.filter(within) {
            return Ok(Some(header));
        }
        let (place, segment) = {
            let shelved = self.shelf.lock();
            if seq >= shelved.next_seq {
                let beyond = QueueError::Beyond { asked: seq, next: shelved.next_seq };
                return if seq == shelved.next_seq { Ok(None) } else { Err(beyond) };
            }
            let first = shelved.segments.first().map_or(shelved.next_seq, |segment| segment.first_seq);
            if seq < first {
                return Err(QueueError::Gone { asked: seq, first });
            }
            let damaged =
                |next| QueueError::Damaged { seq, next, file: format!("queue/{}", self.shelf.server.0) };
            let (Some(place), Some(segment)) = (shelved.block_of(seq), shelved.segment_of(seq)) else {
                return Err(damaged(shelved.next_seq));
            };
            if place.header.first_seq > seq {
                return Err(damaged(place.header.first_seq));
            }
            (place, segment)
        };
        self.block = None;
        let file = match &mut self.file {
            Some((number, file)) if *number == segment => file,
            slot => {
                let path = segment_path(&self.shelf.folder, segment);
                let opened = File::open(&path)
                    .map_err(|e| std::io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
                &mut slot.insert((segment, opened)).1
            }
        };
        self.payload.resize(place.header.payload_bytes as usize, 0);
        let whole = match file.read_exact_at(&mut self.payload, place.at + BLOCK_HEADER_BYTES as u64) {
            Ok(()) => place.header.unpack(&self.payload, &mut self.plain),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => false,
            Err(e) => return Err(e.into()),
        };
        if !whole {
            let file = segment_path(&self.shelf.folder, segment).display().to_string();
            return Err(QueueError::Damaged { seq, next: place.header.end_seq(), file });
        }
        self.block = Some(place.header);
        Ok(self.block)
    }

    /// Takes what the node says that it has: everything below `seq` is on its disk. A number that the queue does not have
    /// is refused; one that is lower than before changes nothing.
    pub fn done(&self, seq: u64) -> Result<bool, QueueError> {
        self.shelf.done(seq)
    }

    /// The node takes from another master, which gave it everything up to that time: what is older here by more than the
    /// overlap it has, and this is the number behind it. No word to the node that it has not taken here is below.
    pub fn had_elsewhere(&self, mark: Stamp) -> u64 {
        self.seq_since(Stamp::from_s(mark.s().saturating_sub(MASTER_OVERLAP_S)))
    }

    /// Below it the node has everything.
    pub fn position(&self) -> u64 {
        self.shelf.position()
    }

    pub fn first_seq(&self) -> u64 {
        self.shelf.first_seq()
    }

    /// The number that the next entry gets.
    pub fn next_seq(&self) -> u64 {
        self.shelf.next_seq()
    }

    /// Bytes on disk, and those of them that the node does not have.
    pub fn bytes(&self) -> (u64, u64) {
        (self.shelf.bytes(), self.shelf.waiting_bytes())
    }

    /// The first number of a block that has something as late as that; the end of the queue if none has.
    pub fn seq_since(&self, at: Stamp) -> u64 {
        self.shelf.seq_since(at)
    }

    /// The time up to which everything that was given to this master and committed is below a number.
    pub fn mark(&self, seq: u64) -> Stamp {
        self.shelf.mark(seq)
    }

    /// The same, unless that is from the future by this clock: then nothing is known to be below, and everything is asked
    /// for again where it counts.
    pub fn believed_mark(&self, seq: u64, now_s: u32) -> Stamp {
        let mark = self.mark(seq);
        if mark.is_credible(now_s) { mark } else { Stamp::from_s(0) }
    }

    /// The numbers of what an epoch sent, from and up to; `None` if that was nothing, or was let go.
    pub fn of_epoch(&self, epoch: u64) -> Option<(u64, u64)> {
        self.shelf.of_epoch(epoch)
    }
}

fn skip_lines(lines: &[u8], count: usize) -> &[u8] {
    match count {
        0 => lines,
        _ => memchr::memchr_iter(b'\n', lines).nth(count - 1).map_or(&[], |at| &lines[at + 1..]),
    }
}

/// As many lines as fit, and how many that are; the first in any case if `at_least_one`.
fn first_lines<'a>(lines: &'a [u8], rest: &Rest, at_least_one: bool) -> (u64, &'a [u8]) {
    let (mut taken, mut end) = (0, 0);
    for at in memchr::memchr_iter(b'\n', lines) {
        if taken == rest.entries || (at + 1 > rest.bytes && !(taken == 0 && at_least_one)) {
            break;
        }
        (taken, end) = (taken + 1, at + 1);
    }
    (taken, &lines[..end])
}
