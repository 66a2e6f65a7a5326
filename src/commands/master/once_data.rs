//! One epoch into a directory that keeps everything: steps (1) to (7).

use super::threads::Threads;
use crate::base::grouped;
use crate::commands::shared::{Failure, counted, now_ms, say, tell_summary};
use crate::master::args::Args;
use crate::master::epoch::JoinRules;
use crate::master::keeping::{Committed, Master, MasterRules};
use crate::master::map::Server;
use crate::master::{EpochCounts, InputFile};
use crate::proto::reflog::Stamp;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io;
use std::path::PathBuf;

/// What an epoch that is kept goes by.
pub(super) struct OnceData {
    pub path: PathBuf,
    /// Servers 1 to this one get URLs.
    pub servers: u16,
    pub rules: JoinRules,
    pub workers: usize,
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
    data: &OnceData,
    json: bool,
) -> Result<(), Failure> {
    for file in files {
        InputFile::new(file).open().map_err(Failure::cannot_run)?;
    }
    let rules =
        MasterRules { servers: (1..=data.servers).map(Server::new).collect(), ..MasterRules::default() };
    let now_s = now.map_or(u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX), Stamp::s);
    let (mut master, told) = Master::open(&data.path, rules)?;
    told.iter().for_each(say);
    let began = cpu_s();
    loop {
        let (committed, files_taken) = match epoch(&mut master, files, now_s, data)? {
            Some((.., true)) => continue,
            Some((committed, taken, _)) => (committed, taken),
            None => (Committed { epoch: master.epoch().0, ..Committed::default() }, 0),
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
        return tell_summary(&told, json, OnceTold::text);
    }
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
        let mut text = format!(
            "epoch      {} of {}\nlines      {} with {} hits, {} rejected\nurls       {}: {} sent, {} held; {} rows are kept\n\
             hits       {} sent, {} waiting, {} expired, {} rejected, {} held\ndomains    {} new\n",
            self.epoch,
            counted(self.files, "file"),
            grouped(counts.lines),
            grouped(counts.hits_in),
            grouped(counts.rejected),
            grouped(counts.urls),
            grouped(counts.sent),
            grouped(counts.held),
            grouped(counts.kept),
            grouped(counts.hits_sent),
            grouped(counts.hits_waiting),
            grouped(counts.hits_expired),
            grouped(counts.hits_rejected),
            grouped(counts.hits_held),
            grouped(self.domains_new)
        );
        for ServerTold { server, urls, held } in &self.servers {
            let held = if *held > 0 { format!(", {} held", grouped(*held)) } else { String::new() };
            text += &format!("server {server:<3} {} URLs{held}\n", grouped(*urls));
        }
        let per_million =
            self.cpu_s_per_million_lines.map_or(String::new(), |cpu| format!(", {cpu:.2} s a million lines"));
        text + &format!("cpu        {:.2} s{per_million}\n", self.cpu_s)
    }
}
