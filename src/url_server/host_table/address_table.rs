use super::host::{Host, WaitsIn};
use crate::base::Now;
use crate::url_server::niceness::{Niceness, Pace};
use hashbrown::HashTable;
use rapidhash::fast::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Every address that some host of the table has, and the hosts that wait for their turn at it.
pub(super) struct AddressTable {
    pub rows: Vec<Address>,
    free: Vec<u32>,
    by_ip: HashTable<u32>,
    hashes: RandomState,
}

/// One address and the hosts that share it.
pub(crate) struct Address {
    pub ip: IpAddr,
    /// A host of this address is on the ready list; the others wait until it was sent.
    pub claimed: bool,
    /// A timer for the end of its pause is set.
    pub timer: bool,
    pub pace: Pace,
    open: u8,
    /// Of those, the ones that are not on the wire yet.
    unsent: u8,
    /// Rows that use this address.
    pub hosts: u32,
    /// The last of the hosts that wait, linked through their rows in a ring: behind the last comes the first.
    last: u32,
}

const NO_HOST: u32 = u32::MAX;

const _: () = assert!(size_of::<Address>() == 56, "a host may have an address to itself");

impl Address {
    fn new(ip: IpAddr, pace: Pace) -> Address {
        Address { ip, claimed: false, timer: false, pace, open: 0, unsent: 0, hosts: 0, last: NO_HOST }
    }

    /// Whether its hosts may have another request out, time aside.
    pub fn has_room(&self, rules: &Niceness) -> bool {
        self.open < rules.concurrent && !(self.unsent > 0 && self.pace.gap_us(rules) > 0)
    }

    /// Whether something is open here, or somebody is about to send before `soon`.
    pub fn is_needed(&self, soon: Now) -> bool {
        self.open > 0 || self.claimed || (self.is_waited_for() && self.pace.due() <= soon)
    }

    pub fn has_open(&self) -> bool {
        self.open > 0
    }

    pub fn is_waited_for(&self) -> bool {
        self.last != NO_HOST
    }

    /// Notes that a request for it was handed out.
    pub fn handed_out(&mut self, rules: &Niceness, now: Now) {
        self.open += 1;
        self.unsent += 1;
        self.pace.asked(rules, now);
    }

    /// Notes that a request is on the wire; it may be said again of one.
    pub fn sent(&mut self, is_first: bool) {
        self.unsent -= u8::from(is_first);
    }

    /// Notes that a request is no longer open.
    pub fn closed(&mut self, was_sent: bool) {
        self.open -= 1;
        self.unsent -= u8::from(!was_sent);
    }

    /// Returns when the pause ends, if no timer has been set for that; the caller sets it.
    #[must_use]
    pub fn set_timer(&mut self) -> Option<Now> {
        (!std::mem::replace(&mut self.timer, true)).then_some(self.pace.due())
    }

    /// Whether no host uses it, nothing is open at it, and no timer looks at it.
    pub(super) fn is_unused(&self) -> bool {
        self.hosts == 0 && self.open == 0 && !self.timer
    }

    /// Puts a host behind the others.
    pub(super) fn push_host(&mut self, slot: u32, hosts: &mut [Host]) {
        let first = match self.last {
            NO_HOST => slot,
            last => std::mem::replace(&mut hosts[last as usize].next_at_address, slot),
        };
        let host = &mut hosts[slot as usize];
        host.enter(WaitsIn::Address);
        host.next_at_address = first;
        self.last = slot;
    }

    /// Takes the host that has waited longest.
    pub(super) fn pop_host(&mut self, hosts: &mut [Host]) -> Option<u32> {
        let last = (self.last != NO_HOST).then_some(self.last)?;
        let slot = hosts[last as usize].next_at_address;
        let second = hosts[slot as usize].next_at_address;
        match slot == last {
            true => self.last = NO_HOST,
            false => hosts[last as usize].next_at_address = second,
        }
        hosts[slot as usize].leave(WaitsIn::Address);
        Some(slot)
    }
}

impl AddressTable {
    /// Makes the index for `hosts` addresses at once, so that it is never built anew while hosts wait.
    pub fn new(hosts: usize) -> AddressTable {
        AddressTable {
            rows: Vec::new(),
            free: Vec::new(),
            by_ip: HashTable::with_capacity(hosts),
            hashes: RandomState::default(),
        }
    }

    /// The slot of an address that a host is about to use. For an address without a slot `pace` says when it may be
    /// asked.
    pub fn join(&mut self, ip: IpAddr, pace: impl FnOnce() -> Pace) -> u32 {
        let hash = self.hashes.hash_one(ip);
        let found = self.by_ip.find(hash, |&slot| self.rows[slot as usize].ip == ip).copied();
        let slot = found.unwrap_or_else(|| {
            let fresh = Address::new(ip, pace());
            let slot = match self.free.pop() {
                Some(slot) => {
                    self.rows[slot as usize] = fresh;
                    slot
                }
                None => {
                    self.rows.push(fresh);
                    (self.rows.len() - 1) as u32
                }
            };
            let (rows, hashes) = (&self.rows, &self.hashes);
            self.by_ip.insert_unique(hash, slot, |&slot| hashes.hash_one(rows[slot as usize].ip));
            slot
        });
        self.rows[slot as usize].hosts += 1;
        slot
    }

    pub fn find(&self, ip: IpAddr) -> Option<u32> {
        self.by_ip.find(self.hashes.hash_one(ip), |&slot| self.rows[slot as usize].ip == ip).copied()
    }

    /// Forgets an address that no host uses.
    pub fn remove(&mut self, slot: u32) {
        let ip = self.rows[slot as usize].ip;
        if let Ok(entry) = self.by_ip.find_entry(self.hashes.hash_one(ip), |&other| other == slot) {
            entry.remove();
            self.free.push(slot);
        }
    }

    /// `open_of` and `hosts_of` are counted from the rows, by the slot of the address.
    pub fn invariants(&self, open_max: u8, open_of: &[u8], hosts_of: &[u32]) -> bool {
        for (slot, address) in self.rows.iter().enumerate() {
            assert_eq!(address.hosts, hosts_of[slot], "an address counts its hosts");
            assert_eq!(address.open, open_of[slot], "an address counts what its hosts have open");
            assert!(address.unsent <= address.open && address.open <= open_max);
        }
        true
    }
}
