//! The promise: telling never fails a process. Lines that cannot be written to stderr, because the disk is full or nobody
//! reads them, are counted, and the work goes on; they are told of when that can be done. What was asked for on stdout and
//! cannot be written there is a failure that has its status.

use crate::link::Link;
use crate::storeserver::{self, Sent};
use crate::support::*;
use crate::urlserver;
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

/// Ends of a stderr that take nothing: a full disk, and a pipe whose reader went away.
fn dead_ends() -> [(&'static str, Stdio); 2] {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    [("full", full.into()), ("gone", writer.into())]
}

/// Starts a command with this stderr, which the shell gets as its stdin.
fn start(command: &Command, stderr: Stdio) -> Running {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2>&0 </dev/null"]);
    shell.arg(command.get_program()).args(command.get_args()).stdin(stderr);
    Running::start(&mut shell)
}

/// An address that is free, since nobody can say which one was taken.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[track_caller]
fn dial(addr: SocketAddr, running: &mut Running) -> TcpStream {
    wait_for("it listens", PATIENCE, || {
        assert!(!running.has_ended(), "it lives on");
        TcpStream::connect(addr).ok()
    })
}

/// Waits until the peer has closed.
#[track_caller]
fn closed(mut stream: TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest);
    assert!(end.is_ok() || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
}

#[track_caller]
fn stop(running: Running) -> serde_json::Value {
    running.signal(Signal::SIGTERM);
    let report = running.wait(PATIENCE).done().json();
    assert!(report["lines_lost"].as_u64().is_some_and(|lost| lost >= 2), "{report}");
    report
}

#[test]
fn a_store_server_outlives_its_stderr() {
    for (end, stderr) in dead_ends() {
        let (dir, addr) = (TempDir::new(), free_address());
        let mut command = storeserver::command(&dir.join("data"));
        command.args(["--listen", &addr.to_string()]);
        let mut server = start(&command, stderr);
        let mut bad = Sent::page(1, "http://bad.test/", "bad");
        bad.success = 2;
        let mut client = dial(addr, &mut server);
        client.write_all(&bad.bytes()).unwrap();
        closed(client);
        let mut client = dial(addr, &mut server);
        client.write_all(&Sent::page(2, "http://good.test/", "good").bytes()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut count = [0; 8];
        client.read_exact(&mut count).unwrap();
        assert_eq!(u64::from_be_bytes(count), 1, "{end}");
        drop(client);
        let report = stop(server);
        assert_eq!(
            (&report["records"], &report["bad_connections"]),
            (&1.into(), &1.into()),
            "{end}: {report}"
        );
    }
}

#[test]
fn a_spider_outlives_its_stderr() {
    let web = LogServer::start(|_| Reply::text("x"));
    for (end, stderr) in dead_ends() {
        let (dir, addr) = (TempDir::new(), free_address());
        let mut command = nephila();
        command.args(["spider", "--json", "--allow-net", "127.0.0.0/8", "--cores", "0"]);
        command.arg("--data").arg(dir.join("data")).args(["--listen", &addr.to_string()]);
        let mut spider = start(&command, stderr);
        let mut link = Link::new(dial(addr, &mut spider));
        link.send("no line of work at all");
        closed(link.stream);
        let mut link = Link::new(dial(addr, &mut spider));
        link.send(&format!("7 8 127.0.0.1 127.0.0.1 {}", web.url("/")));
        assert!(link.word().starts_with("DONE 7"), "{end}");
        drop(link);
        let report = stop(spider);
        assert_eq!(report["success"], 1, "{end}: {report}");
    }
}

#[test]
fn a_url_server_outlives_its_stderr() {
    let web = urlserver::web();
    for (end, stderr) in dead_ends() {
        let (dir, addr) = (TempDir::new(), free_address());
        let urls = [urlserver::url(&web, "h0", "/"), "no URL".to_string()];
        let command = urlserver::command(&dir, &format!("listen = \"{addr}\"\n"), &urls);
        let mut server = start(&command, stderr);
        let mut link = Link::new(dial(addr, &mut server));
        link.send("no word of a spider's");
        closed(link.stream);
        let mut link = Link::new(dial(addr, &mut server));
        link.send("GET 1");
        let work = link.work();
        link.send(&work.done());
        let report = server.wait(PATIENCE).done().json();
        assert_eq!(report["done"], 1, "{end}: {report}");
        assert!(report["lines_lost"].as_u64().is_some_and(|lost| lost >= 2), "{end}: {report}");
    }
}

#[test]
fn a_command_ends_as_it_would_without_a_stderr() {
    let web = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let seeds = dir.write("seeds", format!("no URL\n{}\n", web.url("/")));
    let crawl = |data: &str| {
        let mut command = crawl_command(&dir.join(data));
        command.arg("--seeds").arg(&seeds);
        command
    };
    for (end, stderr) in dead_ends() {
        let report = start(&crawl(end), stderr).wait(PATIENCE).done().json();
        assert_eq!(report["success"], 1, "{end}: {report}");
        assert!(report["lines_lost"].as_u64().is_some_and(|lost| lost >= 2), "{end}: {report}");
    }
    let (report, _) = self::crawl(&dir.join("told"), ["--seeds", seeds.to_str().unwrap()]);
    assert!(report.get("lines_lost").is_none(), "a line that was told is none: {report}");
    for (args, code) in [
        (&["crawl", "--no-such-flag"][..], 2),
        (&["crawl", "no URL"], 2),
        (&["store", "ls", "--data", "/proc/none"], 3),
        (&["help", "nothing"], 2),
    ] {
        for (end, stderr) in dead_ends() {
            let mut command = nephila();
            command.args(args);
            assert_eq!(start(&command, stderr).wait(PATIENCE).code(), code, "{args:?}: {end}");
        }
    }
}

/// In tables too; and help, like anything else that was asked for, is a failure where it finds no room.
#[test]
fn a_table_tells_of_lines_that_were_lost() {
    let web = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let [(_, full), _] = dead_ends();
    let mut command = nephila();
    command.args(["crawl", "--allow-net", "127.0.0.0/8", &web.url("/"), "--data"]).arg(dir.join("data"));
    let table = start(&command, full).wait(PATIENCE).done().text();
    assert!(table.contains("could not be written to stderr"), "{table}");
    for args in
        [&["--help"][..], &["crawl", "--help"], &["help", "store"], &["help", "crawl"], &["--version"]]
    {
        let [(_, full), (_, gone)] = dead_ends();
        for (stdout, code) in [(full, 3), (gone, 0)] {
            let child = nephila().args(args).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
            assert_eq!(stderr.lines().count(), usize::from(code == 3), "{args:?}: {stderr}");
        }
    }
}
