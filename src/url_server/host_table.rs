use super::host::{Host, IDLE_LISTED, RESTING, WaitsIn};
use super::host_names::HostNames;
use super::niceness::Pace;
use crate::base::Now;
use hashbrown::HashTable;
use rapidhash::fast::RandomState;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// The rows, and where each host's is. A row belongs to no host for ever: when it has been empty and its host's
/// pause is over, any host may take it. One host is never in two rows.
pub(super) struct HostTable {
    pub rows: Vec<Host>,
    pub names: HostNames,
    rows_max: usize,
    by_origin: HashTable<u32>,
    hashes: RandomState,
    /// Rows that came to rest, oldest first; some may be busy again.
    idle: VecDeque<u32>,
    resting: usize,
    seed: u32,
}

/// A row for a host that had none.
pub(super) enum Vacancy {
    /// This row, which nobody had before.
    Fresh(u32),
    /// This row, and the host that had it.
    Reused(u32, Box<(Box<str>, Host)>),
    /// None yet; one may be free then.
    None { soonest: Now },
}

impl HostTable {
    /// The index is made for all rows at once, so that it never has to be built anew while hosts wait. Generations
    /// start at a point of `seed`'s choosing: a spider may still speak of what another process gave it.
    pub fn new(rows_max: usize, seed: u32) -> HostTable {
        HostTable {
            rows: Vec::new(),
            names: HostNames::default(),
            rows_max,
            by_origin: HashTable::with_capacity(rows_max),
            hashes: RandomState::default(),
            idle: VecDeque::new(),
            resting: 0,
            seed,
        }
    }

    pub fn find(&self, origin: &str) -> Option<u32> {
        let (rows, names) = (&self.rows, &self.names);
        let hash = self.hashes.hash_one(origin.as_bytes());
        let is = |&slot: &u32| names.bytes(rows[slot as usize].name) == origin.as_bytes();
        self.by_origin.find(hash, is).copied()
    }

    pub fn origin(&self, slot: u32) -> &str {
        self.names.get(self.rows[slot as usize].name)
    }

    /// Rows with something to do.
    pub fn busy(&self) -> usize {
        self.rows.len() - self.resting
    }

    /// Whether a host that has no row could get one at once, pauses aside.
    pub fn has_vacancy(&self) -> bool {
        self.busy() < self.rows_max
    }

    /// Finds a row for a host: a fresh one, or the one that has been idle longest and whose pause is over.
    /// Forgetting that host forgets nothing that niceness needs before its next request.
    pub fn place(&mut self, origin: &str, ip: u32, due: Now, now: Now) -> Vacancy {
        let vacancy = if self.rows.len() < self.rows_max {
            let slot = self.rows.len() as u32;
            let generation = self.seed.wrapping_add(slot.wrapping_mul(0x9e37_79b9)) >> 8;
            self.rows.push(Host::new(self.names.insert(origin), ip, due, generation));
            self.resting += 1;
            Vacancy::Fresh(slot)
        } else {
            let slot = match self.idle_row(now) {
                Ok(slot) => slot,
                Err(soonest) => return Vacancy::None { soonest },
            };
            self.unlist(slot);
            let before: Box<str> = self.origin(slot).into();
            let row = &mut self.rows[slot as usize];
            debug_assert_eq!(row.waits_in, WaitsIn::Rest);
            let fresh = Host::new(self.names.replace(row.name, origin), ip, due, row.generation);
            let host = std::mem::replace(row, fresh);
            if self.names.is_wasteful() {
                self.names.gather(self.rows.iter_mut().map(|host| &mut host.name));
            }
            Vacancy::Reused(slot, Box::new((before, host)))
        };
        let (Vacancy::Fresh(slot) | Vacancy::Reused(slot, _)) = vacancy else {
            unreachable!("a row was found");
        };
        let (rows, names, hashes) = (&self.rows, &self.names, &self.hashes);
        let hash = hashes.hash_one(origin.as_bytes());
        self.by_origin
            .insert_unique(hash, slot, |&slot| hashes.hash_one(names.bytes(rows[slot as usize].name)));
        vacancy
    }

    /// A host has something to do again.
    pub fn wake(&mut self, slot: u32) {
        let host = &mut self.rows[slot as usize];
        if host.set(RESTING, false) {
            self.resting -= 1;
        }
    }

    /// A host has nothing to do: its row may go to another.
    pub fn rest(&mut self, slot: u32) {
        let host = &mut self.rows[slot as usize];
        if !host.set(RESTING, true) {
            self.resting += 1;
        }
        host.window = None;
        if !host.set(IDLE_LISTED, true) {
            self.idle.push_back(slot);
        }
    }

    fn unlist(&mut self, slot: u32) {
        let hash = self.hashes.hash_one(self.names.bytes(self.rows[slot as usize].name));
        if let Ok(entry) = self.by_origin.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
    }

    /// The oldest row that is idle still and whose pause is over, or when there may be one.
    fn idle_row(&mut self, now: Now) -> Result<u32, Now> {
        // The rows that are not looked at this time may be free already.
        let mut soonest =
            if self.idle.len() > IDLE_LOOKED_AT { now.plus_us(IDLE_AGAIN_US) } else { Now::NEVER };
        for _ in 0..self.idle.len().min(IDLE_LOOKED_AT) {
            let Some(slot) = self.idle.pop_front() else {
                break;
            };
            let host = &mut self.rows[slot as usize];
            let due = Pace::due(&host.pace);
            if !host.is(RESTING) {
                host.set(IDLE_LISTED, false);
            } else if due <= now {
                host.set(IDLE_LISTED, false);
                return Ok(slot);
            } else {
                soonest = soonest.min(due);
                self.idle.push_back(slot);
            }
        }
        Err(soonest)
    }
}

/// Idle rows looked at for one host; the rest have their turn with the next.
const IDLE_LOOKED_AT: usize = 64;
const IDLE_AGAIN_US: u64 = 10_000;
