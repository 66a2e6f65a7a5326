use super::index_asks::IndexAsks;
use crate::base::Now;
use crate::engine::inspect::peer_words::{MovedDocs, PeerAsk, PeerTold};
use crate::engine::inspect::questions::Reply;
use crate::engine::runtime::journaling::Journaling;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Documents of another node on their way into the index, and lines about their hosts into the journal. They are asked for again
/// until both have them on disk.
pub(super) struct Giving {
    docs: Arc<MovedDocs>,
    answered: Option<Receiver<Reply>>,
    /// The index has it.
    is_taken: bool,
    /// The index is asked again then, or the journal looked at.
    look_at: Now,
}

const LOOK_US: u64 = 20_000;

impl Giving {
    pub fn begin(docs: MovedDocs, asks: &IndexAsks, now: Now) -> Giving {
        let docs = Arc::new(docs);
        let answered = Some(asks.ask(PeerAsk::TakeMoved(docs.clone())));
        Giving { docs, answered, is_taken: false, look_at: now }
    }

    /// True once index and journal have it.
    pub fn turn(&mut self, now: Now, asks: &IndexAsks, journal: &mut Journaling) -> bool {
        if !self.is_taken && self.answered.is_none() && now >= self.look_at {
            self.answered = Some(asks.ask(PeerAsk::TakeMoved(self.docs.clone())));
        }
        if let Some(answered) = &self.answered {
            match answered.try_recv() {
                Err(TryRecvError::Empty) => return false,
                Ok(Reply::Peers(told)) if matches!(*told, PeerTold::TookMoved { .. }) => {
                    journal.add(&self.docs.nice);
                    self.is_taken = true;
                }
                Ok(_) | Err(TryRecvError::Disconnected) => {}
            }
            self.answered = None;
        }
        let is_over = self.is_taken && journal.is_written();
        if !is_over {
            self.look_at = now.plus_us(LOOK_US);
        }
        is_over
    }

    pub fn next_due(&self) -> Option<Now> {
        self.answered.is_none().then_some(self.look_at)
    }
}
