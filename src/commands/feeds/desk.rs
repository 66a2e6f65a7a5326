//! Where the book of feeds is changed: in the crawl that runs on a directory, or in the directory itself.

use crate::commands::shared::{Failure, RunningCrawl, hint, now_ms, open_data};
use crate::feeds::{FeedId, FeedOp, Feeds, FeedsView};
use crate::store_server::DataDir;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is to be done, as it travels.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Word {
    Add { feeds: Vec<NamedFeed> },
    Rm { ids: Vec<u32> },
    Pause { ids: Vec<u32> },
    Resume { ids: Vec<u32> },
    Poll { ids: Vec<u32> },
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct NamedFeed {
    /// In normal form.
    pub url: String,
    pub source: String,
    pub title: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// Feeds that it was done with, by number; of those that were added, the new ones.
    pub done: Vec<u32>,
    /// Feeds that were to be added, and were known.
    pub known: Vec<u32>,
    /// Numbers that no feed has, or not one that this can be done with.
    pub unknown: Vec<u32>,
    pub refused: u64,
    /// A crawl runs there, and has done it.
    pub running: bool,
}

pub(super) enum Desk {
    Crawl(RunningCrawl),
    Book { feeds: Box<Feeds>, _held: DataDir },
}

/// Feeds that are sent at once.
const PER_WORD: usize = 500;

impl Desk {
    pub fn open(data: &Path) -> Result<Desk, Failure> {
        if let Some(crawl) = RunningCrawl::at(data)? {
            return Ok(Desk::Crawl(crawl));
        }
        let is_new = !data.exists();
        let held = open_data(data, "crawl")?;
        if is_new {
            hint(format_args!("{} was not there, and was made", data.display()));
        }
        let feeds = Feeds::open_book(data, true)?.map(Box::new);
        feeds
            .map(|feeds| Desk::Book { feeds, _held: held })
            .ok_or_else(|| Failure::cannot_run("there is no book"))
    }

    /// Does something with many feeds. What is told as done is on disk.
    pub fn give(&mut self, word: Word) -> Result<Told, Failure> {
        let mut all = Told { running: matches!(self, Desk::Crawl(_)), ..Told::default() };
        for word in word.pieces() {
            let told = match self {
                Desk::Crawl(crawl) => {
                    let said = crawl.hand::<Told>("/api/v1/feeds", &serde_json::to_string(&word)?)?;
                    said.ok_or_else(|| Failure::CannotRun("the crawl has ended: try again".into()))?
                }
                Desk::Book { feeds, .. } => apply(feeds, word)?,
            };
            all.done.extend(told.done);
            all.known.extend(told.known);
            all.unknown.extend(told.unknown);
            all.refused += told.refused;
        }
        if let Desk::Book { feeds, .. } = self {
            feeds.flush(true)?;
        }
        Ok(all)
    }
}

impl Word {
    fn pieces(self) -> Vec<Word> {
        fn cut<T: Clone>(all: Vec<T>, of: fn(Vec<T>) -> Word) -> Vec<Word> {
            all.chunks(PER_WORD).map(|part| of(part.to_vec())).collect()
        }
        match self {
            Word::Add { feeds } => cut(feeds, |feeds| Word::Add { feeds }),
            Word::Rm { ids } => cut(ids, |ids| Word::Rm { ids }),
            Word::Pause { ids } => cut(ids, |ids| Word::Pause { ids }),
            Word::Resume { ids } => cut(ids, |ids| Word::Resume { ids }),
            Word::Poll { ids } => cut(ids, |ids| Word::Poll { ids }),
        }
    }

    /// The same for the role, one by one.
    fn ops(self) -> Vec<FeedOp> {
        fn each(ids: Vec<u32>, of: fn(FeedId) -> FeedOp) -> Vec<FeedOp> {
            ids.into_iter().map(|id| of(FeedId(id))).collect()
        }
        match self {
            Word::Add { feeds } => {
                let op = |NamedFeed { url, source, title }| FeedOp::Add { url, source, title };
                feeds.into_iter().map(op).collect()
            }
            Word::Rm { ids } => each(ids, |feed| FeedOp::Remove { feed }),
            Word::Pause { ids } => each(ids, |feed| FeedOp::Pause { feed }),
            Word::Resume { ids } => each(ids, |feed| FeedOp::Resume { feed }),
            Word::Poll { ids } => each(ids, |feed| FeedOp::Poll { feed }),
        }
    }
}

fn apply(feeds: &mut Feeds, word: Word) -> Result<Told, Failure> {
    let now_s = (now_ms() / 1_000) as u32;
    let mut told = Told::default();
    for op in word.ops() {
        let is_add = matches!(op, FeedOp::Add { .. });
        let done = feeds.apply(&op, now_s)?;
        match (done.done, is_add && !done.is_new) {
            (false, _) => told.unknown.push(done.feed.0),
            (true, true) => told.known.push(done.feed.0),
            (true, false) => told.done.push(done.feed.0),
        }
    }
    Ok(told)
}

/// The book of a directory, to be looked at.
pub(super) fn book(data: &Path) -> Result<FeedsView, Failure> {
    FeedsView::open(data)?.ok_or_else(|| {
        Failure::CannotRun(format!("{} has no feeds (nephila feeds add puts one in)", data.display()))
    })
}
