use super::ids::{FeedId, SourceId, StoryId};
use crate::base::named_enum;
use serde::Serialize;

named_enum! {
    pub enum StoryState {
        /// Its page is to be fetched.
        Pending = "pending",
        Fetched = "fetched",
        /// Its text is there.
        Extracted = "extracted",
        Failed = "failed",
    }
}

named_enum! {
    /// Where the date of a story is from.
    pub enum DateFrom {
        Feed = "feed",
        /// It has none: when it was found.
        Seen = "seen",
    }
}

/// A story, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Story {
    pub id: StoryId,
    pub source: SourceId,
    pub feed: FeedId,
    pub doc_id: Option<u32>,
    pub url: Box<str>,
    pub guid: Box<str>,
    /// Other entries are known by its guid. Not by one that several entries of a listing have, or that tells nothing.
    #[serde(skip)]
    pub is_known_by_guid: bool,
    pub title: Box<str>,
    pub published_s: u32,
    pub provenance: DateFrom,
    pub seen_s: u32,
    pub language: Box<str>,
    pub state: StoryState,
}
