use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The journal of hosts as it grows, for a copy of it. One that is another file, or got shorter, was written anew and is read from
/// its beginning.
pub(super) struct JournalTail {
    path: PathBuf,
    at: u64,
    inode: u64,
}

/// What is read of it at once.
const BYTES_AT_ONCE: u64 = 256 << 10;

impl JournalTail {
    pub fn new(path: PathBuf) -> JournalTail {
        JournalTail { path, at: 0, inode: 0 }
    }

    /// The next look is at its beginning.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// Whole lines that were not read yet, and whether there are no more. What cannot be read is none.
    pub fn more(&mut self) -> (String, bool) {
        self.read().unwrap_or((String::new(), true))
    }

    fn read(&mut self) -> io::Result<(String, bool)> {
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        if metadata.len() < self.at || metadata.ino() != self.inode {
            (self.at, self.inode) = (0, metadata.ino());
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        file.take(BYTES_AT_ONCE).read_to_end(&mut bytes)?;
        let is_full = bytes.len() as u64 == BYTES_AT_ONCE;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        // A line that is longer than all that is read at once is none of the journal's.
        self.at += if whole == 0 && is_full { BYTES_AT_ONCE } else { whole as u64 };
        bytes.truncate(whole);
        Ok((String::from_utf8_lossy(&bytes).into_owned(), !is_full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn whole_lines_are_read_once_and_a_journal_written_anew_from_its_beginning() {
        let path = std::env::temp_dir().join(format!("nephila-journal-tail-{}", std::process::id()));
        let mut all_of = JournalTail::new(path.clone());
        let mut more = || all_of.more().0;
        let _ = fs::remove_file(&path);
        assert_eq!(more(), "", "there is none yet");
        fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(more(), "one\ntwo\n");
        assert_eq!(more(), "");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(more(), "three\n");
        fs::write(&path, "anew\n").unwrap();
        assert_eq!(more(), "anew\n");
        let other = path.with_extension("other");
        fs::write(&other, "another file\nthat is longer\n").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(more(), "another file\nthat is longer\n");
        all_of.begin();
        fs::write(&path, "x".repeat(600 << 10) + "\nend\n").unwrap();
        let read: Vec<(String, bool)> = (0..3).map(|_| all_of.more()).collect();
        assert!(read[2].0.ends_with("\nend\n"), "it goes on behind what is no line");
        assert_eq!(read.iter().map(|(_, is_end)| *is_end).collect::<Vec<_>>(), [false, false, true]);
        fs::remove_file(&path).unwrap();
    }
}
