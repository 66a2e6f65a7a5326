//! What becomes of documents that were handed out.

use super::super::documents::{DocState, Note, Row};
use super::super::frontier::{QueuedDoc, split};
use super::super::outcome::Outcome;
use super::DocIndex;
use crate::doc_index::schedule::Schedule;
use crate::proto::record::ResultCode;

/// Stands for a time that does not come.
pub const NEVER_S: u32 = u32::MAX;

impl DocIndex {
    /// When what is answered for from now on is due again.
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.rules.schedule = schedule;
    }

    /// Takes the outcome of a document that was handed out. True the first time; a second answer changes nothing.
    pub fn record(&mut self, outcome: &Outcome, fixed_s: Option<u32>) -> bool {
        let doc_id = outcome.doc_id;
        let Some(host) = self.books.close(doc_id) else { return false };
        let before = self.row(doc_id);
        let mut row = before;
        self.rules.schedule.answered(&mut row, outcome, fixed_s);
        // What is stored is still true, and so is what was noted of it. A head does not stand for a document, either.
        let held_on = outcome.result == ResultCode::NotModified;
        let is_head = outcome.note.as_ref().is_some_and(|note| note.head_only);
        let is_kept = held_on || (is_head && self.holds_whole(doc_id, &before));
        if !is_kept || row.digest != before.digest {
            let kept = if is_kept { self.note(doc_id, &before) } else { Note::default() };
            let note = outcome.note.as_deref().filter(|_| !is_kept).unwrap_or(&kept);
            self.documents.put_note(doc_id, before.note_owner(doc_id), &mut row, note);
        }
        self.frontier.counts(host).handed_out -= 1;
        // A head has no links, nor has what failed: nothing of the ledger is needed for these. What has not changed was
        // read before, and is told of apart if it is read once more.
        let is_read = !held_on && (!is_head || outcome.result == ResultCode::Redirect);
        if row.state == DocState::Success && is_read {
            row.after = self.ledger.told();
        }
        self.put_row(doc_id, host, row);
        true
    }

    /// The same for a document that is polled: `due_s` is when it is asked for again. What its server can be asked by
    /// outlasts an answer that failed, and what a 304 says of it counts.
    pub fn record_poll(&mut self, outcome: &Outcome, due_s: u32) -> bool {
        let doc_id = outcome.doc_id;
        let Some(host) = self.books.close(doc_id) else { return false };
        let before = self.row(doc_id);
        let mut row = before;
        Schedule::polled(&mut row, outcome, due_s);
        let mut note = outcome.note.as_deref().cloned().unwrap_or_default();
        if note.held.is_none() && outcome.result != ResultCode::Ok {
            note.held = self.note(doc_id, &before).held;
        }
        self.documents.put_note(doc_id, before.note_owner(doc_id), &mut row, &note);
        self.frontier.counts(host).handed_out -= 1;
        if row.state == DocState::Success {
            row.after = self.ledger.told();
        }
        self.put_row(doc_id, host, row);
        true
    }

    /// A document that was handed out is not to be asked for before then.
    pub fn defer(&mut self, doc_id: u32, due_s: u32) {
        let Some(host) = self.books.close(doc_id) else { return };
        self.frontier.counts(host).handed_out -= 1;
        let row = Row { due_s, ..self.row(doc_id) };
        self.put_row(doc_id, host, row);
    }

    /// A document that is neither pending nor handed out is due at this time; [`NEVER_S`] stands for never. One that is
    /// pending stays so.
    pub fn set_due(&mut self, doc_id: u32, due_s: u32) {
        if self.books.is_pending(doc_id) || self.books.is_open(doc_id) {
            return;
        }
        let row = self.row(doc_id);
        if row.state == DocState::Excluded {
            return;
        }
        if row.due_s != due_s {
            self.documents.put(doc_id, Row { due_s, ..row });
        }
        // A crawl that does not look again has let go of it, whatever the row says.
        if due_s != NEVER_S {
            self.due.put(doc_id, due_s);
        }
    }

    /// When a document was last answered for, seconds since 1970; 0 if it never was, or only led elsewhere then.
    pub fn answered_s(&mut self, doc_id: u32) -> u32 {
        let row = self.row(doc_id);
        if row.result == Some(ResultCode::Redirect) { 0 } else { row.fetched_s }
    }

    /// The links of a document that has not changed were read by the rules of today, and told.
    pub fn was_read_again(&mut self, doc_id: u32) {
        let row = self.row(doc_id);
        self.documents.put(doc_id, Row { after: self.ledger.told(), ..row });
    }

    /// Whether the links of a document were last read by other rules than those of today, if at all.
    pub fn was_read_by_other_rules(&mut self, doc_id: u32) -> bool {
        self.row(doc_id).after <= self.ledger.rules_since()
    }

    /// A sitemap says when a page changed: if that is after we had it, and pages are looked at again, it is due.
    pub fn changed(&mut self, url: &str, lastmod_s: u32, now_s: u32) {
        if lastmod_s == 0 || self.rules.schedule.recrawl.is_none() {
            return;
        }
        let found = self.look(url);
        let found = self.trouble.or_default(found);
        let Some(found) = found.filter(|found| !self.books.is_pending(found.doc_id)) else { return };
        let Some(row) = found.row.filter(|row| row.state == DocState::Success) else { return };
        // One that a wrong clock dates after now may be of any time.
        let is_newer = row.fetched_s < lastmod_s || row.fetched_s > now_s;
        if is_newer && lastmod_s <= now_s && row.due_s > now_s {
            self.documents.put(found.doc_id, Row { due_s: now_s, ..row });
            self.due.put(found.doc_id, now_s);
        }
    }

    fn note(&mut self, doc_id: u32, row: &Row) -> Note {
        self.trouble.or_default(self.documents.note(doc_id, row))
    }

    fn holds_whole(&mut self, doc_id: u32, row: &Row) -> bool {
        let note = self.note(doc_id, row);
        note.held.is_some() && !note.head_only
    }

    /// The rules of this crawl keep out what was handed out.
    pub fn exclude(&mut self, doc_id: u32, reason: &str, now_s: u32) {
        self.exclude_until(doc_id, reason, now_s, 0);
    }

    /// The same until then, when it is pending again: what a name leads to may change. 0 stands for never.
    pub fn exclude_until(&mut self, doc_id: u32, reason: &str, now_s: u32, due_s: u32) {
        let Some(host) = self.books.close(doc_id) else { return };
        let mut row = Row { state: DocState::Excluded, due_s, ..self.row(doc_id) };
        row.fetched_s = if row.fetched_s == 0 { now_s } else { row.fetched_s };
        let mut note = self.note(doc_id, &row);
        note.reason = Some(reason.into());
        self.documents.put_note(doc_id, row.note_owner(doc_id), &mut row, &note);
        self.frontier.counts(host).handed_out -= 1;
        self.put_row(doc_id, host, row);
    }

    /// A server says that a document has not changed, and what it would have changed from is not there: the document is the
    /// next of its host, and is asked for whole.
    pub fn ask_whole(&mut self, doc_id: u32) {
        if !self.books.is_open(doc_id) {
            return;
        }
        let mut row = Row { state: DocState::Pending, due_s: 0, ..self.row(doc_id) };
        let note = Note { held: None, ..self.note(doc_id, &row) };
        self.documents.put_note(doc_id, row.note_owner(doc_id), &mut row, &note);
        self.documents.put(doc_id, row);
        self.put_back(doc_id);
    }

    /// Whether its server can be asked if a document has changed, as far as it is noted.
    pub fn is_noted_as_held(&mut self, doc_id: u32) -> bool {
        let row = self.row(doc_id);
        self.note(doc_id, &row).held.is_some()
    }

    /// The number of the first segment of this process.
    pub fn first_segment(&self) -> u64 {
        self.rules.segments.first_new
    }

    /// A document that was handed out comes back unfetched: it is the next of its host.
    pub fn put_back(&mut self, doc_id: u32) {
        let Some(host) = self.books.close(doc_id) else { return };
        self.frontier.counts(host).handed_out -= 1;
        self.books.make_pending(doc_id);
        let row = self.row(doc_id);
        let found = self.trouble.or_default(self.ledger.doc(doc_id));
        if let Some(found) = found
            && let Some((_, path)) = split(&found.url)
        {
            let origin = row.raise(found.origin);
            self.frontier.push_front(host, &QueuedDoc { doc_id, origin, path, via: "" });
        }
    }

    /// Whether a document was handed out and not answered for.
    pub fn is_open(&self, doc_id: u32) -> bool {
        self.books.is_open(doc_id)
    }

    /// Whether the index was told of an answer of this time or of a later one. Within one second answers cannot be told
    /// apart; and what a wrong clock dates after now says nothing of what was answered before.
    pub fn is_told(&mut self, doc_id: u32, at_s: u32, now_s: u32) -> bool {
        let told_s = self.row(doc_id).fetched_s;
        told_s >= at_s && (told_s <= now_s || at_s > now_s)
    }

    /// Hands out one document whose answer a process that was killed has stored already: it is to be recorded. Wherever
    /// it stands, it stands there no more. False if it is handed out, or not known.
    pub fn take_up(&mut self, doc_id: u32) -> bool {
        if self.books.is_open(doc_id) {
            return false;
        }
        let found = self.trouble.or_default(self.ledger.doc(doc_id));
        let Some(found) = found else { return false };
        let Some((origin, _)) = split(&found.url) else { return false };
        let host = self.frontier.host(origin);
        if self.books.is_pending(doc_id) {
            self.frontier.pass_over(host);
        } else {
            let row = self.row(doc_id);
            let is_done = matches!(row.state, DocState::Success | DocState::Error);
            // It was fetched here before it was another node's.
            if self.shares.is_foreign(&found.url) {
                if !is_done {
                    self.frontier.counts(host).known += 1;
                    self.books.counts.foreign -= 1;
                }
                self.books.open_elsewhere(doc_id, row.state);
            }
            self.uncount(host, &row);
        }
        self.books.hand_out(doc_id, host);
        self.frontier.counts(host).handed_out += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::tests::{Folder, NOW_S};
    use crate::doc_index::{IndexRules, Origin, RejectList};
    use crate::proto::http1::Validators;
    use crate::proto::job::{Candidate, DocKind, Held, Provenance};
    use crate::proto::url::CrawlUrl;

    fn feed() -> Origin {
        Origin::new(0, Provenance { kind: DocKind::Feed, ..Provenance::SEED })
    }

    fn at(index: &mut DocIndex, now_s: u32) -> Vec<Candidate> {
        index.candidates(9, &RejectList::default(), now_s)
    }

    fn note(etag: &[u8]) -> Option<Box<Note>> {
        let validators = Validators { etag: etag.into(), last_modified: Box::default() };
        Some(Box::new(Note { held: Some(Held { validators, segment: 1 << 40 }), ..Note::default() }))
    }

    fn etag(candidate: &Candidate) -> Option<&[u8]> {
        candidate.held.as_ref().map(|held| &*held.validators.etag)
    }

    #[test]
    fn a_poll_is_due_when_it_is_told_and_its_validators_outlast_failures_and_the_process() {
        let folder = Folder::new("polls");
        let (mut index, _) = folder.open(IndexRules::default());
        let url = CrawlUrl::parse("http://a/feed").unwrap();
        let named = index.name(&url, feed(), NOW_S).unwrap();
        assert!(named.is_new && named.had.is_none());
        let doc_id = named.doc_id;
        assert_eq!(at(&mut index, NOW_S)[0].provenance.kind, DocKind::Feed);
        let answer =
            |result, status, at_s, note| Outcome { status, note, ..Outcome::new(doc_id, result, at_s) };
        let ok = answer(ResultCode::Ok, 200, NOW_S, note(b"\"1\""));
        assert!(index.record_poll(&ok, NOW_S + 300) && !index.record_poll(&ok, NOW_S + 9));
        // Failed, with no word on when: no retries of its own.
        for (result, status, due_s) in [
            (ResultCode::HttpError, 503, 600),
            (ResultCode::ReadTimeout, 0, 900),
            (ResultCode::HttpError, 404, 1_200),
        ] {
            let woken_s = due_s - 300;
            assert!(at(&mut index, NOW_S + woken_s - 1).is_empty(), "not before");
            let found = at(&mut index, NOW_S + woken_s);
            assert_eq!(etag(&found[0]), Some(&b"\"1\""[..]));
            assert!(index.record_poll(&answer(result, status, NOW_S + woken_s, None), NOW_S + due_s));
        }
        index.flush(true).unwrap();
        drop(index);
        // A crawl that does not look again has let go of it: the role says when.
        let (mut index, _) = folder.open(IndexRules::default());
        assert!(at(&mut index, NOW_S + 5_000).is_empty());
        index.set_due(doc_id, NOW_S + 6_000);
        assert!(at(&mut index, NOW_S + 5_999).is_empty());
        let found = at(&mut index, NOW_S + 6_000);
        assert_eq!(etag(&found[0]), Some(&b"\"1\""[..]), "wherever its segment is");
        assert!(index.record_poll(
            &answer(ResultCode::NotModified, 304, NOW_S + 6_000, note(b"\"2\"")),
            NOW_S + 7_000
        ));
        let found = at(&mut index, NOW_S + 7_000);
        assert_eq!(etag(&found[0]), Some(&b"\"2\""[..]), "as the 304 said");
        // Handed out too soon, it waits; and what is never due never comes.
        index.defer(doc_id, NOW_S + 8_000);
        assert!(at(&mut index, NOW_S + 7_999).is_empty());
        assert_eq!(at(&mut index, NOW_S + 8_000).len(), 1);
        index.defer(doc_id, NEVER_S);
        assert!(at(&mut index, NEVER_S - 1).is_empty());
        assert_eq!((index.stats().waiting, index.stats().next_due_s), (0, None), "nobody waits for it");
        index.set_due(doc_id, NOW_S + 9_000);
        assert_eq!(at(&mut index, NOW_S + 9_000).len(), 1);
        assert_eq!((index.stats().known, index.stats().handed_out), (1, 1));
    }

    #[test]
    fn what_is_named_is_known_by_its_number_and_comes_back_if_it_was_not_to_be_had() {
        let mut index = DocIndex::default();
        let url = |text: &str| CrawlUrl::parse(text).unwrap();
        let story = Origin { priority: 6, ..Origin::new(1, Provenance::link(0)) };
        assert!(story.provenance.is_story() && !Origin::link(1, 1).provenance.is_story());
        index.discover(["http://a/1", "http://a/2"], Origin::link(0, 1), NOW_S);
        let second = index.name(&url("http://a/2"), story, NOW_S).unwrap();
        assert_eq!((second.doc_id, second.is_new), (2, false));
        let new = index.name(&url("http://a/3"), story, NOW_S).unwrap();
        assert_eq!((new.doc_id, new.is_new), (3, true));
        let order: Vec<u32> = at(&mut index, NOW_S).iter().map(|found| found.doc_id).collect();
        assert_eq!(order, [3, 2, 1], "before what links led to");
        for (doc_id, result) in [(1, ResultCode::Ok), (2, ResultCode::Malformed)] {
            assert!(index.record(&Outcome::new(doc_id, result, NOW_S), None));
        }
        index.exclude(3, "denied", NOW_S);
        let had = index.name(&url("http://a/1"), story, NOW_S).unwrap();
        assert_eq!(had.had, Some((ResultCode::Ok, NOW_S)));
        for path in ["http://a/2", "http://a/3"] {
            assert!(index.name(&url(path), story, NOW_S).unwrap().had.is_none());
        }
        let mut back: Vec<u32> = at(&mut index, NOW_S).iter().map(|found| found.doc_id).collect();
        back.sort_unstable();
        assert_eq!((back, index.stats().excluded, index.stats().errors), (vec![2, 3], 0, 0));
    }
}
