//! All of it for one node: which partitions it may ask for, and until when.

use super::{Beat, Doubt, Holder, TableWriter, Timing, Watch};
use crate::base::{Now, Rng, SortedSet};
use crate::peer::register::{Change, Outcome, Register};
use crate::peer::table::{NodeState, Table, TableNode};
use crate::peer::table_change::TableChange;
use crate::proto::partition::Partition;
use std::sync::Arc;

/// What is to be asked of a register. There is one question to each at a time, and each is answered once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub register: Register,
    pub change: Change,
}

/// The rights of a node. A partition is asked for only while the table gives it to this node's own generation, it is not on its
/// way to another, and the right of the generation is not over.
#[derive(Clone, Debug)]
pub struct Rights {
    me: TableNode,
    holder: Holder,
    watch: Watch,
    writer: TableWriter,
    /// Partitions that are handed over, or were offered without an answer yet.
    stopped: SortedSet<Partition>,
    /// It wants to be in the table no more.
    leaves: bool,
}

impl Rights {
    /// `me` is this node as it wants to be in the table; `founding` the first table, for the node that makes it.
    pub fn new(me: TableNode, timing: Timing, founding: Option<Table>) -> Rights {
        let watch = Watch::new(me.number, timing);
        let (holder, writer) = (Holder::new(timing), TableWriter::new(timing, founding));
        Rights { me, holder, watch, writer, stopped: SortedSet::new(), leaves: false }
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        self.writer.table()
    }

    /// The node's own beat, to be told to the others.
    pub fn beat(&self) -> Option<Beat> {
        self.holder.beat()
    }

    pub fn generation(&self) -> Option<u32> {
        self.holder.generation()
    }

    /// Partitions that this node has stopped asking for, though they may be its own.
    pub fn stopped(&self) -> &SortedSet<Partition> {
        &self.stopped
    }

    /// When the right of this node ends, for partitions that it has a right to: the one number that a gate compares with.
    pub fn right_until(&self) -> Now {
        match self.standing() {
            Some(table) if has_one_voter(table) => Now::NEVER,
            // A register that never told its table may be another cluster's, or a new one.
            Some(table) if table.is_outside() && !self.writer.is_confirmed() => Now::ZERO,
            Some(_) => self.holder.right_until(),
            None => Now::ZERO,
        }
    }

    /// Whether a partition may be asked for until [`Rights::right_until`].
    pub fn owns(&self, partition: Partition) -> bool {
        self.standing().is_some_and(|table| table.owner(partition) == self.me.number)
            && !self.stopped.contains(&partition)
    }

    /// Whether the number of this node is another's by the table: it has nothing to ask for.
    pub fn is_anothers(&self) -> bool {
        let known = self.writer.table().and_then(|table| table.node(self.me.number));
        known.is_some_and(|known| known.id != self.me.id)
    }

    /// What is wrong with the register of the table.
    pub fn doubt(&self) -> Option<Doubt> {
        self.writer.doubt()
    }

    pub fn silent_us(&self, node: u16, now: Now) -> Option<u64> {
        self.watch.silent_us(node, now)
    }

    /// The table, if it knows this node in the generation that is open; with one voter there are none.
    fn standing(&self) -> Option<&Table> {
        let table = self.writer.table()?;
        let known = table.node(self.me.number).filter(|known| known.id == self.me.id)?;
        let is_open = has_one_voter(table) || Some(known.generation) == self.holder.generation();
        (is_open && known.state != NodeState::Left).then_some(table.as_ref())
    }

    /// Takes the beat of another node, as gossip tells it.
    pub fn heard(&mut self, node: u16, beat: Beat, now: Now, rng: &mut Rng) {
        self.watch.heard(node, beat, now, rng);
    }

    /// Takes a table that was in the register, as gossip tells it.
    pub fn told(&mut self, table: Arc<Table>) {
        self.writer.told(table);
    }

    /// Reads the table, as somebody may have changed it and told nobody.
    pub fn look_again(&mut self) {
        self.writer.look_again();
    }

    /// Stops asking for partitions: the first step of handing them over. They are asked for again after [`Rights::keep`] only.
    pub fn stop(&mut self, partitions: &[Partition]) {
        self.stopped.extend(partitions);
    }

    /// Gives partitions away that were stopped and handed over. False if too many changes wait: they stay stopped.
    pub fn give(&mut self, partitions: Vec<Partition>, to: u16) -> bool {
        self.stop(&partitions);
        self.writer.want(TableChange::Give { partitions, from: self.me.number, to })
    }

    /// Takes partitions back that were stopped, with whatever was to be given together with them. They are asked for again once
    /// the table says so in a later epoch, so that no swap that gives them away can land any more. False if too many changes
    /// wait: they stay stopped.
    pub fn keep(&mut self, mut partitions: Vec<Partition>) -> bool {
        let overlaps = |given: &[Partition]| given.iter().any(|partition| partitions.contains(partition));
        let gone = self.writer.forget(
            |change| matches!(change, TableChange::Give { partitions: given, .. } if overlaps(given)),
        );
        for change in gone {
            if let TableChange::Give { partitions: given, .. } = change {
                partitions.extend(given);
            }
        }
        partitions.sort_unstable();
        partitions.dedup();
        self.writer.want(TableChange::Keep { partitions, owner: self.me.number })
    }

    /// Has nothing and goes, for as long as the process runs.
    pub fn leave(&mut self) {
        self.leaves = true;
        self.writer.want(TableChange::Leave(self.me.number));
    }

    /// Wants any other change of the table.
    pub fn want(&mut self, change: TableChange) -> bool {
        self.writer.want(change)
    }

    /// What is to be asked of which registers. `stamp_ms` is the calendar's time, to be told with a takeover.
    pub fn tick(&mut self, now: Now, stamp_ms: u64) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.is_anothers() {
            return wishes;
        }
        let mut wish = |register, change| wishes.push(Wish { register, change });
        let table = self.writer.table().cloned();
        let beats = table.as_ref().is_some_and(|table| !has_one_voter(table));
        if beats && let Some(change) = self.holder.tick(now) {
            wish(Register::Beat(self.me.number), change);
        }
        if let Some(table) = table.as_ref().filter(|_| !beats && !self.leaves) {
            self.join_by_word(table);
        }
        if let (Some(table), Some(generation)) = (table.filter(|_| beats), self.holder.generation()) {
            for (node, change) in self.watch.tick(&table, now) {
                wish(Register::Beat(node), change);
            }
            let known = table.node(self.me.number);
            if known.is_none_or(|known| known.generation < generation) {
                let draining = known.is_some_and(|known| known.state == NodeState::Draining);
                let state = if draining { NodeState::Draining } else { NodeState::Member };
                self.writer.want(TableChange::Join(TableNode { generation, state, ..self.me.clone() }));
            }
            // Only who has the right itself takes from others.
            if self.standing().is_some() && now < self.holder.right_until() {
                for takeover in self.watch.takeovers(&table, now, stamp_ms) {
                    self.writer.forget(|change| same_takeover(change, &takeover));
                    self.writer.want(takeover);
                }
            }
        }
        if let Some(change) = self.writer.founds().or_else(|| self.writer.tick(now)) {
            wish(Register::Table, change);
        }
        self.settle();
        wishes
    }

    /// Takes the outcome of a wish.
    pub fn answered(&mut self, register: Register, outcome: &Outcome, now: Now, rng: &mut Rng) {
        match register {
            Register::Beat(node) if node == self.me.number => {
                if self.holder.answered(outcome, now) {
                    // What was offered under a generation that has ended is settled by the swap that joins again.
                    self.writer.forget(|_| true);
                    self.stopped.clear();
                }
            }
            Register::Beat(node) => self.watch.answered(node, outcome, now, rng),
            Register::Table => {
                let (generation, stopped) = (self.holder.generation(), &self.stopped);
                self.writer.answered(outcome, now, |change| still_wanted(change, generation, stopped));
                self.settle();
            }
        }
    }

    /// When to call [`Rights::tick`] at the latest; the beats of others are looked at whenever it is called.
    pub fn next_due(&self) -> Option<Now> {
        let beats = self.writer.table().is_some_and(|table| !has_one_voter(table));
        let beat = self.holder.next_due().filter(|_| beats);
        beat.into_iter().chain(self.writer.next_due()).min()
    }

    /// With one voter: this node is in the table, with the address that it has.
    fn join_by_word(&mut self, table: &Table) {
        let me = match table.node(self.me.number) {
            Some(known) if known.state == NodeState::Left => {
                TableNode { state: NodeState::Member, ..self.me.clone() }
            }
            Some(known) => TableNode { generation: known.generation, state: known.state, ..self.me.clone() },
            None => self.me.clone(),
        };
        if table.node(self.me.number) != Some(&me) {
            self.writer.want(TableChange::Join(me));
        }
    }

    fn settle(&mut self) {
        let finished = self.writer.take_finished();
        let is_over = !finished.is_empty();
        for change in finished {
            if let TableChange::Give { partitions, from, .. } | TableChange::Keep { partitions, owner: from } =
                change
                && from == self.me.number
            {
                for partition in partitions {
                    self.stopped.remove(&partition);
                }
            }
        }
        if is_over {
            // A gift that was wanted while its partitions were being taken back: they are asked for again.
            let (generation, stopped) = (self.holder.generation(), &self.stopped);
            let is_gift = |change: &TableChange| matches!(change, TableChange::Give { .. });
            self.writer.forget(|change| is_gift(change) && !still_wanted(change, generation, stopped));
        }
    }
}

/// With one voter there is no majority that could say a silent node is gone: nothing moves without its owner's word, and a
/// right does not end. Nobody beats then, and who never beat cannot be sealed: a node that does not know yet that there are more
/// voters keeps what it has.
fn has_one_voter(table: &Table) -> bool {
    table.voters().len() == 1
}

fn same_takeover(one: &TableChange, other: &TableChange) -> bool {
    match (one, other) {
        (TableChange::TakeOver { node: one, .. }, TableChange::TakeOver { node: other, .. }) => one == other,
        _ => false,
    }
}

/// What a swap was for may have gone while it was under way: a join of a generation that has ended, a gift of partitions that are
/// asked for again since.
fn still_wanted(change: &TableChange, generation: Option<u32>, stopped: &SortedSet<Partition>) -> bool {
    match change {
        TableChange::Join(node) => Some(node.generation) == generation,
        TableChange::Give { partitions, .. } => {
            partitions.iter().all(|partition| stopped.contains(partition))
        }
        // Others may be better to be asked by now.
        TableChange::Voters(_) => false,
        _ => true,
    }
}
