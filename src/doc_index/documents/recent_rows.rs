use super::row::{ROW_BYTES, Row};
use rapidhash::fast::RapidHashMap;
use std::cell::RefCell;

/// Rows that are not in the table yet, as they are written there, one after the other. Most crawls never ask for one of
/// them: where each is, is found out for all of them when one is asked for.
#[derive(Default)]
pub(crate) struct RecentRows {
    /// A document that came twice is here twice, and the later one counts.
    rows: Vec<RecentRow>,
    places: RefCell<Places>,
}

pub(crate) struct RecentRow {
    pub doc_id: u32,
    pub bytes: [u8; ROW_BYTES],
}

/// Where the rows of documents are, for those from the first on that are `known`.
#[derive(Default)]
struct Places {
    by_doc: RapidHashMap<u32, u32>,
    known: usize,
}

/// Memory that one takes, with the room that tables leave.
pub(crate) const RECENT_BYTES: usize = 2 * size_of::<RecentRow>();

impl RecentRows {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn ram_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<RecentRow>()
            + self.places.borrow().by_doc.capacity() * (size_of::<(u32, u32)>() + 1) * 8 / 7
    }

    pub fn get(&self, doc_id: u32) -> Option<Row> {
        let mut places = self.places.borrow_mut();
        let known = std::mem::replace(&mut places.known, self.rows.len());
        for (place, row) in self.rows.iter().enumerate().skip(known) {
            places.by_doc.insert(row.doc_id, place as u32);
        }
        let place = *places.by_doc.get(&doc_id)?;
        Row::decode(&self.rows[place as usize].bytes)
    }

    pub fn put(&mut self, doc_id: u32, bytes: [u8; ROW_BYTES]) {
        self.rows.push(RecentRow { doc_id, bytes });
    }

    /// By the numbers of their documents; of two of one document the later comes last.
    pub fn in_order(&self) -> impl Iterator<Item = &RecentRow> {
        let mut order: Vec<(u32, u32)> =
            self.rows.iter().enumerate().map(|(place, row)| (row.doc_id, place as u32)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, place)| &self.rows[place as usize])
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.places.get_mut().by_doc.clear();
        self.places.get_mut().known = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_rows_of_a_document_the_later_counts_whenever_it_is_asked_for() {
        let row = |status| Row { status, ..Row::default() };
        let mut rows = RecentRows::default();
        for (doc_id, status) in [(7, 1), (3, 2), (7, 3)] {
            rows.put(doc_id, row(status).encode());
        }
        assert_eq!((rows.get(7), rows.get(3), rows.get(1)), (Some(row(3)), Some(row(2)), None));
        rows.put(3, row(4).encode());
        rows.put(1, row(5).encode());
        assert_eq!((rows.get(7), rows.get(3), rows.get(1)), (Some(row(3)), Some(row(4)), Some(row(5))));
        let order: Vec<_> =
            rows.in_order().map(|one| (one.doc_id, Row::decode(&one.bytes).unwrap().status)).collect();
        assert_eq!(order, [(1, 5), (3, 2), (3, 4), (7, 1), (7, 3)]);
        rows.clear();
        assert_eq!((rows.get(7), rows.len()), (None, 0));
        rows.put(9, row(6).encode());
        assert_eq!(rows.get(9), Some(row(6)));
    }
}
