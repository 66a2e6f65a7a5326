use super::robots_state::{Failing, RobotsState, TTL_S};
use crate::base::{CLOCK_SET_S, Now, Wall, canonical};
use crate::proto::robots::Robots;
use crate::url_server::niceness::Pace;
use rapidhash::fast::RapidHashMap;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Lines about what must outlive this process, until they are taken to be written. The journal is text, a line for every
/// change worth keeping; the latest line of a host and kind counts:
///
/// ```text
///   pace http://a.example due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0 at=1763182800023456
///   robots http://a.example known agent=nephila until=1763269200 delay_ms=500 A/public D/
///   robots http://b.example unreachable until=1763182920 since=1763182800 failures=2
///   robots http://c.example given_up until=1763269200 since=1760504400 failures=39
///   address 192.0.2.7 due=1763182800123456 penalty_us=2000000 response_us=0 delay_ms=0 failures=0 at=1763182800023456
/// ```
///
/// Times are of the calendar (microseconds for `due` and for `at`, when the line was written, else seconds), so that they
/// mean the same to the next process. What is dated after now was written by a clock that was wrong: rules are then not
/// known, and a pause counts from now.
pub(crate) struct Journal {
    lines: String,
    wall: Wall,
    /// Our name in robots.txt: the rules are those for it.
    agent: Box<str>,
}

impl Journal {
    pub fn new(wall: Wall, agent: &str) -> Journal {
        Journal { lines: String::new(), wall, agent: agent.into() }
    }

    /// The lines since the last call.
    pub fn take(&mut self) -> Option<String> {
        (!self.lines.is_empty()).then(|| std::mem::take(&mut self.lines))
    }

    /// Adds the line about a host's pace.
    pub fn pace(&mut self, origin: &str, pace: &Pace, now: Now) {
        self.pace_of("pace", origin, pace, now);
    }

    /// Adds the line about the pace of an address.
    pub fn address(&mut self, ip: IpAddr, pace: &Pace, now: Now) {
        self.pace_of("address", ip, pace, now);
    }

    fn pace_of(&mut self, kind: &str, whose: impl std::fmt::Display, pace: &Pace, now: Now) {
        let zero_us = self.wall.unix_ms_at_zero * 1_000;
        let _ = writeln!(
            self.lines,
            "{kind} {whose} due={} penalty_us={} response_us={} delay_ms={} failures={} at={}",
            // The calendar at zero was cut to a millisecond: rounded up, so that no other process is early by it.
            zero_us + pace.due().us() + 999,
            pace.penalty_us,
            pace.response_pause_us,
            pace.crawl_delay_ms(),
            pace.failures(),
            zero_us + now.us(),
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
                let agent = &self.agent;
                let _ =
                    write!(lines, "robots {origin} known agent={agent} until={until} delay_ms={delay_ms}");
                for (allow, pattern) in rules.iter().flat_map(|rules| rules.patterns()) {
                    let _ = write!(lines, " {}{pattern}", if allow { 'A' } else { 'D' });
                }
                lines.push('\n');
            }
            RobotsState::Unreachable { until_s, failing } | RobotsState::GivenUp { until_s, failing } => {
                let state = if robots.is_known() { "given_up" } else { "unreachable" };
                let (until, since) = (unix_s + i64::from(*until_s), unix_s + i64::from(failing.since_s));
                let failures = failing.failures;
                let _ = writeln!(
                    lines,
                    "robots {origin} {state} until={until} since={since} failures={failures}"
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
    /// Reads a line, for whoever `agent` is our name in robots.txt.
    pub fn read(line: &'a [u8], clock: Clock, agent: &str) -> Option<Entry<'a>> {
        let mut words = str::from_utf8(line).ok()?.split(' ');
        let (kind, whose) = (words.next()?, words.next()?);
        match kind {
            "address" => Some(Entry::Address(canonical(whose.parse().ok()?), read_pace(&mut words, clock)?)),
            _ if !whose.contains("://") => None,
            "pace" => Some(Entry::Pace(whose, read_pace(&mut words, clock)?)),
            "robots" => Some(Entry::Robots(whose, read_robots(&mut words, clock, agent)?)),
            _ => None,
        }
    }
}

/// Calendar times as this process counts them.
#[derive(Clone, Copy)]
pub struct Clock {
    pub wall: Wall,
    pub now: Now,
}

/// No pause is longer: Retry-After is honoured for as long, and a host that only fails is set aside for as long.
const PAUSE_US_MAX: u64 = 86_400_000_000;

impl Clock {
    fn zero_us(self) -> u64 {
        self.wall.unix_ms_at_zero * 1_000
    }

    fn unix_us(self) -> u64 {
        self.zero_us() + self.now.us()
    }

    /// Seconds from the start of this process.
    fn at_s(self, unix_s: u64) -> u32 {
        let us = unix_s.saturating_mul(1_000_000).saturating_sub(self.zero_us());
        (us / 1_000_000).min(u64::from(u32::MAX)) as u32
    }

    /// The same; negative before it.
    fn relative_s(self, unix_s: u64) -> i32 {
        let unix_s = i64::try_from(unix_s).unwrap_or(i64::MAX);
        let relative = unix_s.saturating_sub((self.wall.unix_ms_at_zero / 1_000) as i64);
        relative.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    }
}

fn read_pace<'a>(words: &mut impl Iterator<Item = &'a str>, clock: Clock) -> Option<Pace> {
    let due_us = field(words.next()?, "due=")?;
    let mut pace = Pace::default();
    pace.penalty_us = field(words.next()?, "penalty_us=")?;
    pace.response_pause_us = field(words.next()?, "response_us=")?;
    pace.set_crawl_delay(Some(field(words.next()?, "delay_ms=")?));
    pace.set_failures(field(words.next()?, "failures=")?);
    let at_us = words.next().map_or(Some(0), |word| field(word, "at="))?;
    pace.put_off(Now::from_us(believed(due_us, at_us, clock.unix_us()).saturating_sub(clock.zero_us())));
    Some(pace)
}

/// When a pause ends that was written down at `at_us` (0 if that is not known).
fn believed(due_us: u64, at_us: u64, now_us: u64) -> u64 {
    let left_us = due_us.saturating_sub(at_us.max(now_us));
    now_us.min(due_us).saturating_add(left_us.min(PAUSE_US_MAX))
}

fn read_robots<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    clock: Clock,
    agent: &str,
) -> Option<RobotsState> {
    let state = words.next()?;
    let mut word = words.next()?;
    // Rules of another name are not ours, and lines of earlier builds do not say whose they are.
    let is_ours = match word.strip_prefix("agent=") {
        Some(name) => {
            word = words.next()?;
            name.eq_ignore_ascii_case(agent)
        }
        None => state != "known",
    };
    let until: u64 = field(word, "until=")?;
    let now_s = clock.unix_us() / 1_000_000;
    let until_s = clock.at_s(until);
    let is_ours = is_ours && until <= now_s + TTL_S;
    if state == "known" {
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
        if !is_ours {
            return Some(RobotsState::Unknown);
        }
        let rules = (!empty).then(|| Box::new(Robots::parse(text.as_bytes(), "*")));
        return Some(RobotsState::Known { until_s, rules });
    }
    let since: u64 = field(words.next()?, "since=")?;
    // A clock that nobody had set does not know for how long it has failed.
    let since_s = if since < CLOCK_SET_S { clock.at_s(now_s) as i32 } else { clock.relative_s(since) };
    let failing = Failing { since_s, failures: field(words.next()?, "failures=")? };
    match state {
        "unreachable" | "given_up" if !is_ours || since > now_s => Some(RobotsState::Unknown),
        "unreachable" => {
            let retry_s = clock.at_s(now_s + failing.retry_us() / 1_000_000);
            Some(RobotsState::Unreachable { until_s: until_s.min(retry_s), failing })
        }
        "given_up" => Some(RobotsState::GivenUp { until_s, failing }),
        _ => None,
    }
}

fn field<T: std::str::FromStr>(word: &str, name: &str) -> Option<T> {
    word.strip_prefix(name)?.parse().ok()
}

/// A shorter journal that says the same: the newest line of every host and kind, in the order of their writing. What is
/// dated after `now_us` (`u64::MAX` if all of it is of this process) is not taken over as it is: time will catch up with it.
pub fn compacted(journal: &[u8], now_us: u64) -> Vec<u8> {
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
    kept.flat_map(|(_, line)| mended(line, now_us).into_owned()).collect()
}

/// A line without times after now: a pause counts from now, and rules go.
fn mended(line: &[u8], now_us: u64) -> Cow<'_, [u8]> {
    let text = str::from_utf8(line).unwrap_or_default().trim_ascii_end();
    let value = |name: &str| text.split(' ').find_map(|word| field::<u64>(word, name));
    if text.starts_with("robots ") {
        let now_s = now_us / 1_000_000;
        let is_ahead = value("until=").is_some_and(|until| until > now_s.saturating_add(TTL_S))
            || value("since=").is_some_and(|since| since > now_s);
        return if is_ahead { Cow::Borrowed(&[]) } else { Cow::Borrowed(line) };
    }
    let (Some(due_us), at_us) = (value("due="), value("at=").unwrap_or(0)) else {
        return Cow::Borrowed(line);
    };
    let believed_us = believed(due_us, at_us, now_us);
    if believed_us == due_us && at_us <= now_us {
        return Cow::Borrowed(line);
    }
    let words =
        text.split(' ').filter(|word| !word.starts_with("at=")).map(|word| match word.starts_with("due=") {
            true => format!("due={believed_us} "),
            false => format!("{word} "),
        });
    Cow::Owned(format!("{}at={now_us}\n", words.collect::<String>()).into_bytes())
}
