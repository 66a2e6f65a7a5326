use super::index::is_pending;
use super::index_stat::origin_of;
use super::shared::{DataArg, Failure, Standing, is_of_host, now_ms, stream, with_age, write_json};
use crate::base::{Wall, rfc3339, shown};
use crate::doc_index::DocState;
use crate::engine::{CrawlRules, NicenessLine, RobotsLine, RobotsState, Status, index_folder, remembered};
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// One host of `index hosts`.
#[derive(Serialize)]
struct HostListed<'a> {
    origin: &'a str,
    #[serde(flatten)]
    counts: Counts,
    next_due_at: Option<String>,
    niceness: Option<NicenessLine>,
    robots: Option<RobotsLine>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Counts {
    known: u32,
    pending: u32,
    waiting: u32,
    success: u32,
    errors: u32,
    excluded: u32,
    /// For other nodes of the cluster to fetch.
    foreign: u32,
    /// 0 if nothing is to come.
    #[serde(skip)]
    next_due_s: u32,
}

pub(super) fn hosts(data: &DataArg, limit: usize, host: Option<&str>, json: bool) -> Result<(), Failure> {
    let (owned, now_ms) = (data.view_of_pending()?, now_ms());
    let mut hosts: RapidHashMap<Box<str>, Counts> = RapidHashMap::default();
    owned.view.each(|_, discovered, row| {
        let row = owned.standing(&discovered.url, row);
        let origin = origin_of(&discovered.url);
        if let Some(counts) = hosts.get_mut(origin) {
            counts.count(row, now_ms / 1_000);
        } else if host.is_none_or(|host| is_of_host(&discovered.url, host)) {
            hosts.entry(origin.into()).or_default().count(row, now_ms / 1_000);
        }
        ControlFlow::Continue(())
    })?;
    let mut hosts: Vec<(Box<str>, Counts)> = hosts.into_iter().collect();
    hosts.sort_by(|a, b| b.1.pending.cmp(&a.1.pending).then_with(|| a.0.cmp(&b.0)));
    // The journal tells whole seconds, and so does this.
    let wall = Wall { unix_ms_at_zero: now_ms / 1_000 * 1_000 };
    let rules = CrawlRules::read(&index_folder(&data.path))?.unwrap_or_default();
    let memory = remembered(&data.path, &rules.user_agent, wall)?;
    stream(|out| {
        if !json {
            writeln!(out, "{:>9} {:>9} {:>9} {:>9}  origin", "pending", "known", "success", "errors")?;
        }
        hosts.iter().take(limit).try_for_each(|(origin, counts)| {
            let mut status = Status::default();
            status.remembered(&memory, origin, "/", wall);
            let due_ms = u64::from(counts.next_due_s) * 1_000;
            let listed = HostListed {
                origin,
                counts: *counts,
                next_due_at: (due_ms > 0).then(|| rfc3339(due_ms)),
                niceness: status.niceness,
                // What they say is of one path, and this is about none.
                robots: status
                    .robots
                    .filter(|robots| robots.state != RobotsState::Unknown)
                    .map(|robots| RobotsLine { allowed: None, rule: None, ..robots }),
            };
            if json { write_json(out, &listed) } else { listed.write(out) }
        })
    })?;
    match host {
        Some(host) if hosts.is_empty() => Err(Failure::No(format!(
            "no URL of {} is known (nephila index hosts lists all)",
            shown(host, 200)
        ))),
        _ => Ok(()),
    }
}

impl Counts {
    fn count(&mut self, standing: Standing, now_s: u64) {
        self.known = self.known.saturating_add(1);
        let Standing::Here(row) = standing else {
            self.foreign += 1;
            return;
        };
        if is_pending(row.as_ref(), now_s) {
            self.pending += 1;
            return;
        }
        let Some(row) = row else { return };
        match row.state {
            DocState::Success => self.success += 1,
            DocState::Error => self.errors += 1,
            DocState::Excluded => self.excluded += 1,
            DocState::Pending | DocState::HandedOut => {}
        }
        if row.due_s > 0 {
            self.waiting += 1;
            self.next_due_s = if self.next_due_s == 0 { row.due_s } else { self.next_due_s.min(row.due_s) };
        }
    }
}

impl HostListed<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Counts { known, pending, waiting, success, errors, .. } = self.counts;
        let origin = shown(self.origin, 300);
        write!(out, "{pending:>9} {known:>9} {success:>9} {errors:>9}  {origin}")?;
        let mut words = Vec::new();
        words.extend(
            self.next_due_at.as_ref().map(|at| format!("{waiting} wait, the next until {}", with_age(at))),
        );
        if let Some(niceness) = &self.niceness {
            words
                .extend(niceness.pause_until.as_ref().map(|at| format!("left alone until {}", with_age(at))));
            let figures = [
                ("penalty", niceness.penalty_ms),
                ("slow", niceness.response_ms),
                ("Crawl-delay", niceness.crawl_delay_ms),
            ];
            words
                .extend(figures.iter().filter(|(_, ms)| *ms > 0).map(|(name, ms)| format!("{name} {ms} ms")));
            words.extend((niceness.failures > 0).then(|| format!("failures {}", niceness.failures)));
        }
        if let Some(robots) = &self.robots {
            let until = robots.until.as_deref().unwrap_or("-");
            words.push(format!("robots.txt {} until {until}", robots.state.name()));
        }
        match words.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "  ({})", words.join("; ")),
        }
    }
}
