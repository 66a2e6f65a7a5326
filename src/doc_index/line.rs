use super::cells::{ByteQueue, Cells};
use super::entry::{DOC, Origin};
use super::varint::{put, take, take_bytes};
use crate::storage::{Piece, Spill};
use std::collections::VecDeque;
use std::io;

/// Pending documents of one host and rank, first come first served. What came last is in memory; what lies before may
/// be on disk.
#[derive(Default)]
pub(super) struct Line {
    pub rank: u16,
    len: u32,
    /// What is before the queue. Most lines have nothing there.
    before: Option<Box<Before>>,
    queue: ByteQueue,
}

#[derive(Default)]
struct Before {
    /// Bytes from `read` on are the next ones.
    head: Vec<u8>,
    read: usize,
    pieces: VecDeque<Piece>,
}

/// A document in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InLine<'a> {
    pub doc_id: u32,
    pub origin: Origin,
    /// Of its URL; the host has the rest.
    pub path: &'a str,
    /// The page that named it, if that was at hand: its path if it is of the same host, and else its URL. Otherwise
    /// empty.
    pub via: &'a str,
}

/// Where lines keep what is pending, and a document on its way.
pub(super) struct Keep {
    pub cells: Cells,
    pub spill: Spill,
    /// Lines that have something before their queue.
    befores: usize,
    scratch: Vec<u8>,
}

/// What is before a queue, with a piece and what the allocator takes.
const BEFORE_BYTES: usize = size_of::<Before>() + size_of::<Piece>() + 32;

/// Before each document stands how long it is.
const LENGTH_BYTES: usize = 2;

impl Keep {
    pub fn new(spill: Spill) -> Keep {
        Keep { cells: Cells::default(), spill, befores: 0, scratch: Vec::new() }
    }

    /// Memory that lines take for what is not in cells.
    pub fn before_bytes(&self) -> usize {
        self.befores * BEFORE_BYTES
    }

    /// What is before the queue of a line, which is made if there is nothing.
    fn before<'a>(befores: &mut usize, before: &'a mut Option<Box<Before>>) -> &'a mut Before {
        *befores += usize::from(before.is_none());
        before.get_or_insert_default()
    }
}

impl Line {
    pub fn new(rank: u16) -> Line {
        Line { rank, ..Line::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Loads where the next one is written.
    pub fn touch(&self, keep: &Keep) -> u32 {
        self.queue.touch(&keep.cells)
    }

    /// Loads where the next one is read.
    pub fn touch_first(&self, keep: &Keep) -> u32 {
        self.queue.touch_first(&keep.cells)
    }

    pub fn push_back(&mut self, doc: &InLine<'_>, keep: &mut Keep) {
        self.len += 1;
        doc.write(&mut keep.scratch);
        self.queue.push(&mut keep.cells, &keep.scratch);
    }

    pub fn push_front(&mut self, doc: &InLine<'_>, keep: &mut Keep) {
        self.len += 1;
        doc.write(&mut keep.scratch);
        let before = Keep::before(&mut keep.befores, &mut self.before);
        let mut head = keep.scratch.clone();
        head.extend_from_slice(&before.head[before.read..]);
        (before.head, before.read) = (head, 0);
    }

    /// Gives the first one to `give`. False if there is none.
    pub fn pop(&mut self, keep: &mut Keep, mut give: impl FnMut(InLine<'_>)) -> io::Result<bool> {
        if let Some(before) = &mut self.before {
            if before.read == before.head.len()
                && let Some(&piece) = before.pieces.front()
            {
                before.head = keep.spill.read(piece)?;
                before.read = 0;
                before.pieces.pop_front();
            }
            let rest = &before.head[before.read..];
            if let Some(length) = rest.get(..LENGTH_BYTES) {
                let end = LENGTH_BYTES + usize::from(u16::from_le_bytes([length[0], length[1]]));
                let doc = rest.get(LENGTH_BYTES..end).and_then(InLine::read);
                let read = before.read + end.min(rest.len());
                self.len -= 1;
                doc.into_iter().for_each(&mut give);
                before.read = read;
                if read == before.head.len() && before.pieces.is_empty() {
                    self.before = None;
                    keep.befores -= 1;
                }
                return Ok(true);
            }
            self.before = None;
            keep.befores -= 1;
        }
        if self.queue.len() < LENGTH_BYTES {
            return Ok(false);
        }
        keep.scratch.clear();
        self.queue.take(&mut keep.cells, LENGTH_BYTES, &mut keep.scratch);
        let length = usize::from(u16::from_le_bytes([keep.scratch[0], keep.scratch[1]]));
        keep.scratch.clear();
        self.queue.take(&mut keep.cells, length, &mut keep.scratch);
        self.len -= 1;
        InLine::read(&keep.scratch).into_iter().for_each(give);
        Ok(true)
    }

    /// Writes what came last to disk, if it is at least so many bytes.
    pub fn spill(&mut self, bytes_min: usize, keep: &mut Keep) -> io::Result<()> {
        let bytes = self.queue.len();
        if bytes < bytes_min.max(1) {
            return Ok(());
        }
        let mut tail = Vec::with_capacity(bytes);
        self.queue.take(&mut keep.cells, bytes, &mut tail);
        match keep.spill.write(&tail) {
            Ok(piece) => {
                let pieces = &mut Keep::before(&mut keep.befores, &mut self.before).pieces;
                // Most lines come back before there is a second.
                pieces.reserve_exact(1);
                pieces.push_back(piece);
            }
            Err(error) => {
                self.queue.push(&mut keep.cells, &tail);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl InLine<'_> {
    /// Writes it, its length first, in place of what was there.
    fn write(&self, out: &mut Vec<u8>) {
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

    fn read(mut bytes: &[u8]) -> Option<InLine<'_>> {
        let doc_id = u32::from_le_bytes(take_bytes(&mut bytes, 4)?.try_into().ok()?);
        let first = take_bytes(&mut bytes, 1)?[0];
        let origin = Origin::read(first, &mut bytes)?;
        let mut text = || {
            let count = take(&mut bytes)? as usize;
            str::from_utf8(take_bytes(&mut bytes, count)?).ok()
        };
        Some(InLine { doc_id, origin, path: text()?, via: text()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served_also_by_way_of_the_disk() {
        let mut keep = Keep::new(Spill::in_memory());
        let mut line = Line::new(0);
        let path = |n: u32| format!("/{n}/{}", "x".repeat(n as usize % 300));
        let mut taken = Vec::new();
        for n in 1..=1_000 {
            let (path, via) = (path(n), path(n / 2));
            let doc = InLine { doc_id: n, origin: Origin::link(n, 1), path: &path, via: &via };
            line.push_back(&doc, &mut keep);
            if n % 100 == 0 {
                line.spill(1, &mut keep).unwrap();
            }
            if n % 3 == 0 {
                line.pop(&mut keep, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap();
            }
            if n == 500 {
                let (doc_id, text) = taken.pop().unwrap();
                let doc = InLine { doc_id, origin: Origin::SEED, path: &text, via: "" };
                line.push_front(&doc, &mut keep);
            }
        }
        while line.pop(&mut keep, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap() {}
        assert_eq!(taken, (1..=1_000).map(|n| (n, path(n))).collect::<Vec<_>>());
        assert!(line.is_empty() && keep.spill.disk_bytes() == 0 && keep.cells.used_bytes() == 0);
        assert_eq!(keep.befores, 0);
    }
}
