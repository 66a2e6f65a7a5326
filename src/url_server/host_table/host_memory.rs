use super::host::Host;
use super::journal::{Clock, Entry, Journal};
use super::robots_state::RobotsState;
use crate::base::Now;
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

    /// Reads a journal, for whoever `agent` is our name in robots.txt. Lines that make no sense are passed over and counted:
    /// the last may be torn.
    pub fn read(&mut self, journal: &[u8], clock: Clock, agent: &str) -> usize {
        let mut bad = 0;
        for line in journal.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match Entry::read(line, clock, agent) {
                Some(entry) => self.insert(entry, clock.now),
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
        let known = robots.is_known() || matches!(robots, RobotsState::Unreachable { .. });
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

    /// Writes down what is remembered of a host.
    pub(super) fn tell(&self, origin: &str, journal: &mut Journal, now: Now) {
        if let Some(Remembered { pace, robots }) = self.hosts.get(origin) {
            journal.pace(origin, pace, now);
            robots.iter().for_each(|robots| journal.robots(origin, robots));
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
    use crate::base::Wall;
    use crate::proto::robots::Robots;
    use crate::url_server::host_table::host_names::HostNames;
    use crate::url_server::host_table::journal::compacted;
    use crate::url_server::host_table::robots_state::Failing;

    fn host() -> Host {
        Host::new(HostNames::default().insert(""), 0, Now::ZERO, 0)
    }

    const WALL: Wall = Wall { unix_ms_at_zero: 1_763_182_800_000 };

    /// Writes a host to a journal in one process and recalls it in another that starts `later_ms` after, by its clock.
    fn carried_over_as(host: &Host, later_ms: i64, agent: &str) -> Host {
        let mut journal = Journal::new(WALL, "nephila");
        journal.pace("http://a", &host.pace, Now::ZERO);
        journal.robots("http://a", &host.robots);
        let journal = journal.take().unwrap();
        let next = Wall { unix_ms_at_zero: WALL.unix_ms_at_zero.strict_add_signed(later_ms) };
        let mut memory = HostMemory::new(10);
        let compact = compacted(journal.as_bytes(), next.unix_ms_at_zero * 1_000);
        let clock = Clock { wall: next, now: Now::ZERO };
        assert_eq!(memory.read(&compact, clock, agent), 0, "{journal}");
        let mut recalled = self::host();
        memory.recall("http://a", &mut recalled);
        assert!(memory.hosts.is_empty());
        recalled
    }

    fn carried_over(host: &Host, later_ms: i64) -> Host {
        carried_over_as(host, later_ms, "Nephila")
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
        // Written by a clock that was ahead: the pause is what it was, from here on.
        for ahead_ms in [1, 3 * DAY_MS, 400 * DAY_MS] {
            let after = carried_over(&before, -ahead_ms);
            assert_eq!(after.pace.due(), Now::from_us(90_000_007 + 999), "{ahead_ms}");
        }
        before.pace.put_off(Now::from_us(9 * 86_400_000_000));
        assert_eq!(
            carried_over(&before, -DAY_MS).pace.due(),
            Now::from_us(86_400_000_000),
            "no pause is longer"
        );
    }

    const DAY_MS: i64 = 86_400_000;

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
        assert!(matches!(carried_over_as(&before, 1, "other").robots, RobotsState::Unknown));

        let failing = Failing { since_s: -5, failures: 4 };
        before.robots = RobotsState::Unreachable { until_s: 60, failing };
        let after = carried_over(&before, 10_000);
        let failing = Failing { since_s: -15, failures: 4 };
        assert!(matches!(after.robots, RobotsState::Unreachable { until_s: 50, failing: f } if f == failing));
        before.robots = RobotsState::GivenUp { until_s: 60, failing };
        let after = carried_over(&before, 10_000);
        let failing = Failing { since_s: -25, ..failing };
        assert!(matches!(after.robots, RobotsState::GivenUp { until_s: 50, failing: f } if f == failing));
    }

    /// Whatever is dated after now was learnt by a clock that was wrong.
    #[test]
    fn rules_from_the_future_are_not_believed() {
        let mut before = host();
        let failing = Failing { since_s: -5, failures: 4 };
        for (robots, ahead_ms) in [
            (RobotsState::known(None, Now::ZERO), 1_000),
            (RobotsState::known(None, Now::ZERO), 3 * DAY_MS),
            (RobotsState::Unreachable { until_s: 60, failing }, 3 * DAY_MS),
            (RobotsState::Unreachable { until_s: 60, failing }, 6_000),
            (
                RobotsState::GivenUp { until_s: 86_400, failing: Failing { since_s: -9_999_999, ..failing } },
                1_000,
            ),
        ] {
            before.robots = robots;
            assert!(matches!(carried_over(&before, -ahead_ms).robots, RobotsState::Unknown), "{ahead_ms}");
        }
    }

    /// Journals of earlier builds, and of a clock that nobody had set.
    #[test]
    fn what_an_old_line_does_not_say_is_not_guessed() {
        let now = Clock { wall: WALL, now: Now::ZERO };
        let read = |line: &str| {
            let mut memory = HostMemory::new(10);
            assert_eq!(memory.read(line.as_bytes(), now, "nephila"), 0, "{line}");
            let mut host = host();
            memory.recall("http://a", &mut host);
            host
        };
        let unix_s = WALL.unix_ms_at_zero / 1_000;
        let rules = read(&format!("robots http://a known until={} delay_ms=0 D/", unix_s + 60));
        assert!(matches!(rules.robots, RobotsState::Unknown));
        let pace = format!(
            "pace http://a due={}000000 penalty_us=0 response_us=0 delay_ms=0 failures=0",
            unix_s + 60
        );
        assert_eq!(read(&pace).pace.due(), Now::from_us(60_000_000));
        let unset = read("robots http://a unreachable until=90 since=30 failures=1");
        assert!(!unset.robots.out_of_reach(Now::ZERO).is_known(), "not 50 years without an answer");
    }

    #[test]
    fn rubbish_is_counted_and_passed_over() {
        let mut memory = HostMemory::new(10);
        let journal =
            b"pace\nwhat http://a x\n\xff\xff\nrobots http://a known agent=x until=x\npace http://a due=1 penalty";
        assert_eq!(memory.read(journal, Clock { wall: WALL, now: Now::ZERO }, "x"), 5);
    }
}
