use super::ledger::Origin;
use super::unresolved::Unresolved;
use crate::storage::seen::{Answer, Seen};
use rapidhash::fast::RapidHashSet;
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Which URLs are known: the seen-set, and what is on its way into it.
pub(super) struct KnownUrls {
    /// Of the fingerprints.
    seed: u64,
    seen: Seen,
    unresolved: Unresolved,
    /// New URLs that the seen-set is to be told of: what a full disk kept from it.
    untold: Vec<(u64, u32)>,
    /// Fingerprints of the URLs that the ledger says are in scope: as many as seeds led elsewhere.
    scoped: RapidHashSet<u64>,
}

/// URLs by their fingerprints, and what is known of each. Kept for its memory.
#[derive(Default)]
pub(super) struct Asked {
    pub fingerprints: Vec<u64>,
    pub answers: Vec<Answer>,
}

/// An entry of a set, with the byte that it has beside it.
const PER_FINGERPRINT: usize = size_of::<u64>() + 1;

impl KnownUrls {
    pub fn new(seed: u64, seen: Seen, memory_bytes: usize) -> KnownUrls {
        KnownUrls {
            seed,
            seen,
            unresolved: Unresolved::new(memory_bytes),
            untold: Vec::new(),
            scoped: RapidHashSet::default(),
        }
    }

    pub fn fingerprint(&self, url: &str) -> u64 {
        xxh3_64_with_seed(url.as_bytes(), self.seed)
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    pub fn seen_mut(&mut self) -> &mut Seen {
        &mut self.seen
    }

    pub fn unresolved(&self) -> &Unresolved {
        &self.unresolved
    }

    /// Asks memory about many URLs at once, in place of what was asked before.
    pub fn ask<'a>(&self, urls: impl Iterator<Item = &'a str>, asked: &mut Asked) {
        asked.fingerprints.clear();
        asked.fingerprints.extend(urls.map(|url| self.fingerprint(url)));
        self.seen.ask(&asked.fingerprints, &mut asked.answers);
    }

    /// Whether memory knows of a URL.
    pub fn holds(&self, fingerprint: u64) -> bool {
        self.seen.holds(fingerprint) || self.untold.iter().any(|&(untold, _)| untold == fingerprint)
    }

    /// The document of a URL. Reads the disk, unless memory alone can tell that the URL is new, as it can of most of a
    /// long list.
    pub fn find(&mut self, fingerprint: u64) -> io::Result<Option<u32>> {
        let mut answers = Vec::with_capacity(1);
        self.seen.ask(&[fingerprint], &mut answers);
        if answers[0] == Answer::New {
            return Ok(None);
        }
        self.seen.order();
        self.seen.find(fingerprint)
    }

    /// Takes in a URL that is new, after those that are untold.
    pub fn insert(&mut self, fingerprint: u64, doc_id: u32) -> io::Result<()> {
        let waits = self.has_untold();
        self.untold.push((fingerprint, doc_id));
        if waits { Ok(()) } else { self.tell() }
    }

    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Tells the seen-set of what is untold, in order. What a full disk keeps from it is told later.
    pub fn tell(&mut self) -> io::Result<()> {
        let mut told = 0;
        let inserted = self.untold.iter().try_for_each(|&(fingerprint, doc_id)| {
            self.seen.insert(fingerprint, doc_id)?;
            told += 1;
            Ok(())
        });
        self.untold.drain(..told);
        inserted
    }

    /// Keeps a URL of which only the disk can tell whether it is known.
    pub fn park(&mut self, fingerprint: u64, url: &str, origin: Origin) {
        self.unresolved.park(fingerprint, url, origin);
    }

    /// Asks the disk about the URLs that are parked, and returns them: [`KnownUrls::resolved`] gives their memory back.
    /// If the disk refuses, they stay parked.
    pub fn resolve(&mut self) -> io::Result<Unresolved> {
        self.seen.resolve(self.unresolved.queries())?;
        Ok(std::mem::take(&mut self.unresolved))
    }

    pub fn resolved(&mut self, resolved: Unresolved) {
        self.unresolved = resolved.emptied();
    }

    /// Notes that a URL is in scope. True the first time.
    pub fn put_in_scope(&mut self, url: &str) -> bool {
        self.scoped.insert(self.fingerprint(url))
    }

    pub fn is_in_scope(&self, url: &str) -> bool {
        self.scoped.contains(&self.fingerprint(url))
    }

    /// Memory that cannot go to disk.
    pub fn table_bytes(&self) -> usize {
        self.scoped.capacity() * PER_FINGERPRINT
    }
}
