//! Feeds and stories: which feeds there are, when each is asked next and why then, and which of their entries are new.
//!
//! ```text
//!   add(URL, source) ──► book ──bind(document)──► the doc index asks for it when it is due
//!   read(feed, entries) ──► redundant? ──► known by URL, guid, or title in its week? ──► new: ledger, a download
//!   polled(feed, answer) ──► when it is asked next, and why then
//!   fetched(document) ──► the state of its stories
//!   flush() ──► ledger, rows, then the journal of feeds, to the disk
//! ```
//!
//! A role as the doc index is: files through `storage`, the time comes in. It runs on the index thread.
//!
//! | file        | holds                                                                                |
//! |-------------|--------------------------------------------------------------------------------------|
//! | `role`      | the whole: what is asked of it from outside                                          |
//! | `book`      | sources and feeds in memory, by number, URL and document                             |
//! | `feed`      | one feed; `polls` its figures, `told` what is told of it to people                   |
//! | `next_poll` | when a feed is asked next: the schedule, hints, floors; `windows` of skipHours and skipDays; `reason` |
//! | `outcome`   | what an answer does to a feed: failures, moves, ends, validators that lie, gaps      |
//! | `prints`    | what entries are known by: fingerprints of URL, guid, and title in its week          |
//! | `entries`   | a listing looked through: what is new, and what a duplicate is one of                |
//! | `ledger`    | stories and duplicates in the order they were found, append-only                     |
//! | `rows`      | where the ledger has a story, its document and its state: 24 bytes each              |
//! | `waiting`   | stories whose downloads have not succeeded yet, by document                          |
//! | `journal`   | sources and feeds on disk: appended on change, made anew when half of it is old      |
//! | `open`      | how a directory is taken up after any end of a process, and how it is flushed         |
//! | `operation` | what people ask of the book, as a value that can be sent                             |
//! | `view`      | both for other processes, as they are on disk                                        |

mod block;
mod book;
mod entries;
mod feed;
mod ids;
mod journal;
mod ledger;
mod next_poll;
mod open;
mod operation;
mod outcome;
mod polls;
mod prints;
mod read;
mod reason;
mod role;
mod rows;
mod rules;
mod story;
#[cfg(test)]
mod tests;
mod told;
mod view;
mod waiting;
mod week;
mod windows;

pub use crate::proto::feed::{FeedFacts, FeedFormat, FeedHints};
pub use book::{Added, NewFeed, Source};
pub use entries::{DuplicateBy, is_home_page};
pub use feed::{Feed, FeedState};
pub use ids::{FeedId, SourceId, StoryId};
pub use operation::{FeedOp, OpTold};
pub use outcome::PollOutcome;
pub use polls::Polls;
pub use read::{EntryRead, FeedRead, NewStory, ReadTold, Redundant};
pub use reason::{NextPoll, PollReason};
pub use role::Feeds;
pub use rules::{FeedRules, FeedSchedule, StoryScope};
pub use story::{DateFrom, Story, StoryState};
pub use told::Told;
pub use view::{FeedsView, Known, StoriesSince, StoriesView};
pub use week::Week;
