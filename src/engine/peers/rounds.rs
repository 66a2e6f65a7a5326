use super::Sends;
use super::index_asks::IndexAsks;
use super::url_post::{PostStanding, UrlPost};
use crate::base::{Now, SortedMap};
use crate::engine::inspect::peer_words::{PeerAsk, PeerTold, Standing};
use crate::engine::inspect::questions::Reply;
use crate::peer::{Member, Quiet};
use crate::proto::peer_wire::{NodeState, PeerWord, Status};
use std::sync::mpsc::{Receiver, TryRecvError};

/// How far every node is, asked round by round, and whether all is done everywhere.
pub(super) struct Rounds {
    node: u16,
    quiet: Quiet,
    /// The last that each node told.
    told: SortedMap<u16, Status>,
    /// Who waits for ours: the node, and its round. This node is one of them.
    waiting: Vec<(u16, u64)>,
    /// What had come before the index was asked, and its answer.
    looking: Option<(u64, Receiver<Reply>)>,
    ask_at: Now,
    /// The round that was asked for last, and when that was first.
    asked: (u64, Now),
    /// When the last round that ended began: what was told in it is no older. A node that stood still finds answers of long ago.
    true_at: Now,
    /// URLs that have come to this node.
    received: u64,
    now: Now,
}

/// What a status says that is not the index's to tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeStanding {
    pub generation: u32,
    pub epoch: u64,
    pub is_standing: bool,
    /// The index goes by the table, and nothing is on its way to another node.
    pub is_settled: bool,
    pub right_left_ms: u32,
    /// Bytes of the copy that another node has of what this one knows.
    pub copied: u64,
}

/// From round to round of a few nodes.
const ROUND_US: u64 = 1_000_000;
/// So many are asked in that time: with more of them a round takes longer, so that what a node says and hears does not grow.
const ASKED: u64 = 10;
/// A round that has not ended after so many times its time waits for somebody.
const HELD_UP: u64 = 2;
/// What a round told is too old after so many.
const STALE: u64 = 5;

/// From one round of so many nodes to the next.
fn round_us(nodes: u64) -> u64 {
    ROUND_US * nodes.div_ceil(ASKED).max(1)
}

impl Rounds {
    pub fn new(node: u16) -> Rounds {
        Rounds {
            node,
            quiet: Quiet::new(),
            told: SortedMap::new(),
            waiting: Vec::new(),
            looking: None,
            ask_at: Now::ZERO,
            asked: (0, Now::ZERO),
            true_at: Now::ZERO,
            received: 0,
            now: Now::ZERO,
        }
    }

    pub fn set_node(&mut self, node: u16) {
        self.node = node;
    }

    pub fn set_members(&mut self, members: &[Member]) {
        self.quiet.members(members);
        self.told.retain(|node, _| members.iter().any(|member| member.node == *node));
    }

    /// Whether all was done everywhere a moment ago, and nothing has come here since. While a node does not answer, nobody knows.
    pub fn is_quiet(&self) -> bool {
        // Who is no member tells what it has, too: a node that was taken over and comes back with its disk.
        let nothing_came = self.quiet.received(self.node).is_none_or(|received| received == self.received);
        self.quiet.is_quiet() && nothing_came && self.now.since_us(self.true_at) < STALE * self.round_us()
    }

    fn round_us(&self) -> u64 {
        round_us(self.quiet.count() as u64)
    }

    /// The round that is under way.
    pub fn round(&self) -> u64 {
        self.quiet.round()
    }

    pub fn told(&self) -> &SortedMap<u16, Status> {
        &self.told
    }

    /// A node wants to know how far this one is.
    pub fn asked_by(&mut self, node: u16, round: u64) {
        self.waiting.retain(|(waits, _)| *waits != node);
        self.waiting.push((node, round));
    }

    pub fn status(&mut self, from: u16, status: Status) {
        // Nobody tells of others.
        if status.node == from {
            self.told.insert(from, status);
            if self.quiet.told(&status) {
                self.true_at = self.asked.1;
            }
        }
    }

    pub fn down(&mut self, node: u16) {
        self.waiting.retain(|(waits, _)| *waits != node);
        self.told.remove(&node);
    }

    pub fn next_due(&self) -> Option<Now> {
        Some(self.ask_at)
    }

    pub fn turn(
        &mut self,
        now: Now,
        post: &UrlPost,
        here: NodeStanding,
        asks: &IndexAsks,
        wires: &mut dyn Sends,
    ) {
        self.now = now;
        self.received = post.received();
        if now >= self.ask_at {
            self.ask_at = now.plus_us(self.round_us());
            let round = self.quiet.round();
            if self.asked.0 != round {
                self.asked = (round, now);
            }
            // While one of them does not answer no round ends; the others are asked all the same, so that what is said of them is
            // of now.
            let is_held_up = now.since_us(self.asked.1) >= HELD_UP * self.round_us();
            let asked: Vec<u16> = match is_held_up {
                true => self.quiet.asked().collect(),
                false => self.quiet.missing().collect(),
            };
            for node in asked {
                if node == self.node {
                    self.asked_by(node, round);
                } else {
                    wires.send(node, &PeerWord::StatusAsk { round });
                }
            }
        }
        if self.looking.is_none() && !self.waiting.is_empty() {
            // Whatever comes after this is not in the answer, and the next round tells of it.
            self.looking = Some((post.received(), asks.ask(PeerAsk::Stand)));
        }
        let Some((received, answered)) = &self.looking else { return };
        let (received, standing) = match answered.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(Reply::Peers(told)) => match *told {
                PeerTold::Standing(standing) => (*received, Some(standing)),
                _ => (*received, None),
            },
            Ok(_) | Err(TryRecvError::Disconnected) => (*received, None),
        };
        self.looking = None;
        let Some(standing) = standing else { return };
        let urls = post.standing(standing.ledger_end);
        for (node, round) in std::mem::take(&mut self.waiting) {
            let status = self.of_here(round, received, &standing, urls, here);
            match node == self.node {
                true => self.status(node, status),
                false => wires.send(node, &PeerWord::Status(status)),
            }
        }
    }

    fn of_here(
        &self,
        round: u64,
        received: u64,
        standing: &Standing,
        urls: PostStanding,
        here: NodeStanding,
    ) -> Status {
        let Standing { stats, epoch, .. } = standing;
        let state = match here.is_standing {
            false if here.epoch == 0 => NodeState::Joining,
            false => NodeState::Fenced,
            true if self.is_quiet() => NodeState::ReadyToServe,
            true => NodeState::Crawling,
        };
        Status {
            node: self.node,
            generation: here.generation,
            round,
            state,
            epoch: *epoch,
            // What is on its way belongs to somebody soon, and what the index has not taken yet is this node's.
            pending: stats.pending + urls.incoming + u64::from(!here.is_settled),
            open: stats.handed_out,
            sent: urls.sent,
            counted: urls.counted,
            received,
            outbox: urls.outbox,
            copied: here.copied,
            right_left_ms: here.right_left_ms,
            pages: stats.own_success(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PEER_NODES_MAX;

    #[test]
    fn no_node_asks_more_than_a_few_others_a_second() {
        for nodes in 0..=PEER_NODES_MAX as u64 {
            let us = round_us(nodes);
            assert!(us >= ROUND_US && nodes * ROUND_US <= ASKED * us, "{nodes}");
        }
        assert_eq!([1, 10, 11, 100].map(round_us), [1, 1, 2, 10].map(|times| times * ROUND_US));
    }
}
