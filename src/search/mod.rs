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
//! | `fields`      | the fields of a story: one for each language                                   |
//! | `query`       | what was asked, bounded                                                        |
//! | `clauses`     | what was asked, as the library underneath takes it                             |
//! | `conditions`  | what a story is looked at for once its words are good enough                   |
//! | `best`        | the best that were met so far                                                  |
//! | `story_index` | the writer's side: one process at a time                                       |
//! | `library`     | the reader's side: any process, while another writes                           |
//! | `known`       | which stories are in the index                                                 |
//! | `error`       | why it cannot be done, and the mend                                            |
//!
//! A language has a field of its own, since a stem is one of a language: `text_en` for English, `text_xx` for all without
//! stems. A word is asked for in every field, so that one question finds stories of all languages. A title stands in the field
//! twice before its text: its words count for more, and all words of a question are asked of one field, whose blocks of
//! stories say how good the best of them can be. A phrase is a condition, and its words count like others: positions are
//! read only of stories that would be among the best.
//!
//! The place in the source up to which stories are indexed is written by the very commit that makes them findable. What a
//! kill takes is read again from there, and a story that is indexed again replaces what was there.

mod best;
mod clauses;
mod conditions;
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
