use super::partner_domain::{DatabaseError, MapRow, PartnerDomain};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `partner_domain` in memory, as a stand-in for the database of two masters in tests and in the simulation. Each master
/// has a view of its own, and each view fails as it is told.
pub struct MemoryTable {
    shared: Arc<Mutex<Shared>>,
    view: usize,
    /// Rows up to this change were told.
    told: u64,
}

/// What becomes of the next asks of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Nothing gets there.
    Away,
    /// Of several rows the first half is written, and the rest is not; the caller hears nothing.
    HalfWay,
    /// All is done, and the caller does not wait for the answer.
    Slow,
}

#[derive(Default)]
struct Shared {
    rows: BTreeMap<Box<str>, (MapRow, u64)>,
    handovers: BTreeMap<Box<str>, (u32, Vec<u8>)>,
    changes: u64,
    faults: Vec<Fault>,
}

impl Shared {
    fn write(&mut self, row: MapRow) {
        self.changes += 1;
        self.rows.insert(row.domain.clone(), (row, self.changes));
    }
}

impl Default for MemoryTable {
    fn default() -> MemoryTable {
        let shared = Shared { faults: vec![Fault::None], ..Shared::default() };
        MemoryTable { shared: Arc::new(Mutex::new(shared)), view: 0, told: 0 }
    }
}

impl MemoryTable {
    /// The same table for another master, or for the same one after a restart: it has been told nothing.
    pub fn view(&self) -> MemoryTable {
        let mut shared = self.shared();
        shared.faults.push(Fault::None);
        MemoryTable { shared: self.shared.clone(), view: shared.faults.len() - 1, told: 0 }
    }

    pub fn number(&self) -> usize {
        self.view
    }

    /// Lets the asks of a view fail from now on.
    pub fn fail(&self, view: usize, fault: Fault) {
        self.shared().faults[view] = fault;
    }

    pub fn rows(&self) -> Vec<MapRow> {
        self.shared().rows.values().map(|(row, _)| row.clone()).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the table, and answers as the fault of the view has it. The work is told how many of so many
    /// writes get there.
    fn ask<T>(&self, writes: usize, work: impl FnOnce(&mut Shared, usize) -> T) -> Result<T, DatabaseError> {
        let mut shared = self.shared();
        let away = |cause: &str| Err(DatabaseError::Away(cause.to_string()));
        match shared.faults[self.view] {
            Fault::None => Ok(work(&mut shared, writes)),
            Fault::Away => away("connection refused"),
            Fault::HalfWay => {
                work(&mut shared, writes / 2);
                away("connection closed")
            }
            Fault::Slow => {
                work(&mut shared, writes);
                away("no answer within 2 s")
            }
        }
    }
}

impl PartnerDomain for MemoryTable {
    fn changes(&mut self) -> Result<Vec<MapRow>, DatabaseError> {
        let told = self.told;
        let (rows, changes) = self.ask(0, |shared, _| {
            let new = shared.rows.values().filter(|(_, changed)| *changed > told);
            (new.map(|(row, _)| row.clone()).collect(), shared.changes)
        })?;
        self.told = changes;
        Ok(rows)
    }

    fn settle(&mut self, proposals: &[MapRow]) -> Result<Vec<MapRow>, DatabaseError> {
        self.ask(proposals.len(), |shared, writes| {
            for row in &proposals[..writes] {
                if !shared.rows.contains_key(&row.domain) {
                    shared.write(MapRow { moving_to: None, fence: 0, ..row.clone() });
                }
            }
            let settled = proposals.iter().filter_map(|row| shared.rows.get(&row.domain));
            settled.map(|(row, _)| row.clone()).collect()
        })
    }

    fn change(&mut self, row: &MapRow, fence: u32) -> Result<bool, DatabaseError> {
        self.ask(1, |shared, writes| {
            let before =
                shared.rows.get(&row.domain).filter(|(before, _)| before.fence == fence && writes > 0);
            let Some((before, _)) = before.cloned() else { return false };
            shared.write(MapRow { page: before.page, ..row.clone() });
            true
        })
    }

    fn keep_handover(&mut self, domain: &str, fence: u32, lines: &[u8]) -> Result<(), DatabaseError> {
        self.ask(1, |shared, writes| {
            let is_newer = shared.handovers.get(domain).is_none_or(|(before, _)| *before < fence);
            if is_newer && writes > 0 {
                shared.handovers.insert(domain.into(), (fence, lines.to_vec()));
            }
        })
    }

    fn handover(&mut self, domain: &str, fence: u32) -> Result<Option<Vec<u8>>, DatabaseError> {
        self.ask(0, |shared, _| {
            let kept = shared.handovers.get(domain).filter(|(kept, _)| *kept == fence);
            kept.map(|(_, lines)| lines.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::partner_domain::{By, ServerId};
    use super::*;

    fn row(domain: &str, server: u16) -> MapRow {
        let (server, since_s) = (ServerId(server), 1);
        MapRow { domain: domain.into(), server, moving_to: None, page: 7, since_s, by: By::Rule, fence: 0 }
    }

    #[test]
    fn the_first_writer_wins_and_both_are_told() {
        let mut a = MemoryTable::default();
        let mut b = a.view();
        assert_eq!(a.settle(&[row("a.ru", 1), row("b.ru", 1)]).unwrap().len(), 2);
        let settled = b.settle(&[row("b.ru", 2), row("c.ru", 2)]).unwrap();
        assert_eq!(settled, [row("b.ru", 1), row("c.ru", 2)]);
        for view in [&mut a, &mut b] {
            assert_eq!(view.changes().unwrap(), [row("a.ru", 1), row("b.ru", 1), row("c.ru", 2)]);
            assert_eq!(view.changes().unwrap(), []);
        }
        let moving = MapRow { moving_to: Some(ServerId(2)), fence: 1, ..row("a.ru", 1) };
        assert_eq!(b.change(&moving, 0), Ok(true));
        assert_eq!(a.change(&moving, 0), Ok(false));
        assert_eq!(a.changes().unwrap(), [moving]);
    }

    #[test]
    fn a_view_fails_as_it_is_told() {
        let mut a = MemoryTable::default();
        let mut b = a.view();
        let rows = [row("a.ru", 1), row("b.ru", 1)];
        a.fail(b.number(), Fault::HalfWay);
        assert!(b.settle(&rows).is_err());
        assert_eq!(a.changes().unwrap(), [row("a.ru", 1)]);
        a.fail(b.number(), Fault::Slow);
        assert!(b.settle(&rows).is_err());
        assert_eq!(a.changes().unwrap(), [row("b.ru", 1)]);
        assert!(b.changes().is_err());
        a.fail(b.number(), Fault::Away);
        assert!(b.keep_handover("a.ru", 1, b"x").is_err());
        a.fail(b.number(), Fault::None);
        assert_eq!(b.handover("a.ru", 1), Ok(None));
        assert_eq!(b.changes().unwrap().len(), 2);
    }
}
