use super::host::Host;
use super::journal::{Clock, Entry};
use super::robots_state::RobotsState;
use crate::base::{Now, Wall};
use crate::url_server::niceness::Pace;
use crate::url_server::view::{PauseView, RobotsView};
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// What must not be forgotten of hosts that have no row: how they want to be treated, and their robots rules. It is
/// filled from the journal of an earlier process, and by rows that go to another host.
pub struct HostMemory {
    hosts: RapidHashMap<Box<str>, Remembered>,
    addresses: RapidHashMap<IpAddr, Pace>,
    hosts_max: usize,
    rules_bytes: usize,
}

/// What is remembered of one host.
#[derive(Default)]
struct Remembered {
    pace: Pace,
    robots: Option<RobotsState>,
}

/// A small table may belong to a long crawl.
const HOSTS_MIN: usize = 1 << 16;
/// Rules that take more than this, or would bring all of them together above the second, are not kept for a host
/// without a row; they are requested again.
const RULES_BYTES_MAX: usize = 16 * 1024;
const RULES_BYTES_ALL: usize = 64 << 20;

impl HostMemory {
    /// Remembers this many hosts, and in any case some ten thousand.
    pub fn new(hosts_max: usize) -> HostMemory {
        HostMemory {
            hosts: RapidHashMap::default(),
            addresses: RapidHashMap::default(),
            hosts_max: hosts_max.max(HOSTS_MIN),
            rules_bytes: 0,
        }
    }

    /// Reads a journal. Lines that make no sense are passed over and counted: the last may be torn.
    pub fn read(&mut self, journal: &[u8], wall: Wall, now: Now) -> usize {
        let mut bad = 0;
        for line in journal.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match Entry::read(line, Clock { wall, now }) {
                Some(entry) => self.insert(entry, now),
                None => bad += 1,
            }
        }
        bad
    }

    fn insert(&mut self, entry: Entry<'_>, now: Now) {
        match entry {
            Entry::Address(ip, pace)
                if self.addresses.len() < self.hosts_max && (pace.due() > now || !pace.is_plain()) =>
            {
                self.addresses.insert(ip, pace);
            }
            Entry::Address(ip, _) => _ = self.addresses.remove(&ip),
            Entry::Pace(origin, pace) => {
                if let Some(host) = self.host(origin) {
                    host.pace = pace;
                }
            }
            Entry::Robots(origin, robots) => {
                self.host(origin);
                self.remember_robots(origin, robots);
            }
        }
    }

    /// The entry of one host; none if there are too many.
    fn host(&mut self, origin: &str) -> Option<&mut Remembered> {
        if !self.hosts.contains_key(origin) {
            if self.hosts.len() >= self.hosts_max {
                return None;
            }
            self.hosts.insert(origin.into(), Remembered::default());
        }
        self.hosts.get_mut(origin)
    }

    /// Counts the Crawl-delay of every host from now.
    pub(super) fn asked_until(&mut self, now: Now) {
        for host in self.hosts.values_mut() {
            host.pace.put_off(now.plus_ms(u64::from(host.pace.crawl_delay_ms())));
        }
    }

    /// Keeps what matters of a host whose row goes to another.
    pub(super) fn keep(&mut self, origin: &str, host: Host) {
        let Host { pace, robots, .. } = host;
        let known = matches!(robots, RobotsState::Known { .. } | RobotsState::Unreachable { .. });
        let Some(place) = (known || !pace.is_plain()).then(|| self.host(origin)).flatten() else {
            return;
        };
        place.pace = pace;
        if known {
            self.remember_robots(origin, robots);
        }
    }

    /// Notes what is known of robots rules, for a host that has an entry.
    fn remember_robots(&mut self, origin: &str, robots: RobotsState) {
        let Some(host) = self.hosts.get_mut(origin) else {
            return;
        };
        self.rules_bytes -= host.robots.take().map_or(0, |robots| robots.rules_bytes());
        if let RobotsState::Known { rules, .. } = &robots {
            host.pace.set_crawl_delay(rules.as_ref().and_then(|rules| rules.crawl_delay_ms()));
        }
        let bytes = robots.rules_bytes();
        if bytes <= RULES_BYTES_MAX && self.rules_bytes + bytes <= RULES_BYTES_ALL {
            self.rules_bytes += bytes;
            host.robots = Some(robots);
        }
    }

    /// Keeps what matters of an address that no host uses any more.
    pub(super) fn keep_address(&mut self, ip: IpAddr, pace: Pace) {
        if !pace.is_plain() && self.addresses.len() < self.hosts_max {
            self.addresses.insert(ip, pace);
        }
    }

    /// What is remembered of an address that is used again.
    pub(super) fn recall_address(&mut self, ip: IpAddr) -> Option<Pace> {
        if self.addresses.is_empty() { None } else { self.addresses.remove(&ip) }
    }

    /// Gives a host that got a row what is remembered of it.
    pub(super) fn recall(&mut self, origin: &str, host: &mut Host) {
        if self.hosts.is_empty() {
            return;
        }
        if let Some(Remembered { mut pace, robots }) = self.hosts.remove(origin) {
            pace.put_off(host.pace.due());
            host.pace = pace;
            self.rules_bytes -= robots.as_ref().map_or(0, RobotsState::rules_bytes);
            host.robots = robots.unwrap_or(RobotsState::Unknown);
        }
    }

    /// What is remembered of a host, and what its rules say of a path.
    pub fn look(&self, origin: &str, path: &str) -> Option<(PauseView, RobotsView)> {
        let host = self.hosts.get(origin)?;
        let robots = host.robots.as_ref().map_or(RobotsView::Unknown, |robots| RobotsView::of(robots, path));
        Some((PauseView::of(&host.pace), robots))
    }

    /// The bytes of rules are counted, and bounded.
    pub(super) fn invariants(&self) -> bool {
        let robots = self.hosts.values().filter_map(|host| host.robots.as_ref());
        assert_eq!(self.rules_bytes, robots.map(RobotsState::rules_bytes).sum::<usize>());
        self.rules_bytes <= RULES_BYTES_ALL && self.hosts.len() <= self.hosts_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::robots::Robots;
    use crate::url_server::host_table::host_names::HostNames;
    use crate::url_server::host_table::journal::{Journal, compacted};

    fn host() -> Host {
        Host::new(HostNames::default().insert(""), 0, Now::ZERO, 0)
    }

    /// Writes a host to a journal in one process and recalls it in another that starts `later_ms` after.
    fn carried_over(host: &Host, later_ms: u64) -> Host {
        let wall = Wall { unix_ms_at_zero: 1_763_182_800_000 };
        let mut journal = Journal::new(wall);
        journal.pace("http://a", &host.pace);
        journal.robots("http://a", &host.robots);
        let journal = journal.take().unwrap();
        let next = Wall { unix_ms_at_zero: wall.unix_ms_at_zero + later_ms };
        let mut memory = HostMemory::new(10);
        assert_eq!(memory.read(&compacted(journal.as_bytes()), next, Now::ZERO), 0, "{journal}");
        let mut recalled = self::host();
        memory.recall("http://a", &mut recalled);
        assert!(memory.hosts.is_empty());
        recalled
    }

    #[test]
    fn delays_survive_a_restart_and_end_no_sooner() {
        let mut before = host();
        before.pace = Pace::from(Now::from_us(90_000_007));
        before.pace.penalty_us = 4_000_000;
        before.pace.set_crawl_delay(Some(1_500));
        before.pace.set_failures(3);
        let after = carried_over(&before, 60_000);
        assert_eq!(after.pace.due(), Now::from_us(30_000_007 + 999));
        let what = (after.pace.penalty_us, after.pace.crawl_delay_ms(), after.pace.failures());
        assert_eq!(what, (4_000_000, 1_500, 3));
        assert_eq!(carried_over(&before, 600_000).pace.due(), Now::ZERO, "long past");
    }

    #[test]
    fn rules_survive_a_restart() {
        let text = b"User-agent: *\nCrawl-delay: 2.5\nDisallow: /a*b$\nAllow: /a%2Ab\nDisallow: /\nAllow: /caf\xc3\xa9\nDisallow: /x y\n";
        let mut before = host();
        let rules = Robots::parse(text, "nephila");
        before.robots = RobotsState::Known { until_s: 500, rules: Some(Box::new(rules.clone())) };
        let after = carried_over(&before, 100_000);
        let RobotsState::Known { until_s, rules: Some(recalled) } = after.robots else { panic!("known") };
        assert_eq!(until_s, 400);
        assert_eq!(*recalled, rules);
        assert_eq!(after.pace.crawl_delay_ms(), 2_500);

        before.robots = RobotsState::Unreachable { until_s: 60, since_s: -5, failures: 4 };
        let after = carried_over(&before, 10_000);
        assert!(matches!(after.robots, RobotsState::Unreachable { until_s: 50, since_s: -15, failures: 4 }));
    }

    #[test]
    fn rubbish_is_counted_and_passed_over() {
        let mut memory = HostMemory::new(10);
        let journal =
            b"pace\nwhat http://a x\n\xff\xff\nrobots http://a known until=x\npace http://a due=1 penalty";
        assert_eq!(memory.read(journal, Wall { unix_ms_at_zero: 0 }, Now::ZERO), 5);
    }
}
