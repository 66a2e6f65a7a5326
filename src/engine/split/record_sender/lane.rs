use super::sink::{EncodedRecord, SenderShare};
use crate::base::{Key, Now};
use crate::engine::links::{BadCount, Reliable};
use crate::limits::UNCOUNTED_BYTES_MAX;
use crate::rings::Receiver;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One shard's records that are not done with, and whether the store server counts those of its connection.
///
/// A record is done with when the store server has counted it; or, with a store server that does not count, when it is
/// with the kernel.
pub(super) struct Lane {
    records: Receiver<EncodedRecord>,
    share: Arc<SenderShare>,
    reliable: Reliable,
    link: Option<Key>,
    counting: Counting,
    /// The first bytes of a count.
    count: [u8; 8],
    count_len: usize,
    /// What was done with when its last connection ended, and how many have ended there.
    ended_at: (u64, u32),
}

/// Whether the store server counts the records of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// It has no record yet.
    NotAsked,
    /// It did not yet, and there is time until then.
    Unknown {
        until: Now,
    },
    Counts,
    /// It does not: what is with the kernel is done with.
    Silent,
}

/// A store server that has not counted this long after it got its first record does not count.
const SILENCE_US: u64 = 2_000_000;

impl Lane {
    pub fn new(records: Receiver<EncodedRecord>, share: Arc<SenderShare>) -> Lane {
        Lane {
            records,
            share,
            reliable: Reliable::new(UNCOUNTED_BYTES_MAX),
            link: None,
            counting: Counting::NotAsked,
            count: [0; 8],
            count_len: 0,
            ended_at: (0, 0),
        }
    }

    pub fn link(&self) -> Option<Key> {
        self.link
    }

    /// Records that are not done with.
    pub fn uncounted(&self) -> usize {
        self.reliable.waiting()
    }

    /// The shard has handed over records that were not taken yet.
    pub fn has_records(&self) -> bool {
        !self.records.is_empty() && self.reliable.has_room()
    }

    /// Takes what the shard has handed over.
    pub fn take_records(&mut self) {
        while self.reliable.has_room()
            && let Some(record) = self.records.pop()
        {
            self.reliable.put(record);
        }
    }

    /// A connection stands: everything that is not done goes over it, from the start.
    pub fn connected(&mut self, link: Key) {
        self.link = Some(link);
        (self.counting, self.count_len) = (Counting::NotAsked, 0);
        self.reliable.resend();
    }

    /// The connection is gone. How many have ended at the record that is first now, and its bytes.
    pub fn disconnected(&mut self) -> (u32, usize) {
        self.link = None;
        self.reliable.disconnected();
        let (done, _) = self.reliable.done();
        let (ended_at, ends) = self.ended_at;
        self.ended_at = (done, if done == ended_at { ends + 1 } else { 1 });
        (self.ended_at.1, self.reliable.first().map_or(0, <[u8]>::len))
    }

    /// The next bytes to be sent, unless some are on their way.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        self.reliable.piece(Vec::new())
    }

    /// This many more bytes are with the kernel.
    pub fn sent(&mut self, bytes: usize, now: Now) {
        let whole = self.reliable.sent(bytes);
        match self.counting {
            Counting::NotAsked if whole > 0 => {
                self.counting = Counting::Unknown { until: now.plus_us(SILENCE_US) };
            }
            Counting::Silent => self.reliable.sent_is_done(),
            _ => {}
        }
    }

    /// Counts came in. True if they are the first of this connection.
    pub fn counts(&mut self, bytes: &[u8]) -> Result<bool, BadCount> {
        let mut is_first = false;
        for &byte in bytes {
            self.count[self.count_len] = byte;
            self.count_len += 1;
            if self.count_len == self.count.len() {
                self.count_len = 0;
                self.reliable.counted(u64::from_be_bytes(self.count))?;
                is_first |= self.counting != Counting::Counts;
                self.counting = Counting::Counts;
            }
        }
        Ok(is_first)
    }

    /// When the store server is found out as one that does not count.
    pub fn silent_at(&self) -> Option<Now> {
        match self.counting {
            Counting::Unknown { until } if self.link.is_some() => Some(until),
            _ => None,
        }
    }

    /// Looks whether the store server has been silent for too long. True if it is found to be just now.
    pub fn judge(&mut self, now: Now) -> bool {
        let is_silent = self.silent_at().is_some_and(|at| at <= now);
        if is_silent {
            self.counting = Counting::Silent;
            self.reliable.sent_is_done();
        }
        is_silent
    }

    /// Lets the shard, and those who wait for its records, know what is done with. True if that has moved.
    pub fn publish(&self) -> bool {
        let (done, done_bytes) = self.reliable.done();
        self.share.durable_bytes.store(done_bytes, Ordering::Relaxed);
        self.share.durable.swap(done, Ordering::AcqRel) != done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::{Sender, ring};

    const START: Now = Now::ZERO;

    fn lane(records: &[&str]) -> (Lane, Sender<EncodedRecord>) {
        let (sender, receiver) = ring(8);
        records.iter().for_each(|record| sender.push(record.as_bytes().to_vec()).unwrap());
        let mut lane = Lane::new(receiver, Arc::default());
        lane.take_records();
        (lane, sender)
    }

    fn done(lane: &Lane) -> u64 {
        lane.publish();
        lane.share.durable.load(Ordering::Relaxed)
    }

    #[test]
    fn counts_come_in_pieces_and_half_a_count_ends_with_its_connection() {
        let (mut lane, _) = lane(&["one", "two"]);
        lane.connected(Key::new(0, 0));
        assert_eq!(lane.piece().unwrap(), b"onetwo");
        for byte in 1u64.to_be_bytes() {
            assert_eq!(done(&lane), 0);
            lane.counts(&[byte]).unwrap();
        }
        assert_eq!(done(&lane), 1, "counted before it was known to be sent");
        lane.sent(6, START);
        assert_eq!(lane.counts(&3u64.to_be_bytes()), Err(BadCount { count: 3, sent: 2 }));
        lane.counts(&[0, 0, 0]).unwrap();
        assert_eq!(lane.disconnected(), (1, 3));
        lane.connected(Key::new(0, 1));
        assert_eq!(lane.piece().unwrap(), b"two");
        assert_eq!(lane.counts(&1u64.to_be_bytes()), Ok(true));
        assert_eq!((done(&lane), lane.uncounted()), (2, 0));
    }

    #[test]
    fn a_store_server_that_never_counts_is_taken_as_such_after_two_seconds() {
        let (mut lane, records) = lane(&["one"]);
        lane.connected(Key::new(0, 0));
        lane.piece().unwrap();
        assert!(!lane.judge(START.plus_us(99 * SILENCE_US)), "no record is whole with the kernel");
        lane.sent(2, START);
        assert_eq!(lane.silent_at(), None);
        lane.sent(1, START);
        records.push(b"two".to_vec()).unwrap();
        lane.take_records();
        assert!(!lane.judge(START.plus_us(SILENCE_US - 1)));
        assert!(lane.judge(START.plus_us(SILENCE_US)));
        assert_eq!((done(&lane), lane.uncounted()), (1, 1), "the one that was sent");
        assert!(!lane.judge(START.plus_us(9 * SILENCE_US)), "said once");
        lane.piece().unwrap();
        lane.sent(3, START);
        assert_eq!(done(&lane), 2, "done follows the sending");
        // And then it counts after all.
        records.push(b"three".to_vec()).unwrap();
        lane.take_records();
        lane.piece().unwrap();
        assert_eq!(lane.counts(&2u64.to_be_bytes()), Ok(true));
        lane.sent(5, START);
        assert_eq!(done(&lane), 2, "back to counting");
        lane.counts(&3u64.to_be_bytes()).unwrap();
        assert_eq!(done(&lane), 3);
    }

    #[test]
    fn ends_at_one_record_are_told_apart_from_ends_at_others() {
        let (mut lane, _) = lane(&["one", "three"]);
        for ends in 1..=3 {
            lane.connected(Key::new(0, ends));
            lane.piece().unwrap();
            assert_eq!(lane.disconnected(), (ends, 3));
        }
        lane.connected(Key::new(0, 4));
        lane.piece().unwrap();
        lane.counts(&1u64.to_be_bytes()).unwrap();
        assert_eq!(lane.disconnected(), (1, 5));
    }
}
