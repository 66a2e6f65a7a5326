use super::reason::{NextPoll, PollReason};
use crate::proto::feed::FeedHints;
use serde::{Deserialize, Serialize};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Defines the figures of a feed; those that are zero are left out of its records.
macro_rules! figures {
    ($(#[$meta:meta])* $Name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $Name {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_default")] pub(super) $field: $type,)+
        }

        impl $Name {
            $($(#[$doc])* pub fn $field(&self) -> $type { self.$field })+
        }
    };
}

figures! {
    /// What came of the polls of a feed. Times are seconds since 1970.
    Polls {
        /// When the next poll is due; 0: never.
        due_s: u32,
        /// The last poll, however it ended.
        attempt_s: u32,
        /// The last one that was answered as it should be.
        success_s: u32,
        /// From where on the silence counts: the last new story, or the first poll.
        since_s: u32,
        /// The first failure since the last success.
        failing_s: u32,
        /// XXH3 of the sorted URLs of the last listing.
        checksum: u64,
        /// Of the last body.
        digest: u64,
        /// Where a redirection for good led to the last time, as a hash.
        moves_to: u32,
        /// How often in a row.
        moves: u8,
        /// Why it is due then.
        why: PollReason,
        /// Code of the last result.
        result: u8,
        status: u16,
        /// Failures in a row.
        failures: u16,
        /// 304s in a row.
        same_run: u16,
        /// Mean time between two new stories; 0: not known yet.
        mean_gap_s: u32,
        /// How often intervals are halved, as stories fell out of the feed unseen.
        halvings: u8,
        /// Entries in a row that only their guid made duplicates.
        guid_only: u8,
        /// A listing brought new stories, and how its poll ended was not noted yet: a kill may come between the two.
        has_news: bool,
        /// Its guids tell nothing: all equal, or of another feed.
        guids_bad: bool,
        /// It was asked, or is to be asked, without conditions, to see whether its 304s are true.
        in_doubt: bool,
        /// Its 304s were wrong: only digests count.
        lies: bool,
        /// Hashes of the newest entries of the last listing. `tops`, in records of earlier builds, are the same of 16 bits:
        /// they are passed by, and the first listing after them is compared with nothing.
        newest: [u32; 4],
        /// `ttl`, `sy:update*`, `skipHours` and `skipDays`.
        ttl_s: u32,
        period_s: u32,
        skip_hours: u32,
        skip_days: u8,
        max_age_s: u32,
        polls: u32,
        not_modified: u32,
        redundant: u32,
        failed: u32,
        entries: u32,
        found: u32,
        dup_url: u32,
        dup_guid: u32,
        dup_title: u32,
        skipped: u32,
        gaps: u32,
    }
}

impl Polls {
    /// When it brought a new story the last time; 0: never.
    pub fn new_s(&self) -> u32 {
        if self.found > 0 { self.since_s } else { 0 }
    }

    /// What the feed itself says of when it wants to be asked.
    pub fn hints(&self) -> FeedHints {
        FeedHints {
            ttl_s: Some(self.ttl_s).filter(|&s| s > 0),
            period_s: Some(self.period_s).filter(|&s| s > 0),
            skip_hours: self.skip_hours,
            skip_days: self.skip_days,
        }
    }

    pub(super) fn take_hints(&mut self, hints: &FeedHints) {
        self.ttl_s = hints.ttl_s.unwrap_or(0);
        self.period_s = hints.period_s.unwrap_or(0);
        (self.skip_hours, self.skip_days) = (hints.skip_hours, hints.skip_days);
    }

    pub fn next(&self) -> NextPoll {
        NextPoll { due_s: self.due_s, why: self.why, unconditional: self.in_doubt || self.lies }
    }
}
