use super::Introduction;
use super::node_files::{NodeFiles, NodeId};
use super::outside::Outside;
use crate::base::{Now, Rng, SortedMap, shown};
use crate::engine::inspect::cluster_view::CouncilView;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError};
use crate::peer::beat::{Beat, Doubt, Rights, Timing};
use crate::peer::council::{Action, Council, Seat};
use crate::peer::register::{Acceptor, Answer, Pace, Request};
use crate::peer::{NodeState, Table, TableChange, TableNode, name_at_start, table_at_start, voters_of};
use crate::proto::partition::Partition;
use crate::proto::peer_wire::PeerWord;
use std::collections::VecDeque;
use std::sync::Arc;

/// The council as a node takes part in it: the table and the rights, with the voters or with a council outside of the nodes.
pub(super) struct CouncilDesk {
    timing: Timing,
    /// Whether there are to be takeovers at all.
    takes_over: bool,
    /// Of a node that has a number.
    council: Option<Council>,
    /// Who keeps the registers, if nodes do not.
    outside: Option<Outside>,
    /// Of a node without a number: the table as it was told.
    told: Option<Arc<Table>>,
    /// The first table, if this node makes it.
    founding: Option<Table>,
    /// Others are asked to vote again then.
    grow_at: Now,
    /// The table is looked at again then, if a node of it is away: it may have left, and told nobody.
    look_at: Now,
    health: Arc<Health>,
    rng: Rng,
}

/// What it is made of.
pub(super) struct CouncilParts {
    pub timing: Timing,
    pub takes_over: bool,
    pub outside: Option<Outside>,
    /// The table that is on disk.
    pub told: Option<Table>,
    pub founding: Option<Table>,
    pub health: Arc<Health>,
    pub seed: u64,
}

/// Something about a register that is to be said to another node.
pub(super) enum CouncilSaying {
    Ask { to: u16, request: Request },
    Answer { to: u16, id: u64, answer: Answer },
}

/// Voters are asked again after this.
const PACE: Pace = Pace { resend_us: 500_000, backoff_us: 50_000 };
/// From one look at the table to the next, while a node of it is away: so long, and up to twice as long.
const LOOK_US: u64 = 10_000_000;
/// From one attempt to have three voters to the next.
const GROW_US: u64 = 10_000_000;

impl CouncilDesk {
    pub fn new(parts: CouncilParts) -> CouncilDesk {
        let CouncilParts { timing, takes_over, outside, told, founding, health, seed } = parts;
        CouncilDesk {
            timing,
            takes_over,
            council: None,
            outside,
            told: told.map(Arc::new),
            founding,
            grow_at: Now::ZERO,
            look_at: Now::ZERO,
            health,
            rng: Rng::new(seed),
        }
    }

    /// Whether there is a table, or it is made here. Without, a node waits until peers tell it one.
    pub fn has_table(&self) -> bool {
        self.told.is_some() || self.founding.is_some()
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        self.rights().and_then(Rights::table).or(self.told.as_ref())
    }

    /// Whether this node has a number, and takes part.
    pub fn is_seated(&self) -> bool {
        self.council.is_some()
    }

    pub fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    pub fn rights(&self) -> Option<&Rights> {
        self.council.as_ref().map(Council::rights)
    }

    pub fn rights_mut(&mut self) -> Option<&mut Rights> {
        self.council.as_mut().map(Council::rights_mut)
    }

    /// Until when hosts of this node's partitions may be asked.
    pub fn right_until(&self) -> Now {
        self.rights().map_or(Now::ZERO, Rights::right_until)
    }

    /// Whether who takes over lends nothing until what was lent is over.
    pub fn new_keeper_waits(&self) -> bool {
        self.timing.new_keeper_waits()
    }

    /// Wants the table to be changed.
    pub fn want(&mut self, change: TableChange) {
        if let Some(rights) = self.rights_mut() {
            rights.want(change);
        }
    }

    /// Takes the seat of a node that is in the table, or makes the first table.
    pub fn be_seated(
        &mut self,
        id: &NodeId,
        me: &Introduction,
        files: &NodeFiles,
        now: Now,
    ) -> Result<(), NodeError> {
        let number = id.number;
        let me = TableNode {
            number,
            id: id.id,
            generation: 0,
            address: me.listen.clone(),
            weight: me.weight,
            state: NodeState::Member,
        };
        let founding = self.founding.take().filter(|_| self.told.is_none());
        let registers = files.registers().map_err(|error| NodeError::Cluster(error.to_string()))?;
        let registers = SortedMap::from_iter(registers);
        let told = self.told.take().map(Arc::unwrap_or_clone);
        self.told = table_at_start(number, told, &registers).map(Arc::new);
        let Some(table) = self.told.as_deref().or(founding.as_ref()) else {
            let text = "cluster/table is missing: start it with --join, so that it is told again";
            return Err(NodeError::Cluster(text.to_string()));
        };
        let seat = Seat {
            node: number,
            id: id.id,
            start: id.starts,
            voters: voters_of(table),
            pace: PACE,
            patience_us: self.timing.patience_us(),
        };
        let name = name_at_start((number, id.id), table, &registers);
        let acceptor = self.outside.is_none().then(|| Acceptor::open(name, registers));
        let rights = Rights::new(me, self.timing, founding);
        let mut council = Council::new(seat, rights, acceptor, Rng::new(self.rng.next_u64()));
        if let Some(table) = &self.told {
            council.told(table.clone(), now);
        }
        let stopped = files.stopped().map_err(|error| NodeError::Cluster(error.to_string()))?;
        let stopped: Vec<Partition> = stopped.into_iter().map(|(partition, _)| partition).collect();
        council.rights_mut().stop(&stopped);
        self.council = Some(council);
        Ok(())
    }

    // In turns --------------------------------------------------------------------------------------------

    /// Goes on; what is promised is kept before it is said.
    pub fn tick(&mut self, me: u16, files: &NodeFiles, stamp_ms: u64, now: Now) -> Vec<CouncilSaying> {
        let mut actions = Vec::new();
        if let Some(council) = &mut self.council {
            council.tick(now, stamp_ms, &mut actions);
        }
        self.act(actions, (me, 0), files, now)
    }

    /// Takes what a council outside of the nodes says, and tells how it does.
    pub fn hear_outside(&mut self, me: u16, now: Now) {
        let Some(outside) = &mut self.outside else { return };
        while let Some((register, outcome)) = outside.take(now) {
            if let Some(council) = &mut self.council {
                council.decided(register, &outcome, now);
            }
        }
        outside.tell(now, &self.health);
        let Some(rights) = self.rights() else { return };
        let table = rights.table().filter(|_| rights.is_anothers());
        let text = match (table, rights.doubt()) {
            (Some(table), _) => {
                let address = table.nodes().iter().find(|node| node.state != NodeState::Left);
                format!(
                    "etcd has a table of this cluster already, in which node {me} is another (join it with --join {}, or make a new cluster: without --key, in another --data)",
                    address.map_or("HOST:PORT".to_string(), |node| shown(&node.address, 200)),
                )
            }
            (None, Some(doubt)) => {
                let what = match doubt {
                    Doubt::Empty => "no table of this cluster, though there is one",
                    Doubt::Earlier => "an earlier table of this cluster than there is",
                    Doubt::Unreadable => "something else in the place of this cluster's table",
                };
                format!(
                    "etcd has {what}: it is another etcd, or has lost what it had (name the one that the other nodes go by with --council)"
                )
            }
            (None, None) => return,
        };
        self.health.fatal(NodeError::Cluster(text));
    }

    /// The sole voter gets two others to vote with it, once there are that many: a majority can say that a node is gone.
    pub fn want_voters(&mut self, me: u16, is_linked: impl Fn(u16) -> bool, now: Now) {
        let Some(council) = self.council.as_mut().filter(|_| self.takes_over) else { return };
        let Some(table) = council.rights().table().filter(|table| table.voters() == [me]) else { return };
        if now < self.grow_at || table.frozen() {
            return;
        }
        self.grow_at = now.plus_us(GROW_US);
        let others = table.nodes().iter().filter(|node| node.state != NodeState::Left && node.number != me);
        // One that never beat would be silent for ever: it is back, or forgotten, before there are beats.
        if !others.clone().all(|node| is_linked(node.number)) {
            return;
        }
        let is_able = |node: &&TableNode| node.state == NodeState::Member;
        let others: Vec<u16> = others.filter(is_able).map(|node| node.number).take(2).collect();
        if let [one, other] = others[..] {
            let mut voters = [me, one, other];
            voters.sort_unstable();
            council.rights_mut().want(TableChange::Voters(voters));
        }
    }

    /// Whoever changes the table tells the others, unless it is stopped on the way. Nobody is asked while all are there.
    pub fn read_table_again(&mut self, me: u16, is_linked: impl Fn(u16) -> bool, now: Now) {
        if now < self.look_at {
            return;
        }
        self.look_at = now.plus_us(LOOK_US + self.rng.below(LOOK_US));
        let is_away =
            |node: &TableNode| node.state != NodeState::Left && node.number != me && !is_linked(node.number);
        let is_short = self.table().is_some_and(|table| table.nodes().iter().any(is_away));
        if let Some(rights) = self.rights_mut().filter(|_| is_short) {
            rights.look_again();
        }
    }

    pub fn has_answers(&self) -> bool {
        self.outside.as_ref().is_some_and(Outside::has_answers)
    }

    pub fn next_due(&self, me: u16) -> impl Iterator<Item = Now> {
        let is_sole = self.table().is_some_and(|table| self.takes_over && table.voters() == [me]);
        let council = self.council.as_ref().and_then(Council::next_due);
        let outside = self.outside.as_ref().and_then(Outside::next_due);
        let looks = self.is_seated().then_some(self.look_at);
        [council, outside, looks, is_sole.then_some(self.grow_at)].into_iter().flatten()
    }

    /// How a council outside of the nodes does.
    pub fn view(&self, now: Now) -> Option<CouncilView> {
        self.outside.as_ref().map(|outside| outside.view(now))
    }

    // From peers ------------------------------------------------------------------------------------------

    /// Another node has a table.
    pub fn told(&mut self, table: Table, now: Now) {
        match &mut self.council {
            Some(council) => council.told(Arc::new(table), now),
            None => {
                let is_news = self.told.as_ref().is_none_or(|told| told.epoch() < table.epoch());
                if is_news {
                    self.told = Some(Arc::new(table));
                }
            }
        }
    }

    /// Another node has renewed its right.
    pub fn heard(&mut self, node: u16, beat: Beat, now: Now) {
        if let Some(council) = &mut self.council {
            council.heard(node, beat, now);
        }
    }

    /// A word about a register.
    pub fn word(
        &mut self,
        node: u16,
        word: &PeerWord<'_>,
        (me, files): (u16, &NodeFiles),
        now: Now,
    ) -> Vec<CouncilSaying> {
        let Some(council) = &mut self.council else { return Vec::new() };
        let (mut actions, mut of) = (Vec::new(), 0);
        if let Some((id, request)) = Request::of(word) {
            of = id;
            council.asked(node, request, now, &mut actions);
        } else if let Some((_, answer)) = Answer::of(word) {
            council.answered(node, answer, now, &mut actions);
        }
        self.act(actions, (me, of), files, now)
    }

    /// Does what the council says, in its order. `of` is the question that is answered.
    fn act(
        &mut self,
        actions: Vec<Action>,
        (me, of): (u16, u64),
        files: &NodeFiles,
        now: Now,
    ) -> Vec<CouncilSaying> {
        let mut actions = VecDeque::from(actions);
        let mut says = Vec::new();
        while let Some(action) = actions.pop_front() {
            let mut more = Vec::new();
            match action {
                Action::Keep { register, kept } => {
                    if let Err(cause) = files.keep_register(register, &kept) {
                        // What it promised is more than it would remember: it says nothing of it.
                        self.lose_vote(&cause.to_string());
                        return says;
                    }
                }
                Action::Ask { to, request } if to == me => {
                    if let Some(council) = &mut self.council {
                        council.asked(to, request, now, &mut more);
                    }
                }
                Action::Answer { to, answer } if to == me => {
                    if let Some(council) = &mut self.council {
                        council.answered(to, answer, now, &mut more);
                    }
                }
                Action::Ask { to, request } => says.push(CouncilSaying::Ask { to, request }),
                Action::Answer { to, answer } => says.push(CouncilSaying::Answer { to, id: of, answer }),
                Action::Change(wish) => {
                    if let Some(outside) = &mut self.outside {
                        outside.ask(wish, now);
                    }
                }
            }
            for (at, action) in more.into_iter().enumerate() {
                actions.insert(at, action);
            }
        }
        says
    }

    fn lose_vote(&mut self, cause: &str) {
        if let Some(council) = &mut self.council {
            council.lose_vote();
        }
        let text = format!(
            "this node has no vote until it is started again, as its disk did not take what it promised: {cause}"
        );
        self.health.tell(Event::VoteLost, vec![("cause", cause.into())], text);
    }
}
