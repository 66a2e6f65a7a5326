//! A crawl log to be read: its parts in order, compressed or not, as if they were one file.

use crate::base::SortedMap;
use crate::proto::crawl_log::{CRAWL_LOG, LINE_BYTES_MAX, PartName, RunRules};
use flate2::bufread::MultiGzDecoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The parts of one log, the oldest first.
pub(crate) struct LogParts {
    /// Where the log is: `DIR/crawl.log`.
    pub path: PathBuf,
    numbered: SortedMap<u32, PathBuf>,
    /// The part that is being written, opened before the others were looked for: it may become one of them meanwhile.
    open: Option<File>,
    /// Its number, if its first line tells.
    open_number: Option<u32>,
}

/// Parts that are not there, of those that were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub from: u32,
    pub to: u32,
    /// Nothing is there from before: they may have been removed as the settings ask.
    pub is_leading: bool,
}

/// A part that is there, or some that are not.
#[derive(Debug)]
pub(crate) enum Piece {
    Part(PathBuf),
    Open,
    Missing(Missing),
}

const READ_BUFFER_BYTES: usize = 256 * 1024;

impl LogParts {
    /// Those of a data directory. An error names `DIR/crawl.log` if there is none at all.
    pub fn of(data: &Path) -> io::Result<LogParts> {
        let path = data.join(CRAWL_LOG);
        let open = match File::open(&path) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let mut numbered = SortedMap::new();
        for entry in fs::read_dir(data)? {
            let name = entry?.file_name();
            numbered.extend(name.to_str().and_then(PartName::parse).map(|part| (part, data.join(&name))));
        }
        LogParts::new(path, numbered, open)
    }

    /// Logs of which files are given, in the order in which they are named first.
    pub fn among(files: &[PathBuf]) -> io::Result<Vec<LogParts>> {
        let mut logs: Vec<(PathBuf, SortedMap<PartName, PathBuf>, Option<File>)> = Vec::new();
        for file in files {
            let part = file.file_name().and_then(|name| name.to_str()).and_then(PartName::parse);
            let path = part.map_or_else(|| file.clone(), |_| file.with_file_name(CRAWL_LOG));
            let at = logs.iter().position(|(known, ..)| *known == path).unwrap_or_else(|| {
                logs.push((path, SortedMap::new(), None));
                logs.len() - 1
            });
            match part {
                Some(part) => drop(logs[at].1.insert(part, file.clone())),
                None => logs[at].2 = Some(File::open(file)?),
            }
        }
        logs.into_iter().map(|(path, numbered, open)| LogParts::new(path, numbered, open)).collect()
    }

    fn new(path: PathBuf, named: SortedMap<PartName, PathBuf>, open: Option<File>) -> io::Result<LogParts> {
        let mut numbered = SortedMap::new();
        for (part, path) in named {
            // One that is being compressed is there twice; whole under the first name.
            numbered.entry(part.number).or_insert(path);
        }
        let mut log = LogParts { path, numbered, open, open_number: None };
        if let Some(file) = &mut log.open {
            let (is, mut first) = (file.metadata()?, Vec::new());
            // It has become a part since it was opened.
            if let Some((_, part)) = log.numbered.last_key_value()
                && fs::metadata(part).is_ok_and(|part| (part.dev(), part.ino()) == (is.dev(), is.ino()))
            {
                log.open = None;
                return Ok(log);
            }
            BufReader::new(&*file).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut first)?;
            file.rewind()?;
            let rules = RunRules::parse(&first).ok().flatten();
            log.open_number = rules.map(|rules| rules.part).filter(|&part| part > 0);
        }
        if log.open.is_none() && log.numbered.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(log)
    }

    /// The parts in order, and what is missing between them.
    pub fn pieces(&self) -> Vec<Piece> {
        let numbers: Vec<u32> = self.numbered.keys().copied().chain(self.open_number).collect();
        let mut pieces = Vec::new();
        let mut next = 1;
        for &number in &numbers {
            if number > next {
                let (from, to, is_leading) = (next, number - 1, pieces.is_empty());
                pieces.push(Piece::Missing(Missing { from, to, is_leading }));
            }
            pieces.extend(self.numbered.get(&number).map(|path| Piece::Part(path.clone())));
            next = number.saturating_add(1);
        }
        pieces.extend(self.open.is_some().then_some(Piece::Open));
        pieces
    }

    /// A part to be read, and its name.
    pub fn read(&self, piece: &Piece) -> io::Result<(PathBuf, Box<dyn BufRead>)> {
        let buffered = |file: File| BufReader::with_capacity(READ_BUFFER_BYTES, file);
        let Piece::Part(path) = piece else {
            let file = self.open.as_ref().ok_or(ErrorKind::NotFound)?.try_clone()?;
            return Ok((self.path.clone(), Box::new(buffered(file))));
        };
        let (path, file) = match File::open(path) {
            // It was compressed since it was looked for.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let mut compressed = path.clone().into_os_string();
                compressed.push(".gz");
                (PathBuf::from(&compressed), File::open(compressed)?)
            }
            opened => (path.clone(), opened?),
        };
        let reader = buffered(file);
        Ok(match path.extension().is_some_and(|ending| ending == "gz") {
            true => {
                (path, Box::new(BufReader::with_capacity(READ_BUFFER_BYTES, MultiGzDecoder::new(reader))))
            }
            false => (path, Box::new(reader)),
        })
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.from == self.to {
            true => write!(f, "part {} is missing", self.from),
            false => write!(f, "parts {} to {} are missing", self.from, self.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(numbers: &[u32], open: Option<u32>) -> String {
        let numbered = numbers.iter().map(|&number| (number, PathBuf::from(number.to_string()))).collect();
        let file = open.map(|_| File::open("/dev/null").unwrap());
        let open_number = open.filter(|&number| number > 0);
        let log = LogParts { path: PathBuf::from("log"), numbered, open: file, open_number };
        let said = log.pieces().into_iter().map(|piece| match piece {
            Piece::Part(path) => path.display().to_string(),
            Piece::Open => "open".to_string(),
            Piece::Missing(missing) => {
                format!("{}{missing}", if missing.is_leading { "leading " } else { "" })
            }
        });
        said.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn parts_are_in_order_and_what_is_missing_is_told() {
        for (numbers, open, expected) in [
            (&[][..], Some(0), "open"),
            (&[], Some(1), "open"),
            (&[], Some(3), "leading parts 1 to 2 are missing, open"),
            (&[1, 2, 10], Some(11), "1, 2, parts 3 to 9 are missing, 10, open"),
            (&[1, 3], Some(4), "1, part 2 is missing, 3, open"),
            (&[1, 2], Some(4), "1, 2, part 3 is missing, open"),
            (&[4, 5], Some(6), "leading parts 1 to 3 are missing, 4, 5, open"),
            (&[4, 5], None, "leading parts 1 to 3 are missing, 4, 5"),
            (&[1], Some(0), "1, open"),
        ] {
            assert_eq!(said(numbers, open), expected);
        }
    }
}
