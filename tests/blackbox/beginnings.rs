//! The promise: a data directory has one writer, whatever becomes of its files, and a signal ends a process in good order
//! from its first moment on.

use crate::support::*;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A crawl that asks for robots.txt and then waits for its host.
fn waiting_crawl(server: &LogServer, data: &Path) -> Running {
    let mut command = crawl_command(data);
    let crawl = Running::start(command.arg(server.url("/")).args(["--req-host-per-sec", "0.01"]));
    wait_for("a crawl", PATIENCE, || data.join("admin.sock").exists().then_some(()));
    crawl
}

#[test]
fn a_directory_whose_lock_was_removed_still_has_one_writer() {
    let server = LogServer::start(|_| Reply::links(["/1", "/2"]));
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut first = waiting_crawl(&server, &data);
    std::fs::remove_file(data.join("lock")).unwrap();
    let urls = dir.write("urls", "http://127.0.0.1:1/\n");
    let config = dir.write("c.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let with = |args: &[&str]| {
        let mut command = nephila();
        command.args(args).arg("--data").arg(&data);
        command
    };
    let mut url_server = with(&["urlserver", "--allow-net", "127.0.0.0/8"]);
    url_server.arg("--urls").arg(&urls).arg("--config").arg(&config);
    let mut others = [
        with(&["crawl", "http://127.0.0.1:1/", "--allow-net", "127.0.0.0/8"]),
        url_server,
        with(&["spider", "--listen", "127.0.0.1:0"]),
        with(&["storeserver", "--listen", "127.0.0.1:0"]),
        with(&["store", "repack"]),
    ];
    for other in &mut others {
        let run = Running::start(other).wait(PATIENCE);
        assert_eq!(run.code(), 3, "{other:?}: {}", run.stderr);
        let said = format!("in use by pid {}", first.pid());
        assert!(run.stderr.contains(&said), "{other:?}: {}", run.stderr);
        assert!(!first.has_ended(), "{other:?} ended it: {}", first.stderr());
    }
    first.signal(Signal::SIGTERM);
    assert_eq!(first.wait(PATIENCE).done().json()["stopped"], true);
}

/// A pipe in place of a file: whoever reads it waits until it is written and closed.
struct Pipe(PathBuf);

impl Pipe {
    fn new(dir: &TempDir, name: &str) -> Pipe {
        let path = dir.join(name);
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        Pipe(path)
    }

    /// Waits until somebody reads.
    fn open(&self) -> File {
        OpenOptions::new().write(true).open(&self.0).unwrap()
    }
}

/// A signal that comes while seeds, names and settings are still being read is heard.
#[test]
fn a_signal_in_the_first_moments_gives_a_summary() {
    let server = LogServer::start(|_| Reply::links(["/1", "/2", "/3"]));
    for (read, signal) in
        [("--seeds", Signal::SIGTERM), ("--hosts-file", Signal::SIGINT), ("--ca-file", Signal::SIGTERM)]
    {
        let dir = TempDir::new();
        let (data, pipe) = (dir.join("data"), Pipe::new(&dir, "pipe"));
        let mut command = crawl_command(&data);
        command.args([&*server.url("/"), "--req-host-per-sec", "0.1", read]).arg(&pipe.0);
        let mut crawl = Running::start(&mut command);
        let mut file = pipe.open();
        crawl.signal(signal);
        std::thread::sleep(Duration::from_millis(200));
        assert!(!crawl.has_ended(), "{read}, {signal}: {}", crawl.stderr());
        match read {
            "--seeds" => writeln!(file, "{}", server.url("/seed")).unwrap(),
            "--ca-file" => file.write_all(&certificate(&dir)).unwrap(),
            _ => writeln!(file, "127.0.0.1 localhost").unwrap(),
        }
        drop(file);
        let run = crawl.wait(PATIENCE).done();
        let report = run.json();
        check_report(&report);
        assert_eq!(report["stopped"], true, "{read}: {report}");
        // What was given is there for the next process.
        assert_eq!(report["pending"].as_u64().unwrap() > 0, report["pages"] == 0, "{report}");
    }
}

fn certificate(dir: &TempDir) -> Vec<u8> {
    let (key, cert) = (dir.join("key.pem"), dir.join("cert.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=x", "-days", "9"]);
    let made = openssl.arg("-keyout").arg(key).arg("-out").arg(&cert).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::read(cert).unwrap()
}

#[test]
fn a_second_signal_in_the_first_moments_ends_it_at_once() {
    let dir = TempDir::new();
    let (data, pipe) = (dir.join("data"), Pipe::new(&dir, "pipe"));
    let crawl = Running::start(crawl_command(&data).arg("--seeds").arg(&pipe.0));
    let _file = pipe.open();
    crawl.signal(Signal::SIGTERM);
    wait_for("it says that it stops", PATIENCE, || crawl.stderr().contains("stopping").then_some(()));
    // Signals that come together are one.
    std::thread::sleep(Duration::from_millis(300));
    crawl.signal(Signal::SIGTERM);
    let run = crawl.wait(PATIENCE);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    assert!(run.stderr.contains("stopped at once") && run.stdout.is_empty(), "{}", run.stderr);
}

/// A terminal that goes away is a reason to stop in good order, unless the process was told not to care. A process that
/// has none and settings reads those again.
#[test]
fn a_terminal_that_goes_away_ends_a_process_that_has_one() {
    let server = LogServer::start(|_| Reply::links(["/1", "/2"]));
    let dir = TempDir::new();
    let data = dir.join("crawl");
    let words = format!(
        "{} crawl {} --allow-net 127.0.0.0/8 --req-host-per-sec 0.1 --data {}",
        env!("CARGO_BIN_EXE_nephila"),
        server.url("/"),
        data.display()
    );
    let mut command = Command::new("script");
    command.args(["-qc", &words, "/dev/null"]).stdin(std::process::Stdio::null());
    let terminal = Running::start(&mut command);
    wait_for("a crawl", PATIENCE, || data.join("admin.sock").exists().then_some(()));
    terminal.signal(Signal::SIGKILL);
    let note = wait_for("it has stopped", PATIENCE, || {
        let note = std::fs::read_to_string(data.join("run.json")).unwrap();
        note.contains("\"ended\":\"").then_some(note)
    });
    assert!(note.contains("\"ended\":\"stopped\""), "{note}");
    drop(terminal);

    let urls = dir.write("urls", "http://127.0.0.1:1/\n");
    let config = dir.write("c.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let mut url_server = without_terminal();
    url_server
        .args(["urlserver", "--json", "--wait", "--allow-net", "127.0.0.0/8", "--data"])
        .arg(dir.join("urls.d"));
    url_server.arg("--urls").arg(&urls).arg("--config").arg(&config);
    let mut spider = without_terminal();
    spider.args(["spider", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(dir.join("spider"));
    let mut store = without_terminal();
    store.args(["storeserver", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(dir.join("store"));
    for (mut command, field) in [(url_server, "known"), (spider, "pages"), (store, "records")] {
        let process = Running::start(&mut command);
        wait_for("it listens", PATIENCE, || process.stderr().contains("listening on").then_some(()));
        process.signal(Signal::SIGHUP);
        let read = || process.stderr().contains("settings were read again").then_some(());
        wait_for("it has read its settings", PATIENCE, read);
        process.signal(Signal::SIGTERM);
        let run = process.wait(PATIENCE).done();
        assert!(run.json()[field].is_u64(), "{command:?}: {}", run.text());
    }
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
        let hosts = dir.join("hosts");
        let farm = Running::start(nephila().args(["farm", "--hosts", "2"]).arg("--hosts-file").arg(&hosts));
        wait_for("a farm", PATIENCE, || hosts.exists().then_some(()));
        farm.signal(signal);
        let run = farm.wait(PATIENCE).done();
        assert!(run.stderr.contains("0 requests"), "{signal}: {}", run.stderr);
        std::fs::remove_file(hosts).unwrap();
    }
}

/// However the tests themselves are run.
fn without_terminal() -> Command {
    let mut command = Command::new("setsid");
    command.arg(env!("CARGO_BIN_EXE_nephila"));
    command
}

#[test]
fn under_nohup_a_terminal_that_goes_away_changes_nothing() {
    let server = LogServer::start(|_| Reply::links(["/1", "/2"]));
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_nephila")).args(["crawl", "--json", "--allow-net", "127.0.0.0/8"]);
    command.args([&*server.url("/"), "--req-host-per-sec", "0.01", "--data"]).arg(&data);
    command.stdin(std::process::Stdio::null());
    let mut crawl = Running::start(&mut command);
    wait_for("a crawl", PATIENCE, || data.join("admin.sock").exists().then_some(()));
    crawl.signal(Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!crawl.has_ended() && !crawl.stderr().contains("stopping"), "{}", crawl.stderr());
    crawl.signal(Signal::SIGTERM);
    assert_eq!(crawl.wait(PATIENCE).done().json()["stopped"], true);
}
