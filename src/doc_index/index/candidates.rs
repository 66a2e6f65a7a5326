//! Documents are handed out.

use super::super::documents::{DocState, Documents, Row};
use super::super::frontier::{HostCounts, split};
use super::super::ledger::{Ledger, Origin};
use super::super::rules::Segments;
use super::{DocIndex, RejectList};
use crate::base::fingerprint;
use crate::proto::job::{Candidate, Chain, DocKind, Held};
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashSet;
use std::io;

/// Documents that become pending in one go because they are due.
const DUE_PER_ASK: usize = 16_384;

impl DocIndex {
    /// Up to `want` documents to fetch, of hosts that are not in the reject list: the most urgent first, then the
    /// nearest to a seed, a few of each host in turn.
    pub fn candidates(&mut self, want: usize, reject: &RejectList, now_s: u32) -> Vec<Candidate> {
        self.candidates_but(want, |origin| reject.contains(&fingerprint(origin.as_bytes())), now_s)
    }

    /// The same, but for hosts that `rejected` names by their origin.
    pub fn candidates_but(
        &mut self,
        want: usize,
        rejected: impl Fn(&str) -> bool,
        now_s: u32,
    ) -> Vec<Candidate> {
        let woken = self.wake_due(now_s);
        self.trouble.or_default(woken);
        if self.frontier.len() < want as u64 && !self.known.unresolved().is_empty() {
            self.resolve(now_s);
        }
        let mut found = Vec::with_capacity(want.min(self.frontier.len() as usize));
        let (mut url, mut via) = (String::new(), LastVia::default());
        let DocIndex { frontier, books, trouble, ledger, documents, rules, .. } = self;
        let sources = Sources { ledger, documents, segments: &rules.segments };
        let taken = frontier.take(want, rejected, |host, origin, doc| {
            // It may have stood in a queue twice.
            if !books.is_pending(doc.doc_id) {
                return false;
            }
            books.take(doc.doc_id);
            url.clear();
            url.push_str(origin);
            url.push_str(doc.path);
            let Ok(parsed) = CrawlUrl::from_normal(&url) else { return false };
            if !doc.via.is_empty() && doc.origin.via != via.doc_id {
                url.truncate(if doc.via.starts_with('/') { origin.len() } else { 0 });
                url.push_str(doc.via);
                via = LastVia { doc_id: doc.origin.via, url: Some(url.as_str().into()) };
            }
            books.hand_out(doc.doc_id, host);
            match sources.candidate(doc.doc_id, doc.origin, parsed, &mut via) {
                Ok(candidate) => found.push(candidate),
                Err(error) => trouble.note(error),
            }
            true
        });
        trouble.or_default(taken);
        for candidate in &mut found {
            if let Some(host) = books.host_of(candidate.doc_id) {
                let counts = frontier.counts(host);
                counts.handed_out += 1;
                candidate.host_had |= counts.success > 0;
            }
        }
        found
    }

    /// The priority of a document and how often it was asked for, as far as anybody told.
    pub fn wanted(&mut self, doc_id: u32) -> (u8, u32) {
        let row = self.row(doc_id);
        let found = self.trouble.or_default(self.ledger.doc(doc_id));
        let origin = row.raise(found.map_or(Origin::SEED, |found| found.origin));
        (origin.priority, origin.hits)
    }

    /// Documents whose time has come are pending.
    fn wake_due(&mut self, now_s: u32) -> io::Result<()> {
        for _ in 0..DUE_PER_ASK {
            let Some((doc_id, due_s)) = self.due.take(now_s, self.frontier.spill_mut())? else { break };
            self.wake(doc_id, due_s)?;
        }
        Ok(())
    }

    fn wake(&mut self, doc_id: u32, due_s: u32) -> io::Result<()> {
        // It is queued, or handed out, for another reason.
        if self.books.is_pending(doc_id) || self.books.is_open(doc_id) {
            return Ok(());
        }
        let Some(row) = self.documents.get(doc_id)?.filter(|row| row.due_s == due_s) else { return Ok(()) };
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(()) };
        // When it is due is for its owner to know.
        if self.shares.is_foreign(&discovered.url) {
            return Ok(());
        }
        let origin = row.raise(discovered.origin);
        if let Some(host) = self.frontier.push_url(&discovered.url, doc_id, origin) {
            self.uncount(host, &row);
            if row.state == DocState::Excluded {
                self.books.uncount_excluded();
            }
            self.books.make_pending(doc_id);
        }
        Ok(())
    }

    /// Documents of these hosts that wait for another try are pending at once.
    pub fn wake_retries(&mut self, origins: &RapidHashSet<Box<str>>) {
        let waiting = |origin: &str| {
            let counts = self.frontier.counts_of(origin).unwrap_or_default();
            let HostCounts { known, pending, handed_out, success, errors, .. } = counts;
            u64::from(known)
                .saturating_sub([pending, handed_out, success, errors].map(u64::from).iter().sum())
        };
        // Those that rules left out are among them, but most often there are none.
        let max: u64 = origins.iter().map(|origin| waiting(origin)).sum();
        if max == 0 {
            return;
        }
        let DocIndex { due, frontier, books, documents, ledger, .. } = self;
        let found = due.take_out(max, frontier.spill_mut(), |doc_id, due_s| {
            if books.is_pending(doc_id) || books.is_open(doc_id) {
                return Ok(false);
            }
            let is_retry = |row: &Row| row.state == DocState::Pending && row.due_s == due_s;
            if !documents.get(doc_id)?.as_ref().is_some_and(is_retry) {
                return Ok(false);
            }
            let is_of = |url: &str| split(url).is_some_and(|(origin, _)| origins.contains(origin));
            Ok(ledger.doc(doc_id)?.is_some_and(|found| is_of(&found.url)))
        });
        let woken = found
            .and_then(|found| found.into_iter().try_for_each(|(doc_id, due_s)| self.wake(doc_id, due_s)));
        self.trouble.or_default(woken);
    }

    /// A document as it would be handed out, to be looked at once more.
    pub fn candidate(&mut self, doc_id: u32) -> Option<Candidate> {
        let DocIndex { ledger, documents, rules, .. } = self;
        let sources = Sources { ledger, documents, segments: &rules.segments };
        let read = ledger.doc(doc_id).and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let Ok(url) = CrawlUrl::from_normal(&found.url) else { return Ok(None) };
            sources.candidate(doc_id, found.origin, url, &mut LastVia::default()).map(Some)
        });
        self.trouble.or_default(read)
    }
}

/// Where it is looked up what a document is handed out with.
struct Sources<'a> {
    ledger: &'a Ledger,
    documents: &'a Documents,
    segments: &'a Segments,
}

/// The page that named the candidate before: most often it named this one, too.
#[derive(Default)]
struct LastVia {
    doc_id: u32,
    url: Option<Box<str>>,
}

impl Sources<'_> {
    fn candidate(
        &self,
        doc_id: u32,
        mut origin: Origin,
        url: CrawlUrl,
        via: &mut LastVia,
    ) -> io::Result<Candidate> {
        if origin.via != via.doc_id {
            let found = if origin.via == 0 { None } else { self.ledger.doc(origin.via)? };
            *via = LastVia { doc_id: origin.via, url: found.map(|found| found.url) };
        }
        let (mut held, mut host_had) = (None, false);
        if self.documents.has_row(doc_id)
            && let Some(row) = self.documents.get(doc_id)?
        {
            // It may have stood in its queue since before something else was wanted of it.
            origin = row.raise(origin);
            host_had = row.changed_s > 0;
            let note = self.documents.note(doc_id, &row)?;
            let whole = !note.head_only || origin.provenance.head_only;
            let is_of_this_run = row.after > self.ledger.run_since();
            // What a feed told of is kept elsewhere: a 304 needs nothing to stand on.
            let is_feed = origin.provenance.kind == DocKind::Feed;
            let is_there = |held: &Held| is_feed || is_of_this_run || self.segments.has_before(held.segment);
            held = note.held.filter(|held| whole && is_there(held)).map(Box::new);
        }
        let chain = self.chain_of(origin)?;
        Ok(Candidate {
            doc_id,
            url,
            provenance: origin.provenance,
            via: via.url.clone(),
            chain,
            held,
            host_had,
            poll: None,
        })
    }

    /// The URLs that were redirected to a document, the first one first; as many as it has hops.
    fn chain_of(&self, mut origin: Origin) -> io::Result<Option<Box<Chain>>> {
        let hops = origin.provenance.hops;
        let mut chain = Vec::with_capacity(usize::from(hops));
        for _ in 0..hops {
            let Some(before) = self.ledger.doc(origin.via)? else { return Ok(None) };
            chain.push(fingerprint(before.url.as_bytes()));
            origin = before.origin;
        }
        chain.reverse();
        Ok((!chain.is_empty()).then(|| Box::new(Chain(chain))))
    }
}
