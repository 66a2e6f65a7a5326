use super::dedup::url_hash;
use super::index::{Entry, List, Place};
use super::layout::RESULT;
use super::reader::{ReadError, Reader};
use super::record::{Document, RecordSummary};
use super::segment_file::{SegmentFile, list};
use crate::proto::record::ResultCode;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which documents can be read, of a store as it was when this was opened. Made for many questions on a thread that others
/// wait for: what is in no index is looked through once, and a question reads the start of a record or two.
pub(crate) struct Holdings {
    reader: Reader,
    /// Of the segments that are in no index, sorted: every record by its URL, and those that have a document by its digest.
    urls: Vec<Entry>,
    digests: Vec<Entry>,
    seen: Vec<Seen>,
}

/// A segment file as it was found: one that was packed is another.
#[derive(PartialEq, Eq)]
struct Seen {
    number: u64,
    sealed: bool,
    inode: u64,
    /// Its size, and when it was changed. One in use changes all the time.
    state: (u64, i64, i64),
}

impl Seen {
    fn of(segment: &SegmentFile) -> Seen {
        let SegmentFile { number, sealed, .. } = *segment;
        let meta = segment.path.metadata().ok();
        let state =
            meta.as_ref().filter(|_| sealed).map(|meta| (meta.len(), meta.mtime(), meta.mtime_nsec()));
        let inode = meta.map_or(0, |meta| meta.ino());
        Seen { number, sealed, inode, state: state.unwrap_or_default() }
    }
}

/// Records with one digest that are looked at: each of them has the document, unless somebody has been at the files.
const COPIES_MAX: usize = 8;

impl Holdings {
    /// A segment that cannot be read is an error: it may have the newest record of any URL.
    pub fn open(data: &Path) -> Result<Holdings, ReadError> {
        let reader = Reader::open(data)?;
        // Before anything is read: what changes meanwhile is seen later.
        let seen = reader.segment_files().iter().map(Seen::of).collect();
        let (mut urls, mut digests) = (Vec::new(), Vec::new());
        reader.skim_bare(|segment, header, url, offset| {
            let summary = RecordSummary::of(header);
            let place = Place::of(summary, segment, offset);
            urls.push(Entry { key: url_hash(url), place });
            if summary.digest != 0 && !summary.is_reference {
                digests.push(Entry { key: summary.digest as u64, place });
            }
        })?;
        urls.sort_unstable();
        digests.sort_unstable();
        Ok(Holdings { reader, urls, digests, seen })
    }

    /// Whether the segments are where they were, so that opening this anew would tell nothing new.
    pub fn is_current(&self) -> bool {
        let last = self.seen.last().map_or(0, |seen| seen.number);
        let found = list(self.reader.directory()).unwrap_or_default();
        let found: Vec<Seen> = found.iter().filter(|segment| segment.number <= last).map(Seen::of).collect();
        found == self.seen
    }

    /// Whether a whole document is stored for a URL, by the starts of its records.
    pub fn holds(&self, url: &str) -> Result<bool, ReadError> {
        let Some((_, summary)) = self.newest(url)? else { return Ok(false) };
        if !summary.is_reference {
            return Ok(true);
        }
        for place in self.copies(summary.digest)? {
            let start = self.reader.start_at(place)?.map(|start| RecordSummary::of(start.header()));
            if start.is_some_and(|other| other.digest == summary.digest && !other.is_reference) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The document that is stored for a URL, read and checked.
    pub fn document(&self, url: &str) -> Result<Option<Document>, ReadError> {
        let Some((place, _)) = self.newest(url)? else { return Ok(None) };
        let Some((located, bytes)) = self.reader.read(place)? else { return Ok(None) };
        let own = self.reader.unpack(&located, &bytes)?;
        if !located.record.is_reference {
            return Ok(own);
        }
        let Some(own) = own else { return Ok(None) };
        let digest = located.record.digest;
        let body = self.reader.body_of(digest, self.copies(digest)?)?;
        Ok(body.map(|body| Document { head: own.head, body }))
    }

    /// The newest record of a URL that has a document of its own or refers to one; `None` if that is no success. A 304 or
    /// a head stands for what was stored before it.
    fn newest(&self, url: &str) -> Result<Option<(Place, RecordSummary)>, ReadError> {
        let mut places = self.places(List::Url, url_hash(url.as_bytes()))?;
        self.reader.sort_by_age(&mut places)?;
        for place in places.into_iter().filter(|place| !place.is_unchanged()) {
            let Some(start) = self.reader.start_at(place)? else { return Ok(None) };
            if start.url() == url.as_bytes() {
                let is_whole = start.header()[RESULT] == ResultCode::Ok as u8;
                return Ok(is_whole.then(|| (place, RecordSummary::of(start.header()))));
            }
        }
        Ok(None)
    }

    fn copies(&self, digest: u128) -> Result<impl Iterator<Item = Place>, ReadError> {
        let places = self.places(List::Digest, digest as u64)?;
        Ok(places.into_iter().filter(|place| !place.is_reference()).take(COPIES_MAX))
    }

    /// Places of a key, the latest first.
    fn places(&self, list: List, key: u64) -> Result<Vec<Place>, ReadError> {
        let bare = if list == List::Url { &self.urls } else { &self.digests };
        let first = bare.partition_point(|entry| entry.key < key);
        let mut places = self.reader.catalog()?.find(list, key);
        places.extend(bare[first..].iter().take_while(|entry| entry.key == key).map(|entry| entry.place));
        places.sort_unstable_by(|a, b| b.cmp(a));
        Ok(places)
    }
}
