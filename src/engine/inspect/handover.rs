use crate::storage::{NewFile, make_directory};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What a closed domain brings along, in a file of its own until a master has it:
///
/// ```text
///   nephila handover 1 example.org
///   NICE pace http://www.example.org due=…
///   URL 0⇥5⇥20260101120000⇥0⇥http://www.example.org/a⇥3⇥
///   crc32c 1f2e3d4c
/// ```
pub struct HandoverWriter<W: Write> {
    out: W,
    crc: u32,
}

/// One that is read: what each line says, and at the end whether all of it was whole.
pub struct HandoverReader<R> {
    input: BufReader<R>,
    crc: u32,
    line: Vec<u8>,
}

/// What a line says, or how it ends.
#[derive(Debug, PartialEq, Eq)]
pub enum HandoverLine<'a> {
    Nice(&'a [u8]),
    Url(&'a [u8]),
    /// All of it was read, and is as it was written.
    End,
}

const HEAD: &str = "nephila handover 1 ";
const FOLDER: &str = "master.handover";
/// More than a line between master and node may have.
const LINE_BYTES_MAX: u64 = 16 * 1_024;

/// Where that of a domain is; its name may be no good for a file.
pub fn handover_path(directory: &Path, domain: &str) -> PathBuf {
    directory.join(FOLDER).join(format!("{:016x}", xxh3_64(domain.as_bytes())))
}

impl<W: Write> HandoverWriter<W> {
    pub fn new(out: W, domain: &str) -> io::Result<HandoverWriter<W>> {
        let mut writer = HandoverWriter { out, crc: 0 };
        writer.put(format!("{HEAD}{domain}\n").as_bytes())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.out.write_all(bytes)
    }

    pub fn nice(&mut self, line: &[u8]) -> io::Result<()> {
        self.put(b"NICE ")?;
        self.put(line)?;
        self.put(b"\n")
    }

    /// A line of a reflog, with its end.
    pub fn url(&mut self, line: &[u8]) -> io::Result<()> {
        self.put(b"URL ")?;
        self.put(line)
    }

    pub fn end(mut self) -> io::Result<W> {
        let crc = self.crc;
        self.out.write_all(format!("crc32c {crc:08x}\n").as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<R: Read> HandoverReader<R> {
    pub fn new(input: R, domain: &str) -> io::Result<HandoverReader<R>> {
        let mut reader = HandoverReader { input: BufReader::new(input), crc: 0, line: Vec::new() };
        reader.next_line()?;
        match reader.line == format!("{HEAD}{domain}").as_bytes() {
            true => Ok(reader),
            false => Err(damaged("it is of another domain")),
        }
    }

    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut self.line)?;
        if self.line.last() != Some(&b'\n') {
            return Err(damaged("it ends too soon"));
        }
        if !self.line.starts_with(b"crc32c ") {
            self.crc = crc32c::crc32c_append(self.crc, &self.line);
        }
        self.line.pop();
        Ok(())
    }

    pub fn next(&mut self) -> io::Result<HandoverLine<'_>> {
        self.next_line()?;
        if let Some(line) = self.line.strip_prefix(b"NICE ") {
            return Ok(HandoverLine::Nice(line));
        }
        if let Some(line) = self.line.strip_prefix(b"URL ") {
            return Ok(HandoverLine::Url(line));
        }
        match self.line == format!("crc32c {:08x}", self.crc).as_bytes() {
            true => Ok(HandoverLine::End),
            false => Err(damaged("its checksum does not match")),
        }
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a handover is damaged: {what}"))
}

/// Writes the handover of a domain into its file, durable when it returns. What was written down there before, and has not
/// reached a master yet, goes first.
pub fn write_handover(
    directory: &Path,
    domain: &str,
    fill: impl FnOnce(&mut HandoverWriter<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    let path = handover_path(directory, domain);
    make_directory(&directory.join(FOLDER))?;
    let before = File::open(&path).and_then(|file| HandoverReader::new(file, domain));
    let new = NewFile::create(&path)?;
    {
        let mut file = BufWriter::new(new.file());
        let mut writer = HandoverWriter::new(&mut file as &mut dyn Write, domain)?;
        if let Ok(mut before) = before {
            loop {
                match before.next()? {
                    HandoverLine::Nice(line) => writer.nice(line)?,
                    HandoverLine::Url(line) => writer.url(&[line, b"\n"].concat())?,
                    HandoverLine::End => break,
                }
            }
        }
        fill(&mut writer)?;
        writer.end()?;
    }
    new.commit().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut writer = HandoverWriter::new(Vec::new(), "a.ru").unwrap();
        writer.nice(b"pace http://a.ru due=1").unwrap();
        writer.url(b"0\t5\t20260101120000\t0\thttp://a.ru/\t3\t\n").unwrap();
        writer.end().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<(usize, usize)> {
        let mut reader = HandoverReader::new(bytes, "a.ru")?;
        let mut count = (0, 0);
        loop {
            match reader.next()? {
                HandoverLine::Nice(_) => count.0 += 1,
                HandoverLine::Url(_) => count.1 += 1,
                HandoverLine::End => return Ok(count),
            }
        }
    }

    #[test]
    fn a_handover_is_read_as_it_was_written_and_every_flipped_byte_is_noticed() {
        let bytes = written();
        assert_eq!(read(&bytes).unwrap(), (1, 1));
        assert!(HandoverReader::new(&bytes[..], "b.ru").is_err());
        for at in 0..bytes.len() {
            assert!(read(&bytes[..at]).is_err(), "cut at {at}");
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x11;
            assert!(read(&flipped).is_err(), "flipped at {at}");
        }
    }

    #[test]
    fn what_was_written_down_before_goes_first() {
        let folder = std::env::temp_dir().join(format!("nephila-handover-{}", std::process::id()));
        for _ in 0..2 {
            write_handover(&folder, "a.ru", |writer| writer.nice(b"x")).unwrap();
        }
        let bytes = std::fs::read(handover_path(&folder, "a.ru")).unwrap();
        assert_eq!(read(&bytes).unwrap(), (2, 0));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
