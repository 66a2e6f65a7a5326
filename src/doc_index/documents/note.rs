use crate::base::varint::{put, take, take_bytes};
use crate::proto::http1::Validators;
use crate::proto::job::Held;

/// What is known of a document that has no fixed size; most have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// How the server can be asked whether the stored document has changed, and where that is.
    pub held: Option<Held>,
    /// Only its head was asked for: the document itself is not there.
    pub head_only: bool,
    /// One to use in place of the URL.
    pub new_url: Option<Box<str>>,
    /// The URL that the page says it should be known by.
    pub canonical: Option<Box<str>>,
    /// Why it is as it is, in words.
    pub reason: Option<Box<str>>,
    /// The node of a cluster whose store has the document; 0 for this one.
    pub store: u16,
}

/// Whose a note is: a document, and the version of it that its row tells of. A note keeps its place when the row moves
/// on, and a crash may take one of the two: the validators of one version are never found by the row of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoteOwner {
    pub doc_id: u32,
    pub digest: u64,
}

/// No text in a note is longer.
const TEXT_BYTES_MAX: usize = 8 * 1024;
const HEADER_BYTES: usize = 6;
/// Of what the checksum is of: behind the length.
const FLAGS_AT: usize = 2;
/// A flag: the checksum is of the version, too.
const OF_VERSION: u8 = 4;
/// A flag: behind all other fields there is the node whose store has the document.
const ELSEWHERE: u8 = 8;
/// Places are multiples of this, so that what changes a little fits where it was.
const ALIGN: usize = 32;

impl Note {
    pub fn is_empty(&self) -> bool {
        *self == Note::default()
    }

    /// A checksum 4, the length 2, then the fields. The bytes fill a place of their own; how many they are is returned.
    pub(crate) fn encode(&self, owner: NoteOwner, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + HEADER_BYTES, 0);
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let elsewhere = bit(self.store != 0, ELSEWHERE);
        out.push(bit(self.held.is_some(), 1) | bit(self.head_only, 2) | OF_VERSION | elsewhere);
        if let Some(Held { validators, segment }) = &self.held {
            put(out, *segment);
            for text in [&validators.etag, &validators.last_modified] {
                put(out, text.len() as u64);
                out.extend_from_slice(text);
            }
        }
        for text in [&self.new_url, &self.canonical, &self.reason] {
            let text = text.as_deref().filter(|text| text.len() <= TEXT_BYTES_MAX).unwrap_or_default();
            put(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        if self.store != 0 {
            put(out, u64::from(self.store));
        }
        let len = (out.len() - start - HEADER_BYTES) as u16;
        out[start + 4..start + 6].copy_from_slice(&len.to_le_bytes());
        let crc = check(owner, &out[start + 4..]);
        out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        let bytes = (out.len() - start).next_multiple_of(ALIGN);
        out.resize(start + bytes, 0);
        bytes
    }

    /// `None` for what is damaged, or another's: nothing but the need to fetch the document whole follows from that.
    pub(crate) fn decode(owner: NoteOwner, bytes: &[u8]) -> Option<Note> {
        let len = usize::from(u16::from_le_bytes(bytes.get(4..6)?.try_into().ok()?));
        let checked = bytes.get(4..HEADER_BYTES + len)?;
        if check(owner, checked).to_le_bytes() != bytes[..4] {
            return None;
        }
        let mut rest = &checked[2..];
        let flags = take_bytes(&mut rest, 1)?[0];
        let text = |rest: &mut &[u8]| -> Option<Box<[u8]>> {
            let len = take(rest)? as usize;
            Some(take_bytes(rest, len)?.into())
        };
        let mut held = None;
        if flags & 1 != 0 {
            let segment = take(&mut rest)?;
            let validators = Validators { etag: text(&mut rest)?, last_modified: text(&mut rest)? };
            held = Some(Held { validators, segment });
        }
        let words = |rest: &mut &[u8]| -> Option<Option<Box<str>>> {
            let text = String::from_utf8(text(rest)?.into_vec()).ok()?;
            Some((!text.is_empty()).then(|| text.into()))
        };
        let (new_url, canonical, reason) = (words(&mut rest)?, words(&mut rest)?, words(&mut rest)?);
        let store = if flags & ELSEWHERE != 0 { u16::try_from(take(&mut rest)?).ok()? } else { 0 };
        Some(Note { held, head_only: flags & 2 != 0, new_url, canonical, reason, store })
    }

    /// Why it is as it is, or where it is if that is elsewhere.
    pub fn said(&self) -> Option<String> {
        let elsewhere = || format!("fetched by node {}, whose store has it", self.store);
        self.reason.as_deref().map(str::to_string).or_else(|| (self.store != 0).then(elsewhere))
    }
}

/// A note of another document, or of another version, is none of this one. Earlier builds did not tell the version.
fn check(owner: NoteOwner, bytes: &[u8]) -> u32 {
    let mut crc = crc32c::crc32c(&owner.doc_id.to_le_bytes());
    if bytes.get(FLAGS_AT).is_some_and(|flags| flags & OF_VERSION != 0) {
        crc = crc32c::crc32c_append(crc, &owner.digest.to_le_bytes());
    }
    crc32c::crc32c_append(crc, bytes)
}

const _: () = assert!(3 * TEXT_BYTES_MAX + 2_048 < u16::MAX as usize, "a note's length is 16 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_as_they_went_or_not_at_all() {
        let validators = Validators { etag: (*b"\"x\"").into(), last_modified: (*b"Sun").into() };
        let whole = Note {
            held: Some(Held { validators, segment: 1 << 33 }),
            head_only: true,
            new_url: Some("http://a/ä".into()),
            canonical: Some("http://a/".into()),
            reason: Some("because".into()),
            store: 300,
        };
        let owner = NoteOwner { doc_id: 7, digest: 5 };
        for note in [whole, Note::default()] {
            let mut bytes = Vec::new();
            assert_eq!(note.encode(owner, &mut bytes), bytes.len());
            assert_eq!(Note::decode(NoteOwner { doc_id: 8, ..owner }, &bytes), None, "of another document");
            assert_eq!(Note::decode(NoteOwner { digest: 6, ..owner }, &bytes), None, "of another version");
            assert_eq!(bytes.len() % ALIGN, 0);
            assert_eq!(Note::decode(owner, &bytes), Some(note.clone()));
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 1;
                assert!(Note::decode(owner, &bad).is_none_or(|read| read == note), "byte {at}");
                assert!(Note::decode(owner, &bytes[..at]).is_none_or(|read| read == note));
            }
        }
        let long = Note { reason: Some("x".repeat(9_000).into()), ..Note::default() };
        let mut bytes = Vec::new();
        long.encode(owner, &mut bytes);
        assert_eq!(Note::decode(owner, &bytes), Some(Note::default()));
    }

    #[test]
    fn a_note_without_a_version_is_of_any() {
        let owner = NoteOwner { doc_id: 7, digest: 5 };
        let mut bytes = Vec::new();
        let note = Note { head_only: true, ..Note::default() };
        note.encode(owner, &mut bytes);
        bytes[HEADER_BYTES] &= !OF_VERSION;
        let len = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
        let crc = crc32c::crc32c_append(crc32c::crc32c(&[7, 0, 0, 0]), &bytes[4..HEADER_BYTES + len]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Note::decode(NoteOwner { digest: 6, ..owner }, &bytes), Some(note));
        assert_eq!(Note::decode(NoteOwner { doc_id: 8, ..owner }, &bytes), None);
    }
}
