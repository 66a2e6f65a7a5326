//! Who lends addresses.

use super::{ALL_SLOTS, Back, Grant, SLICE_US, TICKET_US, Wait, Want, kept_us, owed_us};
use crate::base::{Now, SortedMap, SortedSet};
use crate::limits::{TICKET_LINE_BYTES_MAX, TICKET_WAITERS_MAX, TICKETS_KEPT_MAX};
use crate::proto::partition::Partition;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One who waits and has not asked again for so long has gone.
const GONE_US: u64 = 30_000_000;
/// One who may ask again soon.
const SOON_US: u64 = 1_000_000;
/// One who waits asks again after this, as what it waits for may be given back early.
const AGAIN_US: u64 = 2_000_000;

/// What a keeper answers to WANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<K> {
    Grant(Grant<K>),
    Wait(Wait<K>),
}

/// By which rules addresses are lent, or hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lending {
    /// Requests that may be open at once.
    pub slots: u16,
    /// The rules ask for no pause: several nodes may have a part of the slots each.
    pub in_parts: bool,
    /// The pause between two requests.
    pub pause_us: u64,
    /// A request that was sent may be open for so long, also beyond the end of its ticket: until then nobody else gets one,
    /// unless it is given back.
    pub request_us: u64,
}

/// What is lent, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    pub node: u16,
    pub ask: u64,
    pub slots: u16,
    /// When this holder got it first, and when the last of its grants is over.
    pub since: Now,
    pub until: Now,
    /// When the last request that it was good for has ended.
    pub over: Now,
    /// It knows what is known here: what it says when it gives it back holds alone.
    pub is_told: bool,
}

/// What a keeper knows of a key, for one that comes after it in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub partition: Partition,
    pub lent: Vec<Lent>,
    pub due: Now,
    pub pause_us: u64,
    pub line: Box<[u8]>,
}

impl Lent {
    /// Another may ask again then: the holder gives it back as soon as it does not need it.
    fn wait_us(&self, now: Now) -> u64 {
        self.until.since_us(now).clamp(SOON_US, AGAIN_US)
    }

    fn is_of(&self, node: u16) -> bool {
        self.node == node
    }
}

#[derive(Clone, Debug)]
struct Entry {
    partition: Partition,
    /// Of each node one; of more than one only what is shared.
    lent: Vec<Lent>,
    /// No request before.
    due: Now,
    pause_us: u64,
    line: Box<[u8]>,
    /// Who asked while it was lent, and when last; in the order of their first asking.
    waiting: VecDeque<(u16, Now)>,
}

/// Keys that go by other rules.
#[derive(Clone, Debug)]
struct Others<K> {
    are: fn(&K) -> bool,
    lending: Lending,
}

/// What a node may have of a key.
struct Part {
    slots: u16,
    is_shared: bool,
    /// It is not to have it for longer than a slice, as others wait.
    must_give: bool,
    /// What it has is not renewed: it was a part of what has a pause by now, or there are fewer slots than there were.
    ends: bool,
}

impl Lending {
    fn is_shared(&self, pause_us: u64) -> bool {
        self.in_parts && pause_us == 0
    }

    /// What the next one waits for after the last request of another. Without a pause there is nothing to be proved.
    fn owed_us(&self, pause_us: u64) -> u64 {
        if self.is_shared(pause_us) { 0 } else { owed_us(pause_us) }
    }
}

/// Keeps the tickets of the partitions that a node owns.
#[derive(Clone, Debug)]
pub struct Keeper<K> {
    lending: Lending,
    others: Option<Others<K>>,
    is_spread: bool,
    entries: BTreeMap<K, Entry>,
    /// Nothing is lent before: of everything, and of single partitions.
    closed_until: Now,
    closed: SortedMap<Partition, Now>,
    /// Partitions that go to another keeper once nothing of them is lent.
    leaving: SortedSet<Partition>,
    /// What has changed and was not taken, by [`Keeper::take_changed`].
    changed: BTreeSet<K>,
    kept_us: fn(u64) -> u64,
}

impl<K: Clone + Ord> Keeper<K> {
    /// A keeper that begins: of what was lent before it knows nothing, so it waits until that is over.
    pub fn open(lending: Lending, now: Now) -> Keeper<K> {
        let mut keeper = Keeper::fresh(lending);
        keeper.close_all(now);
        keeper
    }

    /// Lends for a short time only what is of these partitions, which are to go to another keeper: nothing of them may be lent then.
    pub fn set_leaving(&mut self, partitions: SortedSet<Partition>) {
        self.leaving = partitions;
    }

    /// A keeper whose node never kept anything before.
    pub fn fresh(lending: Lending) -> Keeper<K> {
        Keeper {
            lending,
            others: None,
            is_spread: false,
            entries: BTreeMap::new(),
            closed_until: Now::ZERO,
            closed: SortedMap::new(),
            leaving: SortedSet::new(),
            changed: BTreeSet::new(),
            kept_us,
        }
    }

    /// These go by rules of their own.
    pub fn set_others(&mut self, are: fn(&K) -> bool, lending: Lending) {
        self.others = Some(Others { are, lending });
    }

    /// Whether one host has URLs at many nodes: then others come soon for whatever is lent, and get a part of what may be had in
    /// parts.
    pub fn set_spread(&mut self, is_spread: bool) {
        self.is_spread = is_spread;
    }

    fn lending(&self, key: &K) -> Lending {
        let others = self.others.as_ref().filter(|others| (others.are)(key));
        let lending = others.map_or(self.lending, |others| others.lending);
        Lending { in_parts: lending.in_parts && self.is_spread, ..lending }
    }

    /// What has changed since the last call: to be kept before anybody hears of it. It is not all that there is to know while
    /// something [is closed](Keeper::is_closed).
    pub fn take_changed(&mut self) -> Vec<(K, Known)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key.clone(), self.entries.get(&key)?.known()))).collect()
    }

    /// All that holds.
    pub fn known(&mut self, now: Now) -> Vec<(K, Known)> {
        self.sweep(now);
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.known())).collect()
    }

    /// Takes up what another one knew in this place; of one key the last holds.
    pub fn take_up(&mut self, known: Vec<(K, Known)>) {
        for (key, Known { partition, lent, due, pause_us, line }) in known {
            self.entries
                .insert(key, Entry { partition, lent, due, pause_us, line, waiting: VecDeque::new() });
        }
    }

    /// Partitions of which something is lent, or owed a pause; `None` while it is not known what was lent before.
    pub fn busy(&mut self, now: Now) -> Option<SortedSet<Partition>> {
        if self.closed_until > now {
            return None;
        }
        let mut busy: SortedSet<Partition> =
            self.closed.iter().filter(|(_, until)| **until > now).map(|(partition, _)| *partition).collect();
        for entry in self.entries.values_mut() {
            entry.expire(now);
            if !entry.lent.is_empty() || entry.due > now {
                busy.insert(entry.partition);
            }
        }
        Some(busy)
    }

    /// Lends nothing of a partition until what another keeper may have lent is over: after a takeover, if
    /// [`crate::peer::beat::Timing::new_keeper_waits`].
    pub fn close(&mut self, partition: Partition, now: Now) {
        let closed_us = (self.kept_us)(TICKET_US + self.lending.request_us);
        self.close_until(partition, now.plus_us(closed_us), now);
    }

    /// Lends nothing at all for as long.
    pub fn close_all(&mut self, now: Now) {
        self.closed_until = now.plus_us((self.kept_us)(TICKET_US + self.lending.request_us));
    }

    /// Whether something is not lent as it is not known what was lent of it before.
    pub fn is_closed(&self, now: Now) -> bool {
        self.closed_until > now || self.closed.values().any(|until| *until > now)
    }

    fn close_until(&mut self, partition: Partition, until: Now, now: Now) {
        self.closed.retain(|_, until| *until > now);
        if until > now {
            let closed = self.closed.entry(partition).or_insert(until);
            *closed = until.max(*closed);
        }
    }

    fn closed_until(&self, partition: Partition) -> Now {
        self.closed_until.max(self.closed.get(&partition).copied().unwrap_or(Now::ZERO))
    }

    /// Answers WANT. `right_until` is that of this node to the partition: without a right nothing is lent.
    pub fn want(
        &mut self,
        node: u16,
        want: Want<K>,
        partition: Partition,
        right_until: Now,
        now: Now,
    ) -> Said<K> {
        let Want { key, ask, renews } = want;
        let wait = |key, wait_us| Said::Wait(Wait { key, ask, wait_us });
        let closed = self.closed_until(partition);
        if now >= right_until {
            return wait(key, SOON_US);
        }
        if now < closed {
            return wait(key, closed.since_us(now));
        }
        if !self.entries.contains_key(&key) {
            if self.entries.len() >= TICKETS_KEPT_MAX {
                self.sweep(now);
            }
            if self.entries.len() >= TICKETS_KEPT_MAX {
                return wait(key, SLICE_US);
            }
        }
        let lending = self.lending(&key);
        let leaves = self.leaving.contains(&partition);
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| Entry::new(partition, lending.pause_us, closed));
        entry.expire(now);
        entry.waiting.retain(|(_, asked)| now.since_us(*asked) < GONE_US);
        let part = entry.part_of(node, &lending, now);
        let others = entry.waiting.iter().any(|(waits, _)| *waits != node);
        let before = entry.lent.iter().find(|lent| lent.is_of(node)).copied();
        let since = match before {
            Some(lent) => {
                let is_too_long = now.since_us(lent.since) >= SLICE_US;
                // Who does not know what others have told since is told when it comes again.
                let is_behind = renews && !lent.is_told;
                if ask <= lent.ask || part.ends || is_behind || is_too_long && part.must_give {
                    return wait(key, lent.wait_us(now));
                }
                if !renews {
                    // A process that began again does not know when the one before it sent last.
                    entry.due = entry.due.max(now.plus_us(lending.owed_us(entry.pause_us)));
                }
                lent.since
            }
            None if part.slots == 0 => {
                entry.line_up(node, now);
                let soonest = entry.lent.iter().map(|lent| lent.wait_us(now)).min();
                return wait(key, soonest.unwrap_or(SOON_US));
            }
            None if entry.waiting.front().is_some_and(|(first, _)| *first != node) => {
                entry.line_up(node, now);
                return wait(key, SOON_US);
            }
            None => now,
        };
        entry.waiting.retain(|(waits, _)| *waits != node);
        let for_us = if others || leaves || self.is_spread { SLICE_US } else { TICKET_US };
        let (until, over) = ((self.kept_us)(for_us), (self.kept_us)(for_us + lending.request_us));
        let (until, over) = (now.plus_us(until), now.plus_us(over));
        // A shorter grant ends no longer one.
        let (until, over) = before.map_or((until, over), |lent| (lent.until.max(until), lent.over.max(over)));
        entry.lent.retain(|lent| !lent.is_of(node));
        entry.lent.push(Lent { node, ask, slots: part.slots, since, until, over, is_told: true });
        let slots = if part.is_shared { part.slots } else { ALL_SLOTS };
        self.changed.insert(key.clone());
        Said::Grant(Grant {
            key,
            ask,
            for_us,
            due_in_us: entry.due.since_us(now),
            slots,
            pause_us: entry.pause_us,
            line: entry.line.clone(),
        })
    }

    /// Takes a ticket back. One that was lent after the last ask of BACK is not meant.
    pub fn back(&mut self, node: u16, back: Back<K>, now: Now) {
        let lending = self.lending(&back.key);
        let Some(entry) = self.entries.get_mut(&back.key) else { return };
        entry.waiting.retain(|(waits, _)| *waits != node);
        let is_meant = |lent: &Lent| lent.is_of(node) && lent.ask <= back.ask;
        let Some(at) = entry.lent.iter().position(is_meant) else { return };
        let lent = entry.lent.swap_remove(at);
        self.changed.insert(back.key);
        let pause_us = back.pause_us.max(lending.pause_us);
        // Who knew what is known here says what holds; what others learned meanwhile holds besides.
        let line = match lent.is_told {
            true => back.line,
            false => [&entry.line[..], &back.line[..]].concat().into(),
        };
        entry.pause_us = if lent.is_told { pause_us } else { pause_us.max(entry.pause_us) };
        if line.len() <= TICKET_LINE_BYTES_MAX && entry.line != line {
            entry.line = line;
            entry.lent.iter_mut().for_each(|lent| lent.is_told = false);
        }
        if let Some(ago_us) = back.sent_ago_us {
            let due = now.plus_us(lending.owed_us(entry.pause_us).saturating_sub(ago_us));
            entry.due = entry.due.max(due);
        }
    }

    /// Forgets what is not lent, not wanted and owes nothing.
    fn sweep(&mut self, now: Now) {
        self.entries.retain(|_, entry| {
            entry.expire(now);
            entry.waiting.retain(|(_, asked)| now.since_us(*asked) < GONE_US);
            !entry.lent.is_empty() || entry.due > now || !entry.waiting.is_empty()
        });
    }

    /// For a test: another way to count.
    #[cfg(test)]
    pub(in crate::peer) fn set_kept(&mut self, kept_us: fn(u64) -> u64, now: Now) {
        self.kept_us = kept_us;
        self.close_all(now);
    }
}

impl Entry {
    /// What was lent before the keeper was closed may have been in use until that ended.
    fn new(partition: Partition, pause_us: u64, closed: Now) -> Entry {
        Entry {
            partition,
            lent: Vec::new(),
            due: closed.plus_us(owed_us(pause_us)),
            pause_us,
            line: Box::default(),
            waiting: VecDeque::new(),
        }
    }

    fn known(&self) -> Known {
        let Entry { partition, lent, due, pause_us, line, .. } = self.clone();
        Known { partition, lent, due, pause_us, line }
    }

    /// A ticket that ran out was in use until its end, for all that is known, and is over when that request is.
    fn expire(&mut self, now: Now) {
        let Entry { lent, due, pause_us, .. } = self;
        lent.retain(|lent| {
            let is_over = lent.over <= now;
            if is_over {
                *due = (*due).max(lent.until.plus_us(owed_us(*pause_us)));
            }
            !is_over
        });
    }

    /// What a node may have: all that there is, or where it is shared its part. Of those who have it and those who wait for it
    /// each gets as much as any other, if there are slots for all.
    fn part_of(&self, node: u16, lending: &Lending, now: Now) -> Part {
        let is_shared = lending.is_shared(self.pause_us) && self.line.is_empty() && self.due <= now;
        let others = self.waiting.iter().any(|(waits, _)| *waits != node);
        let have = |lent: &&Lent| !lent.is_of(node);
        let taken: u16 = self.lent.iter().filter(have).map(|lent| lent.slots).sum();
        let before = self.lent.iter().find(|lent| lent.is_of(node)).map_or(0, |lent| lent.slots);
        if !is_shared {
            // What was shared is not renewed, until one has all of it.
            let slots = if taken == 0 { lending.slots } else { before };
            return Part { slots, is_shared, must_give: others, ends: taken > 0 };
        }
        let waiting = self.waiting.iter().filter(|(waits, _)| *waits != node && !self.has(*waits)).count();
        let askers = 1 + self.lent.iter().filter(have).count() + waiting;
        let fair = (usize::from(lending.slots) / askers).max(1) as u16;
        let free = lending.slots.saturating_sub(taken);
        let slots = if others { free.min(fair.max(before)) } else { free };
        let is_crowded = usize::from(lending.slots) < askers;
        let must_give = others && (before > fair || is_crowded);
        Part { slots, is_shared, must_give, ends: slots == 0 }
    }

    fn has(&self, node: u16) -> bool {
        self.lent.iter().any(|lent| lent.is_of(node))
    }

    fn line_up(&mut self, node: u16, now: Now) {
        if let Some((_, asked)) = self.waiting.iter_mut().find(|(waits, _)| *waits == node) {
            *asked = now;
        } else if self.waiting.len() < TICKET_WAITERS_MAX {
            self.waiting.push_back((node, now));
        }
    }
}
