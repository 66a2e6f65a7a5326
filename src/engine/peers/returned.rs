use super::Sends;
use super::page_folders::PageFolders;
use super::pages_out::PagesOut;
use super::summing::{Job, SumFor, Summing};
use super::verifying::Originals;
use crate::base::Now;
use crate::peer::Table;
use crate::proto::peer_wire::{PeerWord, StoreName, Sum, SumOf};
use crate::proto::record::SegmentState;
use crate::store_server::{SegmentCopy, SegmentSource};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

/// Pages that this node kept of nodes that were gone, and that are back with their disks: what such a node has itself, and its
/// follower has, too, is not needed here any more.
///
/// ```text
///   kept segment ── SUM_ASK: the original ──► its node: does my follower have it? ── SUM ──► the same here? ──► it goes
/// ```
///
/// Nothing goes before it is on the disks of two others, or of one other and in a copy here.
pub(super) struct Returned {
    /// Stores are looked at again then; the pause grows while nothing of a node that is back can go.
    look_at: Now,
    pause_us: u64,
    queue: VecDeque<Kept>,
    open: Option<Open>,
    /// The number of the sum that is asked for next.
    next: u64,
    removed: Option<Removed>,
}

/// A segment of a node that was gone.
#[derive(Clone, Debug)]
struct Kept {
    store: StoreName,
    folder: PathBuf,
    state: SegmentState,
}

struct Open {
    id: u64,
    kept: Kept,
    here: Option<Sum>,
    there: Option<Sum>,
    asked_at: Now,
}

/// What was not needed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Removed {
    pub node: u16,
    pub segments: u64,
}

/// Numbers of these sums, so that they are not those of a comparison with a copy.
const NUMBERS: u64 = 1 << 63;
const LOOK_US: u64 = 20_000_000;
const LOOK_US_MAX: u64 = 600_000_000;
/// A segment is summed up within this.
const SUM_US: u64 = 300_000_000;

impl Returned {
    /// `starts` is how often this node was started: no number of an earlier process is one of this.
    pub fn new(starts: u32) -> Returned {
        Returned {
            look_at: Now::ZERO,
            pause_us: LOOK_US,
            queue: VecDeque::new(),
            open: None,
            next: NUMBERS | u64::from(starts) << 32,
            removed: None,
        }
    }

    pub fn summed_here(&mut self, id: u64, sum: Sum) {
        if let Some(open) = self.open.as_mut().filter(|open| open.id == id) {
            open.here = Some(sum);
        }
    }

    pub fn summed_there(&mut self, node: u16, id: u64, sum: Sum) {
        let is_it = |open: &&mut Open| open.id == id && open.kept.store.node == node;
        if let Some(open) = self.open.as_mut().filter(is_it) {
            open.there = Some(sum);
        }
    }

    pub fn down(&mut self, node: u16) {
        self.queue.retain(|kept| kept.store.node != node);
        self.open.take_if(|open| open.kept.store.node == node);
    }

    pub fn next_due(&self) -> Option<Now> {
        Some(self.open.as_ref().map_or(self.look_at, |open| open.asked_at.plus_us(SUM_US)))
    }

    /// Goes on. Says what went, when that was all of a store for now.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Table, u16),
        originals: Originals<'_>,
        summing: &mut Summing,
        wires: &mut dyn Sends,
    ) -> io::Result<Option<Removed>> {
        self.open.take_if(|open| now.since_us(open.asked_at) >= SUM_US);
        let is_compared = |open: &mut Open| open.here.is_some() && open.there.is_some();
        if let Some(open) = self.open.take_if(is_compared) {
            let is_same = matches!(open.here, Some(Sum::Of { .. })) && open.here == open.there;
            if is_same {
                SegmentCopy::remove_at(&open.kept.folder, open.kept.state.segment)?;
                self.pause_us = LOOK_US;
                let removed = self.removed.get_or_insert(Removed { node: open.kept.store.node, segments: 0 });
                removed.segments += 1;
            }
        }
        if self.open.is_some() {
            return Ok(None);
        }
        let next = self.queue.pop_front();
        let goes_on =
            |removed: &mut Removed| next.as_ref().is_none_or(|kept| kept.store.node != removed.node);
        let told = self.removed.take_if(goes_on);
        if let Some(kept) = next {
            self.ask(kept, now, summing, wires);
        } else if now >= self.look_at {
            self.look_at = now.plus_us(self.pause_us);
            let is_back = |node: u16| node != me && table.is_member(node) && wires.is_linked(node);
            self.look(originals, is_back)?;
            // Who is asked about the same again and again has nothing new to say.
            self.pause_us =
                if self.queue.is_empty() { LOOK_US } else { (2 * self.pause_us).min(LOOK_US_MAX) };
        }
        Ok(told)
    }

    fn ask(&mut self, kept: Kept, now: Now, summing: &mut Summing, wires: &mut dyn Sends) {
        self.next += 1;
        let (id, state, node) = (self.next, kept.state, kept.store.node);
        let job = Job::Segment { folder: kept.folder.clone(), state };
        let here = summing.want(SumFor::Kept(id), job).err();
        wires.send(node, &PeerWord::SumAsk { id, of: SumOf::Original { state } });
        self.open = Some(Open { id, kept, here, there: None, asked_at: now });
    }

    /// Finds what may go, and lets stores go that have nothing any more.
    fn look(&mut self, originals: Originals<'_>, is_back: impl Fn(u16) -> bool) -> io::Result<()> {
        let Originals { pages_out, folders, .. } = originals;
        for (store, folder) in folders.stores()? {
            if store == StoreName::OWN || !is_back(store.node) {
                continue;
            }
            let looked = SegmentSource::new(&folder).look()?;
            // Who has a copy of it hears first that its segments are gone.
            if looked.listed.is_empty() && !pages_out.may_hold(store) {
                folders.remove(store)?;
                continue;
            }
            let kept = |state| Kept { store, folder: folder.clone(), state };
            self.queue.extend(looked.states.into_iter().map(kept));
        }
        Ok(())
    }
}

/// Whether the follower of this node has so much of a segment of its own store, which others kept while it was gone.
pub(super) fn is_on_two_disks(pages_out: &PagesOut, state: &SegmentState) -> bool {
    let is_it = |(store, held): &(StoreName, SegmentState)| {
        *store == StoreName::OWN
            && (held.segment, held.shard, held.print) == (state.segment, state.shard, state.print)
            && held.bytes >= state.bytes
            && (held.is_sealed || !state.is_sealed)
    };
    pages_out.held_there().is_some_and(|there| there.segments.iter().any(is_it))
}

/// What is summed up of it: the original, or nothing.
pub(super) fn original(folders: &PageFolders, pages_out: &PagesOut, state: SegmentState) -> Option<Job> {
    is_on_two_disks(pages_out, &state).then(|| Job::Segment { folder: folders.own(), state })
}
