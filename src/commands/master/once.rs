use super::explain::stamp;
use super::once_data::{OnceData, once_with_data};
use crate::base::{grouped, plural};
use crate::commands::shared::{Failure, tell_summary};
use crate::config::{SERVER_ID_MAX, Seconds, size_in};
use crate::engine::Threads;
use crate::master::epoch::{
    AHEAD_S, AsWritten, CurrentLog, DomainBy, IdKey, JoinJob, JoinRules, TextOut, join, join_text,
};
use crate::master::{EpochCounts, InputFile};
use crate::proto::reflog::Stamp;
use clap::{Args, ValueEnum};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Make one epoch of files: what is to be sent, and the next current_log
///
/// Lines are grouped by the normal form of their URL: hits are summed, the last time and the last tag that says something
/// count. A URL that current_log does not know is sent; one that it knows is sent if that was more than an hour ago, or
/// with another tag; otherwise its hits wait for the next sending, ten hours at most.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master once *.reflog --data ./nephila-master --servers 16\n  nephila master once today.reflog --out ./epoch\n  nephila master once 1.reflog --current /dev/null --out A --now 20110727210000 --text\n  nephila master once 2.reflog.gz --current A/current_log --out B --now 20110727213000 --text\n\nWith --data all seven steps are done: files that were taken before are skipped, none is moved, and an epoch that a killed process left unfinished is made first.\n\nWith --text both logs are lines of fields with tabs between them:\n  filtered_log   URL, domain, time, hits, tag\n  current_log    URL, domain, sent, seen, hits since it was sent, tag\nURLs are in their normal form, times as in a reflog. The lines are in the order of ids, the same for the same URLs; --sorted puts them in the order of their bytes, as LC_ALL=C sort does. --current takes such a text, an empty file, or a current_log of our own form, which has no URLs: # and an id stand for those that did not come. Without --text filtered_log is a reflog, and current_log of our own form. Lines that cannot be taken are in rejects: file, line, reason, hits, and how they begin."
)]
pub(super) struct OnceArgs {
    /// Files of a reflog, plain, gzip or zstd
    #[arg(value_name = "REFLOG", required = true)]
    files: Vec<PathBuf>,
    /// The current_log of the epoch before
    #[arg(long, value_name = "FILE")]
    current: Option<PathBuf>,
    /// Where filtered_log, current_log and rejects are written; with --data the logs, as texts
    #[arg(long, value_name = "DIR", required_unless_present = "data")]
    out: Option<PathBuf>,
    /// The data directory of a master: deal what is to be sent to its servers, and keep all of it there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["current", "text"])]
    data: Option<PathBuf>,
    /// With --data: deal URLs to servers 1 to N
    #[arg(long, value_name = "N", default_value_t = 1, requires = "data", value_parser = clap::value_parser!(u16).range(1..=i64::from(SERVER_ID_MAX)))]
    servers: u16,
    /// With --data: deal URLs as this file of a master says: its servers, assign, by, resend_after and keep_repeats
    #[arg(long, value_name = "FILE", requires = "data", conflicts_with_all = ["servers", "by", "resend_after", "keep_repeats"])]
    config: Option<PathBuf>,
    /// The time of the epoch, as YYYYMMDDhhmmss in UTC [default: the clock's]
    #[arg(long, value_name = "T", value_parser = stamp)]
    now: Option<Stamp>,
    /// Write the logs as text
    #[arg(long)]
    text: bool,
    /// Put the lines of the texts in order; takes memory for all of them
    #[arg(long, requires = "text")]
    sorted: bool,
    /// Memory for lines; what is more goes to files in the output directory
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = |text: &str| size_in::<usize>(text, 16 << 20, 1 << 44))]
    memory: usize,
    /// Threads that share the work; the result is the same
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// What URLs are dealt by
    #[arg(long, value_name = "WHAT", default_value = "domain")]
    by: By,
    /// How long a URL is not sent again, unless its tag changes
    #[arg(long, value_name = "TIME", default_value = "1h")]
    resend_after: Seconds,
    /// How long hits wait for the next sending
    #[arg(long, value_name = "TIME", default_value = "10h")]
    keep_repeats: Seconds,
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// The part of the host that somebody registered
    Domain,
    Host,
}

/// What an epoch came to.
#[derive(Serialize)]
struct OnceReport {
    #[serde(flatten)]
    counts: EpochCounts,
    cpu_seconds: f64,
    cpu_s_per_million: f64,
    seconds: f64,
    /// The most memory that it had.
    peak_bytes: u64,
}

/// Ids of epochs that leave nothing behind but their logs: the same URL has the same in each.
const KEY_SEED: u64 = 0;

impl OnceArgs {
    pub fn run(self) -> Result<(), Failure> {
        let begun = SystemTime::now();
        let now_s = match self.now {
            Some(now) => now.s(),
            None => begun.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32),
        };
        let workers = usize::from(self.workers);
        if let Some(path) = self.data.clone() {
            let (servers, config, out) = (self.servers, self.config.clone(), self.out.clone());
            let data = OnceData { path, servers, config, rules: self.rules(), workers, out };
            return once_with_data(&self.files, self.now, data, self.json);
        }
        for file in &self.files {
            fs::metadata(file)
                .map_err(|e| Failure::Usage(format!("{}: {e} (name a file of a reflog)", file.display())))?;
        }
        let out = self.out.as_deref().unwrap_or(Path::new("."));
        let cannot = |e: io::Error| Failure::CannotRun(format!("{}: {e}", out.display()));
        fs::create_dir_all(out).map_err(cannot)?;
        let rejects = NewText::create(out, "rejects").map_err(cannot)?;
        let counts = self.make(out, now_s, rejects)?;
        let cpu_seconds = cpu_seconds();
        let report = OnceReport {
            counts,
            cpu_seconds,
            cpu_s_per_million: cpu_seconds * 1e6 / counts.lines.max(1) as f64,
            seconds: begun.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64()),
            peak_bytes: getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss() as u64 * 1_024),
        };
        tell_summary(&report, self.json, OnceReport::text)
    }

    fn rules(&self) -> JoinRules {
        let seconds = |time: Seconds| u32::try_from(time.0).unwrap_or(u32::MAX);
        JoinRules {
            resend_after_s: seconds(self.resend_after),
            late_s: 0,
            ahead_s: AHEAD_S,
            keep_repeats_s: seconds(self.keep_repeats),
            by: match self.by {
                By::Domain => DomainBy::Registrable,
                By::Host => DomainBy::Host,
            },
            memory_bytes: self.memory,
        }
    }

    fn make(&self, out: &Path, now_s: u32, mut rejects: NewText) -> Result<EpochCounts, Failure> {
        let cannot = |path: &Path| {
            let path = path.display().to_string();
            move |e: io::Error| Failure::CannotRun(format!("{path}: {e}"))
        };
        let key = IdKey::from_seed(KEY_SEED);
        let inputs: Vec<InputFile> = self.files.iter().map(InputFile::new).collect();
        let (log, mut text) = match &self.current {
            Some(path) => open_current(path).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => {
                    Failure::Usage(format!("{}: {e} (name a current_log)", path.display()))
                }
                _ => cannot(path)(e),
            })?,
            None => (None, None),
        };
        if text.is_some() && !self.text {
            return Err(Failure::Usage("--current is a text (write texts too, with --text)".to_string()));
        }
        let job = JoinJob {
            inputs: &inputs,
            held: None,
            now_s,
            horizon_s: now_s,
            current: log.as_ref(),
            rules: self.rules(),
            key: &key,
            canon: &AsWritten,
            workers: &Threads(usize::from(self.workers)),
            work: out,
            rejects: &mut rejects.out,
        };
        let mut filtered = NewText::create(out, "filtered_log").map_err(cannot(out))?;
        let counts = if self.text {
            let mut current = NewText::create(out, "current_log").map_err(cannot(out))?;
            let texts = TextOut { filtered: &mut filtered.out, current: &mut current.out };
            let known = text.as_mut().map(|file| file as &mut dyn Read);
            let counts = join_text(job, known, texts)?;
            current.end(self.sorted).map_err(cannot(out))?;
            counts
        } else {
            let joined = join(job)?;
            let counts = joined.counts();
            let mut line = Vec::new();
            joined.for_each_sent(|row| {
                line.clear();
                row.record.write(&mut line);
                filtered.out.write_all(&line)
            })?;
            joined.write_current(&out.join("current_log"))?;
            counts
        };
        filtered.end(self.sorted).map_err(cannot(out))?;
        rejects.end(false).map_err(cannot(out))?;
        Ok(counts)
    }
}

/// A current_log of our own form, or a text.
fn open_current(path: &Path) -> io::Result<(Option<CurrentLog>, Option<File>)> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    (&file).take(CurrentLog::MAGIC.len() as u64).read_to_end(&mut start)?;
    if start == CurrentLog::MAGIC {
        return Ok((Some(CurrentLog::open(path)?), None));
    }
    // What cannot be wound back is a device without a text, as /dev/null.
    match file.rewind() {
        Err(_) if start.is_empty() => {}
        wound => wound?,
    }
    Ok((None, Some(file)))
}

/// A text that takes its name when it is whole.
pub(super) struct NewText {
    pub out: BufWriter<File>,
    fresh: PathBuf,
    path: PathBuf,
}

impl NewText {
    pub fn create(folder: &Path, name: &str) -> io::Result<NewText> {
        let fresh = folder.join(format!("{name}.fresh"));
        let out = BufWriter::with_capacity(1 << 18, File::create(&fresh)?);
        Ok(NewText { out, fresh, path: folder.join(name) })
    }

    pub fn end(mut self, sorted: bool) -> io::Result<()> {
        self.out.flush()?;
        if sorted {
            let text = fs::read(&self.fresh)?;
            let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
            lines.sort_unstable();
            let mut out = BufWriter::with_capacity(1 << 18, File::create(&self.fresh)?);
            lines.into_iter().try_for_each(|line| out.write_all(line))?;
            out.flush()?;
        }
        fs::rename(&self.fresh, &self.path)
    }
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

impl OnceReport {
    fn text(&self) -> String {
        let EpochCounts { lines, records, rejected, urls, sent, kept, left, expired, .. } = self.counts;
        let EpochCounts { hits_in, hits_before, hits_sent, hits_waiting, hits_expired, .. } = self.counts;
        let EpochCounts { hits_rejected, hits_capped, ahead, files_cut, .. } = self.counts;
        let [lines, records, rejected, urls] =
            [(lines, "line"), (records, "record"), (rejected, "reject"), (urls, "URL")]
                .map(|(count, noun)| format!("{} {}", grouped(count), plural(count, noun)));
        let [sent, kept, left, expired] = [sent, kept, left, expired].map(grouped);
        let Self { cpu_seconds, cpu_s_per_million, seconds, .. } = self;
        let mut text = format!(
            "{lines}: {records} of {urls}, {rejected}\n\
             {sent} sent, {kept} kept in current_log, {left} left it ({expired} with hits waiting)\n\
             hits: {} in, {} waited; {} sent, {} waiting, {} expired, {} rejected\n",
            grouped(hits_in),
            grouped(hits_before),
            grouped(hits_sent),
            grouped(hits_waiting),
            grouped(hits_expired),
            grouped(hits_rejected),
        );
        if hits_capped > 0 {
            text += &format!("{} hits were more than a line has room for\n", grouped(hits_capped));
        }
        if ahead > 0 {
            text += &format!("{} times ahead of now count as now\n", grouped(ahead));
        }
        if files_cut > 0 {
            text += &format!("{files_cut} of the files could be read in part only (see rejects)\n");
        }
        text + &format!(
            "{cpu_seconds:.2} CPU s, {cpu_s_per_million:.3} CPU s per million lines, in {seconds:.2} s\n"
        )
    }
}
