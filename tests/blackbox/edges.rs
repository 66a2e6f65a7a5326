//! The promise: whatever is wrong with what was typed or with the machine, the exit status says which of the two,
//! and one line on stderr names it. Addresses that were not allowed are never connected to.

use crate::name_server::*;
use crate::support::*;
use nix::sys::signal::Signal;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

/// Runs, and expects this status and exactly one line of complaint that holds all these words.
#[track_caller]
fn refused(args: &[&str], code: i32, words: &[&str]) {
    complains(run(args), code, words);
}

#[track_caller]
fn complains(run: Run, code: i32, words: &[&str]) {
    assert_eq!(run.code(), code, "stderr:\n{}", run.stderr);
    assert_eq!(run.text(), "", "nothing on stdout");
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("nephila: ")).collect();
    assert_eq!(lines.len(), 1, "one line that names the cause:\n{}", run.stderr);
    assert_eq!(run.stderr.lines().last(), Some(lines[0]), "and it is the last:\n{}", run.stderr);
    for word in words {
        assert!(lines[0].contains(word), "{word:?} in {:?}", lines[0]);
    }
}

/// What the argument parser refuses: status 2, the culprit is named, no backtrace.
#[track_caller]
fn mistyped(args: &[&str], word: &str) {
    let run = run(args);
    assert_eq!(run.code(), 2, "stderr:\n{}", run.stderr);
    assert_eq!(run.text(), "");
    assert!(run.stderr.contains(word), "{word:?} in {}", run.stderr);
}

fn data(dir: &TempDir) -> String {
    dir.join("data").to_str().unwrap().to_string()
}

#[test]
fn nothing_to_crawl() {
    let dir = TempDir::new();
    refused(&["crawl", "--data", &data(&dir)], 2, &["--seeds"]);
    assert!(!dir.join("data").exists(), "nothing is made for a crawl that cannot be");
}

#[test]
fn urls_that_are_none() {
    let dir = TempDir::new();
    for url in
        ["nonsense", "http://", "ftp://127.0.0.1/", "http://[::1/", "http://a b/", "file:///etc/passwd", ""]
    {
        refused(&["crawl", url, "--data", &data(&dir)], 2, &[url]);
    }
    let secret = run(["crawl", "http://user:secret@127.0.0.1/", "--data", &data(&dir)]);
    assert_eq!(secret.code(), 2, "{}", secret.stderr);
    assert!(secret.stderr.contains("…@127.0.0.1/") && !secret.stderr.contains("secret"), "{}", secret.stderr);
    // One bad URL among good ones is a mistake all the same.
    refused(&["crawl", "http://127.0.0.1:9/", "nonsense", "--data", &data(&dir)], 2, &["nonsense"]);
    let run = run(["crawl", "\u{1b}[31mx", "--data", &data(&dir)]);
    assert_eq!(run.code(), 2);
    assert!(!run.stderr.contains('\u{1b}'), "{:?}", run.stderr);
}

#[test]
fn flags_that_are_none() {
    mistyped(&["crawl", "--bogus", "http://127.0.0.1/"], "--bogus");
    mistyped(&["crawl", "--depth", "deep", "http://127.0.0.1/"], "--depth");
    mistyped(&["crawl", "--depth", "-1", "http://127.0.0.1/"], "-1");
    mistyped(&["crawl", "--scope", "world", "http://127.0.0.1/"], "--scope");
    mistyped(&["crawl", "--driver", "kqueue", "http://127.0.0.1/"], "--driver");
    mistyped(&["crawl", "--allow-net", "127.0.0.0/99", "http://127.0.0.1/"], "--allow-net");
    mistyped(&["crawl", "--req-host-concurrent", "256", "http://127.0.0.1/"], "--req-host-concurrent");
    mistyped(&["nonsense"], "nonsense");
    mistyped(&["store", "cat"], "URL");
}

#[test]
fn values_out_of_range() {
    let dir = TempDir::new();
    let data = data(&dir);
    let refused = |flag: &str, value: &str, words: &[&str]| {
        refused(&["crawl", "http://127.0.0.1:9/", "--data", &data, flag, value], 2, words);
    };
    for cores in ["x", "", "3-1", "0,,1", "0-", "-1", "9999", "0-99999999999999999999"] {
        let flag = format!("--cores={cores}");
        let run = run(["crawl", "http://127.0.0.1:9/", "--data", &data, &flag]);
        complains(run, 2, &["--cores"]);
    }
    refused("--req-host-per-sec", "nan", &["req_host_per_sec"]);
    refused("--req-host-per-sec", "inf", &["req_host_per_sec"]);
    refused("--req-host-concurrent", "0", &["req_host_concurrent"]);
    refused("--max-doc-size", "0", &["max_doc_size"]);
    refused("--max-doc-size", "4000000000", &["max_doc_size"]);
    refused("--timeout-req", "0", &["timeout_req"]);
    refused("--timeout-update", "50000", &["timeout_update"]);
    refused("--fetches-max", "0", &["fetches_max"]);
    refused("--user-agent", "", &["user_agent"]);
    refused("--contact", "nowhere", &["--contact", "mail address"]);
    refused("--contact", "a@b (c)", &["--contact", "parentheses"]);
    refused("--user-agent", "a\r\nX-Evil: 1", &["user_agent"]);
    refused("--hosts-file", "/nonexistent/hosts", &["/nonexistent/hosts", "--hosts-file"]);
    assert!(!dir.join("data").exists(), "nothing is made for a crawl that cannot be");
}

/// Numbers whose product does not fit, from a flag and from a file.
#[test]
fn values_that_overflow() {
    let dir = TempDir::new();
    let data = data(&dir);
    let crawl = ["crawl", "http://127.0.0.1:9/", "--data", &data];
    let huge = ["--timeout-update", "18446744073709551615"];
    complains(run(crawl.into_iter().chain(huge)), 2, &["timeout_update"]);
    for setting in ["[url_server]\ntimeout_spider_status", "[spider]\ntimeout_req", "[store]\ncommit_ms"] {
        let config = dir.write("c.toml", format!("{setting} = 9223372036854775807\n"));
        let run = run(crawl.into_iter().chain(["--config", config.to_str().unwrap(), "--max-seconds", "1"]));
        assert!([0, 2].contains(&run.code()), "{setting}: {run:?}");
    }
}

/// A core that the machine does not have, though it could.
#[test]
fn a_core_that_is_not_there() {
    let dir = TempDir::new();
    let run = run(["crawl", "http://127.0.0.1:9/", "--data", &data(&dir), "--cores", "1000"]);
    complains(run, 2, &["1000", "--cores", "this process may use"]);
    assert!(!dir.join("data").exists(), "nothing is made for a crawl that cannot be");
}

#[test]
fn settings_files() {
    let dir = TempDir::new();
    let data = data(&dir);
    let refused = |text: &str, words: &[&str]| {
        let path = dir.write("c.toml", text);
        let args = ["crawl", "http://127.0.0.1:9/", "--data", &data, "--config", path.to_str().unwrap()];
        self::refused(&args, 2, &[&["c.toml"], words].concat());
    };
    refused("[url_server]\nreq_host_per_second = 1\n", &["req_host_per_second", "req_host_per_sec?"]);
    refused("[spider]\nmax_doc_sise = 1\n", &["max_doc_size"]);
    refused("[spidr]\n", &["spidr", "spider?"]);
    refused("queue_len = 1\n", &["queue_len"]);
    refused("[spider]\nmax_doc_size = \"big\"\n", &["max_doc_size", "number"]);
    refused("[spider]\nmax_doc_size = -1\n", &["max_doc_size"]);
    refused("[store]\ndata = 3\n", &["store.data"]);
    refused("[url_server]\nreq_host_concurrent = 256\n", &["req_host_concurrent"]);
    refused("[url_server\n", &[]);
    refused("[spider]\nmax_doc_size = 1\nmax_doc_size = 2\n", &["duplicate key"]);
    let args = ["crawl", "http://127.0.0.1:9/", "--data", &data, "--config", "/nonexistent/c.toml"];
    self::refused(&args, 2, &["/nonexistent/c.toml", "--config"]);
}

/// A flag wins over the file, the file over the default.
#[test]
fn flags_win_over_the_file() {
    let dir = TempDir::new();
    let server = LogServer::start(|_| Reply::text("0123456789"));
    let data_in_file = dir.join("from-file");
    let text = format!(
        "[store]\ndata = {:?}\n[spider]\nmax_doc_size = 7\nuser_agent = \"FileBot/1\"\n[url_server]\nreq_host_per_sec = 0\n",
        data_in_file.to_str().unwrap()
    );
    let config = dir.write("c.toml", text);
    let url = server.url("/");
    let base = ["crawl", "--json", "--allow-net", "127.0.0.0/8", &url, "--config", config.to_str().unwrap()];
    run(base).done();
    assert_eq!(stored(&data_in_file)[&url].bytes, 7);
    assert!(server.asked().iter().all(|asked| asked.user_agent == "FileBot/1"));
    let data = data(&dir);
    run(base.into_iter().chain(["--data", &data, "--max-doc-size", "8", "--user-agent", "FlagBot/1"])).done();
    assert_eq!(stored(&dir.join("data"))[&url].bytes, 8);
    assert_eq!(server.asked().last().unwrap().user_agent, "FlagBot/1");
    run(base.into_iter().chain(["--again", "--contact", "https://example.org/bot"])).done();
    assert_eq!(server.asked().last().unwrap().user_agent, "FileBot/1 (+https://example.org/bot)");
}

#[test]
fn seeds_files_that_do_not_help() {
    let dir = TempDir::new();
    let data = data(&dir);
    refused(&["crawl", "--data", &data, "--seeds", "/nonexistent/s"], 2, &["/nonexistent/s", "--seeds"]);
    let directory = dir.path().to_str().unwrap();
    refused(&["crawl", "--data", &data, "--seeds", directory], 2, &[directory]);
    for (text, bad_lines) in [("", 0), ("# none\n\n", 0), ("bad\nftps://127.0.0.1/\n", 2)] {
        let seeds = dir.write("seeds", text);
        let run = run(["crawl", "--data", &data, "--seeds", seeds.to_str().unwrap()]);
        assert_eq!(run.code(), 2);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), bad_lines + 1, "{}", run.stderr);
        assert!(lines[bad_lines].contains("nothing to crawl"), "{}", run.stderr);
    }
}

#[test]
fn a_data_directory_that_cannot_be() {
    let dir = TempDir::new();
    let file = dir.write("file", "");
    for path in [file.join("below"), file] {
        let path = path.to_str().unwrap();
        refused(&["crawl", "http://127.0.0.1:9/", "--data", path], 3, &[path, "--data"]);
    }
}

#[test]
fn a_data_directory_in_use() {
    let server = LogServer::start(|_| Reply::text("").after_ms(20_000));
    let dir = TempDir::new();
    let mut first = Running::start(crawl_command(&dir.join("data")).arg(server.url("/")));
    wait_for("the first crawl has begun", PATIENCE, || (server.asked().len() == 1).then_some(()));
    let path = data(&dir);
    refused(&["crawl", "http://127.0.0.1:9/", "--data", &path], 3, &[&path, "in use", "--data"]);
    assert!(!first.has_ended(), "the first goes on");
    // Looking is allowed meanwhile.
    assert!(records(&dir.join("data")).is_empty());
    first.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    first.signal(Signal::SIGINT);
    assert_eq!(first.wait(PATIENCE).code(), 3);
}

#[test]
fn a_farm_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for threads in ["1", "2"] {
        refused(&["farm", "--hosts", "1", "--port", &port, "--threads", threads], 3, &[&port]);
    }
    refused(&["farm", "--hosts", "0"], 2, &["hosts"]);
    refused(&["farm", "--errors", "0.7", "--broken", "0.7"], 2, &["1.4"]);
}

/// With next to no descriptors a crawl says so, or does what it can; it neither hangs nor panics.
#[test]
fn too_few_descriptors() {
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::links(["/a", "/b"]),
        _ => Reply::text(""),
    });
    for driver in DRIVERS {
        for limit in [8, 12, 20, 40, 79] {
            let dir = TempDir::new();
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
            command.args([env!("CARGO_BIN_EXE_nephila"), "crawl", "--json", "--allow-net", "127.0.0.0/8"]);
            command.args(["--cores", "0", "--req-host-per-sec", "0", "--driver", driver]);
            command.args([&server.url("/"), "--data", &data(&dir)]);
            let run = Running::start(&mut command).wait(PATIENCE);
            match run.code() {
                0 => assert_eq!(run.json()["success"], 3, "{driver}, {limit} files: {run:?}"),
                _ => complains(run, 3, &[]),
            }
        }
    }
    let dir = TempDir::new();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 20; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nephila"), "crawl"]);
    command.args(["--driver", "epoll", &server.url("/"), "--data", &data(&dir)]);
    complains(Running::start(&mut command).wait(PATIENCE), 3, &["descriptors", "ulimit -n"]);
}

/// Loopback in every spelling, without --allow-net: not one connection, nothing stored, and the results say why.
#[test]
fn loopback_is_refused_unless_allowed() {
    let server = LogServer::start(|_| Reply::text("must not be read"));
    let port = server.port();
    let dir = TempDir::new();
    let hosts = dir.write("hosts", "127.0.0.1 rebound.test\n::ffff:127.0.0.1 mapped.test\n");
    for driver in DRIVERS {
        let data = dir.join(driver);
        let urls = [
            format!("http://127.0.0.1:{port}/"),
            format!("http://127.1:{port}/short"),
            format!("http://0x7f000001:{port}/hex"),
            format!("http://0177.0.0.1:{port}/octal"),
            format!("http://[::ffff:127.0.0.1]:{port}/mapped"),
            format!("http://[::1]:{port}/six"),
            format!("http://0.0.0.0:{port}/zero"),
            format!("http://rebound.test:{port}/name"),
            format!("http://mapped.test:{port}/name"),
            format!("http://localhost:{port}/local"),
        ];
        let mut command = nephila();
        command.args(["crawl", "--json", "--req-host-per-sec", "0", "--driver", driver]);
        command.arg("--hosts-file").arg(&hosts).arg("--data").arg(&data).args(&urls);
        let run = Running::start(&mut command).wait(PATIENCE).ended();
        let report = run.json();
        check_report(&report);
        assert_eq!(result_count(&report, "blocked_address"), urls.len() as u64, "{report}");
        assert_eq!(report["pages"], 0);
        assert_eq!(report["pending"], 0);
        assert!(records(&data).is_empty());
        assert_eq!(server.connections(), 0, "not one connection");
    }
}

/// What is allowed does not allow more: not by a redirect, not by a link, not on a forbidden port.
#[test]
fn an_allowed_address_does_not_lead_to_others() {
    let inner = LogServer::start_on([127, 0, 0, 2], |_| Reply::text("must not be read"));
    let inner_url = inner.url("/");
    let link = inner.url("/link");
    let server = LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links([&*link, "/to", "/file", "http://127.0.0.1:22/", "http://127.0.0.1:6667/"]),
        "/to" => Reply::redirect(&inner_url),
        _ => Reply::redirect("file:///etc/passwd"),
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut command = nephila();
    command.args(["crawl", "--json", "--req-host-per-sec", "0", "--scope", "any"]);
    command.args(["--allow-net", "127.0.0.1/32", &server.url("/"), "--data"]).arg(&data);
    let report = Running::start(&mut command).wait(PATIENCE).done().json();
    assert_eq!(inner.connections(), 0);
    assert_eq!(result_count(&report, "blocked_address"), 4, "{report}");
    let stored = stored(&data);
    assert_eq!(stored.len(), 3, "{stored:?}");
    assert_eq!(stored[&server.url("/to")].new_url, Some(inner.url("/")));
    assert_eq!(stored[&server.url("/file")].new_url, None, "only http and https are targets");
}

/// Hosts that do not answer the way a host should.
#[test]
fn connection_failures_are_results() {
    let dir = TempDir::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // Accepts in the kernel's backlog, and never says a word.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    for driver in DRIVERS {
        let urls = [format!("http://{free}/"), format!("http://{}/", mute.local_addr().unwrap())];
        let data = dir.join(driver);
        let flags = ["--timeout-req", "1500", "--driver", driver];
        let (report, _) = crawl(&data, urls.iter().map(String::as_str).chain(flags));
        // No robots.txt could be had, so everything is denied and nothing of it is stored.
        assert_eq!(result_count(&report, "robots_denied"), 2, "{report}");
        assert!(records(&data).is_empty());
        assert!(report["seconds"].as_f64().unwrap() < 10.0, "{report}");
    }
    let url = "http://no-such-name.invalid/";
    let names = ScriptedServer::start(|asked| at_once(asked.code(3)));
    let (report, _) = crawl(&dir.join("names"), [url, "--dns", &names.flag()]);
    assert_eq!(result_count(&report, "dns_failed"), 1, "{report}");
}

/// A page that never ends is cut by timeout_req; what came is kept.
#[test]
fn a_page_that_takes_too_long() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let server = LogServer::start(|asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/half" => Reply {
                bytes: b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec(),
                ..Reply::text("")
            },
            _ => Reply::text("late").after_ms(30_000),
        });
        let urls = [server.url("/half"), server.url("/late")];
        let flags = ["--timeout-req", "1000", "--req-host-per-sec", "0", "--driver", driver];
        let data = dir.join("data");
        let (report, _) = crawl(&data, urls.iter().map(String::as_str).chain(flags));
        let stored = stored(&data);
        for url in &urls {
            let listed = &stored[url];
            assert!(["total_timeout", "read_timeout"].contains(&&*listed.result), "{listed:?}");
            assert!(!listed.success && (1_000..3_000).contains(&listed.ms), "{listed:?}");
        }
        assert_eq!((stored[&urls[0]].bytes, stored[&urls[1]].http_status), (4, None));
        assert_eq!(report["errors"], 2);
    }
}

/// A summary that nobody reads, or that finds no room, is no reason to panic; the second is a failure.
#[test]
fn a_summary_that_cannot_be_written() {
    let server = LogServer::start(|_| Reply::text(""));
    for format in [&["--json"][..], &[]] {
        let dir = TempDir::new();
        let crawl = |stdout: Stdio, name: &str| {
            let mut command = nephila();
            command.args(["crawl", "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0", "--data"]);
            command.arg(dir.join(name)).arg(server.url("/")).args(format);
            let child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!stderr.contains("panicked"), "{format:?} to {name}: {stderr}");
            assert_eq!(records(&dir.join(name)).len(), 1);
            output.status.code()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        crawl(writer.into(), "closed");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(crawl(full.into(), "full"), Some(3));
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = run(["--help"]).done().text();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Crawl:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        // What is indented deeper goes on with a description.
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next())
        .filter(|name| *name != "help")
        .collect();
    for wanted in ["demo", "crawl", "store", "audit", "robots", "parse", "farm", "bench", "sim"] {
        assert!(commands.contains(&wanted), "{wanted} in {commands:?}");
    }
    let below = ["ls", "cat", "stat", "codes"].map(|name| vec!["store", name]);
    for command in commands.iter().map(|name| vec![*name]).chain(below) {
        let run = run(command.iter().copied().chain(["--help"])).done();
        assert!(run.text().contains("Example"), "{command:?}:\n{}", run.text());
        assert_eq!(run.stderr, "");
    }
    let bare = run(Vec::<&str>::new());
    assert_eq!(bare.code(), 2);
    assert!(run(["--version"]).done().text().starts_with("nephila "));
}
