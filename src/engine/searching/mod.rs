//! Stories found by their words: where their index is, and what fills it while a crawl runs.
//!
//! | file      | holds                                        |
//! |-----------|----------------------------------------------|
//! | `folder`  | where the index of a data directory is       |
//! | `indexing`| the actor that fills it, on a thread of its own |

mod folder;
mod indexing;
#[cfg(test)]
mod tests;

pub(crate) use folder::search_folder;
pub(crate) use indexing::IndexingActor;
