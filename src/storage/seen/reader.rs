use super::set::seed_check;
use crate::storage::runs::Runs;
use std::io;
use std::path::Path;

/// Look-ups in the runs of a folder that another process may be writing to, as they were when it was opened.
pub(crate) struct SeenReader(Runs);

impl SeenReader {
    pub fn open(folder: &Path, seed: u64) -> io::Result<SeenReader> {
        Runs::open_read_only(folder, seed_check(seed)).map(SeenReader)
    }

    /// Every document up to this one is found.
    pub fn covered(&self) -> u32 {
        self.0.covered()
    }

    /// The document of a fingerprint.
    pub fn find(&self, fingerprint: u64) -> io::Result<Option<u32>> {
        self.0.find(fingerprint.max(1))
    }
}
