use super::Sends;
use super::page_folders::PageFolders;
use crate::base::{Now, SortedMap};
use crate::limits::SEGMENTS_PER_WORD_MAX;
use crate::proto::peer_wire::{CopiedStore, PeerWord, StoreName};
use crate::proto::record::{SegmentPiece, SegmentState};
use crate::store_server::{SegmentCopy, free_bytes_min};
use std::io;

/// The pages of other nodes, on the disk of this one.
pub(super) struct PagesIn {
    folders: PageFolders,
    /// So much of the disk is for this node alone.
    reserve_bytes: u64,
    of: SortedMap<u16, Copied>,
}

/// Those of one node, as it told over the link that there is.
struct Copied {
    id: u64,
    stores: SortedMap<StoreName, SegmentCopy>,
    /// What is here was not told yet.
    is_asked: bool,
    /// Something does not follow what is here, or the disk refuses it.
    is_refused: bool,
    unsynced: Option<Unsynced>,
}

/// What came and may not be durable.
struct Unsynced {
    bytes: u64,
    /// When it is made so, at the latest; it is set in the turn after the first of it came.
    sync_at: Option<Now>,
    /// What the disk has room for besides, as it was when the first of it came.
    room: u64,
}

/// What came is made durable after so long, as what follows it comes with it; and so much of it at once.
const SYNC_US: u64 = 100_000;
const SYNC_BYTES: u64 = 4 << 20;

impl PagesIn {
    pub fn new(folders: PageFolders, reserve_bytes: u64) -> PagesIn {
        PagesIn { folders, reserve_bytes, of: SortedMap::new() }
    }

    /// A node wants to know what is here of its stores.
    pub fn asked(&mut self, node: u16, id: u64, stores: &[CopiedStore]) -> io::Result<()> {
        // What was said before is of no use any more.
        self.of.remove(&node);
        let (stores, cause) = match open(node, stores, &self.folders) {
            Ok(stores) => (stores, Ok(())),
            Err(cause) => (SortedMap::new(), Err(cause)),
        };
        let is_refused = cause.is_err();
        let copied = Copied { id, stores, is_asked: true, is_refused, unsynced: None };
        self.of.insert(node, copied);
        cause
    }

    /// Bytes of a segment of a node.
    pub fn take(&mut self, node: u16, id: u64, store: StoreName, piece: &SegmentPiece<'_>) -> io::Result<()> {
        let Some(copied) = self.of.get_mut(&node).filter(|copied| copied.id == id && !copied.is_refused)
        else {
            return Ok(());
        };
        let taken = copied.take(store, piece, self.reserve_bytes);
        if !matches!(taken, Ok(true)) {
            copied.is_refused = true;
            // It is told at once.
            let unsynced = copied.unsynced.get_or_insert(Unsynced { bytes: 0, sync_at: None, room: 0 });
            unsynced.sync_at = Some(Now::ZERO);
        }
        taken.map(drop)
    }

    /// A node does not have these any more.
    pub fn gone(&mut self, node: u16, id: u64, store: StoreName, segments: &[u64]) -> io::Result<()> {
        let copied = self.of.get_mut(&node).filter(|copied| copied.id == id);
        copied.and_then(|copied| copied.stores.get_mut(&store)).map_or(Ok(()), |copy| copy.remove(segments))
    }

    /// A node is told that nothing is kept for it now: it asks again later.
    pub fn refuse(&mut self, node: u16, id: u64) {
        let copied =
            Copied { id, stores: SortedMap::new(), is_asked: true, is_refused: true, unsynced: None };
        self.of.insert(node, copied);
    }

    /// Whether a node speaks of what it was told.
    pub fn is_of(&self, node: u16, id: u64) -> bool {
        self.of.get(&node).is_some_and(|copied| copied.id == id && !copied.is_refused)
    }

    /// Nothing is added any more to what is here of a node.
    pub fn end(&mut self, node: u16) {
        self.of.remove(&node);
    }

    /// Makes what came durable, and says so.
    pub fn turn(&mut self, now: Now, wires: &mut dyn Sends) -> io::Result<bool> {
        let mut moved = false;
        let mut trouble = Ok(());
        for (node, copied) in &mut self.of {
            if copied.is_asked {
                trouble = trouble.and(copied.tell(*node, wires));
                moved = true;
            } else if copied.unsynced.as_mut().is_some_and(|unsynced| unsynced.is_due(now)) {
                trouble = trouble.and(copied.sync(*node, wires));
                moved = true;
            }
        }
        trouble.map(|()| moved)
    }

    pub fn next_due(&self) -> Option<Now> {
        let due = |copied: &Copied| match copied.is_asked {
            true => Some(Now::ZERO),
            false => copied.unsynced.as_ref().and_then(|unsynced| unsynced.sync_at),
        };
        self.of.values().filter_map(due).min()
    }
}

impl Unsynced {
    fn is_due(&mut self, now: Now) -> bool {
        let sync_at = *self.sync_at.get_or_insert(now.plus_us(SYNC_US));
        now >= sync_at || self.bytes >= SYNC_BYTES
    }
}

fn open(
    node: u16,
    stores: &[CopiedStore],
    folders: &PageFolders,
) -> io::Result<SortedMap<StoreName, SegmentCopy>> {
    let mut opened = SortedMap::new();
    for CopiedStore { name, key } in stores {
        let folder = folders.copy_of(node, *name)?;
        let copy = SegmentCopy::open(&folder)?;
        copy.keep_key(*key)?;
        opened.insert(*name, copy);
    }
    Ok(opened)
}

impl Copied {
    fn take(&mut self, store: StoreName, piece: &SegmentPiece<'_>, reserve_bytes: u64) -> io::Result<bool> {
        let Some(copy) = self.stores.get_mut(&store) else { return Ok(false) };
        let unsynced = match &mut self.unsynced {
            Some(unsynced) => unsynced,
            none => {
                let (free, total) = copy.free_bytes()?;
                let room = free.saturating_sub(free_bytes_min(total).max(reserve_bytes));
                none.insert(Unsynced { bytes: 0, sync_at: None, room })
            }
        };
        unsynced.bytes += piece.bytes.len() as u64;
        if unsynced.bytes > unsynced.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        copy.put(piece)
    }

    /// Tells everything that is here.
    fn tell(&mut self, node: u16, wires: &mut dyn Sends) -> io::Result<()> {
        self.is_asked = false;
        let mut held = Vec::new();
        for (name, copy) in &self.stores {
            match copy.held() {
                Ok(states) => held.extend(states.into_iter().map(|state| (*name, state))),
                Err(cause) => {
                    self.is_refused = true;
                    self.say(node, true, Vec::new(), wires);
                    return Err(cause);
                }
            }
        }
        let mut pieces = held.chunks(SEGMENTS_PER_WORD_MAX).peekable();
        if pieces.peek().is_none() {
            self.say(node, true, Vec::new(), wires);
        }
        while let Some(piece) = pieces.next() {
            self.say(node, pieces.peek().is_none(), piece.to_vec(), wires);
        }
        Ok(())
    }

    fn sync(&mut self, node: u16, wires: &mut dyn Sends) -> io::Result<()> {
        self.unsynced = None;
        let (mut held, mut trouble) = (Vec::new(), Ok(()));
        for (name, copy) in &mut self.stores {
            match copy.sync() {
                Ok(states) => held.extend(states.into_iter().map(|state| (*name, state))),
                Err(cause) => {
                    self.is_refused = true;
                    trouble = Err(cause);
                }
            }
        }
        // No more of them grow at once than there are shards, and are sealed within a moment.
        for piece in held.chunks(SEGMENTS_PER_WORD_MAX) {
            self.say(node, false, piece.to_vec(), wires);
        }
        if self.is_refused {
            self.say(node, false, Vec::new(), wires);
        }
        trouble
    }

    fn say(&self, node: u16, is_all: bool, held: Vec<(StoreName, SegmentState)>, wires: &mut dyn Sends) {
        let Copied { id, is_refused, .. } = *self;
        wires.send(node, &PeerWord::PagesHeld { id, is_all, is_refused, held });
    }
}
