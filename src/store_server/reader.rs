use super::block::{self, InFile, Unpacked};
use super::dedup::url_hash;
use super::index::{AllPlaces, Catalog, Entries, List, Place};
use super::layout::{DIGEST, FETCHED_AT};
use super::record::{Document, Record, RecordSummary};
use super::scan::{self, RecordStart, ScanResult};
use super::segment_file::{SegmentFile, list_readable};
use super::segment_header::SegmentHeader;
use crate::base::u64_at;
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::proto::record::ResultCode;
use rapidhash::fast::RapidHashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use thiserror::Error;

/// Reads a store, also while a crawl is writing it. It uses plain reads, not a map: a file that is cut or removed meanwhile
/// is an error, not a fault. What is written after the reader was opened is found by opening another.
///
/// ```no_run
/// use nephila::store_server::Reader;
///
/// let reader = Reader::open("nephila-data".as_ref())?;
/// if let Some((located, Some(document))) = reader.find("http://example.org/")? {
///     println!("{} {} bytes", located.record.status, document.body.len());
/// }
/// # Ok::<(), nephila::store_server::ReadError>(())
/// ```
pub struct Reader {
    data: PathBuf,
    directory: PathBuf,
    segments: Vec<SegmentFile>,
    catalog: OnceLock<Catalog>,
    /// See [`Reader::bare_digests`].
    bare_digests: OnceLock<RapidHashMap<u64, Place>>,
    unpacked: Unpacked,
}

/// A record and its document, if it is there.
type Finding = Option<(Located, Option<Document>)>;

#[derive(Debug, Error)]
pub enum ReadError {
    #[error("no store at {0} (give its directory with --data)")]
    NoStore(PathBuf),
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("it is not in the store, unless in a damaged part of it: {path} from byte {} (nephila store verify lists the damage)", .bytes.start)]
    Damaged { path: PathBuf, bytes: Range<u64> },
}

/// A record and where it lies.
#[derive(Clone, Debug)]
pub struct Located {
    pub record: Record,
    pub segment: u64,
    pub offset: u64,
}

/// How old a record is among those of its URL.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    fetched_unix_ms: u64,
    is_imported: bool,
    pub segment: u64,
    pub offset: u64,
}

impl Age {
    /// An import is as old as its fetch; of all others what was written later is newer, whatever a clock said.
    pub fn is_newer_than(self, other: Age) -> bool {
        let place = |age: Age| (age.segment, age.offset);
        match self.is_imported || other.is_imported {
            true => (self.fetched_unix_ms, place(self)) > (other.fetched_unix_ms, place(other)),
            false => place(self) > place(other),
        }
    }
}

impl Located {
    pub fn age(&self) -> Age {
        Age {
            fetched_unix_ms: self.record.fetched_unix_ms,
            is_imported: self.record.is_imported(),
            segment: self.segment,
            offset: self.offset,
        }
    }

    pub(super) fn place(&self) -> Place {
        Place::of(self.record.summary(), self.segment, self.offset)
    }
}

/// Bytes of a sealed segment that are no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    pub bytes: Range<u64>,
}

/// Decides whether a record is the newest of its URL.
pub struct Newest<'a> {
    reader: &'a Reader,
    all: AllPlaces<'a>,
}

impl Reader {
    pub fn open(data: &Path) -> Result<Reader, ReadError> {
        let directory = data.join("segments");
        if !directory.is_dir() {
            return Err(ReadError::NoStore(data.to_path_buf()));
        }
        let segments = list_readable(&directory)?;
        Ok(Reader {
            data: data.to_path_buf(),
            directory,
            segments,
            catalog: OnceLock::new(),
            bare_digests: OnceLock::new(),
            unpacked: Unpacked::default(),
        })
    }

    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn segment_files(&self) -> &[SegmentFile] {
        &self.segments
    }

    fn segment_file(&self, number: u64) -> Option<&SegmentFile> {
        let index = self.segments.binary_search_by_key(&number, |segment| segment.number).ok()?;
        Some(&self.segments[index])
    }

    /// Ignores the oldest segments, so that no more than about this many bytes have to be read.
    pub fn keep_newest(&mut self, bytes_max: u64) {
        let mut bytes = 0;
        let mut first = self.segments.len();
        for segment in self.segments.iter().rev() {
            bytes += segment.bytes();
            if bytes > bytes_max {
                break;
            }
            first -= 1;
        }
        self.segments.drain(..first);
        self.catalog = OnceLock::new();
        self.bare_digests = OnceLock::new();
    }

    /// Bytes the segment files take.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(SegmentFile::bytes).sum()
    }

    /// Shows every record, oldest segment first. Returns the places where a sealed segment is damaged; what lies
    /// behind them was shown, too.
    pub fn each(&self, mut show: impl FnMut(Located, &[u8])) -> Result<Vec<Damage>, ReadError> {
        let mut damages = Vec::new();
        for segment in &self.segments {
            if let Some(scanned) = self.each_of(segment, &mut show)? {
                let path = &segment.path;
                damages.extend(scanned.damaged.into_iter().map(|bytes| Damage { path: path.clone(), bytes }));
            }
        }
        Ok(damages)
    }

    /// The same of one segment; `None` if it was removed. A record carries all that is needed to check it, so those of a
    /// segment with a damaged header are read, too.
    pub(super) fn each_of(
        &self,
        segment: &SegmentFile,
        show: &mut impl FnMut(Located, &[u8]),
    ) -> Result<Option<ScanResult>, ReadError> {
        let number = segment.number;
        let shown = |record, offset, bytes: &[u8]| show(Located { record, segment: number, offset }, bytes);
        let unreadable = |cause| segment.unreadable(cause);
        let Some((file, sealed, mut scanned)) = segment.scan(shown).map_err(unreadable)? else {
            return Ok(None);
        };
        if sealed && SegmentHeader::of(&file, number).map_err(unreadable)?.is_none() {
            scanned.damaged.insert(0, 0..SEGMENT_HEADER_BYTES as u64);
        }
        Ok(Some(scanned))
    }

    /// Decides which record of a URL is the newest.
    pub fn newest(&self) -> Result<Newest<'_>, ReadError> {
        Ok(Newest { reader: self, all: self.all_places()? })
    }

    pub(super) fn all_places(&self) -> Result<AllPlaces<'_>, ReadError> {
        let catalog = self.catalog()?;
        let mut bare = Entries::default();
        for segment in catalog.bare() {
            self.each_of(segment, &mut |located, _| {
                let url = located.record.url.as_bytes();
                bare.note(located.record.summary(), url, located.segment, located.offset);
            })?;
        }
        Ok(AllPlaces::new(catalog, bare))
    }

    /// The newest record of one URL and its document. A record that says that nothing has changed, or of
    /// which only the head was requested, has the document that was stored before.
    pub fn find(&self, url: &str) -> Result<Option<(Located, Option<Document>)>, ReadError> {
        if let Some(found) = self.find_indexed(url)? {
            return Ok(found);
        }
        // Segments were packed since this reader was opened, or something is damaged.
        let fresh = Reader::open(&self.data)?;
        match fresh.find_indexed(url)? {
            Some(found) => Ok(found),
            None => fresh.find_by_reading(url),
        }
    }

    /// Finds a record by the indexes; `None` if they lead to another one: they are out of date, or a record is damaged.
    fn find_indexed(&self, url: &str) -> Result<Option<Finding>, ReadError> {
        let key = url_hash(url.as_bytes());
        let mut places = self.places(List::Url, key, |_, found| found == url.as_bytes())?;
        self.sort_by_age(&mut places)?;
        let mut newest: Option<(Located, Vec<u8>)> = None;
        for place in places {
            let Some((located, bytes)) = self.read(place)? else {
                return Ok(None);
            };
            if located.record.url != url {
                if url_hash(located.record.url.as_bytes()) != key {
                    return Ok(None);
                }
                continue;
            }
            match (&newest, located.record.is_unchanged()) {
                (None, true) => newest = Some((located, bytes)),
                (Some(_), true) => {}
                (_, false) => {
                    let document = self.document_of(&located, &bytes)?;
                    // What it was compressed against is not there any more: its segment was packed meanwhile.
                    if document.is_none() && !block::stands_alone(&located.record) {
                        return Ok(None);
                    }
                    let (newest, _) = newest.unwrap_or((located, bytes));
                    return Ok(Some(Some((newest, document))));
                }
            }
        }
        let Some((located, bytes)) = newest else { return Ok(Some(None)) };
        let document = self.own_document(&located, &bytes)?;
        Ok(Some(Some((located, document))))
    }

    /// As [`Reader::find`], without any index.
    fn find_by_reading(&self, url: &str) -> Result<Option<(Located, Option<Document>)>, ReadError> {
        let mut newest: Option<(Located, Vec<u8>)> = None;
        let mut of_document: Option<(Located, Vec<u8>)> = None;
        let damages = self.each(|located, bytes| {
            if located.record.url == url {
                let is_newer = |known: &Option<(Located, Vec<u8>)>| {
                    known.as_ref().is_none_or(|(known, _)| located.age().is_newer_than(known.age()))
                };
                if !located.record.is_unchanged() && is_newer(&of_document) {
                    of_document = Some((located.clone(), bytes.to_vec()));
                }
                if is_newer(&newest) {
                    newest = Some((located, bytes.to_vec()));
                }
            }
        })?;
        // What is damaged may be newer than what is found.
        if let Some(Damage { path, bytes }) = damages.into_iter().next() {
            return Err(ReadError::Damaged { path, bytes });
        }
        let Some((newest, bytes)) = newest else {
            return Ok(None);
        };
        let document = match of_document {
            Some((located, bytes)) => self.document_of(&located, &bytes)?,
            None => self.own_document(&newest, &bytes)?,
        };
        Ok(Some((newest, document)))
    }

    /// The newest record of a document number, and its document.
    pub fn find_document(&self, doc_id: u32) -> Result<Option<(Located, Option<Document>)>, ReadError> {
        let places = self.places(List::Document, u64::from(doc_id), |header, _| {
            RecordSummary::of(header).doc_id == doc_id
        })?;
        for place in places {
            if let Some((located, _)) = self.read(place)?
                && located.record.doc_id == doc_id
            {
                return self.find(&located.record.url);
            }
        }
        Ok(None)
    }

    /// The newest records of document numbers that are a page, with their documents, shown by their index among `doc_ids`;
    /// `None` for one that is not there. Segments without an index are read once for all.
    pub fn find_pages(
        &self,
        doc_ids: &[u32],
        mut show: impl FnMut(usize, Option<(Record, Document)>),
    ) -> Result<(), ReadError> {
        let mut places: RapidHashMap<u32, Vec<Place>> = RapidHashMap::default();
        for &doc_id in doc_ids {
            places.insert(doc_id, self.catalog()?.find(List::Document, u64::from(doc_id)));
        }
        self.skim_bare(|segment, header, _, offset| {
            let summary = RecordSummary::of(header);
            if let Some(places) = places.get_mut(&summary.doc_id) {
                places.push(Place::of(summary, segment, offset));
            }
        })?;
        for (index, doc_id) in doc_ids.iter().enumerate() {
            let Some(places) = places.get_mut(doc_id) else { continue };
            places.sort_unstable_by(|a, b| b.cmp(a));
            let mut page = None;
            for &place in places.iter() {
                if let Some((located, bytes)) = self.read(place)?
                    && located.record.doc_id == *doc_id
                    && located.record.success
                    && !located.record.is_unchanged()
                    && let Some(document) = self.document_of(&located, &bytes)?
                {
                    page = Some((located.record, document));
                    break;
                }
            }
            show(index, page);
        }
        Ok(())
    }

    /// The record at a place, and its bytes; `None` if it is not there.
    pub fn record_at(&self, segment: u64, offset: u64) -> Result<Option<(Located, Vec<u8>)>, ReadError> {
        self.read(Place::at(segment, offset))
    }

    /// The record at a place that [`Reader::each`] has shown, and its document; `None` if it is no longer there.
    pub fn read_at(&self, segment: u64, offset: u64) -> Result<Option<(Record, Document)>, ReadError> {
        let Some((located, bytes)) = self.record_at(segment, offset)? else {
            return Ok(None);
        };
        let document = self.document_of(&located, &bytes)?;
        Ok(document.map(|document| (located.record, document)))
    }

    /// The response of a record: its own head, and the document, also where another record has it. `None` if the document
    /// is not there.
    pub fn document_of(&self, located: &Located, bytes: &[u8]) -> Result<Option<Document>, ReadError> {
        let own = self.unpack(located, bytes)?;
        if !located.record.is_reference {
            let is_moved = own.is_none() && !block::stands_alone(&located.record);
            return if is_moved { self.moved(located) } else { Ok(own) };
        }
        let (Some(own), digest) = (own, located.record.digest) else {
            return Ok(None);
        };
        let low = digest as u64;
        let bare = self.bare_digests()?.get(&low).copied();
        let indexed = self.catalog()?.find(List::Digest, low);
        let likely = bare.into_iter().chain(indexed).filter(|place| !place.is_reference());
        if let Some(body) = self.body_of(digest, likely)? {
            return Ok(Some(Document { head: own.head, body }));
        }
        // It may have been written since this reader was opened.
        let places = self.places(List::Digest, low, |header, _| u64_at(header, DIGEST) == low)?;
        let body = self.body_of(digest, places.into_iter().filter(|place| !place.is_reference()))?;
        Ok(body.map(|body| Document { head: own.head, body }))
    }

    /// The document of a record whose base is gone: it may have been packed since it was read, and be elsewhere.
    fn moved(&self, located: &Located) -> Result<Option<Document>, ReadError> {
        let Record { digest, url, fetched_unix_ms, .. } = &located.record;
        let fresh = Reader::open(&self.data)?;
        let low = *digest as u64;
        for place in fresh.places(List::Digest, low, |header, _| u64_at(header, DIGEST) == low)? {
            if let Some((other, bytes)) = fresh.read(place)?
                && (other.record.digest, &other.record.url) == (*digest, url)
                && other.record.fetched_unix_ms == *fetched_unix_ms
                && let Some(document) = fresh.unpack(&other, &bytes)?
            {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    pub(super) fn body_of(
        &self,
        digest: u128,
        places: impl Iterator<Item = Place>,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        for place in places {
            if let Some((other, bytes)) = self.read(place)?
                && other.record.digest == digest
                && !other.record.is_reference
                && let Some(found) = self.unpack(&other, &bytes)?
            {
                return Ok(Some(found.body));
            }
        }
        Ok(None)
    }

    /// Documents in the segments that are in no index, by the lower half of their digests.
    fn bare_digests(&self) -> Result<&RapidHashMap<u64, Place>, ReadError> {
        if let Some(known) = self.bare_digests.get() {
            return Ok(known);
        }
        let mut known = RapidHashMap::default();
        self.skim_bare(|segment, header, _, offset| {
            let summary = RecordSummary::of(header);
            if summary.digest != 0 && !summary.is_reference {
                known.insert(summary.digest as u64, Place::of(summary, segment, offset));
            }
        })?;
        Ok(self.bare_digests.get_or_init(|| known))
    }

    /// Shows headers and URLs of the segments that are in no index. A segment that the
    /// disk refused, and still refuses, is skipped: only what can be read of it counts.
    pub(super) fn skim_bare(&self, mut show: impl FnMut(u64, &[u8], &[u8], u64)) -> Result<(), ReadError> {
        for segment in self.catalog()?.bare() {
            let skimmed = segment.open().and_then(|opened| match opened {
                Some((file, _)) => scan::skim(&file, segment.number, |header, url, offset| {
                    show(segment.number, header, url, offset);
                }),
                None => Ok(()),
            });
            if let Err(cause) = skimmed
                && !segment.is_bad()
            {
                return Err(segment.unreadable(cause));
            }
        }
        Ok(())
    }

    /// The user agent that requested the documents of a segment, where it is known.
    pub fn agent(&self, segment: u64) -> Option<String> {
        let (file, _) = self.segment_file(segment)?.open().ok()??;
        let header = SegmentHeader::of(&file, segment).ok()??;
        (!header.agent.is_empty()).then_some(header.agent)
    }

    /// Unpacks the document behind a record's bytes; a reference has none of its own. `None` if it is damaged, or what it was
    /// compressed against.
    pub fn unpack(&self, located: &Located, bytes: &[u8]) -> Result<Option<Document>, ReadError> {
        let Located { record, segment, .. } = located;
        if block::stands_alone(record) {
            return Ok(block::unpack(record, bytes));
        }
        let Some(file) = self.segment_file(*segment) else { return Ok(None) };
        let unreadable = |cause| file.unreadable(cause);
        let Some((opened, _)) = file.open().map_err(unreadable)? else { return Ok(None) };
        let records = InFile(&opened, *segment);
        self.unpacked.document(&records, *segment, record, bytes).map_err(unreadable)
    }

    /// The document of a record that repeats an earlier one, of which there is none: the head alone if only that was requested,
    /// and nothing for a 304.
    fn own_document(&self, located: &Located, bytes: &[u8]) -> Result<Option<Document>, ReadError> {
        match located.record.result {
            ResultCode::NotModified => Ok(None),
            _ => self.unpack(located, bytes),
        }
    }

    /// Index files that a lookup searches, and segments without an index that it must read.
    pub fn index_files(&self) -> Result<(usize, usize), ReadError> {
        let catalog = self.catalog()?;
        Ok((catalog.files(), catalog.bare().len()))
    }

    pub(super) fn catalog(&self) -> Result<&Catalog, ReadError> {
        if let Some(catalog) = self.catalog.get() {
            return Ok(catalog);
        }
        let catalog = Catalog::open(&self.directory, &self.segments)
            .map_err(|cause| ReadError::Unreadable { path: self.directory.clone(), cause })?;
        Ok(self.catalog.get_or_init(|| catalog))
    }

    /// Places of records, the newest first: of a key, from the indexes, and from segments without one those that match by
    /// their header and URL.
    pub(super) fn places(
        &self,
        list: List,
        key: u64,
        matches: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<Vec<Place>, ReadError> {
        let mut places = self.catalog()?.find(list, key);
        self.skim_bare(|segment, header, url, offset| {
            if matches(header, url) {
                places.push(Place::of(RecordSummary::of(header), segment, offset));
            }
        })?;
        places.sort_unstable_by(|a, b| b.cmp(a));
        Ok(places)
    }

    /// Puts places of one URL, the latest first, into the order of their age, the newest first. Without an import among
    /// them, that is the same.
    pub(super) fn sort_by_age(&self, places: &mut Vec<Place>) -> Result<(), ReadError> {
        if places.len() < 2 || !places.iter().any(|place| place.is_imported()) {
            return Ok(());
        }
        let mut aged = Vec::with_capacity(places.len());
        for &place in places.iter() {
            aged.push((self.fetched_at(place)?, place));
        }
        let (mut imports, others): (Vec<_>, Vec<_>) =
            aged.into_iter().partition(|(_, place)| place.is_imported());
        imports.sort_unstable_by(|a, b| b.cmp(a));
        let (mut imports, mut others) = (imports.into_iter().peekable(), others.into_iter().peekable());
        places.clear();
        places.extend(std::iter::from_fn(|| {
            let is_import = match (imports.peek(), others.peek()) {
                (Some(import), Some(other)) => import > other,
                (import, _) => import.is_some(),
            };
            let next = if is_import { imports.next() } else { others.next() };
            next.map(|(_, place)| place)
        }));
        Ok(())
    }

    /// When a record was fetched; 0 for one that is no longer there.
    fn fetched_at(&self, place: Place) -> Result<u64, ReadError> {
        let number = u64::from(place.segment);
        let Some(segment) = self.segment_file(number) else { return Ok(0) };
        let header = segment.open().and_then(|opened| match opened {
            Some((file, _)) => scan::read_header(&file, number, place.offset()),
            None => Ok(None),
        });
        let header = header.map_err(|cause| segment.unreadable(cause))?;
        Ok(header.map_or(0, |header| u64_at(&header, FETCHED_AT)))
    }

    /// The start of the record at a place; `None` if it is not there, or the file ends before the record does.
    pub(super) fn start_at(&self, place: Place) -> Result<Option<RecordStart>, ReadError> {
        let number = u64::from(place.segment);
        let Some(segment) = self.segment_file(number) else { return Ok(None) };
        let start = segment.open().and_then(|opened| {
            let Some((file, _)) = opened else { return Ok(None) };
            let mut start = RecordStart::new();
            let is_there = start.read(&file, number, place.offset())?
                && place.offset() + start.record_bytes() <= file.metadata()?.len();
            Ok(is_there.then_some(start))
        });
        start.map_err(|cause| segment.unreadable(cause))
    }

    pub(super) fn read(&self, place: Place) -> Result<Option<(Located, Vec<u8>)>, ReadError> {
        let number = u64::from(place.segment);
        let Some(segment) = self.segment_file(number) else { return Ok(None) };
        let unreadable = |cause| segment.unreadable(cause);
        let Some((file, _)) = segment.open().map_err(unreadable)? else {
            return Ok(None);
        };
        let found = scan::read_record(&file, number, place.offset()).map_err(unreadable)?;
        Ok(found.map(|(record, bytes)| (Located { record, segment: number, offset: place.offset() }, bytes)))
    }
}

impl Newest<'_> {
    pub fn is_newest(&self, located: &Located) -> bool {
        let own = located.place();
        let mut places = self.all.find(List::Url, url_hash(located.record.url.as_bytes()));
        // What cannot be read now is damage, which whoever reads on is told of.
        let _ = self.reader.sort_by_age(&mut places);
        // One that is in no index yet is the latest.
        places.first().is_none_or(|&newest| newest == own || newest < own && !places.contains(&own))
    }
}
