use super::ClusterWorld;
use crate::base::Now;
use crate::engine::{ClusterOrder, ClusterReport, ClusterView};
use crate::sim::cluster::judge::DURABLE_US;
use crate::sim::cluster::node::{links_of, node_folder};
use crate::sim::cluster::plan::Misfortune;
use crate::sim::cluster::wrong::{Killed, Wrong};
use std::sync::Arc;

/// If no node has lost its disk by then, none does.
const LOSE_BY: Now = Now::from_us(300_000_000);

/// What befalls nodes and their links.
impl ClusterWorld {
    pub(super) fn let_things_happen(&mut self, now: Now) {
        if now >= self.fault_at {
            self.fault_at = self.plan.faults.next_at(&mut self.rng, now);
            self.misfortune(now);
        }
        self.lose_one(now);
        self.drain_one(now);
        if !self.is_calm && now >= self.plan.faults.until {
            self.is_calm = true;
            self.net.borrow_mut().delay(1_000);
            if self.plan.wrong == Some(Wrong::Cut) {
                self.net.borrow_mut().cut(links_of(0), links_of(1), Now::NEVER);
            }
        }
    }

    fn misfortune(&mut self, now: Now) {
        let count = self.plan.nodes as u64;
        let one = self.rng.below(count) as usize;
        let other = (one + 1 + self.rng.below(count - 1) as usize) % self.plan.nodes;
        let until = now.plus_ms(1 + self.rng.below(self.plan.trouble_ms));
        match self.plan.faults.draw(&mut self.rng) {
            Misfortune::Cut => self.net.borrow_mut().cut(links_of(one), links_of(other), until),
            Misfortune::Reset => self.net.borrow_mut().reset_between(links_of(one), links_of(other)),
            Misfortune::Delay => self.net.borrow_mut().delay(1 + self.rng.below(300_000)),
            Misfortune::Kill => return self.kill(one, until, now),
            Misfortune::Stall => {
                if self.stalled[one] <= now {
                    (self.stalled[one], self.is_stirred[one]) = (until, true);
                    self.stalled_from[one] = now;
                    self.judge.borrow_mut().node_stalled(one, now);
                    self.report.stalls += 1;
                }
                return;
            }
        }
        self.report.broken += 1;
    }

    /// The first node makes the cluster, so that it could not come back as another. One that never had a right of a council is
    /// not taken over.
    fn may_lose(&self, number: usize) -> bool {
        let of_itself = |view: &Arc<ClusterView>| {
            let told =
                view.nodes.iter().find(|node| node.number == view.node).and_then(|node| node.told.clone());
            view.mode != "frozen" && told.is_some_and(|told| (1..u32::MAX).contains(&told.right_left_ms))
        };
        let has_right = self.nodes[number].is_some() && self.tables.told(number).is_some_and(of_itself);
        number != 0 && has_right
    }

    /// One that is there by now loses its disk; if none is, it is looked again.
    fn lose_one(&mut self, now: Now) {
        let Some(at) = self.lose_at.filter(|at| *at <= now) else { return };
        let able: Vec<usize> = (0..self.plan.nodes).filter(|&number| self.may_lose(number)).collect();
        self.lose_at = Some(at.plus_ms(5_000)).filter(|_| able.is_empty() && now < LOSE_BY);
        if !able.is_empty() {
            let number = able[self.rng.below(able.len() as u64) as usize];
            let until = now.plus_ms(1 + self.rng.below(self.plan.trouble_ms));
            self.lose(number, until, now);
        }
    }

    /// One of them is to go, and is stopped when it has. Its disk is not needed any more if others have its pages.
    fn drain_one(&mut self, now: Now) {
        if let Some(at) = self.drain_at.filter(|at| *at <= now) {
            let is_there = |number: &usize| *number != 0 && self.nodes[*number].is_some();
            let able: Vec<usize> = (0..self.plan.nodes).filter(is_there).collect();
            let one = able.get(self.rng.below(able.len().max(1) as u64) as usize).copied();
            let asked = self.nodes.iter().flatten().next().map(|node| node.report.clone());
            let order = one.map(|one| ClusterOrder::Drain { node: self.tables.number(one) });
            let is_taken = |(report, order): (ClusterReport, _)| report.order(order).is_ok();
            let is_ordered = asked.zip(order).is_some_and(is_taken);
            self.drain_at = Some(at.plus_ms(5_000)).filter(|_| !is_ordered && now < LOSE_BY);
            self.is_stirred.fill(true);
        }
        for number in 0..self.nodes.len() {
            let Some(node) = &self.nodes[number] else { continue };
            if !std::mem::take(&mut self.unseen[number].membership) {
                continue;
            }
            let view = node.report.get();
            let of_itself = view.nodes.iter().find(|node| node.number == view.node);
            let is_as = |membership: &str| of_itself.is_some_and(|node| node.membership == membership);
            self.drains[number] |= is_as("draining");
            // Who is taken over has left, too; so has who gave everything away and was silent for too long before it had left.
            let is_out = view.taken_over || view.leaving.as_ref().is_some_and(|leaving| !leaving.has_left);
            // A voter was taken over while it stood still with nothing left: its disk still votes.
            let votes = view.voters.contains(&view.node);
            if !self.drains[number] || !is_as("left") || is_out || votes {
                continue;
            }
            self.report.drained += 1;
            self.judge_what_is_left(number, &view, now);
            self.kill(number, Now::NEVER, now);
            (self.start_at[number], self.gone[number]) = (None, true);
            if !self.plan.copies && self.report.lost > 0 {
                self.typing.lose(number, now, |_| true);
            }
            // What was to be typed there is typed elsewhere.
            self.typing.pass_on(number, now);
            if self.plan.copies {
                let folder = node_folder(self.folder.path(), number);
                std::fs::remove_dir_all(folder).expect("it has a folder");
            }
        }
    }

    /// The process is gone, and its disk: another node comes in its place.
    fn lose(&mut self, number: usize, until: Now, now: Now) {
        self.kill(number, until, now);
        self.report.lost += 1;
        std::fs::remove_dir_all(node_folder(self.folder.path(), number)).expect("it has a folder");
        self.died_busy[number] = false;
        // What was typed there may be known to nobody.
        self.typing.lose(number, until, |_| true);
        if !self.plan.copies {
            // So may what nodes handed over to it that are not there any more: nobody tells it again.
            for gone in (0..self.nodes.len()).filter(|other| self.gone[*other]) {
                self.typing.lose(gone, until, |_| true);
                self.typing.pass_on(gone, until);
            }
        }
        let hosts = self.tables.lose_disk(number);
        self.judge.borrow_mut().disk_lost(&hosts);
    }

    /// The process is gone without a word; what its files had stays.
    pub(super) fn kill(&mut self, number: usize, until: Now, now: Now) {
        let Some(node) = self.nodes[number].take() else { return };
        let was_stalled = self.stalled[number];
        (self.due[number], self.stalled[number], self.drains[number]) = (None, Now::ZERO, false);
        self.report.deaths += 1;
        self.start_at[number] = Some(until);
        (links_of(number)..links_of(number + 1))
            .for_each(|driver| self.net.borrow_mut().forget_driver(driver));
        let stats = node.core.index.actor.provider().index().stats();
        self.died_busy[number] = stats.pending + stats.handed_out > 0;
        drop(node);
        self.claims.end(number);
        if let Some(wrong) = self.plan.wrong {
            let epoch = self.tables.told(number).map_or(0, |told| told.epoch);
            wrong.when_killed(&Killed {
                folder: self.folder.path(),
                nodes: self.plan.nodes,
                place: number,
                number: self.tables.number(number),
                epoch,
            });
        }
        // What it did just before it stood still is not on its disk, however long it did so.
        let is_fresh = now.since_us(was_stalled) < DURABLE_US;
        let active = if is_fresh { self.stalled_from[number] } else { now };
        self.judge.borrow_mut().node_died(number, active);
        let is_lost = |at: Now| active.since_us(at) < DURABLE_US || now.since_us(at) < DURABLE_US;
        self.typing.lose(number, until, is_lost);
    }
}
