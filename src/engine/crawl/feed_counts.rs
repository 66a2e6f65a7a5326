use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::groups::Group;
use crate::feeds::{FeedState, Feeds, PollOutcome, ReadTold};
use crate::proto::record::ResultCode;

/// What came of polls since the process began, and how many feeds there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedCounts {
    /// In the order of [`Group::Polls`].
    polls: [u64; 5],
    /// In the order of [`Group::FeedEntries`].
    entries: [u64; 5],
    gaps: u64,
}

impl FeedCounts {
    pub fn read(&mut self, told: &ReadTold) {
        let ReadTold { new, dup_url, dup_guid, dup_title, skipped, .. } = *told;
        for (count, more) in self.entries.iter_mut().zip([new, dup_url, dup_guid, dup_title, skipped]) {
            *count += u64::from(more);
        }
        self.gaps += u64::from(told.gap);
    }

    pub fn polled(&mut self, outcome: &PollOutcome<'_>, is_redundant: bool) {
        let at = match outcome.result {
            ResultCode::NotModified => 1,
            ResultCode::Redirect => 3,
            ResultCode::Ok | ResultCode::TooLarge if !outcome.not_a_feed => {
                if is_redundant {
                    2
                } else {
                    0
                }
            }
            _ => 4,
        };
        self.polls[at] += 1;
    }

    pub fn publish(&self, feeds: &Feeds, counters: &Counters) {
        counters.set_all(Group::Polls, &self.polls);
        counters.set_all(Group::FeedEntries, &self.entries);
        counters.set(Counter::FeedGaps, self.gaps);
        let (mut states, mut lies) = ([0; 3], 0);
        for feed in feeds.feeds() {
            let at = match feed.state() {
                FeedState::Active => 0,
                FeedState::Paused => 1,
                _ => 2,
            };
            states[at] += 1;
            lies += u64::from(feed.polls().lies());
        }
        counters.set_all(Group::Feeds, &states);
        counters.set(Counter::FeedLies, lies);
    }
}
