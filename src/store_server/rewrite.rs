use super::block::{InMemory, Unpacked, stands_alone};
use super::keeper::{KeeperError, Sealed, seal_synced};
use super::layout::{HEADER_BYTES, aligned};
use super::mmap::{Segment, SegmentWriter};
use super::moving::Moving;
use super::record::{self, Record};
use crate::limits::SEGMENT_HEADER_BYTES;
use std::io;

/// Writes the records that the disk refused again, into a segment of their own, which is synced and sealed before
/// any of them counts. The records are still in memory; each is checked, as a page that failed to reach the disk may have
/// been dropped. `make` is told how large the segment has to be at least.
pub(super) fn rewrite(
    bad: &Segment,
    from: usize,
    make: impl FnOnce(u64) -> Result<SegmentWriter, KeeperError>,
) -> Result<Sealed, KeeperError> {
    let number = bad.number();
    let lost = |why: &str| KeeperError::Lost { number, cause: io::Error::other(why.to_string()) };
    let written = bad.written().ok_or_else(|| lost("it is in use"))?;
    // The first commit of a segment covers its header, too.
    let from = from.max(SEGMENT_HEADER_BYTES);
    let mut records = Vec::new();
    let mut at = from;
    while at < written.len() {
        let record = record::parse(&written[at..], number).map_err(|_| lost("a record does not check"))?;
        let bytes = &written[at..at + record.record_bytes as usize];
        at += bytes.len();
        records.push((record, bytes));
    }
    let bytes: usize = records.iter().map(|(record, bytes)| bytes_max(record, bytes)).sum();
    let mut writer = make((SEGMENT_HEADER_BYTES + bytes) as u64)?;
    let fresh = writer.segment().clone();
    let (bases, unpacked) = (InMemory(written, number), Unpacked::default());
    let mut moving = Moving::new(fresh.number());
    for (record, bytes) in &records {
        let moved = moving
            .record((record, bytes), number, (&bases, &unpacked), writer.tail() as u64)
            .ok()
            .flatten()
            .ok_or_else(|| lost("the base of a record does not check"))?;
        writer.rest()[..moved.len()].copy_from_slice(moved);
        writer.publish(moved.len(), record.sequence);
    }
    drop(writer);
    let unsynced = |cause| {
        if let Some((_, path)) = fresh.file() {
            let _ = std::fs::remove_file(path);
        }
        KeeperError::Sync { number, cause }
    };
    fresh.sync(0, fresh.published().1).map_err(unsynced)?;
    let sealed = seal_synced(&fresh).map_err(unsynced)?;
    sealed.ok_or_else(|| lost("it had no records"))
}

/// A record that has a base here may have none there.
fn bytes_max(record: &Record, bytes: &[u8]) -> usize {
    match stands_alone(record) {
        true => bytes.len(),
        false => aligned(HEADER_BYTES + Moving::bytes_max(record)),
    }
}
