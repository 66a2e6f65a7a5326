use crate::base::fingerprint;
use crate::engine::crawl::completion;
use crate::proto::http1::{Flags, HeadLimits, HeadParser, HeadStep, Method, Validators};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::store_server::{Located, ReadError, Reader};
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::cell::OnceCell;
use std::path::Path;

/// What the store holds of pages that may be asked for again: their ETag and Last-Modified, so that what has not changed
/// need not come a second time.
#[derive(Default)]
pub struct Stored {
    by_url: RapidHashMap<u64, Known>,
    /// Digests of documents that were read themselves, while a store is read.
    digests: RapidHashSet<u128>,
}

struct Known {
    validators: Validators,
    /// The document is there, not only its head.
    whole: bool,
    segment: u64,
}

/// URLs remembered, and bytes of segments read for them, the newest first; the rest is fetched as if it were new.
const STORED_MAX: usize = 1 << 20;
const STORED_BYTES_MAX: u64 = 4 << 30;

impl Stored {
    /// Reads a store from its oldest record to its newest. A directory without one holds nothing.
    pub fn open(data: &Path) -> Result<Stored, ReadError> {
        let mut stored = Stored::default();
        match Reader::open(data) {
            Ok(mut reader) => {
                reader.keep_newest(STORED_BYTES_MAX);
                let (all, newest) = (Reader::open(data)?, OnceCell::new());
                reader.each(|located, bytes| {
                    // What was fetched comes in the order of its age; an import may be older than what came before it.
                    let newest = || newest.get_or_init(|| all.newest().ok()).as_ref();
                    if !located.record.is_imported() || newest().is_some_and(|all| all.is_newest(&located)) {
                        stored.note(&reader, &located, bytes);
                    }
                })?;
                stored.digests = RapidHashSet::default();
            }
            Err(ReadError::NoStore(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(stored)
    }

    /// What a request for this URL can ask about. Whoever wants the document must have it stored, and in no segment that
    /// may go away: those are the ones up to `retired`.
    pub fn of(&self, url: &CrawlUrl, head_only: bool, retired: u64) -> Option<Validators> {
        if self.by_url.is_empty() {
            return None;
        }
        let known = self.by_url.get(&url.fingerprint())?;
        let is_there = known.whole && known.segment > retired;
        (is_there || head_only).then(|| known.validators.clone())
    }

    fn note(&mut self, reader: &Reader, located: &Located, bytes: &[u8]) {
        let Located { record, segment, .. } = located;
        let url = fingerprint(record.url.as_bytes());
        let flags = Flags::from_bits(record.flags);
        // A reference is as good as its document, if that was there to be read.
        let whole = !flags.contains(Flags::HEAD_ONLY)
            && !flags.contains(Flags::HEAD_BY_GET)
            && (!record.is_reference || self.digests.contains(&record.digest));
        if record.has_document() && record.digest != 0 && self.digests.len() < STORED_MAX {
            self.digests.insert(record.digest);
        }
        match record.result {
            ResultCode::NotModified => {}
            ResultCode::Ok if !whole && self.by_url.get(&url).is_some_and(|known| known.whole) => {}
            ResultCode::Ok => match validators_of(reader, located, bytes) {
                Some(validators) if self.by_url.len() < STORED_MAX || self.by_url.contains_key(&url) => {
                    let known = Known { validators, whole, segment: *segment };
                    self.by_url.insert(url, known);
                }
                _ => {
                    self.by_url.remove(&url);
                }
            },
            // What was had before is not the newest any more.
            _ => {
                self.by_url.remove(&url);
            }
        }
    }
}

fn validators_of(reader: &Reader, located: &Located, bytes: &[u8]) -> Option<Validators> {
    let record = &located.record;
    let head = reader.unpack(located, bytes).ok()??.head;
    match HeadParser::new(HeadLimits::default(), Method::Get).parse(&head) {
        Ok(HeadStep::Done(parsed)) => {
            completion::validators_of(record.result, Flags::from_bits(record.flags), Some(&parsed), &head)
        }
        _ => None,
    }
}
