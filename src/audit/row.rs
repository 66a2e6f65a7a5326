use super::report::Place;
use crate::proto::crawl_log::RunRules;

/// Memory that one request takes.
pub const ROW_BYTES: usize = 40;

/// Stands for an address that the line does not name.
pub(super) const NO_IP: u32 = u32::MAX;

/// A request that was sent or tried, as far as niceness is concerned. Names are numbers here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub sent_us: u64,
    /// More than 71 minutes are 71 minutes.
    pub took_us: u32,
    /// From the decision until it was sent.
    pub wait_us: u32,
    pub line: u32,
    pub run: u32,
    pub origin: u32,
    pub ip: u32,
    /// 0 without one.
    pub retry_after_s: u32,
    /// 0 without a response.
    pub status: u16,
    /// Not robots.txt.
    pub is_page: bool,
}

const _: () = assert!(size_of::<Row>() == ROW_BYTES);

impl Row {
    pub fn end_us(&self) -> u64 {
        self.sent_us.saturating_add(u64::from(self.took_us))
    }

    /// From here on its answer can be heeded: later than it was sent, also if no time passed.
    pub fn heard_us(&self) -> u64 {
        self.sent_us.saturating_add(u64::from(self.took_us.max(1)))
    }

    pub fn decided_us(&self) -> u64 {
        self.sent_us.saturating_sub(u64::from(self.wait_us))
    }

    /// The server asked us to slow down.
    pub fn is_refusal(&self) -> bool {
        matches!(self.status, 429 | 503)
    }
}

/// The result of a fetch of robots.txt, for the origin whose rules they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learnt {
    pub end_us: u64,
    pub origin: u32,
    /// The run that asked for them, by its name.
    pub run: u32,
    /// Known, or unreachable.
    pub known: bool,
    /// As in the line. Once sorted: what holds from here on.
    pub crawl_delay_ms: u32,
}

/// A run of a process, or of one of its shards between two changes of the rules: its file and its rules.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub file: u32,
    pub rules: RunRules,
    /// From then on, others hold: the next of these.
    pub until_us: u64,
    pub next: u32,
}

impl Run {
    pub fn new(file: u32, rules: RunRules) -> Run {
        Run { file, rules, until_us: u64::MAX, next: 0 }
    }

    /// The run that a moment belongs to, among those that follow one of them.
    pub fn at(runs: &[Run], mut number: u32, at_us: u64) -> u32 {
        while runs[number as usize].until_us <= at_us {
            number = runs[number as usize].next;
        }
        number
    }

    /// Whether the rules that another run read are those for this one's name.
    pub fn shares_rules(&self, other: &Run) -> bool {
        let agents = self.rules.agent.as_ref().zip(other.rules.agent.as_ref());
        agents.is_some_and(|(ours, theirs)| ours.eq_ignore_ascii_case(theirs))
    }

    pub fn place(&self, line: u32) -> Place {
        Place { file: self.file, line }
    }
}
