use crate::limits::{DONE_RING_WORDS, WORK_RING_WORDS};
use crate::rings::{Doorbell, Receiver, Sender, ring};
use crate::store_server::ShardShare;
use std::collections::VecDeque;
use std::sync::Arc;

/// How far the records of a shard are safe, wherever they go.
pub trait DurablePoint: Send + Sync {
    /// Sequence number of the last record that survives anything, as far as is known here.
    fn durable(&self) -> u64;
}

impl DurablePoint for ShardShare {
    fn durable(&self) -> u64 {
        ShardShare::durable(self)
    }
}

/// Of a shard that stores nothing.
impl DurablePoint for () {
    fn durable(&self) -> u64 {
        0
    }
}

/// A dealer's side of one shard: messages `M` go down, replies `R` come up, and what a reply says (`H`) is held back until
/// the record behind it is durable.
pub(crate) struct ShardLane<M, R, H> {
    work: Sender<M>,
    replies: Receiver<R>,
    bell: Arc<Doorbell>,
    durable: Arc<dyn DurablePoint>,
    epoch: u32,
    /// Messages its ring had no room for.
    dealt: VecDeque<M>,
    /// What waits to be durable, in the order of the sequence.
    held: VecDeque<(u64, H)>,
    is_drained: bool,
}

/// The shard's side.
pub struct LaneEnd<M, R> {
    pub work: Receiver<M>,
    pub replies: Sender<R>,
}

impl<M, R> Clone for LaneEnd<M, R> {
    fn clone(&self) -> LaneEnd<M, R> {
        LaneEnd { work: self.work.clone(), replies: self.replies.clone() }
    }
}

impl<M, R, H> ShardLane<M, R, H> {
    pub fn new(bell: Arc<Doorbell>, durable: Arc<dyn DurablePoint>) -> (ShardLane<M, R, H>, LaneEnd<M, R>) {
        let (work, work_end) = ring(WORK_RING_WORDS);
        let (replies_end, replies) = ring(DONE_RING_WORDS);
        let lane = ShardLane {
            work,
            replies,
            bell,
            durable,
            epoch: 0,
            dealt: VecDeque::new(),
            held: VecDeque::new(),
            is_drained: false,
        };
        (lane, LaneEnd { work: work_end, replies: replies_end })
    }

    /// Deaths of the shard so far; a message for a shard that died is not for the next.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The message goes with the next `flush`.
    pub fn deal(&mut self, message: M) {
        self.dealt.push_back(message);
    }

    /// Messages that wait for room.
    pub fn dealt(&self) -> usize {
        self.dealt.len()
    }

    /// Wakes the shard, so that it sees that the process cannot go on.
    pub fn wake(&self) {
        self.bell.ring_if_asleep();
    }

    /// Hands on what was dealt, as far as the ring has room. True if anything went.
    pub fn flush(&mut self) -> bool {
        let mut busy = false;
        while let Some(message) = self.dealt.pop_front() {
            if let Err(message) = self.work.push(message) {
                self.dealt.push_front(message);
                break;
            }
            busy = true;
        }
        if busy {
            self.bell.ring_if_asleep();
        }
        busy
    }

    pub fn receive(&mut self) -> Option<R> {
        self.replies.pop()
    }

    /// Holds something back until its record is durable.
    pub fn hold(&mut self, sequence: u64, what: H) {
        self.held.push_back((sequence, what));
    }

    pub fn held(&self) -> impl Iterator<Item = &H> {
        self.held.iter().map(|(_, what)| what)
    }

    pub fn let_go_of_held(&mut self) {
        self.held.clear();
    }

    fn has_durable(&self) -> bool {
        self.held.front().is_some_and(|(sequence, _)| *sequence <= self.durable.durable())
    }

    /// The next of what was held whose record is durable.
    pub fn next_durable(&mut self) -> Option<H> {
        if !self.has_durable() {
            return None;
        }
        self.held.pop_front().map(|(_, what)| what)
    }

    /// Whether `receive` or `next_durable` would give something.
    pub fn has_messages(&self) -> bool {
        !self.replies.is_empty() || self.has_durable()
    }

    /// The shard died and another took its place: what it was dealt and has not taken is forgotten.
    pub fn restarted(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.dealt.clear();
    }

    /// Keeps of what was dealt and not taken only what `keep` says.
    pub fn retain(&mut self, keep: impl Fn(&M) -> bool) {
        self.dealt.retain(keep);
    }

    pub fn drained(&mut self) {
        self.is_drained = true;
    }

    /// The shard is drained, and all that it said is dealt with.
    pub fn is_over(&self) -> bool {
        self.is_drained && self.held.is_empty()
    }
}
