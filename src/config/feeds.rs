use super::section::{Value, settings};
use super::units::Seconds;
use crate::extractor::ExtractDepth;
use crate::feeds::{FeedRules, FeedSchedule, StoryScope};
use crate::handler::Discover;

/// More than any time between two polls.
const YEAR_S: u64 = 366 * 86_400;

settings! {
    /// Feeds: when each is asked, and what becomes of the stories that it tells of.
    "[feeds]" FeedsSettings {
        /// How the next poll of a feed is found: "backoff" is poll_min after a new story, then twice as long with each poll
        /// that brings none; "rate" is half of the mean time between two of its stories.
        schedule: FeedSchedule = FeedSchedule::Backoff, live now;
        /// The least time between two polls of a feed, in seconds if it has no unit.
        poll_min: Seconds = Seconds(300), in 1 to YEAR_S, live now;
        /// The longest time between two polls of a feed.
        poll_max: Seconds = Seconds(604_800), in 1 to YEAR_S, live now;
        /// The least time between two polls of a feed whose server has never answered that nothing has changed (304).
        poll_min_plain: Seconds = Seconds(3_600), in 1 to YEAR_S, live now;
        /// What a feed or its server asks for between two polls counts up to this time; Retry-After up to a day.
        hint_max: Seconds = Seconds(86_400), in 0 to YEAR_S, live now;
        /// Feeds that pages name: "off" are not looked for, "note" are told of in the log, "add" are polled from then on.
        discover: Discover = Discover::Off;
        /// Entries of one feed that are read.
        entries_max: usize = 2_000, in 1 to 100_000;
        /// Where a story may be once: in each "source", or in "all" of them together.
        scope: StoryScope = StoryScope::Source;
        /// The text of stories: "off" is not extracted, "fast" by the quick extractor, "full" by the thorough one.
        extract: ExtractDepth = ExtractDepth::Full;
        /// Threads that extract it.
        extract_threads: usize = 1, in 1 to 256;
    }
}

impl Value for FeedSchedule {}
impl Value for StoryScope {}
impl Value for Discover {}
impl Value for ExtractDepth {}

impl FeedsSettings {
    /// What the role of feeds goes by.
    pub(crate) fn rules(&self) -> FeedRules {
        let seconds = |time: Seconds| u32::try_from(time.0).unwrap_or(u32::MAX);
        FeedRules {
            schedule: self.schedule,
            poll_min_s: seconds(self.poll_min),
            poll_max_s: seconds(self.poll_max),
            poll_min_plain_s: seconds(self.poll_min_plain),
            hint_max_s: seconds(self.hint_max),
            scope: self.scope,
            ..FeedRules::default()
        }
    }
}
