use super::arriving::Arriving;
use super::calendar::Calendar;
use super::copies::Copies;
use super::copy_desk::CopyDesk;
use super::council_desk::{CouncilDesk, CouncilSaying};
use super::handing_over::HandingOver;
use super::hearsay::Hearsay;
use super::index_asks::IndexAsks;
use super::leaving::Leaving;
use super::node_files::{NodeFiles, NodeId};
use super::right_telling::RightTelling;
use super::rounds::{NodeStanding, Rounds};
use super::seen::Seen;
use super::share_keeping::ShareKeeping;
use super::ticket_desk::TicketDesk;
use super::url_post::{PostFault, UrlPost};
use super::{Introduction, Peer, PeerEvent, PeerOwner, Sends, Wires};
use crate::base::{Now, SortedMap, SortedSet, Wall, counted, shown};
use crate::engine::inspect::cluster_view::{ClusterOrder, ClusterView};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::peer::beat::{Beat, Rights};
use crate::peer::ticket::{TicketKey, Want};
use crate::peer::{Asking, Member, NOBODY, NodeState, Sponsor, Table, TableChange, TableNode, assign};
use crate::proto::partition::Partition;
use crate::proto::peer_wire::{Hello, MoveBatch, PeerWord};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a node knows of its cluster, and what it answers to its peers.
pub(super) struct PeerDesk {
    pub id: NodeId,
    pub files: NodeFiles,
    /// As it introduces itself.
    pub me: Introduction,
    pub council: CouncilDesk,
    sponsor: Sponsor,
    /// Nodes without a number, by the link that they ask on.
    asking: Vec<(Peer, u64)>,
    pub post: UrlPost,
    pub share: ShareKeeping,
    pub rounds: Rounds,
    pub tickets: TicketDesk,
    handing_over: HandingOver,
    arriving: Arriving,
    copies: CopyDesk,
    out: VecDeque<Saying>,
    /// The epoch of the table that is on disk, and that peers were told.
    kept_epoch: u64,
    /// The epoch of the latest table that a peer told.
    heard_epoch: u64,
    hearsay: Hearsay,
    /// A table that the disk did not take is kept again then.
    keep_at: Now,
    right: RightTelling,
    /// Others have what this node had: it has to begin anew.
    is_lost: bool,
    leaving: Leaving,
    /// Addresses of the table that are dialed.
    dialed: SortedSet<String>,
    /// It has got its number, and every link begins anew.
    is_renamed: bool,
    /// Peers that do not own what they are sent are sent something again then.
    paused: SortedMap<u16, Now>,
    health: Arc<Health>,
    wall: Wall,
    now: Now,
}

/// What a desk is made of.
pub(super) struct DeskParts {
    pub id: NodeId,
    pub files: NodeFiles,
    pub me: Introduction,
    pub council: CouncilDesk,
    pub post: UrlPost,
    pub share: ShareKeeping,
    pub tickets: TicketDesk,
    pub arriving: Arriving,
    pub copies: CopyDesk,
    pub health: Arc<Health>,
    pub wall: Wall,
}

/// Something to be said, once the links can be spoken on.
enum Saying {
    Table(Peer),
    /// To those who are to hear of a new one.
    TableOn,
    TableAsk(Peer),
    Council(CouncilSaying),
    Refuse(Peer, String),
    /// This node has a number now.
    Introduce,
    Beat(Beat),
}

/// A peer that goes by another table is left alone for so long.
const PAUSE_US: u64 = 1_000_000;
/// That there is a new table is said to so many others, the next ones by their numbers.
const PASSED_ON: usize = 8;
/// After the disk refused a table.
const KEEP_AGAIN_US: u64 = 1_000_000;

impl PeerDesk {
    pub fn new(parts: DeskParts) -> Result<PeerDesk, NodeError> {
        let DeskParts { id, files, me, council, post, share, tickets, arriving, copies, health, wall } =
            parts;
        let handing_over = HandingOver::new(id.starts);
        let rounds = Rounds::new(id.number);
        let leaving = Leaving::new(id.starts);
        let mut desk = PeerDesk {
            id,
            files,
            me,
            council,
            sponsor: Sponsor::default(),
            asking: Vec::new(),
            post,
            share,
            rounds,
            tickets,
            handing_over,
            arriving,
            copies,
            out: VecDeque::new(),
            kept_epoch: 0,
            heard_epoch: 0,
            hearsay: Hearsay::default(),
            keep_at: Now::ZERO,
            right: RightTelling::default(),
            is_lost: false,
            leaving,
            dialed: SortedSet::new(),
            is_renamed: false,
            paused: SortedMap::new(),
            health,
            wall,
            now: Now::ZERO,
        };
        // Without a table it waits until peers tell it one.
        if desk.id.number != 0 && desk.council.has_table() {
            desk.be_seated()?;
        }
        Ok(desk)
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        self.council.table()
    }

    /// Whether the disk has the table.
    fn is_kept(&self) -> bool {
        self.table().is_none_or(|table| table.epoch() <= self.kept_epoch)
    }

    /// Takes the seat of a node that is in the table, or makes the first table.
    fn be_seated(&mut self) -> Result<(), NodeError> {
        self.council.be_seated(&self.id, &self.me, &self.files, self.now)?;
        let number = self.id.number;
        self.rounds.set_node(number);
        self.tickets.set_node(number);
        self.share.set_node(number);
        Ok(())
    }

    // In turns --------------------------------------------------------------------------------------------

    /// A turn begins: what peers said is heard now, and not when the one before it was. Between the two the process may have stood
    /// still, and whoever beats would seem to be silent for as long.
    pub fn begin_turn(&mut self, now: Now) {
        self.now = now;
    }

    /// Goes on with everything. True if something moved.
    pub fn turn(&mut self, now: Now, wires: &mut Wires) -> bool {
        self.now = now;
        // Before anything that may wait for the disk: times of the process before this one are read by this moment.
        self.tickets.reopen(now);
        let me = self.id.number;
        self.council.hear_outside(me, now);
        let stamp_ms = self.wall.unix_ms(now);
        // Whoever beats has to know for ever that there are beats: nothing is asked before the disk has the table.
        let is_kept = self.is_kept();
        if is_kept {
            let says = self.council.tick(me, &self.files, stamp_ms, now);
            self.out.extend(says.into_iter().map(Saying::Council));
        }
        self.look_at_table(wires);
        let epoch = self.table().map_or(0, |table| table.epoch());
        self.out.extend(self.hearsay.turn(epoch, now).map(Saying::TableAsk));
        // It may have its number since.
        let me = self.id.number;
        self.council.read_table_again(me, |node| wires.peer(node).is_some(), now);
        let mut busy = !is_kept && self.is_kept();
        self.council.want_voters(me, |node| wires.peer(node).is_some(), now);
        self.leave(wires);
        let beat = self.right.turn(&self.council, self.leaving.has_left(), &self.health, now);
        self.out.extend(beat.map(Saying::Beat));
        self.hand_over(now, wires);
        busy |= self.copies.take_over(now, self.share.current(), self.post.asks());
        // By a table that the disk does not have, nothing is given and nothing taken. Before the index goes by a share with
        // what was taken over, it knows of it what the copy does.
        let is_kept = self.is_kept();
        let is_known = self.copies.is_taken_in();
        if let Some(rights) = self.council.rights_mut().filter(|_| is_kept && is_known) {
            let (tickets, means) = (&mut self.tickets, (self.post.asks(), &self.files));
            let set_back = self.share.turn(now, rights, means, || tickets.busy(now));
            if let Some(set_back) = set_back {
                self.post.deal_anew(&set_back);
                busy = true;
            }
        }
        let ended: Vec<u16> =
            self.paused.iter().filter(|(_, until)| **until <= now).map(|(node, _)| *node).collect();
        for node in ended {
            self.paused.remove(&node);
            self.post.up(node);
        }
        busy |= self.say(wires);
        let epoch = self.share.current().map_or(0, |share| share.epoch());
        let here = self.standing();
        let mut ways = Ways(wires);
        busy |= self.post.turn(now, epoch, self.share.is_dealt(), &mut ways);
        busy |= self.turn_tickets(now, &mut ways);
        let asks = self.post.asks().clone();
        busy |= self.arriving.turn(now, &asks, &mut ways);
        if let Some(table) = self.table().cloned() {
            busy |= self.copies.turn(now, (&table, self.id.number), (&asks, self.wall), &mut ways);
        }
        self.rounds.turn(now, &self.post, here, &asks, &mut ways);
        busy
    }

    /// Partitions with URLs go to those who are to have them, some at a time.
    fn hand_over(&mut self, now: Now, wires: &mut Wires) {
        let Some(rights) = self.council.rights_mut() else { return };
        let Some(table) = rights.table().cloned() else { return };
        let (asks, me, mut ways) = (self.post.asks(), self.id.number, Ways(wires));
        self.handing_over.begin(self.share.full(), &table, asks, &ways, now);
        let means = (asks, Calendar::new(self.wall));
        if let Some(handed) = self.handing_over.turn(now, (&table, me), means, &mut ways) {
            self.share.handed_over(&handed, rights);
        }
    }

    /// An operator orders something; it was judged by what this node knows.
    pub fn ordered(&mut self, order: ClusterOrder) {
        self.council.want(match order {
            ClusterOrder::Drain { node } => TableChange::Drain(node),
            ClusterOrder::Forget { node } => TableChange::Forget(node),
            ClusterOrder::Freeze => TableChange::Freeze(true),
            ClusterOrder::Thaw => TableChange::Freeze(false),
        });
    }

    /// An operator wants what there is to be on two disks, under this number. Says the last such that is.
    pub fn safe_asked(&mut self, id: u64) -> u64 {
        self.copies.safe_asked_here(id);
        self.copies.safe_told_here()
    }

    /// A node that was to hand over everything, and has, leaves. A voter stays, with nothing: its vote counts.
    fn leave(&mut self, wires: &mut Wires) {
        let me = self.id.number;
        let Some(table) = self.table().filter(|table| !table.voters().contains(&me)).cloned() else { return };
        let is_draining = table.node(me).is_some_and(|node| node.state == NodeState::Draining);
        let has_nothing = is_draining
            && table.owned_by(me).next().is_none()
            && self.copies.is_all_kept()
            && self.post.is_through();
        let has_nothing = (has_nothing, has_nothing && self.standing().is_settled);
        let (means, mut ways) = ((&mut self.copies, &*self.health), Ways(wires));
        if self.leaving.turn(self.now, (&table, me), has_nothing, means, &mut ways)
            && let Some(rights) = self.council.rights_mut()
        {
            rights.leave();
        }
    }

    /// Whether others have got what this node still goes by: without its word, so what it has queued is not its any more.
    fn is_taken_over(&mut self, table: &Table) -> bool {
        let me = self.id.number;
        let Some(share) = self.share.current().filter(|_| me != 0) else { return false };
        let is_lost = |&partition: &Partition| {
            share.node() == me && share.owns(partition) && table.owner(partition) != me
        };
        let lost = Partition::all().filter(is_lost).count();
        if lost > 0 && !self.is_lost {
            self.is_lost = true;
            self.health.fatal(NodeError::TakenOver { partitions: lost });
        }
        self.is_lost
    }

    /// Of what was taken over, nothing is lent until what its keeper may have lent is over.
    fn close_taken(&mut self, table: &Table) {
        let me = self.id.number;
        let Some(share) = self.share.current().filter(|_| self.council.new_keeper_waits()) else { return };
        let is_gone =
            |node: u16| node != NOBODY && table.node(node).is_none_or(|node| node.state == NodeState::Left);
        for partition in table.owned_by(me).filter(|&partition| is_gone(share.owner(partition))) {
            self.tickets.close(partition, self.now);
        }
    }

    fn turn_tickets(&mut self, now: Now, ways: &mut Ways<'_>) -> bool {
        let (rights, is_kept) = (self.council.rights(), self.is_kept());
        let owns = |partition| is_kept && rights.is_some_and(|rights| rights.owns(partition));
        let right_until = rights.map_or(Now::ZERO, Rights::right_until);
        let share = self.share.current().map(|share| &**share);
        if let Some(table) = self.table() {
            self.tickets.set_spread(table.spread());
        }
        let busy = self.tickets.turn(now, share, (&owns, right_until), ways);
        if let Some(cause) = self.tickets.take_trouble() {
            let text = format!("cluster/tickets: {cause}");
            self.health.tell(Event::ClusterFiles, vec![("cause", cause.to_string().into())], text);
        }
        busy
    }

    fn wanted(&mut self, node: u16, wants: &[Want<TicketKey>]) {
        let (rights, is_kept) = (self.council.rights(), self.is_kept());
        let owns = |partition| is_kept && rights.is_some_and(|rights| rights.owns(partition));
        let right_until = rights.map_or(Now::ZERO, Rights::right_until);
        let share = self.share.current().map(|share| &**share);
        self.tickets.wanted(node, wants, share, (&owns, right_until), self.now);
    }

    pub fn has_messages(&self) -> bool {
        self.tickets.has_messages() || self.council.has_answers() || self.copies.has_messages()
    }

    pub fn next_due(&self) -> Option<Now> {
        let paused = self.paused.values().min().copied();
        let post = self.post.next_due().filter(|_| self.share.is_dealt());
        let keeps = (!self.is_kept()).then_some(self.keep_at);
        let right = self.right.next_due(self.council.rights());
        let (hearsay, leaving) = (self.hearsay.next_due(), self.leaving.next_due());
        let moves = [self.handing_over.next_due(), self.arriving.next_due(), self.copies.next_due()];
        let others = [self.share.next_due(), self.rounds.next_due(), self.tickets.next_due()];
        let parts =
            [paused, post, keeps, right, hearsay, leaving].into_iter().chain(moves).chain(others).flatten();
        let parts = parts.chain(self.council.next_due(self.id.number));
        // What is due and could not be done waits for something else than the time.
        parts.filter(|due| *due > self.now).min()
    }

    /// How the cluster stands, as this node sees it.
    pub fn view(&self, wires: &Wires) -> ClusterView {
        let view = ClusterView {
            cluster: format!("{:032x}", u128::from_be_bytes(self.id.cluster)),
            node: self.id.number,
            taken_over: self.is_lost,
            copy: self.copies.view(self.now),
            takes_in: self.copies.takes_in(),
            leaving: self.leaving.view(),
            safe: self.copies.safe_told_here(),
            council: self.council.view(self.now),
            ..ClusterView::default()
        };
        match self.table() {
            Some(table) => {
                Seen { table, rounds: &self.rounds, counts: self.post.counts(), wires }.add_to(view)
            }
            None => view,
        }
    }

    /// Whether all was done everywhere a moment ago.
    pub fn is_quiet(&self) -> bool {
        self.rounds.is_quiet()
    }

    fn standing(&self) -> NodeStanding {
        let right_until = self.council.right_until();
        let left_ms = right_until.since_us(self.now) / 1_000;
        let rights = self.council.rights();
        let generation = rights.and_then(Rights::generation);
        let is_settled = rights.is_none_or(|rights| self.share.is_settled(rights));
        NodeStanding {
            is_settled: is_settled && !self.handing_over.is_at_work(),
            generation: generation.unwrap_or(0),
            epoch: self.table().map_or(0, |table| table.epoch()),
            is_standing: right_until > self.now,
            right_left_ms: u32::try_from(left_ms).unwrap_or(u32::MAX),
            copied: self.copies.bytes(),
        }
    }

    /// Takes note of a table that is news: on disk, then to the peers.
    fn look_at_table(&mut self, wires: &mut Wires) {
        let Some(table) = self.table().cloned() else { return };
        if !self.council.is_seated() {
            self.look_for_number(&table);
        }
        if let Some(rights) = self.council.rights_mut() {
            for change in self.sponsor.changes(&table) {
                rights.want(change);
            }
        }
        if table.epoch() <= self.kept_epoch || self.now < self.keep_at {
            return;
        }
        // First: a process that begins after the table is kept does not know what was lent of it.
        self.close_taken(&table);
        let aside = self.copies.set_aside(&table, self.share.current(), self.id.number);
        let kept = aside
            .map_err(|cause| (Copies::FOLDER, cause))
            .and_then(|()| self.files.keep_table(&table).map_err(|cause| ("cluster/table", cause)));
        if let Err((what, cause)) = kept {
            let text = format!("{what}: {cause}");
            self.health.tell(Event::ClusterFiles, vec![("cause", cause.to_string().into())], text);
            self.keep_at = self.now.plus_us(KEEP_AGAIN_US);
            return;
        }
        self.kept_epoch = table.epoch();
        let me = self.id.number;
        let goes = |partition: &Partition| table.next_owner(*partition).is_some_and(|next| next != me);
        self.tickets.set_leaving(table.owned_by(me).filter(goes).collect());
        if self.is_taken_over(&table) {
            return;
        }
        wires.set_epoch(table.epoch());
        self.me.epoch = table.epoch();
        let others = || table.nodes().iter().filter(|node| node.number != self.id.number);
        let members: Vec<&TableNode> = others().filter(|node| node.state != NodeState::Left).collect();
        let addresses: SortedSet<String> = members.iter().map(|node| node.address.clone()).collect();
        self.dialed.difference(&addresses).for_each(|address| wires.undial(address));
        for address in addresses.difference(&self.dialed) {
            if !wires.dial(address) {
                let text = format!("{address} is not dialed: there is no room for another node");
                self.health.tell(Event::LinksFull, vec![("peer", address.as_str().into())], text);
            }
        }
        self.dialed = addresses;
        let peers: Vec<u16> = members.iter().map(|node| node.number).collect();
        self.post.set_peers(&peers);
        for &node in peers.iter().filter(|node| !self.paused.contains_key(node)) {
            if wires.peer(node).is_some() {
                self.post.up(node);
            }
        }
        let member = |node: &TableNode| Member { node: node.number, generation: node.generation };
        let all: Vec<Member> =
            table.nodes().iter().filter(|node| node.state != NodeState::Left).map(member).collect();
        self.rounds.set_members(&all);
        self.out.push_back(Saying::TableOn);
        self.tell_table(&table);
        // The first of the members sees to it that everybody has a share.
        let first = table.nodes().iter().find(|node| node.state == NodeState::Member);
        if first.is_some_and(|node| node.number == self.id.number) && assign(&table).is_some() {
            self.council.want(TableChange::Assign);
        }
    }

    fn tell_table(&self, table: &Table) {
        let owned = table.owned_by(self.id.number).count();
        let members = table.nodes().iter().filter(|node| node.state != NodeState::Left).count();
        let epoch = table.epoch();
        // The first one deals nothing yet.
        if table.owners().iter().all(|&owner| owner == NOBODY) {
            return;
        }
        let text = format!(
            "table {epoch}: {}, {owned} of {} partitions are this node's",
            counted(members as u64, "node"),
            table.owners().len()
        );
        let fields = vec![
            ("epoch", epoch.into()),
            ("nodes", (members as u64).into()),
            ("partitions", (owned as u64).into()),
        ];
        self.health.tell(Event::TableChanged, fields, text);
    }

    /// A table has this node, which did not know its number.
    fn look_for_number(&mut self, table: &Arc<Table>) {
        let Some(node) = table.nodes().iter().find(|node| node.id == self.id.id) else { return };
        let id = NodeId { number: node.number, ..self.id.clone() };
        if let Err(cause) = self.files.keep_id(&id) {
            let text = format!("joining waits: cluster/id: {cause}");
            return self.health.tell(Event::ClusterFiles, vec![("cause", cause.to_string().into())], text);
        }
        self.id = id;
        (self.me.node, self.me.joining, self.me.spread) = (self.id.number, false, Some(table.spread()));
        if let Err(error) = self.be_seated() {
            return self.health.fatal(error);
        }
        self.out.push_back(Saying::Introduce);
        let number = self.id.number;
        let text = format!("this is node {number} of the cluster");
        self.health.tell(Event::ClusterJoined, vec![("node", u64::from(number).into())], text);
    }

    fn say(&mut self, wires: &mut Wires) -> bool {
        let busy = !self.out.is_empty();
        while let Some(saying) = self.out.pop_front() {
            match saying {
                Saying::Table(peer) => self.say_table(&[peer], wires),
                Saying::TableOn => {
                    let asking: Vec<Peer> = self.asking.iter().map(|(peer, _)| *peer).collect();
                    self.say_table(&asking, wires);
                    self.pass_on(wires);
                }
                Saying::TableAsk(peer) => {
                    let epoch_known = self.kept_epoch;
                    wires.send(peer, &PeerWord::TableAsk { epoch_known });
                }
                // A peer that is not linked does not answer, and is asked again.
                Saying::Council(CouncilSaying::Ask { to, request }) => {
                    if let Some(peer) = wires.peer(to) {
                        wires.send(peer, &request.word(0));
                    }
                }
                Saying::Council(CouncilSaying::Answer { to, id, answer }) => {
                    if let Some(peer) = wires.peer(to) {
                        wires.send(peer, &answer.word(id));
                    }
                }
                Saying::Refuse(peer, why) => {
                    wires.refuse(peer, &why);
                    self.down(peer, &why);
                }
                Saying::Beat(beat) => {
                    let node = self.id.number;
                    wires.send_all(&self.linked(wires), &PeerWord::Beat { node, beat });
                }
                Saying::Introduce => {
                    wires.introduce(self.me.clone());
                    self.is_renamed = true;
                }
            }
        }
        busy
    }

    /// Peers of the table.
    fn linked(&self, wires: &Wires) -> Vec<Peer> {
        let nodes = self.table().into_iter().flat_map(|table| table.nodes());
        nodes.filter_map(|node| wires.peer(node.number)).collect()
    }

    /// Whoever changed the table tells it to all. Who was told of it says to some that it has it, so that a change costs many nodes
    /// little, and one that is not linked with the first hears of it all the same.
    fn pass_on(&self, wires: &mut Wires) {
        let mut peers = self.linked(wires);
        if self.table().is_none_or(|table| table.epoch() > self.heard_epoch) {
            return self.say_table(&peers, wires);
        }
        let next = peers.partition_point(|peer| peer.node < self.id.number);
        peers.rotate_left(next);
        peers.truncate(PASSED_ON);
        wires.send_all(&peers, &PeerWord::TableAsk { epoch_known: self.kept_epoch });
    }

    fn say_table(&self, peers: &[Peer], wires: &mut Wires) {
        let Some(table) = self.table().filter(|_| !peers.is_empty()) else { return };
        let (epoch, bytes) = (table.epoch(), table.encode());
        wires.send_all(peers, &PeerWord::Table { epoch, bytes: bytes.as_slice().into() });
    }

    // From peers ------------------------------------------------------------------------------------------

    fn up(&mut self, peer: Peer, hello: &Hello<'_>, address: SocketAddr) {
        if hello.epoch > self.kept_epoch || peer.node == 0 {
            self.out.push_back(Saying::TableAsk(peer));
        }
        if peer.node == 0 {
            if hello.joining && self.council.is_seated() {
                let (id, address, weight) = (hello.id, hello.listen.to_string(), hello.weight);
                self.sponsor.asks(Asking { id, address, weight });
                self.asking.push((peer, id));
            }
            return;
        }
        self.is_renamed = false;
        self.post.up(peer.node);
        let text = format!("linked with node {} ({})", peer.node, shown(hello.listen, 100));
        let fields = vec![("node", u64::from(peer.node).into()), ("addr", address.to_string().into())];
        self.health.tell(Event::PeerUp, fields, text);
    }

    fn down(&mut self, peer: Peer, why: &str) {
        self.hearsay.down(peer);
        if let Some(at) = self.asking.iter().position(|(asks, _)| *asks == peer) {
            let (_, id) = self.asking.swap_remove(at);
            self.sponsor.gone(id);
        }
        if peer.node != 0 {
            self.paused.remove(&peer.node);
            self.handing_over.down(peer.node, self.post.asks());
            self.arriving.down(peer.node);
            self.copies.down(peer.node);
            self.post.down(peer.node);
            self.rounds.down(peer.node);
            if self.is_renamed {
                return;
            }
            let why = shown(why, 200);
            let text = format!("the link with node {} is down: {why}", peer.node);
            let fields = vec![("node", u64::from(peer.node).into()), ("cause", why.into())];
            self.health.tell(Event::PeerDown, fields, text);
        }
    }

    fn word(&mut self, peer: Peer, word: &PeerWord<'_>) {
        let node = peer.node;
        match word {
            PeerWord::TableAsk { epoch_known } if *epoch_known < self.kept_epoch => {
                self.out.push_back(Saying::Table(peer));
            }
            PeerWord::TableAsk { epoch_known } => {
                if self.table().is_some_and(|table| table.epoch() < *epoch_known) {
                    self.hearsay.heard(peer, *epoch_known, self.now);
                }
            }
            PeerWord::Table { epoch, bytes } => self.table_told(peer, *epoch, bytes),
            PeerWord::Beat { node, beat } => {
                self.council.heard(*node, *beat, self.now);
            }
            // Who has no number has nothing else to say.
            _ if node == 0 => {}
            PeerWord::Urls(batch) => {
                let taken = self.post.urls(node, batch);
                self.judge_post(peer, taken);
            }
            PeerWord::Counted { batch } => {
                let counted = self.post.counted(node, *batch);
                self.judge_post(peer, counted);
            }
            PeerWord::NotMine { epoch, .. } => {
                self.post.not_mine(node);
                self.paused.insert(node, self.now.plus_us(PAUSE_US));
                if *epoch > self.kept_epoch {
                    self.out.push_back(Saying::TableAsk(peer));
                }
            }
            PeerWord::Move(batch) => self.arrives(peer, batch),
            PeerWord::Moved(moved) => self.handing_over.moved(node, *moved, self.now),
            PeerWord::Copy { is_whole, batch } => self.copied_here(node, *is_whole, batch),
            PeerWord::Copied { id, batch } => self.copies.copied(node, *id, *batch),
            PeerWord::PagesAsk { .. }
            | PeerWord::PagesHeld { .. }
            | PeerWord::Pages { .. }
            | PeerWord::PagesGone { .. }
            | PeerWord::PagesUpto { .. } => {
                if let Some(table) = self.table().cloned() {
                    self.copies.pages(node, word, &table);
                }
            }
            PeerWord::VerifyAsk { .. }
            | PeerWord::Verified { .. }
            | PeerWord::SumAsk { .. }
            | PeerWord::Sum { .. } => self.copies.verify(node, word),
            PeerWord::SafeAsk { id, epoch, pages } => self.copies.safe_asked(node, (*id, *epoch), *pages),
            PeerWord::Safe { id, is_alone } => {
                self.leaving.said(node, *id, *is_alone);
                self.handing_over.said(node, *id);
            }
            PeerWord::Want(wants) => self.wanted(node, wants),
            PeerWord::Grant(grants) => self.tickets.grants(node, grants, self.now),
            PeerWord::Wait(waits) => self.tickets.waits(waits, self.now),
            PeerWord::Back(backs) => self.tickets.backs(node, backs, self.now),
            PeerWord::StatusAsk { round } => self.rounds.asked_by(node, *round),
            PeerWord::Status(status) => self.rounds.status(node, *status),
            word => {
                let says = self.council.word(node, word, (self.id.number, &self.files), self.now);
                self.out.extend(says.into_iter().map(Saying::Council));
            }
        }
    }

    /// A node has this one keep what it knows.
    fn copied_here(&mut self, node: u16, is_whole: bool, batch: &MoveBatch<'_>) {
        let when = (Calendar::new(self.wall), self.now);
        if let Some(table) = self.table().cloned() {
            self.copies.take(node, (is_whole, batch), &table, when);
        }
    }

    /// A node hands something over; only what the table has on its way from there to here is taken.
    fn arrives(&mut self, peer: Peer, batch: &MoveBatch<'_>) {
        let (me, node) = (self.id.number, peer.node);
        let Some(table) = self.table() else { return };
        let mut items = batch.items();
        let mut comes = true;
        while let Some(item) = items.next() {
            let partition = item.url.partition;
            comes &= table.owner(partition) == node && table.next_owner(partition) == Some(me);
        }
        if !comes {
            return self.out.push_back(Saying::TableAsk(peer));
        }
        if self.arriving.take(node, batch, Calendar::new(self.wall), self.now).is_err() {
            let why = "more documents at once than may be on their way".to_string();
            self.out.push_back(Saying::Refuse(peer, why));
        }
    }

    fn table_told(&mut self, peer: Peer, epoch: u64, bytes: &[u8]) {
        if self.table().is_some_and(|table| epoch <= table.epoch()) {
            return;
        }
        match Table::decode(bytes) {
            Ok(table) => {
                self.heard_epoch = self.heard_epoch.max(table.epoch());
                self.council.told(table, self.now);
            }
            Err(error) => self.out.push_back(Saying::Refuse(peer, format!("a table that is none: {error}"))),
        }
    }

    fn judge_post(&mut self, peer: Peer, taken: Result<(), PostFault>) {
        let why = match taken {
            Ok(()) => return,
            Err(PostFault::Count(fault)) => {
                format!("batch {} was counted, and {} was the last that was sent", fault.batch, fault.sent)
            }
            Err(PostFault::Flood) => "more batches of URLs than may be uncounted".to_string(),
        };
        self.out.push_back(Saying::Refuse(peer, why));
    }
}

impl PeerOwner for PeerDesk {
    fn judge(&mut self, hello: &Hello<'_>) -> Result<(), String> {
        let Some(known) = self.table().and_then(|table| table.node(hello.node)) else { return Ok(()) };
        match known.id == hello.id {
            true => Ok(()),
            false => {
                Err(format!("node {} has another disk here: each node has a number of its own", hello.node))
            }
        }
    }

    fn take(&mut self, event: PeerEvent<'_>) {
        match event {
            PeerEvent::Up { peer, hello, address } => self.up(peer, &hello, address),
            PeerEvent::Word { peer, word } => self.word(peer, &word),
            PeerEvent::Down { peer, why } => self.down(peer, why),
            PeerEvent::Refused { address, why, by_us } => {
                let (address, why) = (shown(address, 100), shown(why, 400));
                let text = match by_us {
                    true => format!("{address} is refused: {why}"),
                    false => format!("{address} refuses this node: {why}"),
                };
                let fields = vec![("addr", address.into()), ("cause", why.into())];
                self.health.tell(Event::PeerRefused, fields, text);
            }
        }
    }
}

/// The links, by the numbers of nodes.
struct Ways<'w>(&'w mut Wires);

impl Sends for Ways<'_> {
    fn send(&mut self, node: u16, word: &PeerWord<'_>) {
        if let Some(peer) = self.0.peer(node) {
            self.0.send(peer, word);
        }
    }

    fn is_linked(&self, node: u16) -> bool {
        self.0.peer(node).is_some()
    }

    fn has_room(&self, node: u16) -> bool {
        self.0.peer(node).is_some_and(|peer| self.0.has_room(peer))
    }
}

/// Of a node that begins: nothing is told to peers before it.
pub(super) fn post_of(asks: IndexAsks, cursors: Vec<(u16, u64)>, ledger_end: u64) -> UrlPost {
    UrlPost::new(crate::peer::exchange::Exchange::new(cursors, ledger_end), asks)
}
