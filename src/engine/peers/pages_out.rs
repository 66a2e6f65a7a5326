use super::Sends;
use super::follower::{Behind, Follower};
use super::held_segments::{HeldSegments, SegmentKey};
use super::page_folders::PageFolders;
use crate::base::{Now, SortedMap, SortedSet, Wall};
use crate::limits::{PAGE_PIECE_BYTES_MAX, PAGES_UNCOUNTED_BYTES_MAX, SEGMENTS_PER_WORD_MAX};
use crate::peer::{NodeState, Table};
use crate::proto::peer_wire::{CopiedStore, PeerWord, StoreName};
use crate::proto::record::{SegmentPiece, SegmentState};
use crate::store_server::{Looked, SegmentSource};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The pages of this node on their way to the disk of the node that would take it over: the next one on the ring. So are those
/// of nodes that are gone, which it has.
///
/// ```text
///   link ── PAGES_ASK ──►          ◄── PAGES_HELD: all that is there of these stores
///   look at the segments ── PAGES, PAGES, … ──►   ◄── PAGES_HELD … all of it ── PAGES_GONE, PAGES_UPTO ──►   look again
/// ```
///
/// Segments only grow, so a copy is gone on with by any process and over any link.
pub(super) struct PagesOut {
    follower: Follower,
    folders: PageFolders,
    /// Of the talk that comes next.
    next: u64,
    talk: Option<Talk>,
    /// Nodes that are about to leave, and the table that says so: what is here of their pages goes on to the follower before.
    leaving: SortedSet<u16>,
    by: Option<Arc<Table>>,
}

/// What a follower has of the stores of this node.
pub(super) struct HeldThere {
    /// So much of each segment.
    pub segments: Vec<(StoreName, SegmentState)>,
    /// Segments here of which nothing can be said: they are empty, or cannot be read.
    pub untold: Vec<SegmentKey>,
}

/// With one follower, over one link.
struct Talk {
    id: u64,
    to: u16,
    stores: SortedMap<StoreName, SegmentSource>,
    /// Where they are.
    places: SortedMap<StoreName, PathBuf>,
    /// The follower has told all that it has.
    is_told: bool,
    held: HeldSegments,
    /// What the stores had at the last look, and when that was.
    found: SortedMap<SegmentKey, SegmentState>,
    /// All that were there, also those of which nothing can be said.
    listed: SortedSet<SegmentKey>,
    looked_at: Option<Now>,
    /// The first of them that the disk did not give, and why.
    trouble: Option<(PathBuf, io::Error)>,
    /// The follower had no room: what is not needed goes before anything comes.
    is_short: bool,
    /// What of it is to be sent, and how far the first of it is.
    queue: VecDeque<SegmentKey>,
    at: Option<u64>,
    /// What was sent and is not counted, with the bytes of each word.
    flying: VecDeque<(StoreName, SegmentState, u64)>,
    look_at: Now,
    pause_us: u64,
    /// When the follower was last told that it has everything.
    told_at: Option<Now>,
    is_refused: bool,
    /// There are other stores by now.
    is_over: bool,
}

/// The stores are looked at this often, and less often where nothing is new.
const LOOK_US: u64 = 500_000;
const LOOK_US_MAX: u64 = 2_000_000;
/// The same, for each segment that there is.
const LOOK_US_PER_SEGMENT: u64 = 20;
/// The follower keeps it on its disk, which need not be often.
const UPTO_US: u64 = 10_000_000;

impl PagesOut {
    /// `starts` is how often this node was started: no talk of an earlier process has a number of this one.
    pub fn new(is_on: bool, starts: u32, folders: PageFolders) -> PagesOut {
        let (follower, next) = (Follower::new(is_on), u64::from(starts) << 32);
        PagesOut { follower, folders, next, talk: None, leaving: SortedSet::new(), by: None }
    }

    pub fn is_on(&self) -> bool {
        self.follower.is_on()
    }

    /// Goes on. True if something moved.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Arc<Table>, u16),
        wall: Wall,
        wires: &mut dyn Sends,
    ) -> io::Result<bool> {
        if self.follower.follow(table, me, now) {
            self.talk = None;
        }
        if self.by.as_ref().is_none_or(|by| !Arc::ptr_eq(by, table)) {
            self.leaving = about_to_leave(table, me);
            self.by = Some(table.clone());
        }
        let Some(to) = self.follower.node().filter(|to| wires.is_linked(*to)) else {
            self.talk = None;
            return Ok(false);
        };
        if self.talk.as_ref().is_some_and(|talk| talk.is_refused) {
            self.rest(now);
        }
        self.talk.take_if(|talk| talk.is_over);
        if self.follower.rests(now) {
            return Ok(false);
        }
        let Some(talk) = &mut self.talk else {
            self.next += 1;
            return self.ask(to, now, wires).map(|()| true).inspect_err(|_| self.rest(now));
        };
        let moved = match talk.turn(now, (&self.folders, &self.leaving), wall, wires) {
            Ok(moved) => moved,
            Err(cause) => {
                self.rest(now);
                return Err(cause);
            }
        };
        if let Some(at) = talk.safe_at() {
            self.follower.is_safe_at(at);
        }
        match talk.trouble.take() {
            Some((path, cause)) => Err(io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))),
            None => Ok(moved),
        }
    }

    /// The follower, or the disk of this node, refused something.
    fn rest(&mut self, now: Now) {
        self.talk = None;
        self.follower.rest(now);
    }

    fn ask(&mut self, to: u16, now: Now, wires: &mut dyn Sends) -> io::Result<()> {
        let places = self.folders.stores_with(&self.leaving)?;
        let talk = Talk::new(self.next, to, places, (self.follower.has_lost(), now));
        let name =
            |(name, source): (&StoreName, &SegmentSource)| CopiedStore { name: *name, key: source.key() };
        let stores = talk.stores.iter().map(name).collect();
        wires.send(to, &PeerWord::PagesAsk { id: talk.id, stores });
        self.talk = Some(talk);
        Ok(())
    }

    /// A node has so much of the pages.
    pub fn held(
        &mut self,
        node: u16,
        id: u64,
        (is_all, is_refused): (bool, bool),
        held: &[(StoreName, SegmentState)],
    ) {
        let Some(talk) = self.talk.as_mut().filter(|talk| talk.to == node && talk.id == id) else { return };
        talk.is_told |= is_all;
        talk.is_refused |= is_refused;
        held.iter().for_each(|(store, state)| talk.count(*store, *state));
    }

    /// Somebody waits: the stores are looked at now.
    pub fn look_now(&mut self, now: Now) {
        if let Some(talk) = &mut self.talk {
            talk.look_at = talk.look_at.min(now);
        }
    }

    pub fn down(&mut self, node: u16) {
        self.talk.take_if(|talk| talk.to == node);
    }

    pub fn next_due(&self) -> Option<Now> {
        let Some(talk) = &self.talk else { return self.follower.next_due() };
        (talk.is_told && talk.is_idle()).then_some(talk.look_at)
    }

    /// Whether somebody has all pages that there were at this time, or nobody is to.
    pub fn is_safe_since(&self, at: Now) -> bool {
        self.follower.has_all_since(at)
    }

    pub fn behind(&self) -> Behind {
        self.follower.behind()
    }

    /// What the follower says that it has, as far as it is as it was found here at the last look. Nothing while it says nothing.
    pub fn held_there(&self) -> Option<HeldThere> {
        let talk = self.talk.as_ref().filter(|talk| talk.is_told)?;
        let same = |(key, found): (&SegmentKey, &SegmentState)| {
            let held = talk.held.get(key).filter(|held| held.print == found.print)?;
            let state = match (held.is_sealed, found.is_sealed) {
                (true, true) if held.bytes == found.bytes => *found,
                // It comes anew.
                (true, _) => return None,
                (false, _) => SegmentState { bytes: held.bytes.min(found.bytes), is_sealed: false, ..*found },
            };
            Some((key.0, state))
        };
        let segments = talk.found.iter().filter_map(same).collect();
        let untold = talk.listed.iter().filter(|key| !talk.found.contains_key(key)).copied().collect();
        Some(HeldThere { segments, untold })
    }

    /// Whether a follower may have something of a store: it is to be told first when that goes.
    pub fn may_hold(&self, store: StoreName) -> bool {
        let Some(_) = self.follower.node() else { return false };
        let told = self.talk.as_ref().filter(|talk| talk.is_told);
        told.is_none_or(|talk| talk.held.keys().any(|(of, _)| *of == store))
    }

    /// Bytes that the follower has.
    pub fn bytes(&self) -> u64 {
        self.talk.as_ref().map_or(0, |talk| talk.held.bytes())
    }
}

impl Talk {
    fn new(id: u64, to: u16, places: SortedMap<StoreName, PathBuf>, (is_short, now): (bool, Now)) -> Talk {
        let source = |(name, folder): (&StoreName, &PathBuf)| (*name, SegmentSource::new(folder));
        Talk {
            id,
            to,
            stores: places.iter().map(source).collect(),
            places,
            is_told: false,
            held: HeldSegments::default(),
            found: SortedMap::new(),
            listed: SortedSet::new(),
            looked_at: None,
            trouble: None,
            is_short,
            queue: VecDeque::new(),
            at: None,
            flying: VecDeque::new(),
            look_at: now,
            pause_us: LOOK_US,
            told_at: None,
            is_refused: false,
            is_over: false,
        }
    }

    /// Nothing is to be sent, and nothing on its way.
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flying.is_empty()
    }

    /// When it was that everything was there which the follower has now.
    fn safe_at(&self) -> Option<Now> {
        self.looked_at.filter(|_| self.is_idle())
    }

    fn count(&mut self, store: StoreName, state: SegmentState) {
        self.held.insert((store, state.segment), state);
        let is_there = |sent: &SegmentState| {
            sent.segment == state.segment
                && (sent.print != state.print
                    || sent.bytes <= state.bytes && sent.is_sealed <= state.is_sealed)
        };
        self.flying.retain(|(of, sent, _)| *of != store || !is_there(sent));
    }

    fn turn(
        &mut self,
        now: Now,
        places: (&PageFolders, &SortedSet<u16>),
        wall: Wall,
        wires: &mut dyn Sends,
    ) -> io::Result<bool> {
        if !self.is_told {
            return Ok(false);
        }
        if self.is_idle() && now >= self.look_at {
            self.end_round(now, wall, wires);
            self.look(places, now, wires)?;
        }
        self.send(wires)
    }

    /// The follower has what was found at the last look: what it has beyond that is not there any more.
    fn end_round(&mut self, now: Now, wall: Wall, wires: &mut dyn Sends) {
        let Some(looked_at) = self.looked_at else { return };
        let is_gone = self.let_go(wires);
        if is_gone || self.told_at.is_none_or(|told_at| now.since_us(told_at) >= UPTO_US) {
            self.told_at = Some(now);
            let unix_s = u32::try_from(wall.unix_ms(looked_at) / 1_000).unwrap_or(u32::MAX);
            wires.send(self.to, &PeerWord::PagesUpto { id: self.id, unix_s });
        }
    }

    /// What the follower has and is not there any more goes. True if there was such.
    fn let_go(&mut self, wires: &mut dyn Sends) -> bool {
        let mut gone: SortedMap<StoreName, Vec<u64>> = SortedMap::new();
        for (store, segment) in self.held.keys().filter(|key| !self.listed.contains(key)) {
            gone.entry(*store).or_default().push(*segment);
        }
        self.held.keep(&self.listed);
        let is_gone = !gone.is_empty();
        gone.into_iter().for_each(|(store, segments)| self.say_gone(store, &segments, wires));
        is_gone
    }

    fn say_gone(&self, store: StoreName, segments: &[u64], wires: &mut dyn Sends) {
        for segments in segments.chunks(SEGMENTS_PER_WORD_MAX) {
            let word = PeerWord::PagesGone { id: self.id, store, segments: segments.to_vec() };
            wires.send(self.to, &word);
        }
    }

    fn look(
        &mut self,
        (folders, leaving): (&PageFolders, &SortedSet<u16>),
        now: Now,
        wires: &mut dyn Sends,
    ) -> io::Result<()> {
        // The follower was not told of the pages of a node that is gone since, or is about to: the next talk has them.
        self.is_over = folders.stores_with(leaving)? != self.places;
        if self.is_over {
            return Ok(());
        }
        (self.found, self.listed) = (SortedMap::new(), SortedSet::new());
        for (name, source) in &mut self.stores {
            let Looked { states, listed, trouble } = source.look()?;
            self.found.extend(states.into_iter().map(|state| ((*name, state.segment), state)));
            self.listed.extend(listed.into_iter().map(|segment| (*name, segment)));
            self.trouble = self.trouble.take().or(trouble);
        }
        if std::mem::take(&mut self.is_short) {
            self.let_go(wires);
        }
        // One in use that has the number of another, which is there: nobody would read it until it is sealed.
        let is_other = |(key, found): (&SegmentKey, &SegmentState)| {
            let held = self.held.get(key)?;
            (!found.is_sealed && held.print != found.print).then_some(*key)
        };
        let others: Vec<SegmentKey> = self.found.iter().filter_map(is_other).collect();
        for key in others {
            self.held.remove(&key);
            self.say_gone(key.0, &[key.1], wires);
        }
        let is_new = |(key, state): &(&SegmentKey, &SegmentState)| self.held.get(key) != Some(state);
        self.queue = self.found.iter().filter(is_new).map(|(key, _)| *key).collect();
        self.looked_at = Some(now);
        self.pause_us = if self.queue.is_empty() { (2 * self.pause_us).min(LOOK_US_MAX) } else { LOOK_US };
        // A look at many segments takes a while: this thread has other things to do.
        let pause_us = self.pause_us.max(LOOK_US_PER_SEGMENT * self.listed.len() as u64);
        self.look_at = now.plus_us(pause_us);
        Ok(())
    }

    /// Sends what there is, as much as may be on its way.
    fn send(&mut self, wires: &mut dyn Sends) -> io::Result<bool> {
        let mut is_sent = false;
        while let Some((store, segment)) = self.queue.front().copied() {
            let flying: u64 = self.flying.iter().map(|(_, _, bytes)| bytes).sum();
            if flying >= PAGES_UNCOUNTED_BYTES_MAX || !wires.has_room(self.to) {
                break;
            }
            let Some(found) = self.found.get(&(store, segment)).copied() else { break };
            // What is sealed there and is not the same is sent from the beginning.
            let is_base = |held: &&SegmentState| held.print == found.print && !held.is_sealed;
            let held = self.held.get(&(store, segment)).filter(is_base);
            // More than there is was never whole there.
            let from = held.map_or(0, |held| held.bytes.min(found.bytes));
            let at = *self.at.get_or_insert(from);
            let Some(source) = self.stores.get_mut(&store) else { break };
            let bytes = match source.read(segment, at, PAGE_PIECE_BYTES_MAX) {
                Ok(Some(bytes)) => bytes,
                // It was packed or removed: what there is now is found by the next look.
                Ok(None) => {
                    (self.queue, self.at, self.looked_at) = (VecDeque::new(), None, None);
                    break;
                }
                // It stays out, and the others go on.
                Err(cause) => {
                    source.give_up(segment);
                    self.trouble = Some((PathBuf::from(format!("segment {segment}")), cause));
                    self.queue.pop_front();
                    (self.at, self.looked_at) = (None, None);
                    continue;
                }
            };
            let upto = at + bytes.len() as u64;
            let is_end = upto == found.bytes;
            let state = SegmentState { bytes: upto, is_sealed: is_end && found.is_sealed, ..found };
            let piece = SegmentPiece { upto: state, bytes: &bytes };
            wires.send(self.to, &PeerWord::Pages { id: self.id, store, piece });
            self.flying.push_back((store, state, bytes.len() as u64 + WORD_BYTES));
            self.at = (!is_end).then_some(upto);
            if is_end {
                self.queue.pop_front();
            }
            is_sent = true;
        }
        Ok(is_sent)
    }
}

/// Nodes that hand over all that they have, and go. A voter stays.
fn about_to_leave(table: &Table, me: u16) -> SortedSet<u16> {
    let nodes = table.nodes().iter().filter(|node| node.state == NodeState::Draining && node.number != me);
    nodes.map(|node| node.number).filter(|node| !table.voters().contains(node)).collect()
}

/// A word without its bytes counts, too.
const WORD_BYTES: u64 = 64;
