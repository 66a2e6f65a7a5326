//! Who lends addresses.

use super::{Back, Grant, SLICE_US, TICKET_US, Wait, Want, kept_us, owed_us};
use crate::base::Now;
use crate::limits::{TICKET_LINE_BYTES_MAX, TICKET_WAITERS_MAX, TICKETS_KEPT_MAX};
use crate::proto::partition::Partition;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One who waits and has not asked again for so long has gone.
const GONE_US: u64 = 30_000_000;
/// One who may ask again soon.
const SOON_US: u64 = 1_000_000;

/// What a keeper answers to WANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<K> {
    Grant(Grant<K>),
    Wait(Wait<K>),
}

/// Everything of a partition, as it is handed to another keeper: times are microseconds from now, since clocks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOver<K> {
    /// Nothing may be lent for so long: this keeper does not know what the one before it lent.
    pub closed_us: u64,
    pub tickets: Vec<Handed<K>>,
}

/// By which rules addresses are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lending {
    pub slots: u16,
    /// The pause between two requests.
    pub pause_us: u64,
    /// A request that was sent may be open for so long, also beyond the end of its ticket: until then nobody else gets one,
    /// unless it is given back.
    pub request_us: u64,
}

/// What was lent to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed<K> {
    pub key: K,
    /// The holder, its ask, and how long the ticket and its requests have to be counted yet.
    pub lent: Option<(u16, u64, u64)>,
    pub due_in_us: u64,
    pub pause_us: u64,
    pub line: Box<[u8]>,
}

/// What is lent, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    pub node: u16,
    pub ask: u64,
    /// When this holder got it first, and when the last of its grants is over.
    pub since: Now,
    pub until: Now,
    /// When the last request that it was good for has ended.
    pub over: Now,
}

/// What a keeper knows of a key, for one that comes after it in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub partition: Partition,
    pub lent: Option<Lent>,
    pub due: Now,
    pub pause_us: u64,
    pub line: Box<[u8]>,
}

impl Lent {
    /// Another may ask when it ends, and then often: the holder gives it back as soon as nothing is open.
    fn wait_us(&self, now: Now) -> u64 {
        self.until.since_us(now).clamp(SOON_US, SLICE_US)
    }
}

#[derive(Clone, Debug)]
struct Entry {
    partition: Partition,
    lent: Option<Lent>,
    /// No request before.
    due: Now,
    pause_us: u64,
    line: Box<[u8]>,
    /// Who asked while it was lent, and when last; in the order of their first asking.
    waiting: VecDeque<(u16, Now)>,
}

/// Keeps the tickets of the partitions that a node owns.
#[derive(Clone, Debug)]
pub struct Keeper<K> {
    lending: Lending,
    entries: BTreeMap<K, Entry>,
    /// Nothing is lent before: of everything, and of single partitions.
    closed_until: Now,
    closed: BTreeMap<Partition, Now>,
    /// Partitions that go to another keeper once nothing of them is lent.
    leaving: BTreeSet<Partition>,
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
    pub fn set_leaving(&mut self, partitions: BTreeSet<Partition>) {
        self.leaving = partitions;
    }

    /// A keeper whose node never kept anything before.
    pub fn fresh(lending: Lending) -> Keeper<K> {
        Keeper {
            lending,
            entries: BTreeMap::new(),
            closed_until: Now::ZERO,
            closed: BTreeMap::new(),
            leaving: BTreeSet::new(),
            changed: BTreeSet::new(),
            kept_us,
        }
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
    pub fn busy(&mut self, now: Now) -> Option<BTreeSet<Partition>> {
        if self.closed_until > now {
            return None;
        }
        let mut busy: BTreeSet<Partition> =
            self.closed.iter().filter(|(_, until)| **until > now).map(|(partition, _)| *partition).collect();
        for entry in self.entries.values_mut() {
            entry.expire(now);
            if entry.lent.is_some() || entry.due > now {
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
        let Lending { slots, pause_us, request_us } = self.lending;
        let entry =
            self.entries.entry(key.clone()).or_insert_with(|| Entry::new(partition, pause_us, closed));
        entry.expire(now);
        entry.waiting.retain(|(_, asked)| now.since_us(*asked) < GONE_US);
        let others = entry.waiting.iter().any(|(waits, _)| *waits != node);
        let since = match entry.lent {
            Some(lent) if lent.node == node => {
                if ask <= lent.ask || others && now.since_us(lent.since) >= SLICE_US {
                    return wait(key, lent.wait_us(now));
                }
                if !renews {
                    // A process that began again does not know when the one before it sent last.
                    entry.due = entry.due.max(now.plus_us(owed_us(entry.pause_us)));
                }
                lent.since
            }
            Some(lent) => {
                entry.line_up(node, now);
                return wait(key, lent.wait_us(now));
            }
            None if entry.waiting.front().is_some_and(|(first, _)| *first != node) => {
                entry.line_up(node, now);
                return wait(key, SOON_US);
            }
            None => now,
        };
        entry.waiting.retain(|(waits, _)| *waits != node);
        let is_short = others || self.leaving.contains(&partition);
        let for_us = if is_short { SLICE_US } else { TICKET_US };
        let (until, over) = ((self.kept_us)(for_us), (self.kept_us)(for_us + request_us));
        let (until, over) = (now.plus_us(until), now.plus_us(over));
        // A shorter grant ends no longer one.
        let (until, over) =
            entry.lent.map_or((until, over), |lent| (lent.until.max(until), lent.over.max(over)));
        entry.lent = Some(Lent { node, ask, since, until, over });
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
        let Some(entry) = self.entries.get_mut(&back.key) else { return };
        if !entry.lent.is_some_and(|lent| lent.node == node && lent.ask <= back.ask) {
            return;
        }
        self.changed.insert(back.key.clone());
        entry.lent = None;
        entry.pause_us = back.pause_us.max(self.lending.pause_us);
        if back.line.len() <= TICKET_LINE_BYTES_MAX {
            entry.line = back.line;
        }
        if let Some(ago_us) = back.sent_ago_us {
            let due = now.plus_us(owed_us(entry.pause_us).saturating_sub(ago_us));
            entry.due = entry.due.max(due);
        }
    }

    /// Everything of a partition that goes to another keeper. Nothing of it is kept.
    pub fn hand_over(&mut self, partition: Partition, now: Now) -> HandedOver<K> {
        let of_it: Vec<K> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.partition == partition)
            .map(|(key, _)| key.clone())
            .collect();
        let handed = of_it.into_iter().filter_map(|key| {
            let mut entry = self.entries.remove(&key)?;
            entry.expire(now);
            let lent = entry.lent.map(|lent| (lent.node, lent.ask, lent.over.since_us(now)));
            let due_in_us = entry.due.since_us(now);
            Some(Handed { key, lent, due_in_us, pause_us: entry.pause_us, line: entry.line })
        });
        let tickets = handed.collect();
        HandedOver { closed_us: self.closed_until(partition).since_us(now), tickets }
    }

    /// Takes what another keeper handed over.
    pub fn take_over(&mut self, partition: Partition, handed: HandedOver<K>, now: Now) {
        self.close_until(partition, now.plus_us(handed.closed_us), now);
        for Handed { key, lent, due_in_us, pause_us, line } in handed.tickets {
            if self.entries.len() >= TICKETS_KEPT_MAX {
                // What cannot be kept is waited for.
                self.close(partition, now);
                return;
            }
            let lent = lent.map(|(node, ask, left_us)| {
                let over = now.plus_us(left_us);
                Lent { node, ask, since: now, until: over, over }
            });
            let due = now.plus_us(due_in_us);
            self.entries
                .insert(key, Entry { partition, lent, due, pause_us, line, waiting: VecDeque::new() });
        }
    }

    /// Forgets what is not lent, not wanted and owes nothing.
    fn sweep(&mut self, now: Now) {
        self.entries.retain(|_, entry| {
            entry.expire(now);
            entry.waiting.retain(|(_, asked)| now.since_us(*asked) < GONE_US);
            entry.lent.is_some() || entry.due > now || !entry.waiting.is_empty()
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
            lent: None,
            due: closed.plus_us(owed_us(pause_us)),
            pause_us,
            line: Box::default(),
            waiting: VecDeque::new(),
        }
    }

    fn known(&self) -> Known {
        let Entry { partition, lent, due, pause_us, ref line, .. } = *self;
        Known { partition, lent, due, pause_us, line: line.clone() }
    }

    /// A ticket that ran out was in use until its end, for all that is known, and is over when that request is.
    fn expire(&mut self, now: Now) {
        if let Some(lent) = self.lent.filter(|lent| lent.over <= now) {
            self.due = self.due.max(lent.until.plus_us(owed_us(self.pause_us)));
            self.lent = None;
        }
    }

    fn line_up(&mut self, node: u16, now: Now) {
        if let Some((_, asked)) = self.waiting.iter_mut().find(|(waits, _)| *waits == node) {
            *asked = now;
        } else if self.waiting.len() < TICKET_WAITERS_MAX {
            self.waiting.push_back((node, now));
        }
    }
}
