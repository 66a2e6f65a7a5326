use super::BodyBudget;
use super::Fetched;
use super::budget::Held;
use std::sync::Arc;

/// Buffers for requests and documents, used again and again, and this spider's share of the budget for documents.
pub(super) struct Buffers {
    requests: Pool,
    documents: Pool,
    /// Boxes of fetches that have ended: it is the boxes that are kept.
    #[allow(clippy::vec_box)]
    fetched: Vec<Box<Fetched>>,
    held: Held,
}

/// Empty buffers, bounded by the memory that they take.
struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

/// Memory of the buffers that are kept, and of one for a document that is.
const REQUESTS_BYTES_KEPT: usize = 2 << 20;
const DOCUMENTS_BYTES_KEPT: usize = 16 << 20;
const DOCUMENT_BYTES_KEPT: usize = 256 << 10;
/// Room for a request without cookies and long names.
const REQUEST_BYTES_USUAL: usize = 512;
/// Boxes that are kept: few wait at once, as a page is stored as soon as it is whole.
const BOXES_KEPT: usize = 64;

impl Buffers {
    pub fn new(budget: Arc<BodyBudget>) -> Buffers {
        Buffers {
            requests: Pool::new(REQUESTS_BYTES_KEPT),
            documents: Pool::new(DOCUMENTS_BYTES_KEPT),
            fetched: Vec::new(),
            held: Held::new(budget),
        }
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
        self.requests.take().unwrap_or_else(|| Vec::with_capacity(REQUEST_BYTES_USUAL))
    }

    pub fn keep_request(&mut self, buffer: Vec<u8>) {
        self.requests.keep(buffer);
    }

    pub fn document(&mut self) -> Vec<u8> {
        self.documents.take().unwrap_or_default()
    }

    /// Takes back a buffer whose bytes are accounted for already.
    pub fn keep_document(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= DOCUMENT_BYTES_KEPT {
            self.documents.keep(buffer);
        }
    }

    /// The box of an ended fetch.
    pub fn boxed(&mut self, fetched: Fetched) -> Box<Fetched> {
        match self.fetched.pop() {
            Some(mut kept) => {
                *kept = fetched;
                kept
            }
            None => Box::new(fetched),
        }
    }

    /// Takes back a box whose bytes are accounted for already, and them.
    pub fn keep(&mut self, mut fetched: Box<Fetched>) {
        self.keep_document(std::mem::take(&mut fetched.bytes));
        if self.fetched.len() < BOXES_KEPT {
            self.fetched.push(fetched);
        }
    }
}

impl Pool {
    fn new(bytes_max: usize) -> Pool {
        Pool { buffers: Vec::new(), bytes: 0, bytes_max }
    }

    /// `None` if there is none.
    fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes > 0 && self.bytes + bytes <= self.bytes_max {
            buffer.clear();
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_within_a_bound_of_memory() {
        let mut pool = Pool::new(100);
        for _ in 0..3 {
            let mut buffer = Vec::with_capacity(40);
            buffer.push(1);
            pool.keep(buffer);
        }
        assert_eq!((pool.buffers.len(), pool.bytes), (2, 80), "the third is too much");
        let taken = pool.take().unwrap();
        assert!(taken.is_empty() && taken.capacity() == 40);
        pool.keep(Vec::new());
        assert_eq!((pool.buffers.len(), pool.bytes), (1, 40), "what holds nothing is not kept");
        pool.take();
        assert_eq!((pool.take(), pool.bytes), (None, 0));
    }
}
