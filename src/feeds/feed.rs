use super::ids::{FeedId, SourceId};
use super::polls::Polls;
use crate::base::named_enum;
use crate::proto::feed::FeedFormat;

named_enum! {
    pub enum FeedState {
        Active = "active",
        /// Not asked until it is resumed.
        Paused = "paused",
        /// Its server said so (410), it has become one with another feed, or it is a page that names feeds.
        Gone = "gone",
        /// Taken out of the book. Its number stays its own.
        Removed = "removed",
    }
}

/// One feed. Its texts are one piece of memory.
#[derive(Clone, Debug)]
pub struct Feed {
    /// URL, title, language, hub.
    texts: Box<str>,
    ends: [u16; 3],
    pub(super) state: FeedState,
    pub(super) format: Option<FeedFormat>,
    pub(super) id: FeedId,
    pub(super) source: SourceId,
    /// 0: none yet.
    pub(super) doc_id: u32,
    pub(super) added_s: u32,
    /// The feed that it has become one with; 0: none.
    pub(super) merged: FeedId,
    /// The page that it was found on, if somebody added that; 0: none.
    pub(super) named_by: FeedId,
    pub(super) polls: Polls,
}

/// Of one text; URLs may be longer.
const TEXT_BYTES_MAX: usize = 300;
const URL_BYTES_MAX: usize = 16 << 10;

impl Feed {
    pub(super) fn new(id: FeedId, source: SourceId, url: &str, title: &str, added_s: u32) -> Feed {
        let (texts, ends) = packed([url, title, "", ""]);
        Feed {
            texts,
            ends,
            state: FeedState::Active,
            format: None,
            id,
            source,
            doc_id: 0,
            added_s,
            merged: FeedId(0),
            named_by: FeedId(0),
            polls: Polls { due_s: added_s, ..Polls::default() },
        }
    }

    fn texts(&self) -> [&str; 4] {
        let [a, b, c] = self.ends.map(usize::from);
        [&self.texts[..a], &self.texts[a..b], &self.texts[b..c], &self.texts[c..]]
    }

    /// Puts texts in place of what they were; `None` leaves one as it is. False if all were so already.
    pub(super) fn set_texts(&mut self, new: [Option<&str>; 4]) -> bool {
        let old = self.texts();
        if new.iter().zip(old).all(|(new, old)| new.is_none_or(|new| new == old)) {
            return false;
        }
        let [url, title, language, hub] = std::array::from_fn(|at| new[at].unwrap_or(old[at]));
        (self.texts, self.ends) = packed([url, title, language, hub]);
        true
    }

    pub fn id(&self) -> FeedId {
        self.id
    }

    pub fn source(&self) -> SourceId {
        self.source
    }

    /// The document that the doc index has it as.
    pub fn doc_id(&self) -> Option<u32> {
        Some(self.doc_id).filter(|&doc_id| doc_id > 0)
    }

    pub fn url(&self) -> &str {
        self.texts()[0]
    }

    pub fn title(&self) -> &str {
        self.texts()[1]
    }

    /// Empty if it does not say.
    pub fn language(&self) -> &str {
        self.texts()[2]
    }

    /// Where new entries can be subscribed to; empty if it does not say.
    pub fn hub(&self) -> &str {
        self.texts()[3]
    }

    pub fn state(&self) -> FeedState {
        self.state
    }

    pub fn format(&self) -> Option<FeedFormat> {
        self.format
    }

    pub fn added_s(&self) -> u32 {
        self.added_s
    }

    /// The feed that it has become one with.
    pub fn merged(&self) -> Option<FeedId> {
        Some(self.merged).filter(|feed| feed.0 > 0)
    }

    /// The page that it was found on, if somebody added that.
    pub fn named_by(&self) -> Option<FeedId> {
        Some(self.named_by).filter(|page| page.0 > 0)
    }

    pub fn polls(&self) -> &Polls {
        &self.polls
    }

    /// Its memory, that of its texts included.
    pub(super) fn ram_bytes(&self) -> usize {
        // The allocator rounds up, and keeps a word for itself.
        size_of::<Feed>() + (self.texts.len() + 8).next_multiple_of(16)
    }
}

fn packed(texts: [&str; 4]) -> (Box<str>, [u16; 3]) {
    let mut all = String::new();
    let mut ends = [0; 4];
    for (at, text) in texts.into_iter().enumerate() {
        all.push_str(cut(text, if at == 0 { URL_BYTES_MAX } else { TEXT_BYTES_MAX }));
        ends[at] = all.len() as u16;
    }
    (all.into_boxed_str(), [ends[0], ends[1], ends[2]])
}

/// A text of no more than this many bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
