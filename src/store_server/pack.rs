use super::block::{InFile, Unpacked};
use super::index::{IndexFile, Place, index_path, runs_of};
use super::maintenance::index_file;
use super::moving::Moving;
use super::segment_file::SegmentFile;
use super::segment_header::SegmentHeader;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::storage::{NewFile, sync_directory, sync_parent};
use rapidhash::fast::RapidHashSet;
use std::fs;
use std::io::{self, BufWriter, Write};

/// Writes the records that stay of several sealed segments into one that takes the place and the number of the last, and
/// removes the others. A number gives the age of records, and between these segments there is nothing newer of what stays.
///
/// If the process is killed at any point, every record that stays is in the old segments, in the new one, or in both.
pub(super) fn pack(sources: &[(&SegmentFile, &RapidHashSet<Place>)]) -> io::Result<()> {
    let Some((last, _)) = sources.last() else {
        return Ok(());
    };
    let stays = sources.iter().any(|(_, kept)| !kept.is_empty());
    let packed = stays.then(|| write(last, sources)).transpose()?;
    // Indexes first: an index of the old segment would hide the records of the new one.
    forget(sources, stays.then_some(last.number))?;
    if let Some(packed) = packed {
        packed.commit()?;
        // Without an index it is read itself.
        let _ = index_file(last);
    }
    for (source, _) in sources.iter().filter(|(source, _)| !stays || source.number != last.number) {
        fs::remove_file(&source.path)?;
    }
    sync_parent(&last.path)
}

fn write(last: &SegmentFile, sources: &[(&SegmentFile, &RapidHashSet<Place>)]) -> io::Result<NewFile> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let (file, _) = last.open()?.ok_or_else(gone)?;
    let unknown =
        SegmentHeader { number: last.number, shard: 0, made_unix_ms: 0, agent: String::new(), packed: 0 };
    let before = SegmentHeader::of(&file, last.number)?.unwrap_or(unknown);
    // Whoever has a copy of what was there sees that this is something else.
    let header = SegmentHeader { packed: before.packed.wrapping_add(1), ..before };
    let packed = NewFile::create(&last.path)?;
    let mut out = BufWriter::with_capacity(1 << 18, packed.file());
    out.write_all(&header.to_bytes())?;
    let mut end = SEGMENT_HEADER_BYTES as u64;
    let mut moving = Moving::new(last.number);
    for (source, kept) in sources {
        let mut written = Ok(());
        let (file, _) = source.open()?.ok_or_else(gone)?;
        let (bases, unpacked) = (InFile(&file, source.number), Unpacked::default());
        let scanned = source.scan(|record, offset, bytes| {
            if written.is_ok() && kept.contains(&Place::of(record.summary(), source.number, offset)) {
                let moved = moving.record((&record, bytes), source.number, (&bases, &unpacked), end);
                // One whose base is damaged is as good as damaged itself, and those are not kept either.
                written = moved.and_then(|moved| {
                    let moved = moved.unwrap_or_default();
                    end += moved.len() as u64;
                    out.write_all(moved)
                });
            }
        });
        scanned?.ok_or_else(gone)?;
        written?;
    }
    out.flush()?;
    drop(out);
    packed.file().sync_all()?;
    Ok(packed)
}

/// Removes the indexes of these segments, and the runs that cover the rewritten one. Entries of runs for removed segments are
/// skipped.
fn forget(sources: &[(&SegmentFile, &RapidHashSet<Place>)], rewritten: Option<u64>) -> io::Result<()> {
    let Some(directory) = sources.last().and_then(|(last, _)| last.path.parent()) else {
        return Ok(());
    };
    for run in runs_of(directory)?.into_iter().filter(|_| rewritten.is_some()) {
        let tells = |index: &IndexFile| index.segments().iter().any(|(number, _)| rewritten == Some(*number));
        if IndexFile::open(&run.path)?.as_ref().is_none_or(tells) {
            fs::remove_file(&run.path)?;
        }
    }
    for (source, _) in sources {
        match fs::remove_file(index_path(&source.path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    sync_directory(directory)
}
