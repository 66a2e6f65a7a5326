use super::index::{Entries, Entry, IndexFile, List, index_path, runs_of};
use super::reader::{Damage, Located, ReadError, Reader};
use super::segment_file::SegmentFile;
use std::path::PathBuf;

/// The result of [`Reader::verify`].
#[derive(Clone, Debug, Default)]
pub struct Verified {
    pub segments: usize,
    pub records: u64,
    pub references: u64,
    /// Bytes of documents, as they were fetched.
    pub document_bytes: u64,
    /// Bytes of sealed segments that are no record.
    pub damages: Vec<Damage>,
    /// Records whose document cannot be read, and where they are.
    pub broken: Vec<(String, Damage)>,
    /// Indexes that differ from their segments.
    pub wrong_indexes: Vec<PathBuf>,
    /// Sealed segments without an index. Lookups read them, and the next process that writes indexes them.
    pub unindexed: usize,
    /// Segments in use that end in the middle of a record, and where: a process is writing it, or was killed.
    pub torn: Vec<(PathBuf, u64)>,
}

impl Verified {
    /// Everything that was counted as stored can be read, and found.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty() && self.broken.is_empty() && self.wrong_indexes.is_empty()
    }
}

impl Reader {
    /// Reads every record, unpacks every document, follows every reference and compares every index.
    pub fn verify(&self) -> Result<Verified, ReadError> {
        let mut verified = Verified::default();
        let mut runs = Vec::new();
        let directory = self.directory();
        let unreadable = |cause| ReadError::Unreadable { path: directory.to_path_buf(), cause };
        for run in runs_of(directory).map_err(unreadable)? {
            match IndexFile::open(&run.path) {
                Ok(Some(index)) => runs.push((run.path, index)),
                Ok(None) => verified.wrong_indexes.push(run.path),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(cause) => return Err(ReadError::Unreadable { path: run.path, cause }),
            }
        }
        for segment in self.segment_files() {
            self.verify_segment(segment, &runs, &mut verified)?;
        }
        verified.wrong_indexes.dedup();
        Ok(verified)
    }

    fn verify_segment(
        &self,
        segment: &SegmentFile,
        runs: &[(PathBuf, IndexFile)],
        verified: &mut Verified,
    ) -> Result<(), ReadError> {
        let mut entries = Entries::default();
        let mut failed = None;
        let scanned = self.each_of(segment, &mut |located, bytes| {
            let record = &located.record;
            verified.records += 1;
            verified.references += u64::from(record.is_reference);
            verified.document_bytes += u64::from(record.document_len);
            entries.note(record.summary(), record.url.as_bytes(), located.segment, located.offset);
            match self.document_of(&located, bytes) {
                Ok(Some(_)) => {}
                Ok(None) => verified.broken.push(broken(segment, &located)),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let Some(scanned) = scanned else {
            return Ok(());
        };
        verified.segments += 1;
        let path = &segment.path;
        if scanned.is_torn {
            verified.torn.push((path.clone(), scanned.end));
        }
        verified
            .damages
            .extend(scanned.damaged.into_iter().map(|bytes| Damage { path: path.clone(), bytes }));
        if segment.sealed {
            verify_index(segment, &entries.sorted(), runs, verified)?;
        }
        Ok(())
    }
}

fn broken(segment: &SegmentFile, located: &Located) -> (String, Damage) {
    let bytes = located.offset..located.offset + u64::from(located.record.record_bytes);
    (located.record.url.clone(), Damage { path: segment.path.clone(), bytes })
}

/// Compares the records of a segment with its own index, and with the runs that cover it.
fn verify_index(
    segment: &SegmentFile,
    entries: &[Vec<Entry>; 3],
    runs: &[(PathBuf, IndexFile)],
    verified: &mut Verified,
) -> Result<(), ReadError> {
    let path = index_path(&segment.path);
    match IndexFile::open(&path) {
        Ok(Some(index)) => {
            // Cut between two records, a segment looks whole; its index knows better.
            let bytes = segment.bytes();
            let had = index.segments().iter().find(|(number, _)| *number == segment.number);
            if let Some((_, had)) = had.filter(|(_, had)| *had > bytes) {
                verified.damages.push(Damage { path: segment.path.clone(), bytes: bytes..*had });
            } else if !List::ALL
                .into_iter()
                .all(|list| index.entries(list).eq(entries[list as usize].iter().copied()))
            {
                verified.wrong_indexes.push(path);
            }
        }
        Ok(None) => verified.wrong_indexes.push(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => verified.unindexed += 1,
        Err(cause) => return Err(ReadError::Unreadable { path, cause }),
    }
    for (path, run) in runs {
        let tells = run.segments().iter().any(|(number, _)| *number == segment.number);
        if tells && !holds(run, entries) {
            verified.wrong_indexes.push(path.clone());
        }
    }
    Ok(())
}

fn holds(run: &IndexFile, entries: &[Vec<Entry>; 3]) -> bool {
    List::ALL.into_iter().all(|list| {
        entries[list as usize].iter().all(|entry| run.find(list, entry.key).any(|found| found == *entry))
    })
}
