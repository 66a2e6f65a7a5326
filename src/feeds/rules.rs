use crate::base::named_enum;

named_enum! {
    /// How the next poll of a feed is found.
    pub enum FeedSchedule {
        /// Five minutes after a new story, then twice as long with each poll that brings none, up to a week.
        Backoff = "backoff",
        /// Half of the mean time between two stories of the feed, within the same bounds.
        Rate = "rate",
    }
}

named_enum! {
    /// Where a story may be once.
    pub enum StoryScope {
        /// In each source.
        Source = "source",
        /// In all of them together.
        All = "all",
    }
}

/// What feeds and stories go by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRules {
    pub schedule: FeedSchedule,
    /// No feed is asked sooner, and the back-off begins with it.
    pub poll_min_s: u32,
    pub poll_max_s: u32,
    /// No feed is asked sooner whose server has never said that nothing has changed (304).
    pub poll_min_plain_s: u32,
    /// The longest that a hint of a feed or its server puts a poll off.
    pub hint_max_s: u32,
    pub scope: StoryScope,
    /// Memory for what stories are known by, some 33 bytes a story; past it the disk is asked.
    pub memory_bytes: usize,
}

impl Default for FeedRules {
    fn default() -> FeedRules {
        FeedRules {
            schedule: FeedSchedule::Backoff,
            poll_min_s: 300,
            poll_max_s: 604_800,
            poll_min_plain_s: 3_600,
            hint_max_s: 86_400,
            scope: StoryScope::Source,
            memory_bytes: 512 << 20,
        }
    }
}
