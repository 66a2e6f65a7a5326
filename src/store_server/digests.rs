use crate::config::Dedup;
use crate::limits::{DIGESTS_BASE_MAX, DIGESTS_LIVE};
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// A document shorter than this is stored again: a reference would hardly be smaller.
const DOCUMENT_BYTES_MIN: usize = 64;

/// Hash of a URL, as indexes have it.
pub(super) fn url_hash(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

/// What was stored before this process: the documents that a reference may stand for. Filled from the indexes, the newest
/// first, and never changed.
#[derive(Default)]
pub struct StoredDigests {
    by_url: RapidHashMap<u64, u64>,
    any: RapidHashSet<u64>,
}

impl StoredDigests {
    /// Notes a document; of two of one URL the first that is noted stays. Digests by their lower half, as indexes have
    /// them. False once there is no room for more.
    pub(super) fn note(&mut self, dedup: Dedup, url_hash: u64, digest_low: u64) -> bool {
        match dedup {
            Dedup::Off => return false,
            Dedup::Url => drop(self.by_url.entry(url_hash).or_insert(digest_low)),
            Dedup::Any => drop(self.any.insert(digest_low)),
        }
        self.by_url.len().max(self.any.len()) < DIGESTS_BASE_MAX
    }
}

/// A shard's memory of what is stored. That of its own documents is a table in which the later one takes the place of
/// an earlier: what was forgotten is stored again, which costs room and nothing else.
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
}

impl Digests {
    pub fn new(key: u64, dedup: Dedup, base: std::sync::Arc<StoredDigests>) -> Digests {
        Digests { key, dedup, base, live: Vec::new() }
    }

    /// The digest of a document, and whether it is stored already and durable. What is not durable may be gone after a
    /// power loss, and nothing may stand for it.
    pub fn look(&self, url: &str, document: &[u8], durable: u64) -> (u128, bool) {
        if document.is_empty() {
            return (0, false);
        }
        let digest = xxh3_128_with_seed(document, self.key).max(1);
        if self.dedup == Dedup::Off || document.len() < DOCUMENT_BYTES_MIN {
            return (digest, false);
        }
        let name = self.name(url, digest);
        let live = self.live.get(place(name));
        let is_live =
            live.is_some_and(|live| live.name == name && live.digest == digest && live.sequence <= durable);
        let in_base = || match self.dedup {
            Dedup::Any => self.base.any.contains(&name),
            _ => self.base.by_url.get(&name) == Some(&(digest as u64)),
        };
        (digest, is_live || in_base())
    }

    /// Notes a document that was stored.
    pub fn note(&mut self, url: &str, digest: u128, sequence: u64) {
        if self.dedup == Dedup::Off || digest == 0 {
            return;
        }
        if self.live.is_empty() {
            self.live = vec![Live::default(); DIGESTS_LIVE];
        }
        let name = self.name(url, digest);
        self.live[place(name)] = Live { name, digest, sequence };
    }

    fn name(&self, url: &str, digest: u128) -> u64 {
        match self.dedup {
            Dedup::Any => digest as u64,
            _ => url_hash(url),
        }
        .max(1)
    }
}

fn place(name: u64) -> usize {
    name as usize & (DIGESTS_LIVE - 1)
}
