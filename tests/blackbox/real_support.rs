//! What the tests of real servers stand on: certificates made on the spot, servers of Debian's as children of the
//! test on free ports, the site they serve, and curl as the judge.

use crate::support::*;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name that every server goes by; it lives at 127.0.0.1.
pub const NAME: &str = "site.test";

// Certificates ----------------------------------------------------------------------------------------------

/// An authority of our own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    Good,
    WrongName,
    Expired,
    SelfSigned,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority for a test");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key, as PEM.
    pub fn issue(&self, certificate: Certificate) -> (String, String) {
        let name = if certificate == Certificate::WrongName { "elsewhere.test" } else { NAME };
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        if certificate == Certificate::Expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let signed = match certificate {
            Certificate::SelfSigned => params.self_signed(&key),
            _ => params.signed_by(&key, &self.issuer),
        };
        (signed.unwrap().pem(), key.serialize_pem())
    }
}

// The site --------------------------------------------------------------------------------------------------

/// Every path that a crawl of the site comes to, and the status of its answer.
pub const PAGES: [(&str, u16); 14] = [
    ("/", 200),
    ("/plain.html", 200),
    ("/more.html", 200),
    ("/notes.txt", 200),
    ("/style.css", 200),
    ("/included.shtml", 200),
    ("/large.html", 200),
    ("/empty.html", 200),
    ("/data.bin", 200),
    ("/chunked.html", 200),
    ("/closing.html", 200),
    ("/deep", 301),
    ("/deep/", 200),
    ("/missing.html", 404),
];

/// Writes the files of the site to `root` of a directory.
fn write_site(dir: &TempDir) {
    let mut index = String::from("<!doctype html><title>A site</title>\n");
    for (path, _) in PAGES.iter().filter(|(path, _)| !["/", "/more.html", "/deep/"].contains(path)) {
        index.push_str(&format!("<a href=\"{path}\">{path}</a>\n"));
    }
    dir.write("root/index.html", index);
    dir.write("root/robots.txt", "User-agent: *\nDisallow: /never/\n");
    dir.write("root/plain.html", format!("<a href=more.html>more</a><p>{}", filling("plain", 900)));
    dir.write("root/more.html", format!("<p>{}", filling("more", 20_000)));
    dir.write("root/notes.txt", filling("notes", 30_000));
    let style = "body { margin: 0 }\n".repeat(200);
    let mut packed = vec![0; style.len() + 1_000];
    let length = zstd_safe::compress(&mut packed[..], style.as_bytes(), 3).unwrap();
    dir.write("root/style.css.zst", &packed[..length]);
    dir.write("root/style.css", style);
    // Where inclusions are made, they are many: the length is not known beforehand.
    let included = "<p>this is <!--#echo var=\"DOCUMENT_NAME\" --></p>\n".repeat(400);
    dir.write("root/included.shtml", included);
    dir.write("root/large.html", format!("<p>{}", filling("large", 1_000_000)));
    dir.write("root/empty.html", "");
    let binary: Vec<u8> = (0..40_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    dir.write("root/data.bin", binary);
    dir.write("root/chunked.html", format!("<p>{}", filling("chunked", 10_000)));
    dir.write("root/closing.html", format!("<p>{}", filling("closing", 10_000)));
    dir.write("root/deep/index.html", format!("<p>{}", filling("deep", 3_000)));
}

/// A directory with the site, an authority's certificate and one of the server: `ca.pem`, `cert.pem`, `key.pem`, and
/// the last two in `both.pem`.
pub fn site_dir(authority: &Authority) -> TempDir {
    let dir = TempDir::new();
    write_site(&dir);
    let (cert, key) = authority.issue(Certificate::Good);
    dir.write("both.pem", format!("{cert}{key}"));
    dir.write("cert.pem", cert);
    dir.write("key.pem", key);
    dir.write("ca.pem", &authority.pem);
    dir.write("hosts", format!("127.0.0.1 {NAME}\n"));
    dir.write("tmp/none", "");
    dir
}

// Servers ---------------------------------------------------------------------------------------------------

/// A program of a Debian package; without it the test fails with a line that names the package.
pub fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    // The system's own first: what a user has put before it may be another one.
    let places = ["/usr/sbin", "/usr/bin"].into_iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    let found = places.map(|place| place.join(name)).find(|program| program.exists());
    found.unwrap_or_else(|| {
        panic!("{name} is not installed (Debian package {package}; tests/run installs it)")
    })
}

/// A server as a child of the test, ended with it.
pub struct RealServer {
    child: Child,
    pub ports: Vec<u16>,
}

impl RealServer {
    /// Starts a server that listens at `count` ports, which `command` is told. It runs in the foreground and writes
    /// nothing outside of `dir`.
    #[track_caller]
    pub fn start(dir: &TempDir, count: usize, command: impl Fn(&[u16]) -> Command) -> RealServer {
        // A free port may be taken by somebody else before the server has it: then others are tried.
        for _ in 0..5 {
            let held: Vec<TcpListener> =
                (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
            let ports: Vec<u16> = held.iter().map(|held| held.local_addr().unwrap().port()).collect();
            drop(held);
            let errors = std::fs::File::create(dir.join("errors")).unwrap();
            let mut command = command(&ports);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
            let child = command.spawn().unwrap_or_else(|e| panic!("{:?}: {e}", command.get_program()));
            let mut server = RealServer { child, ports };
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && server.child.try_wait().unwrap().is_none() {
                if server.ports.iter().all(|&port| TcpStream::connect(("127.0.0.1", port)).is_ok()) {
                    return server;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let errors = std::fs::read_to_string(dir.join("errors")).unwrap_or_default();
        panic!("the server does not start:\n{errors}");
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        use nix::sys::signal::{Signal, kill};
        let _ = kill(nix::unistd::Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        see_off(&mut self.child);
    }
}

/// nginx with these server blocks.
#[track_caller]
pub fn nginx(dir: &TempDir, count: usize, servers: impl Fn(&[u16]) -> String) -> RealServer {
    RealServer::start(dir, count, |ports| {
        let path = dir.path().display();
        let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
        let conf = format!(
            "daemon off;
{user}
worker_processes 1;
pid {path}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    types {{ text/html html shtml; text/plain txt; text/css css; application/octet-stream bin; }}
    log_format said '$server_port $request_method $request_uri $status $ssl_protocol $ssl_session_reused';
    access_log {path}/access said;
    client_body_temp_path {path}/tmp/body;
    proxy_temp_path {path}/tmp/proxy;
    fastcgi_temp_path {path}/tmp/fastcgi;
    uwsgi_temp_path {path}/tmp/uwsgi;
    scgi_temp_path {path}/tmp/scgi;
    ssl_certificate {path}/cert.pem;
    ssl_certificate_key {path}/key.pem;
    root {path}/root;
    index index.html;
    absolute_redirect off;
    {}
}}
",
            servers(ports)
        );
        let conf = dir.write("nginx.conf", conf);
        let mut command = Command::new(program("nginx", "nginx-light"));
        command.arg("-p").arg(dir.path()).arg("-c").arg(conf).args(["-e", "stderr"]);
        command
    })
}

// Curl ------------------------------------------------------------------------------------------------------

/// What curl got.
pub struct Curled {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Curled {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// `curl --compressed` over HTTP/1.1, with the authority of the directory.
#[track_caller]
pub fn curl(dir: &TempDir, url: &str, more: &[String]) -> Curled {
    let port = url.split(':').nth(2).and_then(|rest| rest.split('/').next()).expect("a URL with a port");
    let mut command = Command::new(program("curl", "curl"));
    command.args(["--silent", "--show-error", "--http1.1", "--compressed", "--max-time", "30"]);
    command.args(["--resolve", &format!("{NAME}:{port}:127.0.0.1")]);
    command.arg("--cacert").arg(dir.join("ca.pem")).arg("--dump-header").arg(dir.join("curl.head"));
    command.args(more).arg(url).stdin(Stdio::null());
    let run = Running::start(&mut command).wait(PATIENCE);
    assert_eq!(run.status.code(), Some(0), "curl {url}: {}", run.stderr);
    let head = std::fs::read_to_string(dir.join("curl.head")).unwrap();
    let status = head.split(' ').nth(1).unwrap().trim().parse().unwrap();
    Curled { status, head, body: run.stdout }
}

// Crawls ----------------------------------------------------------------------------------------------------

/// Flags of every crawl here.
pub fn flags(dir: &TempDir) -> Vec<String> {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let flags = ["--hosts-file", &path("hosts"), "--ca-file", &path("ca.pem"), "--req-host-per-sec", "0"];
    flags.map(str::to_string).to_vec()
}

/// The newest record of every URL.
#[track_caller]
pub fn newest(data: &Path) -> BTreeMap<String, Listed> {
    records(data).into_iter().map(|record| (record.url.clone(), record)).collect()
}

/// The lines of a crawl log about a URL.
pub fn log_lines(data: &Path, url: &str) -> Vec<String> {
    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    log.lines().filter(|line| line.split(' ').nth(3) == Some(url)).map(str::to_string).collect()
}
