use super::host_table::{Host, RobotsState, WaitsIn, Work};
use super::niceness::Pace;
use super::server::UrlServer;
use crate::base::Now;
use crate::proto::job::Candidate;
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;
use serde::{Deserialize, Serialize};

/// How things stand with a host, and with one of its URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostView {
    pub pause: PauseView,
    pub robots: RobotsView,
    /// URLs in its queue, with a spider, and among the leftovers in memory.
    pub queued: usize,
    pub open: usize,
    pub leftover: usize,
    pub place: DocPlace,
    /// Why the first of its queue does not go out at this moment.
    pub waits_for: Option<WaitsFor>,
    /// When it may, if that can be told.
    pub due: Option<Now>,
}

/// How a host is paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseView {
    /// Nothing is requested of it before.
    pub until: Now,
    pub penalty_us: u32,
    pub response_us: u32,
    pub crawl_delay_ms: u32,
    /// Requests in a row that brought no response.
    pub failures: u8,
}

/// What is known of a host's robots rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsView {
    Unknown,
    /// They are being requested.
    Asked,
    Known {
        until: Now,
        word: RobotsWord,
    },
    /// This many requests in a row failed: nothing is fetched until then.
    Unreachable {
        until: Now,
        failures: u8,
    },
}

/// What robots rules say of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsWord {
    pub allowed: bool,
    /// The line that decided.
    pub rule: Option<String>,
}

/// Where a document is, for a url server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocPlace {
    /// With a spider since then; `sent` once the request is on the wire.
    Open { since: Now, sent: bool },
    /// In its host's queue behind this many others.
    Queued { before: usize },
    /// Among the leftovers, or on its way in or out.
    Elsewhere,
}

/// What a host waits for. The names in JSON stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// The configured rate.
    Rate,
    /// A pause as long as its last answer took.
    ResponseTime,
    CrawlDelay,
    /// Its 429 and 503.
    Penalty,
    /// It said when it wants to be asked again.
    RetryAfter,
    /// It did not answer, again and again.
    Failures,
    /// Its robots rules.
    Robots,
    /// As many requests are open as may be.
    Concurrent,
    /// Another host has its address, and a turn there.
    Address,
    /// A spider with room for it.
    Spider,
    /// The ticket of its address, which another node may have.
    Ticket,
    /// The right of this node to ask anybody.
    Right,
}

impl WaitsFor {
    pub const ALL: [WaitsFor; 12] = [
        WaitsFor::Rate,
        WaitsFor::ResponseTime,
        WaitsFor::CrawlDelay,
        WaitsFor::Penalty,
        WaitsFor::RetryAfter,
        WaitsFor::Failures,
        WaitsFor::Robots,
        WaitsFor::Concurrent,
        WaitsFor::Address,
        WaitsFor::Spider,
        WaitsFor::Ticket,
        WaitsFor::Right,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            WaitsFor::Rate => "rate",
            WaitsFor::ResponseTime => "response_time",
            WaitsFor::CrawlDelay => "crawl_delay",
            WaitsFor::Penalty => "penalty",
            WaitsFor::RetryAfter => "retry_after",
            WaitsFor::Failures => "failures",
            WaitsFor::Robots => "robots",
            WaitsFor::Concurrent => "concurrent",
            WaitsFor::Address => "address",
            WaitsFor::Spider => "spider",
            WaitsFor::Ticket => "ticket",
            WaitsFor::Right => "right",
        }
    }

    /// In words for an operator, of a URL or its host.
    pub fn words(self) -> &'static str {
        match self {
            WaitsFor::Rate => "the rate of its host (req_host_per_sec)",
            WaitsFor::ResponseTime => "a pause as long as the last answer took (delay_factor)",
            WaitsFor::CrawlDelay => "the Crawl-delay of its robots.txt",
            WaitsFor::Penalty => "its host answered 429 or 503",
            WaitsFor::RetryAfter => "its host said when to come back (Retry-After)",
            WaitsFor::Failures => "its host did not answer, again and again",
            WaitsFor::Robots => "its robots.txt is not known yet",
            WaitsFor::Concurrent => "as many requests to its host are open as may be (req_host_concurrent)",
            WaitsFor::Address => "another host has the same address, and its turn",
            WaitsFor::Spider => "no spider has room",
            WaitsFor::Ticket => "the ticket of its address, which another node may have",
            WaitsFor::Right => "this node has no right to ask at present",
        }
    }
}

/// How many hosts wait for what. All rows are counted, some at a time, so that no count takes long.
#[derive(Default)]
pub struct HostTally {
    row: usize,
    counting: HostStates,
    counted: HostStates,
}

/// Hosts whose next URL may go out, those of which all is on the wire, those that wait for each of [`WaitsFor::ALL`], those
/// that are set aside, and those with nothing to do.
pub type HostStates = [u64; WaitsFor::ALL.len() + 4];

const READY: usize = 0;
const OPEN: usize = 1;
const REASONS: usize = 2;
const SET_ASIDE: usize = REASONS + WaitsFor::ALL.len();
const IDLE: usize = SET_ASIDE + 1;

impl HostTally {
    /// The counts of the last whole round.
    pub fn states(&self) -> &HostStates {
        &self.counted
    }
}

impl PauseView {
    pub(super) fn of(pace: &Pace) -> PauseView {
        PauseView {
            until: pace.due(),
            penalty_us: pace.penalty_us,
            response_us: pace.response_pause_us,
            crawl_delay_ms: pace.crawl_delay_ms(),
            failures: pace.failures(),
        }
    }
}

impl RobotsView {
    pub(super) fn of(robots: &RobotsState, path: &str) -> RobotsView {
        let at = |second: u32| Now::from_us(u64::from(second) * 1_000_000);
        match robots {
            RobotsState::Unknown => RobotsView::Unknown,
            RobotsState::Asked | RobotsState::Hop(_) | RobotsState::Elsewhere { .. } => RobotsView::Asked,
            RobotsState::Unreachable { until_s: u32::MAX, .. } => RobotsView::Asked,
            RobotsState::Unreachable { until_s, failing } => {
                RobotsView::Unreachable { until: at(*until_s), failures: failing.failures }
            }
            RobotsState::GivenUp { until_s, .. } => {
                RobotsView::Known { until: at(*until_s), word: RobotsWord::of(None, path) }
            }
            RobotsState::Known { until_s, rules } => {
                RobotsView::Known { until: at(*until_s), word: RobotsWord::of(rules.as_deref(), path) }
            }
        }
    }
}

impl RobotsWord {
    fn of(rules: Option<&Robots>, path: &str) -> RobotsWord {
        let Some(rules) = rules else { return RobotsWord { allowed: true, rule: None } };
        let verdict = rules.verdict(path.as_bytes());
        let line = if verdict.allowed { "Allow" } else { "Disallow" };
        RobotsWord { allowed: verdict.allowed, rule: verdict.rule.map(|rule| format!("{line}: {rule}")) }
    }
}

impl UrlServer {
    /// How things stand with a document and its host; `None` if the host has no row here. It walks the host's queue,
    /// and is meant for an operator's question.
    pub fn look(&self, url: &CrawlUrl, doc_id: u32, now: Now) -> Option<HostView> {
        let slot = self.hosts.find(url.origin())?;
        let host = &self.hosts[slot];
        let is_it = |candidate: &Candidate| candidate.doc_id == doc_id;
        let open = host.active().find(|active| matches!(&active.work, Work::Page(page) if is_it(page)));
        let place = match open {
            Some(active) => DocPlace::Open { since: active.asked_at, sent: active.sent },
            None => match self.hosts.position(slot, is_it) {
                Some(before) => DocPlace::Queued { before },
                None => DocPlace::Elsewhere,
            },
        };
        let (waits_for, due) = self.waits_for(host, now);
        Some(HostView {
            pause: PauseView::of(&host.pace),
            robots: RobotsView::of(host.robots(), url.path_and_query()),
            queued: host.queued(),
            open: host.open(),
            leftover: self.leftover.len_of(url.origin()),
            place,
            waits_for,
            due,
        })
    }

    /// Counts so many rows more. True once all have been counted.
    pub fn tally(&self, tally: &mut HostTally, rows: usize, now: Now) -> bool {
        let first = tally.row;
        for host in self.hosts.iter().skip(first).take(rows) {
            tally.row += 1;
            tally.counting[self.state_of(host, now)] += 1;
        }
        let is_whole = tally.row - first < rows;
        if is_whole {
            tally.counted = std::mem::take(&mut tally.counting);
            tally.row = 0;
        }
        is_whole
    }

    fn state_of(&self, host: &Host, now: Now) -> usize {
        match (host.queued(), host.open()) {
            _ if host.pace.is_set_aside(self.config.host_failures_max, now) => SET_ASIDE,
            (0, 0) => IDLE,
            (0, _) if host.robots().is_known() => OPEN,
            _ => self.waits_for(host, now).0.map_or(READY, |why| REASONS + why as usize),
        }
    }

    /// Why nothing of a host goes out at this moment, and until when.
    pub(super) fn waits_for(&self, host: &Host, now: Now) -> (Option<WaitsFor>, Option<Now>) {
        let address = self.hosts.address(host.address());
        if !host.robots().is_known() && host.open() > 0 {
            return (Some(WaitsFor::Robots), None);
        }
        let loans = self.readiness.loans();
        if loans.is_some_and(|loans| !loans.has_right(now)) {
            return (Some(WaitsFor::Right), None);
        }
        if host.pace.due() > now {
            return (Some(host.pace.why(&self.config.host)), Some(host.pace.due()));
        }
        if address.pace.due() > now {
            let why = if address.hosts > 1 { WaitsFor::Address } else { address.pace.why(&self.config.ip) };
            return (Some(why), Some(address.pace.due()));
        }
        let why = match host.robots() {
            _ if host.open() >= usize::from(self.config.host.concurrent) => WaitsFor::Concurrent,
            RobotsState::Asked | RobotsState::Hop(_) | RobotsState::Elsewhere { .. } => WaitsFor::Robots,
            _ if !address.has_room(&self.config.ip) => WaitsFor::Address,
            _ if host.waits_in() == WaitsIn::Spider => WaitsFor::Spider,
            _ if host.waits_in() == WaitsIn::Loan => WaitsFor::Ticket,
            _ if loans.is_some_and(|loans| now >= loans.address_until(host.address())) => WaitsFor::Ticket,
            _ => return (None, Some(now)),
        };
        (Some(why), None)
    }

    /// The line of the robots rules that keeps a URL out, for as long as the rules are here.
    pub fn robots_line(&self, url: &CrawlUrl) -> Option<String> {
        let host = &self.hosts[self.hosts.find(url.origin())?];
        match RobotsView::of(host.robots(), url.path_and_query()) {
            RobotsView::Known { word, .. } => word.rule.filter(|_| !word.allowed),
            _ => None,
        }
    }
}
