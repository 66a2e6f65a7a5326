use super::Wires;
use super::rounds::Rounds;
use super::url_post::PostCounts;
use crate::base::shown;
use crate::engine::inspect::cluster_view::{ClusterView, NodeTold, NodeView};
use crate::limits::{PEER_ADDRESS_BYTES_MAX, PEER_NODES_MAX};
use crate::peer::{NodeState, Table, TableNode};
use crate::proto::partition::Partition;
use crate::proto::peer_wire::Status;

/// What a node sees of its cluster.
pub(super) struct Seen<'a> {
    pub table: &'a Table,
    pub rounds: &'a Rounds,
    pub counts: PostCounts,
    pub wires: &'a Wires,
}

impl Seen<'_> {
    /// Says it to the node that `view` is of.
    pub fn add_to(&self, view: ClusterView) -> ClusterView {
        let (table, me) = (self.table, view.node);
        let mut owned = vec![0_u64; 1 + PEER_NODES_MAX];
        for &owner in table.owners() {
            if let Some(owned) = owned.get_mut(usize::from(owner)) {
                *owned += 1;
            }
        }
        let moving = Partition::all().filter(|&partition| table.next_owner(partition).is_some()).count();
        let is_linked = |node: u16| node == me || self.wires.peer(node).is_some();
        let node = |known: &TableNode| NodeView {
            number: known.number,
            address: shown(&known.address, PEER_ADDRESS_BYTES_MAX),
            weight: known.weight,
            membership: match known.state {
                NodeState::Member => "member",
                NodeState::Draining => "draining",
                NodeState::Left => "left",
            }
            .to_string(),
            linked: is_linked(known.number),
            never_beat: table.voters().len() > 1 && known.generation == 0,
            partitions: owned.get(usize::from(known.number)).copied().unwrap_or(0),
            told: self.rounds.told().get(&known.number).map(told_by),
        };
        // Of a member that cannot be asked, nothing is known any more.
        let mut members = table.nodes().iter().filter(|node| node.state != NodeState::Left);
        let can_ask_all = members.all(|node| is_linked(node.number));
        ClusterView {
            epoch: table.epoch(),
            spread: table.spread().to_string(),
            mode: match table.voters().len() {
                0 => "etcd",
                1 => "frozen",
                _ => "council",
            }
            .to_string(),
            voters: table.voters().to_vec(),
            ready: self.rounds.is_quiet() && can_ask_all,
            round: self.rounds.round(),
            nodes: table.nodes().iter().map(node).collect(),
            moving: moving as u64,
            frozen: table.frozen(),
            received: self.counts.received,
            received_new: self.counts.new,
            ..view
        }
    }
}

fn told_by(status: &Status) -> NodeTold {
    NodeTold {
        state: status.state.to_string(),
        epoch: status.epoch,
        pending: status.pending,
        open: status.open,
        pages: status.pages,
        sent: status.sent,
        counted: status.counted,
        received: status.received,
        outbox: status.outbox,
        copied: status.copied,
        right_left_ms: status.right_left_ms,
    }
}
