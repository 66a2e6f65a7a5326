//! Owners to be: within one partition of each node's share, with the fewest moves. Hashes decide nothing but ties.
//!
//! Between ⌊P·weight/Σ⌋ and ⌈P·weight/Σ⌉ partitions are a share. With the upper bound alone many nodes would stay at it while
//! a new one gets nothing. The partitions that are left over after ⌊…⌋ go to whoever has more than that already; so what moves
//! is what somebody has above his share, which no assignment within those bounds can do without.

use super::table::{NOBODY, NodeState, Table};
use crate::limits::PARTITIONS;
use crate::proto::partition::Partition;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A member, what it has and what it is to have.
struct Share {
    number: u16,
    id: u64,
    floor: usize,
    /// Whether its share is no whole number, so that it may have one more.
    fraction: bool,
    has: usize,
    quota: usize,
}

/// Who is to own each partition, once everything that moves has moved. Nobody where no member has a weight.
pub fn planned_owners(table: &Table) -> Vec<u16> {
    let mut planned: Vec<u16> = Partition::all().map(|partition| heading(table, partition)).collect();
    let mut shares = shares(table, &planned);
    // What nobody has, and what a node has above its share: of that, the partitions that its hash likes least.
    let mut moving: Vec<usize> = (0..PARTITIONS).filter(|&at| planned[at] == NOBODY).collect();
    if shares.is_empty() {
        return table.owners().to_vec();
    }
    for share in shares.iter().filter(|share| share.has > share.quota) {
        let mut held: Vec<usize> = (0..PARTITIONS).filter(|&at| planned[at] == share.number).collect();
        held.sort_unstable_by_key(|&at| liking(share.id, at));
        moving.extend(&held[..share.has - share.quota]);
    }
    moving.sort_unstable();
    for at in moving {
        let wanting = shares.iter_mut().filter(|share| share.has < share.quota);
        let taker = wanting.max_by_key(|share| (liking(share.id, at), share.number));
        // The quotas add up to all partitions, so there is one.
        let Some(taker) = taker else { break };
        taker.has += 1;
        planned[at] = taker.number;
    }
    planned
}

/// The table with the owners to be: what is nobody's is given at once, the rest is noted as moving, for only its owner can give
/// it. Nothing if all is as it should be, or if the table is frozen.
pub fn assign(table: &Table) -> Option<Table> {
    if table.frozen() {
        return None;
    }
    let mut next = table.clone();
    for (partition, to) in Partition::all().zip(planned_owners(table)) {
        match table.owner(partition) {
            owner if owner == to => next.moves(partition, NOBODY),
            NOBODY => {
                next.owners[partition.index()] = to;
                next.moves(partition, NOBODY);
            }
            _ => next.moves(partition, to),
        }
    }
    if next == *table {
        return None;
    }
    next.epoch += 1;
    Some(next)
}

/// Members in their order on the ring: by the hash of their ids.
pub fn ring(table: &Table) -> Vec<u16> {
    let members = table.nodes().iter().filter(|node| node.state == NodeState::Member);
    let mut ring: Vec<(u64, u16)> = members.map(|node| (place(node.id), node.number)).collect();
    ring.sort_unstable();
    ring.into_iter().map(|(_, number)| number).collect()
}

/// The member after a node, which holds its copies and is its heir. The node itself need not be a member any more.
pub fn next_on_ring(table: &Table, node: u16) -> Option<u16> {
    after(table, node).into_iter().next()
}

/// How many members on the ring `other` is after `node`: 1 for its heir.
pub fn steps_on_ring(table: &Table, node: u16, other: u16) -> Option<usize> {
    after(table, node).into_iter().position(|number| number == other).map(|at| at + 1)
}

/// The other members in their order after a node.
fn after(table: &Table, node: u16) -> Vec<u16> {
    let Some(from) = table.node(node).map(|known| (place(known.id), node)) else { return Vec::new() };
    let members =
        table.nodes().iter().filter(|known| known.state == NodeState::Member && known.number != node);
    let mut others: Vec<(u64, u16)> = members.map(|known| (place(known.id), known.number)).collect();
    others.sort_unstable_by_key(|&other| (other < from, other));
    others.into_iter().map(|(_, number)| number).collect()
}

/// The member that has a partition, or is about to; nobody if that is none that gets any.
fn heading(table: &Table, partition: Partition) -> u16 {
    let gets = |number: u16| {
        table.node(number).is_some_and(|node| node.state == NodeState::Member && node.weight > 0)
    };
    let going = table.next_owner(partition).filter(|&number| gets(number));
    going.unwrap_or(Some(table.owner(partition)).filter(|&number| gets(number)).unwrap_or(NOBODY))
}

fn shares(table: &Table, planned: &[u16]) -> Vec<Share> {
    let members = || table.nodes().iter().filter(|node| node.state == NodeState::Member && node.weight > 0);
    let sum: usize = members().map(|node| usize::from(node.weight)).sum();
    let mut shares: Vec<Share> = members()
        .map(|node| {
            let parts = PARTITIONS * usize::from(node.weight);
            let has = planned.iter().filter(|&&owner| owner == node.number).count();
            let floor = parts / sum;
            let fraction = !parts.is_multiple_of(sum);
            Share { number: node.number, id: node.id, floor, fraction, has, quota: floor }
        })
        .collect();
    let left = PARTITIONS.saturating_sub(shares.iter().map(|share| share.floor).sum());
    let mut order: Vec<usize> = (0..shares.len()).filter(|&at| shares[at].fraction).collect();
    order.sort_unstable_by_key(|&at| (shares[at].has <= shares[at].floor, place(shares[at].id)));
    for at in order.into_iter().take(if shares.is_empty() { 0 } else { left }) {
        shares[at].quota += 1;
    }
    shares
}

fn place(id: u64) -> u64 {
    xxh3_64(&id.to_le_bytes())
}

fn liking(id: u64, partition: usize) -> u64 {
    xxh3_64_with_seed(&(partition as u64).to_le_bytes(), id)
}
