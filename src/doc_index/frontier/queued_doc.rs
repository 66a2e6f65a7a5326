use crate::base::varint::{put, take, take_bytes};
use crate::doc_index::ledger::{DOC, Origin};

/// A document in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedDoc<'a> {
    pub doc_id: u32,
    pub origin: Origin,
    /// Of its URL; the host has the rest.
    pub path: &'a str,
    /// The page that named it, if that was at hand: its path if it is of the same host, and else its URL. Otherwise
    /// empty.
    pub via: &'a str,
}

/// Before each document stands how long it is.
pub(super) const LENGTH_BYTES: usize = 2;

impl QueuedDoc<'_> {
    /// Writes it, its length first, in place of what was there.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        out.extend_from_slice(&self.doc_id.to_le_bytes());
        self.origin.write(out, DOC);
        for text in [self.path, self.via] {
            put(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        // A URL has at most 8,000 bytes.
        let length = (out.len() - LENGTH_BYTES) as u16;
        out[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Reads what stands behind the length.
    pub(super) fn read(mut bytes: &[u8]) -> Option<QueuedDoc<'_>> {
        let doc_id = u32::from_le_bytes(take_bytes(&mut bytes, 4)?.try_into().ok()?);
        let first = take_bytes(&mut bytes, 1)?[0];
        let origin = Origin::read(first, &mut bytes)?;
        let mut text = || {
            let count = take(&mut bytes)? as usize;
            str::from_utf8(take_bytes(&mut bytes, count)?).ok()
        };
        Some(QueuedDoc { doc_id, origin, path: text()?, via: text()? })
    }
}
