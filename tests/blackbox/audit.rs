//! The promise: `audit` proves a log that keeps the rules, and shows the lines of one that does not.
//!
//! The logs are written here letter by letter, as the documented format has them.

use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// A run opens; 2026-11-15 as everywhere here.
const ONE_A_SECOND: &str = "# nephila 0.1.0 run 2026-11-15T10:00:00.000Z req_host_per_sec=1 req_host_concurrent=1 \
                            req_ip_per_sec=1 req_ip_concurrent=1 delay_factor=1 agent=nephila\n";

/// `10:MM:SS.uuuuuu` as digits, from microseconds after ten o'clock.
fn stamp(us: u64) -> String {
    assert!(us < 3_600_000_000);
    let seconds = us / 1_000_000;
    format!("2026111510{:02}{:02}{:06}", seconds / 60, seconds % 60, us % 1_000_000)
}

/// What a line says; times in milliseconds after ten o'clock.
#[derive(Clone, Copy)]
struct Said<'a> {
    host: &'a str,
    ip: &'a str,
    sent_ms: u64,
    took_ms: u64,
    status: &'a str,
    notes: &'a str,
}

fn said(sent_ms: u64) -> Said<'static> {
    Said { host: "a.test", ip: "192.0.2.1", sent_ms, took_ms: 100, status: "200", notes: "" }
}

impl Said<'_> {
    fn line(&self, path: &str, what: &str, notes: &str) -> String {
        let Said { host, ip, sent_ms, took_ms, status, .. } = self;
        format!(
            "2026-11-15T10:59:59.000Z {status} 12 http://{host}/{what} {path} - text/html #000 {}+{} - {ip}:80,ok{notes}{}\n",
            stamp(sent_ms * 1_000),
            took_ms * 1_000,
            self.notes
        )
    }

    fn page(&self) -> String {
        self.line("L", "page", ",doc=7")
    }

    fn robots(&self) -> String {
        self.line("P", "robots.txt", &format!(",for=http://{},rules=known", self.host))
    }
}

/// A run by the default rules in which robots.txt of a.test is known at 0.1 s.
fn log(lines: &[String]) -> String {
    format!("{ONE_A_SECOND}{}{}", said(0).robots(), lines.concat())
}

fn data(logs: &[&str]) -> TempDir {
    let dir = TempDir::new();
    for (number, log) in logs.iter().enumerate() {
        dir.write(&format!("{number}/crawl.log"), log);
    }
    dir
}

fn audit(dirs: &[&Path], flags: &[&str]) -> Run {
    let mut command = nephila();
    command.arg("audit");
    for dir in dirs {
        command.arg("--data").arg(dir);
    }
    Running::start(command.args(flags)).wait(PATIENCE)
}

/// The audit of these logs, each in a directory of its own.
#[track_caller]
fn judged(logs: &[&str], flags: &[&str]) -> Value {
    let dir = data(logs);
    let dirs: Vec<_> = (0..logs.len()).map(|number| dir.join(&number.to_string())).collect();
    let dirs: Vec<&Path> = dirs.iter().map(|dir| dir.as_path()).collect();
    let run = audit(&dirs, &[&["--json"], flags].concat());
    let report = run.json();
    let violations = report["violations"].as_array().unwrap();
    assert_eq!(run.code(), i32::from(!violations.is_empty()), "{report}");
    assert_eq!(run.stderr.lines().count(), usize::from(!violations.is_empty()), "{}", run.stderr);
    assert_eq!(report["violations_total"], violations.len());
    report
}

/// Kind, reason, host or address and line of each violation.
fn faults(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let violations = report["violations"].as_array().unwrap().iter();
    violations
        .map(|fault| {
            let whom = text(&fault["host"]) + &text(&fault["ip"]);
            format!("{} {} {whom} {}", text(&fault["kind"]), text(&fault["why"]), fault["line"])
        })
        .collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(faults(&judged(&[text], &[])), expected, "{text}");
}

#[test]
fn a_good_crawl_is_proved() {
    let report = judged(&[&log(&[said(1_000).page(), said(3_500).page(), said(4_500).page()])], &[]);
    assert_eq!(faults(&report), [""; 0]);
    assert_eq!((&report["requests"], &report["lines"], &report["runs"]), (&4.into(), &4.into(), &1.into()));
    assert_eq!((&report["hosts"], &report["ips"]), (&1.into(), &1.into()));
    for (whom, name) in [("host", "http://a.test"), ("ip", "192.0.2.1")] {
        let gap = &report["smallest_gap_ms"][whom];
        assert_eq!((&gap["name"], gap["gap_ms"].as_f64()), (&name.into(), Some(1_000.0)), "{report}");
        assert_eq!((gap["allowed_ms"].as_f64(), &gap["line"]), (Some(1_000.0), &3.into()), "{report}");
        assert_eq!(report["open_max"][whom], 1);
    }
    assert_eq!(report["by_host"][0]["requests"], 4);
    assert_eq!(report["torn_lines"], Value::Array(vec![]));
}

#[test]
fn people_see_what_scripts_see() {
    let dir = data(&[&log(&[said(1_000).page(), said(1_400).page()])]);
    let run = audit(&[&dir.join("0")], &[]);
    assert_eq!(run.code(), 1);
    let text = run.text();
    assert!(text.contains("3 requests to 1 host at 1 address"), "{text}");
    assert!(text.contains("smallest gap 0.400 s (allowed 1.000 s)"), "{text}");
    let log = dir.join("0/crawl.log");
    let proof = format!("{}:4 2026-11-15T10:00:01.400Z http://a.test: asked 0.400 s", log.display());
    assert!(text.contains(&proof), "{proof} in\n{text}");
    assert!(text.contains(&format!("by {}:3", log.display())), "{text}");
    assert!(!text.contains('\u{1b}'));
    let good = data(&[&good_log()]);
    let run = audit(&[&good.join("0")], &[]).done();
    assert!(run.text().contains("no violation") && run.stderr.is_empty(), "{}", run.text());
}

fn good_log() -> String {
    log(&[said(1_000).page()])
}

/// Ten are shown, all with `--all`.
#[test]
fn the_tightest_come_first() {
    let mut text = ONE_A_SECOND.to_string();
    for host in 0..12 {
        let (name, ip) = (format!("h{host}.test"), format!("192.0.2.{host}"));
        let robots = Said { host: &name, ip: &ip, ..said(0) };
        text += &robots.robots();
        text += &Said { sent_ms: 5_000 - 100 * host, ..robots }.page();
    }
    for (flags, shown) in [(&[][..], 10), (&["--all"], 12)] {
        let report = judged(&[&text], flags);
        let by_host = report["by_host"].as_array().unwrap();
        assert_eq!((by_host.len(), report["by_ip"].as_array().unwrap().len()), (shown, shown));
        assert_eq!(
            (&by_host[0]["name"], by_host[0]["gap_ms"].as_f64()),
            (&"http://h11.test".into(), Some(3_900.0))
        );
        assert_eq!((&report["hosts"], &report["ips"]), (&12.into(), &12.into()));
    }
}

#[test]
fn a_gap_that_is_too_small() {
    check(&log(&[said(1_000).page(), said(1_999).page()]), &[]);
    let expected = ["gap rate http://a.test 4", "gap rate 192.0.2.1 4"];
    check(&log(&[said(1_000).page(), said(1_900).page()]), &expected);
    // The order of the lines is that of the answers, not of the requests.
    let slow = Said { took_ms: 900, ..said(1_000) };
    check(&log(&[said(2_000).page(), slow.page()]), &[]);
    let report = judged(&[&log(&[said(1_000).page(), said(1_900).page()])], &[]);
    let fault = &report["violations"][0];
    assert_eq!(fault["at"], "2026-11-15T10:00:01.900Z");
    assert_eq!(fault["other_line"], 3);
    assert_eq!((fault["gap_ms"].as_f64(), fault["allowed_ms"].as_f64()), (Some(900.0), Some(1_000.0)));
}

#[test]
fn a_slow_answer_asks_for_a_longer_pause() {
    let slow = Said { took_ms: 4_000, ..said(1_000) };
    check(&log(&[slow.page(), said(5_000).page(), said(6_000).page()]), &[]);
    // Eight seconds from the request, for an answer that took four.
    let twice = log(&[slow.page(), said(5_000).page()]).replace("delay_factor=1", "delay_factor=2");
    check(&twice, &["gap response_time http://a.test 4", "gap response_time 192.0.2.1 4"]);
    check(&twice.replace("delay_factor=2", "delay_factor=0"), &[]);
}

#[test]
fn crawl_delay_is_kept() {
    let text = |next| {
        let robots = Said { notes: ",crawl-delay=3000", ..said(0) };
        format!("{ONE_A_SECOND}{}{}", robots.robots(), said(next).page())
    };
    check(&text(3_000), &[]);
    check(&text(2_000), &["gap crawl_delay http://a.test 3"]);
}

#[test]
fn refusals_are_kept() {
    let text = |status, notes, next| log(&[Said { status, notes, ..said(1_000) }.page(), said(next).page()]);
    check(&text("429", ",retry-after=30", 31_100), &[]);
    check(&text("429", ",retry-after=30", 31_000), &["gap retry_after http://a.test 4"]);
    check(&text("503", ",retry-after=30", 5_000), &["gap retry_after http://a.test 4"]);
    check(&text("200", ",retry-after=30", 5_000), &[]);
    check(&text("503", "", 3_100), &[]);
    check(&text("503", "", 3_000), &["gap back_off http://a.test 4"]);
}

/// Hosts that share an address share its rate and its places, and nothing else.
#[test]
fn an_address_with_several_hosts() {
    let b = |sent_ms| Said { host: "b.test", ..said(sent_ms) };
    check(&log(&[b(1_000).robots(), said(2_000).page(), b(3_000).page()]), &[]);
    check(&log(&[b(500).robots(), said(2_000).page()]), &["gap rate 192.0.2.1 3"]);
    let slow = Said { took_ms: 1_500, ..said(2_000) };
    check(&log(&[b(1_000).robots(), slow.page(), b(3_000).page()]), &["open  192.0.2.1 5"]);
    let refused = Said { status: "429", notes: ",retry-after=100", ..said(2_000) };
    check(&log(&[b(1_000).robots(), refused.page(), b(3_000).page()]), &[]);
    // Another port is another host, at the same address.
    let port = Said { host: "a.test:81", ..said(1_000) };
    check(&log(&[port.page()]), &["before_robots  http://a.test:81 3"]);
}

#[test]
fn too_many_open() {
    let rules = |text: String, count: u8| {
        text.replace("per_sec=1", "per_sec=0").replace("concurrent=1", &format!("concurrent={count}"))
    };
    let slow = Said { took_ms: 1_000, ..said(1_000) };
    let text = log(&[slow.page(), said(1_500).page(), said(2_000).page()]);
    check(&rules(text.clone(), 2), &[]);
    check(&rules(text.clone(), 1), &["open  http://a.test 4", "open  192.0.2.1 4"]);
    let report = judged(&[&rules(text, 1)], &[]);
    assert_eq!((&report["open_max"]["host"], &report["open_max"]["ip"]), (&2.into(), &2.into()));
    let fault = &report["violations"][0];
    assert_eq!((&fault["open"], &fault["allowed"], &fault["other_line"]), (&2.into(), &1.into(), &3.into()));
}

#[test]
fn robots_first() {
    let page = said(1_000).page();
    let text = |robots: String| format!("{ONE_A_SECOND}{robots}{page}");
    check(&text(String::new()), &["before_robots  http://a.test 2"]);
    check(&text(said(0).robots()), &[]);
    for (rules, fault) in [("hop", "before_robots"), ("unreachable", "robots_unreachable")] {
        let robots = said(0).robots().replace("rules=known", &format!("rules={rules}"));
        check(&text(robots), &[&format!("{fault}  http://a.test 3")]);
    }
    // Of another host, for this one.
    let elsewhere = Said { host: "b.test", ip: "192.0.2.2", ..said(0) };
    check(&text(elsewhere.robots()), &["before_robots  http://a.test 3"]);
    check(&text(elsewhere.robots().replace("for=http://b.test", "for=http://a.test")), &[]);
    // A day and an hour later.
    let later = log(&[page.replace("2026111510", "2026111611")]);
    check(&later, &["robots_stale  http://a.test 3"]);
    check(&log(&[page.replace("2026111510", "2026111609")]), &[]);
}

/// What was never sent is in the log and is no request.
#[test]
fn what_was_not_sent() {
    let denied = "2026-11-15T10:00:01.000Z -9998 0 http://a.test/no L http://a.test/ - #000 - - -,robots_denied,doc=8\n";
    let report = judged(&[&log(&[denied.repeat(3)])], &[]);
    assert_eq!((&report["requests"], &report["lines"]), (&1.into(), &4.into()));
    assert_eq!(faults(&report), [""; 0]);
}

/// Each run is held to its own rules, and what a host was promised before a restart still holds.
#[test]
fn runs_with_different_rules() {
    let fast = ONE_A_SECOND.replace("per_sec=1", "per_sec=4");
    let text = log(&[said(1_000).page()]) + &fast + &said(2_000).page() + &said(2_250).page();
    check(&text, &[]);
    check(
        &(text.clone() + ONE_A_SECOND + &said(2_500).page()),
        &["gap rate http://a.test 8", "gap rate 192.0.2.1 8"],
    );
    check(
        &(log(&[said(1_000).page()]) + &fast + &said(1_100).page()),
        &["gap rate http://a.test 5", "gap rate 192.0.2.1 5"],
    );
    // A log that does not say is held to the defaults.
    let silent = text.replace(&fast, "# a comment\n").replace(ONE_A_SECOND, "");
    assert_eq!(faults(&judged(&[&silent], &[])).len(), 2);
}

#[test]
fn flags_win_over_the_log() {
    let text = log(&[said(1_000).page(), said(2_000).page()]);
    let report = judged(&[&text], &["--req-host-per-sec", "0.5"]);
    assert_eq!(faults(&report), ["gap rate http://a.test 3", "gap rate http://a.test 4"]);
    let report = judged(&[&text], &["--req-ip-per-sec", "0.5"]);
    assert_eq!(faults(&report), ["gap rate 192.0.2.1 3", "gap rate 192.0.2.1 4"]);
    let slow = log(&[Said { took_ms: 1_500, ..said(1_000) }.page(), said(2_000).page()]);
    assert_eq!(faults(&judged(&[&slow], &[])).len(), 2);
    assert_eq!(
        faults(&judged(&[&slow], &["--req-host-concurrent", "2", "--req-ip-concurrent", "2"])),
        [""; 0]
    );
    for flags in [["--req-host-per-sec", "-1"], ["--req-host-per-sec", "x"], ["--req-host-concurrent", "0"]] {
        let run = audit(&[Path::new("/nowhere")], &[&format!("{}={}", flags[0], flags[1])]);
        assert_eq!(run.code(), 2, "{flags:?}: {}", run.stderr);
    }
}

/// One host asked by two spiders: neither log shows it alone.
#[test]
fn logs_are_merged() {
    let (one, two) = (log(&[said(1_000).page()]), format!("{ONE_A_SECOND}{}", said(1_500).page()));
    assert_eq!(faults(&judged(&[&one], &[])), [""; 0]);
    let report = judged(&[&one, &two], &[]);
    assert_eq!(faults(&report), ["gap rate http://a.test 2", "gap rate 192.0.2.1 2"]);
    let fault = &report["violations"][0];
    assert!(fault["file"].as_str().unwrap().ends_with("/1/crawl.log"), "{fault}");
    assert!(fault["other_file"].as_str().unwrap().ends_with("/0/crawl.log"), "{fault}");
    // Rules learnt by one hold for the other.
    let two = two.replace(&stamp(1_500_000), &stamp(2_500_000));
    assert_eq!(faults(&judged(&[&two, &one], &[])), [""; 0]);
}

#[test]
fn lines_that_do_not_read() {
    let bad = said(2_000).page().replace(" text/html ", " ");
    let report = judged(&[&log(&[said(1_000).page(), bad.clone(), said(3_000).page()])], &[]);
    assert_eq!(faults(&report), ["malformed   4"]);
    assert_eq!(report["violations"][0]["error"], "10 fields, not 11");
    assert_eq!(report["requests"], 3, "the others count");
    let long = format!("{}\n", "x".repeat(1 << 20));
    assert_eq!(faults(&judged(&[&log(&[long, said(1_000).page()])], &[])), ["malformed   3"]);
    let bytes = [log(&[]).as_bytes(), b"\x00\xff\x1b[31m\n"].concat();
    let dir = TempDir::new();
    dir.write("crawl.log", bytes);
    let run = audit(&[dir.path()], &[]);
    assert_eq!(run.code(), 1);
    assert!(
        !run.text().contains('\u{1b}') && run.text().contains("crawl.log:3 does not read"),
        "{}",
        run.text()
    );
    check(&ONE_A_SECOND.replace("req_host_per_sec=1", "req_host_per_sec=fast"), &["malformed   1"]);
}

/// A process that is killed leaves half a line; so does one that is still writing.
#[test]
fn torn_lines_are_no_fault() {
    let page = said(1_000).page();
    let whole = log(&[]);
    for cut in [1, 30, page.len() / 2, page.len() - 1] {
        let torn = format!("{whole}{}", &page[..cut]);
        let report = judged(&[&torn], &[]);
        assert_eq!(faults(&report), [""; 0], "{torn}");
        assert_eq!((&report["torn_lines"][0]["line"], &report["requests"]), (&3.into(), &1.into()));
        // The next run begins on a line of its own, or right behind.
        for end in ["\n", ""] {
            let report = judged(&[&format!("{torn}{end}{ONE_A_SECOND}{}", said(2_000).page())], &[]);
            assert_eq!(faults(&report), [""; 0], "{torn}{end}");
            assert_eq!(report["runs"], 2);
            // All but the line end was written: it reads, if it has got one since.
            let reads = cut == page.len() - 1 && end == "\n";
            assert_eq!(report["torn_lines"].as_array().unwrap().len(), usize::from(!reads), "{torn}{end}");
        }
    }
    // In the middle of a run nobody was killed.
    check(&format!("{whole}{}\n{page}", &page[..30]), &["malformed   3"]);
}

#[test]
fn logs_that_are_not_there_or_empty() {
    let dir = TempDir::new();
    for flags in [&[][..], &["--json"]] {
        let run = audit(&[&dir.join("missing")], flags);
        assert_eq!(
            (run.code(), run.text().as_str(), run.stderr.lines().count()),
            (3, "", 1),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("missing/crawl.log") && run.stderr.contains("--data"), "{}", run.stderr);
    }
    let good = data(&[&good_log()]);
    assert_eq!(audit(&[&good.join("0"), &dir.join("missing")], &[]).code(), 3, "one of two is missing");
    for text in ["", ONE_A_SECOND] {
        dir.write("empty/crawl.log", text);
        let run = audit(&[&dir.join("empty")], &[]).done();
        assert!(run.text().contains("no request was sent"), "{}", run.text());
        let report = judged(&[text], &[]);
        assert_eq!((&report["requests"], &report["smallest_gap_ms"]["host"]), (&0.into(), &Value::Null));
    }
    // A directory in its place cannot be read.
    std::fs::create_dir_all(dir.join("odd/crawl.log")).unwrap();
    let run = audit(&[&dir.join("odd")], &[]);
    assert_eq!((run.code(), run.stderr.lines().count()), (3, 1), "{}", run.stderr);
}
