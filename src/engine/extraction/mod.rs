//! Texts of stories: the ledger of stories says what is waiting, threads of their own read the pages.
//!
//! ```text
//!   ledger of stories ──► fetched, and without a text ──► the store's page ──► Hands ──► Texts ──► synced
//!        ▲ low: all before it have their text                                  │ one page each, with a deadline
//!        └──────── a kill repeats what was not synced, and skips nothing       └ an own stack; a panic is a mark on the page
//! ```
//!
//! There is no queue beside the ledger: a story that was fetched and has no text is waiting, whatever became of the
//! process meanwhile. A page that panics its parser or is not done by its deadline gets a text that says so. The thread that
//! does not come back is left to itself and replaced; of such threads there are only so many.
//!
//! | file         | holds                                                            |
//! |--------------|------------------------------------------------------------------|
//! | `actor`      | the turn: look, read, hand out, append, sync                     |
//! | `waiting`    | what the ledger of stories and the store are asked               |
//! | `store_pages`| pages out of the store                                           |
//! | `stories`    | the ledger of stories of a data directory                        |
//! | `job`        | one page to one text                                             |
//! | `hands`      | threads that do it, and their deadline                           |
//! | `at_rest`    | all of it put together                                           |

mod actor;
mod at_rest;
mod hands;
mod job;
mod store_pages;
mod stories;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use at_rest::CrawlExtraction;
pub use at_rest::{ExtractionSetup, TextsMade};
pub(crate) use hands::EXTRACTOR_THREAD;
