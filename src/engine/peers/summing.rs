use super::copies::sum_of_copy;
use crate::engine::runtime::actor::spawn;
use crate::proto::peer_wire::Sum;
use crate::proto::record::SegmentState;
use crate::rings::Doorbell;
use crate::store_server::{Soundness, check_segment, sum_segment};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Sums of files, made on a thread of its own, one after the other: nobody waits for it. The thread is begun with the first of
/// them, and ends with this.
pub(super) struct Summing {
    bell: Arc<Doorbell>,
    thread: Option<Thread>,
    /// Sums that were not taken yet.
    done: Arc<AtomicUsize>,
    /// For a simulation, where there are no threads: what was wanted is made at once.
    at_once: Option<VecDeque<(SumFor, Sum)>>,
}

struct Thread {
    jobs: Sender<(SumFor, Job)>,
    sums: Receiver<(SumFor, Sum)>,
}

/// Who wants a sum, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SumFor {
    Here(u64),
    /// Of a store that was kept.
    Kept(u64),
    Node(u16, u64),
}

/// What is summed up.
#[derive(Debug)]
pub(super) enum Job {
    /// Bytes of a segment of the store in this folder.
    Segment { folder: PathBuf, state: SegmentState },
    /// The records of a segment, by their own checksums: the count is 0 if all can be read, and 1 if not.
    Check { folder: PathBuf, segment: u64 },
    /// The copy of what a node knows, in this folder.
    Knowledge { folder: PathBuf, copy: u64, batch: u64 },
}

/// The disk has other things to do: behind each piece it rests as long as that took, and so long at the least.
const REST: Duration = Duration::from_millis(1);
/// And no longer, as a machine that is busy makes a piece take long.
const REST_MAX: Duration = Duration::from_millis(200);

impl Summing {
    /// The bell is of the thread that takes the sums.
    pub fn new(bell: Arc<Doorbell>) -> Summing {
        Summing { bell, thread: None, done: Arc::default(), at_once: None }
    }

    /// Without a thread.
    pub fn at_once(bell: Arc<Doorbell>) -> Summing {
        Summing { at_once: Some(VecDeque::new()), ..Summing::new(bell) }
    }

    /// Wants a sum. Without a thread to make it, it cannot be had.
    pub fn want(&mut self, who: SumFor, job: Job) -> Result<(), Sum> {
        if let Some(made) = &mut self.at_once {
            made.push_back((who, job.sum(|| {})));
            return Ok(());
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => self.begin().map_err(|_| Sum::Unreadable)?,
        };
        let sent = thread.jobs.send((who, job));
        self.thread = sent.is_ok().then_some(thread);
        sent.map_err(|_| Sum::Unreadable)
    }

    fn begin(&self) -> io::Result<Thread> {
        let (jobs, wanted) = mpsc::channel::<(SumFor, Job)>();
        let (made, sums) = mpsc::channel();
        let (bell, done) = (self.bell.clone(), self.done.clone());
        let begun = spawn("verify", move || {
            for (who, job) in wanted {
                let mut since = Instant::now();
                let sum = job.sum(|| {
                    std::thread::sleep(since.elapsed().clamp(REST, REST_MAX));
                    since = Instant::now();
                });
                // Before it can be taken.
                done.fetch_add(1, Ordering::AcqRel);
                if made.send((who, sum)).is_err() {
                    return;
                }
                bell.ring_if_asleep();
            }
        });
        begun.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Thread { jobs, sums })
    }

    pub fn take(&mut self) -> Option<(SumFor, Sum)> {
        if let Some(made) = &mut self.at_once {
            return made.pop_front();
        }
        let taken = self.thread.as_ref()?.sums.try_recv().ok()?;
        self.done.fetch_sub(1, Ordering::AcqRel);
        Some(taken)
    }

    pub fn has_sums(&self) -> bool {
        let at_once = self.at_once.as_ref().is_some_and(|made| !made.is_empty());
        at_once || self.done.load(Ordering::Acquire) > 0
    }
}

impl Job {
    fn sum(&self, pause: impl FnMut()) -> Sum {
        let sum = match self {
            Job::Segment { folder, state } => {
                sum_segment(folder, state, pause).map(|digest| digest.map(|digest| (state.bytes, digest)))
            }
            Job::Check { folder, segment } => {
                check_segment(folder, *segment, pause).map(|found| match found {
                    Soundness::Sound => Some((0, 0)),
                    Soundness::Damaged => Some((1, 0)),
                    Soundness::Gone => None,
                })
            }
            Job::Knowledge { folder, copy, batch } => sum_of_copy(folder, (*copy, *batch), pause)
                .map(|sum| sum.map(|sum| (sum.documents, sum.digest))),
        };
        match sum {
            Ok(Some((count, digest))) => Sum::Of { count, digest },
            Ok(None) => Sum::Missing,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Sum::Missing,
            Err(_) => Sum::Unreadable,
        }
    }
}
