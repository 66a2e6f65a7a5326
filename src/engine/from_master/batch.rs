use crate::base::Now;
use crate::engine::inspect::entries::{Entered, Entries};
use crate::engine::inspect::questions::{Ask, Questions, Reply};
use crate::proto::lines::TakeFrom;
use crate::proto::reflog::Stamp;
use crate::rings::Doorbell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// The answer to one TAKE.
pub(super) struct Batch {
    /// What was asked for.
    pub from: TakeFrom,
    /// Since when.
    pub since: Now,
    /// Entries that came.
    pub entries: u64,
    /// Those that the index was not given yet, a line each.
    text: Vec<u8>,
    /// Pieces that the index was given and that are not on disk yet.
    open: VecDeque<Receiver<Reply>>,
    /// Set when all of it has come.
    pub upto: Option<Upto>,
}

/// Where a queue goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upto {
    pub seq: u64,
    pub mark: Option<Stamp>,
}

/// How a batch stands.
pub(super) enum Progress {
    Waits,
    /// All of it came, and is on disk.
    Durable(Upto),
    /// The index does not take it: it is to be asked for again.
    Untaken,
}

/// Entries that one TAKE asks for: what the index takes at once without keeping others waiting.
pub(super) const ENTRIES_AT_ONCE: u32 = 16_384;
/// A piece is handed on when it has so much, and while no more than these are open.
const PIECE_BYTES: usize = 256 * 1_024;
const PIECES_OPEN_MAX: usize = 4;

impl Batch {
    pub fn new(from: TakeFrom, now: Now) -> Batch {
        Batch { from, since: now, entries: 0, text: Vec::new(), open: VecDeque::new(), upto: None }
    }

    /// Whether more of it may be read.
    pub fn has_room(&self) -> bool {
        self.open.len() < PIECES_OPEN_MAX
    }

    /// Takes an entry; false if there are more than were asked for.
    pub fn push(&mut self, line: &[u8], questions: &Questions, bell: &Arc<Doorbell>) -> bool {
        self.entries += 1;
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        if self.text.len() >= PIECE_BYTES {
            self.hand_on(questions, bell);
        }
        self.entries <= u64::from(ENTRIES_AT_ONCE)
    }

    /// All has come.
    pub fn end(&mut self, upto: Upto, questions: &Questions, bell: &Arc<Doorbell>) {
        self.upto = Some(upto);
        if !self.text.is_empty() {
            self.hand_on(questions, bell);
        }
    }

    fn hand_on(&mut self, questions: &Questions, bell: &Arc<Doorbell>) {
        let (answer, answered) = channel();
        let bell = bell.clone();
        let entries = Box::new(Entries { text: std::mem::take(&mut self.text) });
        questions.ask(Ask::Enter(entries), move |reply| {
            let _ = answer.send(reply);
            bell.ring_if_asleep();
        });
        self.open.push_back(answered);
    }

    /// Takes the answers of the index; `told` is given what each piece came to.
    pub fn look(&mut self, mut told: impl FnMut(Box<Entered>)) -> Progress {
        while let Some(answered) = self.open.front() {
            match answered.try_recv() {
                Ok(Reply::Entered(entered)) => told(entered),
                Err(TryRecvError::Empty) => return Progress::Waits,
                Ok(_) | Err(TryRecvError::Disconnected) => return Progress::Untaken,
            }
            self.open.pop_front();
        }
        self.upto.map_or(Progress::Waits, Progress::Durable)
    }

    /// Whether an entry count goes with where the queue goes on. A queue whose beginning is gone goes on further than
    /// was asked for from its beginning, and by a time nobody can tell.
    pub fn agrees(&self, seq: u64) -> bool {
        match self.from {
            _ if seq > SEQ_MAX => false,
            TakeFrom::Seq(0) | TakeFrom::Since(_) => seq >= self.entries,
            TakeFrom::Seq(from) => from.checked_add(self.entries) == Some(seq),
        }
    }
}

/// No queue gets so long.
const SEQ_MAX: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_queue_goes_on_must_go_with_what_came() {
        let batch = |from, entries| Batch { entries, ..Batch::new(from, Now::ZERO) };
        let since = TakeFrom::Since(Stamp::parse(b"20260101000000").unwrap());
        for (from, entries, seq, is_good) in [
            (TakeFrom::Seq(10), 5, 15, true),
            (TakeFrom::Seq(10), 0, 10, true),
            (TakeFrom::Seq(10), 5, 14, false),
            (TakeFrom::Seq(10), 5, 16, false),
            (TakeFrom::Seq(10), 0, 3, false),
            (TakeFrom::Seq(0), 5, 5, true),
            (TakeFrom::Seq(0), 5, 1_005, true),
            (TakeFrom::Seq(0), 5, 4, false),
            (since, 5, 1_005, true),
            (since, 5, 4, false),
            (since, 5, 1 << 63, false),
            (TakeFrom::Seq(u64::MAX), 5, 4, false),
        ] {
            assert_eq!(batch(from, entries).agrees(seq), is_good, "{from:?} {entries} {seq}");
        }
    }
}
