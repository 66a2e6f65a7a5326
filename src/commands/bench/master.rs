use super::master_latency::Latency;
use super::master_log::LogMaker;
use super::master_turns::Turns;
use super::record::RecordArgs;
use super::stage::{PeerRun, Stage, is_installed};
use crate::commands::shared::{Failure, say};
use crate::config::size;
use crate::proto::reflog::Stamp;
use clap::Args;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// Make reflogs and an epoch of the last one, and print what a million lines cost beside sort, Polars and DuckDB
///
/// Steps (1) to (4) of a master, on one core: lines by their id, grouped, joined with the current_log of the file before,
/// and filtered. Every URL that is sent is compared with those of the peers.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila bench master --lines 1000000\n  nephila bench master --peers --record bench/runs/my-machine-master.json\n  nephila bench master --latency 100\n  nephila bench master --lines 100000000 --memory 1GB --beside 10000000\n\nThe figure to look at is CPU seconds per million lines, of a process of its own for each. The peers are GNU\nsort and join with an awk, and with --peers Polars and DuckDB too, which are installed into an environment of\nPython in the bench's directory. Ten million lines take 930 MB a file, and 6 GB in all.\n\nWith --latency a master and a node run as processes, and a file goes into the spool when the one before is durable\nin the node's index. Each holds two URLs for five lines, nine of ten of them known to the node."
)]
pub(super) struct MasterBenchArgs {
    /// Lines of a file [default: 10000000, and 100000 with --latency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    lines: Option<u64>,
    /// Files; the last is measured
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    files: u32,
    /// Memory for the epoch that has little
    #[arg(long, value_name = "BYTES", default_value = "256MB", value_parser = size::<u64>)]
    memory: u64,
    /// Instead: put files into the spool of a master, and see when a node has them on disk
    #[arg(long, value_name = "FILES", conflicts_with = "peers", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    latency: Option<u32>,
    /// Instead: what a line costs in little memory, over what one of so many lines costs in much, by turns
    #[arg(long, value_name = "LINES", conflicts_with_all = ["peers", "latency", "files"], value_parser = clap::value_parser!(u64).range(1..))]
    beside: Option<u64>,
    /// Measure Polars and DuckDB, too
    #[arg(long)]
    peers: bool,
    /// Where files are written; they are removed afterwards
    #[arg(long, value_name = "DIR", default_value = "./nephila-bench-master")]
    data: PathBuf,
    #[command(flatten)]
    record: RecordArgs,
}

#[derive(Serialize)]
struct MasterBenchReport {
    lines: u64,
    file_bytes: u64,
    ours: Vec<Cost>,
    peers: Vec<Cost>,
    /// Peers that could not be measured, and why.
    skipped: Vec<String>,
    sent: u64,
    kept: u64,
}

#[derive(Serialize)]
struct Cost {
    name: String,
    cpu_s_per_million: f64,
    mb_per_cpu_s: f64,
    seconds: f64,
    peak_bytes: Option<u64>,
    current_bytes: Option<u64>,
    /// Of filtered_log, whatever the order of its lines.
    digest: Option<String>,
    /// As much CPU as ours in its own form.
    ratio: f64,
}

/// Enough for all lines of a large file.
pub(super) const MUCH_MEMORY: &str = "16GiB";
const GNU: &str = include_str!("master_peers/gnu.sh");
const POLARS: &str = include_str!("master_peers/epoch_polars.py");
const DUCKDB: &str = include_str!("master_peers/epoch_duckdb.py");

impl MasterBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        let stage = Stage::unmade(&self.data)?;
        fs::create_dir_all(&stage.dir)
            .map_err(|e| Failure::CannotRun(format!("cannot make {}: {e}", stage.dir.display())))?;
        if let Some(files) = self.latency {
            let latency = Latency { dir: &stage.dir, files, lines: self.lines.unwrap_or(100_000) };
            let report = latency.run()?;
            drop(stage);
            return self.record.tell(&report, |report| report.text());
        }
        let lines = self.lines.unwrap_or(10_000_000);
        if let Some(beside) = self.beside {
            let report = Turns { stage: &stage, lines, beside, memory: self.memory }.run()?;
            drop(stage);
            return self.record.tell(&report, |report| report.text());
        }
        let files = Files { dir: &stage.dir, lines };
        let report = Bench { args: &self, files, stage: &stage }.run()?;
        drop(stage);
        let differs = |cost: &&Cost| cost.digest.is_some() && cost.digest != report.ours[1].digest;
        if let Some(other) = report.peers.iter().find(differs) {
            return Err(Failure::No(format!("{} sends something else than we do", other.name)));
        }
        self.record.tell(&report, MasterBenchReport::text)
    }
}

/// Reflogs that were made, and epochs of them by us.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub dir: &'a Path,
    pub lines: u64,
}

impl Files<'_> {
    pub fn make(&self, files: u32) -> Result<(), Failure> {
        fs::create_dir_all(self.dir)?;
        let maker = LogMaker { lines: self.lines, seed: 1 };
        for file in 0..files {
            let mut out = BufWriter::with_capacity(1 << 18, File::create(self.file(file))?);
            maker.write(file, &mut out)?;
            out.flush()?;
        }
        Ok(())
    }

    fn file(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{number}.reflog"))
    }

    /// Where an epoch of a file is put.
    pub fn out(&self, file: u32) -> PathBuf {
        self.dir.join(format!("ours-{file}"))
    }

    /// Steps (1) to (4) of one file, after those of the file before.
    pub fn epoch(&self, file: u32, memory: &str) -> Result<Command, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["master", "once", "--json", "--memory", memory, "--now", &now(file)]);
        command.arg("--out").arg(self.out(file)).arg(self.file(file));
        if file > 0 {
            command.arg("--current").arg(self.out(file - 1).join("current_log"));
        }
        Ok(command)
    }
}

fn now(file: u32) -> String {
    String::from_utf8_lossy(&Stamp::from_s(LogMaker::now_s(file)).digits()).into_owned()
}

struct Bench<'a> {
    args: &'a MasterBenchArgs,
    files: Files<'a>,
    stage: &'a Stage,
}

impl Bench<'_> {
    fn run(&self) -> Result<MasterBenchReport, Failure> {
        self.files.make(self.args.files)?;
        let little = self.args.memory.to_string();
        let plain = self.ours("own form", MUCH_MEMORY, false)?;
        let text = self.ours("as text", MUCH_MEMORY, true)?;
        let small = self.ours(&format!("in {} MB", self.args.memory / 1_000_000), &little, false)?;
        let ((plain, told), (text, _), (small, _)) = (plain, text, small);
        let durable = self.durable()?;
        let mut report = MasterBenchReport {
            lines: self.files.lines,
            file_bytes: fs::metadata(self.files.file(self.args.files - 1))?.len(),
            sent: told["sent"].as_u64().unwrap_or(0),
            kept: told["kept"].as_u64().unwrap_or(0),
            ours: vec![plain, text, small, durable],
            peers: Vec::new(),
            skipped: Vec::new(),
        };
        match is_installed("join", "--version") {
            true => report.peers.push(self.peer("GNU", "gnu.sh", GNU, Path::new("sh"))?),
            false => report.skipped.push("GNU: join is not installed (coreutils)".to_string()),
        }
        if self.args.peers {
            match self.python() {
                Ok(python) => {
                    report.peers.push(self.peer("Polars", "epoch_polars.py", POLARS, &python)?);
                    report.peers.push(self.peer("DuckDB", "epoch_duckdb.py", DUCKDB, &python)?);
                }
                Err(cause) => report.skipped.push(format!("Polars, DuckDB: {cause}")),
            }
        } else {
            report.skipped.push("Polars, DuckDB: not asked for (--peers)".to_string());
        }
        let ours = report.ours[0].cpu_s_per_million;
        for cost in report.ours.iter_mut().chain(&mut report.peers) {
            cost.ratio = cost.cpu_s_per_million / ours;
        }
        Ok(report)
    }

    /// Epochs of all files by us, each in a process; what the last one cost and said.
    fn ours(&self, name: &str, memory: &str, text: bool) -> Result<(Cost, serde_json::Value), Failure> {
        let out = |file: u32| self.files.out(file);
        let mut last = None;
        for file in 0..self.args.files {
            let mut command = self.files.epoch(file, memory)?;
            if text {
                command.arg("--text");
            }
            last = Some(self.stage.peer(command)?);
        }
        let run = last.ok_or_else(|| Failure::Usage("--files: at least one".into()))?;
        let told: serde_json::Value =
            serde_json::from_str(&run.text).map_err(|_| run.unread("master once"))?;
        let cost = self.cost(name, &run, told["peak_bytes"].as_u64(), &out(self.args.files - 1), text)?;
        (0..self.args.files).try_for_each(|file| fs::remove_dir_all(out(file)))?;
        Ok((cost, told))
    }

    /// All seven steps, into the directory of a master.
    fn durable(&self) -> Result<Cost, Failure> {
        let data = self.stage.dir.join("master");
        let mut last = None;
        for file in 0..self.args.files {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["master", "once", "--json", "--servers", "16", "--memory", MUCH_MEMORY]);
            command.args(["--now", &now(file)]).arg("--data").arg(&data).arg(self.files.file(file));
            last = Some(self.stage.peer(command)?);
        }
        let run = last.ok_or_else(|| Failure::Usage("--files: at least one".into()))?;
        let told: serde_json::Value =
            serde_json::from_str(&run.text).map_err(|_| run.unread("master once"))?;
        if told["lines"].as_u64() != Some(self.files.lines) {
            return Err(run.unread("master once"));
        }
        let cost = self.cost("durable, 16 nodes", &run, None, &data, false)?;
        fs::remove_dir_all(&data)?;
        Ok(cost)
    }

    /// The same by a peer: a program that runs a script with four arguments.
    fn peer(&self, name: &str, file_name: &str, script: &str, program: &Path) -> Result<Cost, Failure> {
        let path = self.stage.dir.join(file_name);
        fs::write(&path, script)?;
        let out = |file: u32| self.stage.dir.join(format!("peer-{file}"));
        let mut current = self.stage.dir.join("none");
        fs::write(&current, "")?;
        let mut last = None;
        for file in 0..self.args.files {
            fs::create_dir_all(out(file))?;
            let mut command = Command::new(program);
            command.arg(&path).arg(self.files.file(file)).arg(&current).arg(now(file)).arg(out(file));
            last = Some(self.stage.peer(command)?);
            current = out(file).join("current_log");
            if !current.exists() {
                return Err(Failure::CannotRun(format!("{name} made no current_log: {}", path.display())));
            }
        }
        let run = last.ok_or_else(|| Failure::Usage("--files: at least one".into()))?;
        let mut words = run.text.split_whitespace();
        let version = words.next().map_or(String::new(), |version| format!(" {version}"));
        let peak_kb: Option<u64> = words.next().and_then(|word| word.parse().ok());
        let name = format!("{name}{version}");
        let cost = self.cost(&name, &run, peak_kb.map(|kb| kb * 1_024), &out(self.args.files - 1), true)?;
        (0..self.args.files).try_for_each(|file| fs::remove_dir_all(out(file)))?;
        Ok(cost)
    }

    fn cost(
        &self,
        name: &str,
        run: &PeerRun,
        peak_bytes: Option<u64>,
        out: &Path,
        is_text: bool,
    ) -> Result<Cost, Failure> {
        let file_bytes = fs::metadata(self.files.file(self.args.files - 1))?.len();
        Ok(Cost {
            name: name.to_string(),
            cpu_s_per_million: run.cpu_us / self.files.lines as f64,
            mb_per_cpu_s: file_bytes as f64 / run.cpu_us,
            seconds: run.seconds,
            peak_bytes,
            current_bytes: fs::metadata(out.join("current_log")).ok().map(|known| known.len()),
            digest: is_text.then(|| digest(&out.join("filtered_log"))).transpose()?,
            ratio: 1.0,
        })
    }

    /// A Python that has both peers.
    fn python(&self) -> Result<PathBuf, String> {
        let venv = self.stage.dir.join("venv");
        let python = venv.join("bin/python");
        let run = |program: &Path, args: &[&str]| {
            let output = Command::new(program)
                .args(args)
                .output()
                .map_err(|e| format!("{}: {e}", program.display()))?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            if output.status.success() {
                Ok(())
            } else {
                Err(said.lines().last().unwrap_or_default().to_string())
            }
        };
        say("installing Polars and DuckDB…");
        run(Path::new("python3"), &["-m", "venv", &venv.to_string_lossy()])?;
        run(&python, &["-m", "pip", "install", "--quiet", "polars", "duckdb"])?;
        Ok(python)
    }
}

/// The sum of the hashes of all lines.
fn digest(path: &Path) -> Result<String, Failure> {
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let (mut sum, mut lines, mut line) = (0u64, 0u64, Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        sum = sum.wrapping_add(xxh3_64(&line));
        lines += 1;
        line.clear();
    }
    Ok(format!("{lines}-{sum:016x}"))
}

impl MasterBenchReport {
    fn text(&self) -> String {
        let mut text = format!(
            "{} lines, {} MB; {} URLs sent, {} rows kept; one core\n{:<18} {:>12} {:>9} {:>9} {:>12} {:>7}\n",
            self.lines,
            self.file_bytes / 1_000_000,
            self.sent,
            self.kept,
            "",
            "CPU s/M lines",
            "MB/CPU s",
            "peak MB",
            "current MB",
            "x ours",
        );
        for Cost { name, cpu_s_per_million, mb_per_cpu_s, peak_bytes, current_bytes, ratio, .. } in
            self.ours.iter().chain(&self.peers)
        {
            let [peak, current] = [peak_bytes, current_bytes]
                .map(|bytes| bytes.map_or("-".to_string(), |bytes| (bytes / 1_000_000).to_string()));
            text += &format!(
                "{name:<18} {cpu_s_per_million:>13.3} {mb_per_cpu_s:>9.0} {peak:>9} {current:>12} {ratio:>7.2}\n"
            );
        }
        for skipped in &self.skipped {
            text += &format!("not measured: {skipped}\n");
        }
        match self.peers.is_empty() {
            true => text,
            false => text + "all send the same\n",
        }
    }
}
