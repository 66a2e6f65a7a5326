//! Documents are handed out.

use super::bits::Bits;
use super::documents::Documents;
use super::entry::Origin;
use super::frontier::split;
use super::index::{DocIndex, RejectList};
use super::ledger::Ledger;
use super::line::InLine;
use super::rules::Segments;
use crate::base::fingerprint;
use crate::proto::job::{Candidate, Chain};
use crate::proto::url::CrawlUrl;
use std::io;

/// Documents that become pending in one go because they are due.
const DUE_PER_ASK: usize = 16_384;

impl DocIndex {
    /// Up to `want` documents to fetch, of hosts that are not in the reject list: the most urgent first, then the nearest
    /// to a seed, a few of each host in turn.
    pub fn candidates(&mut self, want: usize, reject: &RejectList, now_s: u32) -> Vec<Candidate> {
        self.wake_due(now_s);
        if self.frontier.len() < want as u64 && !self.doubts.is_empty() {
            self.settle_doubts(now_s);
        }
        let mut found = Vec::with_capacity(want.min(self.frontier.len() as usize));
        let (mut url, mut via, mut trouble) = (String::new(), LastVia::default(), None);
        let (taken, open) = (&mut self.taken, &mut self.open);
        let papers = Papers {
            ledger: &self.ledger,
            documents: &self.documents,
            rowed: &self.rowed,
            segments: &self.rules.segments,
        };
        let took = self.frontier.take(
            want,
            |origin| reject.contains(&fingerprint(origin.as_bytes())),
            |host, origin, doc| {
                // It may have stood in a line twice.
                if taken.get(doc.doc_id) {
                    return false;
                }
                taken.set(doc.doc_id, true);
                url.clear();
                url.push_str(origin);
                url.push_str(doc.path);
                let Ok(parsed) = CrawlUrl::from_normal(&url) else { return false };
                if !doc.via.is_empty() && doc.origin.via != via.doc_id {
                    url.truncate(if doc.via.starts_with('/') { origin.len() } else { 0 });
                    url.push_str(doc.via);
                    via = LastVia { doc_id: doc.origin.via, url: Some(url.as_str().into()) };
                }
                open.insert(doc.doc_id, host);
                match papers.candidate(doc.doc_id, doc.origin, parsed, &mut via) {
                    Ok(candidate) => found.push(candidate),
                    Err(error) => trouble = Some(error),
                }
                true
            },
        );
        for candidate in &found {
            if let Some(&host) = self.open.get(&candidate.doc_id) {
                self.frontier.counts(host).fetching += 1;
            }
        }
        if let Some(error) = took.err().or(trouble) {
            self.trouble.get_or_insert(error);
        }
        found
    }

    /// Documents whose time has come are pending.
    fn wake_due(&mut self, now_s: u32) {
        for _ in 0..DUE_PER_ASK {
            let woken = match self.due.take(now_s, &mut self.frontier.keep.spill) {
                Ok(Some((doc_id, due_s))) => self.wake(doc_id, due_s),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = woken {
                self.trouble.get_or_insert(error);
                return;
            }
        }
    }

    fn wake(&mut self, doc_id: u32, due_s: u32) -> io::Result<()> {
        // It is in line, or with somebody, for another reason.
        if !self.taken.get(doc_id) || self.open.contains_key(&doc_id) {
            return Ok(());
        }
        let Some(row) = self.documents.get(doc_id)?.filter(|row| row.due_s == due_s) else { return Ok(()) };
        let Some(discovered) = self.ledger.doc(doc_id)? else { return Ok(()) };
        let Some((origin, path)) = split(&discovered.url) else { return Ok(()) };
        let host = self.frontier.host(origin);
        self.uncount(host, &row);
        self.taken.set(doc_id, false);
        self.frontier
            .push_back(host, &InLine { doc_id, origin: row.raise(discovered.origin), path, via: "" });
        Ok(())
    }

    /// A document as it would be handed out; for whoever has to look at it once more.
    pub fn candidate(&mut self, doc_id: u32) -> Option<Candidate> {
        let papers = Papers {
            ledger: &self.ledger,
            documents: &self.documents,
            rowed: &self.rowed,
            segments: &self.rules.segments,
        };
        let read = self.ledger.doc(doc_id).and_then(|found| {
            let Some(found) = found else { return Ok(None) };
            let Ok(url) = CrawlUrl::from_normal(&found.url) else { return Ok(None) };
            papers.candidate(doc_id, found.origin, url, &mut LastVia::default()).map(Some)
        });
        read.unwrap_or_else(|error| {
            self.trouble.get_or_insert(error);
            None
        })
    }
}

/// What has to be looked up for a document that is handed out.
struct Papers<'a> {
    ledger: &'a Ledger,
    documents: &'a Documents,
    rowed: &'a Bits,
    segments: &'a Segments,
}

/// The page that named the candidate before: most often it named this one, too.
#[derive(Default)]
struct LastVia {
    doc_id: u32,
    url: Option<Box<str>>,
}

impl Papers<'_> {
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
        let mut held = None;
        if self.rowed.get(doc_id)
            && let Some(row) = self.documents.get(doc_id)?
        {
            // It may have stood in its line since before somebody wished for something else.
            origin = row.raise(origin);
            let note = self.documents.note(doc_id, &row)?;
            let whole = !note.head_only || origin.head_only;
            held = note.held.filter(|held| whole && self.segments.has(held.segment)).map(Box::new);
        }
        Ok(Candidate {
            doc_id,
            url,
            kind: origin.kind,
            depth: origin.depth,
            hops: origin.hops,
            seed_chain: origin.seed_chain,
            head_only: origin.head_only,
            via: via.url.clone(),
            chain: self.chain_of(origin)?,
            held,
        })
    }

    /// The URLs that were redirected to a document, the first one first; as many as it has hops.
    fn chain_of(&self, mut origin: Origin) -> io::Result<Option<Box<Chain>>> {
        let mut chain = Vec::with_capacity(usize::from(origin.hops));
        for _ in 0..origin.hops {
            let Some(before) = self.ledger.doc(origin.via)? else { return Ok(None) };
            chain.push(fingerprint(before.url.as_bytes()));
            origin = before.origin;
        }
        chain.reverse();
        Ok((!chain.is_empty()).then(|| Box::new(Chain(chain))))
    }
}
