use super::policy::Dedup;
use crate::limits::{DIGESTS_BASE_MAX, DIGESTS_LIVE};
use rapidhash::fast::RapidHashMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// A document shorter than this is stored again: a reference would hardly be smaller.
const DOCUMENT_BYTES_MIN: usize = 64;

/// Hash of a URL, as in indexes.
pub(super) fn url_hash(url: &[u8]) -> u64 {
    xxh3_64(url)
}

/// The digest of a document, which is never 0.
pub(super) fn digest(document: &[u8], key: u64) -> u128 {
    xxh3_128_with_seed(document, key).max(1)
}

/// The documents that were stored before this process, to which a reference may point. Filled from the indexes, the newest
/// first, and never changed.
#[derive(Default)]
pub struct StoredDigests {
    /// By the hash of the URL, or by the lower half of the digest.
    known: RapidHashMap<u64, Known>,
}

#[derive(Clone, Copy)]
struct Known {
    digest_low: u64,
    segment: u32,
}

/// What a reference may point to: documents that are durable, and in no segment that may be dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solid {
    pub durable: u64,
    pub retired: u64,
}

impl StoredDigests {
    /// Notes a document; of two of one URL the first that is noted stays. Digests by their lower half, as in
    /// indexes. False once the table is full.
    pub(super) fn note(&mut self, dedup: Dedup, url_hash: u64, digest_low: u64, segment: u32) -> bool {
        let name = match dedup {
            Dedup::Off => return false,
            Dedup::Url => url_hash,
            Dedup::Any => digest_low,
        };
        self.known.entry(name.max(1)).or_insert(Known { digest_low, segment });
        self.known.len() < DIGESTS_BASE_MAX
    }
}

/// A shard's memory of stored documents. Its own are in a table in which a later one replaces an earlier one: what was forgotten is stored again, which costs space and nothing else.
pub(super) struct Digests {
    key: u64,
    dedup: Dedup,
    base: std::sync::Arc<StoredDigests>,
    live: Vec<Live>,
}

#[derive(Clone, Copy, Default)]
struct Live {
    /// Hash of the URL, or the lower half of the digest; 0 in an empty place.
    name: u64,
    digest: u128,
    sequence: u64,
    segment: u64,
}

impl Digests {
    pub fn new(key: u64, dedup: Dedup, base: std::sync::Arc<StoredDigests>) -> Digests {
        Digests { key, dedup, base, live: Vec::new() }
    }

    /// The digest of a document, and whether a reference may point to a stored copy. What is not durable may be lost after a
    /// power loss.
    pub fn look(&self, url: &str, document: &[u8], solid: Solid) -> (u128, bool) {
        if document.is_empty() {
            return (0, false);
        }
        let digest = digest(document, self.key);
        if self.dedup == Dedup::Off || document.len() < DOCUMENT_BYTES_MIN {
            return (digest, false);
        }
        let name = self.name(url, digest);
        let is_live = self.live.get(place(name)).is_some_and(|live| {
            live.name == name
                && live.digest == digest
                && live.sequence <= solid.durable
                && live.segment > solid.retired
        });
        let in_base = || {
            self.base.known.get(&name).is_some_and(|known| {
                known.digest_low == digest as u64 && u64::from(known.segment) > solid.retired
            })
        };
        (digest, is_live || in_base())
    }

    /// Notes a document that was stored.
    pub fn note(&mut self, url: &str, digest: u128, sequence: u64, segment: u64) {
        if self.dedup == Dedup::Off || digest == 0 {
            return;
        }
        if self.live.is_empty() {
            self.live = vec![Live::default(); DIGESTS_LIVE];
        }
        let name = self.name(url, digest);
        self.live[place(name)] = Live { name, digest, sequence, segment };
    }

    fn name(&self, url: &str, digest: u128) -> u64 {
        match self.dedup {
            Dedup::Any => digest as u64,
            _ => url_hash(url.as_bytes()),
        }
        .max(1)
    }
}

fn place(name: u64) -> usize {
    name as usize & (DIGESTS_LIVE - 1)
}
