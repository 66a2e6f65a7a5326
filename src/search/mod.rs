//! Full text over stories: an index that is derived from their texts, and can be made anew from them at any time.
//!
//! ```text
//!   SearchSource ── SearchDoc, with the place behind it ──► StoryIndex ── commit: segments and that place, at once
//!                                                               │
//!   words, "phrases", source:, lang: ──► SearchQuery ──► Library::find ──► Hit
//! ```
//!
//! | file          | holds                                                                          |
//! |---------------|--------------------------------------------------------------------------------|
//! | `source`      | where stories come from                                                        |
//! | `languages`   | languages whose words have stems, and the names of all                         |
//! | `words`       | a text as words, and as pairs of characters where a script has no spaces       |
//! | `fields`      | what a word of the dictionary is one of                                        |
//! | `rank`        | how good a story is by its words                                               |
//! | `postings`    | the stories that have a word, in blocks that say how good their best can be    |
//! | `segments`    | stories and their words in a file that never changes; several as one           |
//! | `buffer`      | stories that are in no segment yet                                             |
//! | `forms`       | words as they stand in texts, each looked up at one place                      |
//! | `lists`       | very many lists of bytes that grow at their ends                               |
//! | `manifest`    | which segments an index has, and up to where it holds what its source has      |
//! | `policy`      | which segments are to be merged                                                |
//! | `known`       | which stories are in the index                                                 |
//! | `story_index` | the writer's side: one process at a time                                       |
//! | `query`       | what was asked, bounded                                                        |
//! | `question`    | what was asked, as it is put to the index                                      |
//! | `among`       | stories one of whose words will do                                             |
//! | `phrases`     | words that follow each other                                                   |
//! | `walk`        | a way through the stories of a segment that have all words                     |
//! | `best`        | the best that were met so far                                                  |
//! | `library`     | the reader's side: any process, while another writes                           |
//! | `error`       | why it cannot be done, and the mend                                            |
//!
//! A language has a field of its own, since a stem is one of a language; all without stems have one together. A word is asked
//! for in every field, so that one question finds stories of all languages. A title stands in the field twice before its text:
//! its words count for more, and all words of a question are asked of one field, whose blocks of stories say how good the best
//! of them can be. A phrase is a condition, and its words count like others: places are read only of stories that would be
//! among the best.
//!
//! The place in the source up to which stories are indexed is written by the very commit that makes them findable. What a
//! kill takes is read again from there, and a story that is indexed again replaces what was there.

mod among;
mod best;
mod buffer;
mod error;
mod fields;
mod forms;
mod known;
mod languages;
mod library;
mod lists;
mod manifest;
mod phrases;
mod policy;
mod postings;
mod query;
mod question;
mod rank;
mod segments;
mod source;
mod story_index;
#[cfg(test)]
mod tests;
mod walk;
mod words;

pub use error::SearchError;
pub(crate) use library::{FindError, Hit, Library, SearchFacts};
pub(crate) use query::SearchQuery;
pub use source::{SearchDoc, SearchSource};
pub use story_index::{Reindexed, StoryIndex};
