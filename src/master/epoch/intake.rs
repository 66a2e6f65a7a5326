use super::buckets::{Buckets, Ways};
use super::chunks::{Chunks, Origin};
use super::job::JoinJob;
use super::line::Line;
use super::spill_file::{Part, SpillFile};
use crate::base::shown;
use crate::master::{EpochCounts, InputFile};
use crate::proto::reflog::{ReflogCounts, ReflogReader, ReflogRecord, Reject, RejectReason, Told};
use crate::proto::url::{CrawlUrl, is_normal};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// analyze_dump: the lines of all files, by partition, and what could not be taken.
pub(super) struct TakenIn {
    /// By partition, in the order of lines as far as that counts.
    pub parts: Vec<Vec<Part>>,
    pub counts: EpochCounts,
}

/// Reads all files of a job.
pub(super) fn take_in(job: &mut JoinJob<'_>, memory_bytes: usize, spill: &SpillFile) -> io::Result<TakenIn> {
    let held = job.held.map(InputFile::new);
    let inputs: Vec<(&InputFile, bool)> =
        held.iter().map(|held| (held, true)).chain(job.inputs.iter().map(|input| (input, false))).collect();
    let workers = job.workers.count().max(1);
    let rejects = Mutex::new(Rejects { next: 0, waiting: BTreeMap::new(), out: &mut *job.rejects });
    let chunks = Mutex::new(Chunks::new(&inputs));
    let done = Mutex::new(BTreeMap::new());
    let what = What { now_s: job.now_s, ahead_s: job.rules.ahead_s, key: job.key, canon: job.canon };
    job.workers.each(&|worker| {
        let buckets = Buckets::new(Ways::PARTITIONS, memory_bytes / workers, workers > 1, spill);
        let mut intake = Intake::new(what, buckets);
        let read = match workers {
            1 => intake.read_alone(&inputs, &rejects),
            _ => intake.read_chunks(&chunks, &rejects),
        };
        done.lock().unwrap_or_else(PoisonError::into_inner).insert(worker, read.map(|()| intake));
    });
    let mut counts = EpochCounts::default();
    let mut parts: Vec<Vec<Part>> = (0..256).map(|_| Vec::new()).collect();
    for read in done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values() {
        let intake = read?;
        counts += intake.counts;
        for (all, some) in parts.iter_mut().zip(intake.buckets.into_parts().0) {
            all.extend(some);
        }
    }
    Ok(TakenIn { parts, counts })
}

/// What a line is looked at with.
#[derive(Clone, Copy)]
struct What<'a> {
    now_s: u32,
    ahead_s: u32,
    key: &'a super::id_key::IdKey,
    canon: &'a dyn super::job::UrlCanon,
}

/// One that reads.
struct Intake<'a, 's> {
    what: What<'a>,
    has_canon: bool,
    buckets: Buckets<'s>,
    counts: EpochCounts,
    /// Of this chunk.
    rejects: Vec<u8>,
    failed: Option<io::Error>,
    scratch: String,
}

impl<'a, 's> Intake<'a, 's> {
    fn new(what: What<'a>, buckets: Buckets<'s>) -> Intake<'a, 's> {
        Intake {
            what,
            has_canon: !what.canon.is_identity(),
            buckets,
            counts: EpochCounts::default(),
            rejects: Vec::new(),
            failed: None,
            scratch: String::new(),
        }
    }

    /// One file after the other, from what was read: nothing is copied.
    fn read_alone(&mut self, inputs: &[(&InputFile, bool)], rejects: &Mutex<Rejects<'_>>) -> io::Result<()> {
        let mut reader = ReflogReader::default();
        let mut number = 0;
        for &(input, is_held) in inputs {
            let origin = Origin { input, is_held, lines_before: 0 };
            let mut file = input.open().map_err(Origin::failed)?;
            loop {
                match file.chunk() {
                    Ok(Some(text)) => reader.read(text, |told| self.take(&origin, told)),
                    Ok(None) => break,
                    Err(error) if error.fault.is_of_content() => {
                        self.refuse_rest(&origin, &error.fault.to_string());
                        break;
                    }
                    Err(error) => return Err(Origin::failed(error)),
                }
                self.end_chunk(number, rejects)?;
                number += 1;
            }
            reader.end(|told| self.take(&origin, told));
            if is_held {
                // They have been counted as lines of their file.
                reader = ReflogReader::default();
            }
            self.end_chunk(number, rejects)?;
            number += 1;
        }
        self.count(&reader);
        Ok(())
    }

    /// What a reader has come by. Hits that it had no room for came, too.
    fn count(&mut self, reader: &ReflogReader) {
        let ReflogCounts { lines, hits_beyond, .. } = reader.counts();
        self.counts.lines += lines;
        self.counts.hits_in += hits_beyond;
        self.counts.hits_capped += hits_beyond;
    }

    /// Chunks as they come, beside others who take theirs.
    fn read_chunks(&mut self, chunks: &Mutex<Chunks<'_>>, rejects: &Mutex<Rejects<'_>>) -> io::Result<()> {
        let mut text = Vec::new();
        loop {
            let mut source = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(mut chunk) = source.next(&mut text)? else { return Ok(()) };
            self.buckets.begin_chunk(chunk.number);
            let mut reader = ReflogReader::default();
            // Without a record to cut at, nobody else can go on.
            while !chunk.is_whole {
                reader.read(&text, |told| self.take(&chunk.origin, told));
                chunk.is_whole = source.more(&mut text)?;
            }
            drop(source);
            reader.read(&text, |told| self.take(&chunk.origin, told));
            reader.end(|told| self.take(&chunk.origin, told));
            if let Some(fault) = &chunk.fault {
                self.refuse_rest(&chunk.origin, fault);
            }
            if !chunk.origin.is_held {
                self.count(&reader);
            }
            self.end_chunk(chunk.number, rejects)?;
        }
    }

    fn take(&mut self, origin: &Origin<'_>, told: Told<'_>) {
        if self.failed.is_some() {
            return;
        }
        match told {
            Told::Record { line, record } => match self.record(&record, origin.is_held) {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    let text = &record.url[..record.url.len().min(TEXT_BYTES_MAX)];
                    self.reject(origin, &Reject { line, why, text, hits: record.hits });
                }
                Err(error) => self.failed = Some(error),
            },
            Told::Reject(reject) => {
                self.counts.hits_in += u64::from(reject.hits);
                self.reject(origin, &reject);
            }
        }
    }

    fn record(&mut self, record: &ReflogRecord<'_>, is_held: bool) -> io::Result<Result<(), RejectReason>> {
        let hits = u64::from(record.hits);
        if is_held {
            self.counts.hits_before += hits;
        } else {
            self.counts.records += 1;
            self.counts.hits_in += hits;
        }
        if is_normal(record.url) {
            return match RejectReason::of_normal(record.url) {
                None => self.push(record, record.url).map(Ok),
                Some(why) => Ok(Err(why)),
            };
        }
        let Ok(text) = str::from_utf8(record.url) else { return Ok(Err(RejectReason::UrlBytes)) };
        match CrawlUrl::parse(text) {
            Ok(url) => match RejectReason::of_normal(url.as_str().as_bytes()) {
                None => self.push(record, url.as_str().as_bytes()).map(Ok),
                Some(why) => Ok(Err(why)),
            },
            Err(error) => Ok(Err(RejectReason::from(&error))),
        }
    }

    fn push(&mut self, record: &ReflogRecord<'_>, url: &[u8]) -> io::Result<()> {
        let id = if self.has_canon {
            // A normal form is ASCII.
            let text = str::from_utf8(url).unwrap_or_default();
            self.what.key.id(self.what.canon.apply(text, &mut self.scratch).as_bytes())
        } else {
            self.what.key.id(url)
        };
        let mut at_s = record.at.s();
        if at_s > self.what.now_s.saturating_add(self.what.ahead_s) {
            at_s = self.what.now_s;
            self.counts.ahead += 1;
        }
        let &ReflogRecord { batch, priority, page, hits, tag, .. } = record;
        self.buckets.push(&Line { id, at_s, hits, priority, url, page, batch, tag })
    }

    fn reject(&mut self, origin: &Origin<'_>, reject: &Reject<'_>) {
        self.counts.rejected += 1;
        self.counts.hits_rejected += u64::from(reject.hits);
        let line = origin.lines_before + reject.line;
        let text = shown(&String::from_utf8_lossy(reject.text), TEXT_BYTES_MAX);
        self.write_reject(origin, line, reject.why.name(), reject.hits, &text);
    }

    /// The rest of a file cannot be read.
    fn refuse_rest(&mut self, origin: &Origin<'_>, fault: &str) {
        self.counts.files_cut += 1;
        self.write_reject(origin, 0, "file", 0, &shown(fault, 500));
    }

    fn write_reject(&mut self, origin: &Origin<'_>, line: u64, why: &str, hits: u32, text: &str) {
        let file = shown(&origin.input.path().to_string_lossy(), 500);
        // Into memory, which does not refuse.
        let _ = writeln!(self.rejects, "{file}\t{line}\t{why}\t{hits}\t{text}");
    }

    fn end_chunk(&mut self, number: u32, rejects: &Mutex<Rejects<'_>>) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        rejects.lock().unwrap_or_else(PoisonError::into_inner).take(number, &mut self.rejects)
    }
}

/// Bytes of a rejected line that are shown.
const TEXT_BYTES_MAX: usize = 200;

/// Rejects in the order of lines, however the chunks are read.
struct Rejects<'a> {
    next: u32,
    waiting: BTreeMap<u32, Vec<u8>>,
    out: &'a mut (dyn Write + Send),
}

impl Rejects<'_> {
    fn take(&mut self, number: u32, text: &mut Vec<u8>) -> io::Result<()> {
        if number != self.next {
            self.waiting.insert(number, std::mem::take(text));
            return Ok(());
        }
        self.out.write_all(text)?;
        text.clear();
        self.next += 1;
        while let Some(text) = self.waiting.remove(&self.next) {
            self.out.write_all(&text)?;
            self.next += 1;
        }
        Ok(())
    }
}
