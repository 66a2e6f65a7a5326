use super::spill::{Chunk, SpillAsk};
use crate::proto::job::Job;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;

/// URLs whose host has no row, or a full queue.
///
/// The oldest are in memory: per host, in the order they came, and the hosts in theirs. What comes when memory is
/// full goes to the end, in chunks that are written to disk and read back in order once there is room.
///
/// ```text
///   by_host (memory, urls_max) ◄── chunk ◄── chunk … chunk (disk) ◄── end (memory, one chunk) ◄── push
/// ```
pub(super) struct Leftover {
    by_host: RapidHashMap<Box<str>, VecDeque<Job>>,
    /// Hosts without a row, in order of arrival.
    hosts: VecDeque<Box<str>>,
    in_memory: usize,
    urls_max: usize,
    chunks: VecDeque<Chunk>,
    /// The first chunk has been asked for.
    reading: bool,
    end: Vec<Job>,
    next_chunk: u32,
    asks: VecDeque<SpillAsk>,
    len: usize,
}

/// URLs in a chunk.
const CHUNK_URLS: usize = 4_096;

impl Leftover {
    /// Keeps `urls_max` URLs in memory; all of them if that is `usize::MAX`. Chunks are numbered from a start of
    /// this server's own: the disk may still report on chunks of a server that died.
    pub fn new(urls_max: usize, first_chunk: u32) -> Leftover {
        Leftover {
            by_host: RapidHashMap::default(),
            hosts: VecDeque::new(),
            in_memory: 0,
            urls_max,
            chunks: VecDeque::new(),
            reading: false,
            end: Vec::new(),
            next_chunk: first_chunk,
            asks: VecDeque::new(),
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// URLs that are on disk or on their way there.
    pub fn spilled(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.urls as usize).sum::<usize>() + self.end.len()
    }

    /// Whether something here could fill an empty queue.
    pub fn could_fill(&mut self) -> bool {
        self.first_host().is_some() || !self.chunks.is_empty() || !self.end.is_empty()
    }

    /// Keeps a job. `is_rowless` says that its host has no row, so that it must be offered one.
    pub fn push(&mut self, job: Job, is_rowless: bool) {
        if self.in_memory >= self.urls_max || !self.end.is_empty() || !self.chunks.is_empty() {
            self.len += 1;
            self.end.push(job);
            // Half of memory: a chunk is read back when the other half is free.
            if self.end.len() >= CHUNK_URLS.min((self.urls_max / 2).max(1)) {
                self.spill_the_end();
            }
        } else {
            self.keep(job, is_rowless);
        }
    }

    /// Keeps a job in memory, which has room for it: one that is new there, or that was taken back.
    pub fn keep(&mut self, job: Job, is_rowless: bool) {
        self.len += 1;
        self.in_memory += 1;
        let origin = job.candidate.url.origin();
        if let Some(queue) = self.by_host.get_mut(origin) {
            queue.push_back(job);
            return;
        }
        if is_rowless {
            self.hosts.push_back(origin.into());
        }
        self.by_host.insert(origin.into(), VecDeque::from([job]));
    }

    fn spill_the_end(&mut self) {
        let jobs = std::mem::take(&mut self.end);
        let chunk = Chunk::new(self.next_chunk, &jobs);
        self.next_chunk = self.next_chunk.wrapping_add(1);
        self.asks.push_back(SpillAsk::Write { chunk: chunk.number, bytes: chunk.bytes() });
        self.chunks.push_back(chunk);
    }

    /// What the disk is to do next.
    pub fn next_ask(&mut self) -> Option<SpillAsk> {
        self.asks.pop_front()
    }

    /// Notes that a chunk is on disk: its bytes need not be kept.
    pub fn written(&mut self, number: u32) {
        if let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.number == number) {
            chunk.forget_bytes();
        }
    }

    /// Whether `make_progress` has something to do.
    pub fn can_progress(&self) -> bool {
        let waits = !self.chunks.is_empty() || !self.end.is_empty();
        waits && !self.reading && self.in_memory <= self.urls_max / 2
    }

    /// Whether URLs are on their way back, or could be.
    pub fn is_moving(&self) -> bool {
        self.reading || self.can_progress()
    }

    /// Hosts that wait for a row.
    pub fn hosts_without_row(&self) -> usize {
        self.hosts.len()
    }

    /// Asks for what comes next, if memory has room for it. True if jobs can be had at once from `take_back`.
    pub fn make_progress(&mut self) -> bool {
        if !self.can_progress() {
            return false;
        }
        match self.chunks.front() {
            None => !self.end.is_empty(),
            Some(chunk) if chunk.is_held() => true,
            Some(chunk) => {
                self.asks.push_back(SpillAsk::Read { chunk: chunk.number });
                self.reading = true;
                false
            }
        }
    }

    /// Takes the oldest jobs that are not in memory: the chunk that was read, one that never left, or the end.
    pub fn take_back(&mut self, read: Option<(u32, &[u8])>) -> Vec<Job> {
        let jobs = match (read, self.chunks.front()) {
            (None, None) => std::mem::take(&mut self.end),
            (None, Some(chunk)) => {
                self.forget(chunk.number);
                self.chunks.pop_front().map(|chunk| chunk.jobs()).unwrap_or_default()
            }
            (Some((number, bytes)), Some(chunk)) if chunk.number == number => {
                self.reading = false;
                let jobs = chunk.jobs_in(bytes);
                self.chunks.pop_front();
                jobs
            }
            (Some(_), _) => Vec::new(),
        };
        self.len -= jobs.len();
        jobs
    }

    /// Tells the disk not to write a chunk, or to delete it once it has.
    fn forget(&mut self, number: u32) {
        let asked = self.asks.len();
        self.asks.retain(|ask| !matches!(ask, SpillAsk::Write { chunk, .. } if *chunk == number));
        if self.asks.len() == asked {
            self.asks.push_back(SpillAsk::Forget { chunk: number });
        }
    }

    /// Takes the oldest URL of one host.
    pub fn pop_of(&mut self, origin: &str) -> Option<Job> {
        let queue = self.by_host.get_mut(origin)?;
        let job = queue.pop_front();
        if queue.is_empty() {
            self.by_host.remove(origin);
        }
        self.in_memory -= usize::from(job.is_some());
        self.len -= usize::from(job.is_some());
        job
    }

    /// URLs of one host that are in memory.
    pub fn len_of(&self, origin: &str) -> usize {
        self.by_host.get(origin).map_or(0, VecDeque::len)
    }

    /// The host that has waited longest for a row.
    pub fn first_host(&mut self) -> Option<&str> {
        while let Some(origin) = self.hosts.front() {
            if self.by_host.contains_key(origin) {
                break;
            }
            self.hosts.pop_front();
        }
        self.hosts.front().map(|origin| &**origin)
    }

    /// Takes back a job that `pop_of` gave, to the place it had.
    pub fn put_first(&mut self, job: Job) {
        self.len += 1;
        self.in_memory += 1;
        self.by_host.entry(job.candidate.url.origin().into()).or_default().push_front(job);
    }

    /// Notes that the first host got a row.
    pub fn first_host_placed(&mut self) {
        self.hosts.pop_front();
    }

    /// Every URL is counted once, in memory within its bound or in the part that goes to disk.
    pub fn invariants(&self) -> bool {
        assert_eq!(self.by_host.values().map(VecDeque::len).sum::<usize>(), self.in_memory);
        assert_eq!(self.in_memory + self.spilled(), self.len);
        assert!(self.by_host.values().all(|queue| !queue.is_empty()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SortedMap;
    use crate::proto::job::Candidate;
    use crate::proto::url::CrawlUrl;

    #[test]
    fn leftovers_come_back_in_the_order_they_came_whether_written_or_not() {
        for is_written in [false, true] {
            let mut leftover = Leftover::new(4, 7);
            let (mut disk, mut order) = (SortedMap::new(), Vec::new());
            for doc_id in 0..10 {
                let url = CrawlUrl::parse(&format!("http://a/{doc_id}")).unwrap();
                leftover.push(Job::at([10, 0, 0, 1].into(), Candidate::seed(doc_id, url)), true);
            }
            assert_eq!((leftover.len(), leftover.spilled(), leftover.len_of("http://a")), (10, 6, 4));
            while is_written && let Some(SpillAsk::Write { chunk, bytes }) = leftover.next_ask() {
                disk.insert(chunk, bytes);
                leftover.written(chunk);
            }
            while leftover.len() > 0 {
                let read = match leftover.make_progress() {
                    true => leftover.take_back(None),
                    false => match leftover.next_ask() {
                        Some(SpillAsk::Read { chunk }) => leftover.take_back(Some((chunk, &disk[&chunk]))),
                        _ => Vec::new(),
                    },
                };
                read.into_iter().for_each(|job| leftover.keep(job, true));
                order.extend(leftover.pop_of("http://a").map(|job| job.candidate.doc_id));
                assert!(leftover.invariants());
            }
            assert_eq!(order, Vec::from_iter(0..10), "written: {is_written}");
        }
    }
}
