//! The files and folders of a doc index, by their names.

pub(super) const LEDGER: &str = "ledger";
pub(super) const ROWS: &str = "documents";
pub(super) const ROWS_LOG: &str = "documents.log";
pub(super) const NOTES: &str = "notes";
pub(super) const SEEN: &str = "seen";
pub(super) const SPILL: &str = "spill";
