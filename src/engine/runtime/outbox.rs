use crate::rings::{Doorbell, Sender};
use std::collections::VecDeque;
use std::sync::Arc;

/// A shard's way to send messages to its owner: what the ring has no room for waits here, in order.
pub(crate) struct Outbox<T> {
    ring: Sender<T>,
    owner: Arc<Doorbell>,
    backlog: VecDeque<T>,
    sent_something: bool,
}

impl<T> Outbox<T> {
    pub fn new(ring: Sender<T>, owner: Arc<Doorbell>) -> Outbox<T> {
        Outbox { ring, owner, backlog: VecDeque::new(), sent_something: false }
    }

    pub fn send(&mut self, message: T) {
        self.sent_something = true;
        if !self.backlog.is_empty() {
            self.backlog.push_back(message);
        } else if let Err(message) = self.ring.push(message) {
            self.backlog.push_back(message);
        }
    }

    /// Once a turn: hands on what waits, and rings for all of it.
    pub fn hand_up(&mut self) {
        while let Some(message) = self.backlog.pop_front() {
            if let Err(message) = self.ring.push(message) {
                self.backlog.push_front(message);
                break;
            }
        }
        if std::mem::take(&mut self.sent_something) {
            self.owner.ring_if_asleep();
        }
    }

    /// Words that wait for room.
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }
}
