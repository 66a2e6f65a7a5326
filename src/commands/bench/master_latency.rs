use super::super::demo_master::{Player, free_address};
use super::sampler::ticks_us;
use crate::base::push_decimal;
use crate::commands::shared::{Failure, now_ms};
use crate::proto::reflog::Stamp;
use crate::storage::make_data_directory;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Files into the spool of a master, one after the other, until a node has each on disk.
pub(super) struct Latency<'a> {
    pub dir: &'a Path,
    pub files: u32,
    pub lines: u64,
}

#[derive(Serialize)]
pub(super) struct LatencyReport {
    files: u32,
    lines: u64,
    /// URLs of a file, all of which are sent.
    urls: u64,
    /// From a file's name in the spool to the node's word that all of it is durable.
    p50_s: f64,
    p99_s: f64,
    max_s: f64,
    master_cpu_us_per_line: f64,
    node_cpu_us_per_url: f64,
    /// Of the thread that has the doc index.
    index_cpu_us_per_url: f64,
}

const LINES_PER_URL: u64 = 5;
const HALF: u64 = 2;
const HOSTS: u64 = 1_000;
/// Of ten URLs of a file one is new to the node.
const NEW: u64 = 10;
const LOOK: Duration = Duration::from_millis(1);
/// A file that is not through by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);

impl Latency<'_> {
    pub fn run(&self) -> Result<LatencyReport, Failure> {
        let urls = self.urls();
        let spool = self.dir.join("spool");
        make_data_directory(&spool)?;
        let listen = free_address()?;
        // Nobody listens there: hosts of which nothing is fetched leave the index alone.
        let closed = free_address()?;
        let port = closed.rsplit(':').next().unwrap_or_default().to_string();
        let (config, hosts) = (self.dir.join("master.toml"), self.dir.join("hosts"));
        let quoted = |path: &Path| serde_json::Value::from(path.display().to_string()).to_string();
        let (data, spool_name) = (quoted(&self.dir.join("master")), quoted(&spool));
        let text = format!(
            "[master]\nlisten = \"{listen}\"\ndata = {data}\nspool = {spool_name}\n[[server]]\nid = 1\n"
        );
        fs::write(&config, text)?;
        fs::write(&hosts, (0..HOSTS).map(|n| format!("127.0.0.1 d{n}.test\n")).collect::<String>())?;
        let [config, hosts, node_data] =
            [config, hosts, self.dir.join("node")].map(|path| path.display().to_string());
        let mut master = Player::start("master", self.dir, &["master", "run", "--config", &config])?;
        let from = ["crawl", "--master", &listen, "--server", "1", "--depth", "0", "--data", &node_data];
        let how = ["--hosts-file", &hosts, "--allow-net", "127.0.0.0/8", "--req-host-per-sec", "0.01"];
        let mut node = Player::start("node", self.dir, &[&from[..], &how[..]].concat())?;
        let position = master.data.join("queue/1/position");
        let mut seconds = Vec::new();
        let mut before = Used::default();
        // The first brings what is known to the others.
        for file in 0..=self.files {
            let took = self.file(file, &port, &spool, &position, [&mut master, &mut node])?;
            match file {
                0 => before = Used::of(&master, &node),
                _ => seconds.push(took),
            }
        }
        let after = Used::of(&master, &node);
        node.stop();
        master.stop();
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() as f64 * share).ceil() as usize).max(1) - 1];
        let files = f64::from(self.files);
        let per = |used: u64, before: u64, count: u64| (used - before) as f64 / files / count as f64;
        Ok(LatencyReport {
            files: self.files,
            lines: self.lines,
            urls,
            p50_s: at(0.5),
            p99_s: at(0.99),
            max_s: at(1.0),
            master_cpu_us_per_line: per(after.master_us, before.master_us, self.lines),
            node_cpu_us_per_url: per(after.node_us, before.node_us, urls),
            index_cpu_us_per_url: per(after.index_us, before.index_us, urls),
        })
    }

    fn urls(&self) -> u64 {
        (self.lines * HALF / LINES_PER_URL).max(1)
    }

    /// Puts a file in, and waits for the node. Says how many seconds that took.
    fn file(
        &self,
        file: u32,
        port: &str,
        spool: &Path,
        position: &Path,
        players: [&mut Player; 2],
    ) -> Result<f64, Failure> {
        let name = format!("{file}.reflog");
        let made = self.dir.join(&name);
        fs::write(&made, self.text(file, port))?;
        let wanted = (u64::from(file) + 1) * self.urls();
        let began = Instant::now();
        fs::rename(&made, spool.join(&name))?;
        while read_position(position) < wanted {
            if began.elapsed() > PATIENCE {
                for player in players {
                    player.ask()?;
                }
                let (had, dir) = (read_position(position), self.dir.display());
                return Err(Failure::CannotRun(format!("the node has {had} of {wanted} URLs (see {dir})")));
            }
            sleep(LOOK);
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Every URL has another tag in each file, so that it is sent.
    fn text(&self, file: u32, port: &str) -> Vec<u8> {
        let (urls, file) = (self.urls(), u64::from(file));
        let time = Stamp::from_s(u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX)).digits();
        let mut text = Vec::with_capacity(self.lines as usize * 80);
        for line in 0..self.lines {
            let url = line % urls;
            let of_file = if url.is_multiple_of(NEW) { file } else { 0 };
            text.extend_from_slice(b"20261116\t5\t");
            text.extend_from_slice(&time);
            text.extend_from_slice(b"\t4599\thttp://d");
            push_decimal(&mut text, url % HOSTS);
            text.extend_from_slice(b".test:");
            text.extend_from_slice(port.as_bytes());
            text.extend_from_slice(b"/index.php?newsid=");
            push_decimal(&mut text, of_file * urls + url);
            text.extend_from_slice(b"\t1\t");
            push_decimal(&mut text, file);
            text.push(b'\n');
        }
        text
    }
}

/// Below which number the node has everything on disk.
fn read_position(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// CPU time.
#[derive(Clone, Copy, Default)]
struct Used {
    master_us: u64,
    node_us: u64,
    index_us: u64,
}

impl Used {
    fn of(master: &Player, node: &Player) -> Used {
        Used {
            master_us: threads_us(master.pid(), None),
            node_us: threads_us(node.pid(), None),
            index_us: threads_us(node.pid(), Some("index")),
        }
    }
}

/// CPU time of the threads of a process, or of those with a name.
fn threads_us(pid: u32, name: Option<&str>) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let tasks = tasks.flatten().map(|task| task.path());
    tasks
        .filter(|task| name.is_none_or(|name| read(task.join("comm")).trim() == name))
        .filter_map(|task| ticks_us(&read(task.join("stat"))))
        .sum()
}

impl LatencyReport {
    pub fn text(&self) -> String {
        let LatencyReport { files, lines, urls, p50_s, p99_s, max_s, .. } = self;
        let LatencyReport { master_cpu_us_per_line, node_cpu_us_per_url, index_cpu_us_per_url, .. } = self;
        format!(
            "{files} files of {lines} lines and {urls} URLs, nine of ten of them known to the node\n\
             in the spool → durable in the node's index   p50 {p50_s:.3} s, p99 {p99_s:.3} s, at most {max_s:.3} s\n\
             CPU of the master    {master_cpu_us_per_line:.2} µs a line\n\
             CPU of the node      {node_cpu_us_per_url:.2} µs a URL, {index_cpu_us_per_url:.2} µs of it on the index thread\n"
        )
    }
}
