use super::book::NewFeed;
use super::feeds::Feeds;
use super::ids::FeedId;
use super::reason::PollReason;
use serde::{Deserialize, Serialize};
use std::io;

/// What people ask of the book, in a form that goes to a running crawl as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum FeedOp {
    Add {
        url: String,
        #[serde(default)]
        source: String,
        #[serde(default)]
        title: String,
    },
    Remove {
        feed: FeedId,
    },
    Pause {
        feed: FeedId,
    },
    Resume {
        feed: FeedId,
    },
    Poll {
        feed: FeedId,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpTold {
    pub feed: FeedId,
    /// False: there is no such feed, or it is not asked (gone, merged, paused).
    pub done: bool,
    /// A feed that was not in the book.
    pub is_new: bool,
    pub url: String,
    /// When it is asked next, in seconds since 1970; 0: not at all.
    pub due_s: u32,
    pub why: PollReason,
}

impl Feeds {
    /// Does what was asked. [`Feeds::take_moved_due`] names feeds that are asked at another time now.
    pub fn apply(&mut self, op: &FeedOp, now_s: u32) -> io::Result<OpTold> {
        let (feed, done, is_new) = match op {
            FeedOp::Add { url, source, title } => {
                let added = self.add(&NewFeed { url, source, title }, now_s)?;
                (added.feed, true, added.is_new)
            }
            FeedOp::Remove { feed } => (*feed, self.remove(*feed), false),
            FeedOp::Pause { feed } => (*feed, self.pause(*feed), false),
            FeedOp::Resume { feed } => (*feed, self.resume(*feed, now_s), false),
            FeedOp::Poll { feed } => (*feed, self.poll(*feed, now_s), false),
        };
        let known = self.book.feed(feed);
        Ok(OpTold {
            feed,
            done,
            is_new,
            url: known.map_or_else(String::new, |feed| feed.url().to_string()),
            due_s: known.map_or(0, |feed| feed.polls.due_s),
            why: known.map_or(PollReason::Gone, |feed| feed.polls.why),
        })
    }
}
