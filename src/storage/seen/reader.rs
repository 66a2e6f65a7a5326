use super::set::seed_check;
use crate::storage::runs::{Position, Run, find_in, position_of, spans};
use std::io;
use std::path::Path;

/// Look-ups in the runs of a folder that another process may be writing to. It changes nothing there.
///
/// It sees the runs as they were when it was opened: it holds them open, so it does not matter to it that they are
/// merged and removed meanwhile.
pub(crate) struct SeenReader {
    /// The oldest first.
    runs: Vec<Run>,
}

/// Listings that are tried. Runs vanish under one only while the writer merges, which it does not do that often.
const TRIES: usize = 8;

impl SeenReader {
    /// A run that is broken, and all that come after it, are as if they were not there.
    pub fn open(folder: &Path, seed: u64) -> io::Result<SeenReader> {
        let seed_check = seed_check(seed);
        let mut best = SeenReader { runs: Vec::new() };
        for _ in 0..TRIES {
            let (reader, whole) = SeenReader::open_once(folder, seed_check)?;
            if reader.covered() >= best.covered() {
                best = reader;
            }
            if whole {
                break;
            }
        }
        Ok(best)
    }

    /// The runs of one listing, and whether it can be that these are all: no gap, and nothing that vanished.
    fn open_once(folder: &Path, seed_check: u64) -> io::Result<(SeenReader, bool)> {
        let mut reader = SeenReader { runs: Vec::new() };
        let mut whole = true;
        for span in spans(folder)? {
            match position_of(span, reader.covered()) {
                Position::Next => match Run::open(folder, span, seed_check) {
                    Ok(run) => reader.runs.push(run),
                    Err(e) if e.kind() == io::ErrorKind::InvalidData => {}
                    Err(e) if e.kind() == io::ErrorKind::NotFound => whole = false,
                    Err(e) => return Err(e),
                },
                Position::Within => {}
                Position::Beyond => whole = false,
            }
        }
        Ok((reader, whole))
    }

    /// Every document up to this one is found.
    pub fn covered(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.span().last)
    }

    /// The document of a fingerprint.
    pub fn find(&self, fingerprint: u64) -> io::Result<Option<u32>> {
        find_in(self.runs.iter().rev(), fingerprint.max(1))
    }
}
