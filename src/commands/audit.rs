use super::shared::{Failure, LogParts, Missing, Piece, counted, stream, write_json};
use crate::audit::{Gap, Kind, LogReader, Overrides, Place, Report, Subject, Tally, Violation};
use crate::base::{rfc3339, shown};
use crate::engine::MasterPosition;
use crate::proto::crawl_log::{CRAWL_LOG, LINE_BYTES_MAX};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Hosts and addresses shown without `--all`.
const TALLIES_SHOWN: usize = 10;
/// Violations and torn lines shown to people.
const VIOLATIONS_SHOWN: usize = 20;

/// Replay the crawl log and prove that every host was treated as promised; exit 1 if one was not
#[derive(Args)]
#[command(after_help = "\
Reads the crawl log of each --data (a URL server and its spiders may have one
each), DIR/crawl.log.1, .2 and so on, compressed by gzip or not, and then
DIR/crawl.log, as one log, and checks, for every host (scheme, name and port) and every IP address,
the gap between two requests, how many were open at once, the pauses that
robots.txt and the server asked for, and that no page was asked for before
robots.txt was known, read as far as it must be and for the agent of that run,
and no feed before it was due.
The rules are those that each run wrote into its log; a flag wins over them.
1 ms is allowed for the rounding of clocks.
Nodes that take from a master are judged together: a host over all of them, so
that a domain that moved was asked by one at a time and its pauses and robots
rules were kept; an address by each node.

--json prints one object:
  requests, polls, hosts, ips, runs, lines   counts; polls are of feeds
  violations_total                    a count; the first 10,000 are listed:
  violations    kind, host or ip, at, file, line; other_file and other_line
                where two lines are held against each other. By kind:
                  gap           gap_ms, allowed_ms, why: rate, response_time,
                                crawl_delay, retry_after or back_off
                  open          open, allowed
                  before_robots, robots_unreachable, robots_agent
                  robots_cut    bytes
                  robots_stale  age_ms
                  poll_early    early_ms: a feed before it was due
                  malformed     error
  smallest_gap_ms  {\"host\": …, \"ip\": …}: null, or name, gap_ms, allowed_ms,
                file, line
  open_max      {\"host\": N, \"ip\": N}
  by_host, by_ip   the ten with the smallest gaps, --all for all: name,
                requests, gap_ms, allowed_ms, open_max
  torn_lines    file and line of what a killed process left unfinished, which
                is no violation
  missing_parts file, from, to: parts of a log that are not there
  unproven      pages asked for by robots rules that a missing part may tell

Example:
  nephila audit --data ./example
  nephila audit --data ./urlserver --data ./spider --json | jq .violations
  nephila audit --data ./example --req-host-per-sec 0.5
  nephila audit archive/crawl.log.*")]
pub struct AuditArgs {
    /// Parts of crawl logs, instead of those of a data directory; their numbers say the order
    #[arg(value_name = "FILE", conflicts_with = "data")]
    files: Vec<PathBuf>,
    /// The data directory of a crawl (repeatable: the logs are merged)
    #[arg(long, value_name = "DIR", default_value = "./nephila-data")]
    data: Vec<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Every host and address, not only the ten with the smallest gaps
    #[arg(long)]
    all: bool,
    /// Judge by this rate instead of the log's; 0 = no limit
    #[arg(long, value_name = "F", value_parser = rate)]
    req_host_per_sec: Option<f64>,
    /// Judge by this number open at once instead of the log's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    req_host_concurrent: Option<u32>,
    /// The same for an IP address
    #[arg(long, value_name = "F", value_parser = rate)]
    req_ip_per_sec: Option<f64>,
    /// The same for an IP address
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    req_ip_concurrent: Option<u32>,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        _ => Err("a number of requests a second, 0 for no limit".to_string()),
    }
}

impl AuditArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut log = LogReader::new(Overrides {
            req_host_per_sec: self.req_host_per_sec,
            req_host_concurrent: self.req_host_concurrent,
            req_ip_per_sec: self.req_ip_per_sec,
            req_ip_concurrent: self.req_ip_concurrent,
        });
        let mut missing = Vec::new();
        for (number, parts) in self.logs()?.into_iter().enumerate() {
            let is_node = |data: &PathBuf| data.join(MasterPosition::FILE).exists();
            // Nodes of a master share no addresses; a URL server and its spiders do.
            log.of_node(if self.data.get(number).is_some_and(is_node) { 1 + number as u32 } else { 0 });
            let name = |path: &Path| shown(&path.display().to_string(), 1_000);
            let (mut is_open, mut are_lost) = (false, false);
            for piece in parts.pieces() {
                if let Piece::Missing(lost) = piece {
                    missing.push((name(&parts.path), lost));
                    are_lost = true;
                    continue;
                }
                let (path, reader) = parts.read(&piece).map_err(|e| cannot_read(&parts.path, &e))?;
                match std::mem::replace(&mut is_open, true) {
                    false => log.open_file(&name(&path)),
                    true => log.open_part(&name(&path)),
                }
                if std::mem::take(&mut are_lost) {
                    log.lines_are_missing();
                }
                read_lines(reader, &mut log).map_err(|e| cannot_read(&path, &e))?;
                log.close_file();
            }
        }
        let report = log.judge();
        stream(|out| match self.json {
            true => write_json(out, &to_json(&report, &missing, self.all)),
            false => out.write_all(to_text(&report, &missing, self.all).as_bytes()),
        })?;
        let is_whole = missing.iter().all(|(_, lost)| lost.is_leading);
        match (report.violations_total, is_whole) {
            (0, true) => Ok(()),
            (0, false) => {
                Err(Failure::No("the log is not whole, and proves nothing of what is missing".into()))
            }
            (count, _) => Err(Failure::No(format!(
                "{}; each names the lines that prove it",
                counted(count, "violation")
            ))),
        }
    }

    fn logs(&self) -> Result<Vec<LogParts>, Failure> {
        if self.files.is_empty() {
            let log = |data: &PathBuf| LogParts::of(data).map_err(|e| no_log(data, &e));
            return self.data.iter().map(log).collect();
        }
        LogParts::among(&self.files).map_err(|e| {
            let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
            Failure::CannotRun(format!("cannot read {}: {e}", files.join(" ")))
        })
    }
}

/// Hands a file over line by line. A line that no writer of ours makes is cut, so that it is refused.
fn read_lines(mut reader: Box<dyn BufRead>, log: &mut LogReader) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        // One more than the longest, and the line end.
        let bytes = reader.by_ref().take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line)?;
        if bytes == 0 {
            return Ok(());
        }
        if bytes == LINE_BYTES_MAX + 2 && line.last() != Some(&b'\n') {
            reader.skip_until(b'\n')?;
            line.push(b'\n');
        }
        log.line(&line);
    }
}

fn no_log(data: &Path, error: &io::Error) -> Failure {
    let (path, data) = (data.join(CRAWL_LOG), data.display());
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Failure::CannotRun(format!(
            "there is no {}; is --data {data} the directory of a crawl that has run?",
            path.display()
        )),
        _ => cannot_read(&path, error),
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let mend = match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => "it is damaged, or still being compressed",
        _ => "check its permissions, and those of its directory (--data)",
    };
    Failure::CannotRun(format!("cannot read {}: {error}; {mend}", path.display()))
}

fn ms(us: u64) -> f64 {
    us as f64 / 1e3
}

fn seconds(us: u64) -> String {
    format!("{:.3} s", us as f64 / 1e6)
}

/// The smallest gap first, who was asked once last; ten of them or all.
fn tightest(tallies: &[Tally], all: bool) -> Vec<&Tally> {
    let mut sorted: Vec<&Tally> = tallies.iter().collect();
    sorted.sort_by_key(|tally| {
        let gap_us = tally.smallest.map_or(u64::MAX, |smallest| smallest.gap_us);
        (gap_us, std::cmp::Reverse(tally.requests))
    });
    if !all {
        sorted.truncate(TALLIES_SHOWN);
    }
    sorted
}

fn smallest(tallies: &[Tally]) -> Option<(&Tally, Gap)> {
    tallies.iter().filter_map(|tally| Some((tally, tally.smallest?))).min_by_key(|(_, gap)| gap.gap_us)
}

fn open_max(tallies: &[Tally]) -> u32 {
    tallies.iter().map(|tally| tally.open_max).max().unwrap_or(0)
}

// For scripts -----------------------------------------------------------------------------------------------

fn to_json(report: &Report, missing: &[(String, Missing)], all: bool) -> Value {
    let violations: Vec<Value> =
        report.violations.iter().map(|violation| violation_json(report, violation)).collect();
    let torn: Vec<Value> =
        report.torn.iter().map(|&place| json!({"file": report.file(place), "line": place.line})).collect();
    let missing: Vec<Value> =
        missing.iter().map(|(file, lost)| json!({"file": file, "from": lost.from, "to": lost.to})).collect();
    let gap = |tallies: &[Tally]| {
        smallest(tallies).map(|(tally, gap)| {
            json!({
                "name": tally.name, "gap_ms": ms(gap.gap_us), "allowed_ms": ms(gap.allowed_us),
                "file": report.file(gap.place), "line": gap.place.line,
            })
        })
    };
    let smallest_gap = json!({"host": gap(&report.hosts), "ip": gap(&report.ips)});
    let open = json!({"host": open_max(&report.hosts), "ip": open_max(&report.ips)});
    json!({
        "requests": report.requests,
        "polls": report.polls,
        "hosts": report.hosts.len(),
        "ips": report.ips.len(),
        "runs": report.runs,
        "lines": report.lines,
        "violations_total": report.violations_total,
        "violations": violations,
        "smallest_gap_ms": smallest_gap,
        "open_max": open,
        "by_host": tallies_json(&report.hosts, all),
        "by_ip": tallies_json(&report.ips, all),
        "torn_lines": torn,
        "missing_parts": missing,
        "unproven": report.unproven,
    })
}

fn tallies_json(tallies: &[Tally], all: bool) -> Vec<Value> {
    tightest(tallies, all)
        .into_iter()
        .map(|tally| {
            json!({
                "name": tally.name, "requests": tally.requests,
                "gap_ms": tally.smallest.map(|gap| ms(gap.gap_us)),
                "allowed_ms": tally.smallest.map(|gap| ms(gap.allowed_us)),
                "open_max": tally.open_max,
            })
        })
        .collect()
}

fn violation_json(report: &Report, violation: &Violation) -> Value {
    let Violation { place, other, .. } = *violation;
    let mut object = json!({"kind": violation.kind.name(), "file": report.file(place), "line": place.line});
    let name = report.name(violation.subject).into();
    match violation.subject {
        Subject::Host(_) => object["host"] = name,
        Subject::Ip(_) => object["ip"] = name,
        Subject::Line => {}
    }
    if violation.at_us > 0 {
        object["at"] = rfc3339(violation.at_us / 1_000).into();
    }
    if let Some(other) = other {
        object["other_file"] = report.file(other).into();
        object["other_line"] = other.line.into();
    }
    match violation.kind {
        Kind::Gap { gap_us, allowed_us, why } => {
            object["gap_ms"] = ms(gap_us).into();
            object["allowed_ms"] = ms(allowed_us).into();
            object["why"] = why.name().into();
        }
        Kind::Open { open, allowed } => {
            object["open"] = open.into();
            object["allowed"] = allowed.into();
        }
        Kind::RobotsStale { age_us } => object["age_ms"] = ms(age_us).into(),
        Kind::PollEarly { early_us } => object["early_ms"] = ms(early_us).into(),
        Kind::RobotsCut { bytes } => object["bytes"] = bytes.into(),
        Kind::Malformed(error) => object["error"] = error.to_string().into(),
        Kind::BeforeRobots | Kind::RobotsUnreachable | Kind::RobotsAgent => {}
    }
    object
}

// For people ------------------------------------------------------------------------------------------------

fn to_text(report: &Report, missing: &[(String, Missing)], all: bool) -> String {
    let Report { requests, lines, runs, .. } = report;
    let (hosts, ips, files) = (report.hosts.len(), report.ips.len(), report.files.len());
    let addresses = if ips == 1 { "address" } else { "addresses" };
    let mut text = format!(
        "{} to {} at {ips} {addresses}, in {} of {}, {}\n",
        counted(*requests, "request"),
        counted(hosts as u64, "host"),
        counted(*lines, "line"),
        counted(*runs, "run"),
        counted(files as u64, "file")
    );
    if report.polls > 0 {
        text += &format!("{} of feeds, each held to the time it was due\n", counted(report.polls, "poll"));
    }
    for (file, lost) in missing {
        text += &format!("{lost} of {file}: what was asked then is not judged\n");
    }
    if report.unproven > 0 {
        text += &format!(
            "{} asked for by rules of robots.txt that are not in what is left of the log\n",
            if report.unproven == 1 {
                "1 page was".to_string()
            } else {
                format!("{} pages were", report.unproven)
            }
        );
    }
    if report.requests == 0 {
        text += "no request was sent: there is nothing to prove\n";
    }
    for (what, tallies) in [("hosts", &report.hosts), ("addresses", &report.ips)] {
        if tallies.is_empty() {
            continue;
        }
        let gap = smallest(tallies).map_or("none was asked twice".to_string(), |(_, gap)| {
            format!("smallest gap {} (allowed {})", seconds(gap.gap_us), seconds(gap.allowed_us))
        });
        text += &format!("{what:<10} {gap}, at most {} open at once\n", open_max(tallies));
    }
    for &place in report.torn.iter().take(VIOLATIONS_SHOWN) {
        text += &format!("{} is torn: a process was killed there, or is writing it\n", at(report, place));
    }
    tallies_text(&mut text, "host", &report.hosts, all);
    tallies_text(&mut text, "address", &report.ips, all);
    match report.violations_total {
        0 => text += "\nno violation\n",
        count => {
            text += &format!("\n{}\n", counted(count, "violation"));
            let shown = &report.violations[..report.violations.len().min(VIOLATIONS_SHOWN)];
            shown.iter().for_each(|violation| text += &violation_text(report, violation));
            if count > shown.len() as u64 {
                text += &format!("  and {} more: see --json\n", count - shown.len() as u64);
            }
        }
    }
    text
}

fn tallies_text(text: &mut String, what: &str, tallies: &[Tally], all: bool) {
    if tallies.is_empty() {
        return;
    }
    let tightest = tightest(tallies, all);
    *text += &format!("\n  smallest gap      allowed  open  requests  {what}\n");
    for tally in &tightest {
        let time = |us: Option<u64>| us.map_or("-".to_string(), seconds);
        let gap = time(tally.smallest.map(|gap| gap.gap_us));
        let allowed = time(tally.smallest.map(|gap| gap.allowed_us));
        let (Tally { open_max, requests, .. }, name) = (tally, shown(&tally.name, 200));
        *text += &format!("  {gap:>12} {allowed:>12} {open_max:>5} {requests:>9}  {name}\n");
    }
    if tightest.len() < tallies.len() {
        *text += &format!("  and {} more: see --all\n", tallies.len() - tightest.len());
    }
}

fn at(report: &Report, place: Place) -> String {
    format!("{}:{}", report.file(place), place.line)
}

fn violation_text(report: &Report, violation: &Violation) -> String {
    let other = violation.other.map_or(String::new(), |other| at(report, other));
    let what = match violation.kind {
        Kind::Gap { gap_us, allowed_us, why } => {
            let (gap, allowed, why) = (seconds(gap_us), seconds(allowed_us), why.name());
            format!("asked {gap} after the request before; {allowed} are allowed ({why}, by {other})")
        }
        Kind::Open { open, allowed } => {
            format!("{open} open at once, {allowed} allowed; {other} was open still")
        }
        Kind::BeforeRobots => "a page was asked for before robots.txt was known".to_string(),
        Kind::RobotsUnreachable => "a page was asked for although robots.txt was unreachable".to_string(),
        Kind::RobotsStale { age_us } => {
            format!("a page was asked for by rules {:.1} hours old", age_us as f64 / 3.6e9)
        }
        Kind::RobotsAgent => {
            "a page was asked for by robots rules that an earlier run read, for another agent or for none it tells".to_string()
        }
        Kind::PollEarly { early_us } => format!("a feed was asked {} before it was due", seconds(early_us)),
        Kind::RobotsCut { bytes } => {
            return format!("  {} robots.txt was read up to byte {bytes} only\n", at(report, violation.place));
        }
        Kind::Malformed(error) => {
            return format!("  {} does not read: {error}\n", at(report, violation.place));
        }
    };
    let name = shown(report.name(violation.subject).unwrap_or_default(), 200);
    format!("  {} {} {name}: {what}\n", at(report, violation.place), rfc3339(violation.at_us / 1_000))
}
