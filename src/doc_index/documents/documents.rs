use super::super::bits::Bits;
use super::note::{Note, NoteOwner};
use super::notes::Notes;
use super::recent_rows::{RECENT_BYTES, RecentRow, RecentRows};
use super::row::{ROW_BYTES, Row};
use crate::storage::Bytes;
use std::collections::BTreeSet;
use std::io;

/// The rows of all documents, and their notes. What is put in is written with the next [`Documents::write`]: one after
/// the other into a log, whichever documents they are of. When the log has enough of them, they go to their places in
/// the table in the order of their numbers, many to a page of the disk, and the log begins anew.
///
/// An entry of the log: the document's number 4, a checksum of it and of the row's own 4, the row.
pub(crate) struct Documents {
    table: Bytes,
    log: Bytes,
    notes: Notes,
    /// Rows that are not in the table. Those that are not in the log either stand in `unlogged` too.
    recent: RecentRows,
    recent_max: usize,
    unlogged: Vec<u8>,
    log_end: u64,
    /// Documents that have a row.
    has_row: Bits,
    /// For who keeps a copy: documents whose rows were put since.
    changed: Option<Changed>,
}

struct Changed {
    docs: BTreeSet<u32>,
    /// There were too many.
    is_torn: bool,
    /// Documents from this number on came since: what becomes of them is noted.
    first_new: u32,
}

/// The files of the documents.
pub(crate) struct DocumentFiles {
    pub table: Bytes,
    pub log: Bytes,
    pub notes: Bytes,
}

const ENTRY_BYTES: usize = 8 + ROW_BYTES;
/// Entries of the log that are read at once.
const ENTRIES_PER_READ: usize = 4 * 1024;
/// Rows of the table that are written together: those of one page of the disk.
const ROWS_PER_PAGE: u32 = 64;
/// How many rows there are in the log at least and at most.
const RECENT_MIN: usize = 1_024;
const RECENT_MAX: usize = 1 << 19;
/// Rows that may change while nobody takes what has: some tens of megabytes.
const CHANGED_MAX: usize = if cfg!(test) { 1 << 12 } else { 1 << 22 };

impl Documents {
    /// Takes up the rows that the log has. What a crash tore of its end counts for nothing.
    pub fn open(files: DocumentFiles, memory_bytes: usize) -> io::Result<Documents> {
        let DocumentFiles { table, log, notes } = files;
        let mut documents = Documents {
            table,
            log,
            notes: Notes::new(notes),
            recent: RecentRows::default(),
            recent_max: (memory_bytes / RECENT_BYTES).clamp(RECENT_MIN, RECENT_MAX),
            unlogged: Vec::new(),
            log_end: 0,
            has_row: Bits::default(),
            changed: None,
        };
        documents.read_log()?;
        Ok(documents)
    }

    fn read_log(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; ENTRIES_PER_READ * ENTRY_BYTES];
        loop {
            let read = self.log.read_at(&mut buffer, self.log_end)?;
            let mut entries = buffer[..read].chunks_exact(ENTRY_BYTES);
            for entry in &mut entries {
                let Some((doc_id, row)) = read_entry(entry) else { return Ok(()) };
                self.recent.put(doc_id, row.encode());
                self.log_end += ENTRY_BYTES as u64;
            }
            if read < buffer.len() {
                return Ok(());
            }
        }
    }

    pub fn get(&self, doc_id: u32) -> io::Result<Option<Row>> {
        if let Some(row) = self.recent.get(doc_id) {
            return Ok(Some(row));
        }
        let mut bytes = [0; ROW_BYTES];
        let read = self.table.read_at(&mut bytes, place(doc_id))?;
        Ok((read == ROW_BYTES).then(|| Row::decode(&bytes)).flatten())
    }

    /// The row of a document of an index that is open for writing: an empty one if it has none.
    pub fn row(&self, doc_id: u32) -> io::Result<Row> {
        let row = if self.has_row.get(doc_id) { self.get(doc_id)? } else { None };
        Ok(row.unwrap_or_default())
    }

    pub fn has_row(&self, doc_id: u32) -> bool {
        self.has_row.get(doc_id)
    }

    /// Remembers that the table has a row of this document.
    pub fn set_has_row(&mut self, doc_id: u32) {
        self.has_row.set(doc_id, true);
    }

    /// A row that is not in the table yet.
    pub fn recent(&self, doc_id: u32) -> Option<Row> {
        self.recent.get(doc_id)
    }

    pub fn put(&mut self, doc_id: u32, row: Row) {
        self.has_row.set(doc_id, true);
        let bytes = row.encode();
        self.unlogged.extend_from_slice(&doc_id.to_le_bytes());
        self.unlogged.extend_from_slice(&check(doc_id, &bytes).to_le_bytes());
        self.unlogged.extend_from_slice(&bytes);
        self.recent.put(doc_id, bytes);
        if let Some(changed) = &mut self.changed {
            changed.put(doc_id);
        }
    }

    /// From now on it is noted which rows are put. The next document has this number.
    pub fn note_changes(&mut self, first_new: u32) {
        self.changed = Some(Changed { docs: BTreeSet::new(), is_torn: false, first_new });
    }

    /// Whether a document came after the noting began.
    pub fn is_noted(&self, doc_id: u32) -> bool {
        self.changed.as_ref().is_some_and(|changed| doc_id >= changed.first_new)
    }

    /// Documents whose rows were put, some of them.
    pub fn take_changed(&mut self, max: usize) -> Vec<u32> {
        let Some(changed) = &mut self.changed else { return Vec::new() };
        std::iter::from_fn(|| changed.docs.pop_first()).take(max).collect()
    }

    /// What has changed is not known any more.
    pub fn tear(&mut self) {
        self.changed = None;
    }

    pub fn has_changed(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| !changed.docs.is_empty())
    }

    /// Whether rows were put that are not noted.
    pub fn is_torn(&self) -> bool {
        self.changed.as_ref().is_none_or(|changed| changed.is_torn)
    }

    /// The note of a document, as its row tells of it.
    pub fn note(&self, doc_id: u32, row: &Row) -> io::Result<Note> {
        self.notes.get(row.note_owner(doc_id), row.note)
    }

    /// Keeps a note for a row that is about to be put. `before` is whose note was at the place that the row tells.
    pub fn put_note(&mut self, doc_id: u32, before: NoteOwner, row: &mut Row, note: &Note) {
        row.note = self.notes.put(row.note_owner(doc_id), note, before, row.note);
    }

    /// Whether there is something to write.
    pub fn is_dirty(&self) -> bool {
        !self.unlogged.is_empty()
    }

    pub fn ram_bytes(&self) -> usize {
        self.recent.ram_bytes() + self.unlogged.capacity()
    }

    /// Memory that grows with every document.
    pub fn table_bytes(&self) -> usize {
        self.has_row.ram_bytes()
    }

    /// Hands what is new to the files. If that fails, all of it is still here to be tried again.
    pub fn write(&mut self) -> io::Result<()> {
        self.notes.write()?;
        if !self.unlogged.is_empty() {
            self.log.write_at(&self.unlogged, self.log_end)?;
            self.log_end += self.unlogged.len() as u64;
            self.unlogged.clear();
        }
        Ok(())
    }

    /// Whether the log has enough: the next is to [`Documents::settle`].
    pub fn is_full(&self) -> bool {
        self.recent.len() >= self.recent_max
    }

    /// Brings the rows of the log to their places in the table. Killed in between, it is done again from the log. What
    /// the rows rely upon is to be durable before.
    pub fn settle(&mut self) -> io::Result<()> {
        debug_assert!(self.unlogged.is_empty());
        self.notes.file().sync()?;
        let rows: Vec<&RecentRow> = self.recent.in_order().collect();
        let mut page = [0; ROWS_PER_PAGE as usize * ROW_BYTES];
        for group in rows.chunk_by(|a, b| a.doc_id / ROWS_PER_PAGE == b.doc_id / ROWS_PER_PAGE) {
            let (first, last) = (group[0].doc_id, group[group.len() - 1].doc_id);
            let bytes = &mut page[..(last - first + 1) as usize * ROW_BYTES];
            bytes.fill(0);
            self.table.read_at(bytes, place(first))?;
            for row in group {
                let at = (row.doc_id - first) as usize * ROW_BYTES;
                bytes[at..at + ROW_BYTES].copy_from_slice(&row.bytes);
            }
            self.table.write_at(bytes, place(first))?;
        }
        self.table.sync()?;
        self.log.truncate(0)?;
        self.log_end = 0;
        self.recent.clear();
        Ok(())
    }

    /// Documents from this number on are none: what a crash left of theirs is not to be taken for another's.
    pub fn cut(&mut self, next_doc: u32) -> io::Result<()> {
        if self.table.len() > place(next_doc) {
            self.table.truncate(place(next_doc))?;
            self.table.sync()?;
        }
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.notes.file().sync()?;
        self.log.sync()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.table.disk_bytes() + self.log.disk_bytes() + self.notes.file().disk_bytes()
    }
}

impl Changed {
    fn put(&mut self, doc_id: u32) {
        self.docs.insert(doc_id);
        if self.docs.len() > CHANGED_MAX {
            (self.is_torn, self.docs) = (true, BTreeSet::new());
        }
    }
}

/// Tells a row from one that was torn, or stands for another document.
fn check(doc_id: u32, row: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&doc_id.to_le_bytes()), &row[..4])
}

fn read_entry(entry: &[u8]) -> Option<(u32, Row)> {
    let (numbers, row) = entry.split_at_checked(8)?;
    let doc_id = u32::from_le_bytes(numbers[..4].try_into().ok()?);
    let is_right = numbers[4..] == check(doc_id, row).to_le_bytes();
    Some((doc_id, Row::decode(row.try_into().ok()?).filter(|_| is_right)?))
}

pub(super) fn place(doc_id: u32) -> u64 {
    u64::from(doc_id) * ROW_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use crate::doc_index::DocState;
    use crate::doc_index::documents::RowsInOrder;
    use std::collections::BTreeMap;

    fn documents() -> Documents {
        let bytes = || Bytes::Memory(Vec::new());
        Documents::open(DocumentFiles { table: bytes(), log: bytes(), notes: bytes() }, 0).unwrap()
    }

    fn row(status: u16) -> Row {
        Row { state: DocState::Success, status, ..Row::default() }
    }

    fn held(bytes: &Bytes) -> Vec<u8> {
        match bytes {
            Bytes::Memory(bytes) => bytes.clone(),
            Bytes::File { .. } => unreachable!(),
        }
    }

    /// As another process finds the files, with the log cut at a place.
    fn reopened(documents: &Documents, log_bytes: usize) -> Documents {
        let mut log = held(&documents.log);
        log.truncate(log_bytes);
        let memory = Bytes::Memory;
        let files = DocumentFiles {
            table: memory(held(&documents.table)),
            log: memory(log),
            notes: memory(held(documents.notes.file())),
        };
        Documents::open(files, 0).unwrap()
    }

    #[test]
    fn rows_are_there_wherever_they_are_on_their_way() {
        let mut documents = documents();
        for doc_id in [1, 7, 100_000] {
            documents.put(doc_id, row(doc_id as u16));
        }
        for step in 0..3 {
            for doc_id in [1, 7, 100_000] {
                assert_eq!(documents.get(doc_id).unwrap(), Some(row(doc_id as u16)));
            }
            assert_eq!((documents.get(2).unwrap(), documents.get(4_000_000).unwrap()), (None, None));
            documents.write().unwrap();
            if step == 1 {
                documents.settle().unwrap();
            }
        }
        let mut rows = RowsInOrder::new(Bytes::Memory(held(&documents.table)));
        let found: Vec<u32> = (1..200_000).filter(|&id| rows.get(id).unwrap().is_some()).collect();
        assert_eq!(found, [1, 7, 100_000]);
    }

    #[test]
    fn another_process_finds_what_was_written_and_nothing_torn() {
        let (mut documents, mut rng, mut model) = (documents(), Rng::new(11), BTreeMap::new());
        for step in 0..5_000u32 {
            let doc_id = 1 + rng.below(3_000) as u32;
            documents.put(doc_id, row(step as u16));
            model.insert(doc_id, row(step as u16));
            if step % 50 == 0 {
                documents.write().unwrap();
                if documents.is_full() {
                    documents.settle().unwrap();
                }
            }
        }
        documents.write().unwrap();
        let again = reopened(&documents, usize::MAX);
        assert!(
            again.recent.len() < RECENT_MIN && again.recent.len() > 0,
            "some are in the table, some are not"
        );
        for (&doc_id, row) in &model {
            assert_eq!(again.get(doc_id).unwrap().as_ref(), Some(row));
        }
        // What is torn counts as if it had never been put.
        let whole = held(&documents.log).len();
        for cut in (0..whole).step_by(61) {
            let again = reopened(&documents, cut);
            assert_eq!(again.log_end, (cut - cut % ENTRY_BYTES) as u64);
        }
        // An entry of another document is none of this one.
        let mut bad = held(&documents.log);
        bad[0] ^= 1;
        documents.log = Bytes::Memory(bad);
        assert_eq!(reopened(&documents, usize::MAX).log_end, 0);
    }

    #[test]
    fn a_note_keeps_its_place_while_it_fits() {
        let mut documents = documents();
        let note = |len: usize| Note { reason: Some("x".repeat(len).into()), ..Note::default() };
        let put = |documents: &mut Documents, doc_id, row: &mut Row, note: &Note| {
            let before = row.note_owner(doc_id);
            row.digest += 1;
            documents.put_note(doc_id, before, row, note);
        };
        let (mut a, mut b) = (Row::default(), Row::default());
        put(&mut documents, 1, &mut a, &note(3));
        put(&mut documents, 2, &mut b, &note(100));
        let first = a;
        documents.write().unwrap();
        put(&mut documents, 1, &mut a, &note(5));
        assert_eq!(a.note, first.note);
        assert_eq!(documents.note(1, &a).unwrap(), note(5));
        assert_eq!(documents.note(1, &first).unwrap(), Note::default(), "the note of another version");
        put(&mut documents, 1, &mut a, &note(99));
        assert_ne!(a.note.at, first.note.at);
        documents.write().unwrap();
        assert_eq!(documents.note(1, &a).unwrap(), note(99));
        assert_eq!(documents.note(2, &b).unwrap(), note(100));
        let mut none = Row::default();
        documents.put_note(3, none.note_owner(3), &mut none, &Note::default());
        assert_eq!(none, Row::default());
        assert_eq!(documents.note(3, &none).unwrap(), Note::default());
    }
}
