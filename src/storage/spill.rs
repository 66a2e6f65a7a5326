use super::bytes::Bytes;
use rapidhash::fast::RapidHashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// What memory has no room for, for the length of a process: pieces that are written once and read once, one after the
/// other into files that go when their last piece is read. All of it can be made again from the ledger.
pub(crate) struct Spill {
    /// `None` keeps everything in memory.
    folder: Option<PathBuf>,
    files: RapidHashMap<u32, SpillFile>,
    current: u32,
}

struct SpillFile {
    bytes: Bytes,
    /// Pieces that were not read yet.
    pieces: u32,
}

/// One piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    file: u32,
    at: u32,
    bytes: u32,
    crc: u32,
}

/// A file takes pieces up to this size.
const FILE_BYTES: u64 = 256 << 20;

impl Spill {
    pub fn in_memory() -> Spill {
        Spill { folder: None, files: RapidHashMap::default(), current: 0 }
    }

    /// Opens a folder, and removes what an earlier process left there.
    pub fn open(folder: PathBuf) -> io::Result<Spill> {
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(Spill { folder: Some(folder), ..Spill::in_memory() })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Piece> {
        if self.files.get(&self.current).is_some_and(|file| file.bytes.len() >= FILE_BYTES) {
            self.current += 1;
        }
        let number = self.current;
        if !self.files.contains_key(&number) {
            let bytes = match &self.folder {
                Some(folder) => Bytes::open(&folder.join(format!("{number:010}")))?,
                None => Bytes::Memory(Vec::new()),
            };
            self.files.insert(number, SpillFile { bytes, pieces: 0 });
        }
        let Some(file) = self.files.get_mut(&number) else { return Err(io::ErrorKind::NotFound.into()) };
        let at = file.bytes.len();
        file.bytes.write_at(bytes, at)?;
        file.pieces += 1;
        let crc = crc32c::crc32c(bytes);
        Ok(Piece { file: number, at: at as u32, bytes: bytes.len() as u32, crc })
    }

    /// Gives a piece back, and forgets it.
    pub fn read(&mut self, piece: Piece) -> io::Result<Vec<u8>> {
        let Some(file) = self.files.get_mut(&piece.file) else { return Err(io::ErrorKind::NotFound.into()) };
        let mut bytes = vec![0; piece.bytes as usize];
        let read = file.bytes.read_at(&mut bytes, u64::from(piece.at))?;
        if read < bytes.len() || crc32c::crc32c(&bytes) != piece.crc {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "what was spilled came back damaged"));
        }
        file.pieces -= 1;
        if file.pieces == 0 {
            self.files.remove(&piece.file);
            self.current = self.current.max(piece.file + 1);
            if let Some(folder) = &self.folder {
                // What is left there is removed at the next start.
                let _ = fs::remove_file(folder.join(format!("{:010}", piece.file)));
            }
        }
        Ok(bytes)
    }

    /// Pieces that were not read yet.
    #[cfg(test)]
    pub fn pieces(&self) -> u32 {
        self.files.values().map(|file| file.pieces).sum()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes.disk_bytes()).sum()
    }
}

const _: () = assert!(FILE_BYTES < 1 << 31, "places in a file are 32 bits, with room for the last piece");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_and_their_files_go() {
        let folder = std::env::temp_dir().join(format!("nephila-spill-{}", std::process::id()));
        for mut spill in [Spill::in_memory(), Spill::open(folder.clone()).unwrap()] {
            let pieces: Vec<Piece> = (0..50u8).map(|n| spill.write(&vec![n; 1_000]).unwrap()).collect();
            for (n, piece) in pieces.into_iter().enumerate().rev() {
                assert_eq!(spill.read(piece).unwrap(), vec![n as u8; 1_000]);
            }
            assert!(spill.files.is_empty());
            let piece = spill.write(b"again").unwrap();
            assert_eq!(spill.read(piece).unwrap(), b"again");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(folder).unwrap();
    }
}
