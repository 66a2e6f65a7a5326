//! What the tests stand on: temp dirs that vanish, children that end with their test, the farm, nginx, and a
//! server that keeps a log. Every wait has an end.

use nephila::farm::{Site, SiteSpec};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::unistd::Pid;
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for a crawl on a machine that is busy with other tests; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const DRIVERS: [&str; 2] = ["uring", "epoll"];

pub fn nephila() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nephila"));
    command.stdin(Stdio::null());
    command
}

// Temp dirs -------------------------------------------------------------------------------------------------

/// A directory of its own, gone with the value.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-blackbox-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// Children --------------------------------------------------------------------------------------------------

/// What a finished process left behind.
#[derive(Debug)]
pub struct Run {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    #[track_caller]
    pub fn code(&self) -> i32 {
        assert!(!self.stderr.contains("panicked"), "panicked:\n{}", self.stderr);
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {:?}\n{}", self.status, self.stderr))
    }

    /// Exit status 0.
    #[track_caller]
    pub fn done(self) -> Run {
        assert_eq!(self.code(), 0, "stderr:\n{}", self.stderr);
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("stdout is UTF-8")
    }

    /// stdout as exactly one JSON object on exactly one line.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = self.text();
        assert!(
            text.ends_with('\n') && text.matches('\n').count() == 1,
            "one line on stdout, not {text:?}\nstderr:\n{}",
            self.stderr
        );
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text:?}"));
        assert!(value.is_object(), "one object, not {text}");
        value
    }

    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}")))
            .collect()
    }
}

/// A process that is running. It is killed if its test goes away first.
pub struct Running {
    child: Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers = vec![
            collect(child.stdout.take().unwrap(), &stdout),
            collect(child.stderr.take().unwrap(), &stderr),
        ];
        Running { child, stdout, stderr, readers }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the process is there");
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end, at most so long.
    #[track_caller]
    pub fn wait(mut self, patience: Duration) -> Run {
        let until = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("still running after {patience:?}; stderr:\n{}", self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        Run { status, stdout: std::mem::take(&mut *self.stdout.lock().unwrap()), stderr: self.stderr() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn collect(mut from: impl Read + Send + 'static, into: &Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    let into = into.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            into.lock().unwrap().extend_from_slice(&buffer[..n]);
        }
    })
}

/// Waits until a question is answered with a value, at most so long.
#[track_caller]
pub fn wait_for<T>(what: &str, patience: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + patience;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs `nephila` with these arguments to its end.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    Running::start(nephila().args(args)).wait(PATIENCE)
}

/// `nephila crawl` with JSON on stdout, loopback allowed and no pauses; later flags of the test add to it.
pub fn crawl_command(data: &Path) -> Command {
    let mut command = nephila();
    command.args(["crawl", "--json", "--allow-net", "127.0.0.0/8", "--data"]);
    command.arg(data);
    command
}

/// A crawl that must end well, and its summary.
#[track_caller]
pub fn crawl<S: AsRef<OsStr>>(data: &Path, args: impl IntoIterator<Item = S>) -> (Value, Run) {
    let run = Running::start(crawl_command(data).args(args)).wait(PATIENCE).done();
    let report = run.json();
    check_report(&report);
    (report, run)
}

/// The summary has the fields it promises, and its sums hold.
#[track_caller]
pub fn check_report(report: &Value) {
    let count = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} is a count in {report}"));
    let number = |value: &Value, name: &str| {
        let number = value[name].as_f64().unwrap_or_else(|| panic!("{name} is a number in {report}"));
        assert!(number.is_finite() && number >= 0.0, "{name} in {report}");
        number
    };
    assert_eq!(count("pages"), count("success") + count("errors"), "{report}");
    let seconds = number(report, "seconds");
    assert!(seconds > 0.0);
    let rate = number(report, "pages_per_second");
    let expected = count("pages") as f64 / seconds;
    assert!((rate - expected).abs() <= 0.01 * expected + 0.01, "{report}");
    number(report, "cpu_us_per_page");
    assert!(["uring", "epoll"].contains(&report["driver"].as_str().unwrap()), "{report}");
    assert!(!report["cores"].as_array().unwrap().is_empty(), "{report}");
    let results = report["results"].as_object().expect("results is an object");
    let of = |name: &str| results.get(name).map_or(0, |count| count.as_u64().unwrap());
    let sum: u64 = results.values().map(|count| count.as_u64().unwrap()).sum();
    // What our own rules kept from a spider is a result, but no page.
    let not_fetched = of("robots_denied") + of("blocked_address") + of("dns_failed") + of("bad_url");
    assert_eq!(sum - not_fetched, count("pages"), "results add up to pages: {report}");
    assert_eq!(of("ok") + of("too_large") + of("not_modified"), count("success"), "{report}");
    assert_eq!(count("known"), sum + count("pending"), "known is done or pending: {report}");
    let times = &report["fetch_ms"];
    let (p50, p99, max) = (number(times, "p50"), number(times, "p99"), number(times, "max"));
    assert!(p50 <= p99 && p99 <= max, "{report}");
    if count("pages") > 0 {
        assert!(count("stored_bytes") > 0 && max > 0.0, "{report}");
    }
    count("bytes");
}

pub fn result_count(report: &Value, name: &str) -> u64 {
    report["results"].get(name).map_or(0, |count| count.as_u64().unwrap())
}

// The store -------------------------------------------------------------------------------------------------

/// One line of `store ls --json`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    pub doc_id: u32,
    pub url: String,
    pub new_url: Option<String>,
    pub success: bool,
    pub result: String,
    pub http_status: Option<u16>,
    pub ms: u64,
    pub bytes: u64,
    pub fetched_at: String,
    pub ip: String,
    pub flags: Vec<String>,
    pub sha1: String,
}

/// Every record of a store, in its order.
#[track_caller]
pub fn records(data: &Path) -> Vec<Listed> {
    let mut command = nephila();
    command.args(["store", "ls", "--json", "--all", "--data"]).arg(data);
    let run = Running::start(&mut command).wait(PATIENCE).done();
    assert_eq!(run.stderr, "", "nothing to say on stderr");
    let listed = run.json_lines().into_iter().map(serde_json::from_value);
    listed.collect::<Result<_, _>>().expect("the fields that are promised, and no others")
}

/// Every record by its URL; each URL must be there once.
#[track_caller]
pub fn stored(data: &Path) -> BTreeMap<String, Listed> {
    let mut by_url = BTreeMap::new();
    for record in records(data) {
        if let Some(twice) = by_url.insert(record.url.clone(), record) {
            panic!("stored twice: {twice:?}");
        }
    }
    by_url
}

/// The stored document of a URL, by `store cat`.
#[track_caller]
pub fn cat(data: &Path, url: &str) -> Vec<u8> {
    let mut command = nephila();
    command.args(["store", "cat", "--data"]).arg(data).arg(url);
    Running::start(&mut command).wait(PATIENCE).done().stdout
}

pub fn sha1_hex(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

// The farm --------------------------------------------------------------------------------------------------

/// `nephila farm` in a process of its own; closing its stdin ends it.
pub struct Farm {
    child: Child,
    stdin: Option<ChildStdin>,
    pub port: u16,
    /// The same web, to compute what the farm serves.
    pub site: Site,
    dir: TempDir,
}

impl Farm {
    #[track_caller]
    pub fn start(spec: SiteSpec) -> Farm {
        let dir = TempDir::new();
        let mut command = nephila();
        command.args(["farm", "--json", "--until-stdin-closes", "--port", "0"]);
        let mut flag = |name: &str, value: String| {
            command.arg(name).arg(value);
        };
        flag("--hosts", spec.hosts.to_string());
        flag("--pages", spec.pages.to_string());
        flag("--page-bytes", spec.page_bytes.to_string());
        flag("--links", spec.links.to_string());
        flag("--seed", spec.seed.to_string());
        flag("--latency-ms", spec.latency_ms.to_string());
        flag("--redirects", spec.redirects.to_string());
        flag("--errors", spec.errors.to_string());
        flag("--slow", spec.slow.to_string());
        flag("--slow-ms", spec.slow_ms.to_string());
        flag("--broken", spec.broken.to_string());
        flag("--chunked", spec.chunked.to_string());
        flag("--denied", spec.denied.to_string());
        if spec.close {
            command.arg("--close");
        }
        command.arg("--hosts-file").arg(dir.join("hosts"));
        command.arg("--seeds-file").arg(dir.join("seeds"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        assert_eq!(said["hosts"], spec.hosts);
        let port = said["port"].as_u64().unwrap() as u16;
        Farm { child, stdin, port, site: Site::new(spec).unwrap(), dir }
    }

    pub fn hosts_file(&self) -> PathBuf {
        self.dir.join("hosts")
    }

    pub fn seeds_file(&self) -> PathBuf {
        self.dir.join("seeds")
    }

    pub fn url(&self, host: u32, page: u32) -> String {
        let port = self.port;
        match page {
            0 => format!("http://h{host}.farm.test:{port}/"),
            page => format!("http://h{host}.farm.test:{port}/p/{page}.html"),
        }
    }

    /// Flags that crawl the whole farm without pauses.
    pub fn flags(&self) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().unwrap().to_string();
        [
            "--seeds",
            &path(self.seeds_file()),
            "--hosts-file",
            &path(self.hosts_file()),
            "--req-host-per-sec",
            "0",
        ]
        .map(str::to_string)
        .to_vec()
    }

    /// What `/farm-stats` says.
    pub fn stats(&self) -> Value {
        let (_, body) = get(SocketAddr::from(([127, 16, 0, 0], self.port)), "/farm-stats");
        serde_json::from_slice(&body).unwrap()
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let until = Instant::now() + Duration::from_secs(5);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A plain GET; head and body.
pub fn get(addr: SocketAddr, target: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect_timeout(&addr, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let body = bytes.split_off(split);
    (String::from_utf8(bytes).unwrap(), body)
}

// A server that keeps a log ---------------------------------------------------------------------------------

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When the kernel got it from the wire: no thread's delay can make a pause look shorter.
    pub at_ns: i64,
    /// Its number on its connection, from 0.
    pub nth: usize,
    pub target: String,
    pub host: String,
    pub user_agent: String,
}

impl Asked {
    /// `host/target`.
    pub fn place(&self) -> String {
        let host = self.host.split(':').next().unwrap();
        format!("{host}{}", self.target)
    }
}

/// What the server does with a request.
pub struct Reply {
    pub bytes: Vec<u8>,
    pub after: Duration,
    pub close: bool,
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
        Reply { bytes: Vec::new(), after: Duration::ZERO, close: true, piece: None }
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
}

#[derive(Default)]
struct Log {
    asked: Mutex<Vec<Asked>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    open_max: AtomicUsize,
    stop: AtomicBool,
}

/// A small HTTP server on 127.0.0.1, a thread per connection, that writes down every request.
pub struct LogServer {
    pub addr: SocketAddr,
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl LogServer {
    pub fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> LogServer {
        LogServer::start_on(Ipv4Addr::LOCALHOST, answer)
    }

    pub fn start_on(ip: Ipv4Addr, answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> LogServer {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        // Accepted connections inherit it.
        setsockopt(&listener, sockopt::ReceiveTimestampns, &true).unwrap();
        let addr = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let answer = Arc::new(answer);
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

fn serve(mut stream: TcpStream, log: &Log, answer: &(dyn Fn(&Asked) -> Reply + Send + Sync)) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let mut bytes = Vec::new();
    let mut arrived = None;
    for nth in 0.. {
        let head_end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match receive(&stream, &mut bytes) {
                Ok((0, _)) => return,
                Ok((_, at_ns)) => arrived = Some(at_ns.expect("the kernel stamps what it receives")),
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
            nth,
            target: head.split(' ').nth(1).unwrap_or_default().to_string(),
            host: header("Host"),
            user_agent: header("User-Agent"),
        };
        let open = log.open.fetch_add(1, Ordering::SeqCst) + 1;
        log.open_max.fetch_max(open, Ordering::SeqCst);
        log.asked.lock().unwrap().push(asked.clone());
        let reply = answer(&asked);
        std::thread::sleep(reply.after);
        log.open.fetch_sub(1, Ordering::SeqCst);
        let piece = reply.piece.unwrap_or(reply.bytes.len().max(1));
        let sent = reply.bytes.chunks(piece).try_for_each(|bytes| {
            if reply.piece.is_some() {
                std::thread::sleep(Duration::from_micros(100));
            }
            stream.write_all(bytes)
        });
        if sent.is_err() || reply.close {
            return;
        }
    }
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

// nginx -----------------------------------------------------------------------------------------------------

/// nginx in the foreground, with a prefix of its own, serving `root` on a free port of 127.0.0.1.
pub struct Nginx {
    child: Child,
    pub port: u16,
    pub dir: TempDir,
}

impl Nginx {
    /// `server` is put into the server block.
    pub fn start(dir: TempDir, server: &str) -> Nginx {
        for name in ["root", "tmp"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        // A free port may be taken by somebody else before nginx has it: then another is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            dir.write("nginx.conf", nginx_conf(dir.path(), port, server));
            let mut child = Command::new(nginx_program())
                .args(["-p", dir.path().to_str().unwrap(), "-c", "nginx.conf", "-e", "stderr"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(dir.join("errors")).unwrap())
                .spawn()
                .expect("nginx is installed");
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until && child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Nginx { child, port, dir };
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        let errors = std::fs::read_to_string(dir.join("errors")).unwrap_or_default();
        panic!("nginx does not start:\n{errors}");
    }

    /// Requests in its access log: target, status, number on its connection.
    pub fn access_log(&self) -> Vec<(String, u16, u32)> {
        let text = std::fs::read_to_string(self.dir.join("access")).unwrap_or_default();
        text.lines()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                (words[0].to_string(), words[1].parse().unwrap(), words[2].parse().unwrap())
            })
            .collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let until = Instant::now() + Duration::from_secs(5);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn nginx_program() -> &'static str {
    if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" }
}

fn nginx_conf(dir: &Path, port: u16, server: &str) -> String {
    let dir = dir.display();
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "daemon off;
{user}
worker_processes 1;
pid {dir}/pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    types {{ text/html html; text/plain txt; application/octet-stream bin; }}
    log_format said '$request_uri $status $connection_requests';
    access_log {dir}/access said;
    client_body_temp_path {dir}/tmp/body;
    proxy_temp_path {dir}/tmp/proxy;
    fastcgi_temp_path {dir}/tmp/fastcgi;
    uwsgi_temp_path {dir}/tmp/uwsgi;
    scgi_temp_path {dir}/tmp/scgi;
    gzip off;
    server {{
        listen 127.0.0.1:{port};
        root {dir}/root;
        index index.html;
        {server}
    }}
}}
"
    )
}
