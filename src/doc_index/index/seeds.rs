//! URLs that a user typed, and what is wanted of them.

use super::super::document_info::DocumentInfo;
use super::super::documents::{DocState, Row};
use super::super::ledger::{Entry, Origin};
use super::{DocIndex, Imported};
use crate::proto::job::Provenance;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::io;

/// A URL that was asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub doc_id: u32,
    pub is_new: bool,
    /// What was had of it before, and when, in seconds since 1970.
    pub had: Option<(ResultCode, u32)>,
}

impl DocIndex {
    /// A URL that a user typed. One that is known is asked for again if its head is wanted, or if only that was had.
    /// Reads the disk: a seed is never parked, as one that turns out to be known would forget the wish.
    pub fn seed(&mut self, url: &CrawlUrl, head_only: bool, now_s: u32) {
        let provenance = Provenance { head_only, ..Provenance::SEED };
        let seeded = self.try_seed(url, Origin::new(0, provenance), now_s);
        self.trouble.or_default(seeded);
    }

    /// The same, and what became of it.
    pub fn add_seed(&mut self, url: &CrawlUrl, head_only: bool, now_s: u32) -> Imported {
        let (before, pending) = (self.ledger.next_doc(), self.frontier.len());
        self.seed(url, head_only, now_s);
        match (self.ledger.next_doc() > before, self.frontier.len() > pending) {
            (true, _) => Imported::New,
            (false, true) => Imported::Due,
            (false, false) if before >= Origin::DOCS_END => Imported::Refused,
            (false, false) => Imported::Known,
        }
    }

    pub(super) fn try_seed(&mut self, url: &CrawlUrl, origin: Origin, now_s: u32) -> io::Result<()> {
        let fingerprint = self.known.fingerprint(url.as_str());
        let Some(doc_id) = self.known.find(fingerprint)? else {
            self.admit_one(url.as_str(), fingerprint, origin, now_s);
            return Ok(());
        };
        // Two URLs of one fingerprint: the first stands for both.
        let found = self.document(doc_id)?.filter(|found| *found.discovered.url == *url.as_str());
        let Some(found) = found.filter(|found| !self.books.is_open(found.doc_id)) else {
            return Ok(());
        };
        if !found.discovered.origin.provenance.seed_chain {
            // It was found as a link; the next process is to know that it was typed.
            match origin.is_of_peer() {
                true => drop(self.adopt_scope(url, now_s)),
                false => self.add_to_scope(url, now_s),
            }
        }
        // What another node is to fetch, it hears of by what is in scope.
        if !self.shares.is_foreign(url.as_str()) {
            self.wish(url, &found, origin.provenance.head_only);
        }
        Ok(())
    }

    /// Makes a URL known that is asked for by name, on whatever grounds: a feed, or a story that a feed tells of. One that
    /// was left out or not to be had is pending again; one that is pending comes as soon as its origin says. `None` if
    /// there is no number left, or the disk refused it.
    pub fn name(&mut self, url: &CrawlUrl, origin: Origin, now_s: u32) -> Option<Named> {
        let named = self.try_name(url, origin, now_s);
        self.trouble.or_default(named)
    }

    fn try_name(&mut self, url: &CrawlUrl, origin: Origin, now_s: u32) -> io::Result<Option<Named>> {
        let fingerprint = self.known.fingerprint(url.as_str());
        let Some(doc_id) = self.known.find(fingerprint)? else {
            let doc_id = self.ledger.next_doc();
            self.admit_one(url.as_str(), fingerprint, origin, now_s);
            let is_new = self.ledger.next_doc() > doc_id;
            return Ok(is_new.then_some(Named { doc_id, is_new, had: None }));
        };
        // Two URLs of one fingerprint: the first stands for both.
        let found = self.document(doc_id)?.filter(|found| *found.discovered.url == *url.as_str());
        let Some(found) = found else { return Ok(None) };
        let (before, is_pending) = (found.row.unwrap_or_default(), self.books.is_pending(doc_id));
        let had = before.result.filter(|_| before.state == DocState::Success);
        let named = Named { doc_id, is_new: false, had: had.map(|result| (result, before.fetched_s)) };
        if self.books.is_open(doc_id) || self.shares.is_foreign(url.as_str()) {
            return Ok(Some(named));
        }
        let told = before.raise(found.discovered.origin);
        let moves_up = is_pending && origin.priority > told.priority;
        let is_back = !is_pending && matches!(before.state, DocState::Excluded | DocState::Error);
        if moves_up || is_back {
            let mut row = before;
            row.priority = Some(origin.priority.max(told.priority));
            if let Some(host) =
                self.frontier.push_url(url.as_str(), doc_id, row.raise(found.discovered.origin))
            {
                if is_pending {
                    self.frontier.pass_over(host);
                } else {
                    self.uncount(host, &before);
                    if before.state == DocState::Excluded {
                        self.books.uncount_excluded();
                    }
                    self.books.make_pending(doc_id);
                    (row.state, row.due_s, row.retries) = (DocState::Pending, 0, 0);
                }
            }
            self.documents.put(doc_id, row);
        }
        Ok(Some(named))
    }

    /// Notes what is wanted of a document that is known, and queues it if that is more than was had. The wish is kept
    /// with its row, where it outlasts this process.
    fn wish(&mut self, url: &CrawlUrl, found: &DocumentInfo, head_only: bool) {
        let DocumentInfo { doc_id, discovered, note, .. } = found;
        let (doc_id, before) = (*doc_id, found.row.unwrap_or_default());
        let wished = before.raise(discovered.origin).provenance.head_only;
        let was_pending = self.books.is_pending(doc_id);
        let lacks_document = note.head_only || (wished && note.held.is_none());
        // What the rules of this run left out may be in scope by what was typed; if not, it is left out again.
        let is_excluded = !was_pending && before.state == DocState::Excluded;
        let is_wanted =
            if was_pending { head_only != wished } else { head_only || lacks_document || is_excluded };
        let mut row = Row { head_only: Some(head_only), ..before };
        if is_wanted && let Some(host) = self.frontier.push_url(url.as_str(), doc_id, row.raise(Origin::SEED))
        {
            if was_pending {
                // It is queued already, and is passed over there.
                self.frontier.pass_over(host);
            } else {
                self.uncount(host, &before);
                if is_excluded {
                    self.books.uncount_excluded();
                }
                self.books.make_pending(doc_id);
                // When it was due is of no meaning any more.
                (row.state, row.due_s) = (DocState::Pending, 0);
            }
        }
        if is_wanted || head_only != wished {
            self.documents.put(doc_id, row);
        }
    }

    /// Whether a URL that was found as a link was typed as well, or is where a seed led.
    pub fn was_typed(&self, url: &str) -> bool {
        self.known.is_in_scope(url)
    }

    /// Where a seed's redirects ended, so that the next process knows. Told once, however often it is fetched.
    pub fn add_to_scope(&mut self, url: &CrawlUrl, now_s: u32) {
        if self.known.put_in_scope(url.as_str()) {
            self.ledger.push(&Entry::Scope { url: url.as_str() }, now_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::tests::{Folder, NOW_S, candidates, done, link};
    use crate::doc_index::{IndexRules, Note, Outcome, RejectList};
    use crate::proto::record::ResultCode;

    fn url(text: &str) -> CrawlUrl {
        CrawlUrl::parse(text).unwrap()
    }

    /// A page that was found as a link and had whole.
    fn had(index: &mut DocIndex) -> u32 {
        link("http://a/p", index, Origin::link(0, 1));
        let doc_id = candidates(index, 1)[0].doc_id;
        assert!(done(index, doc_id));
        doc_id
    }

    /// The one candidate, which is asked for its head or not.
    #[track_caller]
    fn is_asked(index: &mut DocIndex, at_s: u32, head_only: bool) -> u32 {
        let found = index.candidates(9, &RejectList::default(), at_s);
        assert_eq!(found.iter().map(|found| found.provenance.head_only).collect::<Vec<_>>(), [head_only]);
        found[0].doc_id
    }

    fn answered(index: &mut DocIndex, doc_id: u32, result: ResultCode, head_only: bool) {
        let note = Some(Box::new(Note { head_only, ..Note::default() }));
        assert!(index.record(&Outcome { note, ..Outcome::new(doc_id, result, NOW_S) }, None));
    }

    #[test]
    fn a_wish_outlasts_coming_back_failing_and_the_process() {
        let folder = Folder::new("wish");
        let (mut index, _) = folder.open(IndexRules::default());
        let doc_id = had(&mut index);
        for head_only in [true, false] {
            index.seed(&url("http://a/p"), head_only, NOW_S);
            is_asked(&mut index, NOW_S, head_only);
            index.put_back(doc_id);
            is_asked(&mut index, NOW_S, head_only);
            assert_eq!(
                index.candidate(doc_id).unwrap().provenance.head_only,
                head_only,
                "looked at once more"
            );
            // Tried again when it is due.
            answered(&mut index, doc_id, ResultCode::ReadTimeout, head_only);
            is_asked(&mut index, NOW_S + 3_600, head_only);
            index.flush(true).unwrap();
            drop(index);
            (index, _) = folder.open(IndexRules::default());
            let found = index.candidates(9, &RejectList::default(), NOW_S + 3_600);
            assert_eq!(found.iter().map(|found| found.provenance.head_only).collect::<Vec<_>>(), [head_only]);
            answered(&mut index, doc_id, ResultCode::Ok, head_only);
        }
        // It is all there: typed once more, nothing is asked.
        index.seed(&url("http://a/p"), false, NOW_S);
        assert!(candidates(&mut index, 9).is_empty());
        index.flush(true).unwrap();
        drop(index);
        let (mut index, _) = folder.open(IndexRules { again: true, ..IndexRules::default() });
        is_asked(&mut index, NOW_S, false);
    }

    #[test]
    fn a_wish_for_what_waits_in_line_is_kept_without_an_answer() {
        let folder = Folder::new("wish-pending");
        let (mut index, _) = folder.open(IndexRules::default());
        link("http://a/p", &mut index, Origin::link(0, 1));
        index.seed(&url("http://a/p"), true, NOW_S);
        index.seed(&url("http://b/q"), true, NOW_S);
        index.seed(&url("http://b/q"), false, NOW_S);
        assert_eq!(index.stats().pending, 2);
        index.flush(true).unwrap();
        drop(index);
        let (mut index, _) = folder.open(IndexRules::default());
        let mut found = candidates(&mut index, 9);
        found.sort_unstable_by_key(|found| found.doc_id);
        assert_eq!(found.iter().map(|found| found.provenance.head_only).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_place_that_was_left_behind_does_not_forget_the_wish() {
        for head_only in [true, false] {
            let mut index = DocIndex::default();
            let other = Provenance { head_only: !head_only, ..Provenance::link(1) };
            index.discover(["http://a/p"], Origin::new(0, other), NOW_S);
            index.seed(&url("http://a/p"), head_only, NOW_S);
            let doc_id = is_asked(&mut index, NOW_S, head_only);
            answered(&mut index, doc_id, ResultCode::ReadTimeout, head_only);
            is_asked(&mut index, NOW_S + 3_600, head_only);
        }
    }

    #[test]
    fn wishes_are_heard_in_the_order_they_were_typed() {
        let mut index = DocIndex::default();
        let urls: Vec<String> = (0..100).map(|n| format!("http://a/{n}")).collect();
        index.discover(urls.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
        for page in &urls[50..] {
            index.seed(&url(page), true, NOW_S);
        }
        let found: Vec<String> =
            candidates(&mut index, 50).iter().map(|found| found.url.as_str().to_string()).collect();
        assert_eq!(found, urls[50..]);
    }

    #[test]
    fn a_wish_for_what_only_the_disk_knows_is_heard() {
        let folder = Folder::new("wish-parked");
        let rules = IndexRules { memory_bytes: 2_000, ..IndexRules::default() };
        let (mut index, _) = folder.open(rules.clone());
        let urls: Vec<String> = (0..9_000).map(|n| format!("http://a/{n}")).collect();
        index.discover(urls.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
        for found in candidates(&mut index, 9_000) {
            assert!(done(&mut index, found.doc_id));
        }
        index.close().unwrap();
        assert!(!index.bytes().seen_is_complete, "the test is of nothing if memory knows all");
        for page in &urls[..100] {
            index.seed(&url(page), true, NOW_S);
        }
        let found = candidates(&mut index, 999);
        assert_eq!((found.len(), found.iter().all(|found| found.provenance.head_only)), (100, true));
        assert_eq!(index.stats().known, 9_000, "none is taken for another");
    }

    #[test]
    fn where_a_seed_leads_is_told_once_over_all_processes() {
        let folder = Folder::new("scoped");
        let (mut index, _) = folder.open(IndexRules::default());
        let before = index.ledger.told();
        index.add_to_scope(&url("http://a/there"), NOW_S);
        let once = index.ledger.told();
        index.add_to_scope(&url("http://a/there"), NOW_S);
        assert!(before < once && once == index.ledger.told());
        index.flush(true).unwrap();
        drop(index);
        let (mut index, seeds) = folder.open_with_seeds();
        assert_eq!(seeds, [url("http://a/there")]);
        let before = index.ledger.told();
        index.add_to_scope(&url("http://a/there"), NOW_S);
        assert_eq!(index.ledger.told(), before);
    }
}
