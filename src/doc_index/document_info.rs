use super::documents::{DocState, Note, Row};
use super::ledger::Discovered;

/// All that is known of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentInfo {
    pub doc_id: u32,
    pub discovered: Discovered,
    /// `None` if it was never answered for.
    pub row: Option<Row>,
    pub note: Note,
}

impl DocumentInfo {
    pub fn state(&self) -> DocState {
        self.row.map_or(DocState::Pending, |row| row.state)
    }
}
