use crate::base::Now;
use crate::peer::{NodeState, Table, next_on_ring};
use std::sync::Arc;

/// The node that is to have a copy of something that this one has: the next one on the ring. It says how far that copy is, and
/// when it may be gone on with after something of it was lost.
pub(super) struct Follower {
    /// Whether anybody is to have a copy.
    is_on: bool,
    node: Option<u16>,
    /// The table by which it is, and the number of this node then.
    by: Option<(Arc<Table>, u16)>,
    /// Everything that there was then is on its disk.
    safe_at: Option<Now>,
    /// When it became the follower.
    begun_at: Now,
    /// It is left alone until then, as so many times in a row something was lost or refused.
    rest_until: Now,
    losses: u32,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// Everything that there was then is there; if it never was whole, since when it is made.
    pub since: Now,
    pub was_whole: bool,
}

/// After something was lost, and how often that is doubled: a disk that is full, or a table that is behind, is not to be asked
/// again and again.
const REST_US: u64 = 5_000_000;
const REST_DOUBLED_MAX: u32 = 6;

impl Follower {
    pub fn new(is_on: bool) -> Follower {
        let (node, by, safe_at) = (None, None, None);
        Follower { is_on, node, by, safe_at, begun_at: Now::ZERO, rest_until: Now::ZERO, losses: 0 }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn node(&self) -> Option<u16> {
        self.node
    }

    /// Goes by a table. True if another node follows, or none any more: nothing of what was told to the former one counts.
    pub fn follow(&mut self, table: &Arc<Table>, me: u16, now: Now) -> bool {
        if self.by.as_ref().is_some_and(|by| Arc::ptr_eq(&by.0, table) && by.1 == me) {
            return false;
        }
        let by = Some((table.clone(), me));
        let is_there = table.node(me).is_some_and(|node| node.state != NodeState::Left);
        let node = next_on_ring(table, me).filter(|_| self.is_on && is_there);
        if self.node == node {
            self.by = by;
            return false;
        }
        *self = Follower { node, by, begun_at: now, ..Follower::new(self.is_on) };
        true
    }

    /// Everything that there was at this time is on its disk.
    pub fn is_safe_at(&mut self, at: Now) {
        self.losses = 0;
        self.safe_at = self.safe_at.max(Some(at));
    }

    /// Something of the copy was lost, or refused by a disk.
    pub fn rest(&mut self, now: Now) {
        self.rest_until = now.plus_us(REST_US << self.losses.min(REST_DOUBLED_MAX));
        self.losses += 1;
    }

    pub fn rests(&self, now: Now) -> bool {
        now < self.rest_until
    }

    /// When a copy may be begun; nothing if nobody is to have one.
    pub fn next_due(&self) -> Option<Now> {
        self.node.map(|_| self.rest_until)
    }

    /// Whether something was lost since the copy was last whole.
    pub fn has_lost(&self) -> bool {
        self.losses > 0
    }

    /// Whether all that there was at this time is on its disk, or nobody is to have it.
    pub fn has_all_since(&self, at: Now) -> bool {
        self.node.is_none() || self.safe_at.is_some_and(|safe_at| safe_at >= at)
    }

    pub fn behind(&self) -> Behind {
        Behind { since: self.safe_at.unwrap_or(self.begun_at), was_whole: self.safe_at.is_some() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::TableNode;
    use crate::proto::partition::Spread;

    fn table(nodes: &[u16]) -> Arc<Table> {
        let node = |&number: &u16| TableNode {
            number,
            id: u64::from(number),
            generation: 1,
            address: format!("192.0.2.{number}:7174"),
            weight: 1,
            state: NodeState::Member,
        };
        let nodes_of = nodes.iter().map(node).collect();
        Arc::new(Table::first(nodes_of, vec![nodes[0]], Spread::Domain, 9).unwrap())
    }

    #[test]
    fn another_follower_has_nothing_yet_and_is_asked_at_once() {
        let at = Now::from_us;
        let mut follower = Follower::new(true);
        assert!(follower.has_all_since(at(9)), "nobody is to have it");
        assert!(follower.follow(&table(&[1, 2]), 1, at(10)) && !follower.follow(&table(&[1, 2]), 1, at(11)));
        assert_eq!(follower.behind(), Behind { since: at(10), was_whole: false });
        follower.is_safe_at(at(20));
        follower.is_safe_at(at(15));
        assert_eq!(follower.behind(), Behind { since: at(20), was_whole: true });
        assert!(follower.has_all_since(at(20)) && !follower.has_all_since(at(21)));
        follower.rest(at(30));
        assert!(follower.rests(at(30)) && follower.has_lost());
        assert!(follower.follow(&table(&[1]), 1, at(40)) && follower.node().is_none());
        assert!(follower.follow(&table(&[1, 3]), 1, at(50)) && follower.node() == Some(3));
        assert!(!follower.rests(at(50)) && !follower.behind().was_whole);
    }

    #[test]
    fn it_is_left_alone_for_longer_each_time_until_a_copy_is_whole() {
        let mut follower = Follower::new(true);
        follower.follow(&table(&[1, 2]), 1, Now::ZERO);
        let rest_s = |follower: &mut Follower| {
            follower.rest(Now::ZERO);
            follower.next_due().unwrap().us() / 1_000_000
        };
        let rests: Vec<u64> = (0..9).map(|_| rest_s(&mut follower)).collect();
        assert_eq!(rests, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
        follower.is_safe_at(Now::ZERO);
        assert_eq!(rest_s(&mut follower), 5);
    }
}
