use crate::engine::inspect::peer_words::PeerAsk;
use crate::engine::inspect::questions::{Ask, Questions, Reply};
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
        let (answer, answered) = channel();
        let bell = self.bell.clone();
        self.questions.ask(Ask::Peers(Box::new(ask)), move |reply| {
            let _ = answer.send(reply);
            bell.ring_if_asleep();
        });
        answered
    }
}
