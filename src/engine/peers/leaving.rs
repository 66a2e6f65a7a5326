use super::Sends;
use super::copy_desk::CopyDesk;
use crate::base::{Now, SortedMap, counted};
use crate::engine::inspect::cluster_view::LeavingView;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::peer::{NodeState, Table, ring};
use crate::proto::peer_wire::PeerWord;

/// A node that is drained, on its way out of the table.
///
/// ```text
///   nothing is its own any more ──► the follower has its pages ── SAFE_ASK: all ──► … ──► SAFE of each ──► it leaves
/// ```
///
/// So what it handed over, and its pages, are on two other disks before its own is not needed; and nobody counts on the copy
/// that it keeps of another. Without copies each says at once that it is alone: who is away may be lost with what it got, and
/// then that is told again.
pub(super) struct Leaving {
    /// It has given everything away, but for its pages.
    idle_since: Option<Now>,
    /// The others have its pages, and are asked since then.
    asked_since: Option<Now>,
    asking: Option<Asking>,
    /// The number of the question that comes next.
    next: u64,
    /// It has given everything away, and wants to be none of the nodes any more; and it is.
    is_leaving: bool,
    has_left: bool,
    /// Who did not say that it has a second disk for what it has, and who has none.
    missing: Vec<u16>,
    alone: Vec<u16>,
    now: Now,
}

/// The other nodes, asked whether all that they have is on two disks without this one.
struct Asking {
    id: u64,
    epoch: u64,
    /// Whom it is about: with another ring others follow, and what was said does not count.
    others: Vec<u16>,
    ring: Vec<u16>,
    /// Who said so, and whether it is alone.
    said: SortedMap<u16, bool>,
    ask_at: Now,
}

/// Numbers of these questions, so that they are not those of a handover.
const NUMBERS: u64 = 1 << 63;
/// Who has not answered is asked again after this: a link may have been another.
const ASK_US: u64 = 1_000_000;
/// Whoever is away for longer than this is not waited for: it is said instead.
const PATIENCE_US: u64 = 600_000_000;

impl Leaving {
    /// `starts` is how often this node was started: no number of an earlier process is one of this.
    pub fn new(starts: u32) -> Leaving {
        Leaving {
            idle_since: None,
            asked_since: None,
            asking: None,
            next: NUMBERS | u64::from(starts) << 32,
            is_leaving: false,
            has_left: false,
            missing: Vec::new(),
            alone: Vec::new(),
            now: Now::ZERO,
        }
    }

    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Goes on with a node of a table that may have nothing any more; it may not go by that table yet. True if it is to leave
    /// now.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Table, u16),
        (has_nothing, is_settled): (bool, bool),
        (copies, health): (&mut CopyDesk, &Health),
        wires: &mut dyn Sends,
    ) -> bool {
        self.now = now;
        match table.node(me).map(|node| node.state) {
            // All was said: it only has to be in the table.
            Some(NodeState::Draining) if self.is_leaving => has_nothing,
            Some(NodeState::Draining) if has_nothing && !is_settled => false,
            Some(NodeState::Draining) if has_nothing => {
                // Nothing is fetched any more: the pages are those that there were then.
                let idle_since = *self.idle_since.get_or_insert(now);
                let is_over = match copies.has_pages_since(idle_since) {
                    true => self.ask((table, me), wires),
                    false => self.wait_for_pages(copies.follower()),
                };
                if is_over {
                    self.is_leaving = true;
                    copies.end();
                }
                is_over
            }
            Some(NodeState::Left) if self.is_leaving && !self.has_left => {
                self.has_left = true;
                self.tell(copies.is_on(), health);
                false
            }
            Some(NodeState::Left) => false,
            _ => {
                // What comes meanwhile is to be copied, too.
                (self.idle_since, self.asked_since, self.asking) = (None, None, None);
                (self.missing, self.alone) = (Vec::new(), Vec::new());
                false
            }
        }
    }

    fn wait_for_pages(&mut self, follower: Option<u16>) -> bool {
        (self.asked_since, self.asking) = (None, None);
        (self.missing, self.alone) = (follower.into_iter().collect(), Vec::new());
        false
    }

    /// Asks the others. True once all have said that what they have is on two disks, or nobody more is waited for.
    fn ask(&mut self, (table, me): (&Table, u16), wires: &mut dyn Sends) -> bool {
        let asked_since = *self.asked_since.get_or_insert(self.now);
        if self.asking.as_ref().is_none_or(|asking| asking.epoch != table.epoch()) {
            let is_other = |node: &u16| *node != me && table.is_member(*node);
            let others: Vec<u16> = table.nodes().iter().map(|node| node.number).filter(is_other).collect();
            let (ring, epoch) = (ring(table), table.epoch());
            match self.asking.as_mut().filter(|asking| asking.ring == ring && asking.others == others) {
                Some(same) => same.epoch = epoch,
                None => {
                    self.next += 1;
                    let (said, ask_at) = (SortedMap::new(), self.now);
                    self.asking = Some(Asking { id: self.next, epoch, others, ring, said, ask_at });
                }
            }
        }
        let Some(asking) = &mut self.asking else { return false };
        let is_missing = |node: &&u16| !asking.said.contains_key(*node);
        self.missing = asking.others.iter().filter(is_missing).copied().collect();
        self.alone = asking.said.iter().filter(|(_, is_alone)| **is_alone).map(|(node, _)| *node).collect();
        if self.now >= asking.ask_at {
            asking.ask_at = self.now.plus_us(ASK_US);
            let (id, epoch) = (asking.id, asking.epoch);
            self.missing
                .iter()
                .for_each(|node| wires.send(*node, &PeerWord::SafeAsk { id, epoch, pages: true }));
        }
        self.missing.is_empty() || self.now.since_us(asked_since) >= PATIENCE_US
    }

    /// All that a node has is on two disks, or it is alone.
    pub fn said(&mut self, node: u16, id: u64, is_alone: bool) {
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.id == id) {
            asking.said.insert(node, is_alone);
        }
    }

    pub fn next_due(&self) -> Option<Now> {
        self.asking.as_ref().filter(|_| !self.is_leaving).map(|asking| asking.ask_at)
    }

    /// What it waits for, or went without.
    pub fn view(&self) -> Option<LeavingView> {
        let since = self.idle_since?;
        let (waits_for, alone) = (self.missing.clone(), self.alone.clone());
        let has_left = self.has_left;
        Some(LeavingView { waits_for, alone, waited_ms: self.now.since_us(since) / 1_000, has_left })
    }

    fn tell(&self, is_on: bool, health: &Health) {
        let all = "this node has left its cluster: everything is with others";
        let numbers = |nodes: &[u16]| nodes.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let but = match (is_on, self.missing.as_slice(), self.alone.as_slice()) {
            (false, [], _) => ", but for its pages; it can be stopped".to_string(),
            (true, [], []) => ", on two disks; it can be stopped".to_string(),
            (true, [], alone) => format!(
                ", and on one disk alone at node {}, as nobody follows there; it can be stopped",
                numbers(alone)
            ),
            (_, missing, _) => format!(
                ", but within {} nobody said that it is on two disks there: node {}. Keep the directory of this node \
                 until nephila cluster status at each of them is without a complaint",
                counted(PATIENCE_US / 60_000_000, "minute"),
                numbers(missing)
            ),
        };
        health.tell(Event::ClusterLeft, Vec::new(), format!("{all}{but}"));
    }
}
