use crate::engine::inspect::peer_words::{Partitions, PeerAsk};
use crate::engine::inspect::questions::{Ask, Leaves, Questions, Reply};
use crate::rings::Doorbell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// Asks the index of this node. Nobody waits: the bell rings when there is an answer, and an answer that will not come is told
/// by a receiver whose sender is gone.
#[derive(Clone)]
pub(super) struct IndexAsks {
    questions: Arc<Questions>,
    /// Of the thread that asks.
    bell: Arc<Doorbell>,
}

impl IndexAsks {
    pub fn new(questions: Arc<Questions>, bell: Arc<Doorbell>) -> IndexAsks {
        IndexAsks { questions, bell }
    }

    pub fn ask(&self, ask: PeerAsk) -> Receiver<Reply> {
        self.put(Ask::Peers(Box::new(ask)))
    }

    /// Asks that nothing more is asked of the hosts of these partitions; the answer comes when nothing of them is on the wire.
    pub fn close(&self, partitions: Partitions) -> Receiver<Reply> {
        self.put(Ask::Close(Leaves::Partitions(partitions)))
    }

    fn put(&self, ask: Ask) -> Receiver<Reply> {
        let (answer, answered) = channel();
        let bell = self.bell.clone();
        self.questions.ask(ask, move |reply| {
            let _ = answer.send(reply);
            bell.ring_if_asleep();
        });
        answered
    }
}
