use super::entry::{DOC, Origin};
use super::spill::{Piece, Spill};
use super::varint::{put, take, take_bytes};
use std::collections::VecDeque;
use std::io;

/// Pending documents of one host and rank, first come first served. What is read next and what came last is in memory;
/// what lies between may be on disk.
pub(super) struct Line {
    pub rank: u16,
    len: u32,
    /// Bytes from `read` on are the next ones.
    head: Vec<u8>,
    read: usize,
    /// Most lines have none.
    pieces: Option<Box<VecDeque<Piece>>>,
    tail: Vec<u8>,
}

/// A document in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InLine<'a> {
    pub doc_id: u32,
    pub origin: Origin,
    /// Of its URL; the host has the rest.
    pub path: &'a str,
}

impl Line {
    pub fn new(rank: u16) -> Line {
        Line { rank, len: 0, head: Vec::new(), read: 0, pieces: None, tail: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn ram_bytes(&self) -> usize {
        self.head.capacity() + self.tail.capacity()
    }

    pub fn push_back(&mut self, doc: &InLine<'_>) {
        self.len += 1;
        doc.write(&mut self.tail);
    }

    pub fn push_front(&mut self, doc: &InLine<'_>) {
        self.len += 1;
        let mut head = Vec::new();
        doc.write(&mut head);
        head.extend_from_slice(&self.head[self.read..]);
        (self.head, self.read) = (head, 0);
    }

    /// Gives the first one to `give`. False if there is none.
    pub fn pop(&mut self, spill: &mut Spill, give: impl FnOnce(InLine<'_>)) -> io::Result<bool> {
        if self.read == self.head.len() {
            let first = self.pieces.as_ref().and_then(|pieces| pieces.front().copied());
            self.head = match (first, &mut self.pieces) {
                (Some(piece), Some(pieces)) => {
                    let bytes = spill.read(piece)?;
                    pieces.pop_front();
                    bytes
                }
                // The two take turns, for their memory.
                _ => {
                    self.head.clear();
                    std::mem::swap(&mut self.head, &mut self.tail);
                    std::mem::take(&mut self.head)
                }
            };
            self.read = 0;
        }
        let mut rest = &self.head[self.read..];
        let before = rest.len();
        let Some(doc) = InLine::read(&mut rest) else { return Ok(false) };
        self.read += before - rest.len();
        self.len -= 1;
        give(doc);
        Ok(true)
    }

    /// Writes what came last to disk, if it is at least so many bytes.
    pub fn spill(&mut self, bytes_min: usize, spill: &mut Spill) -> io::Result<()> {
        if self.tail.len() >= bytes_min.max(1) {
            let piece = spill.write(&self.tail)?;
            self.pieces.get_or_insert_default().push_back(piece);
            self.tail = Vec::new();
        }
        Ok(())
    }
}

impl InLine<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.doc_id.to_le_bytes());
        self.origin.write(out, DOC);
        put(out, self.path.len() as u64);
        out.extend_from_slice(self.path.as_bytes());
    }

    fn read<'a>(bytes: &mut &'a [u8]) -> Option<InLine<'a>> {
        let doc_id = u32::from_le_bytes(take_bytes(bytes, 4)?.try_into().ok()?);
        let first = take_bytes(bytes, 1)?[0];
        let origin = Origin::read(first, bytes)?;
        let count = take(bytes)? as usize;
        let path = str::from_utf8(take_bytes(bytes, count)?).ok()?;
        Some(InLine { doc_id, origin, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served_also_by_way_of_the_disk() {
        let mut spill = Spill::in_memory();
        let mut line = Line::new(0);
        let path = |n: u32| format!("/{n}");
        let mut taken = Vec::new();
        for n in 1..=1_000 {
            line.push_back(&InLine { doc_id: n, origin: Origin::link(n, 1), path: &path(n) });
            if n % 100 == 0 {
                line.spill(1, &mut spill).unwrap();
            }
            if n % 3 == 0 {
                line.pop(&mut spill, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap();
            }
            if n == 500 {
                let (doc_id, text) = taken.pop().unwrap();
                line.push_front(&InLine { doc_id, origin: Origin::SEED, path: &text });
            }
        }
        while line.pop(&mut spill, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap() {}
        assert_eq!(taken, (1..=1_000).map(|n| (n, path(n))).collect::<Vec<_>>());
        assert!(line.is_empty() && spill.disk_bytes() == 0);
    }
}
