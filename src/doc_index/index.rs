use super::line::Lines;
use crate::base::fingerprint;
use crate::proto::lines::{Candidate, Chain, DocKind};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

/// See the folder's docs.
#[derive(Default)]
pub struct DocIndex {
    /// Documents by `doc_id - 1`: 0 names none.
    docs: Vec<Doc>,
    /// URL fingerprint to `doc_id`. Two URLs with one fingerprint are told apart by the text.
    by_url: RapidHashMap<u64, u32>,
    /// The rare URLs whose fingerprint was taken.
    by_url_clash: RapidHashMap<Box<str>, u32>,
    pending: Lines,
    /// Sitemaps that robots rules named, in normal form.
    sitemaps: BTreeSet<CrawlUrl>,
    stats: IndexStats,
}

/// Where a URL was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The document that named it; 0 for a seed.
    pub via: u32,
    /// Links followed from a seed; redirects do not count.
    pub depth: u16,
    /// Redirects followed from the first URL of this chain.
    pub hops: u8,
    /// A seed, or reached from one by redirects alone.
    pub seed_chain: bool,
    /// Whether it is there and has changed is all that is asked.
    pub head_only: bool,
}

impl Origin {
    pub const SEED: Origin = Origin { via: 0, depth: 0, hops: 0, seed_chain: true, head_only: false };
}

/// Sitemaps remembered.
const SITEMAPS_MAX: usize = 1 << 20;

struct Doc {
    url: CrawlUrl,
    origin: Origin,
    state: DocState,
}

/// What is known of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocState {
    /// To be fetched.
    Pending,
    /// Handed out, not answered for.
    Fetching,
    Done(ResultCode),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    pub known: u64,
    pub pending: u64,
    pub fetching: u64,
    pub done: u64,
    pub sitemaps: u64,
}

/// Hosts that nothing more is wanted of for now, by the fingerprint of their origin.
pub type RejectList = RapidHashSet<u64>;

impl DocIndex {
    /// Makes a URL, in normal form, known. Its `doc_id` if it is new; `None` if it was known already, is no URL, or
    /// the index is full. Nothing is allocated for a URL that was known.
    pub fn discover(&mut self, url: &str, origin: Origin) -> Option<u32> {
        let doc_id = u32::try_from(self.docs.len() + 1).ok()?;
        let entry = self.by_url.entry(fingerprint(url.as_bytes()));
        if let Entry::Occupied(taken) = &entry
            && (self.docs[*taken.get() as usize - 1].url.as_str() == url
                || self.by_url_clash.contains_key(url))
        {
            return None;
        }
        let parsed = CrawlUrl::from_normal(url).ok()?;
        match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(doc_id);
            }
            Entry::Occupied(_) => {
                self.by_url_clash.insert(url.into(), doc_id);
            }
        }
        self.pending.push_back(fingerprint(parsed.origin().as_bytes()), doc_id);
        self.stats.known += 1;
        self.docs.push(Doc { url: parsed, origin, state: DocState::Pending });
        Some(doc_id)
    }

    /// Up to `want` documents to fetch, spread over hosts that are not in the reject list, first come first served
    /// within a host.
    pub fn candidates(&mut self, want: usize, reject: &RejectList) -> Vec<Candidate> {
        let mut found = Vec::with_capacity(want.min(self.pending.len()));
        let (docs, stats) = (&mut self.docs, &mut self.stats);
        self.pending.take(
            want,
            |host| reject.contains(&host),
            |doc_id| {
                let doc = &mut docs[doc_id as usize - 1];
                debug_assert_eq!(doc.state, DocState::Pending);
                doc.state = DocState::Fetching;
                stats.fetching += 1;
                found.push(candidate_of(docs, doc_id));
            },
        );
        found
    }

    /// A document as it is handed out.
    pub fn candidate(&self, doc_id: u32) -> Option<Candidate> {
        let known = doc_id > 0 && doc_id as usize <= self.docs.len();
        known.then(|| candidate_of(&self.docs, doc_id))
    }

    /// What became of a document that was handed out. True the first time; a second answer changes nothing.
    pub fn record(&mut self, doc_id: u32, result: ResultCode) -> bool {
        let Some(doc) = self.doc_mut(doc_id).filter(|doc| doc.state == DocState::Fetching) else {
            return false;
        };
        doc.state = DocState::Done(result);
        self.stats.fetching -= 1;
        self.stats.done += 1;
        true
    }

    /// A document that was handed out comes back unfetched: it is the next of its host.
    pub fn put_back(&mut self, doc_id: u32) {
        let Some(doc) = self.doc_mut(doc_id).filter(|doc| doc.state == DocState::Fetching) else {
            return;
        };
        doc.state = DocState::Pending;
        let host = fingerprint(doc.url.origin().as_bytes());
        self.stats.fetching -= 1;
        self.pending.push_front(host, doc_id);
    }

    /// Notes a sitemap that robots rules named. What is no URL of the web is passed over.
    pub fn sitemap(&mut self, url: &str) {
        if self.sitemaps.len() < SITEMAPS_MAX
            && let Ok(url) = CrawlUrl::parse(url)
        {
            self.sitemaps.insert(url);
        }
    }

    /// The sitemaps that robots rules named.
    pub fn sitemaps(&self) -> impl Iterator<Item = &CrawlUrl> {
        self.sitemaps.iter()
    }

    pub fn stats(&self) -> IndexStats {
        let sitemaps = self.sitemaps.len() as u64;
        IndexStats { pending: self.pending.len() as u64, sitemaps, ..self.stats }
    }

    /// Hosts with something pending.
    pub fn hosts_pending(&self) -> usize {
        self.pending.hosts()
    }

    /// Every document and its state.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &CrawlUrl, DocState)> {
        self.docs.iter().enumerate().map(|(index, doc)| (index as u32 + 1, &doc.url, doc.state))
    }

    fn doc_mut(&mut self, doc_id: u32) -> Option<&mut Doc> {
        self.docs.get_mut((doc_id as usize).checked_sub(1)?)
    }
}

fn candidate_of(docs: &[Doc], doc_id: u32) -> Candidate {
    let Doc { url, origin, .. } = &docs[doc_id as usize - 1];
    let via = (origin.via as usize).checked_sub(1).and_then(|via| docs.get(via));
    Candidate {
        doc_id,
        url: url.clone(),
        kind: DocKind::Content,
        held: None,
        depth: origin.depth,
        hops: origin.hops,
        seed_chain: origin.seed_chain,
        head_only: origin.head_only,
        via: via.map(|via| via.url.as_str().into()),
        chain: chain_of(docs, doc_id),
    }
}

/// The URLs that were redirected to a document, the first one first; as many as it has hops.
fn chain_of(docs: &[Doc], doc_id: u32) -> Option<Box<Chain>> {
    let mut origin = docs[doc_id as usize - 1].origin;
    let mut chain = Vec::with_capacity(usize::from(origin.hops));
    for _ in 0..origin.hops {
        let before = &docs[(origin.via as usize).checked_sub(1)?];
        chain.push(before.url.fingerprint());
        origin = before.origin;
    }
    chain.reverse();
    (!chain.is_empty()).then(|| Box::new(Chain(chain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_redirects_is_known_to_its_last_link() {
        let mut index = DocIndex::default();
        let first = index.discover("http://a/1", Origin::SEED).unwrap();
        let second = index.discover("http://b/2", Origin { via: first, hops: 1, ..Origin::SEED }).unwrap();
        index.discover("http://c/3", Origin { via: second, hops: 2, ..Origin::SEED });
        let found = index.candidates(9, &RejectList::default());
        let third = found.iter().find(|candidate| candidate.hops == 2).unwrap();
        let url = |text: &str| CrawlUrl::parse(text).unwrap();
        assert!(["http://a/1", "http://b/2", "http://c/3"].iter().all(|text| third.is_loop(&url(text))));
        assert!(!third.is_loop(&url("http://a/2")));
        assert_eq!(found.iter().find(|candidate| candidate.hops == 0).unwrap().chain, None);
    }

    #[test]
    fn a_url_is_known_once_and_answered_once() {
        let mut index = DocIndex::default();
        let id = index.discover("http://a/", Origin::SEED).unwrap();
        assert_eq!(index.discover("http://a/", Origin { depth: 3, ..Origin::SEED }), None);
        let found = index.candidates(9, &RejectList::default());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].doc_id, found[0].depth), (id, 0));
        assert!(index.candidates(9, &RejectList::default()).is_empty(), "handed out once");
        assert!(index.record(id, ResultCode::Ok));
        assert!(!index.record(id, ResultCode::Reset), "the first answer stands");
        assert_eq!(index.stats(), IndexStats { known: 1, done: 1, ..IndexStats::default() });
    }

    #[test]
    fn hosts_take_turns_and_rejected_ones_wait() {
        let mut index = DocIndex::default();
        for host in ["a", "b", "c"] {
            for page in 0..20 {
                index.discover(&format!("http://{host}/{page}"), Origin::SEED);
            }
        }
        let mut reject = RejectList::default();
        reject.insert(fingerprint(b"http://b"));
        let found = index.candidates(24, &reject);
        let of = |host: &str| found.iter().filter(|c| c.url.host() == host).count();
        assert_eq!((of("a"), of("b"), of("c")), (16, 0, 8), "eight a turn");
        assert_eq!(found.iter().find(|c| c.url.host() == "a").unwrap().url.as_str(), "http://a/0");
        reject.remove(&fingerprint(b"http://b"));
        assert_eq!(index.candidates(100, &reject).len(), 36);
    }

    #[test]
    fn what_comes_back_is_next() {
        let mut index = DocIndex::default();
        for page in 0..3 {
            index.discover(&format!("http://a/{page}"), Origin::SEED);
        }
        let first = index.candidates(1, &RejectList::default()).remove(0);
        index.put_back(first.doc_id);
        assert_eq!(index.candidates(1, &RejectList::default()), [first]);
    }
}
