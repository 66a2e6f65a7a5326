//! The promise: a running crawl says how it is, stops, pauses, goes on and takes more URLs by its directory, and whatever
//! else is said to its socket does it no harm.

use crate::stage::Stage;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// `nephila VERB --data DATA ARGS…`, to its end.
#[track_caller]
fn say(verb: &str, data: &Path, args: &[&str]) -> Run {
    Running::start(nephila().arg(verb).arg("--data").arg(data).args(args)).wait(PATIENCE)
}

#[track_caller]
fn status(data: &Path) -> Value {
    say("status", data, &["--json"]).done().json()
}

/// Waits until the status has what is looked for.
#[track_caller]
fn status_with(data: &Path, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    wait_for(what, PATIENCE, || {
        let run = say("status", data, &["--json"]);
        Some(run).filter(|run| run.code() == 0).map(|run| run.json()).filter(|status| is(status))
    })
}

/// Ten thousand pages, one of which is asked for now and then.
fn slow_stage() -> (Stage, String) {
    let mut stage = Stage::new(|_| Reply::links((0..50).map(|n| format!("/{n}"))));
    let seed = stage.url("a.test", "/");
    (stage, seed)
}

#[test]
fn a_running_crawl_says_how_it_is_and_a_directory_how_its_last_one_ended() {
    let (stage, seed) = slow_stage();
    let data = &stage.data;
    let none = say("status", data, &[]);
    assert_eq!(none.code(), 3, "{}", none.stderr);
    assert!(!data.exists(), "looking makes nothing");

    let crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.5"]));
    // Figures of threads come one after the other.
    let is_told = |status: &Value| status["pages"] == 1 && status["open"] == 0 && status["hosts"] == 1;
    let running = status_with(data, "a page", is_told);
    assert_eq!((&running["running"], &running["state"]), (&true.into(), &"running".into()), "{running}");
    assert_eq!(running["pid"], crawl.pid(), "{running}");
    assert_eq!((&running["known"], &running["pending"]), (&51.into(), &50.into()), "{running}");
    assert_eq!((&running["hosts"], &running["success"]), (&1.into(), &1.into()), "{running}");
    assert!(running["seconds"].as_f64().unwrap() > 0.0 && running["since"].is_string(), "{running}");
    let rate = running["pages_per_second"].as_f64().unwrap();
    assert!(rate > 0.0 && rate < 5.0, "{running}");
    assert!(running["disk"]["free_bytes"].as_u64().unwrap() > 0, "{running}");
    status_with(data, "the host waits for its rate", |status| status["waits"]["rate"] == 1);
    let text = say("status", data, &[]).done().text();
    for said in
        ["state      running for ", "1 with something to fetch; they wait for:", "51 known", "GB free"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }

    let stopped = say("stop", data, &["--json"]).done().json();
    assert_eq!((&stopped["stopped"], &stopped["pid"]), (&true.into(), &crawl.pid().into()), "{stopped}");
    // Whoever has stopped it may use the directory, and knows how it ended.
    let run = say("status", data, &["--json"]);
    assert_eq!(run.code(), 1, "{}", run.stderr);
    let left = run.json();
    assert_eq!((&left["running"], &left["last_run"]["ended"]), (&false.into(), &"stopped".into()), "{left}");
    assert_eq!((&left["known"], &left["success"]), (&51.into(), &left["last_run"]["pages"]), "{left}");
    let report = crawl.wait(PATIENCE).done().json();
    assert_eq!((&report["stopped"], &report["pending"]), (&true.into(), &left["pending"]), "{left}");
    let text = say("status", data, &[]).text();
    assert!(text.contains("not running; the last crawl ended ") && text.contains(": stopped"), "{text}");
    for verb in ["stop", "pause", "resume"] {
        let run = say(verb, data, &[]);
        assert_eq!((run.code(), run.text().as_str()), (1, ""), "{verb}: {}", run.stderr);
        assert!(run.stderr.contains("no crawl runs in"), "{verb}: {}", run.stderr);
    }

    let crawl = Running::start(&mut stage.command(["--req-host-per-sec", "0.5"]));
    status_with(data, "another crawl", |status| status["pid"] == crawl.pid());
    crawl.signal(Signal::SIGKILL);
    let _ = crawl.wait(PATIENCE);
    let run = say("status", data, &[]);
    assert!(run.code() == 1 && run.text().contains("and was killed"), "{}", run.text());
}

#[test]
fn stop_waits_for_the_end_no_longer_than_it_was_told() {
    let mut stage = Stage::new(|_| Reply::text("late").after_ms(3_000));
    let seed = stage.url("a.test", "/");
    let crawl = Running::start(&mut stage.command([&*seed]));
    status_with(&stage.data, "a request", |status| status["open"] == 1);
    let run = say("stop", &stage.data, &["--timeout", "0"]);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("still ending") && run.stderr.contains(&crawl.pid().to_string()),
        "{}",
        run.stderr
    );
    // Asked again, it is no more in a hurry than before.
    say("stop", &stage.data, &[]).done();
    let run = crawl.wait(PATIENCE).done();
    assert_eq!(run.json()["success"], 1, "what was open has ended");
    assert!(run.stderr.contains("stopping, as nephila stop asked"), "{}", run.stderr);
}

#[test]
fn a_paused_crawl_asks_nobody_and_goes_on_where_it_was() {
    let farm = Farm::start(SiteSpec {
        hosts: 20,
        pages: 60,
        page_bytes: 2_000,
        latency_ms: 20,
        ..SiteSpec::default()
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut command = crawl_command(&data);
    let mut crawl = Running::start(command.args(farm.flags()));
    let requests = || farm.stats()["requests"].as_u64().unwrap();
    wait_for("requests", PATIENCE, || (requests() > 100).then_some(()));
    let said = say("pause", &data, &["--json"]).done().json();
    assert_eq!(said["state"], "paused", "{said}");
    let paused = status_with(&data, "open requests end", |status| status["open"] == 0);
    assert_eq!(paused["state"], "paused", "{paused}");
    let before = requests();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(requests(), before, "nothing goes out");
    assert!(!crawl.has_ended() && crawl.stderr().contains("paused"), "{}", crawl.stderr());
    assert!(say("status", &data, &[]).done().text().contains("paused: no new requests"));
    // Saying it twice says nothing new.
    say("pause", &data, &[]).done();
    assert_eq!(say("resume", &data, &["--json"]).done().json()["state"], "running");
    say("resume", &data, &[]).done();
    let report = crawl.wait(PATIENCE).done().json();
    check_report(&report);
    assert_eq!((&report["pending"], &report["stopped"]), (&0.into(), &false.into()), "{report}");
    assert_eq!(report["known"], 20 * 61, "{report}");
    run(["audit", "--data", data.to_str().unwrap()]).done();
}

#[test]
fn a_paused_crawl_does_not_end_by_itself_and_can_be_stopped() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::links(["/1"]).after_ms(6_000),
        _ => Reply::text(""),
    });
    let seed = stage.url("a.test", "/");
    let mut crawl = Running::start(&mut stage.command([&*seed]));
    status_with(&stage.data, "the seed is asked for", |status| status["open"] == 1);
    wait_for("the seed is asked for", PATIENCE, || (stage.pages_of("a.test").len() == 1).then_some(()));
    say("pause", &stage.data, &[]).done();
    let paused = status_with(&stage.data, "the seed is there", |status| status["pages"] == 1);
    assert_eq!(
        (&paused["known"], &paused["pending"]),
        (&2.into(), &1.into()),
        "its links are known: {paused}"
    );
    std::thread::sleep(Duration::from_millis(800));
    assert!(!crawl.has_ended());
    assert_eq!(stage.pages_of("a.test").len(), 1, "the link is not asked for");
    say("stop", &stage.data, &[]).done();
    assert_eq!(crawl.wait(PATIENCE).done().json()["pending"], 1);
    // The next run is not paused. Another, paused when all is had, ends once it may go on.
    let report = Running::start(&mut stage.command::<&str>([])).wait(PATIENCE).done().json();
    assert_eq!((&report["pages"], &report["pending"]), (&1.into(), &0.into()), "{report}");

    let late = stage.url("b.test", "/");
    let mut crawl = Running::start(&mut stage.command([&*late, "--depth", "0"]));
    wait_for("the seed is asked for", PATIENCE, || (stage.pages_of("b.test").len() == 1).then_some(()));
    say("pause", &stage.data, &[]).done();
    status_with(&stage.data, "the seed is there", |status| status["pages"] == 1);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!crawl.has_ended());
    say("resume", &stage.data, &[]).done();
    crawl.wait(PATIENCE).done();
}

#[test]
fn seeds_that_are_added_are_taken_up_at_once_and_survive_a_kill() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::links((0..50).map(|n| format!("/{n}"))),
        "/more/" => Reply::links(["/more/1"]),
        _ => Reply::text(""),
    });
    stage.settings("[doc_index]\ndeny = [\"/secret\"]\n");
    let seed = stage.url("a.test", "/");
    let [more, secret, third] = [("b.test", "/more/"), ("b.test", "/secret"), ("c.test", "/")]
        .map(|(host, path)| stage.url(host, path));
    let crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.5"]));
    status_with(&stage.data, "a page", |status| status["pages"] == 1);

    // Whoever tries it with crawl is told how.
    let run = Running::start(&mut stage.command([&*more])).wait(PATIENCE);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    let told =
        format!("in use by pid {}: a crawl runs there: add URLs to it with nephila add --data", crawl.pid());
    assert!(run.stderr.contains(&told), "{}", run.stderr);

    let list = stage.dir.write("more", format!("# more\n\n{more}\n{seed}\n"));
    let run = say("add", &stage.data, &[&secret, "--json", "--seeds", list.to_str().unwrap()]).done();
    let added = run.json();
    assert_eq!(added["running"], true, "{added}");
    assert_eq!(
        (&added["new"], &added["known"], &added["refused"]),
        (&1.into(), &1.into(), &1.into()),
        "{added}"
    );
    assert!(run.stderr.contains("deny rule 1"), "{}", run.stderr);
    // Its host is in scope from now on, and the crawl goes there.
    wait_for("a link of the new host", PATIENCE, || (stage.pages_of("b.test").len() == 2).then_some(()));
    let said = say("add", &stage.data, &[&third]).done().text();
    assert_eq!(said, "1 new, 0 known, 0 refused; the running crawl has them\n");
    crawl.signal(Signal::SIGKILL);
    let _ = crawl.wait(PATIENCE);
    let exported = run_index(&stage.data, &["export"]);
    assert!(exported.lines().any(|line| line.contains(&third)), "{exported}");

    // Where nothing runs, the next crawl begins with them.
    let fourth = stage.url("d.test", "/");
    let added = say("add", &stage.data, &[&fourth, &seed, "--json"]).done().json();
    assert_eq!(
        (&added["running"], &added["new"], &added["known"]),
        (&false.into(), &1.into(), &1.into()),
        "{added}"
    );
    let report = Running::start(&mut stage.command::<&str>([])).wait(PATIENCE).done().json();
    assert_eq!(report["pending"], 0, "{report}");
    assert!(stage.pages_of("d.test").len() == 1 + 50 && stage.pages_of("c.test").len() >= 51, "{report}");
    assert!(!stage.server.targets().contains(&"/secret".to_string()));
    for args in [&[][..], &["not a url"], &[&*secret]] {
        assert_eq!(say("add", &stage.data, args).code(), 2, "{args:?}");
    }
}

#[track_caller]
fn run_index(data: &Path, args: &[&str]) -> String {
    Running::start(nephila().arg("index").args(args).arg("--data").arg(data)).wait(PATIENCE).done().text()
}

#[test]
fn an_import_goes_to_the_running_crawl_in_pieces() {
    let (mut stage, seed) = slow_stage();
    let other = stage.url("b.test", "/");
    let crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.5"]));
    status_with(&stage.data, "a page", |status| status["pages"] == 1);
    // Plain lines, a line of an export as long as they come, and lines that are none.
    let mut text: String = (0..9_000).map(|n| format!("{other}{n}\n")).collect();
    let long = format!("{other}{}", "x".repeat(7_000));
    text += &format!(
        "{{\"url\":\"{long}\",\"kind\":\"content\",\"depth\":3,\"priority\":5}}\nnonsense\n{other}7\n"
    );
    let file = stage.dir.write("list", text);
    let mut import = nephila();
    import.args(["index", "import", "--json", "--data"]).arg(&stage.data).arg(&file);
    let run = Running::start(&mut import).wait(PATIENCE).done();
    let summary = run.json();
    assert_eq!((&summary["lines"], &summary["running"]), (&9_003.into(), &true.into()), "{summary}");
    assert_eq!(
        (&summary["new"], &summary["known"], &summary["bad"]),
        (&9_001.into(), &1.into(), &1.into()),
        "{summary}"
    );
    assert!(run.stderr.contains(":9002: skipped: nonsense"), "{}", run.stderr);
    let status = status(&stage.data);
    assert_eq!(status["known"], 51 + 9_001, "{status}");
    wait_for("the new host is asked", PATIENCE, || (!stage.pages_of("b.test").is_empty()).then_some(()));
    // Another update tag makes a page due that was had.
    let tagged = |tag: &str| format!("b\t9\t0\t0\t{seed}\t0\t{tag}\n");
    for (tag, field) in [("v1", "known"), ("v2", "due")] {
        let file = stage.dir.write("tags", tagged(tag));
        let mut import = nephila();
        import.args(["index", "import", "--json", "--data"]).arg(&stage.data).arg(&file);
        let summary = Running::start(&mut import).wait(PATIENCE).done().json();
        assert_eq!(summary[field], 1, "{tag}: {summary}");
    }
    say("stop", &stage.data, &[]).done();
    crawl.wait(PATIENCE).done();
}

#[test]
fn whatever_is_said_to_its_socket_a_crawl_goes_on() {
    let (stage, seed) = slow_stage();
    let mut crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.5"]));
    let socket = stage.data.join("admin.sock");
    status_with(&stage.data, "a page", |status| status["pages"] == 1);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else may ask");
    let known = |status: Value| status["known"].clone();
    let before = known(status(&stage.data));
    let post = |path: &str, head: &str, body: &[u8]| {
        let mut bytes = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n").into_bytes();
        bytes.extend_from_slice(body);
        bytes
    };
    let urls = "/api/v1/urls?as=import";
    let odd = b"\x00\x01\x02{\"url\":[[[[[[\xff\xff\nabc\n\n\n";
    let garbage: Vec<(Vec<u8>, &str)> = vec![
        (b"\n\n\n".to_vec(), ""),
        (b"status\n".to_vec(), "HTTP/1.1 400"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "needs one header Host"),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), ""),
        (post("/api/v1/explain", "", b""), "HTTP/1.1 405"),
        (post(urls, "Content-Length: x\r\n", b""), "HTTP/1.1 400"),
        (post(urls, "Content-Length: -1\r\n", b""), "HTTP/1.1 400"),
        (post(urls, "Content-Length: 99999999999999999999\r\n", b""), "HTTP/1.1 400"),
        (post(urls, "Content-Length: 1048577\r\n", b""), "HTTP/1.1 413"),
        (post(urls, "Content-Length: 10\r\n", b"http"), ""),
        (post(urls, "Content-Length: 2\r\nContent-Length: 3\r\n", b"http"), "HTTP/1.1 400"),
        (post(urls, "Transfer-Encoding: chunked\r\n", b"zz\r\nhttp\r\n"), "HTTP/1.1 400"),
        (post(urls, "Transfer-Encoding: chunked\r\n", b"ffffffffffffffffff\r\nh"), "HTTP/1.1 400"),
        (post(urls, "Content-Type: image/png\r\nContent-Length: 1\r\n", b"h"), "HTTP/1.1 415"),
        (post(&format!("{urls}s"), "", b""), "HTTP/1.1 422"),
        (post("/api/v1/pause", "Content-Length: 1\r\n", b"{"), "HTTP/1.1 400"),
        (post("/api/v1/pause", "Content-Length: 9\r\n", b"{\"why\":1}"), "HTTP/1.1 422"),
        (post(urls, &format!("Content-Length: {}\r\n", odd.len()), odd), "\"new\":0"),
        (vec![b'a'; 100_000], ""),
        (vec![0; 20_000], ""),
        ([b"GET / HTTP/1.1\r\nX: ", &[b'a'; 70_000][..]].concat(), ""),
    ];
    for (bytes, expected) in &garbage {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        assert!(answer.contains(expected), "{shown:?}: {answer}");
        assert!(!expected.is_empty() || !answer.contains(" 200 "), "{shown:?}: {answer}");
    }
    // Connections that say nothing are bounded, and when they go others are heard.
    let idle: Vec<UnixStream> = (0..40).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!crawl.has_ended());
    drop(idle);
    assert_eq!(known(status_with(&stage.data, "an answer", |_| true)), before);
    let at = Instant::now();
    let pages = status(&stage.data)["pages"].as_u64().unwrap();
    status_with(&stage.data, "it goes on", |status| status["pages"].as_u64().unwrap() > pages);
    say("stop", &stage.data, &[]).done();
    assert!(at.elapsed() < PATIENCE);
    assert_eq!(crawl.wait(PATIENCE).done().json()["known"], before);
}
