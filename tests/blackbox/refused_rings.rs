//! The promise: where io_uring is refused, or may not lock the memory it needs, a crawl says so in one line, takes epoll
//! and does the same work.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// As a container engine starts it: io_uring_setup answers with this errno.
fn filtered(errno: i32, command: &Command) -> Command {
    let mut python = Command::new("python3");
    python.arg(Path::new(HERE).join("tests/blackbox/scripts/refuse_io_uring.py")).arg(errno.to_string());
    python.arg(command.get_program()).args(command.get_args());
    python
}

fn small_farm() -> LogServer {
    LogServer::start(|asked| match asked.target.as_str() {
        "/" => Reply::links((0..20).map(|n| format!("/{n}"))),
        target => Reply::text(target),
    })
}

#[track_caller]
fn driver_line(run: &Run) -> &str {
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("driver")).collect();
    assert_eq!(lines.len(), 1, "{}", run.stderr);
    lines[0]
}

fn crawl_of(web: &LogServer, data: PathBuf) -> Command {
    let mut command = crawl_command(&data);
    command.args(["--req-host-per-sec", "0", "--cores", "0", &web.url("/")]);
    command
}

#[test]
fn a_seccomp_filter_means_epoll() {
    let web = small_farm();
    let dir = TempDir::new();
    for (errno, says) in [(nix::libc::EPERM, "seccomp filter"), (nix::libc::ENOSYS, "a filter hides it")] {
        let command = crawl_of(&web, dir.join(&format!("data-{errno}")));
        let run = Running::start(&mut filtered(errno, &command)).wait(PATIENCE).done();
        let report = run.json();
        assert_eq!((&report["driver"], &report["success"]), (&"epoll".into(), &21.into()), "{}", run.stderr);
        let line = driver_line(&run);
        assert!(line.starts_with("driver: epoll (") && line.contains(says), "{line}");

        let mut command = crawl_of(&web, dir.join("not made"));
        command.args(["--driver", "uring"]);
        let run = Running::start(&mut filtered(errno, &command)).wait(PATIENCE);
        assert_eq!(run.code(), 3, "{}", run.stderr);
        let line = driver_line(&run);
        assert!(line.contains(says) && line.ends_with("--driver auto falls back to epoll"), "{line}");
    }
}

/// Kernels differ in what they count as locked; whatever they count, a crawl starts.
#[test]
fn little_locked_memory_stops_no_crawl() {
    let web = small_farm();
    let dir = TempDir::new();
    let mut drivers = Vec::new();
    for kib in [0, 512, 640, 1_024, 1_280, 1_536, 2_048, 4_096] {
        let command = crawl_of(&web, dir.join(&format!("data-{kib}")));
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("ulimit -l {kib}; exec setpriv --bounding-set=-ipc_lock \"$0\" \"$@\"")]);
        shell.arg(command.get_program()).args(command.get_args());
        let run = Running::start(&mut shell).wait(PATIENCE).done();
        let line = driver_line(&run);
        assert!(line.starts_with("driver: uring") || line.contains("ulimit -l"), "{kib} KiB: {line}");
        assert_eq!(run.json()["success"], 21, "{}", run.stderr);
        drivers.push(run.json()["driver"].as_str().unwrap().to_string());
    }
    assert_eq!(drivers.last().unwrap(), "uring", "{drivers:?}");
}
