//! A server that keeps a log: what it was asked, by the kernel's clock, and what it said.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use std::io::{IoSliceMut, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When the kernel got it from the wire: no thread's delay can make a pause look shorter.
    pub at_ns: i64,
    /// Just before its answer went out: nobody can have known of it earlier. `i64::MAX` while it is unanswered.
    pub answered_ns: i64,
    /// The address that was asked.
    pub ip: IpAddr,
    /// Who asked.
    pub peer: IpAddr,
    /// Its number on its connection, from 0.
    pub nth: usize,
    pub method: String,
    pub target: String,
    pub host: String,
    pub user_agent: String,
    /// The request as it came, up to its empty line.
    pub head: String,
}

impl Asked {
    /// The host without its port.
    pub fn name(&self) -> &str {
        self.host.split(':').next().unwrap()
    }

    /// The values of a header, in any case, in their order.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines
            .filter(|(said, _)| said.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().into())
            .collect()
    }

    /// The value of a header that must not come twice.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut values = self.headers(name);
        assert!(values.len() <= 1, "{name} once: {}", self.head);
        values.pop()
    }

    /// `host/target`.
    pub fn place(&self) -> String {
        format!("{}{}", self.name(), self.target)
    }
}

/// What the server does with a request.
pub struct Reply {
    pub bytes: Vec<u8>,
    pub after: Duration,
    pub close: bool,
    /// The connection is reset rather than closed.
    pub reset: bool,
    /// Sent so many bytes at a time.
    pub piece: Option<usize>,
}

impl Reply {
    pub fn new(status: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        Reply {
            bytes: format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
                .into_bytes(),
            after: Duration::ZERO,
            close: false,
            reset: false,
            piece: None,
        }
    }

    pub fn html(body: &str) -> Reply {
        Reply::new("200 OK", "Content-Type: text/html\r\n", body)
    }

    pub fn text(body: &str) -> Reply {
        Reply::new("200 OK", "Content-Type: text/plain\r\n", body)
    }

    pub fn links<T: AsRef<str>>(targets: impl IntoIterator<Item = T>) -> Reply {
        let links: String =
            targets.into_iter().map(|target| format!("<a href=\"{}\">x</a>\n", target.as_ref())).collect();
        Reply::html(&format!("<!doctype html><title>t</title>{links}"))
    }

    pub fn status(status: &str) -> Reply {
        Reply::new(status, "", "no\n")
    }

    pub fn redirect(to: &str) -> Reply {
        Reply::new("302 Found", &format!("Location: {to}\r\n"), "")
    }

    /// No answer: the connection is closed.
    pub fn hang_up() -> Reply {
        Reply { bytes: Vec::new(), after: Duration::ZERO, close: true, reset: false, piece: None }
    }

    /// No answer: the connection is reset.
    pub fn reset() -> Reply {
        Reply { reset: true, ..Reply::hang_up() }
    }

    pub fn after_ms(mut self, ms: u64) -> Reply {
        self.after = Duration::from_millis(ms);
        self
    }

    /// The connection is closed after the answer, which does not say so.
    pub fn then_close(mut self) -> Reply {
        self.close = true;
        self
    }

    /// More header lines, each with its end.
    pub fn with(mut self, headers: &str) -> Reply {
        let at = self.bytes.windows(2).position(|two| two == b"\r\n").expect("a status line") + 2;
        self.bytes.splice(at..at, headers.bytes());
        self
    }

    /// Bytes as they are; the connection stays open.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply { bytes: bytes.into(), close: false, ..Reply::hang_up() }
    }

    /// More bytes a while after the answer, before it may close.
    pub fn later(self, ms: u64, bytes: impl Into<Vec<u8>>) -> Play {
        Play::from(self).later(ms, bytes)
    }

    /// These bytes again and again, for as long as somebody takes them.
    pub fn forever(self, ms: u64, bytes: impl Into<Vec<u8>>) -> Play {
        Play { forever: Some((Duration::from_millis(ms), bytes.into())), ..Play::from(self) }
    }
}

/// A reply, and what the server does after it.
pub struct Play {
    reply: Reply,
    later: Vec<(Duration, Vec<u8>)>,
    forever: Option<(Duration, Vec<u8>)>,
}

impl From<Reply> for Play {
    fn from(reply: Reply) -> Play {
        Play { reply, later: Vec::new(), forever: None }
    }
}

impl Play {
    pub fn later(mut self, ms: u64, bytes: impl Into<Vec<u8>>) -> Play {
        self.later.push((Duration::from_millis(ms), bytes.into()));
        self
    }

    /// Sends what comes after the reply itself.
    fn go_on(&self, stream: &mut TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
        for (pause, bytes) in &self.later {
            std::thread::sleep(*pause);
            stream.write_all(bytes)?;
        }
        while let Some((pause, bytes)) = self.forever.as_ref().filter(|_| !stop.load(Ordering::SeqCst)) {
            std::thread::sleep(*pause);
            stream.write_all(bytes)?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Log {
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    open_max: AtomicUsize,
    stop: AtomicBool,
}

/// A small HTTP server on 127.0.0.1, or on every address of the machine, a thread per connection, that writes down every request.
pub struct LogServer {
    pub addr: SocketAddr,
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl LogServer {
    pub fn start<P: Into<Play>>(answer: impl Fn(&Asked) -> P + Send + Sync + 'static) -> LogServer {
        LogServer::start_on(Ipv4Addr::LOCALHOST, answer)
    }

    pub fn start_on<P: Into<Play>>(
        ip: impl Into<IpAddr>,
        answer: impl Fn(&Asked) -> P + Send + Sync + 'static,
    ) -> LogServer {
        let listener = TcpListener::bind((ip.into(), 0)).unwrap();
        // Accepted connections inherit it.
        setsockopt(&listener, sockopt::ReceiveTimestampns, &true).unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let answer = Arc::new(move |asked: &Asked| answer(asked).into());
        let thread = std::thread::spawn({
            let log = log.clone();
            move || {
                for stream in listener.incoming() {
                    if log.stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    log.connections.fetch_add(1, Ordering::SeqCst);
                    let (log, answer) = (log.clone(), answer.clone());
                    std::thread::spawn(move || serve(stream, &log, &*answer));
                }
            }
        });
        LogServer { addr, log, thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Every request, in the order of arrival.
    pub fn asked(&self) -> Vec<Asked> {
        let mut asked = self.log.asked.lock().unwrap().clone();
        asked.sort_by_key(|asked| asked.at_ns);
        asked
    }

    pub fn targets(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.target).collect()
    }

    /// `host/target` of every request but those for robots.txt, sorted.
    pub fn places(&self) -> Vec<String> {
        let asked = self.asked().into_iter().filter(|asked| asked.target != "/robots.txt");
        let mut places: Vec<String> = asked.map(|asked| asked.place()).collect();
        places.sort();
        places
    }

    pub fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// The most requests that were unanswered at one time.
    pub fn open_max(&self) -> usize {
        self.log.open_max.load(Ordering::SeqCst)
    }
}

impl Drop for LogServer {
    fn drop(&mut self) {
        self.log.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, log: &Log, answer: &(dyn Fn(&Asked) -> Play + Send + Sync)) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else {
        return;
    };
    let mut bytes = Vec::new();
    let mut arrived = None;
    for nth in 0.. {
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match receive(&stream, &mut bytes) {
                Ok((0, _)) => return,
                Ok((_, at_ns)) => arrived = Some(at_ns.unwrap_or_else(now_ns)),
                Err(_) if log.stop.load(Ordering::SeqCst) => return,
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {}
                Err(_) => return,
            }
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
        bytes.drain(..head_end);
        let header = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_default().to_string()
        };
        let asked = Asked {
            at_ns: arrived.expect("a request has come"),
            answered_ns: i64::MAX,
            ip: local.ip(),
            peer: peer.ip(),
            nth,
            method: head.split(' ').next().unwrap_or_default().to_string(),
            target: head.split(' ').nth(1).unwrap_or_default().to_string(),
            host: header("Host"),
            user_agent: header("User-Agent"),
            head: head.clone(),
        };
        let open = log.open.fetch_add(1, Ordering::SeqCst) + 1;
        log.open_max.fetch_max(open, Ordering::SeqCst);
        let row = {
            let mut rows = log.asked.lock().unwrap();
            rows.push(asked.clone());
            rows.len() - 1
        };
        let play = answer(&asked);
        let reply = &play.reply;
        std::thread::sleep(reply.after);
        log.asked.lock().unwrap()[row].answered_ns = unix_ns();
        log.open.fetch_sub(1, Ordering::SeqCst);
        let piece = reply.piece.unwrap_or(reply.bytes.len().max(1));
        let sent = reply.bytes.chunks(piece).try_for_each(|bytes| {
            if reply.piece.is_some() {
                std::thread::sleep(Duration::from_micros(100));
            }
            stream.write_all(bytes)
        });
        let sent = sent.and_then(|()| play.go_on(&mut stream, &log.stop));
        if reply.reset {
            let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            setsockopt(&stream, sockopt::Linger, &at_once).unwrap();
        }
        if sent.is_err() || reply.close {
            return;
        }
    }
}

/// By the clock of the kernel's time stamps.
fn unix_ns() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

/// What a kernel that has not begun to stamp would say: it does so a moment after it is first asked to.
fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// Reads once: how many bytes came, and when the kernel got them.
pub fn receive(stream: &TcpStream, into: &mut Vec<u8>) -> nix::Result<(usize, Option<i64>)> {
    let mut buffer = [0; 16 * 1024];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let length = message.bytes;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
        _ => None,
    });
    into.extend_from_slice(&buffer[..length]);
    Ok((length, stamp))
}
