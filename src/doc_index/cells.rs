use crate::storage::{HUGE_LINES, HugeBuffer, LINE_BYTES};

/// Memory for very many small queues of bytes: cells of one size that are linked to each other, and given back when
/// they were read. Nothing is moved when a queue grows, and nothing is asked of the allocator for each.
///
/// A cell is a line of the cache: [`CELL_BYTES`] bytes, and the number of the next cell.
#[derive(Default)]
pub(super) struct Cells {
    /// The first of them are small, so that small crawls take little.
    small: Vec<HugeBuffer>,
    large: Vec<HugeBuffer>,
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
const CELLS_IN_SMALL: usize = HUGE_LINES;
const CELLS_PER_LARGE: usize = HUGE_LINES;
const NONE: u32 = 0;

impl Cells {
    /// Memory in use. What was used and is free is used again, and not given back.
    pub fn used_bytes(&self) -> usize {
        self.used * LINE_BYTES
    }

    pub fn ram_bytes(&self) -> usize {
        (self.small.len() * CELLS_PER_SMALL + self.large.len() * CELLS_PER_LARGE) * LINE_BYTES
    }

    /// Cells are numbered from 1.
    fn cell(&self, number: u32) -> &[u8; LINE_BYTES] {
        let at = number as usize - 1;
        match at.checked_sub(CELLS_IN_SMALL) {
            Some(at) => self.large[at / CELLS_PER_LARGE].line(at % CELLS_PER_LARGE),
            None => self.small[at / CELLS_PER_SMALL].line(at % CELLS_PER_SMALL),
        }
    }

    fn cell_mut(&mut self, number: u32) -> &mut [u8; LINE_BYTES] {
        let at = number as usize - 1;
        match at.checked_sub(CELLS_IN_SMALL) {
            Some(at) => self.large[at / CELLS_PER_LARGE].line_mut(at % CELLS_PER_LARGE),
            None => self.small[at / CELLS_PER_SMALL].line_mut(at % CELLS_PER_SMALL),
        }
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
        let at = self.made as usize;
        if at < CELLS_IN_SMALL && at.is_multiple_of(CELLS_PER_SMALL) {
            self.small.push(HugeBuffer::new(CELLS_PER_SMALL));
        } else if at >= CELLS_IN_SMALL && at.is_multiple_of(CELLS_PER_LARGE) {
            self.large.push(HugeBuffer::new(CELLS_PER_LARGE));
        }
        self.made += 1;
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
    pub fn touch(&self, cells: &Cells) -> u32 {
        if self.len == 0 { 0 } else { cells.link(self.last) }
    }

    /// Loads the cell that is read next.
    pub fn touch_first(&self, cells: &Cells) -> u32 {
        if self.len == 0 { 0 } else { cells.link(self.first) }
    }

    pub fn push(&mut self, cells: &mut Cells, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.len == 0 || usize::from(self.written) == CELL_BYTES {
                let fresh = cells.take();
                match self.len {
                    0 => (self.first, self.read) = (fresh, 0),
                    _ => cells.set_link(self.last, fresh),
                }
                (self.last, self.written) = (fresh, 0);
            }
            let at = usize::from(self.written);
            let count = bytes.len().min(CELL_BYTES - at);
            cells.cell_mut(self.last)[at..at + count].copy_from_slice(&bytes[..count]);
            self.written += count as u8;
            self.len += count as u32;
            bytes = &bytes[count..];
        }
    }

    /// Takes so many bytes off the front, all of which must be there, into `out`.
    pub fn take(&mut self, cells: &mut Cells, count: usize, out: &mut Vec<u8>) {
        debug_assert!(count <= self.len());
        let mut left = count.min(self.len());
        while left > 0 {
            let at = usize::from(self.read);
            let end = if self.first == self.last { usize::from(self.written) } else { CELL_BYTES };
            let taken = left.min(end - at);
            out.extend_from_slice(&cells.cell(self.first)[at..at + taken]);
            left -= taken;
            self.len -= taken as u32;
            self.read += taken as u8;
            if usize::from(self.read) == CELL_BYTES || self.len == 0 {
                let next = cells.link(self.first);
                cells.give_back(self.first);
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
        let mut cells = Cells::default();
        let mut queues: Vec<(ByteQueue, VecDeque<u8>)> = (0..50).map(|_| Default::default()).collect();
        for step in 0..50_000u32 {
            let (queue, model) = &mut queues[rng.below(50) as usize];
            if rng.below(2) == 0 {
                let bytes: Vec<u8> = (0..rng.below(400)).map(|n| (step + n as u32) as u8).collect();
                queue.push(&mut cells, &bytes);
                model.extend(bytes);
            } else {
                let count = rng.below(model.len() as u64 + 1) as usize;
                let mut out = Vec::new();
                queue.take(&mut cells, count, &mut out);
                assert_eq!(out, model.drain(..count).collect::<Vec<_>>());
            }
            assert_eq!(queue.len(), model.len());
            let needed: usize = queues.iter().map(|(_, model)| model.len().div_ceil(CELL_BYTES) + 1).sum();
            assert!(cells.used <= needed, "{} cells for {needed}", cells.used);
        }
        for (queue, model) in &mut queues {
            queue.take(&mut cells, model.len(), &mut Vec::new());
        }
        assert_eq!(cells.used, 0);
        assert!(cells.made <= 32_768, "what was free was used again");
    }
}
