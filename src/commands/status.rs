use super::index::is_pending;
use super::shared::{
    DataArg, Failure, OwnedView, RunNote, RunningCrawl, Standing, counted, now_ms, slow_commits, tell,
};
use crate::base::{rfc3339, shown};
use crate::doc_index::DocState;
use crate::engine::{NodeState, NodeStatus};
use crate::master::keeping::MasterView;
use crate::proto::warc::read_date;
use crate::store_server::Holder;
use clap::Args;
use nix::sys::statvfs::statvfs;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Say how a crawl is doing, or how the last one in a directory ended
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila status --data ./example\n  nephila status --data ./example --json\n\nExit status 0: a process runs there; 1: none does, and its files are read."
)]
pub struct StatusArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    running: bool,
    data: String,
    /// Of a crawl that answers.
    #[serde(flatten)]
    node: Option<NodeStatus>,
    /// Of a process that does not: it starts or ends, or is no crawl.
    #[serde(flatten)]
    silent: Option<Silent>,
    /// Where nothing runs.
    #[serde(flatten)]
    left: Option<Left>,
    disk: Option<Disk>,
    /// That commits take far longer than the disk was measured to.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_commits: Option<String>,
}

#[derive(Serialize)]
struct Silent {
    pid: Option<u32>,
    state: &'static str,
}

/// What a crawl left behind.
#[derive(Serialize, Default)]
struct Left {
    state: &'static str,
    known: u64,
    /// To be fetched, those among them that wait until they are due, and when the next is.
    pending: u64,
    waiting: u64,
    next_due: Option<String>,
    success: u64,
    errors: u64,
    #[serde(skip)]
    excluded: u64,
    /// For other nodes of the cluster to fetch.
    foreign: u64,
    last_run: Option<RunNote>,
}

#[derive(Serialize)]
struct Disk {
    free_bytes: u64,
    total_bytes: u64,
}

impl StatusArgs {
    pub fn run(self) -> Result<(), Failure> {
        let data = &self.data.path;
        let mut found = Found {
            running: true,
            data: data.display().to_string(),
            node: None,
            silent: None,
            left: None,
            disk: Disk::of(data),
            slow_commits: None,
        };
        found.node = match RunningCrawl::at(data)? {
            Some(mut crawl) => crawl.get("/api/v1/status")?,
            None => None,
        };
        found.slow_commits = found.node.as_ref().and_then(|node| slow_commits(data, node.commits));
        if found.node.is_none() {
            match Holder::of(data)? {
                Some(Holder { pid }) => found.silent = Some(Silent { pid, state: "silent" }),
                None if MasterView::is_at(data) => {
                    let text = format!(
                        "no master runs in {0} (nephila master status --data {0} tells more)",
                        data.display()
                    );
                    return Err(Failure::No(text));
                }
                None => {
                    found.running = false;
                    found.left = Some(Left::of(&self.data.view_of_pending()?, data)?);
                }
            }
        }
        tell(&found, self.json, Found::text)?;
        match found.running {
            true => Ok(()),
            false => Err(Failure::No(String::new())),
        }
    }
}

impl Disk {
    fn of(data: &Path) -> Option<Disk> {
        let found = statvfs(data).ok()?;
        let block = found.fragment_size();
        Some(Disk { free_bytes: found.blocks_available() * block, total_bytes: found.blocks() * block })
    }
}

impl Left {
    fn of(owned: &OwnedView, data: &Path) -> io::Result<Left> {
        let now_s = now_ms() / 1_000;
        let mut next_due_s = u32::MAX;
        let mut left = Left { state: "not running", last_run: RunNote::read(data), ..Left::default() };
        owned.view.each(|_, discovered, row| {
            left.known += 1;
            let Standing::Here(row) = owned.standing(&discovered.url, row) else {
                left.foreign += 1;
                return ControlFlow::Continue(());
            };
            let row = row.as_ref();
            let due_s = row.map_or(0, |row| row.due_s);
            let is_waiting = due_s > 0 && u64::from(due_s) > now_s;
            left.waiting += u64::from(is_waiting);
            left.pending += u64::from(is_waiting || is_pending(row, now_s));
            if is_waiting {
                next_due_s = next_due_s.min(due_s);
            }
            match row.map(|row| row.state) {
                Some(DocState::Success) => left.success += 1,
                Some(DocState::Error) => left.errors += 1,
                Some(DocState::Excluded) => left.excluded += 1,
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        left.next_due = (next_due_s < u32::MAX).then(|| rfc3339(u64::from(next_due_s) * 1_000));
        Ok(left)
    }

    fn ended(&self) -> String {
        let Some(RunNote { started_at, ended_at, ended, pages, .. }) = &self.last_run else {
            return "not running".to_string();
        };
        match (ended_at, ended) {
            (Some(at), Some(how)) => {
                format!(
                    "not running; the last crawl ended {} ({at}) with {}: {how}",
                    ago(at),
                    counted(*pages, "page")
                )
            }
            _ => {
                format!("not running; the last crawl began {} ({started_at}) and was killed", ago(started_at))
            }
        }
    }
}

impl Found {
    fn text(&self) -> String {
        let mut rows = vec![("data", self.data.clone())];
        if let Some(Silent { pid, .. }) = &self.silent {
            let by = Holder { pid: *pid };
            rows.push((
                "state",
                format!("in use by {by}, which does not answer: it starts or ends, or is no crawl"),
            ));
        }
        match &self.node {
            Some(node) if node.dealing.is_some() => {
                let (ran, pid) = (span(node.seconds as u64), node.pid);
                rows.push(("state", format!("a master, running for {ran}, as pid {pid}")));
                rows.push(("more", format!("nephila master status --data {}", self.data)));
            }
            Some(node) => rows.extend(running_rows(node)),
            None => {}
        }
        if let Some(left) = &self.left {
            let Left { known, pending, waiting, success, errors, excluded, foreign, .. } = left;
            let (errors, excluded) = (counted(*errors, "error"), excluded_text(*excluded));
            rows.push(("state", left.ended()));
            let others = match foreign {
                0 => String::new(),
                foreign => format!(", {foreign} for other nodes to fetch"),
            };
            let due = due_text(*waiting, left.next_due.as_deref());
            rows.push((
                "URLs",
                format!("{known} known, {pending} pending{due}, {success} had, {errors}{excluded}{others}"),
            ));
        }
        if let Some(Disk { free_bytes, total_bytes }) = &self.disk {
            rows.push(("disk", format!("{:.1} GB free of {:.1} GB", gb(*free_bytes), gb(*total_bytes))));
        }
        rows.extend(self.slow_commits.clone().map(|text| ("commits", text)));
        rows.iter().map(|(name, said)| format!("{name:<10} {}\n", shown(said, 2_000))).collect()
    }
}

fn running_rows(node: &NodeStatus) -> Vec<(&'static str, String)> {
    let NodeStatus { pid, since, pages, success, errors, open, hosts, .. } = node;
    let state = match node.state {
        NodeState::Paused => "paused: no new requests go out until nephila resume; running",
        state => state.name(),
    };
    let ran = span(node.seconds as u64);
    let mut rows = vec![
        ("state", format!("{state} for {ran}, since {since}, as pid {pid}")),
        ("pages", format!("{pages} ({success} with success, {})", counted(*errors, "error"))),
        ("rate", format!("{:.1} pages/s over the last 10 s", node.pages_per_second)),
        ("requests", format!("{open} open")),
    ];
    let mut waits: Vec<(&String, &u64)> = node.waits.iter().collect();
    waits.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let waits: Vec<String> = waits.iter().map(|(why, count)| format!("{why} {count}")).collect();
    let waits = match (node.state, waits.is_empty()) {
        (NodeState::Paused, _) => {
            "none is asked while the crawl is paused (nephila resume goes on)".to_string()
        }
        (_, true) => "they wait for: none waits".to_string(),
        (_, false) => format!("they wait for: {}", waits.join(", ")),
    };
    rows.push(("hosts", format!("{hosts} with something to fetch; {waits}")));
    if let (Some(known), Some(pending), Some(waiting)) = (node.known, node.pending, node.waiting) {
        let due = due_text(waiting, node.next_due.as_deref());
        rows.push(("URLs", format!("{known} known, {pending} pending{due}")));
    }
    rows.extend(node.master.as_ref().map(|master| ("master", master.said())));
    rows.extend(node.cluster.as_ref().map(|cluster| ("cluster", cluster.said())));
    rows.extend(node.waiting_for.clone().map(|what| ("waits", what)));
    rows
}

fn due_text(waiting: u64, next: Option<&str>) -> String {
    next.map_or(String::new(), |next| format!(" ({waiting} wait, the next until {next})"))
}

fn excluded_text(excluded: u64) -> String {
    if excluded > 0 { format!(", {excluded} excluded") } else { String::new() }
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// How long ago a time in RFC 3339 was.
fn ago(at: &str) -> String {
    let then = read_date(at).unwrap_or_else(now_ms);
    format!("{} ago", span(now_ms().saturating_sub(then) / 1_000))
}

fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
