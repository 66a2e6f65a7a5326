//! What a process that was killed had stored is taken up by the next.

use super::frontier::split;
use super::index::DocIndex;

impl DocIndex {
    /// Whether it was told of an answer of this time or of a later one. Within one second answers cannot be told apart.
    pub fn is_told(&mut self, doc_id: u32, at_s: u32) -> bool {
        self.row(doc_id).fetched_s >= at_s
    }

    /// Hands out one document whose answer is there already: it is to be recorded. Wherever it stands, it stands there no
    /// more. False if it is with somebody, or not known.
    pub fn take_up(&mut self, doc_id: u32) -> bool {
        if self.open.contains_key(&doc_id) {
            return false;
        }
        let found = self.ledger.doc(doc_id).unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            None
        });
        let Some(found) = found else { return false };
        let Some((origin, _)) = split(&found.url) else { return false };
        let host = self.frontier.host(origin);
        if self.taken.get(doc_id) {
            let row = self.row(doc_id);
            self.uncount(host, &row);
        } else {
            self.taken.set(doc_id, true);
            self.frontier.let_go(host);
        }
        self.open.insert(doc_id, host);
        self.frontier.counts(host).fetching += 1;
        true
    }
}
