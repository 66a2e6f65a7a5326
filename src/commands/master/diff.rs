use super::command::{view_of, while_it_runs};
use crate::base::{grouped, rfc3339, shown};
use crate::commands::shared::{Failure, counted, tell};
use crate::master::diff::{MasterDiff, MinuteDiff, Side};
use clap::Args;
use std::path::PathBuf;

/// Differences shown to people.
const SHOWN: usize = 20;

/// Compare what two masters have sent and taken; exit 1 if they differ
#[derive(Args)]
#[command(after_help = "\
For every minute of reflog time the URLs that each master has sent are counted, and the hashes of them \
are summed; files are compared by their bytes, whatever their names. Minutes of which one of the two has \
let go something are left out. Both masters may run meanwhile: what is committed counts.

Some minutes differ even if nothing is wrong: what waits in one (a file of the last moments, a domain \
that is not placed, a queue that is full), and a URL that came in two files which one master took \
together and the other one after the other. Files that only one has taken, and minutes that go on to \
differ, say that a sender does not reach both.

--json prints one object:
  a, b           epoch, sent, held, files, files_only_here, and only_here: digest, path, taken_s
  from_s         minutes from this time on are compared, in seconds since 1970
  minutes, minutes_differ                 counts; the first 10,000 that differ are listed:
  differences    minute_s (0: more than a week old), sent_a, sent_b, sum_a, sum_b

Example:
  nephila master diff /srv/a/nephila-master /srv/b/nephila-master")]
pub struct DiffArgs {
    /// The data directory of one master
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The data directory of the other, or a copy of it
    #[arg(value_name = "B")]
    b: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl DiffArgs {
    pub fn run(self) -> Result<(), Failure> {
        let view = |path| view_of(path, "name the data directories of two");
        let diff = while_it_runs(|| Ok(MasterDiff::of(&mut view(&self.a)?, &mut view(&self.b)?)))?;
        tell(&diff, self.json, text)?;
        if diff.is_same() { Ok(()) } else { Err(Failure::No(String::new())) }
    }
}

fn text(diff: &MasterDiff) -> String {
    let side = |name: &str, side: &Side| {
        let Side { epoch, sent, held, files, .. } = side;
        let (sent, held) = (grouped(*sent), grouped(*held));
        format!("{name:<10} epoch {epoch}: {sent} URLs sent, {held} held, {}\n", counted(*files, "file"))
    };
    let mut text = side("A", &diff.a) + &side("B", &diff.b);
    if diff.from_s > 0 {
        text += &format!("from       {}; before it one has let go something\n", time(diff.from_s));
    }
    for (name, side) in [("only A", &diff.a), ("only B", &diff.b)] {
        for file in side.only_here.iter().take(SHOWN) {
            let path = file.path.as_ref().map(|path| shown(path, 300));
            let path = path.as_deref().unwrap_or("(its name is forgotten)");
            text += &format!("{name:<10} {} {path}, taken {}\n", file.digest, time(file.taken_s));
        }
        text += &more(side.files_only_here, "files");
    }
    for MinuteDiff { minute_s, sent_a, sent_b, .. } in diff.differences.iter().take(SHOWN) {
        let minute = if *minute_s == 0 { "more than a week old".to_string() } else { time(*minute_s) };
        let what = if sent_a == sent_b { "but not the same" } else { "URLs" };
        text += &format!("minute     {minute}: A {}, B {} {what}\n", grouped(*sent_a), grouped(*sent_b));
    }
    text += &more(diff.minutes_differ, "minutes");
    let minutes = grouped(diff.minutes);
    match diff.is_same() {
        true => text + &format!("verdict    both have sent the same for {minutes} minutes\n"),
        false => {
            let files = diff.a.files_only_here + diff.b.files_only_here;
            text + &format!(
                "verdict    {} of {minutes} minutes differ, {} with one master only\n",
                grouped(diff.minutes_differ),
                counted(files, "file")
            )
        }
    }
}

fn more(count: u64, what: &str) -> String {
    match count.saturating_sub(SHOWN as u64) {
        0 => String::new(),
        more => format!("{} more {what}\n", grouped(more)),
    }
}

fn time(unix_s: u32) -> String {
    rfc3339(u64::from(unix_s) * 1_000)
}
