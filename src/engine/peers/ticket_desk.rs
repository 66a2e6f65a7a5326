use super::Sends;
use super::calendar::Calendar;
use super::ticket_file::TicketFile;
use crate::base::{Now, SortedSet};
use crate::engine::inspect::loan_desk::{LentKey, LoanDesk, ShardSaid};
use crate::limits::TICKETS_PER_WORD_MAX;
use crate::peer::ticket::{Back, Grant, Keeper, Lending, Said, TicketKey, Tickets, Wait, Want};
use crate::proto::partition::{Partition, Share, Spread};
use crate::proto::peer_wire::PeerWord;
use crate::url_server::LoanWord;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Tickets of addresses, and of hosts where one has URLs at many nodes: those that the shards of this node want, from whoever
/// keeps them, and those that this node keeps.
///
/// ```text
///   shard: Want ──► WANT ──► keeper: the owner of the address's partition ──► GRANT ──► lent until …, renewed at half time
///   shard: Idle ──► BACK
/// ```
pub(super) struct TicketDesk {
    node: u16,
    calendar: Calendar,
    desk: Arc<LoanDesk>,
    tickets: Tickets<TicketKey>,
    keeper: Keeper<TicketKey>,
    /// What was lent, for the process that comes after this one.
    file: TicketFile,
    /// The node was started before, and there was no turn yet. If what was lent then is not known, nothing is lent until it is over.
    reopens: bool,
    /// What the disk refused.
    trouble: Option<io::Error>,
    /// What shards want: which shard, and the number of its Want.
    wanted: BTreeMap<TicketKey, (usize, u64)>,
    look_at: Now,
    /// What this node lends to itself, once it is kept.
    own: Vec<Grant<TicketKey>>,
    /// What is to be said, by node.
    out: BTreeMap<u16, Saying>,
}

#[derive(Default)]
struct Saying {
    wants: Vec<Want<TicketKey>>,
    grants: Vec<Grant<TicketKey>>,
    waits: Vec<Wait<TicketKey>>,
    backs: Vec<Back<TicketKey>>,
}

/// What is wanted is looked at this often.
const LOOK_US: u64 = 250_000;

impl TicketDesk {
    /// `starts` is how often this node was started: asks of an earlier process are below those of this one. Addresses are lent by
    /// the first of two rules, hosts by the second.
    pub fn new(
        desk: Arc<LoanDesk>,
        starts: u32,
        (of_addresses, of_hosts): (Lending, Lending),
        calendar: Calendar,
        file: TicketFile,
    ) -> TicketDesk {
        let mut keeper = Keeper::fresh(of_addresses);
        keeper.set_others(|key: &TicketKey| key.host().is_some(), of_hosts);
        TicketDesk {
            node: 0,
            calendar,
            desk,
            tickets: Tickets::new(u64::from(starts) << 32),
            keeper,
            file,
            reopens: starts > 1,
            trouble: None,
            wanted: BTreeMap::new(),
            look_at: Now::ZERO,
            own: Vec::new(),
            out: BTreeMap::new(),
        }
    }

    /// What keeps URLs together in this cluster: if nothing does, hosts are lent like addresses, and in parts where they have no
    /// pause.
    pub fn set_spread(&mut self, spread: Spread) {
        self.desk.set_lends_hosts(spread == Spread::Url);
        self.keeper.set_spread(spread == Spread::Url);
    }

    pub fn set_node(&mut self, node: u16) {
        self.node = node;
    }

    /// What this node alone has tickets of, and until when.
    pub fn held(&self) -> impl Iterator<Item = (&TicketKey, Now)> {
        self.tickets.held().filter(|(key, _)| self.tickets.part(key).is_none())
    }

    pub fn has_messages(&self) -> bool {
        self.desk.has_said()
    }

    pub fn next_due(&self) -> Option<Now> {
        (!self.wanted.is_empty()).then_some(self.look_at)
    }

    /// Partitions of which something is lent, or owed a pause.
    pub fn busy(&mut self, now: Now) -> Option<SortedSet<Partition>> {
        self.keeper.busy(now)
    }

    /// Lends nothing of a partition whose keeper was taken over, until what that one lent is over.
    pub fn close(&mut self, partition: Partition, now: Now) {
        self.keeper.close(partition, now);
        // Whoever comes next has to wait, too.
        self.file.drop_all();
    }

    /// Partitions that are to go to other nodes.
    pub fn set_leaving(&mut self, partitions: SortedSet<Partition>) {
        self.keeper.set_leaving(partitions);
    }

    /// Takes up, the first time, what the process before this one had lent. It is this moment now, and not one before the disk was
    /// waited for.
    pub fn reopen(&mut self, now: Now) {
        if std::mem::take(&mut self.reopens) {
            match self.file.read(now) {
                Some(known) => self.keeper.take_up(known),
                None => self.keeper.close_all(now),
            }
        }
    }

    /// Goes on. `owns` says which partitions this node may keep tickets of, until `right_until`. True if something moved.
    pub fn turn(
        &mut self,
        now: Now,
        share: Option<&Share>,
        (owns, right_until): (&dyn Fn(Partition) -> bool, Now),
        wires: &mut dyn Sends,
    ) -> bool {
        self.desk.set_right(right_until);
        let share = share.filter(|share| share.node() != 0);
        let is_news = self.desk.has_said();
        if is_news {
            self.hear(share, now);
        }
        let Some(share) = share else { return false };
        if is_news || now >= self.look_at {
            self.look_at = now.plus_us(LOOK_US);
            let keys: Vec<TicketKey> = self.wanted.keys().cloned().collect();
            for key in keys {
                if let Some(want) = self.tickets.want(&key, now) {
                    self.ask(share, want, (owns, right_until), now);
                }
            }
        }
        self.keep(now);
        self.say(wires)
    }

    /// Keeps what was lent before anybody gets it; what the disk refuses is not lent.
    fn keep(&mut self, now: Now) {
        let TicketDesk { keeper, file, own, out, trouble, .. } = self;
        let changed = keeper.take_changed();
        if keeper.is_closed(now) {
            // Whoever comes next has to wait for what is not known, too.
            file.drop_all();
        } else if !changed.is_empty()
            && let Err(cause) = file.keep(changed, || keeper.known(now), now)
        {
            own.clear();
            out.values_mut().for_each(|saying| saying.grants.clear());
            *trouble = Some(cause);
        }
        for grant in std::mem::take(own) {
            self.granted(self.node, &grant, now);
        }
    }

    pub fn take_trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }

    fn hear(&mut self, share: Option<&Share>, now: Now) {
        for (shard, said) in self.desk.take_said() {
            match said {
                ShardSaid::Begins => {
                    let of_it = self.wanted.iter().filter(|(_, (of, _))| *of == shard);
                    let keys: Vec<TicketKey> = of_it.map(|(key, _)| key.clone()).collect();
                    // What it sent last is not known.
                    for key in keys {
                        self.tickets.sent(&key, now);
                        self.give_back(share, &key, None, now);
                    }
                }
                ShardSaid::Word(LoanWord::Want { key, want }) => {
                    self.wanted.insert(key.clone(), (shard, want));
                    self.lend(&key, "", now);
                }
                ShardSaid::Word(LoanWord::Idle { key, .. })
                    if self.wanted.get(&key).is_some_and(|(of, _)| *of != shard) =>
                {
                    // Another shard has its host since, and wants it.
                }
                ShardSaid::Word(LoanWord::Idle { key, sent_ago_us, pause_us, line }) => {
                    if let Some(ago_us) = sent_ago_us {
                        self.tickets.sent(&key, Now::from_us(now.us().saturating_sub(ago_us)));
                    }
                    let line = self.calendar.to_travel(&line, now).into_bytes().into();
                    self.give_back(share, &key, Some((pause_us, line)), now);
                }
            }
        }
    }

    fn give_back(
        &mut self,
        share: Option<&Share>,
        key: &TicketKey,
        owed: Option<(u64, Box<[u8]>)>,
        now: Now,
    ) {
        self.wanted.remove(key);
        // Without a share nothing was ever granted.
        if let (Some(back), Some(share)) = (self.tickets.back(key, owed, now), share) {
            let keeper = self.keeper_of(share, key).0;
            self.bring_back(keeper, back, now);
        }
    }

    fn bring_back(&mut self, keeper: u16, back: Back<TicketKey>, now: Now) {
        match keeper == self.node {
            true => self.take_back(self.node, back, now),
            false => self.out.entry(keeper).or_default().backs.push(back),
        }
    }

    /// Keeps what a line says by this node's calendar: it may be long until the address is lent again.
    fn take_back(&mut self, node: u16, back: Back<TicketKey>, now: Now) {
        let line = String::from_utf8_lossy(&back.line);
        let line = self.calendar.to_be_read(&line, now).into_bytes().into();
        self.keeper.back(node, Back { line, ..back }, now);
    }

    fn keeper_of(&self, share: &Share, key: &TicketKey) -> (u16, Partition) {
        let partition = share.partitioner().of_key(&key.to_string());
        (share.owner(partition), partition)
    }

    fn ask(
        &mut self,
        share: &Share,
        want: Want<TicketKey>,
        keeps: (&dyn Fn(Partition) -> bool, Now),
        now: Now,
    ) {
        let (node, _) = self.keeper_of(share, &want.key);
        if node == self.node {
            let said = self.answer(share, self.node, want, keeps, now);
            return match said {
                Said::Grant(grant) => self.own.push(grant),
                Said::Wait(wait) => self.tickets.waits(&wait, now),
            };
        }
        if node != 0 {
            self.out.entry(node).or_default().wants.push(want);
        }
    }

    fn answer(
        &mut self,
        share: &Share,
        node: u16,
        want: Want<TicketKey>,
        (owns, right_until): (&dyn Fn(Partition) -> bool, Now),
        now: Now,
    ) -> Said<TicketKey> {
        let (_, partition) = self.keeper_of(share, &want.key);
        let right_until = if owns(partition) { right_until } else { Now::ZERO };
        match self.keeper.want(node, want, partition, right_until, now) {
            Said::Grant(grant) => {
                let line = self.calendar.to_travel(&String::from_utf8_lossy(&grant.line), now);
                let line = line.into_bytes().into();
                Said::Grant(Grant { line, ..grant })
            }
            wait => wait,
        }
    }

    fn granted(&mut self, keeper: u16, grant: &Grant<TicketKey>, now: Now) {
        if let Some(back) = self.tickets.granted(grant, now) {
            // Nobody wants it any more.
            return self.bring_back(keeper, back, now);
        }
        let line = self.calendar.to_be_read(&String::from_utf8_lossy(&grant.line), now);
        self.lend(&grant.key, &line, now);
    }

    /// Tells the shard that wants it what it has.
    fn lend(&mut self, key: &TicketKey, line: &str, now: Now) {
        let Some(&(shard, want)) = self.wanted.get(key) else { return };
        if let Some((due, until)) = self.tickets.window(key, now) {
            let part = self.tickets.part(key).map(|slots| u8::try_from(slots).unwrap_or(u8::MAX));
            let (key, line) = (key.clone(), line.to_string());
            self.desk.lend(shard, LentKey { key, want, due, until, part, line });
        }
    }

    // From peers ------------------------------------------------------------------------------------------

    pub fn wanted(
        &mut self,
        node: u16,
        wants: &[Want<TicketKey>],
        share: Option<&Share>,
        keeps: (&dyn Fn(Partition) -> bool, Now),
        now: Now,
    ) {
        let Some(share) = share else { return };
        for want in wants {
            match self.answer(share, node, want.clone(), keeps, now) {
                Said::Grant(grant) => self.out.entry(node).or_default().grants.push(grant),
                Said::Wait(wait) => self.out.entry(node).or_default().waits.push(wait),
            }
        }
    }

    pub fn grants(&mut self, node: u16, grants: &[Grant<TicketKey>], now: Now) {
        grants.iter().for_each(|grant| self.granted(node, grant, now));
    }

    pub fn waits(&mut self, waits: &[Wait<TicketKey>], now: Now) {
        waits.iter().for_each(|wait| self.tickets.waits(wait, now));
    }

    pub fn backs(&mut self, node: u16, backs: &[Back<TicketKey>], now: Now) {
        backs.iter().for_each(|back| self.take_back(node, back.clone(), now));
    }

    fn say(&mut self, wires: &mut dyn Sends) -> bool {
        let out = std::mem::take(&mut self.out);
        let is_said = !out.is_empty();
        for (node, Saying { wants, grants, waits, backs }) in out {
            // In this order: what is given back does not meet what was asked for after it.
            for some in backs.chunks(TICKETS_PER_WORD_MAX) {
                wires.send(node, &PeerWord::Back(some.to_vec()));
            }
            for some in wants.chunks(TICKETS_PER_WORD_MAX) {
                wires.send(node, &PeerWord::Want(some.to_vec()));
            }
            for some in grants.chunks(TICKETS_PER_WORD_MAX) {
                wires.send(node, &PeerWord::Grant(some.to_vec()));
            }
            for some in waits.chunks(TICKETS_PER_WORD_MAX) {
                wires.send(node, &PeerWord::Wait(some.to_vec()));
            }
        }
        is_said
    }
}
