use super::directory::{SegmentFile, list};
use super::header::SegmentHeader;
use super::layout::HEADER_BYTES;
use super::record::{self, Document, NotARecord, Record};
use crate::base::fingerprint;
use crate::limits::SEGMENT_HEADER_BYTES;
use rapidhash::fast::RapidHashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reads a store, also while a crawl is writing it. By plain reads: a file that is cut or vanishes under us is
/// an error, not a fault.
pub struct Reader {
    pub(super) segments: Vec<SegmentFile>,
}

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("no store at {0} (give its directory with --data)")]
    NoStore(PathBuf),
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: PathBuf, cause: io::Error },
}

/// A record and where it lies.
#[derive(Clone, Debug)]
pub struct Located {
    pub record: Record,
    pub segment: u64,
    pub offset: u64,
}

/// What a walk over a segment ended on.
enum End {
    /// The end of the records.
    Clean,
    /// Bytes that are no record, in a sealed segment.
    Damaged { offset: u64 },
}

impl Reader {
    pub fn open(data: &Path) -> Result<Reader, ReadError> {
        let segments = data.join("segments");
        if !segments.is_dir() {
            return Err(ReadError::NoStore(data.to_path_buf()));
        }
        let segments = list(&segments).map_err(|cause| ReadError::Unreadable { path: segments, cause })?;
        Ok(Reader { segments })
    }

    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Leaves the oldest segments aside, so that no more than about this much has to be read.
    pub fn keep_newest(&mut self, bytes_max: u64) {
        let mut bytes = 0;
        let mut first = self.segments.len();
        for segment in self.segments.iter().rev() {
            bytes += segment.path.metadata().map_or(0, |meta| meta.len());
            if bytes > bytes_max {
                break;
            }
            first -= 1;
        }
        self.segments.drain(..first);
    }

    /// Bytes the segment files take.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().filter_map(|segment| segment.path.metadata().ok()).map(|meta| meta.len()).sum()
    }

    /// Shows every record, oldest segment first. Returns the places where a sealed segment is damaged.
    pub fn each(&self, mut show: impl FnMut(Located, &[u8])) -> Result<Vec<(PathBuf, u64)>, ReadError> {
        let mut damaged = Vec::new();
        for segment in &self.segments {
            let unreadable = |cause| ReadError::Unreadable { path: segment.path.clone(), cause };
            // A segment may be sealed, and so renamed, between listing and opening.
            let file = File::open(&segment.path).or_else(|_| File::open(segment.path.with_extension("seg")));
            let file = match file {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(unreadable(e)),
            };
            if SegmentHeader::of(&file, segment.number).map_err(unreadable)?.is_none() {
                if segment.sealed {
                    damaged.push((segment.path.clone(), 0));
                }
                continue;
            }
            match walk(file, segment, &mut show).map_err(unreadable)? {
                End::Clean => {}
                End::Damaged { offset } => damaged.push((segment.path.clone(), offset)),
            }
        }
        Ok(damaged)
    }

    /// The newest record of every URL, in the order of the store.
    pub fn newest(&self) -> Result<Vec<Located>, ReadError> {
        let mut place: RapidHashMap<u64, usize> = RapidHashMap::default();
        let mut found: Vec<Option<Located>> = Vec::new();
        self.each(|located, _| {
            let index = found.len();
            if let Some(older) = place.insert(fingerprint(located.record.url.as_bytes()), index) {
                found[older] = None;
            }
            found.push(Some(located));
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The newest record of one URL and its document. One that says that nothing has changed, or of which only the head
    /// was asked for, has the document that was stored before.
    pub fn find(&self, url: &str) -> Result<Option<(Located, Option<Document>)>, ReadError> {
        let mut newest = None;
        self.each(|located, bytes| {
            if located.record.url == url {
                let unchanged = located.record.is_unchanged();
                let before = newest.take().and_then(|(_, document)| document).filter(|_| unchanged);
                let document = before.or_else(|| record::unpack(&located.record, bytes));
                newest = Some((located, document));
            }
        })?;
        Ok(newest)
    }

    /// The record at a place that [`Reader::each`] has shown, and its document; `None` if it is not there any more.
    pub fn read_at(&self, segment: u64, offset: u64) -> Result<Option<(Record, Document)>, ReadError> {
        let Some(segment) = self.segments.iter().find(|known| known.number == segment) else {
            return Ok(None);
        };
        let unreadable = |cause| ReadError::Unreadable { path: segment.path.clone(), cause };
        let file = File::open(&segment.path).or_else(|_| File::open(segment.path.with_extension("seg")));
        let mut file = file.map_err(unreadable)?;
        file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
        let mut bytes = Vec::new();
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(unreadable)?;
        let Ok(lengths) = record::check_header(&bytes, segment.number) else {
            return Ok(None);
        };
        (&mut file)
            .take((lengths.record - HEADER_BYTES) as u64)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let Ok(record) = record::parse(&bytes, segment.number) else {
            return Ok(None);
        };
        let document = record::unpack(&record, &bytes);
        Ok(document.map(|document| (record, document)))
    }

    /// The response that a record reads like: its own head, and where its document is another record's, that one.
    /// `None` if the document is not there.
    pub fn document_of(&self, located: &Located, bytes: &[u8]) -> Result<Option<Document>, ReadError> {
        let own = record::unpack(&located.record, bytes);
        let (Some(own), true) = (own, located.record.is_reference) else {
            return Ok(record::unpack(&located.record, bytes));
        };
        let mut body = None;
        self.each(|other, bytes| {
            if other.record.digest == located.record.digest && !other.record.is_reference {
                body = record::unpack(&other.record, bytes).map(|document| document.body);
            }
        })?;
        Ok(body.map(|body| Document { head: own.head, body }))
    }

    /// Unpacks the document behind a record's bytes; a reference has none of its own.
    pub fn document(record: &Record, bytes: &[u8]) -> Option<Document> {
        record::unpack(record, bytes)
    }
}

fn walk(file: File, segment: &SegmentFile, show: &mut impl FnMut(Located, &[u8])) -> io::Result<End> {
    let end = |offset| {
        if segment.sealed { End::Damaged { offset } } else { End::Clean }
    };
    let mut reader = io::BufReader::with_capacity(1 << 18, file);
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        (&mut reader).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(End::Clean);
        }
        let lengths = match record::check_header(&bytes, segment.number) {
            Ok(lengths) => lengths,
            Err(NotARecord::Empty) if !segment.sealed => return Ok(End::Clean),
            Err(_) => return Ok(end(offset)),
        };
        (&mut reader).take((lengths.record - HEADER_BYTES) as u64).read_to_end(&mut bytes)?;
        match record::parse(&bytes, segment.number) {
            Ok(record) if bytes.len() == lengths.record => {
                show(Located { record, segment: segment.number, offset }, &bytes);
            }
            _ => return Ok(end(offset)),
        }
        offset += lengths.record as u64;
    }
}
