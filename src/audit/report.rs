use crate::proto::crawl_log::LogError;

/// Violations that are kept in full; of more there is only the number.
pub const VIOLATIONS_KEPT: usize = 10_000;

/// What the log proves.
#[derive(Debug, Default)]
pub struct Report {
    /// The files, in the order they were read.
    pub files: Vec<String>,
    /// Runs that wrote their rules.
    pub runs: u64,
    /// Lines about a fetch.
    pub lines: u64,
    /// Those among them where something was sent or tried.
    pub requests: u64,
    /// Of these, polls of feeds.
    pub polls: u64,
    pub hosts: Vec<Tally>,
    pub ips: Vec<Tally>,
    /// Pages asked for by robots rules that lines may tell which are missing.
    pub unproven: u64,
    /// Lines that a killed process left unfinished.
    pub torn: Vec<Place>,
    /// By time, malformed lines first.
    pub violations: Vec<Violation>,
    pub violations_total: u64,
}

/// A line of a file; lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: u32,
    pub line: u32,
}

/// One host or address.
#[derive(Clone, Debug)]
pub struct Tally {
    pub name: String,
    pub requests: u64,
    /// Between two consecutive requests; `None` if there was one only.
    pub smallest: Option<Gap>,
    /// At once.
    pub open_max: u32,
}

/// From one request to the next, and what was allowed at that point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub gap_us: u64,
    pub allowed_us: u64,
    /// The line of the second of the two.
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: Kind,
    pub subject: Subject,
    /// When the request was sent; 0 for a line that is at fault by itself.
    pub at_us: u64,
    pub place: Place,
    /// The line that it conflicts with.
    pub other: Option<Place>,
}

/// Whose promise it is: a place in [`Report::hosts`] or [`Report::ips`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Host(usize),
    Ip(usize),
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Asked too soon after the last request, or after an answer that asked for a pause.
    Gap { gap_us: u64, allowed_us: u64, why: Why },
    /// Too many open at once.
    Open { open: u32, allowed: u32 },
    /// A page before robots.txt was known.
    BeforeRobots,
    /// A page although robots.txt could not be fetched.
    RobotsUnreachable,
    /// A page by rules that are more than a day old.
    RobotsStale { age_us: u64 },
    /// A page by rules that another run read, for another name of ours or for one that its log does not tell.
    RobotsAgent,
    /// A feed before it was due.
    PollEarly { early_us: u64 },
    /// Rules of which this much was read, and more was there.
    RobotsCut { bytes: u64 },
    /// A line that does not parse.
    Malformed(LogError),
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gap { .. } => "gap",
            Kind::Open { .. } => "open",
            Kind::BeforeRobots => "before_robots",
            Kind::RobotsUnreachable => "robots_unreachable",
            Kind::RobotsStale { .. } => "robots_stale",
            Kind::RobotsAgent => "robots_agent",
            Kind::PollEarly { .. } => "poll_early",
            Kind::RobotsCut { .. } => "robots_cut",
            Kind::Malformed(_) => "malformed",
        }
    }
}

/// What asked for the pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Rate,
    ResponseTime,
    CrawlDelay,
    RetryAfter,
    BackOff,
}

impl Why {
    pub fn name(self) -> &'static str {
        match self {
            Why::Rate => "rate",
            Why::ResponseTime => "response_time",
            Why::CrawlDelay => "crawl_delay",
            Why::RetryAfter => "retry_after",
            Why::BackOff => "back_off",
        }
    }
}

impl Report {
    /// The host or address that a violation is about; `None` for a line that does not parse.
    pub fn name(&self, subject: Subject) -> Option<&str> {
        match subject {
            Subject::Host(at) => self.hosts.get(at).map(|tally| &*tally.name),
            Subject::Ip(at) => self.ips.get(at).map(|tally| &*tally.name),
            Subject::Line => None,
        }
    }

    pub fn file(&self, place: Place) -> &str {
        self.files.get(place.file as usize).map_or("", String::as_str)
    }

    pub(super) fn blame(&mut self, violation: Violation) {
        self.violations_total += 1;
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(violation);
        }
    }
}
