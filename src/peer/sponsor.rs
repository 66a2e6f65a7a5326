//! Nodes that ask to be in the table: whoever of it they reach asks the council for them, as who has no number has no ballot.

use super::table::{NodeState, Table, TableNode};
use super::table_change::TableChange;
use crate::base::SortedMap;
use crate::limits::PEER_NODES_MAX;

/// Asks for others that they be in the table.
#[derive(Clone, Debug, Default)]
pub struct Sponsor {
    /// By id.
    asking: SortedMap<u64, Asking>,
}

/// A node that is in no table, as it introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    pub id: u64,
    pub address: String,
    pub weight: u16,
}

impl Sponsor {
    pub fn asks(&mut self, asking: Asking) {
        if self.asking.len() < PEER_NODES_MAX {
            self.asking.insert(asking.id, asking);
        }
    }

    /// It is gone before it got a number.
    pub fn gone(&mut self, id: u64) {
        self.asking.remove(&id);
    }

    /// What is to be wanted of this table. Those that are in it are forgotten; one whose number was given to another meanwhile
    /// is asked for again.
    pub fn changes(&mut self, table: &Table) -> Vec<TableChange> {
        self.asking.retain(|id, _| table.nodes().iter().all(|node| node.id != *id));
        let last = table.nodes().last().map_or(0, |node| node.number);
        let numbers = last.saturating_add(1)..=PEER_NODES_MAX as u16;
        let join = |(number, asking): (u16, &Asking)| {
            let Asking { id, address, weight } = asking.clone();
            TableChange::TakeIn(TableNode {
                number,
                id,
                generation: 0,
                address,
                weight,
                state: NodeState::Member,
            })
        };
        numbers.zip(self.asking.values()).map(join).collect()
    }
}
