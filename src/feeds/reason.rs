use crate::base::{named_enum, rfc3339, span};

named_enum! {
    /// Why a feed is asked when it is.
    #[derive(Default)]
    pub enum PollReason {
        #[default]
        New = "new",
        Backoff = "backoff",
        Rate = "rate",
        Ttl = "ttl",
        Period = "period",
        MaxAge = "max_age",
        RetryAfter = "retry_after",
        SkipHours = "skip_hours",
        SkipDays = "skip_days",
        PollMin = "poll_min",
        PollMinPlain = "poll_min_plain",
        PollMax = "poll_max",
        Failed = "failed",
        Refused = "refused",
        Moved = "moved",
        Asked = "asked",
        Again = "again",
        Clock = "clock",
        Paused = "paused",
        Gone = "gone",
        Merged = "merged",
        Page = "page",
    }
}

impl PollReason {
    /// A sentence for people, without its full stop.
    pub fn sentence(self) -> &'static str {
        match self {
            PollReason::New => "it was never asked for",
            PollReason::Backoff => "the time since its last new story, and the least time between two polls",
            PollReason::Rate => "half of the mean time between two of its stories",
            PollReason::Ttl => "its ttl asks for that time between two polls",
            PollReason::Period => "its sy:updatePeriod says that it changes no sooner",
            PollReason::MaxAge => "its server said for how long the answer is fresh",
            PollReason::RetryAfter => "its server asked for that time (Retry-After)",
            PollReason::SkipHours => "its skipHours name the hours before",
            PollReason::SkipDays => "its skipDays name the days before",
            PollReason::PollMin => "no feed is asked sooner (poll_min)",
            PollReason::PollMinPlain => {
                "its server has never said that nothing has changed (304), and is asked no sooner (poll_min_plain)"
            }
            PollReason::PollMax => "no feed waits for longer (poll_max)",
            PollReason::Failed => "the last poll failed, and the next one is its retry",
            PollReason::Refused => {
                "the rules of this crawl keep out the place that it led to, and it is asked as often as before"
            }
            PollReason::Moved => "it has moved, and is asked at its new place",
            PollReason::Asked => "somebody asked for it",
            PollReason::Again => "stories of its last poll were lost with the end of a process",
            PollReason::Clock => {
                "the clock was wrong when it was put off, and it waits no longer than it would from now on"
            }
            PollReason::Paused => "it is paused",
            PollReason::Gone => "its server said that it is gone for good (410)",
            PollReason::Page => "it is a page: the feeds that it names are asked instead",
            PollReason::Merged => "it has moved to a feed that is in the book, which is asked instead",
        }
    }
}

/// When a feed is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextPoll {
    /// Seconds since 1970; 0: it is not asked again by itself.
    pub due_s: u32,
    pub why: PollReason,
    /// It is to be asked without conditions: its 304s are in doubt, or known to be wrong.
    pub unconditional: bool,
}

impl NextPoll {
    /// For people: when, how long that is after the last poll, and why.
    pub fn text(&self, last_s: u32) -> String {
        let why = self.why.sentence();
        match (self.due_s, last_s) {
            (0, _) => format!("never: {why}"),
            (due_s, 0) => format!("{}: {why}", rfc3339(u64::from(due_s) * 1_000)),
            (due_s, _) => format!(
                "{}, {} after the last: {why}",
                rfc3339(u64::from(due_s) * 1_000),
                span(u64::from(due_s.saturating_sub(last_s)))
            ),
        }
    }
}
