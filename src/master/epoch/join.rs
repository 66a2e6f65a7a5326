use super::domain::{DomainsPool, LentDomains};
use super::groups::Grouped;
use super::intake::{TakenIn, take_in};
use super::job::{JoinJob, JoinRules};
use super::joined::{Joined, PartitionOutput};
use super::known::{Known, KnownText};
use super::partition::{PartitionJoin, SentNow, Sink, Workplace};
use super::row::{CurrentRow, TagMark};
use super::sent::Sent;
use super::spill_file::{Part, SpillFile};
use crate::master::{EpochCounts, FilteredRow, RowPlace};
use crate::proto::reflog::{ReflogRecord, Stamp};
use std::io;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How the memory of a job is shared out, in eighths: lines that were read, what is made of them, and the partitions that
/// are worked on.
const LINES_EIGHTHS: usize = 5;
const OUTPUT_EIGHTHS: usize = 2;

/// Makes an epoch: steps (1) to (4).
pub fn join(mut job: JoinJob<'_>) -> io::Result<Joined> {
    if job.current.is_some_and(|current| !current.is_keyed_by(job.key)) {
        let text = "current_log was made with another id.key (bring back the one that belongs to it)";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let spill = SpillFile::new(job.work);
    let lines_bytes = job.rules.memory_bytes / 8 * LINES_EIGHTHS;
    let taken = take_in(&mut job, lines_bytes, &spill)?;
    let outputs: Vec<Mutex<PartitionOutput>> = (0..256).map(|_| Mutex::default()).collect();
    let kept =
        Kept { spill: &spill, bytes: AtomicUsize::new(0), max: job.rules.memory_bytes / 8 * OUTPUT_EIGHTHS };
    let domains = DomainsPool::new(job.rules.by);
    let make = |partition| RowSink {
        partition,
        domains: domains.lend(),
        kept: &kept,
        rows: Vec::new(),
        sent: Vec::new(),
        output: PartitionOutput::default(),
    };
    let mut counts =
        each_partition(&job, &spill, taken, &job.current, make, |partition, sink: RowSink<'_>| {
            *outputs[usize::from(partition)].lock().unwrap_or_else(PoisonError::into_inner) = sink.end()?;
            Ok(())
        })?;
    counts.held = 0;
    let outputs =
        outputs.into_iter().map(|output| output.into_inner().unwrap_or_else(PoisonError::into_inner));
    let outputs = outputs.collect();
    Ok(Joined::new(counts, job.key.check(), job.now_s, outputs, spill))
}

/// Joins every partition, on all workers, each with a sink of its own.
pub(super) fn each_partition<K: Known, S: Sink>(
    job: &JoinJob<'_>,
    spill: &SpillFile,
    taken: TakenIn,
    known: &K,
    make: impl Fn(u8) -> S + Sync,
    made: impl Fn(u8, S) -> io::Result<()> + Sync,
) -> io::Result<EpochCounts> {
    let parts: Vec<Mutex<Vec<Part>>> = taken.parts.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Ok(taken.counts));
    let (rules, now_s, horizon_s): (&JoinRules, u32, u32) = (&job.rules, job.now_s, job.horizon_s);
    let workers = job.workers.count().max(1);
    let bytes_max = (rules.memory_bytes / 8 / workers).max(PARTITION_BYTES_MIN);
    job.workers.each(&|_| {
        let mut place = Workplace::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(parts) = parts.get(at) else { return };
            let parts = mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner));
            let partition = at as u8;
            let work = || -> io::Result<EpochCounts> {
                let rows = known.rows(partition)?;
                let join = PartitionJoin {
                    rules,
                    now_s,
                    horizon_s,
                    spill,
                    bytes_max,
                    place: &mut place,
                    rows,
                    sink: make(partition),
                    counts: EpochCounts::default(),
                    row: 0,
                };
                let (sink, counts) = join.run(parts)?;
                made(partition, sink)?;
                Ok(counts)
            };
            let worked = work();
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            match (&mut *told, worked) {
                (Ok(sum), Ok(counts)) => *sum += counts,
                (Ok(_), Err(error)) => *told = Err(error),
                (Err(_), _) => {}
            }
            if told.is_err() {
                return;
            }
        }
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner)
}

const PARTITION_BYTES_MIN: usize = 64 << 10;

/// What is made, in memory as far as the budget goes.
struct Kept<'s> {
    spill: &'s SpillFile,
    bytes: AtomicUsize,
    max: usize,
}

impl Kept<'_> {
    /// Another part has no room.
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) + PART_BYTES > self.max
    }

    /// Bytes for their part.
    fn keep(&self, bytes: &mut Vec<u8>) -> io::Result<Part> {
        let before = self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let part = if before + bytes.len() <= self.max {
            Part::Memory(bytes.as_slice().to_vec())
        } else {
            self.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
            Part::Spilled(self.spill.write(&[bytes])?)
        };
        bytes.clear();
        Ok(part)
    }
}

/// Rows and what is sent, as bytes.
struct RowSink<'k> {
    partition: u8,
    domains: LentDomains<'k>,
    kept: &'k Kept<'k>,
    rows: Vec<u8>,
    sent: Vec<u8>,
    output: PartitionOutput,
}

/// Bytes of a part, about: few enough that it is put where lines were, and no new pages are asked for.
const PART_BYTES: usize = 96 << 10;
/// The same where parts are spilled.
const SPILLED_PART_BYTES: usize = 512 << 10;

impl RowSink<'_> {
    fn end(mut self) -> io::Result<PartitionOutput> {
        self.put_away(0)?;
        Ok(self.output)
    }

    /// Puts away what has become a part.
    fn turn(&mut self) -> io::Result<()> {
        self.put_away(if self.kept.is_full() { SPILLED_PART_BYTES } else { PART_BYTES })
    }

    /// Puts away what is more than this.
    fn put_away(&mut self, bytes: usize) -> io::Result<()> {
        if self.rows.len() > bytes {
            self.output.rows.push(self.kept.keep(&mut self.rows)?);
        }
        if self.sent.len() > bytes {
            self.output.sent.push(self.kept.keep(&mut self.sent)?);
        }
        Ok(())
    }
}

impl Sink for RowSink<'_> {
    fn sent(&mut self, sent: &SentNow<'_>) -> io::Result<()> {
        self.rows.extend_from_slice(&sent.next.bytes());
        let line = sent.came.last();
        let place = self.domains.place(line.url);
        let mut room = [0; 8];
        // A tag that is too long for a row is lost if it came in an epoch before.
        let tag = sent.tag.text(&mut room).unwrap_or_else(|| sent.came.tag_text());
        let record = ReflogRecord {
            batch: line.batch,
            priority: line.priority,
            at: Stamp::from_s(sent.came.at_s()),
            page: line.page,
            url: line.url,
            hits: sent.hits,
            tag,
        };
        let row = FilteredRow {
            id: line.id,
            record,
            // It is written as a place.
            domain: "",
            at: RowPlace { partition: self.partition, row: sent.row },
            sent_before_s: sent.before.map_or(0, |row| row.sent_s),
        };
        let tag_before = sent.before.map_or(TagMark::NONE, |row| row.tag);
        Sent { row, tag_before }.write(place, &mut self.sent);
        self.turn()
    }

    fn kept(
        &mut self,
        next: &CurrentRow,
        _: Option<&Grouped<'_>>,
        _: Option<KnownText<'_>>,
    ) -> io::Result<()> {
        self.rows.extend_from_slice(&next.bytes());
        Ok(())
    }
}
