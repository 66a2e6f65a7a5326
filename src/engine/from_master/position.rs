use crate::proto::reflog::Stamp;
use crate::storage::{checked, checked_lines, replace};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How far a node has taken from its masters: everything below is durable in its doc index. In the data directory as
/// `master.position`, replaced whole:
///
/// ```text
///   nephila master.position 1
///   server 7
///   used 10.0.0.1:7190
///   mark 20260101120000
///   seq 10.0.0.1:7190 4711
///   seq 10.0.0.2:7190 4690
///   crc32c 1f2e3d4c
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MasterPosition {
    pub server: u16,
    /// The master that was last taken from.
    pub used: Option<String>,
    /// The reflog time up to which everything that that master was given is here.
    pub mark: Option<Stamp>,
    /// The next entry of each master's queue.
    pub seqs: BTreeMap<String, u64>,
}

#[derive(Debug, Error)]
pub enum PositionError {
    #[error("{path}: {cause}")]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error(
        "{path} is damaged: {what} (remove it to take the whole queue again; what is known already changes nothing)"
    )]
    Damaged { path: PathBuf, what: &'static str },
}

const HEAD: &str = "nephila master.position 1";
/// A larger file is none of ours.
const BYTES_MAX: u64 = 64 * 1_024;

impl MasterPosition {
    /// In the data directory.
    pub const FILE: &'static str = "master.position";

    /// `None` for a directory that never took from a master.
    pub fn read(directory: &Path) -> Result<Option<MasterPosition>, PositionError> {
        let path = directory.join(Self::FILE);
        let damaged = |what| PositionError::Damaged { path: path.clone(), what };
        match std::fs::metadata(&path) {
            Ok(found) if found.len() > BYTES_MAX => return Err(damaged("it is too large")),
            _ => {}
        }
        match std::fs::read(&path) {
            Ok(text) => MasterPosition::parse(&text).map(Some).map_err(damaged),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(PositionError::Unreadable { path, cause }),
        }
    }

    /// Durable when it returns.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        replace(&directory.join(Self::FILE), self.text().as_bytes())
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}\nserver {}\n", self.server);
        if let Some(used) = &self.used {
            let _ = writeln!(text, "used {used}");
        }
        if let Some(mark) = self.mark {
            let _ = writeln!(text, "mark {}", String::from_utf8_lossy(&mark.digits()));
        }
        for (master, seq) in &self.seqs {
            let _ = writeln!(text, "seq {master} {seq}");
        }
        checked(text)
    }

    fn parse(text: &[u8]) -> Result<MasterPosition, &'static str> {
        let mut position = MasterPosition::default();
        for line in checked_lines(text, HEAD)? {
            let mut words = line.split(' ');
            let unread = "a line cannot be read";
            match (words.next(), words.next(), words.next()) {
                (Some("server"), Some(server), None) => {
                    position.server = server.parse().map_err(|_| unread)?;
                }
                (Some("used"), Some(used), None) => position.used = Some(used.to_string()),
                (Some("mark"), Some(mark), None) => {
                    position.mark = Some(Stamp::parse(mark.as_bytes()).ok_or(unread)?);
                }
                (Some("seq"), Some(master), Some(seq)) => {
                    position.seqs.insert(master.to_string(), seq.parse().map_err(|_| unread)?);
                }
                _ => return Err(unread),
            }
        }
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> MasterPosition {
        MasterPosition {
            server: 7,
            used: Some("10.0.0.1:7190".to_string()),
            mark: Stamp::parse(b"20260101120000"),
            seqs: BTreeMap::from([("10.0.0.1:7190".to_string(), u64::MAX), ("b:1".to_string(), 0)]),
        }
    }

    #[test]
    fn a_position_is_written_and_read() {
        for position in [position(), MasterPosition { server: 1, ..MasterPosition::default() }] {
            assert_eq!(MasterPosition::parse(position.text().as_bytes()), Ok(position));
        }
        let folder = std::env::temp_dir().join(format!("nephila-position-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(MasterPosition::read(&folder).unwrap(), None);
        position().write(&folder).unwrap();
        assert_eq!(MasterPosition::read(&folder).unwrap(), Some(position()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_byte_that_is_flipped_or_missing_is_noticed() {
        let text = position().text();
        for at in 0..text.len() {
            assert!(MasterPosition::parse(&text.as_bytes()[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1 << bit;
                let read = MasterPosition::parse(&damaged);
                // Digits of the checksum may be written in capitals.
                assert!(read.is_err() || read == Ok(position()), "bit {bit} of {at}");
            }
        }
    }
}
