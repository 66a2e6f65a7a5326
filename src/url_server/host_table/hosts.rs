use super::address_table::{Address, AddressTable};
use super::fallback::Fallback;
use super::host::{Host, MULTI_ADDRESS, RESTING, WaitsIn};
use super::host_index::{Former, HostIndex};
use super::host_memory::HostMemory;
use super::journal::{Clock, Entry, Journal};
use super::robots_state::RobotsState;
use super::url_arena::UrlArena;
use super::window::Active;
use crate::base::{Now, Wall, canonical};
use crate::proto::job::{Candidate, TransId};
use crate::url_server::niceness::{Niceness, Pace};
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;
use std::ops::{Index, IndexMut};

/// All hosts that have a row, by its slot: their queues, their addresses, and what is remembered of the others.
pub(crate) struct Hosts {
    index: HostIndex,
    urls: UrlArena,
    addresses: AddressTable,
    /// The addresses of the hosts that have several.
    fallbacks: RapidHashMap<u32, Fallback>,
    memory: HostMemory,
    /// Nothing is asked before: the process that ran before may have asked just now.
    quiet_until: Now,
    /// Until then others may have asked hosts that are here: when exactly is not known.
    asked_by: Now,
    /// Bytes of the robots rules of all rows.
    rules_bytes: usize,
}

impl Index<u32> for Hosts {
    type Output = Host;

    fn index(&self, slot: u32) -> &Host {
        &self.index.rows[slot as usize]
    }
}

impl IndexMut<u32> for Hosts {
    fn index_mut(&mut self, slot: u32) -> &mut Host {
        &mut self.index.rows[slot as usize]
    }
}

impl Hosts {
    pub fn new(rows_max: usize, seed: u32) -> Hosts {
        Hosts {
            index: HostIndex::new(rows_max, seed),
            urls: UrlArena::default(),
            addresses: AddressTable::new(rows_max),
            fallbacks: RapidHashMap::default(),
            memory: HostMemory::new(rows_max),
            quiet_until: Now::ZERO,
            asked_by: Now::ZERO,
            rules_bytes: 0,
        }
    }

    /// Leaves every host alone until then, and takes over what is remembered of hosts.
    pub fn after(&mut self, quiet_until: Now, memory: HostMemory) {
        self.quiet_until = quiet_until;
        self.memory = memory;
    }

    /// Makes every pause as long as these rules want it at the least. Hosts and addresses that have no row may have been
    /// asked just now, and are left alone for as long.
    pub fn stretch(&mut self, host_rules: &Niceness, ip_rules: &Niceness, now: Now) {
        for host in &mut self.index.rows {
            host.pace.put_off(self.asked_by.plus_us(host_rules.gap_us));
            host.pace.stretch(host_rules);
            host.stretch_window(host_rules, self.asked_by);
        }
        for address in &mut self.addresses.rows {
            address.pace.put_off(self.asked_by.plus_us(ip_rules.gap_us));
            address.pace.stretch(ip_rules);
        }
        self.keep_quiet(now.plus_us(host_rules.gap_us.max(ip_rules.gap_us)));
    }

    /// Notes that another server may have asked hosts of this one until now.
    pub fn were_asked_by(&mut self, now: Now) {
        self.asked_by = self.asked_by.max(now);
    }

    /// Leaves hosts and addresses alone that have no row, until then.
    pub fn keep_quiet(&mut self, until: Now) {
        self.quiet_until = self.quiet_until.max(until);
    }

    /// Whether hosts without a row are left alone.
    pub fn is_quiet(&self, now: Now) -> bool {
        self.quiet_until > now
    }

    /// Rows of the table.
    pub fn len(&self) -> usize {
        self.index.rows.len()
    }

    /// Notes that every host that is remembered may have been asked until now: its Crawl-delay counts from here.
    pub fn asked_until(&mut self, now: Now) {
        self.memory.asked_until(now);
    }

    pub fn find(&self, origin: &str) -> Option<u32> {
        self.index.find(origin)
    }

    pub fn origin(&self, slot: u32) -> &str {
        self.index.origin(slot)
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Host> {
        self.index.rows.get_mut(slot as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.index.rows.iter()
    }

    /// All hosts with their names.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Host)> {
        self.iter().enumerate().map(|(slot, host)| (self.origin(slot as u32), host))
    }

    pub fn busy(&self) -> usize {
        self.index.busy()
    }

    pub fn has_vacancy(&self) -> bool {
        self.index.has_vacancy()
    }

    /// Notes that a host has nothing to do: its row may go to another.
    pub fn rest(&mut self, slot: u32) {
        self.index.rest(slot);
    }

    /// Notes that a host has something to do again.
    pub fn wake(&mut self, slot: u32) {
        self.index.wake(slot);
    }

    /// The open request of that name.
    pub fn active(&self, trans: TransId) -> Option<&Active> {
        self.index.rows.get(trans.host_slot() as usize)?.active_ref(trans)
    }

    pub fn active_mut(&mut self, trans: TransId) -> Option<&mut Active> {
        self.get_mut(trans.host_slot())?.active_mut(trans)
    }

    // Queues of URLs.

    /// Puts a URL at the end of a host's queue.
    pub fn push_back(&mut self, slot: u32, candidate: Candidate) {
        self.index.wake(slot);
        self.urls.push_back(&mut self.index.rows[slot as usize].queue, candidate);
    }

    pub fn push_front(&mut self, slot: u32, candidate: Candidate) {
        self.urls.push_front(&mut self.index.rows[slot as usize].queue, candidate);
    }

    pub fn pop_front(&mut self, slot: u32) -> Option<Candidate> {
        self.urls.pop_front(&mut self.index.rows[slot as usize].queue)
    }

    pub fn front(&self, slot: u32) -> Option<&Candidate> {
        self.urls.front(self[slot].queue)
    }

    /// How many URLs of a host's queue are before the first that `is` says yes to. It walks the queue.
    pub fn position(&self, slot: u32, is: impl Fn(&Candidate) -> bool) -> Option<usize> {
        self.urls.position(self[slot].queue, is)
    }

    // Rows.

    /// Gives a host a row, and with it what is remembered of the host. Returns the row and, if another host had it, the
    /// address that the other leaves; without a row, when one may be free.
    pub fn place(
        &mut self,
        origin: &str,
        address: u32,
        others: Option<&[IpAddr]>,
        now: Now,
    ) -> Result<(u32, Option<u32>), Now> {
        let (slot, former) = self.index.place(origin, address, self.quiet_until, now)?;
        let left = former.as_ref().map(|former| former.host.address);
        if let Some(Former { origin, host }) = former {
            if host.is(MULTI_ADDRESS) {
                self.fallbacks.remove(&slot);
            }
            self.rules_bytes -= host.robots.rules_bytes();
            self.memory.keep(&origin, host);
        }
        self.recall(slot);
        self.set_fallback(slot, self.address(address).ip, others);
        Ok((slot, left))
    }

    /// Gives a host that has a row what is remembered of it.
    fn recall(&mut self, slot: u32) {
        let (origin, host) = self.index.named_mut(slot);
        self.memory.recall(origin, host);
        self.rules_bytes += host.robots.rules_bytes();
    }

    /// Takes over what another server knew of a host, as lines of its journal.
    pub fn remember(&mut self, origin: &str, lines: &str, clock: Clock, agent: &str) {
        let found = self.find(origin);
        if let Some(slot) = found.filter(|slot| !self[*slot].is(RESTING)) {
            // One that is at work knows better: it only gets more careful.
            if let Some(told) = self.read_pace(slot, lines, clock.wall, clock.now) {
                self[slot].pace.join(&told);
            }
            return;
        }
        self.memory.read(lines.as_bytes(), clock, agent);
        if let Some(slot) = found {
            self.set_robots(slot, RobotsState::Unknown);
            self.recall(slot);
        }
    }

    /// Writes down what is known of a host, whether it has a row or is remembered, and of the address that it stands at.
    pub fn tell(&self, origin: &str, journal: &mut Journal, now: Now) {
        match self.find(origin) {
            Some(slot) => {
                journal.pace(origin, &self[slot].pace, now);
                journal.robots(origin, self[slot].robots());
                let address = self.address(self[slot].address);
                if address.pace.due() > now || !address.pace.is_plain() {
                    journal.address(address.ip, &address.pace, now);
                }
            }
            None => self.memory.tell(origin, journal, now),
        }
    }

    /// Bytes of the robots rules of all rows.
    pub fn rules_bytes(&self) -> usize {
        self.rules_bytes
    }

    /// Notes what is known of a host's robots rules. No other way leads to or from known rules, whose bytes are counted.
    pub fn set_robots(&mut self, slot: u32, robots: RobotsState) {
        let host = &mut self.index.rows[slot as usize];
        self.rules_bytes -= host.robots.rules_bytes();
        self.rules_bytes += robots.rules_bytes();
        host.robots = robots;
    }

    // Addresses.

    pub fn address(&self, address: u32) -> &Address {
        &self.addresses.rows[address as usize]
    }

    pub fn address_mut(&mut self, address: u32) -> &mut Address {
        &mut self.addresses.rows[address as usize]
    }

    /// The slot of an address that some host here has.
    pub fn find_address(&self, ip: IpAddr) -> Option<u32> {
        self.addresses.find(ip)
    }

    /// What other servers wrote about an address.
    pub fn read_address(&self, ip: IpAddr, lines: &str, wall: Wall, now: Now) -> Option<Pace> {
        let ip = canonical(ip);
        all_of(lines, Clock { wall, now }, |entry| match entry {
            Entry::Address(whose, pace) if whose == ip => Some(pace),
            _ => None,
        })
    }

    /// What other servers wrote about the pace of a host.
    pub fn read_pace(&self, slot: u32, lines: &str, wall: Wall, now: Now) -> Option<Pace> {
        let origin = self.origin(slot);
        all_of(lines, Clock { wall, now }, |entry| match entry {
            Entry::Pace(whose, pace) if whose == origin => Some(pace),
            _ => None,
        })
    }

    pub fn addresses(&self) -> &[Address] {
        &self.addresses.rows
    }

    /// Where a host stands.
    pub fn ip(&self, slot: u32) -> IpAddr {
        self.address(self[slot].address).ip
    }

    /// A host and the address it stands at.
    pub fn with_address(&mut self, slot: u32) -> (&mut Host, &mut Address) {
        let host = &mut self.index.rows[slot as usize];
        let address = &mut self.addresses.rows[host.address as usize];
        (host, address)
    }

    /// The slot of an address that a host is about to use.
    pub fn join_address(&mut self, ip: IpAddr) -> u32 {
        self.addresses.join(ip, || {
            let mut pace = self.memory.recall_address(ip).unwrap_or_default();
            pace.put_off(self.quiet_until);
            pace
        })
    }

    /// Forgets an address that no host uses and at which nothing is open. While its pause lasts it is kept: then this
    /// returns the time of the timer to set.
    #[must_use]
    pub fn free_address(&mut self, address: u32, now: Now) -> Option<Now> {
        let row = &mut self.addresses.rows[address as usize];
        if !row.is_unused() {
            return None;
        }
        if row.pace.due() > now {
            return row.set_timer();
        }
        self.memory.keep_address(row.ip, row.pace);
        self.addresses.remove(address);
        None
    }

    /// Puts a host behind those that wait at its address.
    pub fn queue_at_address(&mut self, slot: u32) {
        let rows = &mut self.index.rows;
        self.addresses.rows[rows[slot as usize].address as usize].push_host(slot, rows);
    }

    /// Takes the host that has waited longest at an address.
    pub fn first_at_address(&mut self, address: u32) -> Option<u32> {
        self.addresses.rows[address as usize].pop_host(&mut self.index.rows)
    }

    // Hosts of several addresses.

    /// Whether there are other addresses to try soon if the next connection of a host takes long.
    pub fn has_more(&self, slot: u32) -> bool {
        self[slot].is(MULTI_ADDRESS) && self.fallbacks.get(&slot).is_some_and(Fallback::has_more)
    }

    /// Notes that a connection of a host was made.
    pub fn reached(&mut self, slot: u32, ip: IpAddr) {
        if let Some(fallback) = self.fallbacks.get_mut(&slot) {
            fallback.reached(ip);
        }
    }

    /// Notes that no connection could be made to an address of a host. Whether it has another to try; `None` if it has
    /// one address only.
    pub fn failed_at(&mut self, slot: u32, ip: IpAddr, cut_short: bool) -> Option<bool> {
        Some(self.fallbacks.get_mut(&slot)?.failed(ip, cut_short))
    }

    /// Moves a host to the address that it is to stand at, and returns the one it left. A host that waits at its old
    /// address moves when its turn comes there.
    pub fn stand(&mut self, slot: u32) -> Option<u32> {
        let host = &self[slot];
        if !host.is(MULTI_ADDRESS) || matches!(host.waits_in(), WaitsIn::Address | WaitsIn::Ready) {
            return None;
        }
        let ip = self.fallbacks.get(&slot)?.ip();
        (self.ip(slot) != ip).then(|| self.move_to(slot, ip))
    }

    fn move_to(&mut self, slot: u32, ip: IpAddr) -> u32 {
        let address = self.join_address(ip);
        std::mem::replace(&mut self[slot].address, address)
    }

    /// Notes the addresses of a host that stands at the first.
    fn set_fallback(&mut self, slot: u32, ip: IpAddr, others: Option<&[IpAddr]>) {
        if let Some(fallback) = others.and_then(|others| Fallback::new(ip, others)) {
            self[slot].set(MULTI_ADDRESS, true);
            self.fallbacks.insert(slot, fallback);
        }
    }

    /// Moves a host that has nothing to do to where its name leads by now, and returns the address it left.
    pub fn follow(&mut self, slot: u32, ip: IpAddr, others: Option<&[IpAddr]>) -> Option<u32> {
        let (stands_at, host) = (self.ip(slot), &mut self[slot]);
        let several = host.is(MULTI_ADDRESS);
        let is_same = stands_at == ip && !several && others.is_none();
        if is_same || !host.is_empty() || host.waits_in() != WaitsIn::Rest {
            return None;
        }
        let others = others.unwrap_or_default();
        if self.fallbacks.get(&slot).is_some_and(|fallback| several && fallback.same_as(ip, others)) {
            return None;
        }
        self[slot].set(MULTI_ADDRESS, false);
        let before = self.fallbacks.remove(&slot);
        self.set_fallback(slot, ip, Some(others));
        let mut target = ip;
        if let Some(fallback) = self.fallbacks.get_mut(&slot) {
            fallback.follow(before, stands_at);
            target = fallback.ip();
        }
        (target != stands_at).then(|| self.move_to(slot, target))
    }

    /// Queues, windows and addresses agree with each other and keep the bounds.
    pub fn invariants(&self, queue_len: usize, open_max: (u8, u8)) -> bool {
        assert!(self.index.invariants() && self.memory.invariants());
        let mut open_of = vec![0; self.addresses().len()];
        let mut hosts_of = vec![0; self.addresses().len()];
        for (slot, host) in self.iter().enumerate() {
            assert!(host.open() <= usize::from(open_max.0), "the active window holds");
            assert!(host.pages() <= queue_len.max(1), "a queue is bounded");
            host.active().for_each(|active| open_of[active.address as usize] += 1);
            hosts_of[host.address as usize] += 1;
            let several = self.fallbacks.contains_key(&(slot as u32));
            assert_eq!(host.is(MULTI_ADDRESS), several, "fallbacks belong to rows");
            assert!(
                host.robots.is_known() || host.pages_open() == 0,
                "no page before the robots rules are known"
            );
        }
        assert!(self.addresses.invariants(open_max.1, &open_of, &hosts_of));
        assert_eq!(self.iter().map(Host::queued).sum::<usize>(), self.urls.len());
        assert_eq!(self.iter().map(|host| host.robots.rules_bytes()).sum::<usize>(), self.rules_bytes);
        true
    }
}

/// All that lines say of one: where there are several, the longest of each pause.
fn all_of(lines: &str, clock: Clock, pace: impl Fn(Entry<'_>) -> Option<Pace>) -> Option<Pace> {
    let mut paces = lines.lines().filter_map(|line| pace(Entry::read(line.as_bytes(), clock, "")?));
    let first = paces.next()?;
    Some(paces.fold(first, |mut all, told| {
        all.join(&told);
        all
    }))
}
