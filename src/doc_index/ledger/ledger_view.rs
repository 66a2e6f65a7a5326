use super::block::{BLOCK_BYTES_MAX, BlockHeader, block_from, scan};
use super::ledger::{Discovered, FILE_HEADER_BYTES, Told, read_doc, tell};
use crate::storage::Bytes;
use std::io;
use std::ops::ControlFlow;

/// A ledger that another process may be writing to.
pub(crate) struct LedgerView {
    bytes: Bytes,
}

impl LedgerView {
    pub fn new(bytes: Bytes) -> LedgerView {
        LedgerView { bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.len()
    }

    /// A document as it was discovered. Its block is looked for by halves.
    pub fn doc(&self, doc_id: u32) -> io::Result<Option<Discovered>> {
        read_doc(&self.bytes, self.place(doc_id)?, doc_id)
    }

    /// Tells the entries from the block on that has a document, until `each` breaks with what it has found.
    pub fn each_from<B>(
        &self,
        doc_id: u32,
        mut each: impl FnMut(Told<'_>) -> ControlFlow<B>,
    ) -> io::Result<Option<B>> {
        let told = |at, header: BlockHeader, payload: &[u8]| tell(at, &header, payload, &mut each);
        Ok(scan(&self.bytes, self.place(doc_id)?, told)?.1)
    }

    /// A place of a block at or before the one that has a document.
    fn place(&self, doc_id: u32) -> io::Result<u64> {
        let (mut low, mut high) = (FILE_HEADER_BYTES as u64, self.bytes.len());
        while high - low > 4 * BLOCK_BYTES_MAX as u64 {
            let middle = low + (high - low) / 2;
            match block_from(&self.bytes, middle)? {
                Some((at, header)) if header.first_doc <= doc_id && at < high => low = at,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}
