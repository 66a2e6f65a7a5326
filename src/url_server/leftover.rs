use crate::proto::lines::Job;
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;

/// URLs that found no place in the table: per host, in the order they came, and the hosts in theirs.
#[derive(Default)]
pub(super) struct Leftover {
    by_host: RapidHashMap<Box<str>, VecDeque<Job>>,
    /// Hosts without a slot, in order of arrival.
    hosts: VecDeque<Box<str>>,
    len: usize,
}

impl Leftover {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Keeps a job. `slotless` says that its host has no slot, so that it must be offered one.
    pub(super) fn push(&mut self, job: Job, slotless: bool) {
        self.len += 1;
        let origin = job.candidate.url.origin();
        if let Some(queue) = self.by_host.get_mut(origin) {
            queue.push_back(job);
            return;
        }
        if slotless {
            self.hosts.push_back(origin.into());
        }
        self.by_host.insert(origin.into(), VecDeque::from([job]));
    }

    /// The oldest URL of one host.
    pub(super) fn pop_of(&mut self, origin: &str) -> Option<Job> {
        let queue = self.by_host.get_mut(origin)?;
        let job = queue.pop_front();
        if queue.is_empty() {
            self.by_host.remove(origin);
        }
        self.len -= usize::from(job.is_some());
        job
    }

    pub(super) fn holds(&self, origin: &str) -> bool {
        self.by_host.contains_key(origin)
    }

    /// The host that has waited longest for a slot.
    pub(super) fn first_host(&mut self) -> Option<&str> {
        while let Some(origin) = self.hosts.front() {
            if self.by_host.contains_key(origin) {
                break;
            }
            self.hosts.pop_front();
        }
        self.hosts.front().map(|origin| &**origin)
    }

    /// Takes back a job that `pop_of` gave, to the place it had.
    pub(super) fn put_first(&mut self, job: Job) {
        self.len += 1;
        self.by_host.entry(job.candidate.url.origin().into()).or_default().push_front(job);
    }

    /// The first host got a slot.
    pub(super) fn first_host_placed(&mut self) {
        self.hosts.pop_front();
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Job> + '_ {
        self.len = 0;
        self.hosts.clear();
        self.by_host.drain().flat_map(|(_, jobs)| jobs)
    }
}
