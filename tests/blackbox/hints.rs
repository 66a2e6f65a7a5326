//! The promise: what a new user is told is true and leads on: in summaries, in answers to commands that found nothing, and
//! after a start that failed.

use crate::support::*;
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

fn site() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/1", "/moved", "/gone"]),
        "/moved" => Reply::status("301 Moved Permanently").with("Location: /2\r\n"),
        "/gone" => Reply::status("404 Not Found"),
        _ => Reply::text("x"),
    })
}

/// A crawl as people run it, with a table at its end.
#[track_caller]
fn shown(data: &Path, args: &[&str]) -> Run {
    Running::start(
        nephila().args(["crawl", "--driver", "epoll", "--cores", "0", "--data"]).arg(data).args(args),
    )
    .wait(PATIENCE)
}

fn say(command: &[&str], data: &Path) -> Run {
    run(command.iter().copied().chain(["--data", data.to_str().unwrap()]))
}

const ALLOW: [&str; 4] = ["--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0"];

/// As `timeout -s INT` does: one to the process, one to its group.
#[test]
fn signals_that_come_together_are_one() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    let start = || {
        let crawl = Running::start(crawl_command(&data).args([
            &*server.url("/"),
            "--req-host-per-sec",
            "0.02",
            "--wait",
            "--again",
        ]));
        wait_for("it runs", PATIENCE, || {
            say(&["status", "--json"], &data).text().contains("pid").then_some(())
        });
        crawl
    };
    let crawl = start();
    crawl.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(5));
    crawl.signal(Signal::SIGINT);
    let run = crawl.wait(PATIENCE).done();
    assert_eq!(run.json()["stopped"], true, "{}", run.stderr);
}

#[test]
fn status_says_that_a_second_signal_ended_it() {
    // A page that never ends, so that a stop takes its time.
    let server = LogServer::start(|asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => {
            std::thread::sleep(Duration::from_secs(20));
            Reply::text("x")
        }
    });
    let dir = TempDir::new();
    let data = dir.join("data");
    let crawl = Running::start(crawl_command(&data).args([&*server.url("/"), "--req-host-per-sec", "0"]));
    wait_for("the page is asked for", PATIENCE, || {
        say(&["status"], &data).text().contains("requests   1 open").then_some(())
    });
    crawl.signal(Signal::SIGINT);
    wait_for("it stops", PATIENCE, || crawl.stderr().contains("stopping").then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    crawl.signal(Signal::SIGINT);
    assert_eq!(crawl.wait(PATIENCE).code(), 3);
    let status = say(&["status"], &data).text();
    assert!(status.contains("stopped at once by a second signal") && !status.contains("killed"), "{status}");
}

#[test]
fn what_is_excluded_by_its_address_is_told_how_to_go_on() {
    let dir = TempDir::new();
    let data = dir.join("data");
    for args in [&["http://127.0.0.1:9/"][..], &[], &["--again"]] {
        let run = shown(&data, args);
        assert_eq!(run.code(), 1, "{args:?}: {}", run.stderr);
        let go_on = format!("go on        nephila crawl --data {} --allow-net NET", data.display());
        assert!(run.text().contains(&go_on), "{args:?}: {}", run.text());
        assert!(run.text().contains("1 known, 0 pending, 1 excluded"), "{}", run.text());
    }
    let status = say(&["status"], &data).text();
    assert!(status.contains("1 known, 0 pending, 0 had, 0 errors, 1 excluded"), "{status}");
}

#[test]
fn a_summary_tells_redirects_from_errors() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    let run = shown(&data, &[&ALLOW[..], &[&server.url("/")]].concat()).done();
    assert!(run.text().contains("pages        5 (3 with success, 1 redirect, 1 error)"), "{}", run.text());
    assert!(run.text().contains("robots.txt   1 fetched\n") && run.text().contains(" kB"), "{}", run.text());
    // A host whose robots.txt cannot be had.
    let broken = LogServer::start(|_| Reply::status("503 Service Unavailable"));
    let run = shown(&dir.join("broken"), &[&ALLOW[..], &[&broken.url("/"), "--linger", "0"]].concat());
    assert!(run.text().contains("robots.txt   0 fetched, 1 failed"), "{}", run.text());
    // Nothing but failures.
    let run = shown(&data, &["--again", "-q"]).done();
    assert_eq!((run.text(), run.stderr), (String::new(), String::new()));
    assert!(shown(&data, &["-q", "--json"]).done().json().is_object());
}

#[test]
fn a_paused_crawl_says_so_of_what_is_queued() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    let seeds = ["/", "/1"].map(|path| server.url(path));
    let crawl = Running::start(crawl_command(&data).args(&seeds).args(["--req-host-per-sec", "0.02"]));
    // After its robots.txt, the host is left alone for 50 s.
    wait_for("it is queued", PATIENCE, || {
        say(&["explain", &server.url("/1")], &data).text().contains("rate").then_some(())
    });
    let explained = || say(&["explain", &server.url("/1")], &data).done().text();
    assert!(!explained().contains("paused"), "{}", explained());
    say(&["pause"], &data).done();
    assert!(explained().contains("the crawl is paused (nephila resume goes on)"), "{}", explained());
    let status = say(&["status"], &data).done().text();
    let hosts = status.lines().find(|line| line.starts_with("hosts")).unwrap();
    assert!(hosts.contains("paused (nephila resume goes on)"), "{status}");
    say(&["resume"], &data).done();
    assert!(!explained().contains("paused"), "{}", explained());
    crawl.signal(Signal::SIGINT);
    crawl.wait(PATIENCE).done();
}

#[test]
fn what_fresh_settings_forget_is_said_and_a_failed_start_forgets_nothing() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    shown(&data, &[&ALLOW[..], &[&server.url("/"), "--depth", "7"]].concat()).done();
    let kept = || std::fs::read_to_string(data.join("settings.toml")).unwrap();
    let before = kept();
    // Nobody answers for names there.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let run = shown(&data, &["--fresh-settings", "--depth", "3", "--dns", &nobody, "http://nowhere.test/"]);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("settings of the last run are forgotten (--fresh-settings):\n"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("\n  crawl.depth was 7, and is 3\n"), "{}", run.stderr);
    assert_eq!(kept(), before, "{}", run.stderr);
    let missing = shown(&data, &["--fresh-settings", "--hosts-file", "/nowhere/hosts"]);
    assert_eq!((missing.code(), kept()), (2, before.clone()), "{}", missing.stderr);
    let run = shown(
        &data,
        &[&ALLOW[..], &["--fresh-settings", "--hosts-file", "/dev/null", &server.url("/")]].concat(),
    );
    assert!(run.stderr.contains("\n  crawl.depth was 7, and is unset\n"), "{}", run.stderr);
    assert!(!kept().contains("depth"), "{}", kept());
}

#[test]
fn commands_that_found_or_made_something_unexpected_say_so() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    let made = dir.join("nodir");
    let run = say(&["add", "http://example.org/"], &made).done();
    assert!(run.stderr.contains("nodir was not there, and was made"), "{}", run.stderr);
    // In one voice with all other messages.
    let one_voice = |run: &Run| run.stderr.starts_with("nephila: ") && run.stderr.lines().count() == 1;
    assert!(one_voice(&run), "{}", run.stderr);
    let run = say(&["feeds", "add", "http://example.org/rss"], &dir.join("nofeeds")).done();
    assert!(one_voice(&run), "{}", run.stderr);
    let run = say(&["index", "pending", "--host", "nosuch"], &made).done();
    assert!(one_voice(&run), "{}", run.stderr);
    assert_eq!(say(&["add", "http://example.org/"], &made).done().stderr, "");
    shown(&data, &[&ALLOW[..], &[&server.url("/")]].concat()).done();
    for (args, said) in [
        (&["--host", "nosuch"][..], "no record matches\n"),
        (&["--prefix", "127.0.0.1"], "--prefix 127.0.0.1 has no scheme"),
        (&["--result", "robots_denied"], "nephila index pending"),
    ] {
        let run = say(&[&["store", "ls"][..], args].concat(), &data).done();
        assert!(run.stderr.contains(said) && run.stdout.is_empty(), "{args:?}: {}", run.stderr);
        assert!(one_voice(&run), "{args:?}: {}", run.stderr);
    }
    assert_eq!(say(&["store", "ls", "--result", "ok"], &data).done().stderr, "");
    let run = say(&["store", "ls", "--result", "foo"], &data);
    assert!(run.code() == 2 && !run.stderr.contains("did you mean"), "{}", run.stderr);
}

#[test]
fn no_tip_leads_astray() {
    let run = run(["crawl", "http://127.0.0.1:9/", "--rate", "3"]);
    assert!(run.code() == 2 && !run.stderr.contains("-- --rate"), "{}", run.stderr);
}

#[test]
fn a_directory_in_use_is_told_in_one_line() {
    let (server, dir) = (site(), TempDir::new());
    let data = dir.join("data");
    let flags = ["--depth", "3", "--req-host-per-sec", "0.02"];
    let crawl = Running::start(crawl_command(&data).args([&*server.url("/")]).args(flags));
    wait_for("it runs", PATIENCE, || {
        say(&["status", "--json"], &data).text().contains("\"pages\":").then_some(())
    });
    for args in [&[][..], &["http://127.0.0.1:9/"], &["--fresh-settings"]] {
        let run = shown(&data, args);
        assert_eq!((run.code(), run.stderr.lines().count()), (3, 1), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains("in use by pid"), "{}", run.stderr);
    }
    crawl.signal(Signal::SIGINT);
    crawl.wait(PATIENCE).done();
}

#[test]
fn help_keeps_to_the_width_of_the_terminal() {
    for width in [60, 80, 110] {
        let help =
            Running::start(nephila().arg("--help").env("COLUMNS", width.to_string())).wait(PATIENCE).done();
        for line in help.text().lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
    }
    let help = run(["audit", "--help"]).done().text();
    assert!(help.lines().all(|line| line.trim() != "that each run wrote into its log; a"), "{help}");
}
