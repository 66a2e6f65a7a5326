use super::host::{Host, WaitsIn};
use super::niceness::{Niceness, Pace};
use hashbrown::HashTable;
use rapidhash::fast::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Every address that some host of the table has, and the hosts that wait for their turn at it.
pub(super) struct AddressTable {
    rows: Vec<Address>,
    free: Vec<u32>,
    by_ip: HashTable<u32>,
    hashes: RandomState,
}

/// One address and the hosts that share it.
pub(super) struct Address {
    pub ip: IpAddr,
    /// A host of this address is on the ready list; the others wait until it was sent.
    pub claimed: bool,
    /// A timer will look at it.
    pub timer: bool,
    pub pace: Pace,
    pub open: u8,
    /// Of those, the ones that are not on the wire yet.
    pub unsent: u8,
    /// Rows that use this address.
    pub hosts: u32,
    /// The last of the hosts that wait, linked through their rows in a ring: behind the last comes the first.
    last: u32,
}

const NOBODY: u32 = u32::MAX;

const _: () = assert!(size_of::<Address>() == 56, "a host may have an address to itself");

impl Address {
    fn new(ip: IpAddr, pace: Pace) -> Address {
        Address { ip, claimed: false, timer: false, pace, open: 0, unsent: 0, hosts: 0, last: NOBODY }
    }

    /// Whether its hosts may have another request out, time aside.
    pub fn has_room(&self, rules: &Niceness) -> bool {
        self.open < rules.concurrent && !(self.unsent > 0 && self.pace.gap_us(rules) > 0)
    }

    pub fn is_waited_for(&self) -> bool {
        self.last != NOBODY
    }

    /// Puts a host behind the others.
    pub fn queue(&mut self, slot: u32, hosts: &mut [Host]) {
        let first = match self.last {
            NOBODY => slot,
            last => std::mem::replace(&mut hosts[last as usize].next_at_address, slot),
        };
        let host = &mut hosts[slot as usize];
        host.waits_in = WaitsIn::Address;
        host.next_at_address = first;
        self.last = slot;
    }

    /// Takes the host that has waited longest.
    pub fn first_host(&mut self, hosts: &mut [Host]) -> Option<u32> {
        let last = (self.last != NOBODY).then_some(self.last)?;
        let slot = hosts[last as usize].next_at_address;
        let second = hosts[slot as usize].next_at_address;
        match slot == last {
            true => self.last = NOBODY,
            false => hosts[last as usize].next_at_address = second,
        }
        let host = &mut hosts[slot as usize];
        debug_assert_eq!(host.waits_in, WaitsIn::Address);
        host.waits_in = WaitsIn::Rest;
        Some(slot)
    }
}

impl AddressTable {
    /// Room for `hosts` addresses is made at once, so that the index never has to be built anew while hosts wait.
    pub fn new(hosts: usize) -> AddressTable {
        AddressTable {
            rows: Vec::new(),
            free: Vec::new(),
            by_ip: HashTable::with_capacity(hosts),
            hashes: RandomState::default(),
        }
    }

    pub fn get(&self, slot: u32) -> &Address {
        &self.rows[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut Address {
        &mut self.rows[slot as usize]
    }

    pub fn rows(&self) -> &[Address] {
        &self.rows
    }

    /// The slot of an address that a host is about to use; of one that was not known, `pace` tells when it may be
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

    /// Forgets an address that nobody uses.
    pub fn remove(&mut self, slot: u32) {
        let ip = self.rows[slot as usize].ip;
        if let Ok(entry) = self.by_ip.find_entry(self.hashes.hash_one(ip), |&other| other == slot) {
            entry.remove();
            self.free.push(slot);
        }
    }
}
