use crate::feeds::{FeedRules, Feeds, Told};
use crate::handler::Discover;
use std::io;
use std::path::PathBuf;

/// Where the feeds of a crawl are kept, and what they go by.
pub(crate) struct FeedsHome {
    /// `None` leaves nothing behind.
    pub directory: Option<PathBuf>,
    pub rules: FeedRules,
    pub discover: Discover,
}

impl FeedsHome {
    /// Whether there are feeds from before.
    pub fn has_feeds(&self) -> bool {
        self.directory.as_ref().is_some_and(|directory| directory.join("feeds").exists())
    }

    pub fn open(&self) -> io::Result<(Feeds, Vec<Told>)> {
        match &self.directory {
            Some(directory) => Feeds::open(directory, self.rules.clone()),
            None => Ok((Feeds::in_memory(self.rules.clone(), 0)?, Vec::new())),
        }
    }
}
