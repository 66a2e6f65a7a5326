use super::host_table::{Host, Hosts, NO_SPIDER, WaitsIn};
use std::collections::VecDeque;

/// The spiders that take pages. On a shard there is one, which takes what it has room for; a URL server in a process of
/// its own has any number behind links, each with the credits it gave.
///
/// A host's pages go to one spider for as long as that lives, so that its connection is used again. A host whose
/// spider has no credit left waits here.
pub(super) struct SpiderCredits {
    /// Indexed by spider; `None` after it left.
    spiders: Option<Vec<Option<Spider>>>,
    /// Hosts that belong to no spider and wait for one with credit.
    unclaimed: VecDeque<u32>,
    /// Where the search for a spider for a new host goes on.
    next: usize,
}

struct Spider {
    /// Lines it may still be sent; `None` if it takes what comes.
    credits: Option<u64>,
    /// Its link is full: nothing for now.
    held: bool,
    waiting: VecDeque<u32>,
}

impl Spider {
    fn has_room(&self) -> bool {
        !self.held && self.credits != Some(0)
    }
}

/// The spider on the same shard.
pub(super) const LOCAL: u16 = 0;

impl SpiderCredits {
    pub fn local() -> SpiderCredits {
        SpiderCredits { spiders: None, unclaimed: VecDeque::new(), next: 0 }
    }

    pub fn behind_links() -> SpiderCredits {
        SpiderCredits { spiders: Some(Vec::new()), ..SpiderCredits::local() }
    }

    /// Lets a spider join. With `pull` it takes nothing before it gave credit.
    pub fn join(&mut self, pull: bool) -> u16 {
        let spiders = self.spiders.get_or_insert_default();
        let spider = Spider { credits: pull.then_some(0), held: false, waiting: VecDeque::new() };
        match spiders.iter().position(Option::is_none) {
            Some(place) => {
                spiders[place] = Some(spider);
                place as u16
            }
            None => {
                assert!(spiders.len() < usize::from(NO_SPIDER), "links are bounded");
                spiders.push(Some(spider));
                (spiders.len() - 1) as u16
            }
        }
    }

    pub fn credit(&mut self, spider: u16, count: u32) {
        if let Some(Spider { credits: Some(credits), .. }) = self.get_mut(spider) {
            *credits = credits.saturating_add(u64::from(count));
        }
    }

    pub fn hold(&mut self, spider: u16, held: bool) {
        if let Some(spider) = self.get_mut(spider) {
            spider.held = held;
        }
    }

    /// Lets a spider leave; its hosts belong to none again.
    pub fn leave(&mut self, spider: u16) {
        let gone = self.spiders.as_mut().and_then(|spiders| spiders.get_mut(usize::from(spider))?.take());
        if let Some(gone) = gone {
            self.unclaimed.extend(gone.waiting);
        }
    }

    /// Finds the spider for a host that may be asked now, binds the host to it and takes one of its credits; `None` puts
    /// the host in line.
    pub fn take(&mut self, host: &mut Host, slot: u32) -> Option<u16> {
        let chosen = self.choose(slot, host.spider);
        match chosen {
            Some(spider) => host.spider = spider,
            None => host.enter(WaitsIn::Spider),
        }
        chosen
    }

    fn choose(&mut self, slot: u32, bound_to: u16) -> Option<u16> {
        let Some(spiders) = &mut self.spiders else {
            return Some(LOCAL);
        };
        let bound = usize::from(bound_to);
        let chosen = if let Some(Some(spider)) = spiders.get_mut(bound) {
            if !spider.has_room() {
                spider.waiting.push_back(slot);
                return None;
            }
            bound
        } else {
            let count = spiders.len();
            let has_room = |place: &usize| spiders[*place].as_ref().is_some_and(Spider::has_room);
            match (0..count).map(|n| (self.next + n) % count).find(has_room) {
                Some(place) => {
                    self.next = place + 1;
                    place
                }
                None => {
                    self.unclaimed.push_back(slot);
                    return None;
                }
            }
        };
        if let Some(Spider { credits: Some(credits), .. }) = &mut spiders[chosen] {
            *credits -= 1;
        }
        Some(chosen as u16)
    }

    /// A host that waited here and whose spider has room again. It waits nowhere from here on.
    pub fn next_host(&mut self, hosts: &mut Hosts) -> Option<u32> {
        let spiders = self.spiders.as_mut()?;
        let mut with_room = spiders.iter_mut().flatten().filter(|spider| spider.has_room()).peekable();
        with_room.peek()?;
        let bound = with_room.find_map(|spider| spider.waiting.pop_front());
        let slot = bound.or_else(|| self.unclaimed.pop_front())?;
        hosts[slot].leave(WaitsIn::Spider);
        Some(slot)
    }

    /// Takes a host out of line. True if it waited here.
    pub fn forget(&mut self, hosts: &mut Hosts, slot: u32) -> bool {
        if hosts[slot].waits_in() != WaitsIn::Spider {
            return false;
        }
        hosts[slot].leave(WaitsIn::Spider);
        self.unclaimed.retain(|&other| other != slot);
        for spider in self.spiders.iter_mut().flatten().flatten() {
            spider.waiting.retain(|&other| other != slot);
        }
        true
    }

    pub fn has_next_host(&self) -> bool {
        let Some(spiders) = &self.spiders else {
            return false;
        };
        let mut with_room = spiders.iter().flatten().filter(|spider| spider.has_room()).peekable();
        (with_room.peek().is_some() && !self.unclaimed.is_empty())
            || with_room.any(|spider| !spider.waiting.is_empty())
    }

    fn get_mut(&mut self, spider: u16) -> Option<&mut Spider> {
        self.spiders.as_mut()?.get_mut(usize::from(spider))?.as_mut()
    }

    /// A host is in line here exactly if it waits for a spider.
    pub fn invariants(&self, hosts: &Hosts) -> bool {
        let bound = self.spiders.iter().flatten().flatten().flat_map(|spider| &spider.waiting);
        let in_line: Vec<u32> = bound.chain(&self.unclaimed).copied().collect();
        assert!(in_line.iter().all(|&slot| hosts[slot].waits_in() == WaitsIn::Spider));
        assert_eq!(hosts.iter().filter(|host| host.waits_in() == WaitsIn::Spider).count(), in_line.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Now;

    #[test]
    fn a_host_stays_with_its_spider_and_waits_for_its_credit() {
        let mut hosts = Hosts::new(2, 1);
        for n in 0..2u8 {
            let address = hosts.join_address([10, 0, 0, n].into());
            hosts.place(&format!("http://h{n}"), address, None, Now::ZERO).unwrap();
        }
        let mut spiders = SpiderCredits::behind_links();
        assert_eq!(spiders.take(&mut hosts[0], 0), None, "no spider has joined");
        let (first, second) = (spiders.join(true), spiders.join(false));
        assert!(spiders.has_next_host() && spiders.next_host(&mut hosts) == Some(0));
        assert_eq!(spiders.take(&mut hosts[0], 0), Some(second), "the other gave no credit");
        spiders.hold(second, true);
        assert_eq!(spiders.take(&mut hosts[0], 0), None, "the link of its spider is full");
        spiders.credit(first, 1);
        assert_eq!(spiders.take(&mut hosts[1], 1), Some(first));
        assert_eq!(spiders.next_host(&mut hosts), None);
        assert!(spiders.invariants(&hosts));
        spiders.leave(second);
        spiders.credit(first, 1);
        assert_eq!(spiders.next_host(&mut hosts), Some(0), "its spider is gone");
        assert_eq!(spiders.take(&mut hosts[0], 0), Some(first));
        assert!(spiders.invariants(&hosts));
    }
}
