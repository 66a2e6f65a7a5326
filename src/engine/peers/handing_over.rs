use super::Sends;
use super::calendar::Calendar;
use super::index_asks::IndexAsks;
use crate::base::{Now, SortedMap, SortedSet};
use crate::doc_index::{Moving, MovingItem, Origin};
use crate::engine::inspect::peer_words::{Partitions, PeerAsk, PeerTold};
use crate::engine::inspect::questions::Reply;
use crate::limits::{MOVED_LINES_BYTES_MAX, MOVED_PARTITIONS_MAX, MOVES_UNCOUNTED_MAX};
use crate::peer::Table;
use crate::proto::partition::Partition;
use crate::proto::peer_wire::{
    Found, MoveBuilder, MoveItem, Moved, PeerWord, PushError, UrlItem, UrlNews, print_of,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Partitions that have URLs, on their way to another node: some at a time, all of them to one.
///
/// ```text
///   nothing more is asked of their hosts ──► what is out comes back ──► what is known of hosts, for the last time
///     ──► the ledger, stretch by stretch ── MOVE ──► … ──► MOVED ──► all sums agree
///     ── SAFE_ASK ──► … ──► SAFE: the copy of that node has it, too ──► they can be given
/// ```
///
/// Until then they are this node's: whatever fails, its crawl goes on with them.
pub(super) struct HandingOver {
    group: Option<Group>,
    /// The number of the handover that comes next.
    next: u64,
    /// Nodes that nothing is handed over to before then, as something failed, so often in a row.
    resting: SortedMap<u16, (Now, u32)>,
}

struct Group {
    id: u64,
    to: u16,
    partitions: Partitions,
    step: Step,
    /// Something went on then.
    moved_at: Now,
}

enum Step {
    /// Nothing more is asked of its hosts, and what is on the wire may end.
    Closing(Receiver<Reply>),
    /// What was handed out comes back.
    Returning(Receiver<Reply>),
    /// It is looked at again then.
    Waiting(Now),
    /// Nothing can be asked any more: what its hosts are owed is known.
    ClosingAgain(Receiver<Reply>),
    Sending(Box<Sending>),
    /// The other node has it on its disk, since then, and is to have it on a second one.
    Securing {
        upto: u64,
        since: Now,
        is_safe: bool,
    },
    /// They stay, after all.
    Staying(Receiver<Reply>),
}

struct Sending {
    from: u64,
    reading: Option<Receiver<Reply>>,
    items: VecDeque<MovingItem>,
    /// All of the ledger was read.
    is_whole: bool,
    lines: VecDeque<String>,
    sent: Moved,
    counted: Moved,
}

/// Partitions that another node has everything of.
pub(super) struct HandedOver {
    pub to: u16,
    pub partitions: Partitions,
    /// What the ledger has of them from there on is not with it.
    pub upto: u64,
}

/// What was handed out is looked at this often.
const LOOK_US: u64 = 100_000;
/// A request may be on the wire for so long.
const CLOSE_US: u64 = 300_000_000;
/// A node that counts nothing for so long is not waited for.
const PATIENCE_US: u64 = 30_000_000;
/// A copy that does not have it after so long is not waited for, as it is with all that is new.
const SECURE_US: u64 = 5_000_000;
/// After something failed; twice as long after each further time, up to ten minutes.
const REST_US: u64 = 5_000_000;
const REST_DOUBLED_MAX: u32 = 7;

impl HandingOver {
    /// `starts` is how often this node was started: no number comes again.
    pub fn new(starts: u32) -> HandingOver {
        HandingOver { group: None, next: u64::from(starts) << 32, resting: SortedMap::new() }
    }

    pub fn is_at_work(&self) -> bool {
        self.group.is_some()
    }

    /// Begins with some of these partitions, which have URLs and are to go, if there is nothing else to do.
    pub fn begin(
        &mut self,
        full: &[Partition],
        table: &Table,
        asks: &IndexAsks,
        wires: &dyn Sends,
        now: Now,
    ) {
        if self.group.is_some() {
            return;
        }
        let is_at_rest = |to: u16| self.resting.get(&to).is_some_and(|(until, _)| now < *until);
        let goes_to = |partition: &Partition| table.next_owner(*partition);
        let is_linked = |partition: &&Partition| {
            goes_to(partition).is_some_and(|to| wires.has_room(to) && !is_at_rest(to))
        };
        let Some(to) = full.iter().find(is_linked).and_then(goes_to) else { return };
        let group = full.iter().filter(|partition| goes_to(partition) == Some(to));
        let partitions: SortedSet<Partition> = group.copied().take(MOVED_PARTITIONS_MAX).collect();
        let partitions = Arc::new(partitions);
        let step = Step::Closing(asks.close(partitions.clone()));
        self.next += 1;
        self.group = Some(Group { id: self.next, to, partitions, step, moved_at: now });
    }

    /// The link with a node is gone: what it has of a handover is not known.
    pub fn down(&mut self, node: u16, asks: &IndexAsks) {
        if let Some(group) = self.group.as_mut().filter(|group| group.to == node) {
            group.stay(asks);
        }
    }

    /// A node has something of a handover on its disk.
    pub fn moved(&mut self, node: u16, moved: Moved, now: Now) {
        if let Some(group) = self.group.as_mut().filter(|group| group.to == node && group.id == moved.id)
            && let Step::Sending(sending) = &mut group.step
            && (sending.counted.batch..=sending.sent.batch).contains(&moved.batch)
        {
            sending.counted = moved;
            group.moved_at = now;
        }
    }

    /// All that a node knows is on two disks, or it has none that could be the second.
    pub fn said(&mut self, node: u16, id: u64) {
        if let Some(group) = self.group.as_mut().filter(|group| group.to == node && group.id == id)
            && let Step::Securing { is_safe, .. } = &mut group.step
        {
            *is_safe = true;
        }
    }

    /// Goes on. Says what another node has everything of.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Table, u16),
        (asks, calendar): (&IndexAsks, Calendar),
        wires: &mut dyn Sends,
    ) -> Option<HandedOver> {
        let group = self.group.as_mut()?;
        if !group.is_wanted(table, me) || group.is_stuck(now) {
            group.stay(asks);
        }
        match group.turn(now, (asks, calendar), table.epoch(), wires) {
            Turn::Goes | Turn::Reads => None,
            Turn::Stays => {
                let to = self.group.take()?.to;
                let (until, failures) = self.resting.entry(to).or_insert((now, 0));
                // Whoever answers nothing must not keep the hosts closed.
                *until = now.plus_us(REST_US << (*failures).min(REST_DOUBLED_MAX));
                *failures += 1;
                None
            }
            Turn::Over { upto } => {
                let Group { to, partitions, .. } = self.group.take()?;
                self.resting.remove(&to);
                Some(HandedOver { to, partitions, upto })
            }
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        let group = self.group.as_ref()?;
        match group.step {
            Step::Waiting(at) => Some(at),
            Step::Staying(_) => None,
            Step::Securing { since, .. } => Some(since.plus_us(SECURE_US)),
            Step::Sending(_) => Some(group.moved_at.plus_us(PATIENCE_US + 1)),
            _ => Some(group.moved_at.plus_us(CLOSE_US + 1)),
        }
    }
}

enum Turn {
    Goes,
    /// The same, and a stretch was read.
    Reads,
    Stays,
    Over {
        upto: u64,
    },
}

impl Group {
    fn is_wanted(&self, table: &Table, me: u16) -> bool {
        let goes = |&partition: &Partition| {
            table.owner(partition) == me && table.next_owner(partition) == Some(self.to)
        };
        self.partitions.iter().all(goes)
    }

    fn is_stuck(&self, now: Now) -> bool {
        let patience_us = if let Step::Sending(_) = self.step { PATIENCE_US } else { CLOSE_US };
        now.since_us(self.moved_at) > patience_us
    }

    fn stay(&mut self, asks: &IndexAsks) {
        if !matches!(self.step, Step::Staying(_)) {
            self.step = Step::Staying(asks.ask(PeerAsk::Stay(self.partitions.clone())));
        }
    }

    fn turn(
        &mut self,
        now: Now,
        (asks, calendar): (&IndexAsks, Calendar),
        epoch: u64,
        wires: &mut dyn Sends,
    ) -> Turn {
        let next = match &mut self.step {
            Step::Closing(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return Turn::Goes,
                Ok(Reply::Closed { .. }) => Step::Waiting(now),
                _ => Step::Closing(asks.close(self.partitions.clone())),
            },
            Step::Waiting(at) if *at > now => return Turn::Goes,
            Step::Waiting(_) => Step::Returning(asks.ask(PeerAsk::IsOut(self.partitions.clone()))),
            Step::Returning(answer) => match told(answer) {
                Told::NotYet => return Turn::Goes,
                Told::Is(PeerTold::IsOut(false)) => Step::ClosingAgain(asks.close(self.partitions.clone())),
                _ => Step::Waiting(now.plus_us(LOOK_US)),
            },
            Step::ClosingAgain(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return Turn::Goes,
                Ok(Reply::Closed { lines }) => {
                    self.moved_at = now;
                    let lines = pieces(&calendar.to_travel(&lines, now), MOVED_LINES_BYTES_MAX);
                    Step::Sending(Box::new(Sending::new(self.id, lines)))
                }
                _ => Step::ClosingAgain(asks.close(self.partitions.clone())),
            },
            Step::Sending(sending) => match sending.turn((self.to, &self.partitions), asks, wires) {
                Turn::Reads => {
                    self.moved_at = now;
                    return Turn::Goes;
                }
                Turn::Stays => Step::Staying(asks.ask(PeerAsk::Stay(self.partitions.clone()))),
                Turn::Over { upto } => {
                    wires.send(self.to, &PeerWord::SafeAsk { id: self.id, epoch, pages: false });
                    Step::Securing { upto, since: now, is_safe: false }
                }
                Turn::Goes => return Turn::Goes,
            },
            Step::Securing { upto, since, is_safe } => {
                let is_over = *is_safe || now.since_us(*since) >= SECURE_US;
                return if is_over { Turn::Over { upto: *upto } } else { Turn::Goes };
            }
            Step::Staying(answer) => match told(answer) {
                Told::NotYet => return Turn::Goes,
                Told::Is(PeerTold::Stays) => return Turn::Stays,
                _ => Step::Staying(asks.ask(PeerAsk::Stay(self.partitions.clone()))),
            },
        };
        self.step = next;
        Turn::Goes
    }
}

enum Told {
    NotYet,
    Is(PeerTold),
    /// There will be no answer.
    Nothing,
}

fn told(answer: &Receiver<Reply>) -> Told {
    match answer.try_recv() {
        Err(TryRecvError::Empty) => Told::NotYet,
        Ok(Reply::Peers(told)) => Told::Is(*told),
        Ok(_) | Err(TryRecvError::Disconnected) => Told::Nothing,
    }
}

impl Sending {
    fn new(id: u64, lines: VecDeque<String>) -> Sending {
        let none = Moved { id, ..Moved::default() };
        let items = VecDeque::new();
        Sending { from: 0, reading: None, items, is_whole: false, lines, sent: none, counted: none }
    }

    fn turn(
        &mut self,
        (to, partitions): (u16, &Partitions),
        asks: &IndexAsks,
        wires: &mut dyn Sends,
    ) -> Turn {
        let mut turn = Turn::Goes;
        if let Some(answer) = &self.reading {
            match told(answer) {
                Told::NotYet => {}
                Told::Is(PeerTold::Moving(Ok(Moving { items, upto, is_whole }))) => {
                    (self.reading, turn) = (None, Turn::Reads);
                    self.items.extend(items);
                    (self.from, self.is_whole) = (upto, is_whole);
                }
                // The index has too much to do, or the disk does not give it: it is asked again.
                _ => self.reading = None,
            }
        }
        self.send(to, wires);
        if self.reading.is_none() && self.items.is_empty() && !self.is_whole {
            let (from, partitions) = (self.from, partitions.clone());
            self.reading = Some(asks.ask(PeerAsk::Moving { from, partitions }));
        }
        let is_sent = self.is_whole && self.items.is_empty() && self.lines.is_empty();
        match is_sent && self.counted.batch == self.sent.batch {
            true if self.counted == self.sent => Turn::Over { upto: self.from },
            // It has something else than was sent: it is begun anew, under another number.
            true => Turn::Stays,
            false => turn,
        }
    }

    fn send(&mut self, to: u16, wires: &mut dyn Sends) {
        let mut builder = MoveBuilder::default();
        while self.sent.batch - self.counted.batch < MOVES_UNCOUNTED_MAX as u64
            && wires.has_room(to)
            && (!self.items.is_empty() || !self.lines.is_empty())
        {
            while let Some(item) = self.items.front() {
                let MovingItem { partition, url, origin, row } = item;
                let Origin { provenance, priority, hits, .. } = *origin;
                let news = UrlNews::Found(Found { provenance, priority, hits });
                let pushed =
                    builder.push(&MoveItem { url: UrlItem { partition: *partition, url, news }, row });
                match pushed {
                    Ok(()) => {
                        self.sent.count += 1;
                        self.sent.prints ^= print_of(url, row);
                    }
                    Err(PushError::Full | PushError::Room) => break,
                    // No node would take it.
                    Err(PushError::Fault(_)) => {}
                }
                self.items.pop_front();
            }
            self.sent.batch += 1;
            let lines = self.lines.pop_front().unwrap_or_default();
            wires.send(to, &PeerWord::Move(builder.batch(self.sent.id, self.sent.batch, &lines)));
            builder.clear();
        }
    }
}

/// Lines about the pace of hosts and addresses, in pieces of so many bytes. Robots rules are asked for anew.
pub(super) fn pieces(lines: &str, bytes_max: usize) -> VecDeque<String> {
    let mut pieces: VecDeque<String> = VecDeque::new();
    let is_pace = |line: &&str| line.starts_with("pace ") || line.starts_with("address ");
    for line in lines.lines().filter(is_pace).filter(|line| line.len() < bytes_max) {
        if pieces.back().is_none_or(|last| last.len() + line.len() + 1 > bytes_max) {
            pieces.push_back(String::new());
        }
        if let Some(last) = pieces.back_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    pieces
}
