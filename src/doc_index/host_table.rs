/// Hosts by the print of their origin, a keyed hash of 64 bits that the caller makes: nobody can make two hosts that have
/// one print, and of ten million hosts the odds that two do are one in three hundred thousand.
#[derive(Default)]
pub(super) struct HostTable {
    /// A power of two of them, a third empty at least.
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    print: u64,
    /// One more than the host's number; 0 where there is none.
    host: u32,
}

const SLOTS_MIN: usize = 64;

impl HostTable {
    pub fn ram_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Loads the place of a print, so that it is near when it is asked for.
    pub fn touch(&self, print: u64) -> u64 {
        self.slots.get(self.home(print)).map_or(0, |slot| slot.print)
    }

    pub fn find(&self, print: u64) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(print);
        loop {
            let slot = self.slots[at];
            if slot.host == 0 {
                return None;
            }
            if slot.print == print {
                return Some(slot.host - 1);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Takes in a host that is not here.
    pub fn insert(&mut self, print: u64, host: u32) {
        if 3 * (self.len + 1) > 2 * self.slots.len() {
            let size = (2 * self.slots.len()).max(SLOTS_MIN);
            for slot in std::mem::replace(&mut self.slots, vec![Slot::default(); size]) {
                if slot.host > 0 {
                    self.put(slot);
                }
            }
        }
        self.put(Slot { print, host: host + 1 });
        self.len += 1;
    }

    fn put(&mut self, slot: Slot) {
        let mut at = self.home(slot.print);
        while self.slots[at].host > 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    fn home(&self, print: u64) -> usize {
        print as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::HashMap;

    #[test]
    fn every_host_is_found_by_its_print() {
        let (mut table, mut model, mut rng) = (HostTable::default(), HashMap::new(), Rng::new(5));
        assert_eq!((table.find(7), table.touch(7)), (None, 0));
        for host in 0..10_000 {
            // Few low bits, so that places collide.
            let print = rng.below(1 << 40) << 8 | rng.below(4);
            if model.insert(print, host).is_none() {
                table.insert(print, host);
            } else {
                model.remove(&print);
                model.insert(print, table.find(print).unwrap());
            }
        }
        assert!(model.iter().all(|(&print, &host)| table.find(print) == Some(host)));
        assert_eq!(table.find(u64::MAX), None);
    }
}
