use crate::storage::{NewFile, sync_parent};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `args.journal`: a line that names it, then lines of eight hexadecimal digits, a space and text; the digits are the
/// CRC-32C of the text. A later line counts more than an earlier one of the same thing.
///
/// Master and commands write to it, each while it holds the lock of the file: at its end, and only the master anew.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Read up to here.
    at: u64,
    /// How long it was when it was written anew.
    compacted_bytes: u64,
}

const FILE: &str = "args.journal";
const HEADER: &[u8] = b"nephila-args 1\n";
/// It is written anew when it is twice as long as it need be, and longer than this.
const COMPACT_BYTES_MIN: u64 = 1 << 20;
/// Read at once; more than is ever kept.
const FILE_BYTES_MAX: u64 = 1 << 30;

impl Journal {
    /// Opens it, or makes it.
    pub fn open(folder: &Path) -> io::Result<Journal> {
        let path = folder.join(FILE);
        let file = File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
        Ok(Journal { path, file, at: 0, compacted_bytes: 0 })
    }

    /// Opens it to look at; `None` if it is not there.
    pub fn view(folder: &Path) -> io::Result<Option<Journal>> {
        let path = folder.join(FILE);
        match File::open(&path) {
            Ok(file) => Ok(Some(Journal { path, file, at: 0, compacted_bytes: 0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells what is behind what was read.
    pub fn read(&mut self, told: impl FnMut(&str) -> bool) -> io::Result<()> {
        self.file.lock_shared()?;
        let read = self.read_on(told);
        self.file.unlock()?;
        read.map(drop)
    }

    /// Tells what others have written, then puts lines behind it, durably.
    pub fn append(&mut self, text: &[String], told: impl FnMut(&str) -> bool) -> io::Result<()> {
        self.lock()?;
        let done = self.append_locked(text, told);
        self.file.unlock()?;
        done
    }

    fn append_locked(&mut self, text: &[String], told: impl FnMut(&str) -> bool) -> io::Result<()> {
        let end = self.read_on(told)?;
        if text.is_empty() && self.at >= HEADER.len() as u64 {
            return Ok(());
        }
        // What a kill has left of a line goes.
        if end > self.at {
            self.file.set_len(self.at)?;
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let is_new = self.at == 0;
        let mut out = if is_new { HEADER.to_vec() } else { Vec::new() };
        text.iter().for_each(|text| put(&mut out, text));
        if let Err(error) = self.file.write_all(&out).and_then(|()| self.file.sync_data()) {
            let _ = self.file.set_len(self.at);
            return Err(error);
        }
        if is_new {
            sync_parent(&self.path)?;
        }
        self.at += out.len() as u64;
        Ok(())
    }

    /// It is worth its while to write it anew.
    pub fn is_long(&self) -> bool {
        self.at > COMPACT_BYTES_MIN.max(2 * self.compacted_bytes)
    }

    /// Puts a file with these lines in its place, unless another has written meanwhile.
    pub fn compact(&mut self, lines: impl Iterator<Item = String>) -> io::Result<()> {
        self.lock()?;
        let is_behind = self.file.metadata()?.len() != self.at;
        let written = if is_behind { Ok(None) } else { self.write_anew(lines).map(Some) };
        self.file.unlock()?;
        if let Some((file, bytes)) = written? {
            (self.file, self.at, self.compacted_bytes) = (file, bytes, bytes);
        }
        Ok(())
    }

    fn write_anew(&self, lines: impl Iterator<Item = String>) -> io::Result<(File, u64)> {
        let mut out = HEADER.to_vec();
        lines.for_each(|line| put(&mut out, &line));
        let new = NewFile::create(&self.path)?;
        new.file().write_all(&out)?;
        Ok((new.commit()?, out.len() as u64))
    }

    /// Takes the lock of the file that has the name now.
    fn lock(&mut self) -> io::Result<()> {
        loop {
            self.file.lock()?;
            let known = self.file.metadata()?;
            if fs::metadata(&self.path).is_ok_and(|now| (now.dev(), now.ino()) == (known.dev(), known.ino()))
            {
                return Ok(());
            }
            // It was written anew while this one waited: all of it is told again.
            let folder = self.path.parent().unwrap_or(Path::new("."));
            *self = Journal::open(folder)?;
        }
    }

    /// Tells whole lines from where it is, and says how long the file is.
    fn read_on(&mut self, mut told: impl FnMut(&str) -> bool) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        if length < self.at || length > FILE_BYTES_MAX {
            return Err(self.damaged("is shorter than it was, or longer than it can be"));
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut self.file).take(length - self.at).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        if self.at == 0 && !rest.is_empty() {
            let header = &HEADER[..HEADER.len().min(rest.len())];
            rest = rest.strip_prefix(header).ok_or_else(|| self.damaged("is none, or of another version"))?;
            if header.len() < HEADER.len() {
                return Ok(length);
            }
            self.at = HEADER.len() as u64;
        }
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if !checked(&rest[..end]).is_some_and(&mut told) {
                let place = format!("is damaged at byte {}", self.at);
                return Err(self.damaged(&place));
            }
            self.at += end as u64 + 1;
            rest = &rest[end + 1..];
        }
        Ok(length)
    }

    fn damaged(&self, how: &str) -> io::Error {
        let text = format!("{} {how} (move it away: what was learned is learned again)", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    debug_assert!(!text.contains('\n'));
    out.extend_from_slice(format!("{:08x} {text}\n", crc32c::crc32c(text.as_bytes())).as_bytes());
}

fn checked(line: &[u8]) -> Option<&str> {
    let (sum, text) = line.split_at_checked(9)?;
    let expected = u32::from_str_radix(str::from_utf8(sum).ok()?.strip_suffix(' ')?, 16).ok()?;
    (crc32c::crc32c(text) == expected).then(|| str::from_utf8(text).ok())?
}
