use super::queue_arena::{ByteQueue, QueueArena};
use super::queued_doc::{LENGTH_BYTES, QueuedDoc};
use crate::storage::{Piece, Spill};
use std::collections::VecDeque;
use std::io;

/// Pending documents of one host and rank, first come first served. What came last is in memory; what lies before may
/// be on disk.
#[derive(Default)]
pub(super) struct HostQueue {
    pub rank: u16,
    len: u32,
    /// What comes before the bytes. Most queues have none.
    front: Option<Box<Front>>,
    bytes: ByteQueue,
}

#[derive(Default)]
struct Front {
    /// Bytes from `read` on are the next ones.
    head: Vec<u8>,
    read: usize,
    pieces: VecDeque<Piece>,
}

/// Where the queues of all hosts keep their bytes.
pub(super) struct QueueStore {
    arena: QueueArena,
    spill: Spill,
    /// Queues that have a front.
    fronts: usize,
    /// A document on its way. Kept for its memory.
    scratch: Vec<u8>,
}

/// A front with one piece, and what the allocator takes.
const FRONT_BYTES: usize = size_of::<Front>() + size_of::<Piece>() + 32;

impl QueueStore {
    pub fn new(spill: Spill) -> QueueStore {
        QueueStore { arena: QueueArena::default(), spill, fronts: 0, scratch: Vec::new() }
    }

    pub fn arena(&self) -> &QueueArena {
        &self.arena
    }

    pub fn spill(&self) -> &Spill {
        &self.spill
    }

    pub fn spill_mut(&mut self) -> &mut Spill {
        &mut self.spill
    }

    /// Memory that queues take for what is not in the arena.
    pub fn front_bytes(&self) -> usize {
        self.fronts * FRONT_BYTES
    }
}

impl HostQueue {
    pub fn new(rank: u16) -> HostQueue {
        HostQueue { rank, ..HostQueue::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Loads where the next one is written.
    pub fn touch(&self, store: &QueueStore) -> u32 {
        self.bytes.touch(&store.arena)
    }

    /// Loads where the next one is read.
    pub fn touch_first(&self, store: &QueueStore) -> u32 {
        self.bytes.touch_first(&store.arena)
    }

    pub fn push_back(&mut self, doc: &QueuedDoc<'_>, store: &mut QueueStore) {
        self.len += 1;
        doc.write(&mut store.scratch);
        self.bytes.push(&mut store.arena, &store.scratch);
    }

    pub fn push_front(&mut self, doc: &QueuedDoc<'_>, store: &mut QueueStore) {
        self.len += 1;
        doc.write(&mut store.scratch);
        let mut head = store.scratch.clone();
        let front = self.front_mut(store);
        head.extend_from_slice(&front.head[front.read..]);
        (front.head, front.read) = (head, 0);
    }

    /// Gives the first one to `give`. False if there is none.
    pub fn pop(&mut self, store: &mut QueueStore, mut give: impl FnMut(QueuedDoc<'_>)) -> io::Result<bool> {
        if let Some(front) = &mut self.front {
            if front.read == front.head.len()
                && let Some(&piece) = front.pieces.front()
            {
                front.head = store.spill.read(piece)?;
                front.read = 0;
                front.pieces.pop_front();
            }
            let rest = &front.head[front.read..];
            if let Some(length) = rest.get(..LENGTH_BYTES) {
                let end = LENGTH_BYTES + usize::from(u16::from_le_bytes([length[0], length[1]]));
                let doc = rest.get(LENGTH_BYTES..end).and_then(QueuedDoc::read);
                let read = front.read + end.min(rest.len());
                self.len -= 1;
                doc.into_iter().for_each(&mut give);
                front.read = read;
                if read == front.head.len() && front.pieces.is_empty() {
                    self.front = None;
                    store.fronts -= 1;
                }
                return Ok(true);
            }
            self.front = None;
            store.fronts -= 1;
        }
        if self.bytes.len() < LENGTH_BYTES {
            return Ok(false);
        }
        store.scratch.clear();
        self.bytes.take(&mut store.arena, LENGTH_BYTES, &mut store.scratch);
        let length = usize::from(u16::from_le_bytes([store.scratch[0], store.scratch[1]]));
        store.scratch.clear();
        self.bytes.take(&mut store.arena, length, &mut store.scratch);
        self.len -= 1;
        QueuedDoc::read(&store.scratch).into_iter().for_each(give);
        Ok(true)
    }

    /// Writes what came last to disk, if it is at least `bytes_min` bytes.
    pub fn spill(&mut self, bytes_min: usize, store: &mut QueueStore) -> io::Result<()> {
        let bytes = self.bytes.len();
        if bytes < bytes_min.max(1) {
            return Ok(());
        }
        let mut tail = Vec::with_capacity(bytes);
        self.bytes.take(&mut store.arena, bytes, &mut tail);
        let written = store.spill.write(&tail);
        let piece = written.inspect_err(|_| self.bytes.push(&mut store.arena, &tail))?;
        let pieces = &mut self.front_mut(store).pieces;
        // Most queues come back before there is a second.
        pieces.reserve_exact(1);
        pieces.push_back(piece);
        Ok(())
    }

    /// The front of the queue, which is made if there is none.
    fn front_mut(&mut self, store: &mut QueueStore) -> &mut Front {
        store.fronts += usize::from(self.front.is_none());
        self.front.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::Origin;

    #[test]
    fn first_come_first_served_also_by_way_of_the_disk() {
        let mut store = QueueStore::new(Spill::in_memory());
        let mut queue = HostQueue::new(0);
        let path = |n: u32| format!("/{n}/{}", "x".repeat(n as usize % 300));
        let mut taken = Vec::new();
        for n in 1..=1_000 {
            let (path, via) = (path(n), path(n / 2));
            let doc = QueuedDoc { doc_id: n, origin: Origin::link(n, 1), path: &path, via: &via };
            queue.push_back(&doc, &mut store);
            if n % 100 == 0 {
                queue.spill(1, &mut store).unwrap();
            }
            if n % 3 == 0 {
                queue.pop(&mut store, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap();
            }
            if n == 500 {
                let (doc_id, text) = taken.pop().unwrap();
                let doc = QueuedDoc { doc_id, origin: Origin::SEED, path: &text, via: "" };
                queue.push_front(&doc, &mut store);
            }
        }
        while queue.pop(&mut store, |doc| taken.push((doc.doc_id, doc.path.to_string()))).unwrap() {}
        assert_eq!(taken, (1..=1_000).map(|n| (n, path(n))).collect::<Vec<_>>());
        assert!(queue.is_empty() && store.spill.disk_bytes() == 0 && store.arena.used_bytes() == 0);
        assert_eq!(store.fronts, 0);
    }
}
