//! A PostgreSQL of the test's own: on a socket in a directory of its own, as nobody if the test is root.

use crate::support::*;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, Uid, User, chown};
use postgres::{Client, NoTls};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub struct PostgresServer {
    directory: TempDir,
    server: Option<Running>,
}

impl PostgresServer {
    pub fn start() -> PostgresServer {
        let directory = TempDir::in_memory();
        if let Some(nobody) = nobody() {
            chown(directory.path(), Some(nobody.uid), Some(nobody.gid)).unwrap();
        }
        let data = directory.join("data");
        let made = unprivileged("initdb", directory.path())
            .args(["--no-sync", "--auth=trust", "--username=nephila", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = PostgresServer { directory, server: None };
        server.run();
        server
    }

    /// Starts it again, after `kill`.
    pub fn run(&mut self) {
        let mut command = unprivileged("postgres", self.directory.path());
        command.arg("-D").arg(self.directory.join("data")).arg("-k").arg(self.directory.path());
        command.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off"]);
        self.server = Some(Running::start(&mut command));
        let address = self.address();
        wait_for("PostgreSQL answers", PATIENCE, || {
            let ended = self.server.as_mut().unwrap().has_ended();
            assert!(!ended, "{}", self.server.as_ref().unwrap().stderr());
            Client::connect(&address, NoTls).ok()
        });
    }

    /// The folder of its socket.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    pub fn address(&self) -> String {
        format!("host={} user=nephila dbname=postgres", self.directory.path().display())
    }

    /// A session beside those of the masters.
    pub fn session(&self) -> Client {
        Client::connect(&self.address(), NoTls).unwrap()
    }

    /// To every process of it; they are of different groups.
    pub fn signal(&self, signal: Signal) {
        for pid in self.pids() {
            let _ = nix::sys::signal::kill(pid, signal);
        }
    }

    fn pids(&self) -> Vec<Pid> {
        let Some(server) = &self.server else { return Vec::new() };
        let children = format!("/proc/{0}/task/{0}/children", server.pid());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        [server.pid() as i32].into_iter().chain(children).map(Pid::from_raw).collect()
    }

    pub fn kill(&mut self) {
        let pids = self.pids();
        self.signal(Signal::SIGKILL);
        if let Some(server) = self.server.take() {
            server.wait(PATIENCE);
        }
        // A child that is still there keeps the next server from starting.
        wait_for("all of it has ended", Duration::from_secs(20), || {
            pids.iter().all(|pid| nix::sys::signal::kill(*pid, None).is_err()).then_some(())
        });
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

fn nobody() -> Option<User> {
    Uid::effective().is_root().then(|| User::from_name("nobody").unwrap().expect("there is a user nobody"))
}

/// The newest of the versions that are installed. It dies with the test.
fn unprivileged(program: &str, directory: &Path) -> Command {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed: tests/run does it");
    let mut programs: Vec<PathBuf> =
        versions.map(|version| version.unwrap().path().join("bin").join(program)).collect();
    programs.retain(|path| path.exists());
    programs.sort();
    let mut command = Command::new("setpriv");
    if let Some(nobody) = nobody() {
        command.arg(format!("--reuid={}", nobody.uid)).arg(format!("--regid={}", nobody.gid));
        command.arg("--clear-groups");
    }
    command.arg("--pdeathsig=KILL").arg(programs.last().expect("there is a version of it"));
    command.current_dir(directory).env("LC_ALL", "C");
    command
}
