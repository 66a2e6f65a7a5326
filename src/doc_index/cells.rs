/// Memory for very many small queues of bytes: cells of one size that are linked to each other, and given back when
/// they were read. Nothing is moved when a queue grows, and nothing is asked of the allocator for each.
#[derive(Default)]
pub(super) struct Cells {
    blocks: Vec<Box<[Cell]>>,
    /// The first of the cells that nobody uses, linked like a queue; [`NONE`] if there is none.
    free: u32,
    /// Cells that were made, and those that are in use.
    made: u32,
    used: usize,
}

#[derive(Clone, Copy)]
struct Cell {
    bytes: [u8; CELL_BYTES],
    next: u32,
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

/// With the link, a line of the cache.
const CELL_BYTES: usize = 60;
const CELLS_PER_BLOCK: u32 = 512;
const NONE: u32 = 0;

impl Cells {
    /// Memory in use. What was used and is free is used again, and not given back.
    pub fn used_bytes(&self) -> usize {
        self.used * size_of::<Cell>()
    }

    pub fn ram_bytes(&self) -> usize {
        self.made as usize * size_of::<Cell>()
    }

    /// Cells are numbered from 1.
    fn cell(&mut self, number: u32) -> &mut Cell {
        let at = number - 1;
        &mut self.blocks[(at / CELLS_PER_BLOCK) as usize][(at % CELLS_PER_BLOCK) as usize]
    }

    fn link(&self, number: u32) -> u32 {
        let at = number - 1;
        self.blocks[(at / CELLS_PER_BLOCK) as usize][(at % CELLS_PER_BLOCK) as usize].next
    }

    fn take(&mut self) -> u32 {
        if self.free == NONE {
            let empty = Cell { bytes: [0; CELL_BYTES], next: NONE };
            let first = self.made + 1;
            self.blocks.push(vec![empty; CELLS_PER_BLOCK as usize].into());
            self.made += CELLS_PER_BLOCK;
            for number in first..self.made {
                self.cell(number).next = number + 1;
            }
            self.free = first;
        }
        let number = self.free;
        self.free = std::mem::replace(&mut self.cell(number).next, NONE);
        self.used += 1;
        number
    }

    fn give_back(&mut self, number: u32) {
        let free = self.free;
        self.cell(number).next = free;
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
                    _ => cells.cell(self.last).next = fresh,
                }
                (self.last, self.written) = (fresh, 0);
            }
            let at = usize::from(self.written);
            let count = bytes.len().min(CELL_BYTES - at);
            cells.cell(self.last).bytes[at..at + count].copy_from_slice(&bytes[..count]);
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
            let cell = *cells.cell(self.first);
            let at = usize::from(self.read);
            let end = if self.first == self.last { usize::from(self.written) } else { CELL_BYTES };
            let taken = left.min(end - at);
            out.extend_from_slice(&cell.bytes[at..at + taken]);
            left -= taken;
            self.len -= taken as u32;
            self.read += taken as u8;
            if usize::from(self.read) == CELL_BYTES || self.len == 0 {
                cells.give_back(self.first);
                (self.first, self.read) = (cell.next, 0);
            }
        }
    }
}

const _: () = assert!(size_of::<Cell>() == 64 && CELL_BYTES < u8::MAX as usize);

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
        assert!(cells.made <= 64 * CELLS_PER_BLOCK, "what was free was used again");
    }
}
