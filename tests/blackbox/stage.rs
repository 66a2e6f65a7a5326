//! A small web of scripted hosts: names with an address each, one server that answers for all of them, and a crawl of it.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

/// Scripted hosts, and the data of a crawl of them.
pub struct Stage {
    pub dir: TempDir,
    pub data: PathBuf,
    pub server: LogServer,
    hosts: String,
}

impl Stage {
    /// Nobody has robots rules, and no connection is kept after saying so: a page comes on a fresh one.
    pub fn new<P: Into<Play>>(answer: impl Fn(&Asked) -> P + Send + Sync + 'static) -> Stage {
        Stage::with_robots(move |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::new("404 Not Found", "Connection: close\r\n", "").into(),
            _ => answer(asked).into(),
        })
    }

    /// The script answers for robots.txt as well.
    pub fn with_robots<P: Into<Play>>(answer: impl Fn(&Asked) -> P + Send + Sync + 'static) -> Stage {
        let dir = TempDir::new();
        let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, answer);
        Stage { data: dir.join("data"), dir, server, hosts: String::new() }
    }

    /// A URL of a host, which gets an address when it is first named.
    pub fn url(&mut self, name: &str, path: &str) -> String {
        let known = self.hosts.lines().any(|line| line.ends_with(&format!(" {name}")));
        if !known && name.ends_with(".test") {
            let nth = self.hosts.lines().count();
            self.hosts += &format!("127.60.{}.{} {name}\n", nth / 200, nth % 200 + 1);
        }
        format!("http://{name}:{}{path}", self.server.port())
    }

    pub fn settings(&self, toml: &str) -> &Stage {
        self.dir.write("c.toml", toml);
        self
    }

    /// A crawl without pauses, with the settings that were written before.
    pub fn command<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = crawl_command(&self.data);
        command.arg("--hosts-file").arg(self.dir.write("hosts", &self.hosts));
        if self.dir.join("c.toml").exists() {
            command.arg("--config").arg(self.dir.join("c.toml"));
        }
        let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().to_string()).collect();
        if !args.iter().any(|arg| arg == "--req-host-per-sec") {
            command.args(["--req-host-per-sec", "0"]);
        }
        command.args(args);
        command
    }

    #[track_caller]
    pub fn crawl<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        // A second crawl of a stage asks for everything once more.
        let run = Running::start(self.command(args).arg("--again")).wait(PATIENCE).ended();
        let report = run.json();
        check_report(&report);
        report
    }

    #[track_caller]
    pub fn stored(&self) -> BTreeMap<String, Listed> {
        stored(&self.data)
    }

    /// Everything that was asked of a host but its robots.txt.
    pub fn pages_of(&self, name: &str) -> Vec<Asked> {
        let asked = self.server.asked().into_iter();
        asked.filter(|asked| asked.name() == name && asked.target != "/robots.txt").collect()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.join("crawl.log")).unwrap()
    }

    /// The crawl log keeps every promise of niceness.
    #[track_caller]
    pub fn assert_proved(&self) {
        let mut command = nephila();
        let run = Running::start(command.args(["audit", "--data"]).arg(&self.data)).wait(PATIENCE);
        assert_eq!(run.code(), 0, "{}\n{}", run.text(), self.log());
    }
}

/// What a record must be, in the words of its failure.
#[track_caller]
pub fn assert_record(listed: &Listed, result: &str, status: Option<u16>, body: &[u8], flags: &[&str]) {
    let success = ["ok", "not_modified", "too_large"].contains(&result);
    let seen = (&*listed.result, listed.success, listed.http_status, listed.bytes, &*listed.sha1);
    let sha1 = sha1_hex(body);
    assert_eq!(seen, (result, success, status, body.len() as u64, &*sha1), "{listed:?}");
    assert_eq!(listed.flags, flags, "{listed:?}");
}

/// The same with each driver, side by side: most of it is waiting.
#[track_caller]
pub fn by_each_driver(play: impl Fn(&'static str) + Sync) {
    std::thread::scope(|scope| {
        for driver in DRIVERS {
            scope.spawn(|| play(driver));
        }
    });
}
