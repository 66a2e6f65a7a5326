//! A master as a process, fed by its spool and its TCP line, and a client that speaks its lines as `nc` would.

use crate::support::*;
use nephila::proto::reflog::Stamp;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub struct MasterProcess {
    pub running: Running,
    pub dir: TempDir,
    pub addr: SocketAddr,
    pub intake: SocketAddr,
}

/// Servers 1 and 2, and a TCP line.
const SERVERS: &str = "[[server]]\nid = 1\n[[server]]\nid = 2\n";

/// A line of a reflog, of this moment.
pub fn line(url: &str) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    let at = String::from_utf8(Stamp::from_s(now_s).digits().to_vec()).unwrap();
    format!("2011072806593795\t5\t{at}\t17\t{url}\t1\t0\n")
}

pub fn lines(from: usize, to: usize) -> String {
    (from..to).map(|number| line(&format!("http://h{}.test/p{number}", number % 40))).collect()
}

impl MasterProcess {
    pub fn start() -> MasterProcess {
        MasterProcess::with(TempDir::new(), "")
    }

    /// With more settings of `[master]`.
    pub fn with(dir: TempDir, more: &str) -> MasterProcess {
        let config = config(&dir, more, SERVERS);
        let running = start(&dir, &config);
        let addr = said(&running, "master: listening on ");
        let intake = said(&running, "master: intake: listening on ");
        MasterProcess { running, dir, addr, intake }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn spool(&self) -> PathBuf {
        self.data().join("spool")
    }

    /// Renames a file in.
    pub fn give(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.dir.write(&format!("out/{name}"), bytes);
        std::fs::rename(path, self.spool().join(name)).unwrap();
    }

    /// Into a spool on another disk: written hidden, then renamed.
    pub fn give_by_copy(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let hidden = self.spool().join(format!(".{name}"));
        std::fs::write(&hidden, bytes).unwrap();
        std::fs::rename(hidden, self.spool().join(name)).unwrap();
    }

    pub fn status(&self) -> Value {
        status(&self.data()).done().json()
    }

    /// Waits until so many URLs were sent since the process began.
    #[track_caller]
    pub fn wait_sent(&self, count: u64) -> Value {
        wait_for(&format!("{count} URLs are sent: {}", self.running.stderr()), PATIENCE, || {
            let status = self.status();
            (status["sent"].as_u64() >= Some(count)).then_some(status)
        })
    }

    #[track_caller]
    pub fn wait_said(&self, text: &str) {
        wait_for(&format!("{text:?} is said"), PATIENCE, || {
            self.running.stderr().contains(text).then_some(())
        });
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }

    /// Stops it in good order, and starts it again with the same directory.
    pub fn stop(self) -> (TempDir, Run) {
        self.running.signal(Signal::SIGINT);
        (self.dir, self.running.wait(PATIENCE))
    }
}

pub fn config(dir: &TempDir, more: &str, servers: &str) -> PathBuf {
    let data = dir.join("data");
    let data = data.display();
    dir.write(
        "master.toml",
        format!(
            "[master]\nlisten = \"127.0.0.1:0\"\nintake = \"127.0.0.1:0\"\ndata = \"{data}\"\n{more}{servers}"
        ),
    )
}

pub fn start(dir: &TempDir, config: &Path) -> Running {
    Running::start(nephila().args(["master", "run", "--config"]).arg(config).current_dir(dir.path()))
}

#[track_caller]
pub fn said(running: &Running, text: &str) -> SocketAddr {
    wait_for(&format!("{text}…: {}", running.stderr()), PATIENCE, || {
        let stderr = running.stderr();
        let rest = stderr.split_once(text)?.1;
        rest.split_once('\n')?.0.parse().ok()
    })
}

pub fn status(data: &Path) -> Run {
    run(["master", "status", "--json", "--data", data.to_str().unwrap()])
}

/// Speaks to a master by lines.
pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// What a TAKE brought.
#[derive(Debug)]
pub struct Taken {
    pub lines: Vec<String>,
    pub next: u64,
    pub mark: Option<String>,
}

impl Client {
    pub fn new(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Client { stream, reader }
    }

    pub fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// The next line; `None` at the end of the connection.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_string()),
            // Closed while something of ours was unread.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("{e}"),
        }
    }

    #[track_caller]
    pub fn take(&mut self, ask: &str) -> Taken {
        self.say(&format!("{ask}\n"));
        self.taken()
    }

    #[track_caller]
    pub fn taken(&mut self) -> Taken {
        let mut lines = Vec::new();
        loop {
            let line = self.hear().expect("an answer has an end");
            assert!(!line.starts_with("ERROR"), "{line}");
            let Some(rest) = line.strip_prefix("UPTO ") else {
                lines.push(line);
                continue;
            };
            let (next, mark) = rest.split_once(' ').map_or((rest, None), |(next, mark)| (next, Some(mark)));
            return Taken { lines, next: next.parse().unwrap(), mark: mark.map(str::to_string) };
        }
    }

    /// Says something that is refused: the line that says why, after which the link ends.
    #[track_caller]
    pub fn refused(&mut self, text: &str) -> String {
        self.say(text);
        let mut last = String::new();
        while let Some(line) = self.hear() {
            last = line;
        }
        assert!(last.starts_with("ERROR "), "{text:?}: {last:?}");
        last
    }

    pub fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

/// Everything of the queue of a server.
#[track_caller]
pub fn all_of(client: &mut Client, server: u16) -> Vec<String> {
    let (mut all, mut next) = (Vec::new(), 0);
    loop {
        let taken = client.take(&format!("TAKE {server} {next} 1000"));
        if taken.lines.is_empty() {
            return all;
        }
        next = taken.next;
        all.extend(taken.lines);
    }
}

/// Nothing is expected within this time.
pub const QUIET: Duration = Duration::from_millis(300);
