use super::desk::{Desk, Told, Word, book};
use crate::base::shown;
use crate::commands::index::typed;
use crate::commands::shared::{DataArg, Failure, counted, tell};
use crate::feeds::{FeedId, FeedsView};
use clap::Args;
use std::path::Path;

/// Feeds, and where they are.
#[derive(Args)]
pub struct ChangeArgs {
    /// Feeds, by their numbers or URLs
    #[arg(required = true, value_name = "ID|URL")]
    feeds: Vec<String>,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Verb {
    Pause,
    Poll,
    Resume,
    Rm,
}

impl ChangeArgs {
    pub fn run(self, verb: Verb) -> Result<(), Failure> {
        let view = book(&self.data.path)?;
        let mut ids = Vec::new();
        for feed in &self.feeds {
            ids.push(named(&view, feed, &self.data.path)?.0);
        }
        ids.sort_unstable();
        ids.dedup();
        let (word, done) = match verb {
            Verb::Pause => (Word::Pause { ids }, "paused"),
            Verb::Poll => (Word::Poll { ids }, "polled as soon as may be"),
            Verb::Resume => (Word::Resume { ids }, "resumed"),
            Verb::Rm => (Word::Rm { ids }, "removed"),
        };
        let told = Desk::open(&self.data.path)?.give(word)?;
        tell(&told, self.json, |told: &Told| {
            format!("{}: {done}\n", counted(told.done.len() as u64, "feed"))
        })?;
        match told.unknown.first() {
            None => Ok(()),
            Some(feed) => {
                let state = view.feed(FeedId(*feed)).map_or("not known", |feed| feed.state().name());
                Err(Failure::No(format!("feed {feed} is {state} (nephila feeds show {feed} says more)")))
            }
        }
    }
}

/// A feed as it was typed.
pub(super) fn named(view: &FeedsView, text: &str, data: &Path) -> Result<FeedId, Failure> {
    let found = match text.parse::<u32>() {
        Ok(number) => Some(FeedId(number)).filter(|feed| view.feed(*feed).is_some()),
        Err(_) => view.by_url(typed(text, data)?.as_str()),
    };
    found.ok_or_else(|| {
        Failure::No(format!("there is no feed {} (nephila feeds ls lists them)", shown(text, 200)))
    })
}
