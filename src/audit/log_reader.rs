use super::report::{Kind, Place, Report, Subject, Violation};
use super::row::{Learnt, LostLines, NO_IP, Row, Run};
use super::timeline::{Bounds, Timeline};
use crate::base::canonical;
use crate::proto::crawl_log::{LogError, LogLine, Path, RuleChange, Rules, RunRules};
use crate::proto::record::ResultCode;
use memchr::memmem;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// Takes the lines of one log after the other, then judges them all.
///
/// The life of a file: `open_file`, `line` for each of its lines, `close_file`. A log in several parts goes on with
/// `open_part`.
#[derive(Default)]
pub struct LogReader {
    overrides: Overrides,
    rows: Vec<Row>,
    learnt: Vec<Learnt>,
    runs: Vec<Run>,
    /// What opened last, as a whole; and where it begins for each shard whose rules were changed since.
    run: u32,
    run_of_shard: RapidHashMap<u16, u32>,
    /// As the log told them last.
    run_rules: RunRules,
    origins: RapidHashMap<Box<str>, u32>,
    /// An address is judged by node: several that share nothing each have a budget of their own for it.
    ips: RapidHashMap<(u32, IpAddr), u32>,
    /// The node whose log is open.
    node: u32,
    /// Lines of the open file so far.
    line: u32,
    /// The last line did not parse. If a run opens next, a killed process left it.
    fault: Option<(Place, LogError)>,
    report: Report,
    /// When the lines before were made, of this log.
    made_us: u64,
    /// Lines are missing before the next one.
    is_after_gap: bool,
    gaps: Vec<LostLines>,
}

/// This much of a robots.txt is read at the least, as RFC 9309 wants it.
const ROBOTS_BYTES_MIN: u64 = 500 * 1_024;

/// Rules that replace those of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    pub req_host_per_sec: Option<f64>,
    pub req_host_concurrent: Option<u32>,
    pub req_ip_per_sec: Option<f64>,
    pub req_ip_concurrent: Option<u32>,
}

impl Overrides {
    fn over(&self, mut rules: RunRules) -> RunRules {
        rules.req_host_per_sec = self.req_host_per_sec.unwrap_or(rules.req_host_per_sec);
        rules.req_host_concurrent = self.req_host_concurrent.unwrap_or(rules.req_host_concurrent);
        rules.req_ip_per_sec = self.req_ip_per_sec.unwrap_or(rules.req_ip_per_sec);
        rules.req_ip_concurrent = self.req_ip_concurrent.unwrap_or(rules.req_ip_concurrent);
        rules
    }
}

impl LogReader {
    pub fn new(overrides: Overrides) -> LogReader {
        LogReader { overrides, ..LogReader::default() }
    }

    /// Begins a file: the lines that follow are of it. Until it names its rules, the defaults hold.
    pub fn open_file(&mut self, name: &str) {
        (self.made_us, self.is_after_gap) = (0, false);
        self.run_rules = RunRules::default();
        self.open_part(name);
    }

    /// The logs that are opened from here on are of this node. Those of one node share their addresses; hosts are judged
    /// over all of them, as no two may ask a host at once.
    pub fn of_node(&mut self, node: u32) {
        self.node = node;
    }

    /// Begins another file of the same log: until it names its rules, those of the file before it hold.
    pub fn open_part(&mut self, name: &str) {
        self.report.files.push(name.to_string());
        self.line = 0;
        self.begin_run(self.run_rules.clone());
    }

    /// Lines of the open log are missing here. What they would have said of robots.txt is not held against a request.
    pub fn lines_are_missing(&mut self) {
        self.is_after_gap = true;
    }

    /// Takes a line, with its line end if it has one: only the last line of a file can be without.
    pub fn line(&mut self, line: &[u8]) {
        self.line = self.line.saturating_add(1);
        let place = self.place();
        let Some(text) = line.strip_suffix(b"\n") else {
            // It may parse by accident, with a number cut short.
            self.settle_fault();
            return self.report.torn.push(place);
        };
        if text.starts_with(b"#") {
            return self.comment(text, place);
        }
        self.settle_fault();
        match LogLine::parse(text).map(|line| self.take(&line)) {
            Ok(Ok(())) => self.report.lines += 1,
            Ok(Err(error)) | Err(error) => self.fault(text, place, error),
        }
    }

    pub fn close_file(&mut self) {
        self.settle_fault();
    }

    /// Checks all lines, after the last one.
    pub fn judge(mut self) -> Report {
        self.settle_fault();
        let names = in_order(&self.origins);
        self.learnt.sort_by_key(|learnt| (learnt.origin, learnt.end_us));
        self.rows.sort_unstable_by_key(|row| (row.origin, row.sent_us, row.run, row.line));
        for rows in self.rows.chunk_by(|a, b| a.origin == b.origin) {
            let origin = rows[0].origin;
            let from = self.learnt.partition_point(|learnt| learnt.origin < origin);
            let to = self.learnt.partition_point(|learnt| learnt.origin <= origin);
            let subject = Subject::Host(self.report.hosts.len());
            let timeline = Timeline {
                subject,
                rows,
                runs: &self.runs,
                gaps: &self.gaps,
                bounds: Bounds::of_host,
                learnt: &mut self.learnt[from..to],
            };
            let tally = timeline.judge(names[origin as usize].to_string(), &mut self.report);
            self.report.hosts.push(tally);
        }
        let addresses = in_order(&self.ips);
        self.rows.sort_unstable_by_key(|row| (row.ip, row.sent_us, row.run, row.line));
        for rows in self.rows.chunk_by(|a, b| a.ip == b.ip).filter(|rows| rows[0].ip != NO_IP) {
            let subject = Subject::Ip(self.report.ips.len());
            let timeline = Timeline {
                subject,
                rows,
                runs: &self.runs,
                gaps: &[],
                bounds: Bounds::of_ip,
                learnt: &mut [],
            };
            let tally = timeline.judge(addresses[rows[0].ip as usize].1.to_string(), &mut self.report);
            self.report.ips.push(tally);
        }
        self.report.requests = self.rows.len() as u64;
        self.report.violations.sort_by_key(|violation| (violation.at_us, violation.place));
        self.report
    }

    fn place(&self) -> Place {
        Place { file: self.report.files.len() as u32 - 1, line: self.line }
    }

    fn begin_run(&mut self, rules: RunRules) {
        self.run = self.push_run(self.overrides.over(rules));
        self.run_of_shard.clear();
    }

    fn push_run(&mut self, rules: RunRules) -> u32 {
        let file = self.report.files.len() as u32 - 1;
        self.runs.push(Run::new(file, rules));
        self.runs.len() as u32 - 1
    }

    /// On one shard other rules hold from a moment on. What was decided in that very microsecond may have kept to either:
    /// it is held to the less strict of both.
    fn change(&mut self, change: RuleChange) {
        let first = match self.run_of_shard.get(&change.shard) {
            Some(&first) => first,
            None => {
                let first = self.push_run(self.runs[self.run as usize].rules.clone());
                self.run_of_shard.insert(change.shard, first);
                first
            }
        };
        let last = Run::at(&self.runs, first, u64::MAX - 1);
        let rules = self.overrides.over(change.rules);
        let either = self.push_run(self.runs[last as usize].rules.or_less(&rules));
        let new = self.push_run(rules);
        for (run, until_us, next) in
            [(last, change.at_us, either), (either, change.at_us.saturating_add(1), new)]
        {
            (self.runs[run as usize].until_us, self.runs[run as usize].next) = (until_us, next);
        }
    }

    /// The run that something belongs to which a shard did at a moment.
    fn run_at(&self, shard: u16, at_us: u64) -> u32 {
        match self.run_of_shard.get(&shard) {
            Some(&first) => Run::at(&self.runs, first, at_us),
            None => self.run,
        }
    }

    /// A run begins, or goes on in another part of the log.
    fn open_run(&mut self, rules: RunRules) {
        let goes_on = rules.part > 1 && rules.started_us == self.run_rules.started_us;
        self.report.runs += u64::from(!goes_on);
        self.run_rules = rules.clone();
        self.begin_run(rules);
    }

    fn comment(&mut self, text: &[u8], place: Place) {
        match RuleChange::parse(text) {
            Ok(Some(change)) => {
                self.settle_fault();
                return self.change(change);
            }
            Ok(None) => {}
            Err(error) => {
                self.settle_fault();
                return self.blame(place, Kind::Malformed(error));
            }
        }
        match RunRules::parse(text) {
            Ok(Some(rules)) => {
                if let Some((torn, _)) = self.fault.take() {
                    self.report.torn.push(torn);
                }
                self.open_run(rules);
            }
            Ok(None) => self.settle_fault(),
            Err(error) => {
                self.settle_fault();
                self.blame(place, Kind::Malformed(error));
            }
        }
    }

    /// A line that does not parse: perhaps a killed process left it, and the next run wrote right behind it.
    fn fault(&mut self, text: &[u8], place: Place, error: LogError) {
        let glued = memmem::find(text, RunRules::PREFIX.as_bytes()).map(|at| RunRules::parse(&text[at..]));
        match glued {
            Some(Ok(Some(rules))) => {
                self.report.torn.push(place);
                self.open_run(rules);
            }
            _ => self.fault = Some((place, error)),
        }
    }

    /// No run opened after a line that did not parse, so no process was killed there.
    fn settle_fault(&mut self) {
        if let Some((place, error)) = self.fault.take() {
            self.blame(place, Kind::Malformed(error));
        }
    }

    /// A line that is at fault by itself.
    fn blame(&mut self, place: Place, kind: Kind) {
        self.report.blame(Violation { kind, subject: Subject::Line, at_us: 0, place, other: None });
    }

    fn take(&mut self, line: &LogLine<'_>) -> Result<(), LogError> {
        if std::mem::take(&mut self.is_after_gap) {
            self.gaps.push(LostLines { from_us: self.made_us, to_us: line.made_us });
        }
        self.made_us = line.made_us;
        let is_robots = matches!(line.path, Path::Robots { .. });
        if is_robots && line.result == ResultCode::TooLarge && line.document_bytes < ROBOTS_BYTES_MIN {
            self.blame(self.place(), Kind::RobotsCut { bytes: line.document_bytes });
        }
        if let Path::Robots { origin, rules, crawl_delay_ms } = line.path
            && rules != Rules::Hop
        {
            let origin = number(&mut self.origins, origin, |name: &str| name.into());
            let end_us = line.timing.map_or(line.made_us, |timing| timing.end_us());
            self.learnt.push(Learnt {
                end_us,
                origin,
                run: self.run_at(line.shard, end_us),
                known: rules == Rules::Known,
                crawl_delay_ms: crawl_delay_ms.unwrap_or(0),
            });
        }
        let Some(timing) = line.timing else {
            return Ok(());
        };
        let origin = line.origin().ok_or(LogError::Field("url"))?;
        if let Some(poll) = line.poll {
            self.report.polls += 1;
            let early_us = (u64::from(poll.due_s) * 1_000_000).saturating_sub(timing.sent_us);
            if early_us > 0 {
                let (at_us, place) = (timing.sent_us, self.place());
                let (kind, subject) = (Kind::PollEarly { early_us }, Subject::Line);
                self.report.blame(Violation { kind, subject, at_us, place, other: None });
            }
        }
        self.rows.push(Row {
            sent_us: timing.sent_us,
            took_us: u32::try_from(timing.took_us).unwrap_or(u32::MAX),
            wait_us: timing.wait_us.unwrap_or(0),
            line: self.line,
            run: self
                .run_at(line.shard, timing.sent_us.saturating_sub(u64::from(timing.wait_us.unwrap_or(0)))),
            origin: number(&mut self.origins, &*origin, |name: &str| name.into()),
            ip: line
                .addr
                .map_or(NO_IP, |addr| number(&mut self.ips, &(self.node, canonical(addr.ip())), |ip| *ip)),
            retry_after_s: line.retry_after_s.unwrap_or(0),
            status: line.status.unwrap_or(0),
            is_page: matches!(line.path, Path::Page { .. }),
        });
        Ok(())
    }
}

/// The number of a name: the next one if it was not seen before.
fn number<K, Q>(numbers: &mut RapidHashMap<K, u32>, name: &Q, own: impl Fn(&Q) -> K) -> u32
where
    K: std::borrow::Borrow<Q> + std::hash::Hash + Eq,
    Q: std::hash::Hash + Eq + ?Sized,
{
    match numbers.get(name) {
        Some(&number) => number,
        None => {
            let number = numbers.len() as u32;
            numbers.insert(own(name), number);
            number
        }
    }
}

/// Names by their number.
fn in_order<K: Clone>(numbers: &RapidHashMap<K, u32>) -> Vec<K> {
    let mut names: Vec<(&K, u32)> = numbers.iter().map(|(name, &number)| (name, number)).collect();
    names.sort_unstable_by_key(|&(_, number)| number);
    names.into_iter().map(|(name, _)| name.clone()).collect()
}
