use crate::proto::peer_wire::MoveBatch;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The sum of the batches of a copy, one after the other: so much was told, and so much is kept. Lines about hosts are not in
/// it, as their times are those of whoever keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownSum {
    /// The last of them.
    pub batch: u64,
    pub documents: u64,
    pub digest: u64,
}

impl KnownSum {
    pub fn add(&mut self, batch: &MoveBatch<'_>) {
        self.batch = batch.batch();
        self.documents += batch.count() as u64;
        self.digest = xxh3_64_with_seed(&batch.print().to_le_bytes(), self.digest);
    }
}
