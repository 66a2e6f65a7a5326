use super::job::{Job, failed_text};
use super::waiting::FetchedStory;
use crate::base::Now;
use crate::extractor::StoryText;
use crate::rings::Doorbell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Who does jobs.
pub(crate) trait Hands {
    /// How many jobs could be given now.
    fn free(&self) -> usize;

    fn give(&mut self, job: Job, now: Now);

    /// A text that is there, or whose time is over.
    fn take(&mut self, now: Now) -> Option<StoryText>;

    /// When the time of a job is over.
    fn next_due(&self) -> Option<Now>;

    /// Threads that were left to themselves and still run, and whether they are as many as there may be.
    fn left(&self) -> (usize, bool) {
        (0, false)
    }
}

/// What a thread does with a job.
pub(crate) type Work = Arc<dyn Fn(&Job) -> StoryText + Send + Sync>;

/// Threads with a stack of their own, one job each.
pub(crate) struct ThreadHands {
    work: Work,
    deadline_us: u64,
    hands: Vec<Hand>,
    done: Receiver<Done>,
    tell: Sender<Done>,
    bell: Arc<Doorbell>,
    /// Threads that did not come back in time.
    left: Vec<JoinHandle<()>>,
    left_max: usize,
    /// Counts threads, so that one that comes back late is not taken for the one in its place.
    threads: u64,
}

struct Hand {
    /// `None` while there are too many threads that do not come back.
    worker: Option<Worker>,
    open: Option<(FetchedStory, Now)>,
}

struct Worker {
    number: u64,
    jobs: SyncSender<Job>,
    thread: JoinHandle<()>,
}

struct Done {
    number: u64,
    text: StoryText,
}

/// What the threads are called.
pub(crate) const EXTRACTOR_THREAD: &str = "extract";
/// Parsers walk down a page's tree by recursion in places; `extractor` bounds its depth. Only what is used of it takes memory.
pub(crate) const STACK_BYTES: usize = 64 << 20;
/// A page takes milliseconds, the worst of a thousand a twentieth of a second.
pub(crate) const DEADLINE_US: u64 = 10_000_000;
/// Each may hold what a page takes at its worst, and a core.
const LEFT_MAX: usize = 4;

impl ThreadHands {
    pub fn start(count: usize, work: Work, bell: Arc<Doorbell>) -> io::Result<ThreadHands> {
        ThreadHands::with_deadline(count, work, bell, DEADLINE_US, LEFT_MAX)
    }

    pub(super) fn with_deadline(
        count: usize,
        work: Work,
        bell: Arc<Doorbell>,
        deadline_us: u64,
        left_max: usize,
    ) -> io::Result<ThreadHands> {
        let (tell, done) = channel();
        let mut all = ThreadHands {
            work,
            deadline_us,
            hands: Vec::new(),
            done,
            tell,
            bell,
            left: Vec::new(),
            left_max,
            threads: 0,
        };
        for _ in 0..count {
            let worker = Some(all.worker()?);
            all.hands.push(Hand { worker, open: None });
        }
        Ok(all)
    }

    fn worker(&mut self) -> io::Result<Worker> {
        self.threads += 1;
        let number = self.threads;
        let (jobs, given) = sync_channel::<Job>(1);
        let (work, tell, bell) = (self.work.clone(), self.tell.clone(), self.bell.clone());
        let body = move || {
            while let Ok(job) = given.recv() {
                let text = work(&job);
                if tell.send(Done { number, text }).is_err() {
                    return;
                }
                bell.ring_if_asleep();
            }
        };
        let builder = std::thread::Builder::new().name(EXTRACTOR_THREAD.to_string()).stack_size(STACK_BYTES);
        Ok(Worker { number, jobs, thread: builder.spawn(body)? })
    }

    /// Gives hands without a thread a new one, where there may be more.
    fn replace(&mut self) {
        self.left.retain(|thread| !thread.is_finished());
        for index in 0..self.hands.len() {
            if self.hands[index].worker.is_none() && self.left.len() < self.left_max {
                // A machine that has no thread now may have one at the next turn.
                self.hands[index].worker = self.worker().ok();
            }
        }
    }
}

impl Hands for ThreadHands {
    fn free(&self) -> usize {
        self.hands.iter().filter(|hand| hand.worker.is_some() && hand.open.is_none()).count()
    }

    fn give(&mut self, job: Job, now: Now) {
        let free = self.hands.iter_mut().find(|hand| hand.worker.is_some() && hand.open.is_none());
        let Some(hand) = free else { return };
        let Some(worker) = &hand.worker else { return };
        let story = job.story.clone();
        // A thread that is gone is found by the deadline of its job, as one that does not come back.
        let _ = worker.jobs.try_send(job);
        hand.open = Some((story, now));
    }

    fn take(&mut self, now: Now) -> Option<StoryText> {
        while let Ok(done) = self.done.try_recv() {
            let hand = self
                .hands
                .iter_mut()
                .find(|hand| hand.worker.as_ref().is_some_and(|worker| worker.number == done.number));
            if let Some(hand) = hand {
                hand.open = None;
                return Some(done.text);
            }
        }
        self.replace();
        let deadline_us = self.deadline_us;
        let is_late =
            |hand: &Hand| hand.open.as_ref().is_some_and(|(_, since)| now.since_us(*since) >= deadline_us);
        let index = self.hands.iter().position(is_late)?;
        let hand = &mut self.hands[index];
        let (story, _) = hand.open.take()?;
        if let Some(worker) = hand.worker.take() {
            self.left.push(worker.thread);
        }
        self.replace();
        let seconds = deadline_us as f64 / 1e6;
        Some(failed_text(&story, format!("the parser was not done after {seconds} s")))
    }

    fn next_due(&self) -> Option<Now> {
        let opened =
            self.hands.iter().filter_map(|hand| hand.open.as_ref()).map(|(_, since)| *since).min()?;
        Some(opened.plus_us(self.deadline_us))
    }

    fn left(&self) -> (usize, bool) {
        (self.left.len(), self.left.len() >= self.left_max)
    }
}
