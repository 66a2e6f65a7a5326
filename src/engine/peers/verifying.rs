use super::Sends;
use super::copying::Copying;
use super::known_sum::KnownSum;
use super::page_folders::PageFolders;
use super::pages_out::PagesOut;
use super::summing::{Job, SumFor, Summing};
use crate::base::{Now, SortedMap, SortedSet};
use crate::limits::{SHORTFALLS_MAX, SUMS_ASKED_MAX};
use crate::proto::peer_wire::{PeerWord, ShortKind, Shortfall, StoreName, Sum, SumOf, Verified};
use crate::proto::record::SegmentState;
use crate::store_server::sealed_segments;
use std::collections::VecDeque;
use std::path::PathBuf;

/// What this node has, compared with the copy of it, as nodes ask for it: one after the other.
///
/// ```text
///   VERIFY_ASK ──► until the copy has what there was then ──► SUM_ASK: a segment, or what is known ──►
///      the same sum here and there? ── no ──► once more, as it may have changed meanwhile ── no ──► a shortfall ──► VERIFIED
/// ```
pub(super) struct Verifying {
    waiting: VecDeque<Asked>,
    run: Option<Run>,
    /// The number of the sum that is asked for next.
    next: u64,
}

/// Who asked, and under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    node: u16,
    id: u64,
}

/// What this node has, and where the copy of it is.
#[derive(Clone, Copy)]
pub(super) struct Originals<'a> {
    pub copying: &'a Copying,
    pub pages_out: &'a PagesOut,
    pub folders: &'a PageFolders,
}

struct Run {
    asked: Asked,
    begun_at: Now,
    /// Whether the copy is in step is looked at again then.
    look_at: Now,
    /// Who has the copy, once it is compared.
    follower: Option<u16>,
    has_begun: bool,
    stores: SortedMap<StoreName, PathBuf>,
    queue: VecDeque<Task>,
    /// Tasks with their numbers.
    open: SortedMap<u64, Open>,
    /// What was not the same, and is compared once more then.
    again: Vec<Task>,
    again_at: Option<Now>,
    is_second: bool,
    verified: Verified,
    short: SortedSet<Shortfall>,
    told_at: Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Segment(StoreName, SegmentState),
    Knowledge(u64, KnownSum),
    /// The records of a segment here, by their own checksums.
    Check(StoreName, u64, Cause),
}

/// Why records are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The node that they are of is gone.
    Kept,
    /// Nothing could be said of the segment.
    Untold,
    /// Its copy has other bytes: which of the two is wrong?
    Differs,
}

struct Open {
    task: Task,
    here: Option<Sum>,
    there: Option<Sum>,
    asked_at: Now,
}

/// A copy is to have what there is within this, or it is behind.
const IN_STEP_US: u64 = 10_000_000;
/// What is not the same is compared again after this.
const AGAIN_US: u64 = 3_000_000;
/// A segment is summed up within this.
const SUM_US: u64 = 300_000_000;
/// Whoever asked is told this often how far it is.
const TELL_US: u64 = 2_000_000;

impl Verifying {
    /// `starts` is how often this node was started: no number of an earlier process is one of this.
    pub fn new(starts: u32) -> Verifying {
        Verifying { waiting: VecDeque::new(), run: None, next: u64::from(starts) << 32 }
    }

    /// A node wants it to be compared. What it asked for before is of no use any more.
    pub fn asked(&mut self, node: u16, id: u64) {
        self.waiting.retain(|asked| asked.node != node);
        self.run.take_if(|run| run.asked.node == node);
        self.waiting.push_back(Asked { node, id });
    }

    pub fn down(&mut self, node: u16) {
        self.waiting.retain(|asked| asked.node != node);
        self.run.take_if(|run| run.asked.node == node);
        if let Some(run) = self.run.as_mut().filter(|run| run.follower == Some(node)) {
            run.give_up();
        }
    }

    pub fn summed_here(&mut self, id: u64, sum: Sum) {
        if let Some(open) = self.run.as_mut().and_then(|run| run.open.get_mut(&id)) {
            open.here = Some(sum);
        }
    }

    pub fn summed_there(&mut self, node: u16, id: u64, sum: Sum) {
        let run = self.run.as_mut().filter(|run| run.follower == Some(node));
        if let Some(open) = run.and_then(|run| run.open.get_mut(&id)) {
            open.there = Some(sum);
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        let run = self.run.as_ref()?;
        let step = (!run.has_begun).then_some(run.look_at);
        let sums = run.open.values().map(|open| open.asked_at.plus_us(SUM_US)).min();
        [step, sums, run.again_at, Some(run.told_at.plus_us(TELL_US))].into_iter().flatten().min()
    }

    /// Goes on. Says who is to be told what.
    pub fn turn(
        &mut self,
        now: Now,
        originals: Originals<'_>,
        summing: &mut Summing,
        wires: &mut dyn Sends,
    ) -> Option<(u16, u64, Verified)> {
        if self.run.is_none() {
            self.run = self.waiting.pop_front().map(|asked| Run::new(asked, now));
        }
        let run = self.run.as_mut()?;
        // What was compared is with another node now.
        if run.follower.is_some() && originals.copying.follower() != run.follower {
            *run = Run::new(run.asked, now);
        }
        run.look_at = now.plus_us(LOOK_US);
        if !run.has_begun && run.may_begin(now, originals, wires) {
            run.begin(originals);
        }
        run.give_up_late(now);
        run.compare(now);
        if run.has_begun && run.open.is_empty() && run.queue.is_empty() {
            run.look_again(now, originals);
        }
        while run.open.len() < SUMS_ASKED_MAX {
            let Some(task) = run.queue.pop_front() else { break };
            self.next += 1;
            let open = run.start(self.next, task, now, summing, wires);
            run.open.insert(self.next, open);
        }
        let is_done = run.has_begun && run.open.is_empty() && run.queue.is_empty() && run.again.is_empty();
        if !is_done && now.since_us(run.told_at) < TELL_US {
            return None;
        }
        run.told_at = now;
        let (Asked { node, id }, verified) = (run.asked, run.verified(is_done));
        if is_done {
            self.run = None;
        }
        Some((node, id, verified))
    }
}

/// Whether the copy is in step is looked at this often.
const LOOK_US: u64 = 100_000;

impl Run {
    fn new(asked: Asked, now: Now) -> Run {
        Run {
            asked,
            begun_at: now,
            look_at: now,
            follower: None,
            has_begun: false,
            stores: SortedMap::new(),
            queue: VecDeque::new(),
            open: SortedMap::new(),
            again: Vec::new(),
            again_at: None,
            is_second: false,
            verified: Verified::default(),
            short: SortedSet::new(),
            told_at: now,
        }
    }

    /// Whether the copy has what there was when it was asked for, or has had the time for it.
    fn may_begin(&mut self, now: Now, originals: Originals<'_>, wires: &dyn Sends) -> bool {
        let Originals { copying, pages_out, .. } = originals;
        self.follower = copying.follower();
        let Some(follower) = self.follower else { return true };
        self.verified.follower = follower;
        let (knows, has) = (copying.is_safe_since(self.begun_at), pages_out.is_safe_since(self.begun_at));
        let is_linked = wires.is_linked(follower);
        if is_linked && knows && has {
            return true;
        }
        if now.since_us(self.begun_at) < IN_STEP_US {
            return false;
        }
        match is_linked {
            true => {
                self.short.extend((!knows).then(|| Shortfall::of(ShortKind::KnowledgeBehind)));
                self.short.extend((!has).then(|| Shortfall::of(ShortKind::PagesBehind)));
            }
            false => self.give_up(),
        }
        true
    }

    /// Makes the list of all that is compared.
    fn begin(&mut self, originals: Originals<'_>) {
        self.has_begun = true;
        let stores = originals.folders.stores();
        if stores.is_err() {
            self.short.insert(Shortfall::of(ShortKind::Unreadable));
        }
        self.stores = stores.unwrap_or_default();
        for (store, folder) in self.stores.iter().filter(|(store, _)| **store != StoreName::OWN) {
            match sealed_segments(folder) {
                Ok(segments) => {
                    let kept = segments.into_iter().map(|segment| Task::Check(*store, segment, Cause::Kept));
                    self.queue.extend(kept);
                }
                Err(_) => {
                    let short = Shortfall { store: *store, ..Shortfall::of(ShortKind::Unreadable) };
                    self.short.insert(short);
                }
            }
        }
        let tasks = self.tasks(originals);
        self.queue.extend(tasks);
    }

    /// What is compared with the copy.
    fn tasks(&self, originals: Originals<'_>) -> Vec<Task> {
        let held = originals.pages_out.held_there().filter(|_| self.follower.is_some());
        let mut tasks = Vec::new();
        if let Some(held) = held {
            // Copies of nodes that are about to leave are compared by those.
            let is_ours = |store: &StoreName| self.stores.contains_key(store);
            let segments = held.segments.into_iter().filter(|(store, _)| is_ours(store));
            tasks.extend(segments.map(|(store, state)| Task::Segment(store, state)));
            let untold = held.untold.into_iter().filter(|(store, _)| is_ours(store));
            tasks.extend(untold.map(|(store, segment)| Task::Check(store, segment, Cause::Untold)));
        }
        let known = originals.copying.told().filter(|_| self.follower.is_some());
        tasks.extend(known.map(|(copy, sum)| Task::Knowledge(copy, sum)));
        tasks
    }

    fn start(&mut self, id: u64, task: Task, now: Now, summing: &mut Summing, wires: &mut dyn Sends) -> Open {
        let folder = |store: &StoreName| self.stores.get(store).cloned().unwrap_or_default();
        let (job, of) = match task {
            Task::Segment(store, state) => {
                (Some(Job::Segment { folder: folder(&store), state }), Some(SumOf::Segment { store, state }))
            }
            Task::Knowledge(copy, KnownSum { batch, .. }) => (None, Some(SumOf::Knowledge { copy, batch })),
            Task::Check(store, segment, _) => (Some(Job::Check { folder: folder(&store), segment }), None),
        };
        let mut open = Open { task, here: None, there: None, asked_at: now };
        match (job, task) {
            (Some(job), _) => open.here = summing.want(SumFor::Here(id), job).err(),
            (None, Task::Knowledge(_, KnownSum { documents: count, digest, .. })) => {
                open.here = Some(Sum::Of { count, digest });
            }
            (None, _) => {}
        }
        if let (Some(of), Some(follower)) = (of, self.follower) {
            wires.send(follower, &PeerWord::SumAsk { id, of });
        }
        open
    }

    /// Takes those of which both sums are there.
    fn compare(&mut self, now: Now) {
        let is_there = |open: &Open| {
            open.here.is_some() && (open.there.is_some() || matches!(open.task, Task::Check(..)))
        };
        let ids: Vec<u64> = self.open.iter().filter(|(_, open)| is_there(open)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(Open { task, here, there, .. }) = self.open.remove(&id) else { continue };
            match (task, here, there) {
                (Task::Check(store, segment, cause), Some(here), _) => {
                    self.checked(store, segment, cause, here);
                }
                (task, Some(here), Some(there)) if here == there && matches!(here, Sum::Of { .. }) => {
                    self.is_same(task);
                }
                (task, Some(here), Some(there)) if self.is_second => self.differs(task, here, there),
                (task, ..) => {
                    self.again.push(task);
                    self.again_at = Some(now.plus_us(AGAIN_US));
                }
            }
        }
    }

    fn is_same(&mut self, task: Task) {
        match task {
            Task::Segment(_, state) => {
                self.verified.segments += 1;
                self.verified.bytes += state.bytes;
            }
            Task::Knowledge(_, sum) => self.verified.documents = sum.documents,
            Task::Check(..) => {}
        }
    }

    /// They are not the same for the second time.
    fn differs(&mut self, task: Task, here: Sum, there: Sum) {
        let kind = match (task, here, there) {
            // The store let it go, or packed it: there is another copy by now.
            (_, Sum::Missing, _) => return,
            (Task::Segment(store, state), Sum::Of { .. }, Sum::Of { .. }) => {
                return self.queue.push_back(Task::Check(store, state.segment, Cause::Differs));
            }
            (_, Sum::Unreadable, _) => ShortKind::Unreadable,
            (Task::Knowledge(..), _, Sum::Of { .. }) => ShortKind::KnowledgeDiffers,
            (Task::Knowledge(..), _, Sum::Missing) => ShortKind::KnowledgeMissing,
            (Task::Knowledge(..), _, Sum::Unreadable) => ShortKind::KnowledgeUnreadable,
            (_, _, Sum::Unreadable) => ShortKind::CopyUnreadable,
            _ => ShortKind::CopyMissing,
        };
        self.short.insert(match task.key() {
            Some((store, segment)) => Shortfall { kind, store, segment },
            None => Shortfall::of(kind),
        });
    }

    fn checked(&mut self, store: StoreName, segment: u64, cause: Cause, here: Sum) {
        let kind = match (here, cause) {
            (Sum::Unreadable, _) => ShortKind::Unreadable,
            (Sum::Of { count: 1.., .. }, _) => ShortKind::Damaged,
            (Sum::Of { .. }, Cause::Differs) => ShortKind::CopyDiffers,
            (Sum::Of { .. }, Cause::Kept) => {
                self.verified.kept += 1;
                return;
            }
            // It was let go meanwhile, or is empty.
            (Sum::Of { .. } | Sum::Missing, _) => return,
        };
        self.short.insert(Shortfall { kind, store, segment });
    }

    /// What was not the same is compared once more, as it is by now.
    fn look_again(&mut self, now: Now, originals: Originals<'_>) {
        if self.again_at.is_none_or(|at| now < at) {
            return;
        }
        (self.again_at, self.is_second) = (None, true);
        let again: SortedSet<_> = std::mem::take(&mut self.again).iter().map(Task::key).collect();
        let tasks = self.tasks(originals).into_iter();
        self.queue =
            tasks.filter(|task| !matches!(task, Task::Check(..)) && again.contains(&task.key())).collect();
        if originals.pages_out.held_there().is_none() {
            self.give_up();
        }
    }

    /// The follower says nothing any more.
    fn give_up(&mut self) {
        self.short.insert(Shortfall::of(ShortKind::NoAnswer));
        let is_check = |task: &Task| matches!(task, Task::Check(..));
        self.queue.retain(is_check);
        self.open.retain(|_, open| is_check(&open.task));
        (self.again, self.again_at, self.follower) = (Vec::new(), None, None);
    }

    fn give_up_late(&mut self, now: Now) {
        let is_late = |open: &Open| open.there.is_none() && now.since_us(open.asked_at) >= SUM_US;
        if self.open.values().any(|open| is_late(open) && !matches!(open.task, Task::Check(..))) {
            self.give_up();
        }
    }

    fn verified(&self, is_done: bool) -> Verified {
        let short = self.short.iter().take(SHORTFALLS_MAX).copied().collect();
        let more = self.short.len().saturating_sub(SHORTFALLS_MAX) as u64;
        Verified { is_done, short, more, ..self.verified.clone() }
    }
}

impl Task {
    /// The segment that it is about; nothing if it is about what is known.
    fn key(&self) -> Option<(StoreName, u64)> {
        match *self {
            Task::Segment(store, state) => Some((store, state.segment)),
            Task::Check(store, segment, _) => Some((store, segment)),
            Task::Knowledge(..) => None,
        }
    }
}
