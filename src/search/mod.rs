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
//! | `stems`       | words by their stems in a language                                             |
//! | `fields`      | the fields of a story: one for each language, twice                            |
//! | `query`       | what was asked, bounded                                                        |
//! | `clauses`     | what was asked, as the library underneath takes it                             |
//! | `story_index` | the writer's side: one process at a time                                       |
//! | `library`     | the reader's side: any process, while another writes                           |
//! | `known`       | which stories are in the index                                                 |
//! | `error`       | why it cannot be done, and the mend                                            |
//!
//! A language has a field of its own, since a stem is one of a language: `body_en` and `title_en` for English, `body_xx` and
//! `title_xx` for all without stems. A word is asked for in every field, so that one question finds stories of all languages.
//!
//! The place in the source up to which stories are indexed is written by the very commit that makes them findable. What a
//! kill takes is read again from there, and a story that is indexed again replaces what was there.

mod clauses;
mod error;
mod fields;
mod known;
mod languages;
mod library;
mod query;
mod source;
mod stems;
mod story_index;
#[cfg(test)]
mod tests;
mod words;

pub use error::SearchError;
pub(crate) use library::{FindError, Hit, Library, SearchFacts};
pub(crate) use query::SearchQuery;
pub use source::{SearchDoc, SearchSource};
pub use story_index::{Reindexed, StoryIndex};
