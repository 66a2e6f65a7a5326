//! One end of a connection between a URL server and a spider, whichever of them is the test.

use crate::support::{PATIENCE, receive, wait_for};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub struct Link {
    pub stream: TcpStream,
    bytes: Vec<u8>,
    at_ns: i64,
}

impl Link {
    pub fn new(stream: TcpStream) -> Link {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        setsockopt(&stream, sockopt::ReceiveTimestampns, &true).unwrap();
        Link { stream, bytes: Vec::new(), at_ns: 0 }
    }

    pub fn dial(addr: SocketAddr) -> Link {
        Link::new(TcpStream::connect(addr).unwrap())
    }

    #[track_caller]
    pub fn accept(listener: &TcpListener) -> Link {
        listener.set_nonblocking(true).unwrap();
        let stream = wait_for("somebody dials", PATIENCE, || listener.accept().ok()).0;
        stream.set_nonblocking(false).unwrap();
        Link::new(stream)
    }

    pub fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line; `None` when the peer has closed.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.line_here() {
                return Some(line);
            }
            match self.read() {
                Ok(0) | Err(Errno::ECONNRESET) => {
                    assert!(self.bytes.is_empty(), "lines end with LF: {:?}", self.bytes);
                    return None;
                }
                Ok(_) => {}
                Err(e) => panic!("no line: {e}"),
            }
        }
    }

    /// When the kernel got the latest line, in nanoseconds since 1970.
    pub fn at_ns(&self) -> i64 {
        self.at_ns
    }

    /// The next line that is no GET.
    #[track_caller]
    pub fn word(&mut self) -> String {
        loop {
            let line = self.line().expect("a word");
            if !line.starts_with("GET ") {
                return line;
            }
        }
    }

    #[track_caller]
    pub fn words(&mut self, count: usize) -> BTreeSet<String> {
        (0..count).map(|_| self.word()).collect()
    }

    #[track_caller]
    pub fn says_nothing_for(&mut self, time: Duration) {
        assert_eq!(self.line_here(), None);
        self.stream.set_read_timeout(Some(time)).unwrap();
        match self.read() {
            Err(Errno::EAGAIN) => {}
            other => panic!("{other:?}: {:?}", String::from_utf8_lossy(&self.bytes)),
        }
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }

    fn line_here(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let line = self.bytes.drain(..=end).take(end).collect();
        Some(String::from_utf8(line).expect("lines are text"))
    }

    fn read(&mut self) -> nix::Result<usize> {
        let (count, at_ns) = loop {
            match receive(&self.stream, &mut self.bytes) {
                Err(Errno::EINTR) => {}
                other => break other?,
            }
        };
        // What came before the socket was told to stamp has no stamp.
        self.at_ns = at_ns.unwrap_or_else(now_ns);
        Ok(count)
    }
}

/// On the clock of the kernel's stamps.
pub fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}
