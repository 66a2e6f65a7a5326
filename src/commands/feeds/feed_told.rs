use crate::base::rfc3339;
use crate::feeds::{Feed, FeedFormat, FeedHints, FeedState, FeedsView, PollReason};
use crate::proto::record::ResultCode;
use serde::Serialize;

/// A feed, as it is told.
#[derive(Serialize)]
pub(super) struct FeedTold {
    pub id: u32,
    pub source: String,
    pub url: String,
    pub title: String,
    pub state: FeedState,
    pub format: Option<FeedFormat>,
    pub language: Option<String>,
    pub hub: Option<String>,
    pub doc_id: Option<u32>,
    pub added: Option<String>,
    pub last_attempt: Option<String>,
    pub last_success: Option<String>,
    pub last_new: Option<String>,
    pub last_result: Option<ResultCode>,
    pub last_status: Option<u16>,
    pub failures: u16,
    pub failing_since: Option<String>,
    pub next: Option<String>,
    pub why: PollReason,
    /// Why then, as a sentence.
    pub because: String,
    pub unconditional: bool,
    pub mean_gap_s: Option<u32>,
    pub hints: FeedHints,
    pub max_age_s: Option<u32>,
    pub lies: bool,
    pub guids_bad: bool,
    /// Told of one feed alone, as all of the book is looked through for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved_from: Vec<String>,
    pub merged_into: Option<u32>,
    /// The page that it was found on.
    pub named_by: Option<u32>,
    /// Feeds that were found on it; of one feed alone, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<u32>,
    pub counts: Counts,
}

#[derive(Serialize)]
pub(super) struct Counts {
    pub polls: u32,
    pub not_modified: u32,
    pub redundant: u32,
    pub failed: u32,
    pub entries: u32,
    pub new: u32,
    pub dup_url: u32,
    pub dup_guid: u32,
    pub dup_title: u32,
    pub skipped: u32,
    pub gaps: u32,
}

impl FeedTold {
    /// With what all of the book is looked through for.
    pub fn in_full(view: &FeedsView, feed: &Feed) -> FeedTold {
        let is_named = |found: &&Feed| found.named_by() == Some(feed.id());
        FeedTold {
            moved_from: view.moved_from(feed.id()).map(str::to_string).collect(),
            names: view.feeds().filter(is_named).map(|found| found.id().0).collect(),
            ..FeedTold::of(view, feed)
        }
    }

    pub fn of(view: &FeedsView, feed: &Feed) -> FeedTold {
        let polls = feed.polls();
        let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
        FeedTold {
            id: feed.id().0,
            source: view.source(feed.source()).map_or(String::new(), |source| source.name.to_string()),
            url: feed.url().to_string(),
            title: feed.title().to_string(),
            state: feed.state(),
            format: feed.format(),
            language: text(feed.language()),
            hub: text(feed.hub()),
            doc_id: feed.doc_id(),
            added: time(feed.added_s()),
            last_attempt: time(polls.attempt_s()),
            last_success: time(polls.success_s()),
            last_new: time(polls.new_s()),
            last_result: ResultCode::from_u8(polls.result()),
            last_status: Some(polls.status()).filter(|&status| status > 0),
            failures: polls.failures(),
            failing_since: time(polls.failing_s()),
            next: time(polls.due_s()),
            why: polls.why(),
            because: polls.next().text(polls.attempt_s()),
            unconditional: polls.next().unconditional,
            mean_gap_s: Some(polls.mean_gap_s()).filter(|&gap_s| gap_s > 0),
            hints: polls.hints(),
            max_age_s: Some(polls.max_age_s()).filter(|&age_s| age_s > 0),
            lies: polls.lies(),
            guids_bad: polls.guids_bad(),
            moved_from: Vec::new(),
            merged_into: feed.merged().map(|feed| feed.0),
            named_by: feed.named_by().map(|page| page.0),
            names: Vec::new(),
            counts: Counts {
                polls: polls.polls(),
                not_modified: polls.not_modified(),
                redundant: polls.redundant(),
                failed: polls.failed(),
                entries: polls.entries(),
                new: polls.found(),
                dup_url: polls.dup_url(),
                dup_guid: polls.dup_guid(),
                dup_title: polls.dup_title(),
                skipped: polls.skipped(),
                gaps: polls.gaps(),
            },
        }
    }
}

/// A time for people and programs; 0 is none.
pub(crate) fn time(at_s: u32) -> Option<String> {
    Some(at_s).filter(|&at_s| at_s > 0).map(|at_s| rfc3339(u64::from(at_s) * 1_000))
}
