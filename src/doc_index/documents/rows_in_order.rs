use super::documents::place;
use super::row::{ROW_BYTES, Row};
use crate::storage::Bytes;
use std::io;

/// Rows of the table in the order of their numbers, many at a time.
pub(crate) struct RowsInOrder {
    rows: Bytes,
    buffer: Vec<u8>,
    /// The number of the first row in the buffer.
    first: u32,
}

impl RowsInOrder {
    pub fn new(rows: Bytes) -> RowsInOrder {
        RowsInOrder { rows, buffer: Vec::new(), first: 0 }
    }

    /// The row of a document; asked for in ascending order.
    pub fn get(&mut self, doc_id: u32) -> io::Result<Option<Row>> {
        let held = (self.buffer.len() / ROW_BYTES) as u32;
        if doc_id < self.first || doc_id - self.first >= held {
            self.buffer.resize(ROWS_PER_READ * ROW_BYTES, 0);
            let read = self.rows.read_at(&mut self.buffer, place(doc_id))?;
            self.buffer.truncate(read - read % ROW_BYTES);
            self.first = doc_id;
        }
        // Past the end there are none, which need not be found out again for each.
        if self.buffer.is_empty() {
            self.buffer.resize(ROWS_PER_READ * ROW_BYTES, 0);
        }
        let at = (doc_id - self.first) as usize * ROW_BYTES;
        let bytes = self.buffer.get(at..at + ROW_BYTES).and_then(|bytes| bytes.try_into().ok());
        Ok(bytes.and_then(Row::decode))
    }
}

/// Rows that are read at once.
const ROWS_PER_READ: usize = 16 * 1024;
