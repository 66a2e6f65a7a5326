use super::command::{MasterData, while_it_runs};
use crate::base::{grouped, plural};
use crate::commands::shared::{Failure, tell};
use crate::master::audit::MasterAudit;
use clap::Args;

/// Violations shown to people.
const SHOWN: usize = 20;

/// Prove from what a master keeps that its promises hold; exit 1 if one does not
#[derive(Args)]
#[command(after_help = "\
Goes through journal, queues, map, current_log, held lines and rejects, as far as they are kept, and \
checks that no URL was sent twice within the hour without another tag, that no domain was with two \
servers at once, and that every hit of every file was sent, waits, expired, was rejected, is held or was \
capped (more in one line or row than 2^32). A master may run meanwhile: what is committed counts.

--json prints one object:
  epochs, urls, domains, servers          counts
  hits_in, hits_sent, hits_waiting, hits_expired, hits_rejected, hits_held, hits_capped
  violations_total                        a count; the first 10,000 are listed:
  violations    kind (sent_twice, two_servers, unaccounted, damaged) and text

Example:
  nephila master audit --data ./nephila-master")]
pub struct AuditArgs {
    #[command(flatten)]
    data: MasterData,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl AuditArgs {
    pub fn run(self) -> Result<(), Failure> {
        let audit = while_it_runs(|| Ok(MasterAudit::of(&mut self.data.view()?)))?;
        tell(&audit, self.json, text)?;
        if audit.violations_total == 0 { Ok(()) } else { Err(Failure::No(String::new())) }
    }
}

fn text(audit: &MasterAudit) -> String {
    let [epochs, urls, domains, servers] =
        [(audit.epochs, "epoch"), (audit.urls, "URL"), (audit.domains, "domain"), (audit.servers, "server")]
            .map(|(count, noun)| format!("{} {}", grouped(count), plural(count, noun)));
    let capped = match audit.hits_capped {
        0 => String::new(),
        hits => format!(", {} capped", grouped(hits)),
    };
    let mut text = format!(
        "read       {epochs}, {urls} of {domains} in the queues of {servers}\n\
         hits       {} in: {} sent, {} waiting, {} expired, {} rejected, {} held{capped}\n",
        grouped(audit.hits_in),
        grouped(audit.hits_sent),
        grouped(audit.hits_waiting),
        grouped(audit.hits_expired),
        grouped(audit.hits_rejected),
        grouped(audit.hits_held)
    );
    for violation in audit.violations.iter().take(SHOWN) {
        text += &format!("{:<12} {}\n", violation.kind.name(), violation.text);
    }
    if audit.violations_total > SHOWN as u64 {
        text += &format!("{} more\n", grouped(audit.violations_total - SHOWN as u64));
    }
    match audit.violations_total {
        0 => text + "verdict    every promise holds\n",
        count => text + &format!("verdict    {} {}\n", grouped(count), plural(count, "violation")),
    }
}
