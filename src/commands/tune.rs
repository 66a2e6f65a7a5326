use super::shared::{DataArg, Failure, counted, for_node, hint, now_ms, print, stream, tell, write_json};
use super::tune_change::{apply, revert};
use crate::base::{rfc3339, shown};
use crate::config::MEMORY_BYTES_MIN;
use crate::driver::UringDriver;
use crate::storage::mend;
use crate::store_server::Holder;
use crate::tune::{
    Advice, Bounds, DiskSpeed, Finding, ForNode, Machine, Report, Status, Tally, knob, nearest, script,
    section,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Check the kernel and hardware settings of this machine for a crawl, and change them
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila tune check\n  nephila tune explain net.ipv4.ip_local_port_range\n  nephila tune script > tune.sh\n  nephila tune apply\n  nephila tune revert\n  nephila tune disk --data ./example\n\nOnly apply and revert need root. nephila help tuning tells more."
)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(Subcommand)]
enum TuneCommand {
    /// Print every setting: what it is, what a crawl wants, what the difference costs, how to mend it
    #[command(
        after_help = "Examples:\n  nephila tune check --data ./example\n  nephila tune check --strict --json\n\nExit status 1 if a setting stops a crawl; with --strict also if one makes it slower."
    )]
    Check {
        #[command(flatten)]
        on: MachineArgs,
        /// Exit 1 also for what only makes a crawl slower
        #[arg(long)]
        strict: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the runbook of a setting, and what this machine has
    #[command(after_help = "Example:\n  nephila tune explain nofile")]
    Explain {
        /// The name of a setting, as nephila tune check prints it
        name: String,
        #[command(flatten)]
        on: MachineArgs,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a shell script that sets what is wanted and not there
    #[command(
        after_help = "Examples:\n  nephila tune script > tune.sh\n  nephila tune script --revert > back.sh\n\nNothing is changed. Make both scripts before the first is run."
    )]
    Script {
        #[command(flatten)]
        on: MachineArgs,
        /// Print the script that brings back what is there now
        #[arg(long)]
        revert: bool,
        /// One JSON object a line for each change
        #[arg(long)]
        json: bool,
    },
    /// Set what is wanted and not there, until the next boot; what was there is kept
    #[command(
        after_help = "Examples:\n  nephila tune apply\n  nephila tune apply --yes --json\n\nWhat the settings were is written to /var/lib/nephila-tune/undo.json before the first of them is\nchanged; nephila tune revert brings it back, also after a kill. If a setting is refused, those\nbefore it are brought back at once."
    )]
    Apply {
        #[command(flatten)]
        on: MachineArgs,
        #[command(flatten)]
        undo: UndoArg,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Bring back what nephila tune apply has changed
    #[command(
        after_help = "Example:\n  nephila tune revert\n\nWhat has been changed by others since is left as it is, unless --force is given.\nExit status 1 if something is not as it was before."
    )]
    Revert {
        #[command(flatten)]
        root: RootArg,
        #[command(flatten)]
        undo: UndoArg,
        /// Also what others have changed since
        #[arg(long)]
        force: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure how fast the disk of a data directory makes things durable, and keep it there
    #[command(
        after_help = "Example:\n  nephila tune disk --data ./example\n\nThe figures are kept in disk.json there; nephila tune check shows them."
    )]
    Disk {
        #[command(flatten)]
        data: DataArg,
        /// Measure for this many seconds
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=60))]
        seconds: u64,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// The machine that is looked at.
#[derive(Args)]
pub(super) struct MachineArgs {
    #[command(flatten)]
    data: DataArg,
    #[command(flatten)]
    pub root: RootArg,
}

#[derive(Args)]
pub(super) struct RootArg {
    /// A tree of files that stands for a machine
    #[arg(long = "root", id = "root", value_name = "DIR", default_value = "/", hide = true)]
    pub path: PathBuf,
}

#[derive(Args)]
pub(super) struct UndoArg {
    /// What the settings were is in this file, instead of /var/lib/nephila-tune/undo.json
    #[arg(long = "undo", id = "undo", value_name = "FILE")]
    pub path: Option<PathBuf>,
}

/// Bytes that a measurement writes at most.
const DISK_BYTES_MAX: u64 = 1 << 30;

impl TuneArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            TuneCommand::Check { on, strict, json } => check(&on.machine(), strict, json),
            TuneCommand::Explain { name, on, json } => explain(&name, &on, json),
            TuneCommand::Script { on, revert, json } => print_script(&on.machine(), revert, json),
            TuneCommand::Apply { on, undo, yes, json } => apply(&on, &undo, yes, json),
            TuneCommand::Revert { root, undo, force, json } => revert(&root, &undo, force, json),
            TuneCommand::Disk { data, seconds, json } => disk(&data.path, seconds, json),
        }
    }
}

impl MachineArgs {
    pub fn machine(&self) -> Machine {
        // A tree is no kernel that could be asked.
        let is_real = self.root.path == Path::new("/");
        let refused = is_real.then(|| UringDriver::probe(2).err()).flatten();
        let pid = Holder::of(&self.data.path).ok().flatten().and_then(|holder| holder.pid);
        Machine::at(&self.root.path, ForNode { pid, ..for_node(&self.data.path, refused) })
    }
}

#[derive(Serialize)]
struct Checked<'a> {
    settings: &'a [Finding],
    tally: Tally,
    advice: Advice,
    container: bool,
}

fn check(machine: &Machine, strict: bool, json: bool) -> Result<(), Failure> {
    let report = Report::of(machine);
    let tally = report.tally();
    let checked = Checked {
        settings: report.findings(),
        tally,
        advice: Advice::of(machine, MEMORY_BYTES_MIN),
        container: machine.is_container(),
    };
    tell(&checked, json, Checked::text)?;
    match tally.stops > 0 || (strict && tally.slower > 0) {
        true => Err(Failure::No(String::new())),
        false => Ok(()),
    }
}

impl Checked<'_> {
    fn text(&self) -> String {
        let mut rows: Vec<&Finding> = self.settings.iter().collect();
        // What matters stands last, above the sum, where a terminal ends.
        let rank = |status: Status| match status {
            Status::NotHere => 0,
            Status::Ok => 1,
            Status::CannotTell => 2,
            Status::Slower => 3,
            Status::Stops => 4,
        };
        rows.sort_by_key(|row| rank(row.status));
        let head = ["setting", "now", "wanted", "costs", "mend"].map(str::to_string);
        let cells = rows.iter().map(|row| {
            let costs = match row.status {
                Status::Ok => "-",
                status => status.name(),
            };
            let mend = match row.status {
                Status::CannotTell => &row.read_from,
                _ if row.mend.is_empty() => "-",
                _ => &row.mend,
            };
            [row.name, &row.now, &row.wanted, costs, mend].map(|cell| shown(cell, 100))
        });
        let mut text = columns(std::iter::once(head).chain(cells).collect());
        text += &format!("\n{}", self.advice.text());
        text += &format!("tune     {}", self.tally.text());
        if self.tally.not_here > 0 {
            text += &format!(", {} not here", self.tally.not_here);
        }
        if self.tally.slower + self.tally.stops > 0 {
            text += "; nephila tune explain NAME tells of each, nephila tune apply mends";
        }
        text.push('\n');
        text
    }
}

/// Rows with their cells below each other; the last is as long as it is.
fn columns(rows: Vec<[String; 5]>) -> String {
    let chars = |text: &String| text.chars().count();
    let width = |column: usize| rows.iter().map(|row| chars(&row[column])).max().unwrap_or(0).min(36);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            text += &format!("{cell:<width$}  ");
        }
        text += &format!("{}\n", row[4]);
    }
    text
}

#[derive(Serialize)]
struct Explained<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    text: Option<&'static str>,
}

fn explain(name: &str, on: &MachineArgs, json: bool) -> Result<(), Failure> {
    let Some(knob) = knob(name) else {
        let hint = nearest(name).map_or(String::new(), |name| format!("did you mean {name}? "));
        return Err(Failure::Usage(format!(
            "no setting is called {} ({hint}nephila tune check lists them)",
            shown(name, 100)
        )));
    };
    let finding = Finding::of(knob, &on.machine());
    let explained = Explained { finding: &finding, text: section(knob.runbook, knob.name) };
    tell(&explained, json, Explained::text)
}

impl Explained<'_> {
    fn text(&self) -> String {
        let Finding { name, status, now, wanted, mend, read_from, runbook, .. } = self.finding;
        let mut text = match self.text {
            Some(section) => format!("{section}\n\n"),
            None => format!("## {name}\n\n"),
        };
        let mut row = |label: &str, said: &str| {
            if !said.is_empty() {
                text += &format!("{label:<9} {}\n", shown(said, 1_000));
            }
        };
        row("here", status.name());
        row("now", now);
        row("wanted", wanted);
        row("mend", mend);
        row("read from", read_from);
        row("runbook", runbook);
        text
    }
}

#[derive(Serialize)]
pub(super) struct ChangeLine<'a> {
    pub name: &'a str,
    pub path: String,
    pub was: &'a str,
    pub to: &'a str,
}

fn print_script(machine: &Machine, revert: bool, json: bool) -> Result<(), Failure> {
    let report = Report::of(machine);
    if !json {
        return print(&script(report.findings(), revert));
    }
    stream(|out| {
        for (name, change) in report.plan().changes() {
            let (was, to) = if revert { (&change.to, &change.was) } else { (&change.was, &change.to) };
            write_json(out, &ChangeLine { name, path: format!("/{}", change.path), was, to })?;
        }
        Ok(())
    })
}

fn disk(data: &Path, seconds: u64, json: bool) -> Result<(), Failure> {
    let at = data.display();
    if !data.is_dir() {
        return Err(Failure::CannotRun(format!(
            "{at} is no directory (make it, or name another with --data)"
        )));
    }
    if let Ok(Some(holder)) = Holder::of(data) {
        hint(format_args!("{at} is in use by {holder}: what it writes meanwhile is in the figures"));
    }
    let bounds = Bounds { time: Duration::from_secs(seconds), bytes: DISK_BYTES_MAX };
    let failed = |cause| Failure::CannotRun(format!("{at}: {cause}{}", mend(&cause)));
    let speed = DiskSpeed::measure(data, bounds, rfc3339(now_ms())).map_err(failed)?;
    speed.keep(data).map_err(failed)?;
    tell(&speed, json, |speed| {
        let ms = |us: u64| us as f64 / 1e3;
        format!(
            "fdatasync  p50 {:.2} ms, p99 {:.2} ms ({})\nwrites     {:.0} MB/s, made durable\nkept in    {}\n",
            ms(speed.fdatasync_p50_us),
            ms(speed.fdatasync_p99_us),
            counted(speed.syncs, "sync"),
            speed.mb_per_second,
            DiskSpeed::path(data).display()
        )
    })
}
