use super::Sends;
use crate::base::{Now, SortedMap, counted, shown};
use crate::engine::inspect::verify_view::{ShortView, VerifiedNode, VerifyView};
use crate::limits::PEER_ADDRESS_BYTES_MAX;
use crate::peer::{NOBODY, NodeState, Table, TableNode};
use crate::proto::peer_wire::{PeerWord, ShortKind, Shortfall, StoreName, Verified};
use xxhash_rust::xxh3::xxh3_64;

/// All nodes of a cluster, asked by one of them whether what they have is as it was promised.
pub(super) struct Inquiry {
    id: u64,
    me: u16,
    begun_at: Now,
    asked: SortedMap<u16, AskedNode>,
    /// Those that go by another table are asked again then, so many times more.
    again_at: Option<Now>,
    tries: u32,
    is_done: bool,
}

struct AskedNode {
    address: String,
    told: Option<Verified>,
    /// When it said something last; nothing before it was asked.
    heard_at: Option<Now>,
    is_away: bool,
}

/// A node that is not linked has so long to be.
const LINKED_US: u64 = 5_000_000;
/// A node that was asked says this often how far it is, or it is away.
const HEARD_US: u64 = 30_000_000;
/// A table that was changed a moment ago is known everywhere after this.
const AGAIN_US: u64 = 1_000_000;
const TRIES: u32 = 5;

impl Inquiry {
    pub fn new(id: u64, (table, me): (&Table, u16), now: Now) -> Inquiry {
        let asked = |node: &TableNode| {
            let address = shown(&node.address, PEER_ADDRESS_BYTES_MAX);
            (node.number, AskedNode { address, told: None, heard_at: None, is_away: false })
        };
        let members = table.nodes().iter().filter(|node| node.state != NodeState::Left);
        let asked = members.map(asked).collect();
        Inquiry { id, me, begun_at: now, asked, again_at: None, tries: 0, is_done: false }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }

    pub fn next_due(&self) -> Option<Now> {
        let waits = |node: &AskedNode| !node.is_over();
        let node = |node: &AskedNode| {
            node.heard_at.map_or(self.begun_at.plus_us(LINKED_US), |at| at.plus_us(HEARD_US))
        };
        let nodes = self.asked.values().filter(|node| waits(node)).map(node).min();
        nodes.into_iter().chain(self.again_at).min()
    }

    /// Asks whoever was not asked yet. True if this node is one of them.
    pub fn turn(&mut self, now: Now, table: &Table, wires: &mut dyn Sends) -> bool {
        let (id, me, begun_at) = (self.id, self.me, self.begun_at);
        let mut is_asked = false;
        for (&number, node) in &mut self.asked {
            match node.heard_at {
                None if node.is_away => {}
                None if number == me => (node.heard_at, is_asked) = (Some(now), true),
                None if wires.is_linked(number) => {
                    node.heard_at = Some(now);
                    wires.send(number, &PeerWord::VerifyAsk { id, copies: true });
                }
                None => node.is_away = now.since_us(begun_at) >= LINKED_US,
                Some(at) => node.is_away |= !node.is_over() && now.since_us(at) >= HEARD_US,
            }
        }
        if self.asked.values().all(AskedNode::is_over) {
            self.end(now, table, wires);
        }
        is_asked
    }

    /// All have told what they found, or are away. A table that is just being told to everybody is no fault.
    fn end(&mut self, now: Now, table: &Table, wires: &mut dyn Sends) {
        if self.again_at.is_some_and(|at| now < at) {
            return;
        }
        let mine = (table.epoch(), digest(table));
        let others: Vec<u16> = self
            .asked
            .iter()
            .filter(|(number, node)| **number != self.me && !node.is_away && node.table() != mine)
            .map(|(number, _)| *number)
            .collect();
        self.is_done = others.is_empty() || self.tries >= TRIES;
        if !self.is_done {
            self.tries += 1;
            self.again_at = Some(now.plus_us(AGAIN_US));
            for number in others {
                wires.send(number, &PeerWord::VerifyAsk { id: self.id, copies: false });
            }
        }
    }

    /// A node tells how far it is.
    pub fn told(&mut self, from: u16, id: u64, verified: &Verified, now: Now) {
        let node = self.asked.get_mut(&from).filter(|node| id == self.id && !node.is_away);
        let Some(node) = node else { return };
        node.heard_at = Some(now);
        match &mut node.told {
            // It has told what it found: this is of its table.
            Some(told) if told.is_done => (told.epoch, told.table) = (verified.epoch, verified.table),
            told => *told = Some(verified.clone()),
        }
    }

    pub fn down(&mut self, from: u16) {
        if let Some(node) = self.asked.get_mut(&from).filter(|node| !node.is_over()) {
            node.is_away |= node.heard_at.is_some();
        }
    }

    /// What is known by now.
    pub fn view(&self, table: &Table) -> VerifyView {
        let hex = |digest: u64| format!("{digest:016x}");
        let node = |(number, node): (&u16, &AskedNode)| {
            let told = node.told.clone().unwrap_or_default();
            VerifiedNode {
                node: *number,
                address: node.address.clone(),
                answered: told.is_done && !node.is_away,
                epoch: told.epoch,
                table: hex(told.table),
                follower: told.follower,
                segments: told.segments,
                bytes: told.bytes,
                documents: told.documents,
                kept: told.kept,
            }
        };
        VerifyView {
            id: self.id,
            done: self.is_done,
            node: self.me,
            epoch: table.epoch(),
            table: hex(digest(table)),
            nodes: self.asked.iter().map(node).collect(),
            short: if self.is_done { self.short(table) } else { Vec::new() },
        }
    }

    fn short(&self, table: &Table) -> Vec<ShortView> {
        let mut short = Vec::new();
        for (&number, node) in &self.asked {
            short.extend(self.short_of(number, node, table));
        }
        let is_there = |owner: u16| self.asked.get(&owner).is_some_and(|node| !node.is_away);
        let mut nobodys: SortedMap<u16, u64> = SortedMap::new();
        for &owner in table.owners().iter().filter(|owner| !is_there(**owner)) {
            *nobodys.entry(owner).or_default() += 1;
        }
        short.extend(nobodys.into_iter().map(|(owner, count)| ownerless(owner, count)));
        short
    }

    fn short_of(&self, number: u16, node: &AskedNode, table: &Table) -> Vec<ShortView> {
        if node.is_away {
            return vec![short_view(
                number,
                "away",
                format!("node {number} at {} did not answer", node.address),
                "start it there with nephila node; what it has was not compared".to_string(),
            )];
        }
        let (mut short, told) = (Vec::new(), node.told.clone().unwrap_or_default());
        let (mine, other) = ((table.epoch(), digest(table)), node.table());
        if mine != other {
            short.push(short_view(
                number,
                "table",
                format!(
                    "node {number} goes by table {} ({:016x}), and node {} by table {} ({:016x})",
                    other.0, other.1, self.me, mine.0, mine.1
                ),
                format!("start node {number} again, so that it is told the table anew"),
            ));
        }
        short.extend(told.short.iter().map(|short| told_short(number, told.follower, short)));
        if told.more > 0 {
            let what = format!("node {number} found {} more", counted(told.more, "shortfall"));
            let mend = "mend the others first, and verify again".to_string();
            short.push(short_view(number, "more", what, mend));
        }
        short
    }
}

impl AskedNode {
    fn is_over(&self) -> bool {
        self.is_away || self.told.as_ref().is_some_and(|told| told.is_done)
    }

    fn table(&self) -> (u64, u64) {
        self.told.as_ref().map_or((0, 0), |told| (told.epoch, told.table))
    }
}

/// The digest of the bytes of a table.
pub(super) fn digest(table: &Table) -> u64 {
    xxh3_64(&table.encode())
}

fn short_view(node: u16, kind: &str, what: String, mend: String) -> ShortView {
    ShortView { node, kind: kind.to_string(), what, mend }
}

fn ownerless(owner: u16, count: u64) -> ShortView {
    let partitions = counted(count, "partition");
    let are = if count == 1 { "is" } else { "are" };
    let (what, mend) = match owner {
        NOBODY => (
            format!("{partitions} {are} nobody's"),
            "nephila cluster status says who is needed to deal them out".to_string(),
        ),
        owner => (
            format!("{partitions} {are} node {owner}'s, which is not there"),
            "start it again, or wait until it is taken over; without a council, forget it".to_string(),
        ),
    };
    short_view(owner, "partitions", what, mend)
}

/// What a node tells, in words.
fn told_short(node: u16, follower: u16, short: &Shortfall) -> ShortView {
    let Shortfall { kind, store, segment } = *short;
    let file = format!("segments/{segment:010}-*");
    let (here, there) = match store {
        StoreName::OWN => (file.clone(), format!("copies/{node}/{file}")),
        StoreName { node: gone, count } => {
            (format!("copies/{gone}.{count}.pages/{file}"), format!("copies/{node}/{gone}.{count}/{file}"))
        }
    };
    let whose = match store {
        StoreName::OWN => format!("node {node}"),
        StoreName { node: gone, .. } => format!("node {gone}, whose pages node {node} keeps,"),
    };
    let anew = format!("start node {follower} again: it gets it anew from node {node}");
    let (what, mend) = match kind {
        ShortKind::CopyDiffers => (
            format!("the copy of segment {segment} of {whose} at node {follower} has other bytes"),
            format!("remove {there} in the directory of node {follower}, and {anew}"),
        ),
        ShortKind::CopyMissing => {
            (format!("the copy of segment {segment} of {whose} is missing at node {follower}: {there}"), anew)
        }
        ShortKind::CopyUnreadable => (
            format!("the disk of node {follower} does not give {there}, a copy of node {node}"),
            format!("see to that disk, remove the file, and {anew}"),
        ),
        ShortKind::Damaged | ShortKind::Unreadable => {
            let is = if kind == ShortKind::Damaged { "is damaged" } else { "cannot be read" };
            let mend = match follower {
                0 => "there is no copy: nephila store verify names the pages that are lost".to_string(),
                _ => format!("stop node {node}, and put {there} of node {follower} in its place"),
            };
            (format!("{here} of node {node} {is}"), mend)
        }
        ShortKind::KnowledgeDiffers | ShortKind::KnowledgeMissing => {
            let is = if kind == ShortKind::KnowledgeDiffers {
                "is not what it was told"
            } else {
                "is not all there"
            };
            (
                format!("what node {follower} knows of node {node} {is}: copies/{node}/known"),
                format!("start node {node} again: a process that begins makes that copy anew"),
            )
        }
        ShortKind::KnowledgeUnreadable => (
            format!("the disk of node {follower} does not give copies/{node}/known"),
            format!("see to that disk, and start node {node} again: it makes that copy anew"),
        ),
        ShortKind::PagesBehind => (
            format!("node {follower} has not got all pages of node {node}"),
            format!(
                "nephila cluster status at node {node} says since when; node {follower} needs room on its disk"
            ),
        ),
        ShortKind::KnowledgeBehind => (
            format!("node {follower} does not know all that node {node} does"),
            format!(
                "nephila cluster status at node {node} says since when; node {follower} needs room on its disk"
            ),
        ),
        ShortKind::NoAnswer => (
            format!(
                "the copy of node {node} could not be compared: the node that has it did not answer node {node}"
            ),
            "start that node, or see to the link between the two, and verify again".to_string(),
        ),
    };
    short_view(node, kind.name(), what, mend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::partition::Spread;

    /// Node 2 is linked; what it was asked.
    #[derive(Default)]
    struct Line(Vec<(u16, bool)>);

    impl Sends for Line {
        fn send(&mut self, node: u16, word: &PeerWord<'_>) {
            let PeerWord::VerifyAsk { id: 7, copies } = word else { panic!("{word:?}") };
            self.0.push((node, *copies));
        }

        fn is_linked(&self, node: u16) -> bool {
            node == 2
        }

        fn has_room(&self, _: u16) -> bool {
            true
        }
    }

    fn table(nodes: &[u16]) -> Table {
        let node = |&number: &u16| TableNode {
            number,
            id: u64::from(number),
            generation: 1,
            address: format!("192.0.2.{number}:7174"),
            weight: 1,
            state: NodeState::Member,
        };
        Table::first(nodes.iter().map(node).collect(), vec![1], Spread::Domain, 9).unwrap()
    }

    fn found(table: &Table) -> Verified {
        Verified { is_done: true, epoch: table.epoch(), table: digest(table), ..Verified::default() }
    }

    fn kinds(inquiry: &Inquiry, table: &Table) -> Vec<(u16, String)> {
        assert!(inquiry.is_done());
        inquiry.view(table).short.into_iter().map(|short| (short.node, short.kind)).collect()
    }

    const AT: fn(u64) -> Now = |s| Now::from_us(s * 1_000_000);

    #[test]
    fn who_does_not_answer_is_named_and_so_is_what_has_no_owner() {
        let (table, mut line) = (table(&[1, 2, 3]), Line::default());
        let mut inquiry = Inquiry::new(7, (&table, 1), AT(0));
        assert!(inquiry.turn(AT(0), &table, &mut line), "this node is one of them");
        assert!(!inquiry.turn(AT(1), &table, &mut line) && line.0 == [(2, true)], "each is asked once");
        inquiry.told(1, 7, &found(&table), AT(1));
        inquiry.told(2, 8, &found(&table), AT(1));
        inquiry.told(2, 7, &Verified { is_done: false, ..found(&table) }, AT(20));
        inquiry.turn(AT(49), &table, &mut line);
        assert!(!inquiry.is_done() && !inquiry.view(&table).done, "it is at work");
        inquiry.turn(AT(50), &table, &mut line);
        let nobodys = (0, "partitions".to_string());
        assert_eq!(kinds(&inquiry, &table), [(2, "away".to_string()), (3, "away".to_string()), nobodys]);
        let line = inquiry.view(&table).short[0].line();
        assert!(line.starts_with("node 2 at 192.0.2.2:7174 did not answer (start it "), "{line}");
    }

    #[test]
    fn a_table_that_is_being_told_is_no_fault_and_one_that_stays_another_is() {
        let (other, table) = (table(&[1]), table(&[1, 2]));
        for comes_round in [true, false] {
            let mut line = Line::default();
            let mut inquiry = Inquiry::new(7, (&table, 1), AT(0));
            inquiry.turn(AT(0), &table, &mut line);
            inquiry.told(1, 7, &found(&table), AT(0));
            let short = vec![Shortfall { segment: 4, ..Shortfall::of(ShortKind::CopyMissing) }];
            inquiry.told(2, 7, &Verified { follower: 1, short, ..found(&other) }, AT(0));
            let mut s = 0;
            while !inquiry.is_done() {
                s += 1;
                assert!(s < 20, "it ends");
                inquiry.turn(AT(s), &table, &mut line);
                let by = if comes_round && s > 2 { &table } else { &other };
                inquiry.told(2, 7, &found(by), AT(s));
            }
            let is_asked_again = line.0[1..].iter().all(|asked| *asked == (2, false)) && line.0.len() > 1;
            assert!(is_asked_again, "{:?}", line.0);
            let mut expected = vec![(2, "copy_missing".to_string()), (0, "partitions".to_string())];
            if !comes_round {
                expected.insert(0, (2, "table".to_string()));
            }
            assert_eq!(kinds(&inquiry, &table), expected);
        }
    }
}
