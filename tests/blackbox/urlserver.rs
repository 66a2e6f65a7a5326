//! The promise: a URL server process keeps to the lines that a spider was promised, in both dialects and whoever
//! dials. No more lines than credits, no more of a host than its window holds, no sooner than its rate allows, no
//! page without its robots rules; a bad line costs nobody else anything.
//!
//! What becomes of URLs when spiders fall silent or go away is in `url_life`.

use crate::link::{Link, now_ns};
use crate::support::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;

pub const MS: i64 = 1_000_000;
/// Long enough for a line that must not come.
pub const A_WHILE: Duration = Duration::from_millis(300);

/// A web on every address of loopback, without robots rules.
pub fn web() -> LogServer {
    web_with(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("x"),
    })
}

pub fn web_with(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> LogServer {
    LogServer::start_on(Ipv4Addr::UNSPECIFIED, answer)
}

/// h0.test, h1.test … have an address each, s0.test, s1.test … share one.
pub fn ip_of(host: &str) -> String {
    match host.split_at(1) {
        ("h", rest) => format!("127.0.1.{}", rest.split('.').next().unwrap()),
        ("n", _) => "127.0.3.1".to_string(),
        _ => "127.0.2.1".to_string(),
    }
}

pub fn url(server: &LogServer, host: &str, path: &str) -> String {
    format!("http://{host}.test:{}{path}", server.port())
}

/// So many pages of each host.
pub fn pages(server: &LogServer, hosts: &[&str], count: usize) -> Vec<String> {
    let of = |host: &&str| (0..count).map(|n| url(server, host, &format!("/{n}"))).collect::<Vec<_>>();
    hosts.iter().flat_map(of).collect()
}

/// `nephila urlserver` with a list, these lines under `[url_server]`, and no pauses unless they say so.
pub fn command<T: AsRef<str>>(dir: &TempDir, settings: &str, urls: &[T]) -> Command {
    let mut hosts = String::new();
    for n in 0..40 {
        hosts.push_str(&format!("{} h{n}.test\n{} s{n}.test\n", ip_of(&format!("h{n}")), ip_of("s")));
    }
    hosts.push_str(&format!("{} {}\n", ip_of(&long_name()), long_name()));
    let rate = if settings.contains("req_host_per_sec") { "" } else { "req_host_per_sec = 0\n" };
    let text = format!("[url_server]\n{rate}{settings}\n[spider]\ntimeout_update = 400\n");
    let list: Vec<&str> = urls.iter().map(AsRef::as_ref).collect();
    let mut command = nephila();
    command.args(["urlserver", "--json", "--allow-net", "127.0.0.0/8", "--cores", "0"]);
    command.arg("--config").arg(dir.write("urls.toml", text));
    command.arg("--hosts-file").arg(dir.write("hosts", hosts));
    command.arg("--urls").arg(dir.write("list.txt", list.join("\n")));
    command.arg("--data").arg(dir.join("data"));
    command
}

/// Of the longest host name there may be.
fn long_name() -> String {
    let label = format!("{}.", "n".repeat(60));
    format!("{}test", label.repeat(4))
}

pub const LISTEN: &str = "listen = \"127.0.0.1:0\"\n";

/// A URL server that listens, and where.
#[track_caller]
pub fn listening(command: &mut Command) -> (Running, SocketAddr) {
    let running = Running::start(command);
    let addr = wait_for("it listens", PATIENCE, || {
        let stderr = running.stderr();
        let line = stderr.lines().find(|line| line.starts_with("urlserver: listening on "))?.to_string();
        line.rsplit(' ').next()?.parse().ok()
    });
    (running, addr)
}

/// Settings to dial this listener.
pub fn dialing(listener: &TcpListener) -> String {
    format!("spider_host = \"127.0.0.1\"\nspider_port = {}\n", listener.local_addr().unwrap().port())
}

/// A line of work, every field checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub trans: u64,
    pub doc_id: u32,
    pub url: String,
}

impl Work {
    /// Name of its host up to the first dot.
    pub fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().split('.').next().unwrap()
    }

    pub fn done(&self) -> String {
        format!("DONE {}", self.trans)
    }
}

impl Link {
    #[track_caller]
    pub fn work_of(&mut self, fields: usize) -> Work {
        let line = self.line().expect("a line of work");
        assert!(line.len() < 8_192, "{} bytes", line.len());
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), fields, "{line:?}");
        let work = Work {
            trans: words[0].parse().unwrap_or_else(|_| panic!("{line:?}")),
            doc_id: words[1].parse().unwrap_or_else(|_| panic!("{line:?}")),
            url: words[fields - 1].to_string(),
        };
        assert_eq!(words[0], work.trans.to_string(), "plain decimal");
        assert_eq!(words[1], work.doc_id.to_string(), "plain decimal");
        let name = work.url.strip_prefix("http://").unwrap().split(':').next().unwrap();
        assert_eq!(words[2], ip_of(name), "{line:?}");
        if fields == 5 {
            assert_eq!(words[3], name, "{line:?}");
        }
        assert!(!work.url.ends_with("/robots.txt"), "{line:?}");
        work
    }

    /// The next line of work, in pull.
    #[track_caller]
    pub fn work(&mut self) -> Work {
        self.work_of(5)
    }

    #[track_caller]
    pub fn works(&mut self, count: usize) -> Vec<Work> {
        (0..count).map(|_| self.work()).collect()
    }
}

pub fn urls_of(works: &[Work]) -> BTreeSet<String> {
    let urls: BTreeSet<String> = works.iter().map(|work| work.url.clone()).collect();
    assert_eq!(urls.len(), works.len(), "each once: {works:?}");
    urls
}

pub fn set<T: AsRef<str>>(urls: &[T]) -> BTreeSet<String> {
    urls.iter().map(|url| url.as_ref().to_string()).collect()
}

/// Waits for exit status 0; the summary, whose sums hold.
#[track_caller]
pub fn ended(running: Running) -> Value {
    summary(running.wait(PATIENCE))
}

#[track_caller]
pub fn summary(run: Run) -> Value {
    let report = run.done().json();
    let count = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    let results = report["results"].as_object().unwrap();
    assert_eq!(count("known"), count("done") + count("pending"), "{report}");
    assert_eq!(count("done"), results.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), "{report}");
    report
}

/// `known`, `sent`, `resent`, `late`, `bad_lines`.
pub fn counts(report: &Value) -> [u64; 5] {
    ["known", "sent", "resent", "late", "bad_lines"].map(|name| report[name].as_u64().unwrap())
}

#[test]
fn nothing_before_get_and_never_more_than_asked_for() {
    for driver in DRIVERS {
        let (server, dir) = (web(), TempDir::new());
        let urls = pages(&server, &["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"], 1);
        let (running, addr) = listening(command(&dir, LISTEN, &urls).args(["--driver", driver]));
        let mut link = Link::dial(addr);
        wait_for("robots.txt is asked for", PATIENCE, || (server.asked().len() == 8).then_some(()));
        link.says_nothing_for(A_WHILE);
        link.send("GET 2");
        let mut got = link.works(2);
        link.says_nothing_for(A_WHILE);
        // They add up, whether or not the last are used up.
        link.send("GET 1\nGET 0\r\nGET 2");
        got.extend(link.works(3));
        link.says_nothing_for(A_WHILE);
        // What is done gives no credit back.
        got.iter().for_each(|work| link.send(&work.done()));
        link.says_nothing_for(A_WHILE);
        link.send("GET 4294967295\nGET 4294967295");
        let last = link.works(3);
        last.iter().for_each(|work| link.send(&work.done()));
        got.extend(last);
        assert_eq!(link.line(), None, "and goodbye");
        assert_eq!(urls_of(&got), set(&urls));
        assert_eq!(got.iter().map(|work| work.doc_id).collect::<BTreeSet<_>>().len(), 8);
        let report = ended(running);
        assert_eq!(counts(&report), [8, 8, 0, 0, 0], "{report}");
        assert_eq!((&report["results"], &report["driver"]), (&json!({"ok": 8}), &driver.into()));
        assert!(server.targets().iter().all(|target| target == "/robots.txt"), "it fetches nothing else");
    }
}

/// Both dialects, whoever dials: words in either order, with and without CR and a report.
#[test]
fn every_form_of_a_word_is_understood() {
    for (protocol, fields) in [("pull", 5), ("push", 4)] {
        for dials in [true, false] {
            let (server, dir) = (web(), TempDir::new());
            let urls = pages(&server, &["h1"], 8);
            let spider = TcpListener::bind("127.0.0.1:0").unwrap();
            let way = if dials { dialing(&spider) } else { LISTEN.to_string() };
            let settings = format!("{way}spider_protocol = \"{protocol}\"");
            let mut command = command(&dir, &settings, &urls);
            let (running, mut link) = if dials {
                let running = Running::start(&mut command);
                (running, Link::accept(&spider))
            } else {
                let (running, addr) = listening(&mut command);
                (running, Link::dial(addr))
            };
            if protocol == "pull" {
                link.send("GET 8");
            }
            let mut got = Vec::new();
            for form in [
                "DONE #",
                "# DONE",
                "# DONE\r",
                "WORKING #\n# WORKING\r\nDONE #\r",
                "DONE # 200 12 0",
                "# DONE 404 12 0\r",
                "GET 1\nDONE # 302 1 0",
                "#   DONE  304 1 0 ",
            ] {
                let work = link.work_of(fields);
                link.send(&form.replace('#', &work.trans.to_string()));
                got.push(work);
            }
            assert_eq!(link.line(), None, "and goodbye");
            assert_eq!(urls_of(&got), set(&urls));
            let report = ended(running);
            assert_eq!(counts(&report), [8, 8, 0, 0, 0], "{report}");
            let results = json!({"ok": 5, "http_error": 1, "redirect": 1, "not_modified": 1});
            assert_eq!(report["results"], results);
        }
    }
}

#[test]
fn no_more_of_a_host_than_its_window_holds() {
    for window in [1, 3] {
        let (server, dir) = (web(), TempDir::new());
        let urls = pages(&server, &["h1", "h2", "s1", "s2"], 7);
        let settings = format!("{LISTEN}req_host_concurrent = {window}");
        let (running, addr) = listening(&mut command(&dir, &settings, &urls));
        let mut link = Link::dial(addr);
        link.send("GET 1000");
        // s1 and s2 share the window of their address.
        let mut got = link.works(3 * window);
        link.says_nothing_for(A_WHILE);
        let open = |works: &[Work], host: &str| works.iter().filter(|work| work.host() == host).count();
        assert_eq!((open(&got, "h1"), open(&got, "h2")), (window, window), "{got:?}");
        // The others go on without h1.
        let mut left = BTreeMap::from([(ip_of("h2"), 7 - window), (ip_of("s"), 14 - window)]);
        let mut todo: Vec<Work> = got.iter().filter(|work| work.host() != "h1").cloned().collect();
        while let Some(work) = todo.pop() {
            link.send(&work.done());
            let left = left.get_mut(&ip_of(work.host())).unwrap();
            if *left > 0 {
                *left -= 1;
                let next = link.work();
                assert_eq!(ip_of(next.host()), ip_of(work.host()), "{next:?} for {work:?}");
                got.push(next.clone());
                todo.insert(0, next);
            }
        }
        link.says_nothing_for(A_WHILE);
        let mut todo: Vec<Work> = got.iter().filter(|work| work.host() == "h1").cloned().collect();
        assert_eq!(todo.len(), window);
        while let Some(work) = todo.pop() {
            link.send(&work.done());
            if got.len() < urls.len() {
                let next = link.work();
                got.push(next.clone());
                todo.insert(0, next);
            }
        }
        assert_eq!(urls_of(&got), set(&urls));
        assert_eq!(counts(&ended(running)), [28, 28, 0, 0, 0]);
    }
}

/// What an address was asked for and what of it was given to a spider is a gap apart.
///
/// A line is timed where it arrives, and on a busy machine it may have been on its way for a while, so that the next
/// one seems early. The first of an address is a robots.txt, timed on the wire: from there every gap counts in full,
/// and that no time lost is made good for is seen from each gap by half.
fn assert_apart(server: &LogServer, lines: &[(String, i64)], gap_ms: i64) {
    let robots = server.asked().into_iter().map(|asked| (ip_of(&asked.host), asked.at_ns));
    let mut by_ip: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (ip, at_ns) in robots.chain(lines.iter().map(|(host, at_ns)| (ip_of(host), *at_ns))) {
        by_ip.entry(ip).or_default().push(at_ns);
    }
    for (ip, times) in &mut by_ip {
        times.sort_unstable();
        let since_robots: Vec<i64> = times.iter().map(|at_ns| (at_ns - times[0]) / MS).collect();
        for (count, pair) in since_robots.windows(2).enumerate() {
            let least = (count as i64 + 1) * gap_ms - 2;
            assert!(pair[1] >= least, "{ip}: {since_robots:?} ms with {gap_ms} ms between two");
            assert!(
                pair[1] - pair[0] >= gap_ms / 2,
                "{ip}: {since_robots:?} ms with {gap_ms} ms between two"
            );
        }
    }
}

#[test]
fn lines_of_a_host_and_of_an_address_are_a_gap_apart() {
    for (rate, gap_ms, count, window) in [("2.5", 400, 3, 1), ("2.5", 400, 3, 3), ("0.8", 1_250, 1, 2)] {
        let (server, dir) = (web(), TempDir::new());
        let mut urls = pages(&server, &["h1", "h2"], 2 * count);
        urls.extend(pages(&server, &["s1", "s2"], count));
        let settings = format!("{LISTEN}req_host_per_sec = {rate}\nreq_host_concurrent = {window}");
        let (running, addr) = listening(&mut command(&dir, &settings, &urls));
        let mut link = Link::dial(addr);
        link.send("GET 1000");
        let (mut got, mut times) = (Vec::new(), Vec::new());
        while got.len() < urls.len() {
            let work = link.work();
            link.send(&work.done());
            times.push((work.host().to_string(), link.at_ns()));
            got.push(work);
        }
        assert_eq!(urls_of(&got), set(&urls));
        assert_apart(&server, &times, gap_ms);
        assert_eq!(counts(&ended(running))[1..], [urls.len() as u64, 0, 0, 0]);
    }
}

/// Whatever is free in the window, the rate holds.
#[test]
fn a_wide_window_is_not_filled_faster_than_the_rate() {
    let (server, dir) = (web(), TempDir::new());
    let urls = pages(&server, &["h1", "s1", "s2"], 2);
    let settings = format!("{LISTEN}req_host_per_sec = 2.5\nreq_host_concurrent = 4");
    let (running, addr) = listening(&mut command(&dir, &settings, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 6");
    let (mut got, mut times) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let work = link.work();
        times.push((work.host().to_string(), link.at_ns()));
        got.push(work);
    }
    assert_apart(&server, &times, 400);
    got.iter().for_each(|work| link.send(&work.done()));
    ended(running);
}

#[test]
fn a_report_of_429_or_503_is_a_pause() {
    let (server, dir) = (web(), TempDir::new());
    let mut urls = pages(&server, &["h1"], 2);
    urls.extend(pages(&server, &["h2"], 3));
    urls.extend(pages(&server, &["h3"], 9));
    let settings = format!("{LISTEN}req_host_per_sec = 2.5");
    let (running, addr) = listening(&mut command(&dir, &settings, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 100");
    // Twice 400 ms is less than a second, which is the least; then it is doubled again.
    let mut reports = BTreeMap::from([
        ("h1", vec![("200 5 0", 0), ("429 5 2", 2_000)]),
        ("h2", vec![("200 5 0", 0), ("503 5 0", 2_000), ("503 5 0", 1_000)]),
    ]);
    let (mut earliest_ns, mut others) = (BTreeMap::<String, i64>::new(), 0);
    for _ in &urls {
        let work = link.work();
        let at_ns = link.at_ns();
        let earliest = earliest_ns.get(work.host()).copied();
        assert!(earliest.is_none_or(|earliest| at_ns >= earliest), "{work:?} comes too soon");
        let (report, pause_ms) =
            reports.get_mut(work.host()).map_or(("200 5 0", 0), |reports| reports.pop().unwrap());
        if work.host() == "h3" {
            others += 1;
        } else {
            assert!(earliest.is_none() || others > 1, "the neighbours go on");
        }
        earliest_ns.insert(work.host().to_string(), now_ns() + pause_ms * MS);
        link.send(&format!("{} {report}", work.done()));
    }
    assert_eq!(ended(running)["results"], json!({"http_error": 3, "ok": 11}));
}

#[test]
fn a_line_that_cannot_be_read_closes_its_own_link_only() {
    let (server, dir) = (web(), TempDir::new());
    let bad: [&[u8]; 11] = [
        b"hello there",
        b"",
        b"\x1b[2J\x1b[31m",
        b"\x00\xff\xfe\x80",
        b"GET x",
        b"GET -1",
        b"GET",
        b"DONE",
        b"DONE 1 200",
        b"DONE -1",
        b"1 1 127.0.0.1 http://h1.test/",
    ];
    let hosts: Vec<String> = (1..=14).map(|n| format!("h{n}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let urls = pages(&server, &hosts, 1);
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut good = Link::dial(addr);
    good.send("GET 1");
    let kept = good.work();
    let about = |peer: &str| -> Vec<String> {
        let stderr = running.stderr();
        let names = |text: &&str| text.split(' ').any(|word| word.trim_end_matches(':') == peer);
        let others = stderr.lines().filter(|text| !text.ends_with("has joined"));
        others.filter(names).map(str::to_string).collect()
    };
    let closes = |line: &[u8]| {
        let mut link = Link::dial(addr);
        let peer = link.stream.local_addr().unwrap().to_string();
        link.send("GET 2");
        let works = link.works(2);
        // What was said before it counts, what is said after it does not.
        let after = format!("\nDONE {}\n", works[1].trans);
        link.stream.write_all(format!("{}\n", works[0].done()).as_bytes()).unwrap();
        let _ = link.stream.write_all(&[line, after.as_bytes()].concat());
        assert_eq!(link.line(), None, "closed over {:?}", String::from_utf8_lossy(line));
        wait_for("it says so", PATIENCE, || (!about(&peer).is_empty()).then_some(()));
        peer
    };
    let mut peers: Vec<String> = bad.iter().map(|line| closes(line)).collect();
    peers.push(closes(&[b"GET 1".as_slice(), &[b' '; 8_187]].concat()));
    // The longest there may be; spaces between words are no part of them.
    good.send(&format!("GET{}1", " ".repeat(8_192 - 5)));
    let last = good.work();
    good.send(&last.done());
    for peer in &peers {
        let said = about(peer);
        assert_eq!(said.len(), 1, "one line: {said:?}");
        assert!(!said[0].contains('\u{1b}') && said[0].len() < 400, "{said:?}");
    }
    // It need not end to be too long.
    let mut endless = Link::dial(addr);
    endless.stream.write_all(&[b'1'; 8_192]).unwrap();
    assert_eq!(endless.line(), None, "closed");
    good.send("GET 100");
    good.send(&kept.done());
    while let Some(line) = good.line() {
        good.send(&format!("DONE {}", line.split(' ').next().unwrap()));
    }
    let report = ended(running);
    assert_eq!((&report["bad_lines"], &report["late"]), (&13.into(), &0.into()), "{report}");
    assert_eq!((&report["done"], &report["resent"]), (&14.into(), &12.into()), "{report}");
}

#[test]
fn long_urls_are_sent_and_what_no_line_holds_is_concluded() {
    let server = web();
    let long = |host: &str, bytes: usize| {
        let start = format!("http://{host}:{}/", server.port());
        format!("{start}{}", "a".repeat(bytes - start.len()))
    };
    let longest = [long("h1.test", 8_000), long(&long_name(), 8_000)];
    for (protocol, fields, held) in [("push", 4, 2), ("pull", 5, 1)] {
        let dir = TempDir::new();
        let short = url(&server, "h1", "/short");
        let urls = [longest[1].clone(), longest[0].clone(), long("h2.test", 8_193), short.clone()];
        let settings = format!("{LISTEN}spider_protocol = \"{protocol}\"");
        let (running, addr) = listening(&mut command(&dir, &settings, &urls));
        let mut link = Link::dial(addr);
        // A line that is not sent takes no credit.
        link.send(&format!("GET {}", held + 1));
        let mut got = Vec::new();
        for _ in 0..held + 1 {
            let work = link.work_of(fields);
            link.send(&work.done());
            got.push(work);
        }
        let mut expected = set(&longest[..held]);
        expected.insert(short);
        assert_eq!(urls_of(&got), expected);
        let run = running.wait(PATIENCE);
        assert!(run.stderr.contains("list.txt:3: skipped"), "{}", run.stderr);
        let report = summary(run);
        assert_eq!(result_count(&report, "bad_url"), 2 - held as u64, "{report}");
        assert_eq!(result_count(&report, "ok"), 1 + held as u64, "{report}");
        assert_eq!(counts(&report)[1], 1 + held as u64, "{report}");
    }
}

#[test]
fn pages_wait_for_robots_rules_and_denied_ones_never_come() {
    let server = web_with(|asked| match (asked.host.split('.').next().unwrap(), asked.target.as_str()) {
        ("h1", "/robots.txt") => {
            Reply::text("User-agent: nephila\nDisallow: /private\nAllow: /private/but\n").after_ms(700)
        }
        ("h2", "/robots.txt") => {
            let port = asked.host.rsplit(':').next().unwrap();
            Reply::redirect(&format!("http://h3.test:{port}/rules"))
        }
        ("h3", "/rules") => Reply::text("User-agent: *\nDisallow: /no\n"),
        ("h4", "/robots.txt") => Reply::status("503 Service Unavailable"),
        _ => Reply::status("404 Not Found"),
    });
    let dir = TempDir::new();
    let allowed: Vec<String> =
        [("h1", "/a"), ("h1", "/private/but"), ("h2", "/b"), ("h3", "/no"), ("h3", "/c")]
            .map(|(host, path)| url(&server, host, path))
            .to_vec();
    let denied = [("h1", "/private"), ("h1", "/private/x"), ("h2", "/no"), ("h2", "/no/2"), ("h4", "/d")]
        .map(|(host, path)| url(&server, host, path));
    let urls: Vec<String> = denied.iter().chain(&allowed).cloned().collect();
    let (running, addr) = listening(&mut command(&dir, LISTEN, &urls));
    let mut link = Link::dial(addr);
    link.send("GET 100");
    let mut got = Vec::new();
    for _ in 0..allowed.len() {
        let work = link.work();
        let asked = server.asked();
        let (host, rules) = if work.host() == "h2" { ("h3", "/rules") } else { (work.host(), "/robots.txt") };
        let asked = asked.iter().find(|asked| asked.host.starts_with(host) && asked.target == rules);
        let asked_ns = asked.unwrap_or_else(|| panic!("{rules} of {host} before {work:?}")).at_ns;
        let took_ns = if host == "h1" { 700 * MS } else { 0 };
        assert!(link.at_ns() >= asked_ns + took_ns, "{work:?}");
        link.send(&work.done());
        got.push(work);
    }
    assert_eq!(link.line(), None, "and goodbye");
    assert_eq!(urls_of(&got), set(&allowed));
    let report = ended(running);
    assert_eq!(report["results"], json!({"ok": 5, "robots_denied": 5}));
    assert_eq!(counts(&report), [10, 5, 0, 0, 0], "{report}");
    let asked: Vec<String> = server.asked().iter().map(Asked::place).collect();
    assert_eq!(asked.len(), asked.iter().collect::<BTreeSet<_>>().len(), "asked for once: {asked:?}");
}

#[test]
fn a_list_is_read_line_by_line_and_mistakes_are_named() {
    let (server, dir) = (web(), TempDir::new());
    let (first, second) = (url(&server, "h1", "/1"), url(&server, "h2", "/2"));
    let list = ["# a list", "", "not a url", &first, "ftp://h1.test/", &second, &first];
    let (running, addr) = listening(&mut command(&dir, LISTEN, &list));
    let mut link = Link::dial(addr);
    link.send("GET 10");
    let got = link.works(2);
    got.iter().for_each(|work| link.send(&work.done()));
    assert_eq!(link.line(), None);
    assert_eq!(urls_of(&got), set(&[first, second]));
    let run = running.wait(PATIENCE);
    let skipped: Vec<&str> = run.stderr.lines().filter(|line| line.contains("skipped")).collect();
    assert!(skipped.len() == 2 && skipped[0].contains("list.txt:3:") && skipped[1].contains("list.txt:5:"));
    assert_eq!(counts(&summary(run)), [2, 2, 0, 0, 0]);

    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("listen = \"{}\"", busy.local_addr().unwrap());
    for (settings, list, code, said) in [
        ("", "http://h1.test/", 2, "spider_host"),
        (LISTEN, "not a url", 2, "no URL in it"),
        ("listen = \"127.0.0.1:0\"\nreq_host_per_second = 1", "http://h1.test/", 2, "req_host_per_sec"),
        ("listen = \"127.0.0.1:0\"\nspider_protocol = \"pushy\"", "http://h1.test/", 2, "spider_protocol"),
        (
            "listen = \"127.0.0.1:0\"\ntimeout_spider_status = 0",
            "http://h1.test/",
            2,
            "timeout_spider_status",
        ),
        (&taken, "http://h1.test/", 3, "cannot listen on"),
    ] {
        let run = Running::start(&mut command(&dir, settings, &[list])).wait(PATIENCE);
        assert_eq!((run.code(), &*run.text()), (code, ""), "{settings}: {}", run.stderr);
        let about = |line: &&str| !line.contains("skipped") && !line.starts_with("driver: ");
        let about: Vec<&str> = run.stderr.lines().filter(about).collect();
        assert_eq!(about.len(), 1, "{settings}: {}", run.stderr);
        assert!(about[0].starts_with("nephila: ") && about[0].contains(said), "{settings}: {}", run.stderr);
    }
    drop(busy);
    std::fs::remove_file(dir.join("list.txt")).unwrap();
    let mut missing = nephila();
    missing.arg("urlserver").arg("--config").arg(dir.write("l.toml", format!("[url_server]\n{LISTEN}")));
    let run = Running::start(missing.arg("--urls").arg(dir.join("list.txt")).current_dir(dir.path()))
        .wait(PATIENCE);
    assert_eq!((run.code(), run.stderr.lines().count()), (2, 1), "{}", run.stderr);
    assert!(run.stderr.contains("list.txt") && run.stderr.contains("--urls"), "{}", run.stderr);
}
