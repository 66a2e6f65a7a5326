//! The table as this node knows it, and the changes that it wants, one swap at a time.

use super::Timing;
use crate::base::Now;
use crate::limits::TABLE_CHANGES_MAX;
use crate::peer::register::{Change, Outcome, Value};
use crate::peer::table::Table;
use crate::peer::table_change::TableChange;
use std::collections::VecDeque;
use std::sync::Arc;

/// What was asked of the register.
#[derive(Clone, Debug)]
enum Asked {
    Read,
    Found(Arc<Table>),
    Swap(TableChange, Arc<Table>),
}

/// Why a register cannot be that of the table that is known. Where nodes vote there is never one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It holds nothing, though a table was in it.
    Empty,
    /// It holds an earlier table than was in it.
    Earlier,
    /// It holds something that this program cannot read as a table.
    Unreadable,
}

/// Swaps the table. A change that met another table is made again to that one, until it is in it or has no place there.
#[derive(Clone, Debug)]
pub struct TableWriter {
    timing: Timing,
    known: Option<Arc<Table>>,
    /// The table that the first node makes of nothing.
    founding: Option<Arc<Table>>,
    wanted: VecDeque<TableChange>,
    finished: Vec<TableChange>,
    asked: Option<Asked>,
    unsure: bool,
    ask_at: Now,
    /// The epoch that was known when something was asked last.
    asked_epoch: u64,
    /// The register told a table, or took one.
    confirmed: bool,
    doubt: Option<Doubt>,
}

impl TableWriter {
    pub fn new(timing: Timing, founding: Option<Table>) -> TableWriter {
        TableWriter {
            timing,
            known: None,
            founding: founding.map(Arc::new),
            wanted: VecDeque::new(),
            finished: Vec::new(),
            asked: None,
            unsure: true,
            ask_at: Now::ZERO,
            asked_epoch: 0,
            confirmed: false,
            doubt: None,
        }
    }

    /// Whether the register has told a table to this process, or has taken one from it.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    pub fn doubt(&self) -> Option<Doubt> {
        self.doubt
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        self.known.as_ref()
    }

    /// Takes a table that was in the register, from wherever it was heard. True if it is later than the one known.
    pub fn told(&mut self, table: Arc<Table>) -> bool {
        let later = self.known.as_ref().is_none_or(|known| known.epoch() < table.epoch());
        if later {
            self.known = Some(table);
        }
        later
    }

    /// The table may be a later one, which nobody told: the register is read when nothing else is asked of it.
    pub fn look_again(&mut self) {
        self.unsure |= self.asked.is_none();
    }

    /// Wants a change. False if it is wanted already, or too many are.
    pub fn want(&mut self, change: TableChange) -> bool {
        let asked = matches!(&self.asked, Some(Asked::Swap(asked, _)) if *asked == change);
        let room = self.wanted.len() < TABLE_CHANGES_MAX;
        let wants = !asked && room && !self.wanted.contains(&change);
        if wants {
            self.wanted.push_back(change);
        }
        wants
    }

    /// Takes back the changes that wait and match; one that was sent may land all the same.
    pub fn forget(&mut self, matches: impl Fn(&TableChange) -> bool) -> Vec<TableChange> {
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = self.wanted.drain(..).partition(matches);
        self.wanted = kept;
        gone.into()
    }

    /// Changes that are in the table, or have no place in it.
    pub fn take_finished(&mut self) -> Vec<TableChange> {
        std::mem::take(&mut self.finished)
    }

    pub fn next_due(&self) -> Option<Now> {
        let wants = self.asked.is_none() && (self.unsure || self.known.is_none() || !self.wanted.is_empty());
        wants.then_some(self.ask_at)
    }

    pub fn tick(&mut self, now: Now) -> Option<Change> {
        if self.asked.is_some() || now < self.ask_at {
            return None;
        }
        self.asked_epoch = self.known.as_ref().map_or(0, |known| known.epoch());
        let Some(known) = self.known.clone().filter(|_| !self.unsure) else {
            self.asked = Some(Asked::Read);
            return Some(Change::Read);
        };
        while let Some(change) = self.wanted.pop_front() {
            match change.apply(&known) {
                Some(next) => {
                    let swap = Change::Swap { expect: value(&known), new: value(&next) };
                    self.asked = Some(Asked::Swap(change, Arc::new(next)));
                    return Some(swap);
                }
                None => self.finished.push(change),
            }
        }
        None
    }

    /// Takes what became of what was asked; `again` says whether a swap that did not succeed is still wanted.
    pub fn answered(&mut self, outcome: &Outcome, now: Now, again: impl Fn(&TableChange) -> bool) {
        let asked = self.asked.take();
        self.confirmed |= *outcome == Outcome::Swapped;
        match (asked, outcome) {
            (Some(Asked::Swap(change, table)), Outcome::Swapped) => {
                self.told(table);
                self.finished.push(change);
            }
            (Some(Asked::Found(table)), Outcome::Swapped) => {
                self.told(table);
            }
            (asked, outcome) => {
                if let Some(Asked::Swap(change, _)) = asked
                    && again(&change)
                {
                    self.wanted.push_front(change);
                }
                match outcome {
                    Outcome::Read(value) | Outcome::Differs(value) => self.found(value, now),
                    _ => {
                        self.unsure = true;
                        self.ask_at = now.plus_us(self.timing.again_us());
                    }
                }
            }
        }
    }

    /// What is to be asked if the register is empty and this node is to make the first table.
    pub fn founds(&mut self) -> Option<Change> {
        let table =
            self.founding.clone().filter(|_| self.asked.is_none() && self.known.is_none() && !self.unsure)?;
        let swap = Change::Swap { expect: None, new: value(&table) };
        self.asked = Some(Asked::Found(table));
        Some(swap)
    }

    /// Whether a table is of the kind of council that this node goes by: that never changes.
    fn fits(&self, table: &Table) -> bool {
        let own = self.known.as_ref().or(self.founding.as_ref());
        own.is_none_or(|own| own.is_outside() == table.is_outside())
    }

    fn found(&mut self, value: &Value, now: Now) {
        let table = value.as_deref().map(|bytes| Table::decode(bytes).ok().filter(|table| self.fits(table)));
        self.unsure = false;
        self.doubt = match &table {
            None => (self.asked_epoch > 0).then_some(Doubt::Empty),
            Some(None) => Some(Doubt::Unreadable),
            Some(Some(table)) => (table.epoch() < self.asked_epoch).then_some(Doubt::Earlier),
        };
        self.confirmed |= self.doubt.is_none() && table.is_some();
        match table {
            Some(Some(table)) => drop(self.told(Arc::new(table))),
            // Nothing yet, or nothing that this program can read: asked again later.
            None | Some(None) => self.ask_at = now.plus_us(self.timing.again_us()),
        }
    }
}

fn value(table: &Table) -> Value {
    Some(Arc::from(table.encode()))
}
