use super::Failure;
use super::index::{is_of_host, is_pending, now_ms, view, write_json};
use super::index_stat::origin_of;
use super::output::written;
use crate::base::{Wall, rfc3339, shown};
use crate::doc_index::{DocState, Row};
use crate::engine::{NicenessLine, RobotsLine, Status, remembered};
use rapidhash::fast::RapidHashMap;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// One host of `index hosts`.
#[derive(Serialize)]
struct HostListed<'a> {
    origin: &'a str,
    known: u32,
    pending: u32,
    waiting: u32,
    success: u32,
    errors: u32,
    excluded: u32,
    next_due_at: Option<String>,
    niceness: Option<NicenessLine>,
    robots: Option<RobotsLine>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    known: u32,
    pending: u32,
    waiting: u32,
    success: u32,
    errors: u32,
    excluded: u32,
    /// 0 if nothing is to come.
    next_due_s: u32,
}

pub fn hosts(data: &Path, limit: usize, host: Option<&str>, json: bool) -> Result<(), Failure> {
    let (view, now_ms) = (view(data)?, now_ms());
    let mut hosts: RapidHashMap<Box<str>, Counts> = RapidHashMap::default();
    view.each(|_, discovered, row| {
        let origin = origin_of(&discovered.url);
        if let Some(counts) = hosts.get_mut(origin) {
            counts.count(row, now_ms / 1_000);
        } else if host.is_none_or(|host| is_of_host(&discovered.url, host)) {
            hosts.entry(origin.into()).or_default().count(row, now_ms / 1_000);
        }
        ControlFlow::Continue(())
    })
    .map_err(Failure::cannot_run)?;
    let mut hosts: Vec<(Box<str>, Counts)> = hosts.into_iter().collect();
    hosts.sort_by(|a, b| b.1.pending.cmp(&a.1.pending).then_with(|| a.0.cmp(&b.0)));
    let found = hosts.len();
    hosts.truncate(limit);
    // The journal tells whole seconds, and so does this.
    let wall = Wall { unix_ms_at_zero: now_ms / 1_000 * 1_000 };
    let memory = remembered(data, wall).map_err(Failure::cannot_run)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut done = if json { Ok(()) } else { header(&mut out) };
    for (origin, counts) in &hosts {
        let mut looked = Status::default();
        looked.remembered(&memory, origin, "/", wall);
        let mut robots = looked.robots.filter(|robots| robots.state != "unknown");
        if let Some(robots) = &mut robots {
            // What they say is of one path, and this is about none.
            (robots.allowed, robots.rule) = (None, None);
        }
        let listed = HostListed {
            origin,
            known: counts.known,
            pending: counts.pending,
            waiting: counts.waiting,
            success: counts.success,
            errors: counts.errors,
            excluded: counts.excluded,
            next_due_at: (counts.next_due_s > 0).then(|| rfc3339(u64::from(counts.next_due_s) * 1_000)),
            niceness: looked.niceness,
            robots,
        };
        done = done.and_then(|()| if json { write_json(&mut out, &listed) } else { listed.write(&mut out) });
    }
    written(done.and_then(|()| out.flush()))?;
    match (host, found) {
        (Some(host), 0) => Err(Failure::No(format!(
            "no URL of {} is known (nephila index hosts lists all)",
            shown(host, 200)
        ))),
        _ => Ok(()),
    }
}

fn header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:>9} {:>9} {:>9} {:>9}  origin", "pending", "known", "success", "errors")
}

impl Counts {
    fn count(&mut self, row: Option<&Row>, now_s: u64) {
        self.known = self.known.saturating_add(1);
        if is_pending(row, now_s) {
            self.pending += 1;
            return;
        }
        let Some(row) = row else { return };
        match row.state {
            DocState::Success => self.success += 1,
            DocState::Error => self.errors += 1,
            DocState::Excluded => self.excluded += 1,
            DocState::Pending | DocState::Fetching => {}
        }
        if row.due_s > 0 {
            self.waiting += 1;
            self.next_due_s = if self.next_due_s == 0 { row.due_s } else { self.next_due_s.min(row.due_s) };
        }
    }
}

impl HostListed<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let origin = shown(self.origin, 300);
        write!(
            out,
            "{:>9} {:>9} {:>9} {:>9}  {origin}",
            self.pending, self.known, self.success, self.errors
        )?;
        let mut words = Vec::new();
        words.extend(
            self.next_due_at.as_ref().map(|at| format!("{} wait, the next until {at}", self.waiting)),
        );
        if let Some(niceness) = &self.niceness {
            words.extend(niceness.pause_until.as_ref().map(|at| format!("left alone until {at}")));
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
            words.push(format!("robots.txt {} until {until}", robots.state));
        }
        match words.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "  ({})", words.join("; ")),
        }
    }
}
