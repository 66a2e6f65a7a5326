use super::command::MasterData;
use crate::base::{rfc3339, shown};
use crate::commands::shared::{Failure, RunningCrawl, counted, now_ms, tell};
use crate::engine::{MasterStatus, Neighbour, NodeStatus, ServerStatus};
use crate::master::keeping::MasterView;
use crate::store_server::Holder;
use clap::Args;
use serde::Serialize;
use std::path::Path;

/// Say how a master is doing, or how the last one left its directory
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master status --data ./nephila-master\n  nephila master status --data ./nephila-master --json\n\nExit status 0: a master runs there; 1: none does, and its files are read."
)]
pub struct StatusArgs {
    #[command(flatten)]
    data: MasterData,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    running: bool,
    data: String,
    pid: Option<u32>,
    seconds: Option<f64>,
    /// Of the last ten seconds.
    lines_per_second: Option<f64>,
    waiting_for: Option<String>,
    #[serde(flatten)]
    status: Option<MasterStatus>,
}

impl StatusArgs {
    pub fn run(self) -> Result<(), Failure> {
        let path = &self.data.path;
        if !path.is_dir() {
            let (path, mend) = (path.display(), "name the data directory of a master with --data");
            return Err(Failure::CannotRun(format!("{path} is no directory ({mend})")));
        }
        let asked: Option<NodeStatus> = match RunningCrawl::at(path)? {
            Some(mut running) => running.get("/api/v1/status")?,
            None => None,
        };
        let holder = Holder::of(path)?;
        let found = match asked {
            Some(node) => Found {
                running: true,
                data: path.display().to_string(),
                pid: Some(node.pid),
                seconds: Some(node.seconds),
                lines_per_second: Some(node.pages_per_second),
                waiting_for: node.waiting_for,
                status: node.dealing.map(|status| *status),
            },
            None => Found {
                running: holder.is_some(),
                data: path.display().to_string(),
                pid: holder.and_then(|holder| holder.pid),
                seconds: None,
                lines_per_second: None,
                waiting_for: None,
                status: left(path)?,
            },
        };
        tell(&found, self.json, Found::text)?;
        if found.running { Ok(()) } else { Err(Failure::No(String::new())) }
    }
}

/// What the files of a master say.
fn left(data: &Path) -> Result<Option<MasterStatus>, Failure> {
    let Some(mut view) = MasterView::open(data)? else { return Ok(None) };
    let (epoch, at_s) = view.epoch();
    let (counts, totals, states) = (view.counts(), view.totals(), view.states().clone());
    let loads = view.map().loads().clone();
    let servers = view.queues().map(|(server, queue)| ServerStatus {
        id: server.0,
        state: states.get(&server.0).map_or(String::new(), |state| state.name().to_string()),
        load: loads.per_hour(server, at_s),
        queue: queue.next_seq().saturating_sub(queue.position()),
        queue_bytes: queue.bytes().1,
        position: queue.position(),
        next: queue.next_seq(),
        ..ServerStatus::default()
    });
    Ok(Some(MasterStatus {
        epoch,
        epoch_at_s: u64::from(at_s),
        life: totals,
        epochs: totals.epochs,
        files: totals.files,
        lines: totals.lines,
        rejected: totals.rejected,
        sent: totals.sent,
        expired_hits: totals.hits_expired,
        hits_in: totals.hits_in,
        hits_sent: totals.hits_sent,
        rows: counts.kept,
        hits_waiting: counts.hits_waiting,
        held: counts.held,
        servers: servers.collect(),
        ..MasterStatus::default()
    }))
}

impl Found {
    fn text(&self) -> String {
        let state = match (self.running, self.pid, self.seconds) {
            (false, ..) => "not running".to_string(),
            (true, Some(pid), Some(seconds)) => format!("running for {seconds:.0} s, as pid {pid}"),
            (true, Some(pid), None) => {
                format!("in use by pid {pid}, which does not answer: it starts or ends")
            }
            (true, None, _) => "in use by another nephila process".to_string(),
        };
        let mut rows = vec![("data", self.data.clone()), ("state", state)];
        rows.extend(self.waiting_for.clone().map(|what| ("waits", what)));
        if let Some(status) = &self.status {
            rows.extend(rows_of(status, self.lines_per_second));
        }
        rows.iter().map(|(name, said)| format!("{name:<10} {}\n", shown(said, 2_000))).collect()
    }
}

fn rows_of(status: &MasterStatus, lines_per_second: Option<f64>) -> Vec<(&'static str, String)> {
    let epoch = match status.epoch {
        0 => "none yet".to_string(),
        epoch => {
            let ago = (now_ms() / 1_000).saturating_sub(status.epoch_at_s);
            format!("{epoch}, {ago} s ago ({})", rfc3339(status.epoch_at_s * 1_000))
        }
    };
    let life = &status.life;
    let since_start = lines_per_second.map_or(String::new(), |pace| {
        let [lines, sent] =
            [(status.lines, "line"), (status.sent, "URL")].map(|(it, noun)| counted(it, noun));
        format!("; since start {lines}, {sent} sent, {pace:.0} lines a second over the last 10 s")
    });
    let files = counted(life.files, "file");
    let capped = if life.hits_capped == 0 { String::new() } else { format!(", {} capped", life.hits_capped) };
    let mut rows = vec![
        ("epoch", epoch),
        (
            "spool",
            format!(
                "{} waiting or being taken, lag {:.1} s",
                counted(status.files_waiting, "file"),
                status.lag_s
            ),
        ),
        ("lines", format!("{} in all, of {files}, {} rejected{since_start}", life.lines, life.rejected)),
        (
            "URLs",
            format!(
                "{} sent in all, {} held, {} of current_log",
                life.sent,
                status.held,
                counted(status.rows, "row")
            ),
        ),
        (
            "hits",
            format!(
                "{} in all: {} sent, {} wait, {} expired, {} rejected{capped}",
                life.hits_in, life.hits_sent, status.hits_waiting, life.hits_expired, life.hits_rejected
            ),
        ),
    ];
    rows.extend(status.new_domains_wait.clone().map(|why| ("new", format!("domains wait: {why}"))));
    rows.extend(status.servers.iter().map(|server| ("server", server_text(server))));
    let neighbours = [("peer", &status.peer), ("database", &status.database)];
    rows.extend(neighbours.into_iter().filter_map(|(name, it)| Some((name, neighbour_text(it.as_ref()?)))));
    rows
}

fn server_text(server: &ServerStatus) -> String {
    let ServerStatus { id, state, queue, position, next, load, .. } = server;
    let pending = server.pending.map_or(String::new(), |pending| format!(", {pending} pending there"));
    let node = match (&server.node, server.silent_s) {
        (Some(node), Some(silent_s)) => format!("; {node}, heard {silent_s:.0} s ago"),
        _ => "; no node".to_string(),
    };
    // What its settings say of it is known to a master that runs.
    let state = if state.is_empty() { String::new() } else { format!(" {state}") };
    format!("{id}{state}: {queue} in the queue ({position} of {next} had), {load:.0} URLs/h{pending}{node}")
}

fn neighbour_text(neighbour: &Neighbour) -> String {
    let Neighbour { address, is_there, since_s, cause, agrees } = neighbour;
    let since = if *since_s == 0 { String::new() } else { format!(" since {}", rfc3339(since_s * 1_000)) };
    match (is_there, cause) {
        (true, _) if *agrees == Some(false) => format!("{address} answers{since}, and deals by other terms"),
        (true, _) => format!("{address} answers{since}"),
        (false, Some(cause)) => format!("{address} does not answer{since}: {cause}"),
        (false, None) => format!("{address} has not answered yet"),
    }
}
