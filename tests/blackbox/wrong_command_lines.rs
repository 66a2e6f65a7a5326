//! The promise: a command line that cannot be meant is refused with status 2 and one line on stderr, which names the cause
//! and the mend, and nothing is made on disk.

use crate::support::*;

/// A command line, and words that its line must have: of the cause, and of the mend.
type Wrong = (&'static [&'static str], &'static [&'static str]);

const URL: &str = "http://127.0.0.1:9/";

const WRONG: &[Wrong] = &[
    (&["crawl"], &["nothing to crawl", "give a URL"]),
    (&["crawl", "example.org"], &["example.org", "did you mean https://example.org/ ?"]),
    (&["crawl", "www.example.org/a?b=c"], &["did you mean https://www.example.org/a?b=c ?"]),
    (&["crawl", "localhost:8000/x"], &["did you mean http://localhost:8000/x ?"]),
    (&["crawl", "ftp://example.org/"], &["ftp", "http and https"]),
    (&["crawl", "http://"], &["http://", "not a URL"]),
    (&["crawl", URL, "--cores", "0-99"], &["--cores", "core ", "this process may use"]),
    (&["crawl", URL, "--cores", "0-999"], &["--cores", "core ", "this process may use"]),
    (&["crawl", URL, "--cores", "0-18446744073709551615"], &["--cores", "this process may use"]),
    (&["crawl", URL, "--cores", "5-3"], &["--cores", "\"5-3\"", "3-5"]),
    (&["crawl", URL, "--cores", "0,0"], &["--cores", "core 0 is named twice"]),
    (&["crawl", URL, "--cores", "x"], &["--cores", "\"x\"", "like 0-3"]),
    (&["crawl", URL, "--cores", ""], &["--cores", "like 0-3"]),
    (&["spider", "--listen", "127.0.0.1:0", "--cores", "0-99"], &["--cores", "this process may use"]),
    (&["storeserver", "--listen", "127.0.0.1:0", "--cores", "0-999"], &["--cores", "this process may use"]),
    (&["urlserver", "--urls", "list", "--cores", "99"], &["--cores", "this process may use"]),
    (&["farm", "--cores", "0-99", "--hosts-file", "hosts"], &["--cores", "this process may use"]),
    (&["farm", "--hosts", "0", "--hosts-file", "hosts"], &["hosts"]),
    (&["farm", "--ca-out", "ca.pem"], &["--tls", "nephila farm --help"]),
    (&["demo", "--hosts", "0"], &["hosts"]),
    (&["demo", "--req-host-per-sec=-1"], &["req_host_per_sec"]),
    (&["crawl", "--bogus", URL], &["--bogus", "usage: nephila crawl", "nephila crawl --help"]),
    (&["crawl", "--dept", "1", URL], &["--dept", "'--depth'", "nephila crawl --help"]),
    (
        &["crawl", "--depth", "deep", URL],
        &["--depth", "deep", "usage: nephila crawl", "nephila crawl --help"],
    ),
    (
        &["crawl", "--max-pages", "-1", URL],
        &["-1 for --max-pages", "must be at least 0", "nephila crawl --help"],
    ),
    (&["crawl", "--depth", "-1", URL], &["-1 for --depth", "must be at least 0"]),
    (&["crawl", "--req-host-per-sec", "-1", URL], &["req_host_per_sec", "at least 0"]),
    (&["crawl", "--scope", "world", URL], &["--scope", "host, domain, prefix, any"]),
    (&["crawl", "--allow-net", "127.0.0.0/99", URL], &["--allow-net", "127.0.0.0/99"]),
    (&["crawl", "--dns", "nowhere", URL], &["--dns", "like 9.9.9.9"]),
    (&["crawl", "--contact", "nowhere", URL], &["--contact", "mail address"]),
    (&["crawl", "--user-agent", "", URL], &["user_agent"]),
    (&["crawl", "--config", "missing.toml", URL], &["missing.toml", "--config"]),
    (&["crawl", "--hosts-file", "missing", URL], &["missing", "--hosts-file"]),
    (&["crawl", "--seeds", "missing"], &["missing", "--seeds"]),
    (&["crawl", "-q", "-v", URL], &["--quiet", "--verbose", "nephila crawl --help"]),
    (&["nonsense"], &["nonsense", "usage: nephila", "nephila --help"]),
    (&["craw", URL], &["craw", "'crawl'", "nephila --help"]),
    (&["store", "lsx"], &["lsx", "usage: nephila store", "nephila store --help"]),
    (&["store", "cat"], &["URL", "usage: nephila store cat", "nephila store cat --help"]),
    (&["store", "ls", "--result", "okay"], &["--result", "okay", "did you mean ok?"]),
    (&["store", "ls", "--since", "yesterday"], &["--since", "yesterday", "like 2h or 2026-01-01"]),
    (&["store", "drop"], &["--before", "nephila store drop --help"]),
    (&["index", "pending", "--limit", "all"], &["--limit", "all", "nephila index pending --help"]),
    (&["explain"], &["URL", "nephila explain --help"]),
    (&["explain", "example.org"], &["did you mean https://example.org/ ?"]),
    (&["spider"], &["--listen", "usage: nephila spider", "nephila spider --help"]),
    (&["spider", "--urlserver", "nowhere"], &["--urlserver", "nowhere", "like server.example.net:7170"]),
    (&["spider", "--listen", "127.0.0.1:0", "--store", "a:1", "--data", "d"], &["--data", "--store"]),
    (&["storeserver", "--listen", "nonsense"], &["--listen", "nonsense", "like 0.0.0.0:7171"]),
    (&["urlserver", "--urls", "list"], &["no way to a spider", "--config"]),
    (&["export", "warc", "--out"], &["--out", "nephila export warc --help"]),
    (&["robots", "--agent", "x"], &["FILE", "nephila robots --help"]),
    (&["help", "crawlin"], &["crawlin", "did you mean crawling?"]),
];

#[test]
fn wrong_command_lines() {
    let mut wrong = Vec::new();
    for (args, words) in WRONG {
        let dir = TempDir::new();
        let mut command = nephila();
        // The widest that help gets, so that what is looked for stands on one line.
        command.current_dir(dir.path()).args(*args).env("COLUMNS", "110");
        let ended = Running::start(&mut command).wait(PATIENCE);
        let made: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let mut say = |fault: &str| wrong.push(format!("{args:?}: {fault}:\n{}", ended.stderr));
        if ended.status.code() != Some(2) {
            say(&format!("ended with {:?}", ended.status));
        }
        if !made.is_empty() {
            say(&format!("made {made:?}"));
        }
        if !ended.stdout.is_empty() {
            say("wrote to stdout");
        }
        if !ended.stderr.starts_with("nephila: ") || ended.stderr.lines().count() != 1 {
            say("not one line");
        }
        for word in words.iter().filter(|word| !ended.stderr.contains(**word)) {
            say(&format!("no {word:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} faults", wrong.join("\n"), wrong.len());
}

/// The cores that are named as there are those of this process, not of the machine.
#[test]
fn cores_of_the_process() {
    let dir = TempDir::new();
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_nephila"), "crawl", URL, "--cores", "1"]);
    command.current_dir(dir.path());
    let ended = Running::start(&mut command).wait(PATIENCE);
    assert_eq!(ended.code(), 2, "{}", ended.stderr);
    assert_eq!(ended.stderr, "nephila: --cores 1: core 1 is not there: this process may use 0\n");
    assert!(!dir.join("nephila-data").exists());
}

/// A seeds file as editors of any system leave it.
#[test]
fn seeds_as_editors_leave_them() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("x"),
    });
    let dir = TempDir::new();
    let text = format!(
        "\u{feff}{}\r\n{}   # the second\r\n{}\t#third\r\n{}#frag\r\n \u{feff}# none\r\n",
        server.url("/first"),
        server.url("/second"),
        server.url("/third"),
        server.url("/fourth"),
    );
    let seeds = dir.write("the.seeds", text);
    let flags = ["--seeds", seeds.to_str().unwrap(), "--req-host-per-sec", "0"];
    let (report, run) = crawl(&dir.join("data"), flags);
    assert!(!run.stderr.contains("skipped"), "{}", run.stderr);
    assert_eq!(report["known"], 4, "{}", run.stderr);
    let mut targets = server.targets();
    targets.sort();
    assert_eq!(targets, ["/first", "/fourth", "/robots.txt", "/second", "/third"]);
}

/// The same of a list that is imported, whether a crawl runs or not, and of a file of hosts.
#[test]
fn lists_as_editors_leave_them() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let list = dir.write(
        "the.list",
        "\u{feff}http://a.test/first\r\nhttp://a.test/second   # the second\r\nhttp://a.test/third\t#third\r\n\
         http://a.test/fourth#frag\r\n# none\r\nb\t5\t0\t0\thttp://a.test/fifth\t1\tv1\r\n",
    );
    let import = || {
        let mut command = nephila();
        command.args(["index", "import", "--json", "--data"]).arg(&data).arg(&list);
        Running::start(&mut command).wait(PATIENCE).done()
    };
    let run = import();
    let told = run.json();
    assert_eq!((&told["new"], &told["bad"]), (&5.into(), &0.into()), "{told} {}", run.stderr);
    assert_eq!(run.stderr, "");
    let mut command = nephila();
    command.args(["index", "pending", "--data"]).arg(&data);
    let pending = Running::start(&mut command).wait(PATIENCE).done().text();
    let mut pending: Vec<&str> = pending.lines().filter_map(|line| line.split_whitespace().next()).collect();
    pending.sort();
    let paths = ["fifth", "first", "fourth", "second", "third"].map(|path| format!("http://a.test/{path}"));
    assert_eq!(pending, paths);

    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("x"),
    });
    let hosts =
        dir.write("hosts", "\u{feff}127.0.0.1 first.test # the first\r\n127.0.0.1 second.test\t#second\r\n");
    let urls = ["first", "second"].map(|name| format!("http://{name}.test:{}/", server.port()));
    let flags = [&urls[0], &urls[1], "--hosts-file", hosts.to_str().unwrap(), "--req-host-per-sec", "0"];
    let (report, run) = crawl(&dir.join("crawled"), flags);
    assert_eq!(report["success"], 2, "{}", run.stderr);
}
