use super::Sends;
use super::copies::Copies;
use super::inquiry::{Inquiry, digest};
use super::page_folders::PageFolders;
use super::pages_out::PagesOut;
use super::returned::{Removed, Returned, original};
use super::summing::{Job, SumFor, Summing};
use super::verifying::{Originals, Verifying};
use crate::base::Now;
use crate::engine::inspect::verify_view::VerifyReport;
use crate::limits::SUMS_ASKED_MAX;
use crate::peer::Table;
use crate::proto::peer_wire::{PeerWord, Sum, SumOf, Verified};
use std::io;

/// Where there is something to be summed up.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub copies: &'a Copies,
    pub folders: &'a PageFolders,
    pub pages_out: &'a PagesOut,
}

/// Whether nodes have what was promised: asked by an operator, of all of them; and told by this one, to whoever asks.
pub(super) struct VerifyDesk {
    report: VerifyReport,
    summing: Summing,
    verifying: Verifying,
    inquiry: Option<Inquiry>,
    returned: Returned,
    /// What went of it, or why it could not.
    removed: Option<io::Result<Removed>>,
    /// Nodes that want to know which table this one goes by.
    tables: Vec<(u16, u64)>,
    /// Nodes for which sums are made, with their numbers.
    serving: Vec<(u16, u64)>,
    /// Sums that cannot be made.
    refused: Vec<(u16, u64, Sum)>,
    now: Now,
}

impl VerifyDesk {
    pub fn new(report: VerifyReport, summing: Summing, starts: u32) -> VerifyDesk {
        VerifyDesk {
            report,
            summing,
            verifying: Verifying::new(starts),
            inquiry: None,
            returned: Returned::new(starts),
            removed: None,
            tables: Vec::new(),
            serving: Vec::new(),
            refused: Vec::new(),
            now: Now::ZERO,
        }
    }

    /// A node asks something, or answers.
    pub fn word(&mut self, node: u16, word: &PeerWord<'_>, places: Places<'_>) {
        match word {
            PeerWord::VerifyAsk { id, copies: true } => self.verifying.asked(node, *id),
            PeerWord::VerifyAsk { id, copies: false } => {
                self.tables.retain(|(waits, _)| *waits != node);
                self.tables.push((node, *id));
            }
            PeerWord::Verified { id, verified } => {
                if let Some(inquiry) = &mut self.inquiry {
                    inquiry.told(node, *id, verified, self.now);
                }
            }
            PeerWord::SumAsk { id, of } => self.serve(node, *id, *of, places),
            PeerWord::Sum { id, sum } => {
                self.verifying.summed_there(node, *id, *sum);
                self.returned.summed_there(node, *id, *sum);
            }
            _ => {}
        }
    }

    /// Sums up something of the copy of a node, of its own and of no other; or of the store of this node, if a follower has that, too.
    fn serve(&mut self, node: u16, id: u64, of: SumOf, Places { copies, folders, pages_out }: Places<'_>) {
        // Whoever asks for more has to wait, or has another word for it.
        if self.serving.iter().filter(|(waits, _)| *waits == node).count() >= SUMS_ASKED_MAX {
            return;
        }
        let job = match of {
            SumOf::Segment { store, state } => Job::Segment { folder: folders.place_of(node, store), state },
            SumOf::Original { state } => match original(folders, pages_out, state) {
                Some(job) => job,
                None => return self.refused.push((node, id, Sum::Missing)),
            },
            SumOf::Knowledge { copy, batch } => Job::Knowledge { folder: copies.folder(node), copy, batch },
        };
        match self.summing.want(SumFor::Node(node, id), job) {
            Ok(()) => self.serving.push((node, id)),
            Err(sum) => self.refused.push((node, id, sum)),
        }
    }

    pub fn down(&mut self, node: u16) {
        self.verifying.down(node);
        self.returned.down(node);
        self.tables.retain(|(waits, _)| *waits != node);
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.down(node);
        }
    }

    /// Pages of a node that was gone went from here, or could not.
    pub fn take_removed(&mut self) -> Option<io::Result<Removed>> {
        self.removed.take()
    }

    pub fn has_messages(&self) -> bool {
        self.summing.has_sums()
    }

    pub fn next_due(&self) -> Option<Now> {
        let inquiry = self.inquiry.as_ref().and_then(Inquiry::next_due);
        [inquiry, self.verifying.next_due(), self.returned.next_due()].into_iter().flatten().min()
    }

    /// Goes on. True if something moved.
    pub fn turn(
        &mut self,
        now: Now,
        (table, me): (&Table, u16),
        originals: Originals<'_>,
        wires: &mut dyn Sends,
    ) -> bool {
        self.now = now;
        let mut busy = false;
        while let Some((who, sum)) = self.summing.take() {
            busy = true;
            match who {
                SumFor::Here(id) => self.verifying.summed_here(id, sum),
                SumFor::Kept(id) => self.returned.summed_here(id, sum),
                SumFor::Node(node, id) => {
                    self.serving.retain(|waits| *waits != (node, id));
                    wires.send(node, &PeerWord::Sum { id, sum });
                }
            }
        }
        for (node, id, sum) in self.refused.drain(..) {
            wires.send(node, &PeerWord::Sum { id, sum });
        }
        if let Some(id) = self.report.wanted().filter(|_| me != 0) {
            self.inquiry = Some(Inquiry::new(id, (table, me), now));
            self.tell(table);
        }
        for (node, id) in self.tables.drain(..) {
            let verified = Verified { is_done: true, ..of_table(table) };
            wires.send(node, &PeerWord::Verified { id, verified });
        }
        let went = self.returned.turn(now, (table, me), originals, &mut self.summing, wires);
        self.removed = went.transpose().or(self.removed.take());
        if let Some((node, id, found)) = self.verifying.turn(now, originals, &mut self.summing, wires) {
            let Verified { epoch, table: digest, .. } = of_table(table);
            let verified = Verified { epoch, table: digest, ..found };
            match (&mut self.inquiry, node == me) {
                (Some(inquiry), true) => inquiry.told(me, id, &verified, now),
                _ => wires.send(node, &PeerWord::Verified { id, verified }),
            }
            busy = true;
        }
        if let Some(inquiry) = self.inquiry.as_mut().filter(|inquiry| !inquiry.is_done()) {
            let id = inquiry.id();
            if inquiry.turn(now, table, wires) {
                self.verifying.asked(me, id);
                busy = true;
            }
            self.tell(table);
        }
        self.inquiry.take_if(|inquiry| inquiry.is_done());
        busy
    }

    fn tell(&self, table: &Table) {
        if let Some(inquiry) = &self.inquiry {
            self.report.set(inquiry.view(table));
        }
    }
}

fn of_table(table: &Table) -> Verified {
    Verified { epoch: table.epoch(), table: digest(table), ..Verified::default() }
}
