use super::Sends;
use super::calendar::Calendar;
use super::follower::{Behind, Follower};
use super::handing_over::pieces;
use super::index_asks::IndexAsks;
use super::journal_tail::JournalTail;
use super::known_sum::KnownSum;
use crate::base::Now;
use crate::doc_index::{Copying as Piece, MovingItem, Origin};
use crate::engine::inspect::peer_words::{PeerAsk, PeerTold};
use crate::engine::inspect::questions::Reply;
use crate::limits::{COPIES_UNCOUNTED_MAX, MOVED_LINES_BYTES_MAX};
use crate::peer::Table;
use crate::proto::partition::Partition;
use crate::proto::peer_wire::{
    Found, FrameBuffer, MoveBuilder, MoveItem, PeerWord, PushError, UrlItem, UrlNews,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// What this node knows, on its way to the disk of the node that would take it over: the next one on the ring.
///
/// ```text
///   index: the ledger, stretch by stretch, each document with what became of it ── COPY ──► … ──► whole
///     ──► what is new, and documents of which something became ── COPY ──► …            ◄── COPIED
/// ```
///
/// A process begins its copy anew. So it does with another follower, when that one lost what it had, and when a copy has grown
/// to twice what it was when it was whole.
pub(super) struct Copying {
    follower: Follower,
    /// The number of the copy that comes next.
    next: u64,
    copy: Option<Copy>,
    journal: JournalTail,
    /// Others have everything: the copy is to be empty.
    is_ended: bool,
}

struct Copy {
    id: u64,
    to: u16,
    /// Where the ledger goes on.
    from: u64,
    /// What the index was asked, and when.
    reading: Option<(Receiver<Reply>, Now)>,
    /// The index is asked again then, and so long after that.
    look_at: Now,
    pause_us: u64,
    /// When the index was asked for what is in `out`, if all is told with that.
    whole_at: Option<Now>,
    out: VecDeque<CopyItem>,
    /// Lines about hosts.
    lines: VecDeque<String>,
    /// Of all that was sent.
    sent: KnownSum,
    /// What was sent and is not counted, as it was sent, each with the sum up to it.
    uncounted: VecDeque<(KnownSum, Vec<u8>)>,
    /// Of what is counted.
    safe: KnownSum,
    /// The first of those that have to be sent once more, as the link is another.
    again: usize,
    /// There are more lines about hosts than were read.
    has_lines: bool,
    /// With these batches everything is there that was known then.
    marks: VecDeque<(u64, Now)>,
    /// The follower was told that it has all of it.
    is_whole: bool,
    is_linked: bool,
    /// It has to be begun anew.
    is_lost: bool,
    bytes: u64,
    /// Of the copy when it was whole first.
    whole_bytes: u64,
}

enum CopyItem {
    Document(MovingItem),
    Scope(Partition, Box<str>),
}

/// What is new is looked for this often, and less often where nothing is.
const LOOK_US: u64 = 200_000;
const LOOK_US_MAX: u64 = 2_000_000;
/// Lines about hosts in one batch: their times are longer where they are kept.
const LINES_BYTES: usize = MOVED_LINES_BYTES_MAX / 2;
/// A copy that has grown by so much, and to twice its size, is made anew.
const GROWN_BYTES: u64 = 64 << 20;

impl Copying {
    /// `starts` is how often this node was started: no copy of an earlier process has a number of this one.
    pub fn new(is_on: bool, starts: u32, journal: JournalTail) -> Copying {
        let (follower, next) = (Follower::new(is_on), u64::from(starts) << 32);
        Copying { follower, next, copy: None, journal, is_ended: false }
    }

    /// Goes on. True if something moved.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Arc<Table>, u16),
        (asks, calendar): (&IndexAsks, Calendar),
        wires: &mut dyn Sends,
    ) -> bool {
        if self.follower.follow(table, me, now) {
            self.copy = None;
        }
        let Some(to) = self.follower.node() else { return false };
        if let Some(copy) = self.copy.take_if(|copy| copy.is_over())
            && copy.is_lost
        {
            self.follower.rest(now);
        }
        if self.copy.is_none() && self.follower.rests(now) {
            return false;
        }
        if self.copy.is_none() {
            self.next += 1;
            self.journal.begin();
            let whole_at = self.is_ended.then_some(now);
            self.copy = Some(Copy { whole_at, ..Copy::new(self.next, to, now) });
        }
        let is_ended = self.is_ended;
        let Some(copy) = &mut self.copy else { return false };
        let moved = match is_ended {
            true => copy.link(wires) && copy.send(wires),
            false => copy.turn(now, asks, (&mut self.journal, calendar), wires),
        };
        // There was nothing new, or all of it is there.
        if copy.is_whole
            && copy.uncounted.is_empty()
            && let Some(at) = copy.counted(copy.sent.batch)
        {
            self.follower.is_safe_at(at);
        }
        moved
    }

    /// This node leaves, and others have everything that it knows: nobody is to take that over.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.copy = None;
        }
    }

    /// A node has something of a copy on its disk.
    pub fn copied(&mut self, node: u16, id: u64, batch: u64) {
        let Some(copy) = self.copy.as_mut().filter(|copy| copy.to == node && copy.id == id) else { return };
        match batch {
            // It does not have what came before.
            0 => copy.is_lost = true,
            batch if batch <= copy.sent.batch => {
                if let Some(at) = copy.counted(batch) {
                    self.follower.is_safe_at(at);
                }
            }
            _ => {}
        }
    }

    /// Somebody waits: the index is asked now for what is new.
    pub fn look_now(&mut self, now: Now) {
        if let Some(copy) = &mut self.copy {
            copy.look_at = copy.look_at.min(now);
        }
    }

    /// The link with a node is gone: what was on its way may not have come.
    pub fn down(&mut self, node: u16) {
        if let Some(copy) = self.copy.as_mut().filter(|copy| copy.to == node) {
            copy.is_linked = false;
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        let Some(copy) = &self.copy else { return self.follower.next_due() };
        let is_due = copy.is_linked && copy.reading.is_none() && !self.is_ended;
        is_due.then_some(copy.look_at)
    }

    /// Who is to have a copy.
    pub fn follower(&self) -> Option<u16> {
        self.follower.node()
    }

    pub fn behind(&self) -> Behind {
        self.follower.behind()
    }

    /// Whether all that was known at this time is on the disk of the follower, or nobody is to have it.
    pub fn is_safe_since(&self, at: Now) -> bool {
        self.follower.has_all_since(at)
    }

    /// The number of the copy, and what of it the follower said to be on its disk; nothing before that is something whole.
    pub fn told(&self) -> Option<(u64, KnownSum)> {
        let copy = self.copy.as_ref().filter(|copy| copy.is_whole && copy.safe.batch > 0)?;
        Some((copy.id, copy.safe))
    }

    /// Bytes of the copy that the follower has, or is about to have.
    pub fn bytes(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| copy.bytes)
    }
}

impl Copy {
    fn new(id: u64, to: u16, now: Now) -> Copy {
        Copy {
            id,
            to,
            from: 0,
            reading: None,
            look_at: now,
            pause_us: LOOK_US,
            whole_at: None,
            out: VecDeque::new(),
            lines: VecDeque::new(),
            sent: KnownSum::default(),
            uncounted: VecDeque::new(),
            safe: KnownSum::default(),
            again: usize::MAX,
            has_lines: false,
            marks: VecDeque::new(),
            is_whole: false,
            is_linked: false,
            is_lost: false,
            bytes: 0,
            whole_bytes: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.is_lost || self.is_whole && self.bytes > 2 * self.whole_bytes + GROWN_BYTES
    }

    /// The follower has everything up to a batch: says when it was that all was known which is in that.
    fn counted(&mut self, batch: u64) -> Option<Now> {
        while let Some((sum, _)) = self.uncounted.front().filter(|(sent, _)| sent.batch <= batch) {
            self.safe = *sum;
            self.uncounted.pop_front();
            self.again = self.again.saturating_sub(usize::from(self.again < usize::MAX));
        }
        let mut safe_at = None;
        while let Some((_, at)) = self.marks.front().copied().filter(|(mark, _)| *mark <= batch) {
            safe_at = Some(at);
            self.marks.pop_front();
        }
        safe_at
    }

    fn turn(
        &mut self,
        now: Now,
        asks: &IndexAsks,
        (journal, calendar): (&mut JournalTail, Calendar),
        wires: &mut dyn Sends,
    ) -> bool {
        if !self.link(wires) {
            return false;
        }
        let read = self.take_read(now);
        let sent = self.send(wires);
        if self.out.is_empty() && self.reading.is_none() && now >= self.look_at {
            let (lines, is_end) = journal.more();
            self.lines.extend(pieces(&calendar.to_travel(&lines, now), LINES_BYTES));
            self.has_lines = !is_end;
            let from = self.from;
            self.reading = Some((asks.ask(PeerAsk::Copying { from }), now));
        }
        read || sent
    }

    /// Whether a link stands. When it does again, whatever was not counted may not have come.
    fn link(&mut self, wires: &mut dyn Sends) -> bool {
        let was_linked = std::mem::replace(&mut self.is_linked, wires.is_linked(self.to));
        if self.is_linked && !was_linked {
            self.again = 0;
        }
        self.send_again(wires);
        self.is_linked
    }

    fn take_read(&mut self, now: Now) -> bool {
        let Some((answer, asked_at)) = &self.reading else { return false };
        let told = match answer.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Ok(Reply::Peers(told)) => Some(*told),
            Ok(_) | Err(TryRecvError::Disconnected) => None,
        };
        let asked_at = *asked_at;
        self.reading = None;
        let Some(PeerTold::Copying(Ok(piece))) = told else {
            // The index has too much to do, or the disk does not give it: it is asked again.
            self.pause_us = (2 * self.pause_us).min(LOOK_US_MAX);
            self.look_at = now.plus_us(self.pause_us);
            return false;
        };
        let Piece { items, in_scope, upto, is_whole, is_torn } = piece;
        // Nothing of a torn piece is of use.
        self.is_lost |= is_torn;
        if is_torn {
            return true;
        }
        let is_whole = is_whole && !self.has_lines;
        let is_news = !items.is_empty() || !in_scope.is_empty() || !self.lines.is_empty();
        self.from = upto;
        self.out.extend(in_scope.into_iter().map(|(partition, url)| CopyItem::Scope(partition, url)));
        self.out.extend(items.into_iter().map(CopyItem::Document));
        self.pause_us = if is_news { LOOK_US } else { (2 * self.pause_us).min(LOOK_US_MAX) };
        self.look_at = if is_whole { now.plus_us(self.pause_us) } else { now };
        self.whole_at = is_whole.then_some(asked_at);
        true
    }

    /// Sends what there is, as much as may be on its way.
    fn send(&mut self, wires: &mut dyn Sends) -> bool {
        let mut builder = MoveBuilder::default();
        let mut is_sent = false;
        while (self.again == usize::MAX
            && self.uncounted.len() < COPIES_UNCOUNTED_MAX
            && wires.has_room(self.to))
            && (!self.out.is_empty() || !self.lines.is_empty() || self.owes_whole())
        {
            while let Some(item) = self.out.front() {
                match item.push_to(&mut builder) {
                    // No node would take it.
                    Ok(()) | Err(PushError::Fault(_)) => self.out.pop_front(),
                    Err(PushError::Full | PushError::Room) => break,
                };
            }
            let lines = self.lines.pop_front().unwrap_or_default();
            let is_last = self.out.is_empty() && self.lines.is_empty();
            self.is_whole |= is_last && self.whole_at.is_some();
            let batch = builder.batch(self.id, self.sent.batch + 1, &lines);
            self.sent.add(&batch);
            let word = PeerWord::Copy { is_whole: self.is_whole, batch };
            let mut bytes = Vec::new();
            word.write(&mut bytes);
            wires.send(self.to, &word);
            self.bytes += bytes.len() as u64;
            self.uncounted.push_back((self.sent, bytes));
            builder.clear();
            is_sent = true;
        }
        if self.is_whole && self.whole_bytes == 0 {
            self.whole_bytes = self.bytes;
        }
        if self.out.is_empty()
            && self.lines.is_empty()
            && let Some(at) = self.whole_at.take()
        {
            self.marks.push_back((self.sent.batch, at));
        }
        is_sent
    }

    /// Everything is sent, and the follower does not know yet that it is.
    fn owes_whole(&self) -> bool {
        !self.is_whole && self.whole_at.is_some()
    }

    fn send_again(&mut self, wires: &mut dyn Sends) {
        while self.again < self.uncounted.len() && wires.has_room(self.to) {
            let bytes = &self.uncounted[self.again].1;
            self.again += 1;
            let mut frames = FrameBuffer::default();
            frames.push(bytes);
            if let Ok(Some(frame)) = frames.next_frame()
                && let Ok(word) = frame.word()
            {
                wires.send(self.to, &word);
            }
        }
        if self.again >= self.uncounted.len() {
            self.again = usize::MAX;
        }
    }
}

impl CopyItem {
    fn push_to(&self, builder: &mut MoveBuilder) -> Result<(), PushError> {
        match self {
            CopyItem::Document(MovingItem { partition, url, origin, row }) => {
                let Origin { provenance, priority, hits, .. } = *origin;
                let news = UrlNews::Found(Found { provenance, priority, hits });
                builder.push(&MoveItem { url: UrlItem { partition: *partition, url, news }, row })
            }
            CopyItem::Scope(partition, url) => {
                let url = UrlItem { partition: *partition, url, news: UrlNews::Scope };
                builder.push(&MoveItem { url, row: &[] })
            }
        }
    }
}
