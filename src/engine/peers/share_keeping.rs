use super::handing_over::HandedOver;
use super::index_asks::IndexAsks;
use super::node_files::NodeFiles;
use crate::base::{Now, SortedMap, SortedSet};
use crate::engine::inspect::peer_words::{PeerAsk, PeerTold};
use crate::engine::inspect::questions::Reply;
use crate::peer::beat::Rights;
use crate::peer::{NOBODY, Table};
use crate::proto::partition::{Partition, Partitioner, Share};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Which share the index goes by: what the table gives to this node, without what it gives away.
///
/// ```text
///   table: p is ours and is to go to B ──► index: has it URLs? ── no ──────────────► stop ──► index: go by a share without p ──► give
///                                                             └─ yes ──► handed over ─┘
/// ```
pub(super) struct ShareKeeping {
    /// Of the cluster's key; the spread is the table's.
    seed: u64,
    node: u16,
    current: Option<Arc<Share>>,
    /// Every partition of it has an owner.
    is_dealt: bool,
    /// The epoch, and how many partitions were stopped, that it was made of.
    made_of: Option<(u64, usize)>,
    setting: Option<Setting>,
    /// What the index has let go, by the node that gets it: given once nothing of it is lent.
    gifts: SortedMap<u16, Vec<Partition>>,
    /// Partitions that are to go, and are looked at for URLs.
    looking: Option<(Vec<Partition>, Receiver<Reply>)>,
    /// Partitions that have URLs after all, or were handed over to another node than they are to go to.
    still_ours: Vec<Partition>,
    /// Partitions that are to go and have URLs.
    full: Vec<Partition>,
    /// Partitions that were handed over: to whom, and where the ledger goes on with what that node does not have.
    handed: SortedMap<Partition, (u16, u64)>,
    /// What the disk has of partitions that are given, and to whom.
    kept: Vec<(Partition, u16)>,
    look_at: Now,
    give_at: Now,
}

/// A share that the index was told.
struct Setting {
    share: Arc<Share>,
    made_of: (u64, usize),
    /// What is given away once it holds, by the node that gets it.
    gifts: SortedMap<u16, Vec<Partition>>,
    answered: Receiver<Reply>,
}

/// Partitions that could not be given are looked at again after this.
const LOOK_US: u64 = 5_000_000;
/// What is lent is looked at this often while it is to be given.
const GIVE_US: u64 = 500_000;
/// After the disk refused something.
const AGAIN_US: u64 = 1_000_000;

impl ShareKeeping {
    /// `current` is what the index was opened with, `stopped` what the process before this one was to give, and to whom.
    pub fn new(
        seed: u64,
        node: u16,
        current: Option<Arc<Share>>,
        stopped: Vec<(Partition, u16)>,
    ) -> ShareKeeping {
        let (made_of, setting, looking) = (None, None, None);
        let gifts = SortedMap::new();
        ShareKeeping {
            seed,
            node,
            current,
            is_dealt: false,
            made_of,
            setting,
            gifts,
            looking,
            still_ours: Vec::new(),
            full: Vec::new(),
            // What became of it since the process before this one is not known: everything is told again.
            handed: stopped.iter().map(|&(partition, to)| (partition, (to, 0))).collect(),
            kept: stopped,
            look_at: Now::ZERO,
            give_at: Now::ZERO,
        }
    }

    /// This node has a number.
    pub fn set_node(&mut self, node: u16) {
        (self.node, self.made_of) = (node, None);
    }

    /// What the index goes by.
    pub fn current(&self) -> Option<&Arc<Share>> {
        self.current.as_ref()
    }

    /// Whether every partition has an owner: what is nobody's is not told to anybody, and must not be passed over.
    pub fn is_dealt(&self) -> bool {
        self.made_of.is_some() && self.is_dealt
    }

    /// Partitions that are to go and have URLs.
    pub fn full(&self) -> &[Partition] {
        &self.full
    }

    /// Whether the index goes by the table as it is, with nothing on its way out, and whatever is told has an owner.
    pub fn is_settled(&self, rights: &Rights) -> bool {
        let Some(table) = rights.table() else { return true };
        let goes = |partition: &Partition| table.owner(*partition) == self.node;
        let is_made = self.made_of.is_some_and(|(epoch, _)| epoch == table.epoch());
        is_made && self.is_dealt && self.setting.is_none() && !rights.stopped().iter().any(goes)
    }

    /// Another node has everything of these partitions.
    pub fn handed_over(&mut self, handed: &HandedOver, rights: &mut Rights) {
        let partitions: Vec<Partition> = handed.partitions.iter().copied().collect();
        rights.stop(&partitions);
        self.full.retain(|partition| !handed.partitions.contains(partition));
        self.handed.extend(partitions.into_iter().map(|partition| (partition, (handed.to, handed.upto))));
        self.look_at = Now::ZERO;
    }

    /// Goes on. If the index goes by another share: whose places in the ledger are to be set back.
    pub fn turn(
        &mut self,
        now: Now,
        rights: &mut Rights,
        (asks, files): (&IndexAsks, &NodeFiles),
        lent: impl FnOnce() -> Option<SortedSet<Partition>>,
    ) -> Option<Vec<SetBack>> {
        let is_changed = self.take_set(now, files);
        if !self.still_ours.is_empty() {
            rights.keep(std::mem::take(&mut self.still_ours));
        }
        let made_of = rights.table().map(|table| (table.epoch(), rights.stopped().len()));
        // What is not stopped any more is not given: the index goes by what it says before anything leaves.
        if !self.gifts.is_empty() && now >= self.give_at && self.made_of == made_of && self.setting.is_none()
        {
            self.give_at = now.plus_us(GIVE_US);
            self.give(rights, lent());
        }
        self.take_looked(rights);
        if self.setting.is_some() || now < self.look_at && self.made_of.is_none() {
            return is_changed;
        }
        let Some(table) = rights.table().cloned() else { return is_changed };
        let made_of = (table.epoch(), rights.stopped().len());
        if self.made_of != Some(made_of) {
            self.set(&table, made_of, rights, asks);
        } else if self.looking.is_none() && now >= self.look_at {
            self.look(now, &table, rights, asks);
            self.take_back(&table, rights);
        }
        is_changed
    }

    pub fn next_due(&self) -> Option<Now> {
        let look = self.setting.is_none() && self.looking.is_none() && self.look_at > Now::ZERO;
        let gives = (!self.gifts.is_empty()).then_some(self.give_at);
        look.then_some(self.look_at).into_iter().chain(gives).min()
    }

    /// Gives what nothing is lent of, and where nobody is owed a pause: who gets it need not know what was.
    fn give(&mut self, rights: &mut Rights, lent: Option<SortedSet<Partition>>) {
        let Some(lent) = lent else { return };
        for (to, partitions) in std::mem::take(&mut self.gifts) {
            let (busy, free): (Vec<Partition>, Vec<Partition>) =
                partitions.into_iter().partition(|partition| lent.contains(partition));
            if !free.is_empty() {
                rights.give(free, to);
            }
            if !busy.is_empty() {
                self.gifts.insert(to, busy);
            }
        }
    }

    fn set(&mut self, table: &Table, made_of: (u64, usize), rights: &Rights, asks: &IndexAsks) {
        let mut owners = table.owners().to_vec();
        let mut gifts: SortedMap<u16, Vec<Partition>> = SortedMap::new();
        self.handed.retain(|partition, _| rights.stopped().contains(partition));
        for &partition in rights.stopped() {
            if table.owner(partition) != self.node {
                continue;
            }
            // Without a node to go to it waits for the word that takes it back.
            let mut to = table.next_owner(partition).unwrap_or(NOBODY);
            if to != NOBODY && self.handed.get(&partition).is_some_and(|(handed_to, _)| *handed_to != to) {
                to = NOBODY;
                self.still_ours.push(partition);
            }
            owners[partition.index()] = to;
            if to != NOBODY {
                gifts.entry(to).or_default().push(partition);
            }
        }
        let partitioner = Partitioner::new(table.spread(), self.seed);
        let share = Arc::new(Share::new(partitioner, self.node, table.epoch(), &owners));
        let answered = asks.ask(PeerAsk::Share(share.clone()));
        self.setting = Some(Setting { share, made_of, gifts, answered });
    }

    fn take_set(&mut self, now: Now, files: &NodeFiles) -> Option<Vec<SetBack>> {
        let setting = self.setting.as_ref()?;
        let told = match setting.answered.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Ok(Reply::Peers(told)) => Some(*told),
            Ok(_) | Err(TryRecvError::Disconnected) => None,
        };
        let Setting { share, made_of, gifts, .. } = self.setting.take()?;
        match told {
            Some(PeerTold::Shared(Ok(Ok(())))) => {
                let set_back = self.current.as_ref().map(|before| self.set_back(before, &share));
                self.is_dealt = Partition::all().all(|partition| share.owner(partition) != NOBODY);
                (self.current, self.made_of) = (Some(share), Some(made_of));
                // A process that begins anew must not ask for what this one gave away, whatever table it finds.
                if !self.keep(&gifts, files) {
                    (self.made_of, self.look_at) = (None, now.plus_us(AGAIN_US));
                    return set_back;
                }
                self.gifts = gifts;
                Some(set_back.unwrap_or_default())
            }
            // URLs came for what was to be given.
            Some(PeerTold::Shared(Ok(Err(still_ours)))) => {
                self.still_ours.extend(still_ours.0);
                (self.made_of, self.look_at) = (None, now.plus_us(AGAIN_US));
                None
            }
            _ => {
                (self.made_of, self.look_at) = (None, now.plus_us(AGAIN_US));
                None
            }
        }
    }

    /// Keeps what is to be given, and nothing else: what was given comes back one day. False if the disk does not take it.
    fn keep(&mut self, gifts: &SortedMap<u16, Vec<Partition>>, files: &NodeFiles) -> bool {
        let of = |(to, partitions): (&u16, &Vec<Partition>)| {
            partitions.iter().map(|&partition| (partition, *to)).collect::<Vec<_>>()
        };
        let mut kept: Vec<(Partition, u16)> = gifts.iter().flat_map(of).collect();
        kept.sort_unstable();
        if kept != self.kept {
            if files.keep_stopped(kept.iter().copied()).is_err() {
                return false;
            }
            self.kept = kept;
        }
        true
    }

    /// Asks which of the partitions that are to go have no URLs.
    fn look(&mut self, now: Now, table: &Table, rights: &Rights, asks: &IndexAsks) {
        self.look_at = now.plus_us(LOOK_US);
        let is_to_go = |&partition: &Partition| {
            rights.owns(partition) && table.next_owner(partition).is_some_and(|next| next != self.node)
        };
        let to_go: Vec<Partition> = Partition::all().filter(is_to_go).collect();
        if !to_go.is_empty() {
            self.looking = Some((to_go.clone(), asks.ask(PeerAsk::Empty(to_go))));
        } else {
            self.full.clear();
        }
    }

    /// What was stopped and is not to go anywhere is asked for again, once the table says so.
    fn take_back(&self, table: &Table, rights: &mut Rights) {
        let is_left = |partition: &Partition| {
            table.owner(*partition) == self.node && table.next_owner(*partition).is_none()
        };
        let left: Vec<Partition> = rights.stopped().iter().copied().filter(is_left).collect();
        if !left.is_empty() {
            rights.keep(left);
        }
    }

    fn take_looked(&mut self, rights: &mut Rights) {
        let Some((to_go, answered)) = &mut self.looking else { return };
        match answered.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(Reply::Peers(told)) => {
                if let PeerTold::Empty(partitions) = *told {
                    rights.stop(&partitions);
                    to_go.retain(|&partition| rights.owns(partition));
                    self.full = std::mem::take(to_go);
                }
            }
            Ok(_) | Err(TryRecvError::Disconnected) => {}
        }
        self.looking = None;
    }

    /// Who is to hear again what the ledger has from where on, as the next share is another.
    fn set_back(&self, before: &Share, next: &Share) -> Vec<SetBack> {
        let mut places = SortedSet::new();
        for partition in Partition::all() {
            let (from, to) = (before.owner(partition), next.owner(partition));
            let place = match self.handed.get(&partition) {
                _ if from == to => continue,
                Some((_, upto)) if from == self.node => Place::At(*upto),
                // It had no URLs.
                None if from == self.node => continue,
                _ => Place::Of(from),
            };
            if to != NOBODY {
                places.insert(SetBack { peer: to, place });
            }
        }
        places.into_iter().collect()
    }
}

/// A peer is to hear again what the ledger has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetBack {
    pub peer: u16,
    pub place: Place,
}

/// From where on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    At(u64),
    /// Where another peer has counted to.
    Of(u16),
}
