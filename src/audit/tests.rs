//! Each promise is held, and each can be broken; what no crawler can know in time is not held against it.

use super::report::VIOLATIONS_KEPT;
use super::*;
use crate::proto::crawl_log::{LogLine, Path, PollNote, RuleChange, Rules, RunRules, Timing};
use crate::proto::record::ResultCode;

const SECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600 * SECOND;
/// 2026, far from the ends of time.
const START: u64 = 1_794_700_000 * SECOND;

/// A log in the making; times are microseconds since its start.
struct Log {
    text: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Fetch {
    host: &'static str,
    ip: u8,
    sent: u64,
    took: u64,
    wait: Option<u32>,
    status: u16,
    retry_after: Option<u32>,
    due_s: Option<u32>,
}

fn fetch(sent: u64) -> Fetch {
    let (wait, retry_after, due_s) = (None, None, None);
    Fetch { host: "a.test", ip: 1, sent, took: SECOND / 10, wait, status: 200, retry_after, due_s }
}

impl Log {
    fn new(rules: RunRules) -> Log {
        let mut text = Vec::new();
        rules.write(&mut text);
        Log { text }
    }

    fn page(mut self, fetch: Fetch) -> Log {
        self.write(fetch, Path::Page { links: 1, redirects: 0 });
        self
    }

    fn robots(mut self, fetch: Fetch, rules: Rules, crawl_delay_ms: Option<u32>) -> Log {
        let origin = format!("http://{}", fetch.host);
        self.write(fetch, Path::Robots { origin: &origin, rules, crawl_delay_ms });
        self
    }

    /// From a moment on other rules hold on a shard. Requests are of shard 0.
    fn set(mut self, at: u64, shard: u16, rules: RunRules) -> Log {
        RuleChange { at_us: START + at, shard, rules }.write(&mut self.text);
        self
    }

    /// Rules were learnt long enough ago to be out of the way.
    fn known(self) -> Log {
        self.robots(fetch(0), Rules::Known, None)
    }

    fn write(&mut self, fetch: Fetch, path: Path<'_>) {
        let sent_us = START + fetch.sent;
        let url = format!("http://{}/x", fetch.host);
        LogLine {
            made_us: sent_us + fetch.took,
            status: (fetch.status > 0).then_some(fetch.status),
            result: ResultCode::Ok,
            document_bytes: 1,
            url: &url,
            path,
            via: None,
            media_type: b"",
            shard: 0,
            timing: Some(Timing { sent_us, took_us: fetch.took, wait_us: fetch.wait }),
            digest: None,
            addr: Some(([192, 0, 2, fetch.ip], 80).into()),
            doc_id: None,
            retry_after_s: fetch.retry_after,
            poll: fetch.due_s.map(|due_s| PollNote { due_s, why: "backoff" }),
        }
        .write(&mut self.text);
    }

    fn judge(&self) -> Report {
        let mut intake = LogReader::new(Overrides::default());
        intake.open_file("crawl.log");
        self.text.split_inclusive(|&octet| octet == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
        intake.judge()
    }

    /// Kind, reason and line of each violation.
    fn faults(&self) -> Vec<(&'static str, &'static str, u32)> {
        let why = |kind| match kind {
            Kind::Gap { why, .. } => why.name(),
            _ => "",
        };
        let report = self.judge();
        report.violations.iter().map(|v| (v.kind.name(), why(v.kind), v.place.line)).collect()
    }
}

/// The logs of two nodes, judged together.
fn two_nodes(old: &Log, new: &Log) -> Vec<(&'static str, u32)> {
    let mut intake = LogReader::new(Overrides::default());
    for (node, log) in [old, new].into_iter().enumerate() {
        intake.of_node(node as u32);
        intake.open_file(&format!("node {node}"));
        log.text.split_inclusive(|&octet| octet == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
    }
    let report = intake.judge();
    report.violations.iter().map(|v| (v.kind.name(), v.place.file)).collect()
}

#[test]
fn a_domain_that_moved_was_with_one_node_at_a_time() {
    let rules = || RunRules { agent: Some("bot".into()), ..RunRules::default() };
    let slow = Fetch { took: 3 * SECOND, ..fetch(10 * SECOND) };
    let old = Log::new(rules()).known().page(slow);
    let new = |sent| Log::new(rules()).page(fetch(sent));
    assert_eq!(two_nodes(&old, &new(16 * SECOND)), [], "its robots rules moved along");
    assert_eq!(two_nodes(&old, &new(12 * SECOND)), [("open", 1)], "an overlap that was planted");
    assert_eq!(
        two_nodes(&old, &new(13 * SECOND + SECOND / 10)),
        [],
        "three seconds after its last, as it answered in three"
    );
    assert_eq!(two_nodes(&old, &new(10 * SECOND + SECOND / 2)), [("open", 1), ("gap", 1)]);
    let refused = Fetch { status: 503, retry_after: Some(60), ..fetch(10 * SECOND) };
    let old = Log::new(rules()).known().page(refused);
    assert_eq!(two_nodes(&old, &new(40 * SECOND)), [("gap", 1)], "Retry-After holds across the move");
    assert_eq!(two_nodes(&old, &new(71 * SECOND)), []);
    // Another domain at the same address is another node's business.
    let neighbour = Log::new(rules())
        .robots(Fetch { host: "b.test", ..fetch(SECOND) }, Rules::Known, None)
        .page(Fetch { host: "b.test", ..fetch(10 * SECOND + SECOND / 20) });
    assert_eq!(two_nodes(&old, &neighbour), []);
}

fn four_at_once() -> RunRules {
    RunRules { req_host_concurrent: 4, req_ip_concurrent: 4, ..RunRules::default() }
}

/// Only the host's own rules, so that a fault is told once.
fn host_only(rules: RunRules) -> RunRules {
    RunRules { req_ip_per_sec: 0.0, req_ip_concurrent: 100, ..rules }
}

#[test]
fn a_gap_is_counted_from_send_to_send() {
    let log = |second| Log::new(host_only(RunRules::default())).known().page(fetch(second));
    assert_eq!(log(SECOND).faults(), []);
    assert_eq!(log(SECOND - 1_000).faults(), [], "clocks are rounded");
    assert_eq!(log(SECOND - 1_001).faults(), [("gap", "rate", 3)]);
    let report = log(2 * SECOND).judge();
    let gap = report.hosts[0].smallest.unwrap();
    assert_eq!((gap.gap_us, gap.allowed_us, gap.place.line), (2 * SECOND, SECOND, 3));
}

/// A change is neither a breach of the rules before it, nor does it excuse one.
#[test]
fn a_request_is_judged_by_the_rules_of_its_moment() {
    let agent = Some(Box::from("bot"));
    let rules = RunRules { agent, ..host_only(RunRules::default()) };
    let rate = |per_sec: f64| RunRules { req_host_per_sec: per_sec, ..rules.clone() };
    let (slow, fast) = (|| rate(1.0), || rate(20.0));
    let quick = |sent: u64| Fetch { took: 1_000, ..fetch(sent) };
    let tenth = SECOND / 10;
    let to_fast = |at: u64, shard: u16, next: u64| {
        Log::new(slow()).known().set(at, shard, fast()).page(quick(2 * SECOND)).page(quick(2 * SECOND + next))
    };
    assert_eq!(to_fast(SECOND, 0, tenth).faults(), []);
    assert_eq!(to_fast(SECOND, 0, tenth / 4).faults(), [("gap", "rate", 5)], "faster than the new rate");
    assert_eq!(to_fast(2 * SECOND + tenth + 1, 0, tenth).faults(), [("gap", "rate", 5)], "before it held");
    assert_eq!(to_fast(SECOND, 1, tenth).faults(), [("gap", "rate", 5)], "another shard's");
    let to_slow =
        |at: u64, next: Fetch| Log::new(fast()).known().page(quick(2 * SECOND)).set(at, 0, slow()).page(next);
    let (changed, soon) = (2 * SECOND + tenth / 2, quick(2 * SECOND + tenth));
    assert_eq!(to_slow(changed, soon).faults(), [("gap", "rate", 5)], "a longer gap holds at once");
    assert_eq!(
        to_slow(changed, Fetch { wait: Some(tenth as u32 * 3 / 4), ..soon }).faults(),
        [],
        "decided before"
    );
    assert_eq!(
        to_slow(2 * SECOND + tenth, soon).faults(),
        [],
        "in that very microsecond either may have held"
    );
    assert_eq!(to_slow(changed, quick(3 * SECOND)).faults(), []);
    // The line of a fetch that took long stands behind the change, and belongs before it.
    let long = Fetch { took: 2 * SECOND, ..fetch(2 * SECOND) };
    let four = |rules: RunRules| RunRules { req_host_concurrent: 4, ..rules };
    let log = |first: RunRules, second: RunRules| {
        Log::new(four(first))
            .known()
            .set(3 * SECOND, 0, four(second))
            .page(long)
            .page(quick(2 * SECOND + tenth))
    };
    assert_eq!(log(fast(), slow()).faults(), []);
    assert_eq!(log(slow(), fast()).faults(), [("gap", "rate", 5)]);
    // Twice, and back again.
    let twice = Log::new(slow()).known().set(SECOND, 0, fast()).set(3 * SECOND, 0, slow());
    let twice = twice.page(quick(2 * SECOND)).page(quick(2 * SECOND + tenth)).page(quick(4 * SECOND));
    assert_eq!(twice.page(quick(4 * SECOND + tenth)).faults(), [("gap", "rate", 8)]);
}

#[test]
fn the_response_time_counts_once_it_is_known() {
    // An answer of five seconds; another request was under way meanwhile.
    let log = |third: Fetch| {
        Log::new(host_only(four_at_once()))
            .known()
            .page(Fetch { took: 5 * SECOND, ..fetch(SECOND) })
            .page(fetch(2 * SECOND))
            .page(third)
    };
    assert_eq!(log(fetch(3 * SECOND)).faults(), [], "not known yet");
    assert_eq!(log(fetch(7 * SECOND)).faults(), [], "five seconds after the second");
    assert_eq!(log(fetch(6 * SECOND)).faults(), [("gap", "response_time", 5)]);
    let decided_before = Fetch { wait: Some(1_000), ..fetch(6 * SECOND) };
    assert_eq!(log(decided_before).faults(), [], "the answer came while it was connecting");
    // Capped at thirty seconds.
    let slow = |next| {
        Log::new(host_only(four_at_once()))
            .known()
            .page(Fetch { took: 70 * SECOND, ..fetch(SECOND) })
            .page(fetch(70 * SECOND))
            .page(fetch(next))
    };
    assert_eq!(slow(100 * SECOND).faults(), []);
    assert_eq!(slow(99 * SECOND).faults(), [("gap", "response_time", 5)]);
    let unlimited = RunRules { req_host_per_sec: 0.0, ..four_at_once() };
    let log = Log::new(host_only(unlimited))
        .known()
        .page(Fetch { took: 5 * SECOND, ..fetch(SECOND) })
        .page(fetch(2 * SECOND))
        .page(fetch(6 * SECOND));
    assert_eq!(log.faults(), [], "no rate, no pause");
}

#[test]
fn refusals_are_heeded_from_their_end() {
    let log = |refused: Fetch, next| {
        Log::new(host_only(RunRules::default())).known().page(refused).page(fetch(next))
    };
    let refused = Fetch { status: 429, ..fetch(SECOND) };
    let end = SECOND + refused.took;
    assert_eq!(log(refused, end + 2 * SECOND).faults(), []);
    assert_eq!(log(refused, end + 2 * SECOND - 1_001).faults(), [("gap", "back_off", 4)]);
    let asked = Fetch { status: 503, retry_after: Some(60), ..refused };
    assert_eq!(log(asked, end + 60 * SECOND).faults(), []);
    assert_eq!(log(asked, end + 59 * SECOND).faults(), [("gap", "retry_after", 4)]);
    let asked = Fetch { retry_after: Some(7 * 86_400), ..asked };
    assert_eq!(log(asked, end + 23 * HOUR).faults(), [("gap", "retry_after", 4)]);
    assert_eq!(log(asked, end + 24 * HOUR).faults(), [], "a day is enough");
    let other = Fetch { status: 200, ..asked };
    assert_eq!(log(other, 2 * SECOND).faults(), [], "of a 200 it is no wish");
    // The second refusal in a row doubles what the first asked for.
    let again = Fetch { status: 429, ..fetch(end + 2 * SECOND) };
    let end = again.sent + again.took;
    let twice =
        |next| Log::new(host_only(RunRules::default())).known().page(refused).page(again).page(fetch(next));
    assert_eq!(twice(end + 4 * SECOND).faults(), []);
    assert_eq!(twice(end + 3 * SECOND).faults(), [("gap", "back_off", 5)]);
    // At no rate at all a refusal still asks for a second.
    let unlimited = RunRules { req_host_per_sec: 0.0, ..RunRules::default() };
    let log =
        Log::new(host_only(unlimited)).known().page(refused).page(fetch(SECOND + refused.took + SECOND / 2));
    assert_eq!(log.faults(), [("gap", "back_off", 4)]);
}

/// A neighbour on the same address is bound by the address's rate and response times, not by what a host said.
#[test]
fn wishes_of_a_host_are_its_own() {
    let neighbour = |sent| Fetch { host: "b.test", ..fetch(sent) };
    let log = Log::new(RunRules::default())
        .robots(fetch(0), Rules::Known, Some(30_000))
        .robots(neighbour(SECOND), Rules::Known, None)
        .page(Fetch { status: 429, retry_after: Some(600), ..fetch(30 * SECOND) })
        .page(neighbour(31 * SECOND));
    assert_eq!(log.faults(), []);
    let soon = log.page(neighbour(31 * SECOND + SECOND / 2));
    let report = soon.judge();
    let names: Vec<_> = report.violations.iter().map(|v| report.name(v.subject).unwrap()).collect();
    assert_eq!(names, ["http://b.test", "192.0.2.1"]);
    // The address is slow to answer, whichever host it was for.
    let slow = Log::new(RunRules::default())
        .robots(fetch(0), Rules::Known, None)
        .robots(Fetch { took: 5 * SECOND, ..neighbour(SECOND) }, Rules::Known, None)
        .page(fetch(6 * SECOND))
        .page(neighbour(7 * SECOND + 100_000));
    assert_eq!(slow.faults(), []);
    let slow = Log::new(RunRules { req_ip_concurrent: 2, ..RunRules::default() })
        .robots(Fetch { took: 5 * SECOND, ..fetch(0) }, Rules::Known, None)
        .robots(neighbour(3 * SECOND), Rules::Known, None)
        .page(fetch(5 * SECOND));
    assert_eq!(
        slow.faults(),
        [("gap", "response_time", 4)],
        "of the address; the host's own gap is five seconds"
    );
}

#[test]
fn crawl_delay_holds_from_when_it_is_known() {
    let log = |delay_ms, next| {
        Log::new(host_only(RunRules::default()))
            .robots(fetch(0), Rules::Known, Some(delay_ms))
            .page(fetch(next))
    };
    assert_eq!(log(5_000, 5 * SECOND).faults(), []);
    assert_eq!(log(5_000, 4 * SECOND).faults(), [("gap", "crawl_delay", 3)]);
    assert_eq!(log(4_000_000, 300 * SECOND).faults(), [], "capped");
    assert_eq!(log(4_000_000, 299 * SECOND).faults(), [("gap", "crawl_delay", 3)]);
    // Rules that cannot be had leave it, rules without one lift it.
    let again = |rules, next| {
        log(5_000, 5 * SECOND).robots(fetch(10 * SECOND), rules, None).robots(fetch(next), Rules::Known, None)
    };
    assert_eq!(again(Rules::Known, 11 * SECOND).faults(), []);
    assert_eq!(again(Rules::Unreachable, 11 * SECOND).faults(), [("gap", "crawl_delay", 5)]);
}

#[test]
fn open_at_once() {
    let rules = RunRules { req_host_per_sec: 0.0, ..RunRules::default() };
    let log = |next| {
        let rules = host_only(rules.clone());
        Log::new(rules).known().page(Fetch { took: SECOND, ..fetch(SECOND) }).page(fetch(next))
    };
    assert_eq!(log(2 * SECOND).faults(), [], "one ends as the next is sent");
    assert_eq!(log(2 * SECOND - 1).faults(), [("open", "", 4)]);
    let report = log(2 * SECOND - 1).judge();
    assert_eq!(report.violations[0].other.map(|place| place.line), Some(3));
    assert_eq!((report.hosts[0].open_max, report.ips[0].open_max), (2, 2));
    // Nested and staggered: three at most.
    let log = Log::new(host_only(RunRules { req_host_concurrent: 3, ..rules.clone() }))
        .known()
        .page(Fetch { took: 10 * SECOND, ..fetch(SECOND) })
        .page(fetch(2 * SECOND))
        .page(Fetch { took: 2 * SECOND, ..fetch(3 * SECOND) })
        .page(fetch(4 * SECOND))
        .page(fetch(5 * SECOND));
    assert_eq!(log.faults(), []);
    assert_eq!(log.judge().hosts[0].open_max, 3);
}

#[test]
fn robots_come_first() {
    let log = || Log::new(host_only(four_at_once()));
    assert_eq!(log().page(fetch(0)).faults(), [("before_robots", "", 2)]);
    let while_asked = log().robots(Fetch { took: 2 * SECOND, ..fetch(0) }, Rules::Known, None);
    assert_eq!(while_asked.page(fetch(SECOND)).faults(), [("before_robots", "", 3)]);
    assert_eq!(
        log().robots(fetch(0), Rules::Hop, None).page(fetch(SECOND)).faults(),
        [("before_robots", "", 3)]
    );
    let unreachable = || log().robots(fetch(0), Rules::Unreachable, None);
    assert_eq!(unreachable().page(fetch(SECOND)).faults(), [("robots_unreachable", "", 3)]);
    let other_host = Fetch { host: "b.test", ip: 2, ..fetch(SECOND) };
    assert_eq!(log().known().page(other_host).faults(), [("before_robots", "", 3)]);
    assert_eq!(log().known().page(fetch(24 * HOUR + 60 * SECOND)).faults(), []);
    assert_eq!(log().known().page(fetch(24 * HOUR + 180 * SECOND)).faults(), [("robots_stale", "", 3)]);
    let renewed = log().known().robots(fetch(24 * HOUR), Rules::Known, None);
    assert_eq!(renewed.page(fetch(25 * HOUR)).faults(), []);
    // Rules that went stale are asked for again and cannot be had; a page was on its way before that was known.
    let lost = || log().known().robots(fetch(24 * HOUR), Rules::Unreachable, None);
    assert_eq!(lost().page(fetch(24 * HOUR + 2 * SECOND)).faults(), [("robots_unreachable", "", 4)]);
    let under_way = Fetch { wait: Some(3_000_000), ..fetch(24 * HOUR + 2 * SECOND) };
    assert_eq!(lost().page(under_way).faults(), []);
}

/// Rules that another run read are ours if they were read for the name of this one.
#[test]
fn rules_are_for_a_name() {
    let rules = |agent: &str| RunRules { agent: Some(agent.into()), ..host_only(RunRules::default()) };
    let log = |first: RunRules, second: RunRules| {
        let mut log = Log::new(first).known().page(fetch(SECOND));
        second.write(&mut log.text);
        log
    };
    assert_eq!(log(rules("abot"), rules("ABot")).page(fetch(2 * SECOND)).faults(), []);
    let other = || log(rules("abot"), rules("bbot"));
    assert_eq!(other().page(fetch(2 * SECOND)).faults(), [("robots_agent", "", 5)]);
    let again = other().robots(fetch(2 * SECOND), Rules::Known, None);
    assert_eq!(again.page(fetch(3 * SECOND)).faults(), []);
    let silent = host_only(RunRules::default());
    for log in
        [log(silent.clone(), rules("abot")), log(rules("abot"), silent.clone()), log(silent.clone(), silent)]
    {
        assert_eq!(log.page(fetch(2 * SECOND)).faults(), [("robots_agent", "", 5)], "nothing is proved");
    }
}

/// The rules that a redirect led to count for the origin first asked.
#[test]
fn rules_count_for_whom_they_were_asked() {
    let mut log = Log::new(host_only(RunRules::default())).robots(fetch(0), Rules::Hop, None);
    let elsewhere = Fetch { host: "b.test", ip: 2, ..fetch(SECOND) };
    log.write(elsewhere, Path::Robots { origin: "http://a.test", rules: Rules::Known, crawl_delay_ms: None });
    let log = log.page(fetch(2 * SECOND));
    assert_eq!(log.faults(), []);
    assert_eq!(log.page(Fetch { sent: 3 * SECOND, ..elsewhere }).faults(), [("before_robots", "", 5)]);
}

#[test]
fn lines_that_were_not_sent_are_not_requests() {
    let mut log = Log::new(RunRules::default());
    let text = "2026-11-15T05:10:27.125Z -9998 0 http://a.test/x L - - #003 - - -,robots_denied,doc=17\n";
    log.text.extend_from_slice(text.as_bytes());
    let report = log.judge();
    assert_eq!((report.lines, report.requests, report.hosts.len(), report.violations_total), (1, 0, 0, 0));
}

#[test]
fn a_flood_of_violations_is_counted_and_the_first_are_kept() {
    let mut log = Log::new(host_only(RunRules::default())).known();
    let count = VIOLATIONS_KEPT as u64 + 50;
    for at in 0..count {
        log = log.page(Fetch { took: 1, ..fetch(SECOND + at * 2_000) });
    }
    let report = log.judge();
    assert_eq!(report.violations.len(), VIOLATIONS_KEPT);
    assert_eq!(report.violations_total, count - 1, "all but the first page");
}

/// Hands over files, each as a part of one log; `None` is a part that is missing.
fn judge_parts(parts: &[Option<&Log>]) -> Report {
    let mut intake = LogReader::new(Overrides::default());
    let (mut is_open, mut are_lost) = (false, false);
    for part in parts {
        let Some(log) = part else {
            are_lost = true;
            continue;
        };
        match std::mem::replace(&mut is_open, true) {
            false => intake.open_file("part"),
            true => intake.open_part("part"),
        }
        if std::mem::take(&mut are_lost) {
            intake.lines_are_missing();
        }
        log.text.split_inclusive(|&octet| octet == b'\n').for_each(|line| intake.line(line));
        intake.close_file();
    }
    intake.judge()
}

#[test]
fn a_log_in_parts_is_one_log() {
    let agent = || Some("nephila".into());
    let rules = |part| RunRules { part, req_host_per_sec: 0.5, agent: agent(), ..RunRules::default() };
    let first = Log::new(rules(1)).known().page(fetch(10 * SECOND));
    // Asked too soon after what the part before it tells.
    let second = Log::new(rules(2)).page(fetch(11 * SECOND));
    let report = judge_parts(&[Some(&first), Some(&second)]);
    assert_eq!((report.runs, report.files.len(), report.violations_total), (1, 2, 1), "{report:?}");
    assert_eq!((report.violations[0].place.file, report.violations[0].other.unwrap().file), (1, 0));
    // A part without its first line keeps to the rules of the one before.
    let headless = Log { text: Vec::new() }.page(fetch(12 * SECOND + SECOND / 2));
    let report = judge_parts(&[Some(&first), Some(&headless)]);
    assert!(
        report.violations_total == 0 && report.hosts[0].smallest.unwrap().allowed_us == 2 * SECOND,
        "{report:?}"
    );
}

#[test]
fn what_a_missing_part_may_have_told_is_not_held_against_a_page() {
    let rules = |part| RunRules { part, ..RunRules::default() };
    let first = Log::new(rules(1)).page(Fetch { host: "early.test", ..fetch(0) });
    let third = Log::new(rules(3)).page(fetch(100 * SECOND));
    let whole = judge_parts(&[Some(&first), Some(&third)]);
    assert_eq!((whole.violations_total, whole.unproven), (2, 0));
    let report = judge_parts(&[Some(&first), None, Some(&third)]);
    assert_eq!((report.violations_total, report.unproven), (1, 1), "only what came after it: {report:?}");
    let leading = judge_parts(&[None, Some(&third)]);
    assert_eq!((leading.violations_total, leading.unproven), (0, 1));
    // A day later the rules of the missing part hold no more.
    let late = Log::new(rules(3)).page(fetch(100 * SECOND)).page(fetch(26 * HOUR));
    let report = judge_parts(&[None, Some(&late)]);
    assert_eq!((report.violations_total, report.unproven), (1, 1), "{report:?}");
}

#[test]
fn a_feed_that_was_asked_before_it_was_due_is_named_with_its_line() {
    let due_s = (START / 1_000_000) as u32 + 100;
    let poll = |sent: u64| Fetch { due_s: Some(due_s), ..fetch(sent) };
    let log = Log::new(RunRules::default()).known();
    let in_time = log.page(poll(101 * SECOND - START % SECOND)).judge();
    assert_eq!((in_time.polls, in_time.violations_total), (1, 0), "{:?}", in_time.violations);
    let early = Log::new(RunRules::default()).known().page(poll(90 * SECOND)).judge();
    assert_eq!(early.violations_total, 1, "{:?}", early.violations);
    let violation = &early.violations[0];
    assert!(matches!(violation.kind, Kind::PollEarly { early_us } if early_us > 9 * SECOND));
    assert_eq!(violation.place.line, 3);
}
