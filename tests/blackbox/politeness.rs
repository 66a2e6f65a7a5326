//! The promise: fifty hosts, ten of them at one address, are each treated by the rules, whatever their robots.txt and
//! their answers ask for. The judge is the server's own log, by the kernel's time stamps; `audit` must come to the
//! same figures from the crawl log, and must see it when that log is forged.

use crate::support::*;
use nephila::proto::crawl_log::{LogLine, Path as LogPath};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

const HOSTS: usize = 50;
/// So many of them share one address.
const SHARING: usize = 10;
const RETRY_AFTER_NS: i64 = 2_000_000_000;
const CRAWL_DELAY_NS: i64 = 1_500_000_000;
const MS: i64 = 1_000_000;

/// How a host behaves; they take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    NoRobots,
    /// Longest match, `*`, `$`, and Sitemap lines.
    Rules,
    /// Rules for our name beside others for everybody.
    OurName,
    /// Rules for everybody beside others for another name.
    OtherName,
    RobotsBroken,
    /// robots.txt is elsewhere on the host.
    RobotsMoved,
    /// robots.txt is on another host.
    RobotsAbroad,
    CrawlDelay,
    /// One page is answered with 429 and Retry-After.
    Refuses,
    /// One page is answered with 503.
    Overloaded,
    Slow,
}

const MANNERS: [Manner; 11] = [
    Manner::NoRobots,
    Manner::Rules,
    Manner::OurName,
    Manner::OtherName,
    Manner::RobotsBroken,
    Manner::RobotsMoved,
    Manner::RobotsAbroad,
    Manner::CrawlDelay,
    Manner::Refuses,
    Manner::Overloaded,
    Manner::Slow,
];

/// Where rules are that robots.txt redirects to: on the host itself, or on the first host that has no robots.txt.
const MOVED_RULES: &str = "/rules.txt";
const ABROAD: usize = SHARING;

fn manner(host: usize) -> Manner {
    // A refusal slows its address down too, so at the shared one nobody refuses.
    if host < SHARING { [Manner::NoRobots, Manner::Rules][host % 2] } else { MANNERS[(host - SHARING) % 11] }
}

fn name(host: usize) -> String {
    format!("h{host:02}.test")
}

fn number(name: &str) -> usize {
    name[1..3].parse().unwrap()
}

fn ip(host: usize) -> IpAddr {
    let last = if host < SHARING { 1 } else { host as u8 };
    IpAddr::V4(Ipv4Addr::new(127, 40, 0, last))
}

impl Manner {
    fn robots(self, host: &str) -> Reply {
        let port = host.split(':').nth(1).unwrap();
        match self {
            Manner::NoRobots | Manner::Refuses | Manner::Overloaded | Manner::Slow => {
                Reply::status("404 Not Found")
            }
            Manner::Rules => Reply::text(&format!(
                "Sitemap: http://{host}/sitemap.xml\nUser-agent: *\nDisallow: /no\nAllow: /no/but\n\
                 Disallow: /*.cgi\nDisallow: /end$\nSitemap: /other-map.xml\n"
            )),
            Manner::OurName => {
                Reply::text("User-agent: *\nDisallow: /\n\nUser-agent: NEPHILA/9\nDisallow: /no\n")
            }
            Manner::OtherName => {
                Reply::text("User-agent: nephilim\nDisallow: /\n\nUser-agent: *\nDisallow: /no\n")
            }
            Manner::RobotsBroken => Reply::status("500 Internal Server Error"),
            Manner::RobotsMoved => Reply::redirect(MOVED_RULES),
            Manner::RobotsAbroad => {
                let from = host.split('.').next().unwrap();
                Reply::redirect(&format!("http://{}:{port}/rules-for-{from}.txt", name(ABROAD)))
            }
            Manner::CrawlDelay => Reply::text("User-agent: *\nCrawl-delay: 1.5\nDisallow: /no\n"),
        }
    }

    /// What its first page links to: allowed, and denied.
    fn links(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Manner::Rules => (&["/p1", "/no/but", "/endless"], &["/no/x", "/a.cgi?x", "/end", "/nobody"]),
            Manner::NoRobots | Manner::Refuses | Manner::Overloaded | Manner::Slow => {
                (&["/p1", "/p2", "/p3"], &[])
            }
            Manner::RobotsBroken => (&[], &[]),
            Manner::CrawlDelay => (&["/p1", "/p2"], &["/no"]),
            _ => (&["/p1", "/p2"], &["/no", "/no/x"]),
        }
    }

    fn page(self, target: &str, slow_ms: u64) -> Reply {
        match (self, target) {
            (_, "/") => Reply::links(self.links().0.iter().chain(self.links().1)),
            (Manner::Refuses, "/p1") => {
                Reply::new("429 Too Many Requests", "Retry-After: 2\r\n", "not so fast")
            }
            (Manner::Overloaded, "/p1") => Reply::status("503 Service Unavailable"),
            (Manner::Slow, _) => Reply::text("x").after_ms(slow_ms),
            _ => Reply::text("x"),
        }
    }
}

fn is_rules(target: &str) -> bool {
    target == "/robots.txt" || target.starts_with("/rules")
}

/// The settings of one run, as the crawl is told and as the judge holds it to.
struct Rules {
    driver: &'static str,
    host_gap_ns: i64,
    ip_gap_ns: i64,
    host_concurrent: usize,
    ip_concurrent: usize,
    delay_factor: f64,
    slow_ms: u64,
    /// How long the shared address takes to answer for a page.
    shared_ms: u64,
}

impl Rules {
    fn config(&self) -> String {
        format!(
            "[url_server]\nreq_host_per_sec = {}\nreq_ip_per_sec = {}\nreq_host_concurrent = {}\n\
             req_ip_concurrent = {}\ndelay_factor = {:?}\n",
            1_000 * MS / self.host_gap_ns,
            1_000 * MS / self.ip_gap_ns,
            self.host_concurrent,
            self.ip_concurrent,
            self.delay_factor
        )
    }
}

#[test]
fn fifty_hosts_one_request_at_a_time() {
    fifty_hosts(&Rules {
        driver: "uring",
        host_gap_ns: 250 * MS,
        ip_gap_ns: 125 * MS,
        host_concurrent: 1,
        ip_concurrent: 1,
        delay_factor: 2.0,
        slow_ms: 300,
        shared_ms: 0,
    });
}

#[test]
fn fifty_hosts_several_requests_at_a_time() {
    fifty_hosts(&Rules {
        driver: "epoll",
        host_gap_ns: 250 * MS,
        ip_gap_ns: 125 * MS,
        host_concurrent: 2,
        ip_concurrent: 3,
        delay_factor: 0.3,
        slow_ms: 700,
        shared_ms: 400,
    });
}

#[track_caller]
fn fifty_hosts(rules: &Rules) {
    let dir = TempDir::new();
    let (slow_ms, shared_ms) = (rules.slow_ms, rules.shared_ms);
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, move |asked| {
        let host = number(asked.name());
        match asked.target.as_str() {
            "/robots.txt" => manner(host).robots(&asked.host),
            target if is_rules(target) => Reply::text("User-agent: *\nDisallow: /no\n"),
            target if host < SHARING => manner(host).page(target, 0).after_ms(shared_ms),
            target => manner(host).page(target, slow_ms),
        }
    });
    let lines: String = (0..HOSTS).map(|host| format!("{} {}\n", ip(host), name(host))).collect();
    let hosts = dir.write("hosts", lines);
    let seeds: String =
        (0..HOSTS).map(|host| format!("http://{}:{}/\n", name(host), server.port())).collect();
    let (seeds, config) = (dir.write("seeds", seeds), dir.write("c.toml", rules.config()));
    let data = dir.join("data");
    let path = |path: &Path| path.to_str().unwrap().to_string();
    let flags =
        ["--seeds", &path(&seeds), "--hosts-file", &path(&hosts), "--config", &path(&config), "--driver"];
    let (report, _) = crawl(&data, flags.into_iter().chain([rules.driver]));

    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.ip == ip(number(asked.name()))), "every name at its address");
    let mut by_host: BTreeMap<usize, Vec<Asked>> = BTreeMap::new();
    for asked in &asked {
        by_host.entry(number(asked.name())).or_default().push(asked.clone());
    }
    assert_eq!(by_host.len(), HOSTS);
    judge_what_was_asked(&by_host);
    judge_order(&by_host);
    for (host, asked) in &by_host {
        judge_pauses(rules, manner(*host), asked);
    }
    judge_addresses(rules, &asked);
    let slow = by_host.iter().filter(|(host, _)| manner(**host) == Manner::Slow);
    let open = slow.map(|(_, asked)| open_max(asked)).max();
    assert_eq!(open, Some(rules.host_concurrent), "the limit is made use of");

    let denied: usize = (0..HOSTS).map(|host| manner(host).links().1.len()).sum();
    let broken = (0..HOSTS).filter(|&host| manner(host) == Manner::RobotsBroken).count();
    assert_eq!(result_count(&report, "robots_denied"), (denied + broken) as u64, "{report}");
    assert_eq!(report["pages"], server.places().iter().filter(|place| !place.contains("/rules")).count());

    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    let judged = audit(&data);
    assert_eq!(judged.code(), 0, "{}", judged.text());
    agree(rules, &judged.json(), &log, &by_host);
    forge(&dir, &log);
}

/// Each host was asked for its robots.txt, once, and for what it allows and nothing else.
fn judge_what_was_asked(by_host: &BTreeMap<usize, Vec<Asked>>) {
    for (&host, asked) in by_host {
        let mut expected: Vec<String> = vec!["/robots.txt".to_string()];
        let manner = manner(host);
        if manner == Manner::RobotsMoved {
            expected.push(MOVED_RULES.to_string());
        }
        if host == ABROAD {
            let sent_here = (0..HOSTS).filter(|&other| self::manner(other) == Manner::RobotsAbroad);
            expected.extend(sent_here.map(|other| format!("/rules-for-h{other:02}.txt")));
        }
        if manner == Manner::Rules {
            // The other one is no URL.
            expected.push("/sitemap.xml".to_string());
        }
        if manner != Manner::RobotsBroken {
            expected.push("/".to_string());
            expected.extend(manner.links().0.iter().map(|link| link.to_string()));
        }
        expected.sort();
        let mut targets: Vec<String> = asked.iter().map(|asked| asked.target.clone()).collect();
        targets.sort();
        assert_eq!(targets, expected, "{} {manner:?}", name(host));
    }
}

/// No page is asked for before the rules were answered, wherever they are.
fn judge_order(by_host: &BTreeMap<usize, Vec<Asked>>) {
    for (&host, asked) in by_host {
        let abroad = format!("/rules-for-h{host:02}.txt");
        let own = asked.iter().filter(|asked| matches!(&*asked.target, "/robots.txt" | MOVED_RULES));
        let answered = own.chain(by_host[&ABROAD].iter().filter(|asked| asked.target == abroad));
        let known_ns = answered.map(|asked| asked.answered_ns).max().unwrap();
        let first_page = asked.iter().find(|asked| !is_rules(&asked.target));
        assert!(
            first_page.is_none_or(|page| page.at_ns > known_ns),
            "{}: a page before the rules: {asked:?}",
            name(host)
        );
    }
}

/// The pauses of one host, by what it has a right to.
fn judge_pauses(rules: &Rules, manner: Manner, asked: &[Asked]) {
    assert!(open_max(asked) <= rules.host_concurrent, "{manner:?}: {asked:?}");
    for pair in asked.windows(2) {
        let gap_ns = pair[1].at_ns - pair[0].at_ns;
        let mut least_ns = rules.host_gap_ns;
        if manner == Manner::CrawlDelay {
            least_ns = least_ns.max(CRAWL_DELAY_NS);
        }
        if manner == Manner::Slow && rules.host_concurrent == 1 && pair[0].target.starts_with("/p") {
            least_ns = least_ns.max((rules.slow_ms as f64 * rules.delay_factor) as i64 * MS);
        }
        assert!(gap_ns >= least_ns, "{manner:?}: {gap_ns} ns, {least_ns} asked for: {pair:?}");
        let since_answer_ns = pair[1].at_ns - pair[0].answered_ns;
        let least_ns = match (manner, &*pair[0].target) {
            (Manner::Refuses, "/p1") => RETRY_AFTER_NS,
            // Twice the pause, and at least a second.
            (Manner::Overloaded, "/p1") => (2 * rules.host_gap_ns).max(1_000 * MS),
            _ => continue,
        };
        let overlapping = rules.host_concurrent > 1 && since_answer_ns < 0;
        assert!(overlapping || since_answer_ns >= least_ns, "{manner:?}: {since_answer_ns} ns: {pair:?}");
    }
}

fn judge_addresses(rules: &Rules, asked: &[Asked]) {
    let mut by_ip: BTreeMap<IpAddr, Vec<Asked>> = BTreeMap::new();
    for asked in asked {
        by_ip.entry(asked.ip).or_default().push(asked.clone());
    }
    assert_eq!(by_ip.len(), HOSTS - SHARING + 1);
    for (ip, asked) in &by_ip {
        let gap_ns = smallest_gap_ns(asked).unwrap_or(i64::MAX);
        assert!(gap_ns >= rules.ip_gap_ns, "{ip}: a pause of {gap_ns} ns");
        assert!(open_max(asked) <= rules.ip_concurrent, "{ip}: {} open", open_max(asked));
    }
    let shared = &by_ip[&ip(0)];
    assert_eq!(open_max(shared), rules.ip_concurrent, "the limit is made use of");
    let names: BTreeSet<&str> = shared.iter().map(|asked| asked.name()).collect();
    assert_eq!(names.len(), SHARING);
}

fn smallest_gap_ns(asked: &[Asked]) -> Option<i64> {
    asked.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).min()
}

/// The most that were unanswered at one time. A request is open from when it came until its answer was about to go
/// out, so whoever sent another in between had not heard yet.
fn open_max(asked: &[Asked]) -> usize {
    let open_at =
        |at_ns: i64| asked.iter().filter(|asked| asked.at_ns <= at_ns && at_ns < asked.answered_ns).count();
    asked.iter().map(|asked| open_at(asked.at_ns)).max().unwrap_or(0)
}

fn audit(data: &Path) -> Run {
    let mut command = nephila();
    Running::start(command.args(["audit", "--json", "--all", "--data"]).arg(data)).wait(PATIENCE)
}

/// One line about a request, with its number in the file.
fn requests(log: &str) -> Vec<(usize, LogLine<'_>)> {
    let lines = log.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let lines = lines.map(|(at, line)| (at + 1, LogLine::parse(line.as_bytes()).expect("our own line")));
    lines.filter(|(_, line)| line.timing.is_some()).collect()
}

/// The audit's figures are the server's, host by host.
fn agree(rules: &Rules, report: &Value, log: &str, by_host: &BTreeMap<usize, Vec<Asked>>) {
    let requests = requests(log);
    assert_eq!(report["requests"], requests.len());
    assert_eq!(requests.len(), by_host.values().map(Vec::len).sum::<usize>());
    assert_eq!((&report["hosts"], &report["ips"]), (&HOSTS.into(), &(HOSTS - SHARING + 1).into()));
    assert!(report["open_max"]["ip"].as_u64().unwrap() as usize <= rules.ip_concurrent);
    let robots = requests.iter().filter(|(_, line)| matches!(line.path, LogPath::Robots { .. })).count();
    let asked_robots = by_host.values().flatten().filter(|asked| is_rules(&asked.target)).count();
    assert_eq!(robots, asked_robots, "fetches of robots.txt");

    let mut all_late_ns = Vec::new();
    for (&host, asked) in by_host {
        let origin = format!("http://{}", asked[0].host);
        let tally = report["by_host"].as_array().unwrap().iter().find(|tally| tally["name"] == *origin);
        let tally = tally.unwrap_or_else(|| panic!("{origin} in {report}"));
        assert_eq!(tally["requests"], asked.len(), "{origin}");
        let open = tally["open_max"].as_u64().unwrap() as usize;
        assert!((open_max(asked)..=rules.host_concurrent).contains(&open), "{origin}: {open} open");
        // How long after the kernel had a request the crawl wrote that it was out.
        let late_ns: Vec<i64> = asked
            .iter()
            .map(|asked| {
                let url = format!("{origin}{}", asked.target);
                let (_, line) = requests.iter().find(|(_, line)| line.url == url).expect("each has a line");
                assert_eq!(line.addr.unwrap().ip(), ip(host));
                line.timing.unwrap().sent_us as i64 * 1_000 - asked.at_ns
            })
            .collect();
        // Both tell the same gaps but for this lateness, which varies with the scheduling of threads.
        let (least, most) = (late_ns.iter().min().unwrap(), late_ns.iter().max().unwrap());
        if let Some(gap_ns) = smallest_gap_ns(asked) {
            let told_ns = (tally["gap_ms"].as_f64().unwrap() * 1e6) as i64;
            assert!(
                (told_ns - gap_ns).abs() <= most - least + MS,
                "{origin}: the audit says {told_ns} ns, the server {gap_ns}, with lateness {late_ns:?}"
            );
        }
        all_late_ns.extend(late_ns);
    }
    all_late_ns.sort_unstable();
    // The log's clock is set to the millisecond, and loopback may hand a packet over a moment after it was sent. A
    // thread may be kept from its core for long, but not most of the time.
    let (least, middle) = (all_late_ns[0], all_late_ns[all_late_ns.len() / 2]);
    println!("lateness of the log: {least} to {} ns, mostly {middle}", all_late_ns.last().unwrap());
    assert!(least >= -10 * MS, "sent {least} ns after it was received");
    assert!(middle <= 50 * MS, "half of all requests are logged {middle} ns late");
}

/// A log that was tampered with does not pass: the violation names the host and the line.
fn forge(dir: &TempDir, log: &str) {
    let lines: Vec<&str> = log.lines().collect();
    let requests = requests(log);
    let origin_of = |line: &LogLine<'_>| line.origin().unwrap().to_string();
    let of = |host: usize| {
        let prefix = format!("http://{}:", name(host));
        let mut of: Vec<_> = requests.iter().filter(|(_, line)| line.url.starts_with(&prefix)).collect();
        of.sort_by_key(|(_, line)| line.timing.unwrap().sent_us);
        of
    };
    let is_robots = |line: &LogLine<'_>| matches!(line.path, LogPath::Robots { .. });
    // One of each manner that keeps a pause of its own.
    for (manner, why) in [
        (Manner::NoRobots, "rate"),
        (Manner::CrawlDelay, "crawl_delay"),
        (Manner::Refuses, "retry_after"),
        (Manner::Overloaded, "back_off"),
    ] {
        let host = (SHARING + 1..HOSTS).find(|&host| self::manner(host) == manner).unwrap();
        let of = of(host);
        // A request, and what it has to keep its distance from.
        let pair = of.windows(2).rfind(|pair| match manner {
            Manner::Refuses | Manner::Overloaded => pair[0].1.url.ends_with("/p1"),
            _ => true,
        });
        let Some([(_, before), (number, line)]) = pair else { panic!("{manner:?} was asked on") };
        let mut early = line.clone();
        let timing = early.timing.as_mut().unwrap();
        // Past the end of the one before, as only the pause is at stake; a rate is broken at once.
        timing.sent_us = match manner {
            Manner::NoRobots => before.timing.unwrap().sent_us + 10_000,
            _ => before.timing.unwrap().end_us().max(before.timing.unwrap().sent_us + 300_000) + 100_000,
        };
        timing.wait_us = Some(0);
        let mut bytes = Vec::new();
        early.write(&mut bytes);
        let mut forged: Vec<&str> = lines.clone();
        let written = String::from_utf8(bytes).unwrap();
        forged[number - 1] = written.trim_end();
        assert_blamed(dir, &forged, "gap", why, &origin_of(line), *number);
    }
    // Without the line that learnt the rules.
    for manner in [Manner::Rules, Manner::RobotsMoved] {
        let host = (SHARING..HOSTS).find(|&host| self::manner(host) == manner).unwrap();
        let of = of(host);
        let (robots, _) = of.iter().rfind(|(_, line)| is_robots(line)).unwrap();
        let (page, line) = of.iter().find(|(_, line)| !is_robots(line)).unwrap();
        let mut forged = lines.clone();
        forged.remove(robots - 1);
        assert_blamed(dir, &forged, "before_robots", "", &origin_of(line), page - 1);
    }
}

#[track_caller]
fn assert_blamed(dir: &TempDir, lines: &[&str], kind: &str, why: &str, origin: &str, number: usize) {
    dir.write("forged/crawl.log", lines.join("\n") + "\n");
    let run = audit(&dir.join("forged"));
    assert_eq!(run.code(), 1, "{kind} {why} of {origin} in line {number}");
    let report = run.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let blamed = report["violations"].as_array().unwrap().iter().any(|fault| {
        text(&fault["kind"]) == kind
            && text(&fault["why"]) == why
            && text(&fault["host"]) == origin
            && fault["line"] == number
    });
    assert!(blamed, "{kind} {why} of {origin} in line {number}: {report}");
}
