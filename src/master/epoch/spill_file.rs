use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What memory has no room for, in a file without a name: it is gone with the process, however that ends. It is made when
/// the first bytes come.
pub(super) struct SpillFile {
    folder: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
}

/// Bytes in memory, or in the file.
pub(super) enum Part {
    Memory(Vec<u8>),
    Spilled(Spilled),
}

/// A place in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spilled {
    at: u64,
    bytes: usize,
    crc: u32,
}

impl SpillFile {
    pub fn new(folder: &Path) -> SpillFile {
        SpillFile { folder: folder.to_path_buf(), file: OnceLock::new(), end: AtomicU64::new(0) }
    }

    /// Writes parts one behind the other, as one piece.
    pub fn write(&self, parts: &[&[u8]]) -> io::Result<Spilled> {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let at = self.end.fetch_add(bytes as u64, Ordering::Relaxed);
        let file = self.file()?;
        let (mut end, mut crc) = (at, 0);
        for part in parts {
            file.write_all_at(part, end)?;
            end += part.len() as u64;
            crc = crc32c::crc32c_append(crc, part);
        }
        Ok(Spilled { at, bytes, crc })
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        // Two workers may both make one; the second is dropped, and has no name either.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("epoch-{}-{number}.spill", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Reads a piece into as many bytes.
    fn read(&self, piece: Spilled, out: &mut [u8]) -> io::Result<()> {
        self.file()?.read_exact_at(out, piece.at)?;
        if crc32c::crc32c(out) != piece.crc {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "what was spilled came back damaged"));
        }
        Ok(())
    }

    /// The bytes of a part, which lie in `room` if they were spilled.
    pub fn part<'a>(&self, part: &'a Part, room: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        match part {
            Part::Memory(bytes) => Ok(bytes),
            Part::Spilled(piece) => {
                let own = bytes_of(room, piece.bytes);
                self.read(*piece, own)?;
                Ok(own)
            }
        }
    }

    /// The bytes of parts, all at once.
    pub fn parts<'a>(&self, parts: &'a [Part], room: &'a mut Vec<u8>) -> io::Result<Vec<&'a [u8]>> {
        let mut rest = bytes_of(room, parts.iter().map(Part::spilled_bytes).sum());
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            let (own, others) = rest.split_at_mut(part.spilled_bytes());
            rest = others;
            all.push(match part {
                Part::Memory(bytes) => bytes.as_slice(),
                Part::Spilled(piece) => {
                    self.read(*piece, own)?;
                    own
                }
            });
        }
        Ok(all)
    }
}

/// The first bytes of some, which keep their length: bytes that are read into need not be cleared before, and pages that
/// were there once are there again.
fn bytes_of(room: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    if room.len() < bytes {
        // Given back first, so that there are never both.
        *room = Vec::new();
        *room = vec![0; bytes.next_multiple_of(ROOM_STEP_BYTES)];
    }
    &mut room[..bytes]
}

const ROOM_STEP_BYTES: usize = 256 << 10;

impl Part {
    pub fn bytes(&self) -> usize {
        match self {
            Part::Memory(bytes) => bytes.len(),
            Part::Spilled(piece) => piece.bytes,
        }
    }

    /// Its memory, if it has some, with nothing in it.
    pub fn into_block(self) -> Option<Vec<u8>> {
        match self {
            Part::Memory(mut bytes) => {
                bytes.clear();
                Some(bytes)
            }
            Part::Spilled(_) => None,
        }
    }

    fn spilled_bytes(&self) -> usize {
        match self {
            Part::Memory(_) => 0,
            Part::Spilled(piece) => piece.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_and_nothing_is_left() {
        let folder = std::env::temp_dir().join(format!("nephila-spillfile-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let spill = SpillFile::new(&folder);
        let pieces = [spill.write(&[b"ab", b"", b"c"]).unwrap(), spill.write(&[b"def"]).unwrap()];
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "it has no name");
        let [first, second] = pieces.map(Part::Spilled);
        let mut room = Vec::new();
        assert_eq!(spill.part(&first, &mut room).unwrap(), b"abc");
        assert_eq!(spill.part(&second, &mut room).unwrap(), b"def");
        let parts = [second, Part::Memory(b"in memory".to_vec()), first];
        assert_eq!(spill.parts(&parts, &mut room).unwrap(), [b"def".as_slice(), b"in memory", b"abc"]);
        let damaged = Part::Spilled(Spilled { crc: 1, ..pieces[0] });
        assert!(spill.part(&damaged, &mut room).is_err());
        fs::remove_dir(&folder).unwrap();
    }
}
