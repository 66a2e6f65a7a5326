use crate::storage::{HUGE_LINES, HugeBuffer, LINE_BYTES};

/// Memory for very many small queues of bytes: cells of one size that are linked to each other, and given back when
/// they were read. Nothing is moved when a queue grows, and nothing is asked of the allocator for each.
///
/// A cell is a cache line: [`CELL_BYTES`] bytes, and the number of the next cell.
#[derive(Default)]
pub(super) struct QueueArena {
    /// The first [`SMALL_BUFFERS`] of them are small, so that small crawls take little.
    buffers: Vec<HugeBuffer>,
    /// The first of the cells that were used and given back, linked like a queue; [`NONE`] if there is none.
    free: u32,
    /// Cells that were ever used, and those that are.
    made: u32,
    used: usize,
}

/// A queue of bytes in cells. An empty one holds no cell.
#[derive(Default)]
pub(super) struct ByteQueue {
    /// Bytes in it.
    len: u32,
    first: u32,
    last: u32,
    /// Where to read in the first cell and to write in the last.
    read: u8,
    written: u8,
}

const CELL_BYTES: usize = LINE_BYTES - LINK_BYTES;
const LINK_BYTES: usize = size_of::<u32>();
const CELLS_PER_SMALL: usize = 512;
const SMALL_BUFFERS: usize = HUGE_LINES / CELLS_PER_SMALL;
const NONE: u32 = 0;

impl QueueArena {
    /// Memory in use. What was used and is free is used again, and not given back.
    pub fn used_bytes(&self) -> usize {
        self.used * LINE_BYTES
    }

    pub fn ram_bytes(&self) -> usize {
        self.buffers.iter().map(HugeBuffer::len).sum::<usize>() * LINE_BYTES
    }

    /// The buffer of a cell, and its line there. Cells are numbered from 1.
    fn place(number: u32) -> (usize, usize) {
        let at = number as usize - 1;
        match at < HUGE_LINES {
            true => (at / CELLS_PER_SMALL, at % CELLS_PER_SMALL),
            false => (SMALL_BUFFERS - 1 + at / HUGE_LINES, at % HUGE_LINES),
        }
    }

    fn cell(&self, number: u32) -> &[u8; LINE_BYTES] {
        let (buffer, line) = QueueArena::place(number);
        self.buffers[buffer].line(line)
    }

    fn cell_mut(&mut self, number: u32) -> &mut [u8; LINE_BYTES] {
        let (buffer, line) = QueueArena::place(number);
        self.buffers[buffer].line_mut(line)
    }

    fn link(&self, number: u32) -> u32 {
        let [.., a, b, c, d] = *self.cell(number);
        u32::from_ne_bytes([a, b, c, d])
    }

    fn set_link(&mut self, number: u32, next: u32) {
        self.cell_mut(number)[CELL_BYTES..].copy_from_slice(&next.to_ne_bytes());
    }

    fn take(&mut self) -> u32 {
        self.used += 1;
        if self.free != NONE {
            let number = self.free;
            self.free = self.link(number);
            return number;
        }
        self.made += 1;
        let (buffer, _) = QueueArena::place(self.made);
        if buffer == self.buffers.len() {
            let cells = if buffer < SMALL_BUFFERS { CELLS_PER_SMALL } else { HUGE_LINES };
            self.buffers.push(HugeBuffer::new(cells));
        }
        self.made
    }

    fn give_back(&mut self, number: u32) {
        self.set_link(number, self.free);
        self.free = number;
        self.used -= 1;
    }
}

impl ByteQueue {
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Loads the cell that is written to next.
    pub fn touch(&self, arena: &QueueArena) -> u32 {
        if self.len == 0 { 0 } else { arena.link(self.last) }
    }

    /// Loads the cell that is read next.
    pub fn touch_first(&self, arena: &QueueArena) -> u32 {
        if self.len == 0 { 0 } else { arena.link(self.first) }
    }

    pub fn push(&mut self, arena: &mut QueueArena, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.len == 0 || usize::from(self.written) == CELL_BYTES {
                let fresh = arena.take();
                match self.len {
                    0 => (self.first, self.read) = (fresh, 0),
                    _ => arena.set_link(self.last, fresh),
                }
                (self.last, self.written) = (fresh, 0);
            }
            let at = usize::from(self.written);
            let count = bytes.len().min(CELL_BYTES - at);
            arena.cell_mut(self.last)[at..at + count].copy_from_slice(&bytes[..count]);
            self.written += count as u8;
            self.len += count as u32;
            bytes = &bytes[count..];
        }
    }

    /// Takes `count` bytes off the front, all of which must be there, into `out`.
    pub fn take(&mut self, arena: &mut QueueArena, count: usize, out: &mut Vec<u8>) {
        debug_assert!(count <= self.len());
        let mut left = count.min(self.len());
        while left > 0 {
            let at = usize::from(self.read);
            let end = if self.first == self.last { usize::from(self.written) } else { CELL_BYTES };
            let taken = left.min(end - at);
            out.extend_from_slice(&arena.cell(self.first)[at..at + taken]);
            left -= taken;
            self.len -= taken as u32;
            self.read += taken as u8;
            if usize::from(self.read) == CELL_BYTES || self.len == 0 {
                let next = arena.link(self.first);
                arena.give_back(self.first);
                (self.first, self.read) = (next, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::collections::VecDeque;

    #[test]
    fn bytes_come_out_as_they_went_in_and_cells_are_used_again() {
        let mut rng = Rng::new(3);
        let mut arena = QueueArena::default();
        let mut queues: Vec<(ByteQueue, VecDeque<u8>)> = (0..50).map(|_| Default::default()).collect();
        for step in 0..50_000u32 {
            let (queue, model) = &mut queues[rng.below(50) as usize];
            if rng.below(2) == 0 {
                let bytes: Vec<u8> = (0..rng.below(400)).map(|n| (step + n as u32) as u8).collect();
                queue.push(&mut arena, &bytes);
                model.extend(bytes);
            } else {
                let count = rng.below(model.len() as u64 + 1) as usize;
                let mut out = Vec::new();
                queue.take(&mut arena, count, &mut out);
                assert_eq!(out, model.drain(..count).collect::<Vec<_>>());
            }
            assert_eq!(queue.len(), model.len());
            let needed: usize = queues.iter().map(|(_, model)| model.len().div_ceil(CELL_BYTES) + 1).sum();
            assert!(arena.used <= needed, "{} cells for {needed}", arena.used);
        }
        for (queue, model) in &mut queues {
            queue.take(&mut arena, model.len(), &mut Vec::new());
        }
        assert_eq!(arena.used, 0);
        assert!(arena.made <= 32_768, "what was free was used again");
    }
}
