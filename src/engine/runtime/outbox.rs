use crate::rings::{Doorbell, Sender};
use std::collections::VecDeque;
use std::sync::Arc;

/// A shard's way to say words to its owner: what the ring has no room for waits here, in order.
pub(crate) struct Outbox<T> {
    ring: Sender<T>,
    owner: Arc<Doorbell>,
    backlog: VecDeque<T>,
    said_something: bool,
}

impl<T> Outbox<T> {
    pub fn new(ring: Sender<T>, owner: Arc<Doorbell>) -> Outbox<T> {
        Outbox { ring, owner, backlog: VecDeque::new(), said_something: false }
    }

    pub fn say(&mut self, word: T) {
        self.said_something = true;
        if !self.backlog.is_empty() {
            self.backlog.push_back(word);
        } else if let Err(word) = self.ring.push(word) {
            self.backlog.push_back(word);
        }
    }

    /// Once a turn: hands on what waits, and rings for all of it.
    pub fn hand_up(&mut self) {
        while let Some(word) = self.backlog.pop_front() {
            if let Err(word) = self.ring.push(word) {
                self.backlog.push_front(word);
                break;
            }
        }
        if std::mem::take(&mut self.said_something) {
            self.owner.ring_if_asleep();
        }
    }

    /// Words that wait for room.
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }
}
