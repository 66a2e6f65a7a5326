//! One epoch into a directory that keeps everything: steps (1) to (7).

use super::command::view_of;
use super::log::{write_current_log, write_filtered_text};
use super::once::NewText;
use crate::base::{grouped, plural};
use crate::commands::settings::{Before, layered};
use crate::commands::shared::{Failure, counted, now_ms, say, tell_summary};
use crate::engine::{Threads, join_rules, keep_pair_terms, master_rules};
use crate::master::args::Args;
use crate::master::epoch::JoinRules;
use crate::master::keeping::{Committed, Master, MasterRules};
use crate::master::map::Server;
use crate::master::{EpochCounts, InputFile};
use crate::proto::reflog::Stamp;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// What an epoch that is kept goes by.
pub(super) struct OnceData {
    pub path: PathBuf,
    /// Servers 1 to this one get URLs.
    pub servers: u16,
    /// A file that says it instead.
    pub config: Option<PathBuf>,
    pub rules: JoinRules,
    pub workers: usize,
    /// Where both logs are written as texts, too.
    pub out: Option<PathBuf>,
}

/// What came of it.
#[derive(Serialize)]
struct OnceTold {
    epoch: u64,
    files: u64,
    /// Files that were taken before.
    known: u64,
    #[serde(flatten)]
    counts: EpochCounts,
    domains_new: u64,
    servers: Vec<ServerTold>,
    cpu_s: f64,
    cpu_s_per_million_lines: Option<f64>,
}

#[derive(Serialize)]
struct ServerTold {
    server: u16,
    urls: u64,
    held: u64,
}

/// Makes the epoch that was left unfinished, if there is one, and then one of the files.
pub(super) fn once_with_data(
    files: &[PathBuf],
    now: Option<Stamp>,
    mut data: OnceData,
    json: bool,
) -> Result<(), Failure> {
    for file in files {
        InputFile::new(file).open().map_err(Failure::usage)?;
    }
    let rules = data.master_rules()?;
    if let Some(out) = &data.out {
        std::fs::create_dir_all(out).map_err(|e| Failure::CannotRun(format!("{}: {e}", out.display())))?;
    }
    let now_s = now.map_or(u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX), Stamp::s);
    let (mut master, told) = Master::open(&data.path, rules)?;
    told.iter().for_each(say);
    let began = cpu_s();
    let mut made = Vec::new();
    loop {
        let (committed, files_taken) = match epoch(&mut master, files, now_s, &data)? {
            Some((committed, _, true)) => {
                made.push(committed.epoch);
                continue;
            }
            Some((committed, taken, _)) => {
                made.push(committed.epoch);
                (committed, taken)
            }
            None => (
                Committed { epoch: master.epoch().0, counts: stands(&data.path)?, ..Committed::default() },
                0,
            ),
        };
        let known = files.len() as u64 - files_taken;
        let cpu_s = cpu_s() - began;
        let lines = committed.counts.lines;
        let told = OnceTold {
            epoch: committed.epoch,
            files: files_taken,
            known,
            counts: committed.counts,
            domains_new: committed.domains_new,
            servers: committed
                .dealt
                .iter()
                .map(|(server, dealt)| ServerTold { server: server.0, urls: dealt.urls, held: dealt.held })
                .collect(),
            cpu_s,
            cpu_s_per_million_lines: (lines > 0).then(|| cpu_s * 1e6 / lines as f64),
        };
        if let Some(out) = &data.out {
            write_texts(&data.path, &made, out)?;
        }
        return tell_summary(&told, json, OnceTold::text);
    }
}

impl OnceData {
    /// What is dealt by; rules of a file take the place of those that were given.
    fn master_rules(&mut self) -> Result<MasterRules, Failure> {
        let Some(file) = &self.config else {
            let servers = (1..=self.servers).map(Server::new).collect();
            return Ok(MasterRules { servers, ..MasterRules::default() });
        };
        let mut config = layered(Some(file), &[], Before::IsNone)?.config;
        let wrong = |what: &str| Err(Failure::Usage(format!("{}: {what}", file.display())));
        if config.servers.is_empty() {
            return wrong("no server gets URLs (write a [[server]] with id = 1)");
        }
        if config.master.database.is_some() {
            return wrong("two masters share its map over a database (take files with nephila master run)");
        }
        config.master.data.clone_from(&self.path);
        crate::storage::make_data_directory(&self.path)?;
        keep_pair_terms(&config, false).map_err(Failure::CannotRun)?;
        self.rules = JoinRules { memory_bytes: self.rules.memory_bytes, ..join_rules(&config) };
        Ok(MasterRules { moves_inputs: false, ..master_rules(&config) })
    }
}

/// What there is without a new epoch: rows, hits and lines that wait.
fn stands(data: &Path) -> Result<EpochCounts, Failure> {
    let last = view_of(data, "it was there a moment ago")?.counts();
    let EpochCounts { kept, held, hits_waiting, hits_held, .. } = last;
    let hits_before = hits_waiting + hits_held;
    Ok(EpochCounts { kept, held, hits_before, hits_waiting, hits_held, ..EpochCounts::default() })
}

/// What the epochs of this process sent, and the current_log after them.
fn write_texts(data: &Path, made: &[u64], out: &Path) -> Result<(), Failure> {
    let mut view = view_of(data, "it was there a moment ago")?;
    let cannot = |e: io::Error| {
        Failure::CannotRun(format!("{}: {e} (all is kept in the data directory)", out.display()))
    };
    let mut filtered = NewText::create(out, "filtered_log").map_err(cannot)?;
    for epoch in made {
        write_filtered_text(&mut view, *epoch, &mut filtered.out).map_err(cannot)?;
    }
    filtered.end(false).map_err(cannot)?;
    let mut current = NewText::create(out, "current_log").map_err(cannot)?;
    write_current_log(&mut view, false, &mut current.out).map_err(cannot)?;
    current.end(false).map_err(cannot)
}

/// An epoch of how many files, and whether it is one that was left unfinished; `None` if there is nothing new.
fn epoch(
    master: &mut Master,
    files: &[PathBuf],
    now_s: u32,
    data: &OnceData,
) -> io::Result<Option<(Committed, u64, bool)>> {
    let mut epoch = match master.begin_new(files, now_s, &[])? {
        Ok(epoch) => epoch,
        Err(told) => {
            told.iter().for_each(say);
            return Ok(None);
        }
    };
    epoch.told().iter().for_each(say);
    let (taken, is_again) = (epoch.inputs().len() as u64, epoch.is_again());
    let query_args = Args::view(&data.path)?;
    let joined = epoch.join(data.rules, &query_args, &Threads(data.workers))?;
    let committed = master.commit(epoch, joined, None)?;
    committed.told.iter().for_each(say);
    Ok(Some((committed, taken, is_again)))
}

fn cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

impl OnceTold {
    fn text(&self) -> String {
        let counts = &self.counts;
        let epoch = match self.files == 0 && self.known > 0 {
            true => {
                format!("{} stands: {} known, and nothing is new", self.epoch, counted(self.known, "file"))
            }
            false => format!("{} of {}", self.epoch, counted(self.files, "file")),
        };
        let kept = format!("{} {}", grouped(counts.kept), plural(counts.kept, "row"));
        let mut text = format!(
            "epoch      {epoch}\nlines      {} with {} hits, {} rejected\nurls       {}: {} sent, {} held; {kept} kept in current_log\n\
             hits       {} sent, {} waiting, {} expired, {} rejected, {} held\ndomains    {} new\n",
            grouped(counts.lines),
            grouped(counts.hits_in),
            grouped(counts.rejected),
            grouped(counts.urls),
            grouped(counts.sent),
            grouped(counts.held),
            grouped(counts.hits_sent),
            grouped(counts.hits_waiting),
            grouped(counts.hits_expired),
            grouped(counts.hits_rejected),
            grouped(counts.hits_held),
            grouped(self.domains_new)
        );
        if counts.hits_capped > 0 {
            let capped = grouped(counts.hits_capped);
            text += &format!("capped     {capped} hits: more than a line or a row has room for\n");
        }
        for ServerTold { server, urls, held } in &self.servers {
            let held = if *held > 0 { format!(", {} held", grouped(*held)) } else { String::new() };
            text += &format!("server {server:<3} {} URLs{held}\n", grouped(*urls));
        }
        let per_million = self
            .cpu_s_per_million_lines
            .map_or(String::new(), |cpu| format!(", {cpu:.2} CPU s per million lines"));
        text + &format!("cpu        {:.2} s{per_million}\n", self.cpu_s)
    }
}
