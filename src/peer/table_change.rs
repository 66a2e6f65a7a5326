//! What may be done to a table, as values: a change is tried again on the table that another one left.

use super::assign::assign;
use super::table::{NOBODY, NodeState, Table, TableNode, Taken, Taking};
use crate::limits::{PARTITIONS, TAKINGS_MAX};
use crate::proto::partition::Partition;

/// A change of the table. Applied to a table it makes the next one, or nothing where it has no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// A node is there, or is there again with a later generation. It keeps what the table still gives it: the process
    /// that held it before has ended, and who would have taken it over did not.
    Join(TableNode),
    /// A node that was in no table is there, by the word of another. It has no place where the node is known: what it is since, it
    /// says itself, or an operator.
    TakeIn(TableNode),
    /// A node is to hand over what it has.
    Drain(u16),
    /// A node that owns nothing goes.
    Leave(u16),
    /// The operator's word that a node will not come again: what it has is nobody's. Where three vote, of one that never beat.
    Forget(u16),
    /// A node whose beat is sealed at `generation` has lost everything to `taker`.
    TakeOver {
        node: u16,
        generation: u32,
        taker: u16,
        stamp_ms: u64,
    },
    /// The owner of partitions, which has stopped asking for them, gives them to another node. Nobody else may want this: on
    /// another table it would take what its owner has kept since.
    Give {
        partitions: Vec<Partition>,
        from: u16,
        to: u16,
    },
    /// The owner takes back what it was to give: whatever was offered under the epoch before cannot be given any more.
    Keep {
        partitions: Vec<Partition>,
        owner: u16,
    },
    /// Owners to be, with the fewest moves.
    Assign,
    /// Three vote from now on, one of them the one that did so alone: by a majority it can be said that a node is gone.
    Voters([u16; 3]),
    Freeze(bool),
    /// The rules that every node has to have.
    Rules(u64),
}

impl TableChange {
    /// The table of the next epoch; nothing if the change has no place in this one, or is in it already.
    pub fn apply(&self, table: &Table) -> Option<Table> {
        let mut next = table.clone();
        match self {
            TableChange::Join(node) => next.join(node)?,
            TableChange::TakeIn(node) => {
                if table.nodes.iter().any(|known| known.id == node.id) {
                    return None;
                }
                next.join(node)?;
            }
            TableChange::Drain(node) => next.state(*node, NodeState::Member, NodeState::Draining)?,
            TableChange::Leave(node) => {
                if next.owners.contains(node) {
                    return None;
                }
                next.vacate(*node, NOBODY)?;
            }
            TableChange::Forget(node) => {
                // Where rights end by themselves, one that ever had such a right is taken over; one that comes back in this moment
                // has none before its generation is in the table.
                if table.voters.len() != 1 && table.node(*node)?.generation > 0 {
                    return None;
                }
                next.vacate(*node, NOBODY)?;
            }
            TableChange::TakeOver { node, generation, taker, stamp_ms } => {
                let dead = table.node(*node)?;
                let able = table.node(*taker)?.state == NodeState::Member && taker != node;
                if table.frozen || !table.is_member(*node) || dead.generation > *generation || !able {
                    return None;
                }
                next.vacate(*node, *taker)?;
                let epoch = table.epoch + 1;
                let taken = Taken::Node(*node);
                next.takings.push(Taking { taken, taker: *taker, stamp_ms: *stamp_ms, epoch });
                let old = next.takings.len().saturating_sub(TAKINGS_MAX);
                next.takings.drain(..old);
            }
            TableChange::Give { partitions, from, to } => {
                let given = partitions.iter().filter(|&&partition| table.owner(partition) == *from);
                if !table.is_member(*to) || from == to {
                    return None;
                }
                for &partition in given {
                    next.owners[partition.index()] = *to;
                    next.moves(partition, NOBODY);
                }
            }
            TableChange::Keep { partitions, owner } => {
                if !partitions.iter().any(|&partition| table.owner(partition) == *owner) {
                    return None;
                }
                for &partition in partitions.iter().filter(|&&partition| table.owner(partition) == *owner) {
                    next.moves(partition, NOBODY);
                }
                // The epoch is what counts, so that this is a change even where nothing moves.
                next.epoch += 1;
                return Some(next);
            }
            TableChange::Assign => return assign(table),
            TableChange::Voters(voters) => {
                let sole = table.voters.len() == 1 && voters.contains(&table.voters[0]);
                let is_able =
                    |&voter: &u16| table.node(voter).map(|node| node.state) == Some(NodeState::Member);
                if !sole || !voters.iter().all(is_able) {
                    return None;
                }
                next.voters = voters.to_vec();
            }
            TableChange::Freeze(frozen) => next.frozen = *frozen,
            TableChange::Rules(rules) => next.rules = *rules,
        }
        if next == *table || next.check().is_err() {
            return None;
        }
        next.epoch += 1;
        Some(next)
    }
}

impl Table {
    fn join(&mut self, node: &TableNode) -> Option<()> {
        match self.nodes.binary_search_by_key(&node.number, |known| known.number) {
            Ok(at) => {
                let known = &mut self.nodes[at];
                // Another disk with this number is another node, and needs another number.
                if known.id != node.id || known.generation > node.generation {
                    return None;
                }
                *known = node.clone();
            }
            Err(at) => self.nodes.insert(at, node.clone()),
        }
        Some(())
    }

    fn state(&mut self, number: u16, from: NodeState, to: NodeState) -> Option<()> {
        let node = self.nodes.iter_mut().find(|node| node.number == number && node.state == from)?;
        node.state = to;
        Some(())
    }

    /// Everything of a node goes to `heir`, and what was to come to it stays where it is. It has left, and its number is
    /// kept: a voter is a node of the table, and one that comes again is known by it.
    fn vacate(&mut self, number: u16, heir: u16) -> Option<()> {
        let node = self.nodes.iter_mut().find(|node| node.number == number)?;
        node.state = NodeState::Left;
        for partition in Partition::all() {
            if self.owner(partition) == number {
                self.owners[partition.index()] = heir;
                if heir == NOBODY || self.next_owner(partition) == Some(heir) {
                    self.moves(partition, NOBODY);
                }
            }
            if self.next_owner(partition) == Some(number) {
                self.moves(partition, NOBODY);
            }
        }
        Some(())
    }

    /// Notes where a partition is to go; nothing moves if none does.
    pub(super) fn moves(&mut self, partition: Partition, to: u16) {
        if self.next.is_none() && to == NOBODY {
            return;
        }
        let next = self.next.get_or_insert_with(|| vec![NOBODY; PARTITIONS].into_boxed_slice());
        next[partition.index()] = to;
        if to == NOBODY && next.iter().all(|&node| node == NOBODY) {
            self.next = None;
        }
    }
}
