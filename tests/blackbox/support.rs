//! What the tests stand on: temp dirs that vanish, children that end with their test, the farm, nginx, and a
//! server that keeps a log (in a file of its own). Every wait has an end.

pub use crate::log_server::*;

use nephila::farm::{Site, SiteSpec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
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
        TempDir::below(&std::env::temp_dir())
    }

    /// In memory where that can be had, for tests that sync thousands of times and do not care where.
    pub fn in_memory() -> TempDir {
        let memory = Path::new("/dev/shm");
        let can = nix::unistd::access(memory, nix::unistd::AccessFlags::W_OK).is_ok();
        match can {
            true => TempDir::below(memory),
            false => TempDir::new(),
        }
    }

    fn below(base: &Path) -> TempDir {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("nephila-blackbox-{}-{count}", std::process::id()));
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

    /// The same, or exit status 1 of a crawl that had no page: it could have none of its seeds.
    #[track_caller]
    pub fn ended(self) -> Run {
        if self.code() == 1 {
            assert_eq!(self.json()["success"], 0, "stderr:\n{}", self.stderr);
            return self;
        }
        self.done()
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

/// A crawl that must end well, and its summary. One that could have none of its seeds says so by its status.
#[track_caller]
pub fn crawl<S: AsRef<OsStr>>(data: &Path, args: impl IntoIterator<Item = S>) -> (Value, Run) {
    let run = Running::start(crawl_command(data).args(args)).wait(PATIENCE).ended();
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
    let not_fetched =
        of("robots_denied") + of("blocked_address") + of("dns_failed") + of("bad_url") + of("host_set_aside");
    assert_eq!(sum - not_fetched, count("pages"), "results add up to pages: {report}");
    assert_eq!(of("ok") + of("too_large") + of("not_modified"), count("success"), "{report}");
    if count("known_before") == 0 {
        let untried = count("pending") - count("waiting");
        assert_eq!(count("known"), sum + untried, "known is done or pending: {report}");
    }
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

/// A `store` command on a data directory.
pub fn store(args: &[&str], data: &Path) -> Run {
    let mut command = nephila();
    command.arg("store").args(args).arg("--data").arg(data);
    Running::start(&mut command).wait(PATIENCE)
}

/// Files of a store's segments with this ending.
pub fn segments(data: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(data.join("segments")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    found.sort();
    found
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
        flag("--slow-hosts", spec.slow_hosts.to_string());
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
        see_off(&mut self.child);
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

// nginx -----------------------------------------------------------------------------------------------------

/// Waits for a child that was told to end, and ends it if it does not.
pub fn see_off(child: &mut Child) {
    let until = Instant::now() + Duration::from_secs(5);
    while let Ok(None) = child.try_wait() {
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

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
        see_off(&mut self.child);
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

/// Text that does not repeat, from a name, without a markup character: no page links by accident.
pub fn filling(name: &str, length: usize) -> String {
    let mut state = name.bytes().fold(0x9e37_79b9_7f4a_7c15_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(
            b"abcdefghijklmnopqrstuvwxyz ,.\n0123456789ABCDEFGHIJKLMNOPQRSTUVWX"[(state >> 33) as usize % 64],
        )
    };
    (0..length).map(|_| next()).collect()
}
