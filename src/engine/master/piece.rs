use crate::storage::NewFile;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Lines of one connection on their way into the spool: a file that takes its name when it is durable.
#[derive(Default)]
pub(super) struct Piece {
    file: Option<NewFile>,
    /// What cannot be written yet: a line that is not whole, or a record that may go on in the next one.
    carry: Vec<u8>,
    /// Of the file.
    lines: u64,
    bytes: u64,
}

/// What becomes of what is carried when a piece is finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// It may go on, and goes into the next one.
    Stays,
    /// Lines that are whole go along. One without its end may be cut anywhere, and is none yet.
    Lines,
    /// Nothing more comes, and its end ends the last line.
    All,
}

/// A piece that takes more is finished.
pub(super) const PIECE_BYTES_MAX: u64 = 64 << 20;
/// What is carried at most; a line that is longer is cut, and will be rejected.
const CARRY_BYTES_MAX: usize = 64 << 10;

impl Piece {
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.carry.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= PIECE_BYTES_MAX
    }

    /// Adds what came; the file is made by `name` if there is none.
    pub fn add(&mut self, bytes: &[u8], name: impl FnOnce() -> PathBuf) -> io::Result<()> {
        self.carry.extend_from_slice(bytes);
        match cut(&self.carry) {
            0 if self.carry.len() > CARRY_BYTES_MAX => self.write(self.carry.len(), name),
            0 => Ok(()),
            end => self.write(end, name),
        }
    }

    fn write(&mut self, end: usize, name: impl FnOnce() -> PathBuf) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            slot => slot.insert(NewFile::create(&name())?),
        };
        let mut to: &File = file.file();
        to.write_all(&self.carry[..end])?;
        self.lines += memchr::memchr_iter(b'\n', &self.carry[..end]).count() as u64;
        self.bytes += end as u64;
        self.carry.drain(..end);
        Ok(())
    }

    /// Gives the file its name, once it is durable; the lines and bytes in it.
    pub fn finish(
        &mut self,
        carried: Carried,
        name: impl FnOnce() -> PathBuf,
    ) -> io::Result<Option<(u64, u64)>> {
        let lines_end = memchr::memrchr(b'\n', &self.carry).map_or(0, |at| at + 1);
        let end = match carried {
            Carried::Stays => 0,
            Carried::Lines => lines_end,
            Carried::All => self.carry.len(),
        };
        if end > 0 {
            self.write(end, name)?;
            self.lines += u64::from(end > lines_end);
        }
        let Some(file) = self.file.take() else { return Ok(None) };
        let counted = (std::mem::take(&mut self.lines), std::mem::take(&mut self.bytes));
        file.commit()?;
        Ok(Some(counted))
    }
}

/// A name in a spool that no other file has.
pub(super) fn free_name(spool: &Path, stem: &str, number: &mut u64) -> PathBuf {
    loop {
        *number += 1;
        let path = spool.join(format!("{stem}-{number:06}.reflog"));
        if !path.exists() {
            return path;
        }
    }
}

/// How much of some lines can be a file of its own: up to the last line that begins a record, or behind one that is whole.
/// A record may be wrapped, and what belongs together stays together.
fn cut(bytes: &[u8]) -> usize {
    let Some(end) = memchr::memrchr(b'\n', bytes).map(|at| at + 1) else { return 0 };
    let mut at = end;
    while at > 0 {
        let start = memchr::memrchr(b'\n', &bytes[..at - 1]).map_or(0, |lf| lf + 1);
        let line = &bytes[start..at - 1];
        if is_whole(line) {
            return at;
        }
        if begins_record(line) {
            return start;
        }
        at = start;
    }
    0
}

/// `digits TAB digits TAB 14 digits`
fn begins_record(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b'\t');
    let digits = |field: Option<&[u8]>| {
        field.is_some_and(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit))
    };
    digits(fields.next()) && digits(fields.next()) && fields.next().is_some_and(|time| time.len() == 14)
}

/// A record up to its hits at least.
fn is_whole(line: &[u8]) -> bool {
    begins_record(line)
        && line.split(|&byte| byte == b'\t').nth(5).is_some_and(|hits| hits.iter().any(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_stays_together() {
        let whole = "1\t5\t20110727200841\t2310\thttp://a.ru/\t1\t0\n";
        let begun = "1\t5\t20110727200841\t2310\t\n";
        let rest = "http://a.ru/\t1\t0\n";
        for (text, expected) in [
            (String::new(), 0),
            ("1\t5\t2011".to_string(), 0),
            (whole.to_string(), whole.len()),
            (format!("{whole}1\t5"), whole.len()),
            (format!("{whole}{begun}"), whole.len()),
            (format!("{whole}{begun}http://a"), whole.len()),
            (format!("{whole}{begun}{rest}"), whole.len()),
            (format!("{whole}{begun}{rest}{begun}"), whole.len() + begun.len() + rest.len()),
            (format!("unknown\n{whole}"), 8 + whole.len()),
            ("unknown\n".to_string(), 0),
        ] {
            assert_eq!(cut(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn every_byte_goes_into_some_piece() {
        let folder = std::env::temp_dir().join(format!("nephila-pieces-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "1\t5\t20110727200841\t2310\nhttp://a.ru/\t1\n".repeat(5_000) + &"x".repeat(100_000);
        let (mut piece, mut number, mut counted) = (Piece::default(), 0, (0, 0));
        for (at, bytes) in text.as_bytes().chunks(997).enumerate() {
            piece.add(bytes, || free_name(&folder, "t", &mut number)).unwrap();
            if at % 20 == 0
                && let Some((lines, bytes)) = piece.finish(Carried::Stays, || unreachable!()).unwrap()
            {
                counted = (counted.0 + lines, counted.1 + bytes);
            }
        }
        // A line that may be cut is none before the end.
        let (lines, bytes) = piece
            .finish(Carried::Lines, || free_name(&folder, "t", &mut number))
            .unwrap()
            .unwrap_or_default();
        counted = (counted.0 + lines, counted.1 + bytes);
        assert!(counted.0 == 10_000 && counted.1 < text.len() as u64, "{counted:?}");
        let (lines, bytes) =
            piece.finish(Carried::All, || free_name(&folder, "t", &mut number)).unwrap().unwrap();
        assert_eq!((counted.0 + lines, counted.1 + bytes), (10_001, text.len() as u64));
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let all: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert!(all == text && files.len() > 3, "{} files", files.len());
        for file in &files[..2] {
            assert!(std::fs::read_to_string(file).unwrap().starts_with("1\t5"), "no record was torn");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
