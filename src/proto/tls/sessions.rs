//! Sessions by host name: a bounded number of them, and the one that was kept longest ago goes first.

use crate::base::fingerprint;
use hashbrown::HashTable;
use slab::Slab;

const NONE: u32 = u32::MAX;

/// A store of one value per host name. A value is found by its whole name, never by a hash of it alone.
pub(super) struct Sessions<S> {
    // by_name.len() == rows.len() <= rows_max
    by_name: HashTable<u32>,
    rows: Slab<Row<S>>,
    rows_max: usize,
    oldest: u32,
    newest: u32,
}

struct Row<S> {
    name: Box<str>,
    value: S,
    // The list of ages, from the oldest to the newest.
    older: u32,
    newer: u32,
}

impl<S> Sessions<S> {
    pub fn new(rows_max: usize) -> Sessions<S> {
        let rows_max = rows_max.min(NONE as usize);
        Sessions { by_name: HashTable::new(), rows: Slab::new(), rows_max, oldest: NONE, newest: NONE }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn get(&self, name: &str) -> Option<&S> {
        self.find(name).map(|row| &self.rows[row as usize].value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut S> {
        self.find(name).map(|row| &mut self.rows[row as usize].value)
    }

    /// Keeps a value as the newest; the name's earlier value goes, and if there is no room the oldest of all.
    pub fn put(&mut self, name: &str, value: S) {
        if self.rows_max == 0 {
            return;
        }
        if let Some(row) = self.find(name) {
            self.rows[row as usize].value = value;
            self.unlink(row);
            self.link_newest(row);
            return;
        }
        if self.rows.len() == self.rows_max {
            self.remove_row(self.oldest);
        }
        let row = self.rows.insert(Row { name: name.into(), value, older: NONE, newer: NONE }) as u32;
        let rows = &self.rows;
        self.by_name.insert_unique(fingerprint(name.as_bytes()), row, |&row| {
            fingerprint(rows[row as usize].name.as_bytes())
        });
        self.link_newest(row);
    }

    pub fn remove(&mut self, name: &str) -> Option<S> {
        self.find(name).map(|row| self.remove_row(row))
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.by_name
            .find(fingerprint(name.as_bytes()), |&row| *self.rows[row as usize].name == *name)
            .copied()
    }

    fn remove_row(&mut self, row: u32) -> S {
        self.unlink(row);
        let Row { name, value, .. } = self.rows.remove(row as usize);
        if let Ok(entry) = self.by_name.find_entry(fingerprint(name.as_bytes()), |&other| other == row) {
            entry.remove();
        }
        value
    }

    fn unlink(&mut self, row: u32) {
        let (older, newer) = (self.rows[row as usize].older, self.rows[row as usize].newer);
        match older {
            NONE => self.oldest = newer,
            _ => self.rows[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.rows[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, row: u32) {
        let older = self.newest;
        self.rows[row as usize].older = older;
        self.rows[row as usize].newer = NONE;
        match older {
            NONE => self.oldest = row,
            _ => self.rows[older as usize].newer = row,
        }
        self.newest = row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sessions: &Sessions<u32>) -> Vec<&str> {
        let mut names = Vec::new();
        let mut row = sessions.oldest;
        while row != NONE {
            names.push(&*sessions.rows[row as usize].name);
            row = sessions.rows[row as usize].newer;
        }
        names
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let mut sessions = Sessions::new(3);
        for (at, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            sessions.put(name, at as u32);
        }
        assert_eq!(names(&sessions), ["b", "c", "d"]);
        assert_eq!(sessions.get("a"), None);
        assert_eq!(sessions.get("d"), Some(&3));
    }

    #[test]
    fn a_name_that_is_kept_anew_is_the_newest() {
        let mut sessions = Sessions::new(3);
        for name in ["a", "b", "c", "a", "d"] {
            sessions.put(name, 7);
        }
        assert_eq!(names(&sessions), ["c", "a", "d"]);
        sessions.put("c", 8);
        assert_eq!(sessions.get("c"), Some(&8));
        assert_eq!(names(&sessions), ["a", "d", "c"]);
    }

    #[test]
    fn any_row_can_be_removed() {
        for gone in ["a", "b", "c"] {
            let mut sessions = Sessions::new(3);
            for name in ["a", "b", "c"] {
                sessions.put(name, 1);
            }
            assert_eq!(sessions.remove(gone), Some(1));
            assert_eq!(sessions.remove(gone), None);
            let left: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| *name != gone).collect();
            assert_eq!(names(&sessions), left);
            assert_eq!(sessions.by_name.len(), 2);
        }
    }

    #[test]
    fn a_store_without_room_keeps_nothing() {
        let mut sessions = Sessions::new(0);
        sessions.put("a", 1);
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn it_agrees_with_a_plain_list() {
        let mut rng = crate::base::Rng::new(11);
        let mut sessions = Sessions::new(20);
        let mut plain: Vec<(String, u32)> = Vec::new();
        for round in 0..20_000 {
            let name = format!("host{}", rng.below(40));
            match rng.below(3) {
                0 => {
                    let at = plain.iter().position(|(other, _)| *other == name);
                    assert_eq!(sessions.remove(&name), at.map(|at| plain.remove(at).1));
                }
                _ => {
                    plain.retain(|(other, _)| *other != name);
                    plain.push((name.clone(), round));
                    if plain.len() > 20 {
                        plain.remove(0);
                    }
                    sessions.put(&name, round);
                }
            }
            assert_eq!(sessions.len(), plain.len());
            assert_eq!(names(&sessions), plain.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        }
    }
}
