use super::host::{Host, IDLE_LISTED, RESTING, WaitsIn};
use super::host_names::HostNames;
use crate::base::Now;
use hashbrown::HashTable;
use rapidhash::fast::RandomState;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// The rows, and where each host's is. A row belongs to no host for ever: when it has been empty and its host's
/// pause is over, any host may take it. One host is never in two rows.
pub(super) struct HostIndex {
    pub rows: Vec<Host>,
    names: HostNames,
    rows_max: usize,
    by_origin: HashTable<u32>,
    hashes: RandomState,
    /// Rows that came to rest, oldest first; some may be busy again.
    idle: VecDeque<u32>,
    resting: usize,
    seed: u32,
}

/// The host that had a row before.
pub(super) struct Former {
    pub origin: Box<str>,
    pub host: Host,
}

impl HostIndex {
    /// Makes the index for all rows at once, so that it is never built anew while hosts wait. `seed` decides where
    /// generations start: a spider may still report on requests of another process.
    pub fn new(rows_max: usize, seed: u32) -> HostIndex {
        HostIndex {
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

    /// A row and its host's name.
    pub fn named_mut(&mut self, slot: u32) -> (&str, &mut Host) {
        let host = &mut self.rows[slot as usize];
        (self.names.get(host.name), host)
    }

    /// Rows with something to do.
    pub fn busy(&self) -> usize {
        self.rows.len() - self.resting
    }

    /// Whether a host that has no row could get one at once, pauses aside.
    pub fn has_vacancy(&self) -> bool {
        self.busy() < self.rows_max
    }

    /// Finds a row for a host: a fresh one, or the one that has been idle longest and whose pause is over; with it
    /// comes the host that had it. Forgetting that host forgets nothing that niceness needs before its next request.
    /// Without a row it returns when one may be free.
    pub fn place(
        &mut self,
        origin: &str,
        address: u32,
        due: Now,
        now: Now,
    ) -> Result<(u32, Option<Former>), Now> {
        let (slot, former) = if self.rows.len() < self.rows_max {
            let slot = self.rows.len() as u32;
            let generation = self.seed.wrapping_add(slot.wrapping_mul(0x9e37_79b9)) >> 8;
            self.rows.push(Host::new(self.names.insert(origin), address, due, generation));
            self.resting += 1;
            (slot, None)
        } else {
            let slot = self.idle_row(now)?;
            self.unlist(slot);
            let before: Box<str> = self.origin(slot).into();
            let row = &mut self.rows[slot as usize];
            debug_assert_eq!(row.waits_in(), WaitsIn::Rest);
            let fresh = Host::new(self.names.replace(row.name, origin), address, due, row.generation);
            let host = std::mem::replace(row, fresh);
            if self.names.is_wasteful() {
                self.names.gather(self.rows.iter_mut().map(|host| &mut host.name));
            }
            (slot, Some(Former { origin: before, host }))
        };
        let (rows, names, hashes) = (&self.rows, &self.names, &self.hashes);
        let hash = hashes.hash_one(origin.as_bytes());
        self.by_origin
            .insert_unique(hash, slot, |&slot| hashes.hash_one(names.bytes(rows[slot as usize].name)));
        Ok((slot, former))
    }

    /// Notes that a host has something to do again.
    pub fn wake(&mut self, slot: u32) {
        let host = &mut self.rows[slot as usize];
        if host.set(RESTING, false) {
            self.resting -= 1;
        }
    }

    /// Notes that a host has nothing to do: its row may go to another.
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

    /// The oldest row that is still idle and whose pause is over, or when there may be one.
    fn idle_row(&mut self, now: Now) -> Result<u32, Now> {
        // The rows that are not examined this time may be free already.
        let mut soonest =
            if self.idle.len() > IDLE_EXAMINED_MAX { now.plus_us(IDLE_AGAIN_US) } else { Now::NEVER };
        for _ in 0..self.idle.len().min(IDLE_EXAMINED_MAX) {
            let Some(slot) = self.idle.pop_front() else {
                break;
            };
            let host = &mut self.rows[slot as usize];
            let due = host.pace.due();
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

    /// A host is in one row only, and a row at rest waits nowhere.
    pub fn invariants(&self) -> bool {
        for (slot, host) in self.rows.iter().enumerate() {
            let found = self.find(self.names.get(host.name));
            assert_eq!(found, Some(slot as u32), "a host is in one row only");
            assert!(!(host.is(RESTING) && host.waits_in() != WaitsIn::Rest), "a host at rest waits nowhere");
        }
        assert_eq!(self.resting, self.rows.iter().filter(|host| host.is(RESTING)).count());
        assert!(self.rows.len() <= self.rows_max && self.by_origin.len() == self.rows.len());
        true
    }
}

/// Idle rows examined for one host; the rest have their turn with the next.
const IDLE_EXAMINED_MAX: usize = 64;
const IDLE_AGAIN_US: u64 = 10_000;
