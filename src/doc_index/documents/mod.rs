//! What became of every document: a row of 64 bytes each, by number, and notes beside them.
//!
//! | file            | holds                                                                |
//! |-----------------|----------------------------------------------------------------------|
//! | `documents`     | the table, and the log that rows go through                          |
//! | `rows_in_order` | the table read from its beginning to its end                         |
//! | `recent_rows`   | rows that are in the log and not in the table                        |
//! | `row`           | what became of one document, and its layout                          |
//! | `notes`         | the notes of all documents, each at its place                        |
//! | `note`          | what is known of a document that has no fixed size                   |

#[allow(clippy::module_inception)]
mod documents;
mod note;
mod notes;
mod recent_rows;
mod row;
mod rows_in_order;

pub(super) use documents::{DocumentFiles, Documents};
pub use note::Note;
pub(super) use note::NoteOwner;
pub(super) use row::ROW_BYTES;
pub use row::{DocState, Row};
pub(super) use rows_in_order::RowsInOrder;
