//! The promise: a farm is what its scenario says, also by name; flags beside it win; and every scenario can be crawled to
//! its end, with names from the farm itself.

use crate::support::*;
use nephila::farm::{Breakage, PageKind, Scenario, Site, SiteSpec};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// `nephila farm` with flags as typed, telling its own names.
struct Typed {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Value,
    dir: TempDir,
}

impl Typed {
    #[track_caller]
    fn start(flags: &[&str]) -> Typed {
        Typed::start_as(nephila(), flags)
    }

    #[track_caller]
    fn start_as(mut command: Command, flags: &[&str]) -> Typed {
        let dir = TempDir::new();
        command.args(["farm", "--json", "--until-stdin-closes", "--dns-port", "0"]).args(flags);
        command.arg("--seeds-file").arg(dir.join("seeds"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        Typed { child, stdin, said, dir }
    }

    fn port(&self) -> u16 {
        self.said["port"].as_u64().unwrap() as u16
    }

    fn dns(&self) -> &str {
        self.said["dns"].as_str().unwrap()
    }

    fn seeds_file(&self) -> PathBuf {
        self.dir.join("seeds")
    }

    fn url(&self, host: u32, page: u32) -> String {
        let path = if page == 0 { String::new() } else { format!("p/{page}.html") };
        format!("http://h{host}.farm.test:{}/{path}", self.port())
    }

    /// Flags that crawl it without pauses, and without a file of names.
    fn flags(&self) -> Vec<String> {
        let seeds = self.seeds_file();
        let flags = ["--seeds", seeds.to_str().unwrap(), "--dns", self.dns(), "--req-host-per-sec", "0"];
        flags.map(str::to_string).to_vec()
    }

    fn stats(&self) -> Value {
        let (_, body) = get(([127, 16, 0, 0], self.port()).into(), "/farm-stats");
        serde_json::from_slice(&body).unwrap()
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        drop(self.stdin.take());
        see_off(&mut self.child);
    }
}

#[test]
fn what_was_chosen_is_told() {
    for scenario in Scenario::ALL {
        let farm = Typed::start(&["--scenario", scenario.name(), "--hosts", "3", "--seed", "9"]);
        assert_eq!(farm.said["scenario"], scenario.name());
        let mut expected = serde_json::to_value(SiteSpec { hosts: 3, seed: 9, ..scenario.spec() }).unwrap();
        expected["began_unix_ms"] = farm.said["settings"]["began_unix_ms"].clone();
        assert_eq!(farm.said["settings"], expected);
        assert!(farm.said["first"].as_str().unwrap().starts_with("http"));
    }
    let plain = Typed::start(&[]);
    assert_eq!(plain.said["scenario"], Value::Null);
    assert_eq!((&plain.said["settings"]["hosts"], &plain.said["hosts"]), (&json!(1000), &json!(1000)));
}

/// Lengths, gzip, chunks, redirects, errors and failures of the web, by names of the farm's own server: what is stored is
/// what the farm drew, byte for byte.
#[test]
fn the_web_is_stored_as_it_was_drawn() {
    let shares = ["--redirects", "0.1", "--errors", "0", "--broken", "0.1", "--latency-ms", "5"];
    let flags = [&["--scenario", "web", "--hosts", "12", "--pages", "30"][..], &shares].concat();
    let farm = Typed::start(&flags);
    let site = Site::new(SiteSpec {
        hosts: 12,
        pages: 30,
        redirects: 0.1,
        errors: 0.0,
        broken: 0.1,
        latency_ms: 5,
        ..Scenario::Web.spec()
    })
    .unwrap();
    for driver in DRIVERS {
        let dir = TempDir::new();
        let data = dir.join("data");
        let before = farm.stats();
        let (report, _) = crawl(&data, farm.flags().iter().chain(&["--driver", driver].map(str::to_string)));
        let stored = stored(&data);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (host, page) in (0..12).flat_map(|host| (0..30).map(move |page| (host, page))) {
            let listed = &stored[&farm.url(host, page)];
            let result = match site.kind(host, page) {
                PageKind::Document | PageKind::Slow => "ok",
                PageKind::Redirect { .. } => "redirect",
                PageKind::Error { .. } => "http_error",
                PageKind::Broken(Breakage::Reset) => "reset",
                PageKind::Broken(Breakage::Truncated) => "truncated",
                PageKind::Broken(_) => "malformed",
            };
            assert_eq!(listed.result, result, "{listed:?}");
            *counts.entry(result).or_default() += 1;
            if result == "ok" {
                let document = site.document(host, page, farm.port());
                assert_eq!((listed.bytes, &listed.sha1), (document.len() as u64, &sha1_hex(&document)));
            }
        }
        assert!(["redirect", "truncated", "malformed", "reset"].iter().all(|kind| counts[kind] > 0));
        assert_eq!(result_count(&report, "ok"), counts["ok"], "{report}");
        let stats = farm.stats();
        let since = |name: &str| stats[name].as_u64().unwrap() - before[name].as_u64().unwrap();
        // Three in five of them came in gzip.
        let (documents, sent) = (report["bytes"].as_u64().unwrap(), since("bytes"));
        assert!(sent < documents * 8 / 10, "{sent} bytes for {documents}");
        let asked = since("names_asked");
        assert!((24..200).contains(&asked), "{asked} questions for both kinds of address of 12 names");
    }
}

/// What the crawler's own rules let through of each trap, and no more.
#[test]
fn a_crawl_of_traps_ends_by_its_own_rules() {
    const RULES: &str =
        "[doc_index]\npath_depth_max = 12\nsegment_repeats_max = 3\nquery_variants_max = 25\n";
    let farm = Typed::start(&["--scenario", "traps", "--hosts", "2", "--pages", "3"]);
    let dir = TempDir::new();
    let rules = dir.write("c.toml", RULES);
    for driver in DRIVERS {
        let data = dir.join(driver);
        let more = ["--driver", driver, "--depth", "40", "--config", rules.to_str().unwrap()];
        let (report, _) = crawl(&data, farm.flags().iter().chain(&more.map(str::to_string)));
        assert_eq!(report["pending"], report["waiting"], "{report}");
        let stored = stored(&data);
        let below = |part: &str| {
            let start = format!("http://h1.farm.test:{}{part}", farm.port());
            stored.values().filter(|page| page.url.starts_with(&start)).collect::<Vec<_>>()
        };
        // `/deeper/` is one deep.
        assert_eq!(below("/deeper/").len(), 12, "path_depth_max");
        assert_eq!(below("/tail/").len(), 3, "segment_repeats_max");
        assert_eq!(below("/agenda").len(), 25, "query_variants_max");
        for page in 0..3 {
            let found = below(&format!("/session/{page}.html?")).len();
            assert_eq!(found, 25, "query_variants_max of session page {page}");
        }
        // Each month that forty links lead to: no rule but the depth ends a calendar.
        let years: BTreeSet<&str> =
            below("/calendar/").iter().map(|page| page.url.split('/').nth(4).unwrap()).collect();
        assert!(years.contains("2022") && years.contains("2064"), "{years:?}");
        let results =
            |part: &str| -> Vec<String> { below(part).iter().map(|page| page.result.clone()).collect() };
        assert_eq!(results("/loop/"), ["redirect", "redirect", "redirect_loop", "redirect_loop"]);
        let chain = results("/chain/");
        let followed = chain.iter().filter(|result| *result == "redirect").count();
        assert_eq!((chain.len(), followed), (11, 10), "ten are followed: {chain:?}");
        assert!(chain.contains(&"too_many_redirects".to_string()), "{chain:?}");
        // Thirty files, and what the rule leaves of thirty parameters.
        for (part, count) in [("/same/", 30 + 25), ("/gone/", 3)] {
            let documents: BTreeSet<&str> = below(part).iter().map(|page| page.sha1.as_str()).collect();
            assert_eq!((below(part).len(), documents.len()), (count, 1), "one document: {part}");
        }
    }
}

#[test]
fn the_other_scenarios_are_crawled_to_their_end() {
    for (name, flags, wanted) in [
        ("fast", &["--hosts", "5"][..], &[("ok", 100)][..]),
        ("templates", &["--hosts", "5"], &[("ok", 100)]),
        (
            "broken",
            &["--hosts", "5", "--slow-hosts", "9", "--errors", "0"],
            &[("reset", 1), ("truncated", 1), ("malformed", 1)],
        ),
        (
            "slow",
            &["--hosts", "5", "--slow-hosts", "0", "--latency-ms", "20", "--slow-ms", "300"],
            &[("ok", 100)],
        ),
    ] {
        let farm = Typed::start(&[&["--scenario", name], flags].concat());
        let dir = TempDir::new();
        let settings = "[spider]\ntimeout_first_byte = 1500\ntimeout_read = 1500\ntimeout_req = 3000\n";
        let settings = dir.write("c.toml", settings);
        let more = ["--config", settings.to_str().unwrap()].map(str::to_string);
        let (report, _) = crawl(&dir.join("data"), farm.flags().iter().chain(&more));
        for (result, least) in wanted {
            assert!(result_count(&report, result) >= *least, "{name}: {result} in {report}");
        }
    }
    let dir = TempDir::new();
    let ca = dir.join("ca.pem");
    let farm = Typed::start(&[
        "--scenario",
        "tls",
        "--hosts",
        "5",
        "--pages",
        "4",
        "--ca-out",
        ca.to_str().unwrap(),
    ]);
    let more = ["--ca-file", ca.to_str().unwrap()].map(str::to_string);
    let (report, _) = crawl(&dir.join("data"), farm.flags().iter().chain(&more));
    assert_eq!((&report["success"], &report["pending"]), (&json!(20), &json!(0)), "{report}");
}

/// Any bytes at all get an answer that fits, or none, and the next question is answered as before.
#[test]
fn the_name_server_outlives_any_bytes() {
    let farm = Typed::start(&["--hosts", "300"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(farm.dns()).unwrap();
    let mut rng = nephila::base::Rng::new(7);
    let name = b"\x04h299\x04farm\x04test\0\0\x01\0\x01";
    let question = |id: u8| [&[0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], name].concat();
    for round in 0..200u8 {
        for _ in 0..5 {
            let mut bytes = question(0);
            bytes.resize(bytes.len() + rng.below(2_000) as usize, 0xc0);
            for _ in 0..rng.below(20) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            // An id that is not that of the question below.
            bytes[1] = 255;
            socket.send(&bytes).unwrap();
        }
        socket.send(&[]).unwrap();
        socket.send(&question(round)).unwrap();
        let mut answer = [0; 65_536];
        let length = loop {
            let length = socket.recv(&mut answer).expect("an answer to a plain question");
            assert!((12..=512).contains(&length), "{length} bytes");
            if answer[1] == round {
                break length;
            }
        };
        assert_eq!(answer[3] & 15, 0);
        assert_eq!(answer[length - 4..length], [127, 16, 1, 43], "the address of host 299");
    }
}

/// Five times as many peers as there are files, each of which keeps its connection: those that had an answer make room, and
/// nobody is kept waiting, nor is one let go that has not asked yet.
#[test]
fn a_farm_out_of_files_lets_idle_peers_go() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 60; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nephila")]);
    let farm = Typed::start_as(command, &["--hosts", "300", "--pages", "1"]);
    let peer = |host: u32| {
        let stream = TcpStream::connect((nephila::farm::host_addr(host), farm.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE / 4)).unwrap();
        stream
    };
    let ask = |stream: &mut TcpStream| {
        stream.write_all(b"GET /robots.txt HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"Disallow: /private/\n") {
            let mut bytes = [0; 1_000];
            let n = stream.read(&mut bytes).expect("an answer in time");
            assert!(n > 0, "closed before it was answered");
            answer.extend_from_slice(&bytes[..n]);
        }
    };
    let mut patient = peer(0);
    let mut kept = Vec::new();
    for host in 1..300 {
        let mut stream = peer(host);
        ask(&mut stream);
        kept.push(stream);
    }
    ask(&mut patient);
}

#[test]
fn a_name_server_in_the_way_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = run(["farm", "--dns-port", &port]);
    assert_eq!((ended.code(), ended.text()), (3, String::new()));
    assert!(ended.stderr.contains(&format!("port {port} is in use")), "{}", ended.stderr);
}
