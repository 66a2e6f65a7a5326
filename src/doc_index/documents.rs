use super::file::Bytes;
use super::note::Note;
use super::row::{NotePlace, ROW_BYTES, Row};
use rapidhash::fast::RapidHashMap;
use std::io;

/// The rows of all documents, and their notes. What is put in is written with the next [`Documents::write`].
pub(super) struct Documents {
    rows: Bytes,
    notes: Bytes,
    unwritten: RapidHashMap<u32, Row>,
    /// Notes that keep their place, on their way to the disk.
    notes_changed: RapidHashMap<u64, Vec<u8>>,
    /// Notes that are new, one after the other from this place.
    notes_end: u64,
    notes_new: Vec<u8>,
    /// Kept for its memory.
    scratch: Vec<u8>,
}

/// Rows read at once by whoever goes through all of them.
const ROWS_PER_READ: usize = 16 * 1024;

impl Documents {
    pub fn new(rows: Bytes, notes: Bytes) -> Documents {
        // Place 0 is none.
        let notes_end = notes.len().next_multiple_of(32).max(32);
        Documents {
            rows,
            notes,
            unwritten: RapidHashMap::default(),
            notes_changed: RapidHashMap::default(),
            notes_end,
            notes_new: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub fn get(&self, doc_id: u32) -> io::Result<Option<Row>> {
        if let Some(row) = self.unwritten.get(&doc_id) {
            return Ok(Some(*row));
        }
        let mut bytes = [0; ROW_BYTES];
        let read = self.rows.read_at(&mut bytes, place(doc_id))?;
        Ok((read == ROW_BYTES).then(|| Row::decode(&bytes)).flatten())
    }

    pub fn put(&mut self, doc_id: u32, row: Row) {
        self.unwritten.insert(doc_id, row);
    }

    pub fn note(&self, place: NotePlace) -> io::Result<Note> {
        if place.bytes == 0 {
            return Ok(Note::default());
        }
        if let Some(bytes) = self.notes_changed.get(&place.at) {
            return Ok(Note::decode(bytes).unwrap_or_default());
        }
        if let Some(at) = place.at.checked_sub(self.notes_end) {
            let bytes = self.notes_new.get(at as usize..).unwrap_or_default();
            return Ok(Note::decode(bytes).unwrap_or_default());
        }
        let mut bytes = vec![0; usize::from(place.bytes)];
        let read = self.notes.read_at(&mut bytes, place.at)?;
        Ok(Note::decode(&bytes[..read]).unwrap_or_default())
    }

    /// Keeps a note, in its old place if it fits.
    pub fn put_note(&mut self, place: &mut NotePlace, note: &Note) {
        if note.is_empty() && place.bytes == 0 {
            return;
        }
        if place.bytes == 0 {
            *place = self.append(note);
            return;
        }
        self.scratch.clear();
        let bytes = note.encode(&mut self.scratch);
        if usize::from(place.bytes) < bytes {
            *place = self.append(note);
        } else if let Some(at) = place.at.checked_sub(self.notes_end) {
            self.notes_new[at as usize..at as usize + bytes].copy_from_slice(&self.scratch);
        } else {
            self.notes_changed.insert(place.at, self.scratch.clone());
        }
    }

    fn append(&mut self, note: &Note) -> NotePlace {
        let at = self.notes_end + self.notes_new.len() as u64;
        let bytes = note.encode(&mut self.notes_new) as u16;
        NotePlace { at, bytes }
    }

    pub fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Hands what is new to the files. If that fails, all of it is still here to be tried again.
    pub fn write(&mut self) -> io::Result<()> {
        for (&at, bytes) in &self.notes_changed {
            self.notes.write_at(bytes, at)?;
        }
        self.notes_changed.clear();
        if !self.notes_new.is_empty() {
            self.notes.write_at(&self.notes_new, self.notes_end)?;
            self.notes_end += self.notes_new.len() as u64;
            self.notes_new.clear();
        }
        for (&doc_id, row) in &self.unwritten {
            self.rows.write_at(&row.encode(), place(doc_id))?;
        }
        self.unwritten.clear();
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.notes.sync()?;
        self.rows.sync()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.rows.disk_bytes() + self.notes.disk_bytes()
    }
}

/// Rows in the order of their numbers, many at a time.
pub(super) struct RowsInOrder {
    rows: Bytes,
    buffer: Vec<u8>,
    /// The number of the first row in the buffer.
    first: u32,
}

impl RowsInOrder {
    pub fn new(rows: Bytes) -> RowsInOrder {
        RowsInOrder { rows, buffer: Vec::new(), first: 0 }
    }

    /// The row of a document; asked for in ascending order.
    pub fn get(&mut self, doc_id: u32) -> io::Result<Option<Row>> {
        let held = (self.buffer.len() / ROW_BYTES) as u32;
        if doc_id < self.first || doc_id - self.first >= held {
            self.buffer.resize(ROWS_PER_READ * ROW_BYTES, 0);
            let read = self.rows.read_at(&mut self.buffer, place(doc_id))?;
            self.buffer.truncate(read - read % ROW_BYTES);
            self.first = doc_id;
        }
        // Past the end there are none, which need not be found out again for each.
        if self.buffer.is_empty() {
            self.buffer.resize(ROWS_PER_READ * ROW_BYTES, 0);
        }
        let at = (doc_id - self.first) as usize * ROW_BYTES;
        let bytes = self.buffer.get(at..at + ROW_BYTES).and_then(|bytes| bytes.try_into().ok());
        Ok(bytes.and_then(Row::decode))
    }
}

fn place(doc_id: u32) -> u64 {
    u64::from(doc_id) * ROW_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::row::DocState;

    fn documents() -> Documents {
        Documents::new(Bytes::Memory(Vec::new()), Bytes::Memory(Vec::new()))
    }

    #[test]
    fn rows_are_there_before_and_after_they_are_written() {
        let mut documents = documents();
        let row = |status| Row { state: DocState::Success, status, ..Row::default() };
        for doc_id in [1, 7, 100_000] {
            documents.put(doc_id, row(doc_id as u16));
        }
        for _ in 0..2 {
            for doc_id in [1, 7, 100_000] {
                assert_eq!(documents.get(doc_id).unwrap(), Some(row(doc_id as u16)));
            }
            assert_eq!(documents.get(2).unwrap(), None);
            assert_eq!(documents.get(4_000_000).unwrap(), None);
            documents.write().unwrap();
        }
        let Bytes::Memory(bytes) = documents.rows else { unreachable!() };
        let mut rows = RowsInOrder::new(Bytes::Memory(bytes));
        let found: Vec<u32> = (1..200_000).filter(|&id| rows.get(id).unwrap().is_some()).collect();
        assert_eq!(found, [1, 7, 100_000]);
    }

    #[test]
    fn a_note_keeps_its_place_while_it_fits() {
        let mut documents = documents();
        let note = |len: usize| Note { reason: Some("x".repeat(len).into()), ..Note::default() };
        let (mut a, mut b) = (NotePlace::default(), NotePlace::default());
        documents.put_note(&mut a, &note(3));
        documents.put_note(&mut b, &note(100));
        let first = a;
        documents.write().unwrap();
        documents.put_note(&mut a, &note(5));
        assert_eq!(a, first);
        assert_eq!(documents.note(a).unwrap(), note(5));
        documents.put_note(&mut a, &note(99));
        assert_ne!(a.at, first.at);
        documents.write().unwrap();
        assert_eq!(documents.note(a).unwrap(), note(99));
        assert_eq!(documents.note(b).unwrap(), note(100));
        let mut none = NotePlace::default();
        documents.put_note(&mut none, &Note::default());
        assert_eq!(none, NotePlace::default());
        assert_eq!(documents.note(none).unwrap(), Note::default());
    }
}
