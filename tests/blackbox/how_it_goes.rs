//! The promise: a crawl tells how it goes within the width of the terminal, why it ended and what to type to go on, and a
//! first user's directories do not mix.

use crate::support::*;
use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use std::io::Read;
use std::process::{Command, Stdio};

/// A page that links to this many others, which link to nothing.
fn star(pages: usize) -> LogServer {
    LogServer::start(move |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links((1..pages).map(|page| format!("/{page}"))),
        _ => Reply::text("leaf"),
    })
}

/// The number before a word of a line, with or without commas in it.
#[track_caller]
fn figure(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|found| *found == word).unwrap_or_else(|| panic!("{word} in {line:?}"));
    words[at - 1].replace(',', "").parse().unwrap_or_else(|_| panic!("a number before {word} in {line:?}"))
}

#[test]
fn pending_is_right_after_a_resume() {
    let (dir, server) = (TempDir::new(), star(40));
    let data = dir.join("data");
    crawl(&data, [&server.url("/"), "--req-host-per-sec", "0", "--max-pages", "20"]);
    let (report, run) = crawl(&data, ["--req-host-per-sec", "1", "--max-seconds", "5"]);
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains(" pending")).collect();
    let line = lines.iter().find(|line| line.contains(" pages")).expect(&run.stderr);
    // Twenty of the forty were fetched before. A page that the index is just being told of is in both figures.
    let both = figure(line, "pages") + figure(line, "pending");
    assert!(both == 20 || both == 21, "{line}");
    assert_eq!(report["pending"], 20 - report["pages"].as_u64().unwrap());
}

/// Runs with stderr on a terminal so wide, and returns what was written there.
fn on_terminal(command: &mut Command, columns: u16) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::from(pty.slave)).spawn().unwrap();
    // The terminal of a command that is dropped here is closed with it, and its reader sees the end.
    command.stderr(Stdio::null());
    let mut terminal = std::fs::File::from(pty.master);
    let mut written = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = terminal.read(&mut buffer) {
        written.extend_from_slice(&buffer[..n]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(written).unwrap()
}

#[test]
fn progress_fits_the_terminal() {
    let server = star(200);
    for columns in [40, 60, 80, 120] {
        let dir = TempDir::new();
        let mut command = crawl_command(&dir.join("data"));
        command.args([&server.url("/"), "--req-host-per-sec", "20", "--max-seconds", "2"]);
        let text = on_terminal(&mut command, columns);
        let frames: Vec<&str> = text.split("\r\x1b[K").skip(1).collect();
        assert!(frames.len() > 3, "{columns}: {text:?}");
        for frame in &frames {
            let line = frame.split(['\r', '\n']).next().unwrap();
            assert!(line.chars().count() < usize::from(columns), "{columns}: {line:?}");
            assert!(line.contains(" page"), "{columns}: {line:?}");
        }
        if columns == 120 {
            assert!(text.contains("1 of 1 host waits for its rate"), "{text:?}");
        }
        // Where the terminal does not say, the environment may.
        let mut command = crawl_command(&dir.join("quiet"));
        command.args([&server.url("/"), "--req-host-per-sec", "20", "--max-seconds", "1", "-q"]);
        assert_eq!(on_terminal(&mut command, columns), "", "-q says nothing");
    }
}

#[test]
fn a_summary_says_why_it_ended_and_how_to_go_on() {
    let (dir, server) = (TempDir::new(), star(20));
    let data = dir.join("data");
    let path = data.to_str().unwrap();
    let text = |args: &[&str]| {
        let mut command = nephila();
        command.args(["crawl", "--allow-net", "127.0.0.0/8", "--data", path]).args(args);
        Running::start(&mut command).wait(PATIENCE).done()
    };
    let seed = server.url("/");
    let first = text(&[&seed, "--req-host-per-sec", "0", "--max-pages", "5"]).text();
    let row = |text: &str, label: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(label));
        row.unwrap_or_else(|| panic!("{label} in {text}")).trim_start()[label.len()..].trim().to_string()
    };
    assert_eq!(row(&first, "ended"), "the limit --max-pages was reached; 15 URLs are left", "{first}");
    assert_eq!(row(&first, "go on"), format!("nephila crawl --data {path}"), "{first}");
    assert_eq!(row(&first, "pages "), "5 (5 with success)", "{first}");
    assert_eq!(row(&first, "this run"), "", "{first}");
    assert_eq!(row(&first, "all of"), path, "{first}");
    assert!(row(&first, "URLs").starts_with("20 known"), "{first}");
    // What it says to type goes on, here with what allows this network.
    let ended = |report: &serde_json::Value| (report["stopped"].clone(), report["ended"].clone());
    let (report, _) = crawl(&data, ["--req-host-per-sec", "1", "--max-seconds", "1"]);
    assert_eq!(ended(&report), (true.into(), "max_seconds".into()), "{report}");
    let (report, _) = crawl(&data, ["--req-host-per-sec", "0", "--max-pages", "3"]);
    assert_eq!(ended(&report), (true.into(), "max_pages".into()), "{report}");
    let running = Running::start(crawl_command(&data).args(["--req-host-per-sec", "1"]));
    wait_for("it has begun", PATIENCE, || running.stderr().contains("driver:").then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.signal(Signal::SIGINT);
    let report = running.wait(PATIENCE).done().json();
    assert_eq!(ended(&report), (true.into(), "signal".into()), "{report}");
    let last = text(&["--req-host-per-sec", "0"]).text();
    assert_eq!(row(&last, "ended"), "nothing is left to fetch", "{last}");
    assert!(row(&last, "URLs").starts_with("20 known, 0 pending"), "{last}");
    assert!(!last.contains(" 0 errors") && !last.contains("restarts"), "{last}");
    let (report, run) = crawl(&data, ["--req-host-per-sec", "0"]);
    assert_eq!(ended(&report), (false.into(), "done".into()), "{report}: {}", run.stderr);
    let nothing = text(&[]).text();
    assert!(!nothing.contains("received") && !nothing.contains("pages/s"), "rows of zeros: {nothing}");
    // As many as there are is the end, and not the limit.
    let (report, _) = crawl(&dir.join("whole"), [&seed, "--req-host-per-sec", "0", "--max-pages", "20"]);
    assert_eq!(ended(&report), (false.into(), "done".into()), "{report}");
}

#[test]
fn what_is_pending_is_said_before_more_is_begun() {
    let (dir, server) = (TempDir::new(), star(20));
    let data = dir.join("data");
    let flags = ["--req-host-per-sec", "0", "--max-pages", "5"];
    let (_, run) = crawl(&data, [&*server.url("/")].into_iter().chain(flags));
    assert!(!run.stderr.contains("already pending"), "{}", run.stderr);
    let (_, run) = crawl(&data, [&*server.url("/other")].into_iter().chain(flags));
    let said = run.stderr.lines().find(|line| line.contains("already pending")).expect(&run.stderr);
    assert!(said.starts_with("15 URLs are already pending") && said.contains("--data"), "{said}");
    let (_, run) = crawl(&data, ["--req-host-per-sec", "0"]);
    assert!(!run.stderr.contains("already pending"), "it was not asked for more: {}", run.stderr);
}

#[test]
fn the_demo_ends_with_commands_that_work() {
    let dir = TempDir::new();
    let mut command = nephila();
    command.args(["demo", "--hosts", "5", "--pages", "4", "--req-host-per-sec", "0"]);
    let text = Running::start(command.current_dir(dir.path())).wait(PATIENCE).done().text();
    assert!(!dir.join("nephila-data").exists() && dir.join("nephila-demo").is_dir(), "{text}");
    assert!(text.contains("./nephila-demo"), "{text}");
    let typed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.contains("nephila ") && line.contains(" --data ./nephila-demo"))
        .collect();
    assert_eq!(typed.len(), 3, "{text}");
    for line in typed {
        let mut shell = Command::new("sh");
        let ended = Running::start(shell.args(["-c", line]).current_dir(dir.path())).wait(PATIENCE).done();
        assert!(!ended.stdout.is_empty() && ended.stderr.is_empty(), "{line}: {ended:?}");
    }
}

#[test]
fn a_demo_of_a_master_ends_with_all_that_it_started() {
    let dir = TempDir::new();
    let demo = || {
        let mut command = nephila();
        command.args(["demo", "--master", "--hosts", "4", "--pages", "8", "--lines", "100"]);
        Running::start(command.args(["--req-host-per-sec", "0.1"]).current_dir(dir.path()))
    };
    let [master, one, two] = ["master", "node1", "node2"].map(|part| dir.join("nephila-demo").join(part));
    let runs = |data: &std::path::Path, words: &[&str]| {
        let status = run(words.iter().copied().chain(["status", "--json", "--data", data.to_str().unwrap()]));
        !status.stdout.is_empty() && status.json()["running"] == true
    };
    let all_run = || runs(&master, &["master"]) && runs(&one, &[]) && runs(&two, &[]);
    let none_runs = || !runs(&master, &["master"]) && !runs(&one, &[]) && !runs(&two, &[]);
    let stopped = demo();
    wait_for("all of it runs", PATIENCE, || all_run().then_some(()));
    stopped.signal(Signal::SIGINT);
    let text = stopped.wait(PATIENCE).done().text();
    assert!(text.contains("stopped: nodes 1 and 2, the master and the farm have ended"), "{text}");
    assert!(none_runs());

    let killed = demo();
    wait_for("all of it runs again", PATIENCE, || all_run().then_some(()));
    killed.signal(Signal::SIGKILL);
    killed.wait(PATIENCE);
    wait_for("nobody outlives it", PATIENCE, || none_runs().then_some(()));
}

#[test]
fn a_demo_begins_anew_and_leaves_crawls_alone() {
    let dir = TempDir::new();
    let demo = |flags: &[&str]| {
        let mut command = nephila();
        command.args(["demo", "--hosts", "5", "--pages", "8"]).args(flags);
        Running::start(command.current_dir(dir.path()))
    };
    let first = demo(&["--req-host-per-sec", "1"]);
    wait_for("the crawl runs", PATIENCE, || dir.join("nephila-demo/admin.sock").exists().then_some(()));
    first.signal(Signal::SIGINT);
    first.wait(PATIENCE).done();
    let text = demo(&["--req-host-per-sec", "0"]).wait(PATIENCE).done().text();
    assert!(
        text.contains("pages        40 (40 with success)") && text.contains("45 known, 0 pending"),
        "{text}"
    );

    let server = star(2);
    crawl(&dir.join("mine"), [&*server.url("/"), "--req-host-per-sec", "0"]);
    let refused = demo(&["--data", "mine"]).wait(PATIENCE);
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("mine holds a crawl, not a demo"), "{}", refused.stderr);
    assert_eq!(stored(&dir.join("mine")).len(), 2);
}

#[test]
fn a_limit_of_one_page_is_told_as_such() {
    let (dir, server) = (TempDir::new(), star(20));
    let (report, _) = crawl(&dir.join("data"), [&*server.url("/"), "--max-pages", "1"]);
    assert_eq!((&report["stopped"], &report["ended"]), (&true.into(), &"max_pages".into()), "{report}");
}

#[test]
fn quiet_and_verbose() {
    let (dir, server) = (TempDir::new(), star(3));
    let said = |flag: &str, name: &str| {
        let (_, run) = crawl(&dir.join(name), [&server.url("/"), "--req-host-per-sec", "0", flag]);
        run.stderr
    };
    assert_eq!(said("-q", "quiet"), "");
    let (normal, verbose) = (said("--head", "normal"), said("-v", "verbose"));
    assert!(verbose.lines().count() > normal.lines().count(), "{verbose}\n{normal}");
    // A failure is told in any case.
    let failed = run(["-q", "crawl", "nonsense"]);
    assert_eq!((failed.code(), failed.stderr.lines().count()), (2, 1), "{}", failed.stderr);
    for command in [&["crawl"][..], &["store", "ls"], &[]] {
        let help = run(command.iter().chain(&["--help"])).done().text();
        assert!(help.contains("-q, --quiet") && help.contains("-v, --verbose"), "{command:?}: {help}");
    }
}

#[test]
fn flags_and_commands_come_in_groups() {
    let help = run(["crawl", "--help"]).done().text();
    let groups = ["What to crawl:", "Politeness:", "Limits:", "Network:", "Machine:", "Storage:", "Output:"];
    for group in groups {
        assert!(help.contains(&format!("\n{group}\n")), "{group} in {help}");
    }
    for default in
        ["[default: host]", "[default: any number]", "[default: no limit]", "[default: ./nephila-data]"]
    {
        assert!(help.contains(default), "{default} in {help}");
    }
    let help = run(["--help"]).done().text();
    let groups = ["Crawl:", "Look:", "Archives:", "Split over processes:", "Lab:"];
    let places: Vec<_> = groups.iter().map(|group| help.find(&format!("\n{group}\n"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
}

/// Below the plain heading stands what every command has, and nothing else.
#[test]
fn every_option_of_crawl_stands_in_a_group() {
    let help = run(["crawl", "--help"]).done().text();
    let plain = help.split_once("\nOptions:\n").expect(&help).1;
    let plain = plain.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let plain: Vec<&str> = plain.map(str::trim).filter(|line| line.starts_with('-')).collect();
    assert_eq!(plain.len(), 1, "{plain:?}");
    assert!(plain[0].starts_with("-h, --help"), "{plain:?}");
    let settings = help.split_once("\nSettings:\n").expect(&help).1;
    assert!(settings.contains("--config <FILE>") && settings.contains("--fresh-settings"), "{help}");
}

/// Hosts wait for different things, and the line says for what most of them do.
#[test]
fn progress_says_what_hosts_wait_for() {
    for (robots, rate, said) in [
        ("User-agent: *\nCrawl-delay: 30\n", "0", "1 of 1 host waits for its Crawl-delay"),
        ("", "0.02", "1 of 1 host waits for its rate"),
    ] {
        let server = LogServer::start(move |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::text(robots),
            "/" => Reply::links((1..9).map(|page| format!("/{page}"))),
            _ => Reply::text("leaf"),
        });
        let dir = TempDir::new();
        let data = dir.join("data");
        let mut command = crawl_command(&data);
        command.args([&server.url("/"), "--req-host-per-sec", rate]);
        let crawl = Running::start(&mut command);
        wait_for(said, PATIENCE, || crawl.stderr().contains(said).then_some(()));
        crawl.signal(Signal::SIGINT);
        crawl.wait(PATIENCE).done();
    }
}
