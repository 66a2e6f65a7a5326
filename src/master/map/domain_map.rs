use super::super::{By, MapRow, ServerId};
use super::loads::Loads;
use super::names::{Cold, Names, key};
use hashbrown::HashTable;
use rapidhash::fast::RandomState;
use std::hash::BuildHasher;

/// The rows of `partner_domain` in memory, and how much each domain is sent lately.
#[derive(Default)]
pub struct DomainMap {
    names: Names,
    entries: Vec<Entry>,
    table: HashTable<Known>,
    hashes: RandomState,
    loads: Loads,
    /// Entries that have no server yet are behind this one.
    placed: usize,
}

/// A domain's number, and where its name is: it is compared without a look at the entry, which is fetched meanwhile.
#[derive(Clone, Copy)]
struct Known {
    index: u32,
    place: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    server: u16,
    moving_to: u16,
    weight: f32,
}

/// Where a domain is, at a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainAt {
    /// Its number in the map.
    pub index: u32,
    pub server: ServerId,
    /// Nothing of it may be sent: it moves to another server.
    pub is_fenced: bool,
}

const NONE: u16 = u16::MAX;
const GROWTH_MIN: usize = 4_096;

impl DomainMap {
    pub fn len(&self) -> usize {
        self.placed
    }

    pub fn is_empty(&self) -> bool {
        self.placed == 0
    }

    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    pub(super) fn loads_mut(&mut self) -> &mut Loads {
        &mut self.loads
    }

    /// The server of a domain.
    pub fn find(&self, domain: &str) -> Option<DomainAt> {
        let index = self.index(key(domain))?;
        let entry = self.entries[index as usize];
        (entry.server != NONE).then_some(DomainAt {
            index,
            server: ServerId(entry.server),
            is_fenced: entry.moving_to != NONE,
        })
    }

    fn index(&self, domain: &str) -> Option<u32> {
        let hash = self.hashes.hash_one(domain.as_bytes());
        let is = |known: &Known| self.names.domain(known.place) == domain.as_bytes();
        self.table.find(hash, is).map(|known| known.index)
    }

    pub fn get(&self, domain: &str) -> Option<MapRow> {
        self.index(key(domain)).and_then(|index| self.row(index))
    }

    /// A row by its number; `None` if it has no server yet.
    pub fn row(&self, index: u32) -> Option<MapRow> {
        let entry = self.entries.get(index as usize).filter(|entry| entry.server != NONE)?;
        let Cold { domain, page, since_s, by, fence } = self.names.get(entry.place);
        let moving_to = (entry.moving_to != NONE).then_some(ServerId(entry.moving_to));
        Some(MapRow {
            domain: domain.into(),
            server: ServerId(entry.server),
            moving_to,
            page,
            since_s,
            by,
            fence,
        })
    }

    /// All rows, in the order in which they came.
    pub fn rows(&self) -> impl Iterator<Item = MapRow> {
        (0..self.placed as u32).filter_map(|index| self.row(index))
    }

    /// URLs an hour of a domain, lately.
    pub fn per_hour(&self, index: u32, now_s: u32) -> f64 {
        let weight = self.entries.get(index as usize).map_or(0.0, |entry| f64::from(entry.weight));
        self.loads.of_weight(weight, now_s)
    }

    /// Puts a row in, or in place of what stands for its domain.
    pub fn set(&mut self, row: &MapRow) -> u32 {
        let cold = Cold::from(row);
        let index = match self.index(cold.domain) {
            Some(index) => index,
            None => self.push(cold.domain, &cold),
        };
        let old = self.entries[index as usize];
        if old.server != NONE {
            if old.server != row.server.0 {
                let weight = f64::from(old.weight);
                self.loads.add(ServerId(old.server), -weight);
                self.loads.add(row.server, weight);
            }
        } else {
            self.placed = self.placed.max(index as usize + 1);
        }
        // The table goes on with the place of its name that it knows, which has not changed.
        let place = if self.names.get(old.place) == cold { old.place } else { self.names.push(&cold) };
        let moving_to = row.moving_to.map_or(NONE, |server| server.0);
        self.entries[index as usize] = Entry { place, server: row.server.0, moving_to, weight: old.weight };
        index
    }

    /// The number of a domain, also of one that has no server yet. Those must be [placed](DomainMap::set), or
    /// [forgotten](DomainMap::forget_from).
    pub fn number(&mut self, domain: &str, page: u64, since_s: u32) -> u32 {
        let cold = Cold { domain: key(domain), page, since_s, by: By::Rule, fence: 0 };
        self.index(cold.domain).unwrap_or_else(|| self.push(cold.domain, &cold))
    }

    /// A row for a domain that has no server yet.
    pub fn proposal(&self, index: u32, server: ServerId) -> MapRow {
        let Cold { domain, page, since_s, by, fence } = self.names.get(self.entries[index as usize].place);
        MapRow { domain: domain.into(), server, moving_to: None, page, since_s, by, fence }
    }

    /// The name of a domain by its number.
    pub fn domain(&self, index: u32) -> &str {
        std::str::from_utf8(self.names.domain(self.entries[index as usize].place)).unwrap_or_default()
    }

    /// Domains with and without a server.
    pub fn numbers(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Forgets domains from a number on, whether they have a server or not. No row before them was set after them.
    pub fn forget_from(&mut self, index: u32) {
        let mut first = None;
        while self.entries.len() > index as usize {
            let last = self.entries.len() as u32 - 1;
            let place = self.entries[last as usize].place;
            let hash = self.hashes.hash_one(self.names.domain(place));
            if let Ok(found) = self.table.find_entry(hash, |known| known.index == last) {
                found.remove();
            }
            self.entries.pop();
            first = Some(first.map_or(place, |first: u32| first.min(place)));
        }
        if let Some(place) = first {
            self.names.truncate(place);
        }
        self.placed = self.placed.min(self.entries.len());
    }

    fn push(&mut self, domain: &str, cold: &Cold<'_>) -> u32 {
        let index = self.entries.len() as u32;
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 4 + GROWTH_MIN);
        }
        let place = self.names.push(cold);
        self.entries.push(Entry { place, server: NONE, moving_to: NONE, weight: 0.0 });
        let hash = self.hashes.hash_one(domain.as_bytes());
        let (names, hashes) = (&self.names, &self.hashes);
        let rehash = |known: &Known| hashes.hash_one(names.domain(known.place));
        self.table.insert_unique(hash, Known { index, place }, rehash);
        index
    }

    /// Counts URLs that were sent, as numbers of domains and how many.
    pub fn sent(&mut self, now_s: u32, counts: &[(u32, u32)]) {
        if let Some(factor) = self.loads.rebase(now_s) {
            self.entries
                .iter_mut()
                .for_each(|entry| entry.weight = (f64::from(entry.weight) * factor) as f32);
        }
        let weight = self.loads.weight(now_s);
        for &(index, urls) in counts {
            let Some(entry) = self.entries.get_mut(index as usize) else { continue };
            let more = f64::from(urls) * weight;
            entry.weight = (f64::from(entry.weight) + more) as f32;
            self.loads.add(ServerId(entry.server), more);
        }
    }

    pub(super) fn weights(&self) -> impl Iterator<Item = f32> {
        self.entries[..self.placed].iter().map(|entry| entry.weight)
    }

    pub(super) fn set_weight(&mut self, index: usize, weight: f32) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.weight = weight;
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.names.memory_bytes()
            + self.entries.capacity() * size_of::<Entry>()
            + self.table.allocation_size()
    }
}

const _: () = assert!(size_of::<Entry>() == 12);

#[cfg(test)]
mod tests {
    use super::*;

    fn row(domain: &str, server: u16) -> MapRow {
        MapRow {
            domain: domain.into(),
            server: ServerId(server),
            moving_to: None,
            page: 4_599,
            since_s: 1_311_797_321,
            by: By::Rule,
            fence: 0,
        }
    }

    #[test]
    fn rows_come_back_as_they_went_and_are_replaced() {
        let mut map = DomainMap::default();
        let mut rows = [row("a.example", 1), row("b.example", 2), row(&"long.".repeat(60), 3)];
        rows[1].page = u64::MAX;
        rows.iter().for_each(|row| {
            map.set(row);
        });
        assert_eq!(map.get("a.example").as_ref(), Some(&rows[0]));
        assert_eq!(map.get("b.example").as_ref(), Some(&rows[1]));
        assert_eq!(map.find(&"long.".repeat(60)).unwrap().server, ServerId(3));
        assert_eq!(map.get("c.example"), None);
        let moved = MapRow {
            server: ServerId(9),
            moving_to: Some(ServerId(4)),
            by: By::Person,
            fence: 7,
            ..rows[0].clone()
        };
        map.sent(100, &[(0, 10)]);
        map.set(&moved);
        assert_eq!((map.get("a.example").as_ref(), map.len()), (Some(&moved), 3));
        assert!(map.find("a.example").unwrap().is_fenced);
        assert_eq!(map.loads().per_hour(ServerId(1), 100), 0.0, "its load moves along");
        assert!(map.loads().per_hour(ServerId(9), 100) > 0.0);
    }

    #[test]
    fn what_was_not_placed_is_forgotten() {
        let mut map = DomainMap::default();
        map.set(&row("a.example", 1));
        let mark = map.numbers();
        for n in 0..5_000 {
            assert_eq!(map.number(&format!("{n}.example"), 0, 0), mark + n);
        }
        assert_eq!(map.find("77.example"), None, "it has no server");
        map.set(&row("0.example", 1));
        map.forget_from(mark);
        assert_eq!((map.len(), map.numbers(), map.get("0.example")), (1, 1, None));
        assert_eq!(map.number("77.example", 0, 0), mark);
        assert_eq!(map.domain(0), "a.example");
    }

    #[test]
    fn a_million_domains_fit_in_60_mb() {
        let mut map = DomainMap::default();
        for n in 0..1_000_000u32 {
            // Fourteen bytes, as domains are.
            map.set(&row(&format!("d{n:08}.ru.x"), (n % 16) as u16));
        }
        assert_eq!(map.len(), 1_000_000);
        assert!(map.memory_bytes() <= 60_000_000, "{} bytes", map.memory_bytes());
        assert_eq!(map.find("d00123456.ru.x").unwrap().server, ServerId(0));
    }
}
