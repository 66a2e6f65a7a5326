use super::note::{Note, NoteOwner};
use super::row::NotePlace;
use crate::storage::Bytes;
use rapidhash::fast::RapidHashMap;
use std::borrow::Cow;
use std::io;

/// The notes of all documents, each at a place that its row tells. What is put in is written with the next
/// [`Notes::write`].
pub(super) struct Notes {
    bytes: Bytes,
    /// Notes that keep their place, on their way to the disk.
    changed: RapidHashMap<u64, Vec<u8>>,
    /// Notes that are new, one after the other from this place.
    end: u64,
    new: Vec<u8>,
}

impl Notes {
    pub fn new(bytes: Bytes) -> Notes {
        // Place 0 is none.
        let end = bytes.len().next_multiple_of(32).max(32);
        Notes { bytes, changed: RapidHashMap::default(), end, new: Vec::new() }
    }

    /// The note of an owner; an empty one if there is none at the place.
    pub fn get(&self, owner: NoteOwner, place: NotePlace) -> io::Result<Note> {
        if place.bytes == 0 {
            return Ok(Note::default());
        }
        Ok(Note::decode(owner, &self.bytes_at(place)?).unwrap_or_default())
    }

    fn bytes_at(&self, place: NotePlace) -> io::Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.changed.get(&place.at) {
            return Ok(Cow::Borrowed(bytes));
        }
        if let Some(at) = place.at.checked_sub(self.end) {
            return Ok(Cow::Borrowed(self.new.get(at as usize..).unwrap_or_default()));
        }
        let mut bytes = vec![0; usize::from(place.bytes)];
        let read = self.bytes.read_at(&mut bytes, place.at)?;
        bytes.truncate(read);
        Ok(Cow::Owned(bytes))
    }

    /// Whether a place is whole, and has a note of this owner. One that a crash took the note of may be another's by
    /// now.
    fn has(&self, owner: NoteOwner, place: NotePlace) -> bool {
        let is_there = |bytes: Cow<'_, [u8]>| {
            bytes.len() >= usize::from(place.bytes) && Note::decode(owner, &bytes).is_some()
        };
        place.bytes > 0 && self.bytes_at(place).is_ok_and(is_there)
    }

    /// Keeps a note, at the place of the one before it if it fits there, and returns where it is. `before` is whose
    /// note was there.
    pub fn put(&mut self, owner: NoteOwner, note: &Note, before: NoteOwner, place: NotePlace) -> NotePlace {
        if note.is_empty() && place.bytes == 0 {
            return place;
        }
        let has_place = self.has(before, place);
        let at = self.new.len();
        let bytes = note.encode(owner, &mut self.new);
        if !has_place || usize::from(place.bytes) < bytes {
            return NotePlace { at: self.end + at as u64, bytes: bytes as u16 };
        }
        let note = self.new.split_off(at);
        match place.at.checked_sub(self.end) {
            Some(at) => self.new[at as usize..at as usize + bytes].copy_from_slice(&note),
            None => drop(self.changed.insert(place.at, note)),
        }
        place
    }

    /// Hands what is new to the file. If that fails, all of it is still here to be tried again.
    pub fn write(&mut self) -> io::Result<()> {
        for (&at, bytes) in &self.changed {
            self.bytes.write_at(bytes, at)?;
        }
        self.changed.clear();
        if !self.new.is_empty() {
            self.bytes.write_at(&self.new, self.end)?;
            self.end += self.new.len() as u64;
            self.new.clear();
        }
        Ok(())
    }

    pub fn file(&self) -> &Bytes {
        &self.bytes
    }
}
