use super::host::{Host, RobotsState};
use super::niceness::Pace;
use crate::base::{Now, Wall, shown};
use crate::proto::robots::Robots;
use rapidhash::fast::RapidHashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// What must not be forgotten of hosts that have no row: how they want to be treated, and their robots rules.
///
/// It is filled from the journal of an earlier process, and by rows that go to another host. The journal is text,
/// a line for every change worth keeping; the latest line of a host and kind counts:
///
/// ```text
///   pace http://a.example due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0
///   robots http://a.example known until=1763269200 delay_ms=500 A/public D/
///   robots http://b.example unreachable until=1763182920 since=1763182800 failures=2
///   address 192.0.2.7 due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0
/// ```
///
/// Times are of the calendar (microseconds for `due`, else seconds), so that they mean the same to the next process.
pub struct HostMemory {
    hosts: RapidHashMap<Box<str>, Remembered>,
    addresses: RapidHashMap<IpAddr, Pace>,
    hosts_max: usize,
    rules_bytes: usize,
}

/// What is remembered of one host.
#[derive(Default)]
pub(super) struct Remembered {
    pub(super) pace: Pace,
    pub(super) robots: Option<RobotsState>,
}

/// A small table may belong to a long crawl.
const HOSTS_MIN: usize = 1 << 16;
/// Rules that take more than this, or would bring all of them together above the second, are not kept for a host
/// without a row; they are asked for again.
const RULES_BYTES_MAX: usize = 16 * 1024;
const RULES_BYTES_ALL: usize = 64 << 20;

impl HostMemory {
    /// Remembers this many hosts, and in any case some ten thousand.
    pub fn new(hosts_max: usize) -> HostMemory {
        let hosts_max = hosts_max.max(HOSTS_MIN);
        HostMemory {
            hosts: RapidHashMap::default(),
            addresses: RapidHashMap::default(),
            hosts_max,
            rules_bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(super) fn get(&self, origin: &str) -> Option<&Remembered> {
        self.hosts.get(origin)
    }

    /// Reads a journal. Lines that make no sense are passed over and counted: the last may be torn.
    pub fn read(&mut self, journal: &[u8], wall: Wall, now: Now) -> usize {
        let mut bad = 0;
        for line in journal.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let read = str::from_utf8(line).ok().and_then(|line| self.read_line(line, wall, now));
            bad += usize::from(read.is_none());
        }
        bad
    }

    fn read_line(&mut self, line: &str, wall: Wall, now: Now) -> Option<()> {
        let mut words = line.split(' ');
        let (kind, origin) = (words.next()?, words.next()?);
        if kind != "address" && !origin.contains("://") {
            return None;
        }
        let clock = Clock { wall, now };
        match kind {
            "address" => {
                let (ip, pace) = (origin.parse().ok()?, read_pace(&mut words, clock)?);
                if self.addresses.len() < self.hosts_max && (pace.due() > now || !pace.is_plain()) {
                    self.addresses.insert(ip, pace);
                } else {
                    self.addresses.remove(&ip);
                }
            }
            "pace" => {
                let pace = read_pace(&mut words, clock)?;
                if let Some(host) = self.host(origin) {
                    host.pace = pace;
                }
            }
            "robots" => {
                let robots = read_robots(&mut words, clock)?;
                self.host(origin);
                self.remember_robots(origin, robots);
            }
            _ => return None,
        }
        Some(())
    }

    /// The place of one host; none if there are too many.
    fn host(&mut self, origin: &str) -> Option<&mut Remembered> {
        if !self.hosts.contains_key(origin) {
            if self.hosts.len() >= self.hosts_max {
                return None;
            }
            self.hosts.insert(origin.into(), Remembered::default());
        }
        self.hosts.get_mut(origin)
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

    /// Notes what is known of robots rules, for a host that has a place here.
    fn remember_robots(&mut self, origin: &str, robots: RobotsState) {
        let Some(host) = self.hosts.get_mut(origin) else {
            return;
        };
        self.rules_bytes -= host.robots.take().map_or(0, |robots| rules_bytes(&robots));
        if let RobotsState::Known { rules, .. } = &robots {
            host.pace.set_crawl_delay(rules.as_ref().and_then(|rules| rules.crawl_delay_ms()));
        }
        let bytes = rules_bytes(&robots);
        if bytes <= RULES_BYTES_MAX && self.rules_bytes + bytes <= RULES_BYTES_ALL {
            self.rules_bytes += bytes;
            host.robots = Some(robots);
        }
    }

    /// Keeps what matters of an address that nobody uses any more.
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
            self.rules_bytes -= robots.as_ref().map_or(0, rules_bytes);
            host.robots = robots.unwrap_or(RobotsState::Unknown);
        }
    }
}

fn rules_bytes(robots: &RobotsState) -> usize {
    match robots {
        RobotsState::Known { rules: Some(rules), .. } => rules.heap_bytes(),
        _ => 0,
    }
}

fn read_pace<'a>(words: &mut impl Iterator<Item = &'a str>, clock: Clock) -> Option<Pace> {
    let mut pace = Pace::from(clock.at_us(field(words.next()?, "due=")?));
    pace.penalty_us = field(words.next()?, "penalty_us=")?;
    pace.response_pause_us = field(words.next()?, "response_us=")?;
    pace.set_crawl_delay(Some(field(words.next()?, "delay_ms=")?));
    pace.set_failures(field(words.next()?, "failures=")?);
    Some(pace)
}

/// Adds the line about a host's pace to a journal.
pub(super) fn write_pace(journal: &mut String, origin: &str, pace: &Pace, wall: Wall) {
    write_pace_of(journal, "pace", origin, pace, wall);
}

/// Adds the line about the pace of an address to a journal.
pub(super) fn write_address(journal: &mut String, ip: IpAddr, pace: &Pace, wall: Wall) {
    write_pace_of(journal, "address", ip, pace, wall);
}

fn write_pace_of(journal: &mut String, kind: &str, whose: impl std::fmt::Display, pace: &Pace, wall: Wall) {
    let _ = writeln!(
        journal,
        "{kind} {} due={} penalty_us={} response_us={} delay_ms={} failures={}",
        whose,
        // The calendar at zero was cut to a millisecond: rounded up, so that no other process is early by it.
        wall.unix_ms_at_zero * 1_000 + pace.due().us() + 999,
        pace.penalty_us,
        pace.response_pause_us,
        pace.crawl_delay_ms(),
        pace.failures(),
    );
}

/// Adds the line about a host's robots rules to a journal, if there is something to say.
pub(super) fn write_robots(journal: &mut String, origin: &str, robots: &RobotsState, wall: Wall) {
    let unix_s = (wall.unix_ms_at_zero / 1_000) as i64;
    match robots {
        RobotsState::Known { until_s, rules } => {
            let until = unix_s + i64::from(*until_s);
            let _ = write!(journal, "robots {origin} known until={until}");
            let delay_ms = rules.as_ref().and_then(|rules| rules.crawl_delay_ms());
            let _ = write!(journal, " delay_ms={}", delay_ms.unwrap_or(0));
            for (allow, pattern) in rules.iter().flat_map(|rules| rules.patterns()) {
                let _ = write!(journal, " {}{pattern}", if allow { 'A' } else { 'D' });
            }
            journal.push('\n');
        }
        RobotsState::Unreachable { until_s, since_s, failures } => {
            let (until, since) = (unix_s + i64::from(*until_s), unix_s + i64::from(*since_s));
            let _ = writeln!(
                journal,
                "robots {origin} unreachable until={until} since={since} failures={failures}"
            );
        }
        RobotsState::Unknown | RobotsState::Asked | RobotsState::Hop(_) | RobotsState::Elsewhere { .. } => {}
    }
}

/// Calendar times as this process counts them.
#[derive(Clone, Copy)]
struct Clock {
    wall: Wall,
    now: Now,
}

/// Nothing is put off for longer than this by what an earlier process wrote: its clock may have been wrong.
const AHEAD_US_MAX: u64 = 2 * 86_400_000_000;

impl Clock {
    fn at_us(self, unix_us: u64) -> Now {
        let zero_us = self.wall.unix_ms_at_zero * 1_000;
        Now::from_us(unix_us.saturating_sub(zero_us)).min(self.now.plus_us(AHEAD_US_MAX))
    }

    fn at_s(self, unix_s: u64) -> u32 {
        (self.at_us(unix_s.saturating_mul(1_000_000)).us() / 1_000_000).min(u64::from(u32::MAX)) as u32
    }

    /// Seconds from the start of this process; negative before it.
    fn relative_s(self, unix_s: i64) -> i32 {
        let relative = unix_s - (self.wall.unix_ms_at_zero / 1_000) as i64;
        relative.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }
}

fn read_robots<'a>(words: &mut impl Iterator<Item = &'a str>, clock: Clock) -> Option<RobotsState> {
    match words.next()? {
        "known" => {
            let until_s = clock.at_s(field(words.next()?, "until=")?);
            let delay_ms: u32 = field(words.next()?, "delay_ms=")?;
            let mut text = String::from("user-agent: *\n");
            if delay_ms > 0 {
                let _ = writeln!(text, "crawl-delay: {}.{:03}", delay_ms / 1_000, delay_ms % 1_000);
            }
            let mut empty = delay_ms == 0;
            for word in words {
                let (kind, pattern) = word.split_at_checked(1)?;
                let rule = match kind {
                    "A" => "allow",
                    "D" => "disallow",
                    _ => return None,
                };
                let _ = writeln!(text, "{rule}: {pattern}");
                empty = false;
            }
            let rules = (!empty).then(|| Box::new(Robots::parse(text.as_bytes(), "*")));
            Some(RobotsState::Known { until_s, rules })
        }
        "unreachable" => Some(RobotsState::Unreachable {
            until_s: clock.at_s(field(words.next()?, "until=")?),
            since_s: clock.relative_s(field(words.next()?, "since=")?),
            failures: field(words.next()?, "failures=")?,
        }),
        _ => None,
    }
}

fn field<T: std::str::FromStr>(word: &str, name: &str) -> Option<T> {
    word.strip_prefix(name)?.parse().ok()
}

/// The newest line of every host and kind, in the order of their writing: a journal that says the same in less.
pub fn compacted(journal: &[u8]) -> Vec<u8> {
    let key = |line: &[u8]| -> Option<(u8, u64)> {
        let mut words = line.split(|&byte| byte == b' ');
        let kind = *words.next()?.first()?;
        Some((kind, crate::base::fingerprint(words.next()?)))
    };
    let mut newest = RapidHashMap::default();
    let lines = || journal.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for (number, line) in lines().enumerate() {
        if let Some(key) = key(line) {
            newest.insert(key, number);
        }
    }
    let kept =
        lines().enumerate().filter(|(number, line)| key(line).is_some_and(|key| newest[&key] == *number));
    kept.flat_map(|(_, line)| line.iter().copied()).collect()
}

/// Why a host is set aside, for whoever asks.
pub(super) fn set_aside_line(origin: &str, pace: &Pace) -> String {
    format!("{}: set aside for a day: it failed {} times in a row", shown(origin, 200), pace.failures())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host::new(super::super::host_names::HostNames::default().insert(""), 0, Now::ZERO, 0)
    }

    /// Writes a host to a journal in one process and recalls it in another that starts `later_ms` after.
    fn carried_over(host: &Host, later_ms: u64) -> Host {
        let wall = Wall { unix_ms_at_zero: 1_763_182_800_000 };
        let mut journal = String::new();
        write_pace(&mut journal, "http://a", &host.pace, wall);
        write_robots(&mut journal, "http://a", &host.robots, wall);
        let next = Wall { unix_ms_at_zero: wall.unix_ms_at_zero + later_ms };
        let mut memory = HostMemory::new(10);
        assert_eq!(memory.read(&compacted(journal.as_bytes()), next, Now::ZERO), 0, "{journal}");
        let mut recalled = self::host();
        memory.recall("http://a", &mut recalled);
        assert!(memory.is_empty());
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
