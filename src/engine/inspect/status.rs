use crate::base::{Now, Wall, rfc3339};
use crate::doc_index::{DocumentLine, HostCounts};
use crate::engine::runtime::log_writer::JOURNAL;
use crate::handler::Verdict;
use crate::proto::robots::product_token;
use crate::proto::url::CrawlUrl;
use crate::url_server::{Clock, DocPlace, HostMemory, HostView, PauseView, RobotsView, WaitsFor};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// What was found out about a URL: by a node that runs, or from the files of one that does not. As it travels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// A running node said so.
    pub live: bool,
    pub dossier: Option<DocumentLine>,
    pub scope: Option<ScopeLine>,
    pub host: Option<HostLine>,
    /// URLs known of its domain, if that is limited.
    pub domain_known: Option<u32>,
    /// URLs known that differ from it in the values of their query only, if that is limited.
    pub variants_known: Option<u32>,
    pub place: PlaceLine,
    pub niceness: Option<NicenessLine>,
    pub robots: Option<RobotsLine>,
    /// Why this is not all there is to say.
    pub trouble: Option<String>,
}

/// Where a URL is at this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaceLine {
    pub at: Place,
    /// How many of its host go before it.
    pub before: Option<usize>,
    /// Being fetched since.
    pub since: Option<String>,
    /// When its host may be asked next, and what that waits for.
    pub next_at: Option<String>,
    pub waits_for: Option<WaitsFor>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On disk, or not known.
    #[default]
    Nowhere,
    /// Only the disk can tell whether it is known, and it was not asked yet.
    Parked,
    /// Its name is being resolved.
    Resolving,
    /// In its host's queue.
    Queued,
    /// Found no place in its host's queue yet.
    Leftover,
    /// With a spider.
    Open,
    /// Fetched, and on its way to the disk.
    Stored,
}

/// What the scope says of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeLine {
    pub in_scope: bool,
    /// In a word, and in words.
    pub rule: String,
    pub said: String,
    pub why_out: Option<WhyOut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyOut {
    OutOfScope,
    Denied,
    Trap,
}

/// What is known of a host, and how many requests to it are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLine {
    #[serde(flatten)]
    pub counts: HostCounts,
    /// `None` if nothing of it was handed out.
    pub open: Option<usize>,
}

/// How a host is paced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NicenessLine {
    /// Nothing is asked of it before, if that is still to come.
    pub pause_until: Option<String>,
    pub penalty_ms: u32,
    pub response_ms: u32,
    pub crawl_delay_ms: u32,
    pub failures: u8,
}

/// What is known of a host's robots rules, and what they say of the URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotsLine {
    pub state: RobotsState,
    /// Until when that holds.
    pub until: Option<String>,
    pub allowed: Option<bool>,
    /// The line that decided.
    pub rule: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsState {
    #[default]
    Unknown,
    /// A request for them is open.
    Asked,
    Known,
    /// They cannot be fetched, so nothing may be asked of the host.
    Unreachable,
}

impl RobotsState {
    pub fn name(self) -> &'static str {
        match self {
            RobotsState::Unknown => "unknown",
            RobotsState::Asked => "asked",
            RobotsState::Known => "known",
            RobotsState::Unreachable => "unreachable",
        }
    }
}

impl ScopeLine {
    pub fn of(verdict: &Verdict<'_>) -> ScopeLine {
        let why_out = match verdict {
            Verdict::Spanned(_) | Verdict::Allowed(_) => None,
            Verdict::NotSpanned(_) | Verdict::TooDeep { .. } => Some(WhyOut::OutOfScope),
            Verdict::Denied(_) => Some(WhyOut::Denied),
            Verdict::PathDepth { .. } | Verdict::RepeatedSegment { .. } => Some(WhyOut::Trap),
        };
        ScopeLine {
            in_scope: verdict.is_in(),
            rule: verdict.name().to_string(),
            said: verdict.to_string(),
            why_out,
        }
    }
}

impl NicenessLine {
    pub fn of(pause: &PauseView, wall: Wall, now: Now) -> NicenessLine {
        NicenessLine {
            pause_until: (pause.until > now).then(|| rfc3339(wall.unix_ms(pause.until))),
            penalty_ms: pause.penalty_us / 1_000,
            response_ms: pause.response_us / 1_000,
            crawl_delay_ms: pause.crawl_delay_ms,
            failures: pause.failures,
        }
    }
}

impl RobotsLine {
    pub fn of(robots: &RobotsView, wall: Wall) -> RobotsLine {
        let line = |state| RobotsLine { state, ..RobotsLine::default() };
        let at = |until: &Now| Some(rfc3339(wall.unix_ms(*until)));
        match robots {
            RobotsView::Unknown => line(RobotsState::Unknown),
            RobotsView::Asked => line(RobotsState::Asked),
            RobotsView::Unreachable { until, .. } => {
                RobotsLine { until: at(until), allowed: Some(false), ..line(RobotsState::Unreachable) }
            }
            RobotsView::Known { until, word } => RobotsLine {
                until: at(until),
                allowed: Some(word.allowed),
                rule: word.rule.clone(),
                ..line(RobotsState::Known)
            },
        }
    }
}

impl Status {
    /// Where it redirects to.
    pub fn target(&self) -> Option<CrawlUrl> {
        CrawlUrl::parse(self.dossier.as_ref()?.new_url.as_deref()?).ok()
    }

    /// Adds what a url server says.
    pub fn at_shard(&mut self, view: &HostView, wall: Wall, now: Now) {
        let time = |at: Now| rfc3339(wall.unix_ms(at));
        let place = &mut self.place;
        place.next_at = view.due.map(|due| time(due.max(now)));
        place.waits_for = view.waits_for;
        match view.place {
            DocPlace::Open { since, .. } => (place.at, place.since) = (Place::Open, Some(time(since))),
            DocPlace::Queued { before } => (place.at, place.before) = (Place::Queued, Some(before)),
            DocPlace::Elsewhere => place.at = Place::Leftover,
        }
        self.host.get_or_insert_default().open = Some(view.open);
        self.niceness = Some(NicenessLine::of(&view.pause, wall, now));
        self.robots = Some(RobotsLine::of(&view.robots, wall));
    }

    /// Adds what an earlier process wrote down of a host.
    pub fn remembered(&mut self, memory: &HostMemory, origin: &str, path: &str, wall: Wall) {
        if let Some((pause, robots)) = memory.look(origin, path) {
            self.niceness = Some(NicenessLine::of(&pause, wall, Now::ZERO));
            self.robots = Some(RobotsLine::of(&robots, wall));
        }
    }
}

/// What the processes of a data directory remember of hosts, for whoever only looks; the rules are those for this user
/// agent. Time zero is now.
pub fn remembered(data: &Path, user_agent: &str, wall: Wall) -> io::Result<HostMemory> {
    let clock = Clock { wall, now: Now::ZERO };
    let mut memory = HostMemory::new(usize::MAX);
    match std::fs::read(data.join(JOURNAL)) {
        // Of a journal that is being written the last line may be torn; it is passed over.
        Ok(journal) => memory.read(&journal, clock, product_token(user_agent)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
        Err(e) => return Err(e),
    };
    Ok(memory)
}
