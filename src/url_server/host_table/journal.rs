use super::robots_state::RobotsState;
use crate::base::{Now, Wall, canonical};
use crate::proto::robots::Robots;
use crate::url_server::niceness::Pace;
use rapidhash::fast::RapidHashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Lines about what must outlive this process, until they are taken to be written. The journal is text, a line for every
/// change worth keeping; the latest line of a host and kind counts:
///
/// ```text
///   pace http://a.example due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0
///   robots http://a.example known until=1763269200 delay_ms=500 A/public D/
///   robots http://b.example unreachable until=1763182920 since=1763182800 failures=2
///   address 192.0.2.7 due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0
/// ```
///
/// Times are of the calendar (microseconds for `due`, else seconds), so that they mean the same to the next process.
pub(crate) struct Journal {
    lines: String,
    wall: Wall,
}

impl Journal {
    pub fn new(wall: Wall) -> Journal {
        Journal { lines: String::new(), wall }
    }

    /// The lines since the last call.
    pub fn take(&mut self) -> Option<String> {
        (!self.lines.is_empty()).then(|| std::mem::take(&mut self.lines))
    }

    /// Adds the line about a host's pace.
    pub fn pace(&mut self, origin: &str, pace: &Pace) {
        self.pace_of("pace", origin, pace);
    }

    /// Adds the line about the pace of an address.
    pub fn address(&mut self, ip: IpAddr, pace: &Pace) {
        self.pace_of("address", ip, pace);
    }

    fn pace_of(&mut self, kind: &str, whose: impl std::fmt::Display, pace: &Pace) {
        let _ = writeln!(
            self.lines,
            "{kind} {whose} due={} penalty_us={} response_us={} delay_ms={} failures={}",
            // The calendar at zero was cut to a millisecond: rounded up, so that no other process is early by it.
            self.wall.unix_ms_at_zero * 1_000 + pace.due().us() + 999,
            pace.penalty_us,
            pace.response_pause_us,
            pace.crawl_delay_ms(),
            pace.failures(),
        );
    }

    /// Adds the line about a host's robots rules, if they are known or known to be out of reach.
    pub fn robots(&mut self, origin: &str, robots: &RobotsState) {
        let unix_s = (self.wall.unix_ms_at_zero / 1_000) as i64;
        let lines = &mut self.lines;
        match robots {
            RobotsState::Known { until_s, rules } => {
                let until = unix_s + i64::from(*until_s);
                let delay_ms = rules.as_ref().and_then(|rules| rules.crawl_delay_ms()).unwrap_or(0);
                let _ = write!(lines, "robots {origin} known until={until} delay_ms={delay_ms}");
                for (allow, pattern) in rules.iter().flat_map(|rules| rules.patterns()) {
                    let _ = write!(lines, " {}{pattern}", if allow { 'A' } else { 'D' });
                }
                lines.push('\n');
            }
            RobotsState::Unreachable { until_s, since_s, failures } => {
                let (until, since) = (unix_s + i64::from(*until_s), unix_s + i64::from(*since_s));
                let _ = writeln!(
                    lines,
                    "robots {origin} unreachable until={until} since={since} failures={failures}"
                );
            }
            _ => {}
        }
    }
}

/// What one line says.
pub(super) enum Entry<'a> {
    Address(IpAddr, Pace),
    Pace(&'a str, Pace),
    Robots(&'a str, RobotsState),
}

impl<'a> Entry<'a> {
    pub fn read(line: &'a [u8], clock: Clock) -> Option<Entry<'a>> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        let (kind, whose) = (words.next()?, words.next()?);
        match kind {
            "address" => Some(Entry::Address(canonical(whose.parse().ok()?), read_pace(&mut words, clock)?)),
            _ if !whose.contains("://") => None,
            "pace" => Some(Entry::Pace(whose, read_pace(&mut words, clock)?)),
            "robots" => Some(Entry::Robots(whose, read_robots(&mut words, clock)?)),
            _ => None,
        }
    }
}

/// Calendar times as this process counts them.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub wall: Wall,
    pub now: Now,
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

fn read_pace<'a>(words: &mut impl Iterator<Item = &'a str>, clock: Clock) -> Option<Pace> {
    let mut pace = Pace::from(clock.at_us(field(words.next()?, "due=")?));
    pace.penalty_us = field(words.next()?, "penalty_us=")?;
    pace.response_pause_us = field(words.next()?, "response_us=")?;
    pace.set_crawl_delay(Some(field(words.next()?, "delay_ms=")?));
    pace.set_failures(field(words.next()?, "failures=")?);
    Some(pace)
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

/// A shorter journal that says the same: the newest line of every host and kind, in the order of their writing.
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
