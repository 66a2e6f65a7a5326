/// Hosts by the fingerprint of their origin, a keyed hash of 64 bits that the caller makes: no page can name two hosts
/// that have one fingerprint, and of ten million hosts the odds that two do are one in three hundred thousand.
#[derive(Default)]
pub(super) struct HostTable {
    /// A power of two of them, a third empty at least.
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    fingerprint: u64,
    /// One more than the host's number; 0 where there is none.
    host: u32,
}

const SLOTS_MIN: usize = 64;

impl HostTable {
    pub fn ram_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Loads the place of a fingerprint, so that it is near when it is asked for.
    pub fn touch(&self, fingerprint: u64) -> u64 {
        self.slots.get(self.home(fingerprint)).map_or(0, |slot| slot.fingerprint)
    }

    pub fn find(&self, fingerprint: u64) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(fingerprint);
        loop {
            let slot = self.slots[at];
            if slot.host == 0 {
                return None;
            }
            if slot.fingerprint == fingerprint {
                return Some(slot.host - 1);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Takes in a host that is not here.
    pub fn insert(&mut self, fingerprint: u64, host: u32) {
        if 3 * (self.len + 1) > 2 * self.slots.len() {
            let size = (2 * self.slots.len()).max(SLOTS_MIN);
            for slot in std::mem::replace(&mut self.slots, vec![Slot::default(); size]) {
                if slot.host > 0 {
                    self.put(slot);
                }
            }
        }
        self.put(Slot { fingerprint, host: host + 1 });
        self.len += 1;
    }

    fn put(&mut self, slot: Slot) {
        let mut at = self.home(slot.fingerprint);
        while self.slots[at].host > 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    fn home(&self, fingerprint: u64) -> usize {
        fingerprint as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::HashMap;

    #[test]
    fn every_host_is_found_by_its_fingerprint() {
        let (mut table, mut model, mut rng) = (HostTable::default(), HashMap::new(), Rng::new(5));
        assert_eq!((table.find(7), table.touch(7)), (None, 0));
        for host in 0..10_000 {
            // Few low bits, so that places collide.
            let fingerprint = rng.below(1 << 40) << 8 | rng.below(4);
            if model.insert(fingerprint, host).is_none() {
                table.insert(fingerprint, host);
            } else {
                model.remove(&fingerprint);
                model.insert(fingerprint, table.find(fingerprint).unwrap());
            }
        }
        assert!(model.iter().all(|(&fingerprint, &host)| table.find(fingerprint) == Some(host)));
        assert_eq!(table.find(u64::MAX), None);
    }
}
