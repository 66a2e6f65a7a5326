use super::knob::{Change, Knob, Look, Mend, Status};
use super::knobs::knobs;
use super::{Advice, Machine, Plan};
use serde::Serialize;

/// Every setting, looked at once.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

/// A setting as it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub name: &'static str,
    pub status: Status,
    pub now: String,
    pub wanted: String,
    /// What to do, in few words; empty if nothing is to be done.
    pub mend: String,
    /// The file that said so, as it is called on the machine.
    pub read_from: String,
    pub runbook: String,
    #[serde(skip)]
    changes: Vec<Change>,
}

/// Settings by how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    pub ok: u32,
    pub slower: u32,
    pub stops: u32,
    pub cannot_tell: u32,
    /// The machine has no such thing.
    pub not_here: u32,
}

impl Finding {
    pub fn of(knob: &'static Knob, machine: &Machine) -> Finding {
        let Look { status, now, wanted, read_from, mend } = (knob.look)(machine);
        let (mend, changes) = match mend {
            Mend::Nothing => (String::new(), Vec::new()),
            Mend::Write(changes) => ("nephila tune apply".to_string(), changes),
            Mend::ByHand(text) => (text, Vec::new()),
        };
        // What is below the root goes by its name on the machine; the data directory by its own.
        let is_below = ["proc/", "sys/", "etc/"].iter().any(|folder| read_from.starts_with(folder));
        let read_from = if is_below { format!("/{read_from}") } else { read_from };
        let runbook = format!("tuning/{}.md", knob.runbook.name());
        Finding { name: knob.name, status, now, wanted, mend, read_from, runbook, changes }
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

impl Report {
    pub fn of(machine: &Machine) -> Report {
        Report { findings: knobs().map(|knob| Finding::of(knob, machine)).collect() }
    }

    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for finding in &self.findings {
            *match finding.status {
                Status::Ok => &mut tally.ok,
                Status::Slower => &mut tally.slower,
                Status::Stops => &mut tally.stops,
                Status::CannotTell => &mut tally.cannot_tell,
                Status::NotHere => &mut tally.not_here,
            } += 1;
        }
        tally
    }

    /// What can be mended while the machine runs.
    pub fn plan(&self) -> Plan {
        Plan::of(&self.findings)
    }
}

impl Tally {
    /// `14 ok, 3 slower, 0 stops, 2 cannot tell`.
    pub fn text(&self) -> String {
        let Tally { ok, slower, stops, cannot_tell, .. } = self;
        let cannot_tell =
            if *cannot_tell > 0 { format!(", {cannot_tell} cannot tell") } else { String::new() };
        format!("{ok} ok, {slower} slower, {stops} stops{cannot_tell}")
    }
}

/// The line that stands at every start of a node.
pub(crate) fn startup_line(machine: &Machine) -> (Tally, String) {
    let tally = Report::of(machine).tally();
    let advice = Advice::of(machine, 0);
    let more = if tally.slower + tally.stops > 0 { "; nephila tune check shows them" } else { "" };
    (tally, format!("tune: {}{more} (good for {} shards)", tally.text(), advice.shards))
}
