use super::BodyBudget;
use super::budget::Held;
use std::sync::Arc;

/// Buffers for requests and documents, used again and again, and this spider's share of the budget for documents.
pub(super) struct Buffers {
    requests: Vec<Vec<u8>>,
    documents: Vec<Vec<u8>>,
    held: Held,
}

/// Buffers kept of each kind, and the capacity up to which a document's is kept.
const BUFFERS_KEPT: usize = 64;
const DOCUMENT_BYTES_KEPT: usize = 256 * 1024;

impl Buffers {
    pub fn new(budget: Arc<BodyBudget>) -> Buffers {
        Buffers { requests: Vec::new(), documents: Vec::new(), held: Held::new(budget) }
    }

    /// No fetch may start before documents in flight, of this spider or another, have been stored.
    pub fn is_used_up(&self) -> bool {
        self.held.is_used_up()
    }

    /// Accounts for a document that went from one size to another.
    pub fn resized(&mut self, from: usize, to: usize) {
        self.held.resized(from, to);
    }

    pub fn request(&mut self) -> Vec<u8> {
        self.requests.pop().unwrap_or_default()
    }

    pub fn keep_request(&mut self, buffer: Vec<u8>) {
        keep(&mut self.requests, buffer, usize::MAX);
    }

    pub fn document(&mut self) -> Vec<u8> {
        self.documents.pop().unwrap_or_default()
    }

    /// Takes back a buffer whose bytes are accounted for already.
    pub fn keep_document(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        keep(&mut self.documents, buffer, DOCUMENT_BYTES_KEPT);
    }
}

fn keep(pool: &mut Vec<Vec<u8>>, buffer: Vec<u8>, bytes_max: usize) {
    if pool.len() < BUFFERS_KEPT && buffer.capacity() <= bytes_max && buffer.capacity() > 0 {
        pool.push(buffer);
    }
}
