use crate::base::Now;
use crate::proto::peer_wire::TicketKey;
use crate::rings::Doorbell;
use crate::url_server::LoanWord;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Between the shards of a node, which want addresses and hosts, and whatever gets tickets for them from other nodes.
pub struct LoanDesk {
    said: Mutex<Vec<(usize, ShardSaid)>>,
    has_said: AtomicBool,
    /// Of whoever hears it.
    bell: Mutex<Option<Arc<Doorbell>>>,
    shards: Vec<Counter>,
    /// Until when hosts may be asked at all, in microseconds.
    right_until: AtomicU64,
    /// Whether hosts are lent, too.
    lends_hosts: AtomicBool,
    /// How often a shard began.
    begun: AtomicU64,
}

/// What is to be told to one shard.
struct Counter {
    lent: Mutex<Vec<LentKey>>,
    has_lent: AtomicBool,
    bell: Arc<Doorbell>,
}

/// What a shard says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardSaid {
    /// It begins, perhaps anew: it wants nothing, and what it had open is gone.
    Begins,
    Word(LoanWord),
}

/// An address or a host that a shard may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LentKey {
    pub key: TicketKey,
    pub want: u64,
    pub due: Now,
    pub until: Now,
    pub part: Option<u8>,
    pub line: String,
}

impl LoanDesk {
    /// `bells` are those of the shards.
    pub fn new(bells: impl IntoIterator<Item = Arc<Doorbell>>) -> LoanDesk {
        let counter = |bell| Counter { lent: Mutex::default(), has_lent: AtomicBool::new(false), bell };
        LoanDesk {
            said: Mutex::default(),
            has_said: AtomicBool::new(false),
            bell: Mutex::default(),
            shards: bells.into_iter().map(counter).collect(),
            right_until: AtomicU64::new(0),
            lends_hosts: AtomicBool::new(false),
            begun: AtomicU64::new(0),
        }
    }

    /// Rings this bell when a shard says something.
    pub fn rings(&self, bell: Arc<Doorbell>) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell);
    }

    // For shards ------------------------------------------------------------------------------------------

    /// A shard begins, perhaps anew. The number that its wants are above.
    pub fn begin(&self, shard: usize) -> u64 {
        // What was for the one before it is not for this one.
        drop(self.take_lent(shard));
        self.say(shard, [ShardSaid::Begins].into_iter());
        self.begun.fetch_add(1, Ordering::Relaxed) << 32
    }

    pub fn say(&self, shard: usize, said: impl Iterator<Item = ShardSaid>) {
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.extend(said.map(|said| (shard, said)));
        if all.len() == before {
            return;
        }
        self.has_said.store(true, Ordering::Release);
        drop(all);
        if let Some(bell) = &*self.bell.lock().unwrap_or_else(PoisonError::into_inner) {
            bell.ring_if_asleep();
        }
    }

    pub fn right_until(&self) -> Now {
        Now::from_us(self.right_until.load(Ordering::Acquire))
    }

    /// Whether hosts are lent, too. It is known before there is a right.
    pub fn lends_hosts(&self) -> bool {
        self.lends_hosts.load(Ordering::Acquire)
    }

    pub fn has_lent(&self, shard: usize) -> bool {
        self.shards[shard].has_lent.load(Ordering::Acquire)
    }

    pub fn take_lent(&self, shard: usize) -> Vec<LentKey> {
        let counter = &self.shards[shard];
        let mut lent = counter.lent.lock().unwrap_or_else(PoisonError::into_inner);
        counter.has_lent.store(false, Ordering::Release);
        std::mem::take(&mut *lent)
    }

    // For whoever lends -----------------------------------------------------------------------------------

    pub fn has_said(&self) -> bool {
        self.has_said.load(Ordering::Acquire)
    }

    pub fn take_said(&self) -> Vec<(usize, ShardSaid)> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_said.store(false, Ordering::Release);
        std::mem::take(&mut *said)
    }

    pub fn lend(&self, shard: usize, lent: LentKey) {
        let Some(counter) = self.shards.get(shard) else { return };
        counter.lent.lock().unwrap_or_else(PoisonError::into_inner).push(lent);
        counter.has_lent.store(true, Ordering::Release);
        counter.bell.ring_if_asleep();
    }

    pub fn set_lends_hosts(&self, lends: bool) {
        self.lends_hosts.store(lends, Ordering::Release);
    }

    /// Every shard hears of it at its next turn, and at once if it sleeps.
    pub fn set_right(&self, until: Now) {
        let before = self.right_until.swap(until.us(), Ordering::AcqRel);
        if before != until.us() {
            self.shards.iter().for_each(|counter| counter.bell.ring_if_asleep());
        }
    }
}
