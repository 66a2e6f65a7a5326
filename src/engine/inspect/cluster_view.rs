use crate::base::counted;
use crate::engine::inspect::verify_view::VerifyReport;
use crate::limits::PARTITIONS;
use crate::proto::partition::{Partition, Share};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a cluster stands, as one of its nodes sees it. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterView {
    /// The cluster's id, as its key file has it.
    pub cluster: String,
    /// Who tells it; 0 until it has a number.
    pub node: u16,
    /// Of the table.
    pub epoch: u64,
    /// What keeps URLs together on one node.
    pub spread: String,
    /// "frozen": nothing moves without its owner's word. "council": a majority of voters decides. "etcd": an etcd does, and
    /// nobody votes.
    pub mode: String,
    pub voters: Vec<u16>,
    /// All is done everywhere, and everything that was sent is counted: so it was at the end of the last round but one.
    pub ready: bool,
    /// The round in which all nodes are asked how far they are. Two that begin after something was told know of it.
    pub round: u64,
    pub nodes: Vec<NodeView>,
    /// Partitions that are on their way to another node.
    pub moving: u64,
    /// URLs that came from other nodes, and of those the ones that were new.
    pub received: u64,
    pub received_new: u64,
    /// An operator froze the table: nobody is taken over, and nothing is dealt anew.
    pub frozen: bool,
    /// Other nodes have what this one had: it is about to begin anew.
    pub taken_over: bool,
    /// Who has a copy of what the node that tells knows; missing if nobody is to.
    pub copy: Option<CopyView>,
    /// The node whose copy the node that tells takes in, as it has taken it over; 0 for none.
    pub takes_in: u16,
    /// The council, if it is outside of the nodes.
    pub council: Option<CouncilView>,
    /// The node that tells has handed over everything: what it waits for before it leaves.
    pub leaving: Option<LeavingView>,
    /// What the node that tells had when it was asked for it to be safe under this number is on two disks; without anybody who could
    /// have a copy, on its own.
    pub safe: u64,
}

/// A node that has handed over everything, and leaves once that is on two other disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeavingView {
    /// Nodes that have not said that what they have is on two disks; if it has left, those that it went without.
    pub waits_for: Vec<u16>,
    /// Nodes that have nobody who could have a copy.
    pub alone: Vec<u16>,
    /// Since it has nothing any more.
    pub waited_ms: u64,
    pub has_left: bool,
}

/// A council outside of the nodes, as the node that tells knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CouncilView {
    /// "etcd".
    pub kind: String,
    pub endpoints: Vec<String>,
    /// It answered so long ago; missing if it never did.
    pub answered_ms: Option<u64>,
    /// Why it does not answer; empty if it does.
    pub fault: String,
}

/// A copy of what a node has, on the disk of the next one on the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyView {
    pub node: u16,
    /// Both parts are.
    pub in_step: bool,
    /// URLs, what became of them, and what hosts are owed.
    pub knowledge: CopyPart,
    pub pages: CopyPart,
    /// Bytes that were sent.
    pub bytes: u64,
}

/// How far one part of a copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyPart {
    /// It was whole at some time.
    pub was_whole: bool,
    /// It has everything, but for the last seconds.
    pub in_step: bool,
    /// Everything that there was so long ago is there; if it never was whole, since when it is made.
    pub behind_ms: u64,
}

/// One node of it. What it told is of a moment ago, and missing if no link with it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeView {
    pub number: u16,
    pub address: String,
    pub weight: u16,
    /// In the table: "member", "draining" or "left".
    pub membership: String,
    /// A link stands, or it is the node that tells.
    pub linked: bool,
    /// There is a council of nodes, and it never renewed a right there: nobody can say that it is gone but an operator.
    pub never_beat: bool,
    pub partitions: u64,
    pub told: Option<NodeTold>,
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTold {
    /// "joining", "standing", "crawling", "ready_to_serve", "draining", "left" or "fenced".
    pub state: String,
    pub epoch: u64,
    pub pending: u64,
    pub open: u64,
    pub pages: u64,
    pub sent: u64,
    pub counted: u64,
    pub received: u64,
    pub outbox: u64,
    /// Bytes of the copy that another node has of what it knows.
    pub copied: u64,
    pub right_left_ms: u32,
}

/// Who owns a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnerView {
    pub url: String,
    pub partition: u16,
    /// 0 for nobody.
    pub node: u16,
    /// Where that node is; empty for nobody.
    pub address: String,
    /// It is the node that tells.
    pub here: bool,
    /// Of the table that says so.
    pub epoch: u64,
}

/// A cluster as one of its nodes tells of it beside other things. As it travels; names and units stay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterLine {
    pub node: u16,
    pub nodes: u64,
    /// Of the nodes, those that a link stands to, with this one.
    pub linked: u64,
    pub partitions: u64,
    pub epoch: u64,
    pub mode: String,
    pub ready: bool,
    /// What is still to be told to other nodes.
    pub outbox: u64,
}

impl NodeView {
    /// Whether it has handed over everything, and goes: a voter stays.
    pub fn is_about_to_leave(&self, voters: &[u16]) -> bool {
        self.membership == "draining" && self.partitions == 0 && !voters.contains(&self.number)
    }
}

impl ClusterView {
    /// Those who have not left.
    pub fn members(&self) -> impl Iterator<Item = &NodeView> {
        self.nodes.iter().filter(|node| node.membership != "left")
    }

    pub fn line(&self) -> ClusterLine {
        let here = self.nodes.iter().find(|node| node.number == self.node);
        ClusterLine {
            node: self.node,
            nodes: self.members().count() as u64,
            linked: self.members().filter(|node| node.linked).count() as u64,
            partitions: here.map_or(0, |node| node.partitions),
            epoch: self.epoch,
            mode: self.mode.clone(),
            ready: self.ready,
            outbox: here.and_then(|node| node.told.as_ref()).map_or(0, |told| told.outbox),
        }
    }
}

impl ClusterLine {
    /// In one sentence.
    pub fn said(&self) -> String {
        let ClusterLine { node, nodes, linked, partitions, epoch, mode, .. } = self;
        if *epoch == 0 {
            return "none has taken this node in yet".to_string();
        }
        if *node == 0 {
            return format!("of {}; this node has no number yet", counted(*nodes, "node"));
        }
        let ready = if self.ready { "ready: all is done everywhere" } else { "not ready" };
        let outbox = match self.outbox {
            0 => String::new(),
            urls => format!(", {} to be told to others", counted(urls, "URL")),
        };
        format!(
            "node {node} of {nodes} ({linked} linked), {partitions} of {PARTITIONS} partitions, epoch {epoch}, {mode}{outbox}; {ready}"
        )
    }
}

/// What an operator orders. As it travels: `{"do":"drain","node":3}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum ClusterOrder {
    /// A node hands over what it has.
    Drain {
        node: u16,
    },
    /// A node will not come again: what it had goes to others.
    Forget {
        node: u16,
    },
    /// Nobody is taken over, and nothing is dealt anew.
    Freeze,
    Thaw,
}

/// Why an order is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderFault {
    AlreadySo(String),
    NotNow(String),
}

impl ClusterView {
    /// Whether an order can be carried out, as far as this node can tell.
    pub fn judge(&self, order: ClusterOrder) -> Result<(), OrderFault> {
        let not_now = |why: String| Err(OrderFault::NotNow(why));
        let already = |why: String| Err(OrderFault::AlreadySo(why));
        if self.epoch == 0 {
            return not_now("this node is not taken in by a cluster yet".to_string());
        }
        let known = |number: u16| {
            let numbers = self.members().map(|node| node.number.to_string()).collect::<Vec<_>>().join(", ");
            let why = || OrderFault::NotNow(format!("there is no node {number}: the nodes are {numbers}"));
            self.nodes.iter().find(|node| node.number == number).ok_or_else(why)
        };
        match order {
            ClusterOrder::Freeze if self.frozen => already("the table is frozen already".to_string()),
            ClusterOrder::Thaw if !self.frozen => already("the table is not frozen".to_string()),
            ClusterOrder::Freeze | ClusterOrder::Thaw => Ok(()),
            ClusterOrder::Drain { node } => match known(node)?.membership.as_str() {
                "left" => already(format!("node {node} has left")),
                "draining" => already(format!("node {node} hands over what it has already")),
                _ if self.frozen => {
                    not_now("the table is frozen: nephila cluster thaw comes first".to_string())
                }
                _ if !self.nodes.iter().any(|other| other.number != node && other.membership == "member") => {
                    not_now(format!("node {node} is the only one: nobody could take what it has"))
                }
                _ => Ok(()),
            },
            ClusterOrder::Forget { node } => match known(node)? {
                known if known.membership == "left" => already(format!("node {node} has left")),
                known if known.linked => {
                    not_now(format!("node {node} is linked, and asks hosts: drain it, or stop it first"))
                }
                known if self.voters.len() != 1 && !known.never_beat => not_now(format!(
                    "node {node} is taken over by itself once it was silent for --takeover: there is nothing to forget"
                )),
                _ if self.voters == [node] => {
                    not_now(format!("node {node} keeps the table: nothing can be changed without it"))
                }
                _ => Ok(()),
            },
        }
    }
}

/// The same, for other threads to look at; and what operators order.
#[derive(Clone, Default)]
pub struct ClusterReport {
    told: Arc<Mutex<Told>>,
    orders: Arc<Mutex<Vec<ClusterOrder>>>,
    verify: VerifyReport,
    /// How often somebody asked for what there is to be safe.
    safe_asked: Arc<AtomicU64>,
}

type Told = (Arc<ClusterView>, Option<Arc<Share>>);
/// Orders that nobody has taken yet.
const ORDERS_MAX: usize = 64;

impl ClusterReport {
    pub fn get(&self) -> Arc<ClusterView> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// Who owns a URL in normal form; `None` until there is a table.
    pub fn owner(&self, url: &str) -> Option<OwnerView> {
        let held = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let share = held.1.as_ref().filter(|_| held.0.epoch > 0)?;
        let partition: Partition = share.partition_of(url);
        let (node, epoch) = (share.owner(partition), share.epoch());
        let known = held.0.nodes.iter().find(|known| known.number == node);
        let address = known.map_or(String::new(), |known| known.address.clone());
        let here = node != 0 && node == share.node();
        Some(OwnerView { url: url.to_string(), partition: partition.get(), node, address, here, epoch })
    }

    /// Whether all is as promised, to be asked for and looked at.
    pub fn verify(&self) -> &VerifyReport {
        &self.verify
    }

    /// Asks for what there is to be on two disks; it is when [`ClusterView::safe`] is this number or a later one.
    pub fn ask_safe(&self) -> u64 {
        1 + self.safe_asked.fetch_add(1, Ordering::AcqRel)
    }

    pub(crate) fn safe_asked(&self) -> u64 {
        self.safe_asked.load(Ordering::Acquire)
    }

    /// Orders something; it is done when the table says so.
    pub fn order(&self, order: ClusterOrder) -> Result<(), OrderFault> {
        self.get().judge(order)?;
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.len() >= ORDERS_MAX {
            return Err(OrderFault::NotNow("too many orders wait: try again in a moment".to_string()));
        }
        orders.push(order);
        Ok(())
    }

    pub(crate) fn take_orders(&self) -> Vec<ClusterOrder> {
        std::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, view: ClusterView, share: Option<Arc<Share>>) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = (Arc::new(view), share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::partition::{Partitioner, Spread};

    fn node(number: u16, membership: &str, linked: bool) -> NodeView {
        let (address, membership) = (format!("10.0.0.{number}:7174"), membership.to_string());
        NodeView { number, address, membership, linked, partitions: 2_048, ..NodeView::default() }
    }

    fn view() -> ClusterView {
        let nodes = vec![node(1, "member", true), node(2, "member", false), node(3, "left", false)];
        ClusterView { node: 1, epoch: 7, mode: "frozen".to_string(), nodes, ..ClusterView::default() }
    }

    #[test]
    fn a_line_counts_who_is_there() {
        let line = view().line();
        assert_eq!((line.nodes, line.linked, line.partitions), (2, 1, 2_048));
        assert_eq!(
            line.said(),
            "node 1 of 2 (1 linked), 2048 of 4096 partitions, epoch 7, frozen; not ready"
        );
        assert_eq!(ClusterView::default().line().said(), "none has taken this node in yet");
        let asks = ClusterView { node: 0, ..view() };
        assert_eq!(asks.line().said(), "of 2 nodes; this node has no number yet");
    }

    #[test]
    fn orders_that_cannot_be_carried_out_are_refused_with_their_reason() {
        let mut view = ClusterView { voters: vec![1], ..view() };
        let why = |view: &ClusterView, order| match view.judge(order) {
            Ok(()) => String::new(),
            Err(OrderFault::AlreadySo(why) | OrderFault::NotNow(why)) => why,
        };
        let drain = |node| ClusterOrder::Drain { node };
        let forget = |node| ClusterOrder::Forget { node };
        assert_eq!(why(&view, drain(1)), "");
        assert_eq!(why(&view, drain(9)), "there is no node 9: the nodes are 1, 2");
        assert_eq!(why(&view, drain(3)), "node 3 has left");
        assert_eq!(why(&view, forget(2)), "");
        assert!(why(&view, forget(1)).contains("is linked"));
        assert_eq!(why(&view, ClusterOrder::Thaw), "the table is not frozen");
        view.nodes[1].membership = "draining".to_string();
        assert!(why(&view, drain(1)).contains("is the only one"), "the other one hands over, too");
        assert!(matches!(view.judge(drain(2)), Err(OrderFault::AlreadySo(_))));
        let council = ClusterView { voters: vec![1, 2, 4], ..view.clone() };
        assert!(why(&council, forget(2)).contains("by itself"));
        let mut unborn = council.clone();
        unborn.nodes[1].never_beat = true;
        assert_eq!(why(&unborn, forget(2)), "", "also of a voter: its disk votes when it is back");
        let frozen = ClusterView { frozen: true, ..view };
        assert!(why(&frozen, drain(1)).contains("thaw"));
        assert!(why(&ClusterView::default(), ClusterOrder::Freeze).contains("not taken in"));
    }

    #[test]
    fn an_owner_has_an_address_and_nobody_has_none() {
        let report = ClusterReport::default();
        assert_eq!(report.owner("http://a.test/"), None, "there is no table yet");
        let partitioner = Partitioner::new(Spread::Host, 1);
        for (owner, address) in [(2, "10.0.0.2:7174"), (0, "")] {
            let share = Arc::new(Share::new(partitioner, 1, 7, &[owner; PARTITIONS]));
            report.set(view(), Some(share.clone()));
            let found = report.owner("http://a.test/").unwrap();
            assert_eq!((found.node, &*found.address, found.epoch), (owner, address, 7));
            assert_eq!(found.partition, share.partition_of("http://a.test/").get());
            // A node that joins goes by a share of its own before it has a table.
            report.set(ClusterView::default(), Some(share));
            assert_eq!(report.owner("http://a.test/"), None);
        }
    }
}
