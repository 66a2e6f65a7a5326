use super::crawl_process::CrawlProcess;
use super::record::RecordArgs;
use super::rounds::median;
use super::stage::{Stage, is_installed};
use crate::commands::shared::{CrawlReport, Failure, on_cores};
use crate::store_server::Reader;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A crawl of a directory of pages that nginx serves, beside wget2, which follows the same links.
pub(super) struct SiteBench<'a> {
    pub site: &'a Path,
    pub start: &'a str,
    pub connections: u8,
    pub rounds: usize,
    pub data: Option<&'a Path>,
}

#[derive(Serialize)]
struct SiteBenchReport {
    pages: usize,
    /// As fetched.
    page_bytes: f64,
    rounds: usize,
    connections: u8,
    cpu_us_per_page: f64,
    compression: f64,
    syscalls_per_page: f64,
    wget2: Option<WgetReport>,
    /// CPU of a page over wget2's, within each round: the median.
    ratio_to_wget2: Option<f64>,
    every_round: Vec<Round>,
}

#[derive(Serialize)]
struct WgetReport {
    pages: usize,
    cpu_us_per_page: f64,
    /// Pages that only one of the two has.
    only_ours: usize,
    only_its: usize,
}

/// CPU in microseconds, of a page.
#[derive(Serialize)]
struct Round {
    crawl: f64,
    wget2: Option<f64>,
}

/// What wget2 brought.
struct Got {
    pages: BTreeSet<String>,
    cpu_us: f64,
}

const NGINX: [&str; 2] = ["nginx", "/usr/sbin/nginx"];
/// For nginx to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl SiteBench<'_> {
    pub fn run(&self, record: &RecordArgs) -> Result<(), Failure> {
        let stage = Stage::passing(self.data)?;
        let nginx = Nginx::start(&stage, self.site)?;
        let url = format!("http://{}/{}", nginx.at, self.start.trim_start_matches('/'));
        let has_wget2 = is_installed("wget2", "--version");
        let (mut crawls, mut got, mut every_round) = (Vec::new(), None, Vec::new());
        for _ in 0..self.rounds.max(1) {
            let mut crawl = CrawlProcess::of_site(&stage, &url, self.connections)?;
            let crawled = crawl.run()?;
            let its = if has_wget2 { Some(wget2(&stage, &url)?) } else { None };
            every_round.push(Round {
                crawl: crawled.fetches.cpu_us_per_page,
                wget2: its.as_ref().map(|its| its.cpu_us / its.pages.len().max(1) as f64),
            });
            got = its.or(got);
            crawls.push(crawled);
        }
        let ours = stored_pages(&stage.dir.join("crawl"), &nginx.at)?;
        record.tell(&self.report(&crawls, &ours, got.as_ref(), every_round), SiteBenchReport::text)
    }

    fn report(
        &self,
        crawls: &[CrawlReport],
        ours: &BTreeSet<String>,
        got: Option<&Got>,
        every_round: Vec<Round>,
    ) -> SiteBenchReport {
        let of = |value: fn(&CrawlReport) -> f64| median(crawls.iter().map(value));
        let ratios = || every_round.iter().filter_map(|round| Some(round.crawl / round.wget2?));
        let wget2 = got.map(|got| WgetReport {
            pages: got.pages.len(),
            cpu_us_per_page: median(every_round.iter().filter_map(|round| round.wget2)),
            only_ours: ours.difference(&got.pages).count(),
            only_its: got.pages.difference(ours).count(),
        });
        SiteBenchReport {
            pages: ours.len(),
            page_bytes: of(|crawl| crawl.fetches.bytes as f64 / crawl.fetches.success.max(1) as f64),
            rounds: every_round.len(),
            connections: self.connections,
            cpu_us_per_page: of(|crawl| crawl.fetches.cpu_us_per_page),
            compression: of(|crawl| crawl.fetches.bytes as f64 / crawl.fetches.stored_bytes.max(1) as f64),
            syscalls_per_page: of(|crawl| crawl.syscalls_per_page),
            ratio_to_wget2: wget2.as_ref().map(|_| median(ratios())),
            wget2,
            every_round,
        }
    }
}

impl SiteBenchReport {
    fn text(&self) -> String {
        let Self { pages, page_bytes, rounds, connections, cpu_us_per_page, .. } = self;
        let text = format!(
            "{pages} pages of {page_bytes:.0} bytes, {connections} connections, median of {rounds} rounds\n\n  \
             CPU µs per page   {cpu_us_per_page:>9.1}   (schedule, fetch, parse, links, LZ4, store)\n  \
             compression {:.2}:1, {:.2} system calls of the shard per page\n",
            self.compression, self.syscalls_per_page
        );
        let (Some(wget2), Some(ratio)) = (&self.wget2, self.ratio_to_wget2) else {
            return text + "\n  wget2 is not installed: nothing to compare with (Debian package wget2)\n";
        };
        let WgetReport { pages, cpu_us_per_page, only_ours, only_its } = wget2;
        let same = match (only_ours, only_its) {
            (0, 0) => "the same ones".to_string(),
            _ => format!("{only_ours} of ours are not among them, {only_its} are not among ours"),
        };
        text + &format!(
            "\n  wget2, same server, same core: {cpu_us_per_page:.1} µs CPU per page; {pages} pages, {same}\n  \
             a crawled page costs {ratio:.3} x one of wget2\n"
        )
    }
}

/// nginx on the core of the farm, which serves a directory.
struct Nginx {
    child: Child,
    at: SocketAddr,
}

impl Nginx {
    fn start(stage: &Stage, site: &Path) -> Result<Nginx, Failure> {
        let site = site.canonicalize().map_err(|e| Failure::CannotRun(format!("{}: {e}", site.display())))?;
        let program = NGINX.into_iter().find(|program| is_installed(program, "-v"));
        let program = program.ok_or_else(|| {
            Failure::cannot_run("nginx is not installed: it serves the site (Debian package nginx)")
        })?;
        // A free one; nobody else takes it in this moment on a machine for benches.
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let conf = stage.dir.join("nginx.conf");
        fs::write(&conf, settings(&stage.dir, &site, at))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(&stage.dir).arg("-c").arg(&conf);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = on_cores(&[stage.farm_core], || command.spawn())??;
        let mut nginx = Nginx { child, at };
        let begun = Instant::now();
        while TcpStream::connect(at).is_err() {
            if begun.elapsed() > PATIENCE || nginx.child.try_wait()?.is_some() {
                let said = fs::read_to_string(stage.dir.join("nginx.log")).unwrap_or_default();
                let why = said.lines().last().unwrap_or("it says nothing").to_string();
                return Err(Failure::CannotRun(format!("nginx does not serve {}: {why}", site.display())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process, which ends when it is killed.
fn settings(dir: &Path, site: &Path, at: SocketAddr) -> String {
    let [dir, site] = [dir, site].map(|path| path.display().to_string());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {dir}/nginx-{name}; "))
        .collect();
    format!(
        "user root;\ndaemon off;\nmaster_process off;\npid {dir}/nginx.pid;\nerror_log {dir}/nginx.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  {temporary}\n  access_log off;\n  types {{ text/html html; text/css css; text/javascript js; }}\n  \
         keepalive_requests 100000000;\n  server {{ listen {at}; root \"{site}\"; }}\n}}\n"
    )
}

/// All pages that links lead to, into files.
fn wget2(stage: &Stage, url: &str) -> Result<Got, Failure> {
    let dir = stage.dir.join("wget2");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let mut command = Command::new("wget2");
    command.args(["--recursive", "--level=inf", "--quiet", "--no-host-directories", "--no-robots"]);
    command.args(["--accept", "*.html", "--max-threads=1", "--http2=off"]);
    command.arg("--directory-prefix").arg(&dir).arg(url);
    let ran = stage.peer(command)?;
    let mut pages = BTreeSet::new();
    files_in(&dir, &dir, &mut pages)?;
    if pages.is_empty() {
        return Err(ran.unread("wget2"));
    }
    Ok(Got { pages, cpu_us: ran.cpu_us })
}

/// HTML files by their paths.
fn files_in(root: &Path, folder: &Path, found: &mut BTreeSet<String>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            files_in(root, &path, found)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            found.insert(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}

/// HTML pages of a store by their paths.
fn stored_pages(data: &Path, at: &SocketAddr) -> Result<BTreeSet<String>, Failure> {
    let origin = format!("http://{at}/");
    let mut pages = BTreeSet::new();
    Reader::open(data)?.each(|located, _| {
        let record = located.record;
        let path = record.url.strip_prefix(&origin).unwrap_or(&record.url);
        let path = path.split('?').next().unwrap_or(path);
        if record.success && record.status == 200 && path.ends_with(".html") {
            pages.insert(path.to_string());
        }
    })?;
    Ok(pages)
}
