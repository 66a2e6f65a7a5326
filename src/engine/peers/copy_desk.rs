use super::Sends;
use super::calendar::Calendar;
use super::copies::Copies;
use super::copying::Copying;
use super::follower::Behind;
use super::index_asks::IndexAsks;
use super::page_folders::PageFolders;
use super::page_keeping::PageKeeping;
use super::pages_in::PagesIn;
use super::pages_out::PagesOut;
use super::returned::Removed;
use super::taking_over::{Taken, TakingOver};
use super::verify_desk::{Places, VerifyDesk};
use super::verifying::Originals;
use super::vouching::Vouching;
use crate::base::{Now, Wall, counted};
use crate::engine::inspect::cluster_view::{CopyPart, CopyView};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::Health;
use crate::peer::{NOBODY, NodeState, Table};
use crate::proto::partition::{Partition, Share};
use crate::proto::peer_wire::{MoveBatch, PeerWord};
use std::io;
use std::sync::Arc;

/// What outlasts a node: its knowledge on the disk of the next one on the ring, and that of others on this disk.
///
/// ```text
///   COPY ──► copies/NODE ──► the table says that NODE is gone, and its partitions are ours ──► index ──► a share with them
/// ```
pub(super) struct CopyDesk {
    copying: Copying,
    copies: Copies,
    pages_out: PagesOut,
    pages_in: PagesIn,
    folders: PageFolders,
    taking_over: TakingOver,
    verify: VerifyDesk,
    vouching: Vouching,
    /// A table came, or something was taken over: copies may have to be looked at.
    is_news: bool,
    /// Copies that do not go on here, and whose.
    refused: Vec<(u16, u64)>,
    /// Of nodes whose knowledge the index has.
    keeping: PageKeeping,
    /// The follower that has a whole copy, if others were told so.
    whole_at: Option<u16>,
    /// The last trouble that was told, and when.
    told: Option<(String, Now)>,
    health: Arc<Health>,
    now: Now,
}

/// What a desk is made of.
pub(super) struct CopyParts {
    pub copying: Copying,
    pub copies: Copies,
    pub pages_out: PagesOut,
    pub folders: PageFolders,
    /// Of the disk, for pages of this node alone.
    pub reserve_bytes: u64,
    pub taking_over: TakingOver,
    pub verify: VerifyDesk,
    pub health: Arc<Health>,
}

/// The same trouble is told again after this.
const TOLD_US: u64 = 60_000_000;
/// A follower that has not got something new for so long is behind.
const BEHIND_US: u64 = 5_000_000;

impl CopyDesk {
    pub fn new(parts: CopyParts) -> CopyDesk {
        let CopyParts { copying, copies, pages_out, folders, reserve_bytes, taking_over, verify, health } =
            parts;
        let keeping = PageKeeping::new(folders.clone());
        CopyDesk {
            copying,
            copies,
            pages_out,
            pages_in: PagesIn::new(folders.clone(), reserve_bytes),
            folders,
            taking_over,
            verify,
            vouching: Vouching::default(),
            is_news: true,
            refused: Vec::new(),
            keeping,
            whole_at: None,
            told: None,
            health,
            now: Now::ZERO,
        }
    }

    /// Sends what this node knows, and keeps what others do. True if something moved.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Arc<Table>, u16),
        (asks, wall): (&IndexAsks, Wall),
        wires: &mut dyn Sends,
    ) -> bool {
        self.now = now;
        for (node, id) in self.refused.drain(..) {
            wires.send(node, &PeerWord::Copied { id, batch: 0 });
        }
        self.vouching.begin(now, table.epoch(), &mut self.copying, &mut self.pages_out);
        let means = (asks, Calendar::new(wall));
        let mut busy = self.copying.turn(now, (table, me), means, wires);
        let kept = self.copies.turn(now, wires);
        busy |= kept.unwrap_or_else(|cause| self.failed(&cause));
        let sent = self.pages_out.turn(now, (table, me), wall, wires);
        busy |= sent.unwrap_or_else(|cause| self.failed_to_read(&cause));
        self.vouching.turn(&self.copying, &self.pages_out, wires);
        let kept = self.keeping.turn(now);
        busy |= kept.unwrap_or_else(|cause| self.failed(&cause));
        self.tell_former((table, me), wires);
        let CopyDesk { copying, pages_out, folders, .. } = self;
        let originals = Originals { copying, pages_out, folders };
        busy |= self.verify.turn(now, (table, me), originals, wires);
        match self.verify.take_removed() {
            Some(Ok(removed)) => self.tell_removed(removed),
            Some(Err(cause)) => drop(self.failed(&cause)),
            None => {}
        }
        let kept = self.pages_in.turn(now, wires);
        busy | kept.unwrap_or_else(|cause| self.failed(&cause))
    }

    fn tell_removed(&self, Removed { node, segments }: Removed) {
        let what = counted(segments, "segment");
        let text = format!(
            "{what} of node {node} that were kept here are removed: it is back with them, and its copy has them"
        );
        let fields = vec![("node", u64::from(node).into()), ("segments", segments.into())];
        self.health.tell(Event::KeptRemoved, fields, text);
    }

    /// Nodes that were followers before have copies that are not needed, once there is a whole one.
    fn tell_former(&mut self, (table, me): (&Table, u16), wires: &mut dyn Sends) {
        let is_whole = self.copying.behind().was_whole && self.pages_out.behind().was_whole;
        let follower = self.copying.follower().filter(|_| is_whole);
        if follower.is_none() || self.whole_at == follower {
            return;
        }
        self.whole_at = follower;
        for node in table.nodes().iter().map(|node| node.number) {
            if node != me && Some(node) != follower && wires.is_linked(node) {
                wires.send(node, &PeerWord::PagesAsk { id: 0, stores: Vec::new() });
            }
        }
    }

    /// A node has this one keep what it knows. Whoever is not the next one on the ring by this table may be so by that of the node.
    pub fn take(
        &mut self,
        node: u16,
        word: (bool, &MoveBatch<'_>),
        table: &Table,
        (calendar, now): (Calendar, Now),
    ) {
        if is_gone(table, node) {
            return self.refused.push((node, word.1.id));
        }
        match self.copies.take(node, word, calendar, now) {
            Ok(true) => {}
            Ok(false) => self.refused.push((node, word.1.id)),
            Err(cause) => {
                self.refused.push((node, word.1.id));
                self.failed(&cause);
            }
        }
    }

    /// A node has something of what this one knows on its disk.
    pub fn copied(&mut self, node: u16, id: u64, batch: u64) {
        self.copying.copied(node, id, batch);
    }

    /// A node has this one keep its pages, or says how far it is with those of this node.
    pub fn pages(&mut self, node: u16, word: &PeerWord<'_>, table: &Table) {
        if let PeerWord::PagesHeld { id, is_all, is_refused, held } = word {
            return self.pages_out.held(node, *id, (*is_all, *is_refused), held);
        }
        // What was its copy is this node's now; or this one does not know yet that it is back.
        if is_gone(table, node) {
            if let PeerWord::PagesAsk { id, .. } = word {
                self.pages_in.refuse(node, *id);
            }
            return;
        }
        let kept = match word {
            // It has a whole copy elsewhere.
            PeerWord::PagesAsk { stores, .. } if stores.is_empty() => {
                self.pages_in.end(node);
                self.copies.let_go(node)
            }
            PeerWord::PagesAsk { id, stores } => {
                // Before anything comes that the former process did not have.
                let forgotten = self.copies.forget_upto_before(node, start_of(*id));
                forgotten.and_then(|()| self.pages_in.asked(node, *id, stores))
            }
            PeerWord::Pages { id, store, piece } => self.pages_in.take(node, *id, *store, piece),
            // Until it is said again that all are here: what was let go may be what others came in the place of.
            PeerWord::PagesGone { id, store, segments } if self.pages_in.is_of(node, *id) => {
                let forgotten = self.copies.forget_upto(node);
                forgotten.and_then(|()| self.pages_in.gone(node, *id, *store, segments))
            }
            PeerWord::PagesUpto { id, unix_s } if self.pages_in.is_of(node, *id) => {
                self.copies.keep_upto(node, start_of(*id), *unix_s)
            }
            _ => Ok(()),
        };
        if let Err(cause) = kept {
            self.failed(&cause);
        }
    }

    /// A node wants to know when all that this one has is on a second disk.
    pub fn safe_asked(&mut self, node: u16, id_and_epoch: (u64, u64), pages: bool) {
        self.vouching.asked(node, id_and_epoch, pages);
    }

    /// The same for an operator here.
    pub fn safe_asked_here(&mut self, id: u64) {
        self.vouching.asked_here(id);
    }

    /// The last question of an operator that is answered.
    pub fn safe_told_here(&self) -> u64 {
        self.vouching.told_here()
    }

    /// A node wants to know whether all is as promised, or says so.
    pub fn verify(&mut self, node: u16, word: &PeerWord<'_>) {
        let CopyDesk { copies, folders, pages_out, .. } = self;
        self.verify.word(node, word, Places { copies, folders, pages_out });
    }

    pub fn has_messages(&self) -> bool {
        self.verify.has_messages()
    }

    /// Whether another node is to have a copy.
    pub fn is_on(&self) -> bool {
        self.pages_out.is_on()
    }

    /// Who is to have one.
    pub fn follower(&self) -> Option<u16> {
        self.copying.follower()
    }

    /// Whether somebody has all pages that this node had then, or nobody is to.
    pub fn has_pages_since(&self, at: Now) -> bool {
        self.pages_out.is_safe_since(at)
    }

    /// This node leaves, and others have everything that it knows.
    pub fn end(&mut self) {
        self.copying.end();
    }

    pub fn down(&mut self, node: u16) {
        self.copying.down(node);
        self.verify.down(node);
        self.vouching.down(node);
        self.pages_out.down(node);
    }

    pub fn next_due(&self) -> Option<Now> {
        let knowledge = [self.copying.next_due(), self.copies.next_due(), self.taking_over.next_due()];
        let pages = [self.pages_out.next_due(), self.pages_in.next_due(), self.keeping.next_due()];
        knowledge.into_iter().chain(pages).chain([self.verify.next_due()]).flatten().min()
    }

    /// Who has a copy of what this node knows and of its pages, and how far it is.
    pub fn view(&self, now: Now) -> Option<CopyView> {
        let node = self.copying.follower()?;
        let part = |Behind { since, was_whole }: Behind| {
            let behind_us = now.since_us(since);
            let in_step = was_whole && behind_us < BEHIND_US;
            CopyPart { was_whole, in_step, behind_ms: behind_us / 1_000 }
        };
        let (knowledge, pages) = (part(self.copying.behind()), part(self.pages_out.behind()));
        let in_step = knowledge.in_step && pages.in_step;
        Some(CopyView { node, in_step, knowledge, pages, bytes: self.bytes() })
    }

    /// Bytes of that copy.
    pub fn bytes(&self) -> u64 {
        self.copying.bytes() + self.pages_out.bytes()
    }

    /// The node whose copy comes into the index; 0 for none.
    pub fn takes_in(&self) -> u16 {
        self.taking_over.node()
    }

    /// Whether the index has what nodes knew that are gone, so that it may go by a share with their partitions.
    pub fn is_taken_in(&self) -> bool {
        !self.taking_over.is_busy() && !self.is_news
    }

    /// Whether its index has what nodes knew that are gone, and its store their pages.
    pub fn is_all_kept(&self) -> bool {
        self.is_taken_in() && self.keeping.next_due().is_none()
    }

    // Of nodes that are gone ------------------------------------------------------------------------------

    /// Sets the copies of nodes aside that are gone by a table, before that is kept: a process that begins in the middle goes on with
    /// what comes to it.
    pub fn set_aside(&mut self, table: &Table, share: Option<&Arc<Share>>, me: u16) -> io::Result<()> {
        self.is_news = true;
        let Some(share) = share.filter(|_| me != 0) else { return Ok(()) };
        for node in self.copies.nodes()?.into_iter().filter(|node| is_gone(table, *node)) {
            // What is nobody's yet may come to this one with the next table.
            let comes = |partition: &Partition| {
                [me, NOBODY].contains(&table.owner(*partition)) && !share.owns(*partition)
            };
            self.pages_in.end(node);
            self.copies.set_aside(node, &Partition::all().filter(comes).collect())?;
        }
        Ok(())
    }

    /// What was known by nodes that are gone comes into the index, one after the other, whoever has their partitions: what is
    /// another's is told to that one. True if something moved.
    pub fn take_over(&mut self, now: Now, share: Option<&Arc<Share>>, asks: &IndexAsks) -> bool {
        match self.taking_over.turn(now, asks) {
            Taken::Goes => return true,
            Taken::All { aside, documents } => {
                let node = aside.node;
                let what = counted(documents, "line");
                let text = format!("what node {node} knew is taken over from its copy here: {what}");
                let fields = vec![("node", u64::from(node).into()), ("lines", documents.into())];
                self.health.tell(Event::CopyTaken, fields, text);
                if let Err(cause) = self.keeping.keep(aside.folder, node, now) {
                    self.failed(&cause);
                }
                self.is_news = true;
            }
            Taken::Nothing => {}
        }
        let Some(share) = share.filter(|_| !self.taking_over.is_busy() && self.is_news) else { return false };
        let aside = match self.copies.aside() {
            Ok(aside) => aside,
            // It is looked again with the next turn; until then nothing is gone by.
            Err(cause) => return self.failed(&cause),
        };
        let next = aside.into_iter().find(|aside| !self.keeping.has(&aside.folder));
        self.is_news = next.is_some();
        if let Some(aside) = next {
            self.taking_over.begin(aside, share.clone());
        }
        self.is_news
    }

    /// The disk refuses what others have; they begin anew.
    fn failed(&mut self, cause: &io::Error) -> bool {
        self.tell(format!("{}: {cause}", Copies::FOLDER), cause)
    }

    /// The disk does not give pages of this node: they are on one disk alone.
    fn failed_to_read(&mut self, cause: &io::Error) -> bool {
        self.tell(format!("pages cannot be copied to another node: {cause}"), cause)
    }

    /// Tells of trouble, and of the same once in a while.
    fn tell(&mut self, text: String, cause: &io::Error) -> bool {
        let is_old = |(told, at): &(String, Now)| *told == text && self.now.since_us(*at) < TOLD_US;
        if !self.told.as_ref().is_some_and(is_old) {
            let fields = vec![("cause", cause.to_string().into())];
            self.health.tell(Event::ClusterFiles, fields, text.clone());
            self.told = Some((text, self.now));
        }
        false
    }
}

/// Which start of a node has a talk with this number.
fn start_of(id: u64) -> u32 {
    (id >> 32) as u32
}

fn is_gone(table: &Table, node: u16) -> bool {
    table.node(node).is_none_or(|known| known.state == NodeState::Left)
}
