//! Stories found by their words: where their index is, and what fills it while a crawl runs.
//!
//! | file      | holds                                        |
//! |-----------|----------------------------------------------|
//! | `folder`  | where the index of a data directory is       |
//! | `indexing`| the actor that fills it, on a thread of its own |
//! | `story_texts` | where its stories come from: texts, ledger, book of feeds |

mod folder;
mod indexing;
mod story_texts;
#[cfg(test)]
mod tests;

pub(crate) use folder::search_folder;
pub use indexing::IndexingActor;
pub use story_texts::StoryTexts;
