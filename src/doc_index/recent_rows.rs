use super::row::{ROW_BYTES, Row};
use rapidhash::fast::RapidHashMap;

/// Rows that are not in the table yet, as they are written there, in the order in which their documents first came. What
/// is looked into here and there is a number for each of them, and not the rows.
#[derive(Default)]
pub(super) struct RecentRows {
    places: RapidHashMap<u32, u32>,
    rows: Vec<RecentRow>,
}

pub(super) struct RecentRow {
    pub doc_id: u32,
    pub bytes: [u8; ROW_BYTES],
}

/// Memory that one takes, with the room that tables leave.
pub(super) const RECENT_BYTES: usize = 2 * size_of::<RecentRow>();

impl RecentRows {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn ram_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<RecentRow>()
            + self.places.capacity() * (size_of::<(u32, u32)>() + 1) * 8 / 7
    }

    pub fn get(&self, doc_id: u32) -> Option<Row> {
        let place = *self.places.get(&doc_id)?;
        Row::decode(&self.rows[place as usize].bytes)
    }

    pub fn put(&mut self, doc_id: u32, bytes: [u8; ROW_BYTES]) {
        let place = *self.places.entry(doc_id).or_insert(self.rows.len() as u32) as usize;
        match self.rows.get_mut(place) {
            Some(row) => row.bytes = bytes,
            None => self.rows.push(RecentRow { doc_id, bytes }),
        }
    }

    /// By the numbers of their documents.
    pub fn in_order(&self) -> impl Iterator<Item = &RecentRow> {
        let mut order: Vec<(u32, u32)> =
            self.rows.iter().enumerate().map(|(place, row)| (row.doc_id, place as u32)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, place)| &self.rows[place as usize])
    }

    pub fn clear(&mut self) {
        self.places.clear();
        self.rows.clear();
    }
}
