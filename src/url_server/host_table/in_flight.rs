use super::host::Host;
use super::hosts::Hosts;
use super::window::{Active, Window, Work};
use crate::base::Now;
use crate::proto::job::TransId;
use slab::Slab;

/// All requests that are with a spider, and when to look for spiders that fell silent.
pub(crate) struct InFlight {
    open: Slab<TransId>,
    #[expect(clippy::vec_box, reason = "a window moves into a row, where only a pointer has room")]
    spare_windows: Vec<Box<Window>>,
    silence_us: u64,
    sweep_at: Now,
}

/// Windows kept for the next host that becomes active.
const SPARE_WINDOWS: usize = 1_024;

impl InFlight {
    pub fn new(silence_us: u64, now: Now) -> InFlight {
        let sweep_at = now.plus_us(silence_us / 4);
        InFlight { open: Slab::new(), spare_windows: Vec::new(), silence_us, sweep_at }
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Puts work into the window of a host and names it.
    pub fn open(
        &mut self,
        (slot, host): (u32, &mut Host),
        work: Work,
        spider: u16,
        more: bool,
        now: Now,
    ) -> TransId {
        let entry = self.open.vacant_entry();
        let active = Active {
            generation: host.next_generation(),
            work,
            asked_at: now,
            sent: false,
            last_word: now,
            spider,
            open_key: entry.key() as u32,
            address: host.address,
            more,
            before: host.pace,
            host_due: host.pace.due(),
            address_due: Now::ZERO,
        };
        let generation = active.generation;
        let window = host.window.get_or_insert_with(|| self.spare_windows.pop().unwrap_or_default());
        *entry.insert(TransId::new(slot, window.insert(active), generation))
    }

    /// Takes an open request out of its host's window; `None` if it is not open.
    pub fn close(&mut self, host: &mut Host, trans: TransId) -> Option<Active> {
        let active = host.window.as_mut()?.remove(trans)?;
        self.open.remove(active.open_key as usize);
        if host.open() == 0 {
            let empty = host.window.take();
            self.spare_windows.extend(empty.filter(|_| self.spare_windows.len() < SPARE_WINDOWS));
        }
        Some(active)
    }

    /// The open requests that `is` says yes to, sorted, so that a replay meets them in the same order whichever places
    /// were free.
    pub fn select(&self, hosts: &Hosts, is: impl Fn(&Active) -> bool) -> Vec<TransId> {
        let all = self.open.iter().map(|(_, trans)| *trans);
        let mut selected: Vec<TransId> = all.filter(|trans| hosts.active(*trans).is_some_and(&is)).collect();
        selected.sort_unstable();
        selected
    }

    /// The requests of spiders that fell silent, if it is time to look for them.
    pub fn silent(&mut self, hosts: &Hosts, now: Now) -> Vec<TransId> {
        if now < self.sweep_at {
            return Vec::new();
        }
        self.sweep_at = now.plus_us(self.silence_us / 4);
        self.select(hosts, |active| now.since_us(active.last_word) >= self.silence_us)
    }

    /// When `silent` has to be asked next.
    pub fn next_due(&self) -> Option<Now> {
        (!self.open.is_empty()).then_some(self.sweep_at)
    }

    /// Every entry names an open request, and every open request has an entry.
    pub fn invariants(&self, hosts: &Hosts) -> bool {
        for (key, trans) in &self.open {
            let active = hosts.active(*trans).expect("a request on the list is open");
            assert_eq!(active.open_key as usize, key, "a request knows its entry");
        }
        assert_eq!(hosts.iter().map(Host::open).sum::<usize>(), self.open.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_closed_once_and_its_place_is_used_again() {
        let mut hosts = Hosts::new(1, 1);
        let address = hosts.join_address([10, 0, 0, 1].into());
        let (slot, _) = hosts.place("http://a", address, None, Now::ZERO).unwrap();
        let mut in_flight = InFlight::new(60_000_000, Now::ZERO);
        let open = |in_flight: &mut InFlight, hosts: &mut Hosts| {
            in_flight.open((slot, &mut hosts[slot]), Work::Robots { hops: 0 }, 0, false, Now::ZERO)
        };
        let first = open(&mut in_flight, &mut hosts);
        let second = open(&mut in_flight, &mut hosts);
        assert!(in_flight.close(&mut hosts[slot], first).is_some());
        assert!(in_flight.close(&mut hosts[slot], first).is_none(), "once");
        let third = open(&mut in_flight, &mut hosts);
        assert_eq!(third.active_slot(), first.active_slot());
        assert!(third != first && hosts[slot].open() == 2 && in_flight.invariants(&hosts));
        let mut both = [second, third];
        both.sort_unstable();
        assert!(in_flight.silent(&hosts, Now::from_us(59_000_000)).is_empty());
        assert_eq!(in_flight.silent(&hosts, Now::from_us(80_000_000)), both);
    }
}
