use super::build::Entries;
use super::catalog::Catalog;
use super::entry::{Entry, Place};
use super::file::List;

/// Every place of a store: from the indexes, and from the segments that are in none, which were read for it.
pub struct AllPlaces<'a> {
    catalog: &'a Catalog,
    bare: [Vec<Entry>; 3],
}

impl<'a> AllPlaces<'a> {
    pub fn new(catalog: &'a Catalog, bare: Entries) -> AllPlaces<'a> {
        AllPlaces { catalog, bare: bare.sorted() }
    }

    /// The places of a key, the newest first.
    pub fn find(&self, list: List, key: u64) -> Vec<Place> {
        let bare = &self.bare[list as usize];
        let first = bare.partition_point(|entry| entry.key < key);
        let mut places = self.catalog.find(list, key);
        places.extend(bare[first..].iter().take_while(|entry| entry.key == key).map(|entry| entry.place));
        places.sort_unstable_by(|a, b| b.cmp(a));
        places
    }
}
