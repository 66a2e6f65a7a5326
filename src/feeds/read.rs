use super::ids::StoryId;
use crate::base::named_enum;
use crate::proto::feed::FeedFacts;
use serde::Serialize;

/// What a poll brought: a feed, parsed.
#[derive(Clone, Debug)]
pub struct FeedRead {
    pub facts: FeedFacts,
    pub entries: Vec<EntryRead>,
    /// XXH3 of the sorted normal URLs of its entries.
    pub checksum: u64,
    /// Of the body. Not 0.
    pub digest: u64,
    /// Entries that have no URL that could be asked for.
    pub skipped: u32,
}

/// An entry of a feed.
#[derive(Clone, Debug, Default)]
pub struct EntryRead {
    /// In normal form.
    pub url: Box<str>,
    /// Empty if it has none.
    pub guid: Box<str>,
    /// Plain text, as the feed has it.
    pub title: Box<str>,
    /// Seconds since 1970.
    pub published_s: Option<i64>,
}

/// A story that was not known. The caller makes its download, and says which document that is.
#[derive(Clone, Copy, Debug)]
pub struct NewStory<'a> {
    pub story: StoryId,
    pub url: &'a str,
}

named_enum! {
    /// Why a listing was not looked through.
    pub enum Redundant {
        /// The same bytes as the last time.
        Digest = "digest",
        /// The same URLs as the last time.
        Checksum = "checksum",
    }
}

/// What a listing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadTold {
    pub redundant: Option<Redundant>,
    pub entries: u32,
    pub new: u32,
    pub dup_url: u32,
    pub dup_guid: u32,
    pub dup_title: u32,
    /// Without a URL, or home pages.
    pub skipped: u32,
    /// It shares no entry with the one before: some have come and gone between the two.
    pub gap: bool,
    /// The mean time between entries by their dates, if they have some.
    pub mean_gap_s: Option<u32>,
    /// Some of the new stories are older than the last poll, or have no date: they were there to be told then.
    #[serde(skip)]
    pub(super) is_late_news: bool,
    /// What the feed says of itself has changed.
    #[serde(skip)]
    pub(super) has_changed: bool,
}
