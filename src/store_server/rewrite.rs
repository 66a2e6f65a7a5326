use super::keeper::{KeeperError, Sealed, seal_synced};
use super::mmap::{Segment, SegmentWriter};
use super::record;
use std::io;

/// Writes the records that the disk refused again, into a segment of their own, which is synced and sealed before
/// any of them counts. The records are still in memory; each is checked, as a page that failed to reach the disk may have
/// been dropped.
pub(super) fn rewrite(
    bad: &Segment,
    from: usize,
    make: impl FnOnce() -> Result<SegmentWriter, KeeperError>,
) -> Result<Sealed, KeeperError> {
    let number = bad.number();
    let lost = |why: &str| KeeperError::Lost { number, cause: io::Error::other(why.to_string()) };
    let records = bad.written().and_then(|bytes| bytes.get(from..)).ok_or_else(|| lost("it is in use"))?;
    // The first commit of a segment covers its header, too.
    let mut rest = if from == 0 { &records[crate::limits::SEGMENT_HEADER_BYTES..] } else { records };
    let mut writer = make()?;
    let fresh = writer.segment().clone();
    while !rest.is_empty() {
        let record = record::parse(rest, number).map_err(|_| lost("a record does not check"))?;
        let (bytes, later) = rest.split_at(record.record_bytes as usize);
        let copy = &mut writer.rest()[..bytes.len()];
        copy.copy_from_slice(bytes);
        record::move_to(copy, fresh.number());
        writer.publish(bytes.len(), record.sequence);
        rest = later;
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
