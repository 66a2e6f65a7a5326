use super::super::document_line::DocumentLine;
use super::super::documents::{DocState, Note, Row};
use super::super::ledger::{Origin, PRIORITY_MAX};
use super::super::said::Word;
use super::DocIndex;
use crate::base::{listed, without_mark};
use crate::proto::reflog::{RejectReason, fields, number};
use crate::proto::url::{CrawlUrl, UrlError};
use std::io;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// A URL that is handed in, and what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub url: CrawlUrl,
    pub origin: Origin,
    /// Another one than before says that its document has changed.
    pub update_tag: Option<TagHash>,
    /// When that was so, in seconds since 1970; 0 if nobody knows.
    at_s: u32,
    /// What another index knew of it.
    known: Option<Box<(Row, Note)>>,
}

/// A URL that is handed in, in normal form and as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Mention<'a> {
    pub url: &'a str,
    pub priority: u8,
    pub hits: u32,
    pub tag: Option<TagHash>,
    /// When it was seen, in seconds since 1970; 0 if nobody knows.
    pub at_s: u32,
}

/// Why a URL is excluded whose domain is with another server.
pub const MOVED: &str = "its domain was moved to another server";

/// Of the memory, what is kept of URLs that were handed in.
const SAID_SHARE: usize = 16;

/// Masters keep what they have sent for ten hours.
const AGAIN_S_MAX: u32 = 36_000;

/// An update tag, as much of it as is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagHash(u32);

/// What became of one that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    New,
    /// It was known, and stays as it is.
    Known,
    /// It was pending, and comes sooner.
    MovedUp,
    /// It was had, and is pending again.
    Due,
    /// It is one too many of its host or domain, or there is no number left.
    Refused,
}

/// Why a line was not taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImportError {
    #[error("{0}")]
    Url(#[from] UrlError),
    #[error("not a line of an export: {0}")]
    Json(String),
    #[error("not a line of a reflog: {0}")]
    Reflog(String),
}

impl TagHash {
    /// `None` of an empty tag.
    pub fn of(tag: &str) -> Option<TagHash> {
        TagHash::of_bytes(tag.as_bytes())
    }

    pub fn of_bytes(tag: &[u8]) -> Option<TagHash> {
        (!tag.is_empty()).then(|| TagHash((xxh3_64(tag) as u32).max(1)))
    }
}

impl Import {
    /// As if it had been typed.
    pub fn seed(url: CrawlUrl) -> Import {
        Import { url, origin: Origin::SEED, update_tag: None, at_s: 0, known: None }
    }

    /// As a master hands it in: asked for by name.
    pub fn mentioned(url: CrawlUrl, mention: &Mention<'_>) -> Import {
        let origin =
            Origin { priority: mention.priority.min(PRIORITY_MAX), hits: mention.hits, ..Origin::SEED };
        Import { url, origin, update_tag: mention.tag, at_s: mention.at_s, known: None }
    }

    /// Whether it brings its host, domain or prefix into scope.
    pub fn is_seed(&self) -> bool {
        self.origin.provenance.is_seed()
    }

    /// A line of a file: a URL, which a comment may follow, a line of an export or of a reflog. `None` where it is blank or
    /// a comment.
    pub fn read(line: &str) -> Result<Option<Import>, ImportError> {
        let line = without_mark(line).trim_end_matches(['\r', '\n']);
        let bare = listed(line);
        match bare.chars().next() {
            None => Ok(None),
            Some('{') => Import::exported(line).map(Some),
            Some(_) if bare.contains('\t') => Import::reflog(line).map(Some),
            Some(_) => Ok(Some(Import::seed(CrawlUrl::parse(bare)?))),
        }
    }

    fn exported(line: &str) -> Result<Import, ImportError> {
        let read: DocumentLine =
            serde_json::from_str(line).map_err(|error| ImportError::Json(error.to_string()))?;
        let url = CrawlUrl::parse(&read.url)?;
        let origin = read.origin().ok_or_else(|| ImportError::Json("its kind is none".to_string()))?;
        let update_tag = read.update_tag.filter(|&tag| tag > 0).map(TagHash);
        Ok(Import { url, origin, update_tag, at_s: 0, known: read.row().map(Box::new) })
    }

    /// A record of a reflog in one line. What it says of batch, time and page is not asked.
    fn reflog(line: &str) -> Result<Import, ImportError> {
        let [_, priority, _, _, url, hits, tag] = fields(line.as_bytes()).map_err(ImportError::reflog)?;
        let priority = number(priority).ok_or(ImportError::reflog(RejectReason::Priority))?;
        let hits = number(hits).ok_or(ImportError::reflog(RejectReason::Hits))?;
        let origin = Origin { priority: priority.min(PRIORITY_MAX.into()) as u8, hits, ..Origin::SEED };
        let url = CrawlUrl::parse(&String::from_utf8_lossy(url))?;
        let update_tag = TagHash::of(String::from_utf8_lossy(tag).trim());
        Ok(Import { url, origin, update_tag, at_s: 0, known: None })
    }
}

impl ImportError {
    pub fn reflog(why: RejectReason) -> ImportError {
        ImportError::Reflog(why.about())
    }
}

impl Row {
    /// Whether it was had at that time or later. Of a time so long ago that no master sends it again, nothing follows: a
    /// clock may be wrong.
    fn was_had_since(&self, at_s: u32) -> bool {
        let is_recent = self.fetched_s.checked_sub(at_s).is_some_and(|since_s| since_s <= AGAIN_S_MAX);
        self.update_tag != 0 && self.state == DocState::Success && is_recent
    }
}

impl DocIndex {
    /// As [`DocIndex::import`], for whoever looks at what the disk refuses with the next flush.
    pub fn take_in(&mut self, import: &Import, now_s: u32) -> Imported {
        match self.import(import, now_s) {
            Ok(imported) => imported,
            Err(error) => {
                self.trouble.note(error);
                Imported::Refused
            }
        }
    }

    /// Takes in what is handed in. Reads the disk, unless the same was said of it lately.
    pub fn import(&mut self, import: &Import, now_s: u32) -> io::Result<Imported> {
        let fingerprint = self.known.fingerprint(import.url.as_str());
        let Origin { priority, hits, .. } = import.origin;
        let word = Word { tag: import.update_tag.map_or(0, |tag| tag.0), priority, hits };
        if import.known.is_none() && self.said.covers(fingerprint, word) {
            return Ok(Imported::Known);
        }
        match self.known.find(fingerprint)? {
            Some(doc_id) => self.import_known(doc_id, fingerprint, import),
            None => {
                let imported = self.import_new(fingerprint, import, now_s);
                if imported == Imported::New {
                    self.note_said(fingerprint, word);
                }
                Ok(imported)
            }
        }
    }

    /// Which of these say nothing new of their URLs: memory alone tells, and of many at once it tells faster.
    pub fn are_said<'a>(&self, mentions: impl Iterator<Item = &'a Mention<'a>>, said: &mut Vec<bool>) {
        let word = |mention: &Mention<'_>| Word {
            tag: mention.tag.map_or(0, |tag| tag.0),
            priority: mention.priority.min(PRIORITY_MAX),
            hits: mention.hits,
        };
        let asked = mentions.map(|mention| (self.known.fingerprint(mention.url), word(mention)));
        said.clear();
        said.extend(asked.map(|(fingerprint, word)| self.said.covers(fingerprint, word)));
    }

    /// What was said of URLs counts no more: each is looked up when it is handed in again.
    pub fn forget_said(&mut self) {
        self.said.clear();
    }

    fn note_said(&mut self, fingerprint: u64, word: Word) {
        self.said.note(fingerprint, word, self.rules.memory_bytes / SAID_SHARE);
    }

    /// Whether a document that is excluded is so because its domain was moved away.
    fn was_moved(&mut self, doc_id: u32, row: &Row) -> bool {
        let note = self.documents.note(doc_id, row);
        self.trouble.or_default(note).reason.as_deref() == Some(MOVED)
    }

    fn import_new(&mut self, fingerprint: u64, import: &Import, now_s: u32) -> Imported {
        let doc_id = self.ledger.next_doc();
        self.admit_one(import.url.as_str(), fingerprint, import.origin, now_s);
        if self.ledger.next_doc() == doc_id {
            return Imported::Refused;
        }
        if self.shares.is_foreign(import.url.as_str()) {
            return Imported::New;
        }
        let update_tag = import.update_tag.map_or(0, |tag| tag.0);
        match import.known.as_deref() {
            Some((row, note)) => {
                let mut row = Row { update_tag, ..*row };
                self.documents.put_note(doc_id, row.note_owner(doc_id), &mut row, note);
                self.restore(doc_id, import, row, now_s);
            }
            None if update_tag != 0 => self.documents.put(doc_id, Row { update_tag, ..Row::default() }),
            None => {}
        }
        Imported::New
    }

    /// Gives a document that was just taken in the row that it had elsewhere.
    fn restore(&mut self, doc_id: u32, import: &Import, mut row: Row, now_s: u32) {
        row.due_s = self.rules.schedule.mended_due_s(&row, now_s);
        let is_pending = match row.state {
            DocState::Pending | DocState::HandedOut => row.due_s <= now_s,
            DocState::Success | DocState::Error | DocState::Excluded => false,
        };
        if is_pending {
            return self.documents.put(doc_id, Row { due_s: 0, ..row });
        }
        let host = self.frontier.host(import.url.origin());
        // It is queued, and is passed over in its turn.
        self.frontier.pass_over(host);
        self.books.take(doc_id);
        self.put_row(doc_id, host, row);
    }

    fn import_known(&mut self, doc_id: u32, fingerprint: u64, import: &Import) -> io::Result<Imported> {
        // Two URLs of one fingerprint: the first stands for both.
        let found = self.ledger.doc(doc_id)?.filter(|found| *found.url == *import.url.as_str());
        let Some(found) = found.filter(|found| !self.shares.is_foreign(&found.url)) else {
            return Ok(Imported::Known);
        };
        let before = self.row(doc_id);
        let mut row = before;
        let told = before.raise(found.origin);
        let (priority, hits) = (import.origin.priority.max(told.priority), import.origin.hits.max(told.hits));
        let raised = (priority, hits) != (told.priority, told.hits);
        if raised {
            (row.priority, row.hits) = (Some(priority), hits);
        }
        // A document that was had since then has that change, too: what another master sends again is no news.
        let told = import.update_tag.filter(|_| !before.was_had_since(import.at_s));
        let tag = told.map_or(row.update_tag, |tag| tag.0);
        let changed = row.update_tag != 0 && tag != row.update_tag;
        row.update_tag = tag;
        self.note_said(fingerprint, Word { tag, priority, hits });
        let (is_pending, is_open) = (self.books.is_pending(doc_id), self.books.is_open(doc_id));
        let is_back =
            before.state == DocState::Excluded && !is_pending && !is_open && self.was_moved(doc_id, &before);
        let is_due = (changed || is_back) && !is_pending && !is_open;
        if row == before && !is_back {
            return Ok(Imported::Known);
        }
        let moves_up = raised && is_pending;
        if (is_due || moves_up)
            && let Some(host) = self.frontier.push_url(&found.url, doc_id, row.raise(found.origin))
        {
            if is_due {
                self.uncount(host, &before);
                if is_back {
                    self.books.uncount_excluded();
                }
                self.books.make_pending(doc_id);
                (row.state, row.due_s, row.retries) = (DocState::Pending, 0, 0);
            } else {
                // What is left of it in the other queue is passed over.
                self.frontier.pass_over(host);
            }
        }
        self.documents.put(doc_id, row);
        Ok(match (is_due, moves_up) {
            (true, _) => Imported::Due,
            (_, true) => Imported::MovedUp,
            _ => Imported::Known,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc_index::{IndexRules, RejectList};
    use crate::proto::record::ResultCode;
    use std::path::PathBuf;

    const NOW_S: u32 = 1_800_000_000;

    fn import(index: &mut DocIndex, line: &str) -> Imported {
        index.import(&Import::read(line).unwrap().unwrap(), NOW_S).unwrap()
    }

    fn next(index: &mut DocIndex) -> Vec<String> {
        let found = index.candidates(99, &RejectList::default(), NOW_S);
        found.iter().map(|candidate| candidate.url.to_string()).collect()
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("nephila-import-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Folder(path)
        }

        fn open(&self) -> DocIndex {
            DocIndex::open(&self.0, IndexRules::default(), NOW_S).unwrap().0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn lines_of_each_kind_are_read_and_others_named() {
        assert_eq!(Import::read("  \r\n"), Ok(None));
        assert_eq!(Import::read("# http://a/"), Ok(None));
        let plain = Import::read("http://A.test\n").unwrap().unwrap();
        assert_eq!((plain.url.as_str(), plain.origin), ("http://a.test/", Origin::SEED));
        let reflog = Import::read("b7\t9\t20260101000000\t12\thttp://a.test/x\t300\tv2").unwrap().unwrap();
        assert_eq!((reflog.origin.priority, reflog.origin.hits), (9, 300));
        assert_eq!(reflog.update_tag, TagHash::of("v2"));
        let short = Import::read("b7\t99\t20260101000000\t12\thttp://a.test/x\t300").unwrap().unwrap();
        assert_eq!((short.origin.priority, short.update_tag), (PRIORITY_MAX, None));
        for bad in [
            "nonsense",
            "ftp://a/",
            "{\"url\":",
            "{\"url\":\"http://a/\",\"kind\":\"x\"}",
            "a\tb",
            "a\tx\tb\tc\thttp://a/\t1",
        ] {
            assert!(Import::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_known_url_moves_up_for_good_and_is_counted_once() {
        let folder = Folder::new("up");
        let mut index = folder.open();
        for url in ["http://a/1", "http://a/2", "http://a/3"] {
            assert_eq!(import(&mut index, url), Imported::New);
        }
        assert_eq!(import(&mut index, "http://a/2"), Imported::Known);
        assert_eq!(import(&mut index, "b\t9\t0\t0\thttp://a/3\t0"), Imported::MovedUp);
        assert_eq!(import(&mut index, "b\t5\t0\t0\thttp://a/2\t40"), Imported::MovedUp);
        assert_eq!(import(&mut index, "b\t8\t0\t0\thttp://a/3\t0"), Imported::Known, "lower than before");
        assert_eq!((index.stats().pending, index.host("http://a").unwrap().pending), (3, 3));
        index.close().unwrap();
        for _ in 0..2 {
            assert_eq!(next(&mut index), ["http://a/3", "http://a/2", "http://a/1"]);
            assert!(next(&mut index).is_empty());
            assert_eq!((index.stats().pending, index.stats().handed_out), (0, 3));
            drop(index);
            index = folder.open();
        }
    }

    #[test]
    fn what_was_said_before_changes_nothing_and_what_says_more_is_looked_up() {
        let mut index = DocIndex::default();
        let mention = |hits, tag: &str| Mention {
            url: "http://a/1",
            priority: 5,
            hits,
            tag: TagHash::of(tag),
            at_s: 0,
        };
        let take = |index: &mut DocIndex, mention: Mention<'_>| {
            let mut said = Vec::new();
            index.are_said([mention].iter(), &mut said);
            let import = Import::mentioned(CrawlUrl::parse(mention.url).unwrap(), &mention);
            (said[0], index.import(&import, NOW_S).unwrap())
        };
        assert_eq!(take(&mut index, mention(3, "v1")), (false, Imported::New));
        assert_eq!(take(&mut index, mention(3, "v1")), (true, Imported::Known));
        assert_eq!(take(&mut index, mention(1, "")), (true, Imported::Known), "nothing said");
        assert_eq!(take(&mut index, mention(9, "v1")), (false, Imported::MovedUp));
        assert_eq!(take(&mut index, mention(8, "v1")), (true, Imported::Known));
        assert_eq!(next(&mut index).len(), 1);
        assert!(index.record(&crate::doc_index::Outcome::new(1, ResultCode::Ok, NOW_S), None));
        assert_eq!(take(&mut index, mention(9, "v1")), (true, Imported::Known), "fetched or not");
        assert_eq!(take(&mut index, mention(9, "v2")), (false, Imported::Due));
        assert_eq!(take(&mut index, mention(9, "v1")), (false, Imported::Known), "pending anyhow");
        // What was left out because its domain moved comes back when it is handed in.
        assert_eq!(next(&mut index).len(), 1);
        index.exclude(1, MOVED, NOW_S);
        assert_eq!(index.stats().excluded, 1);
        index.forget_said();
        assert_eq!(take(&mut index, mention(9, "v1")), (false, Imported::Due));
        assert_eq!((index.stats().excluded, index.stats().pending), (0, 1));
        assert_eq!(next(&mut index).len(), 1);
        index.exclude(1, "another reason", NOW_S);
        index.forget_said();
        assert_eq!(take(&mut index, mention(9, "v1")), (false, Imported::Known));
    }

    #[test]
    fn a_tag_that_is_older_than_what_was_fetched_is_no_news() {
        let mut index = DocIndex::default();
        let take = |index: &mut DocIndex, tag: &str, at_s: u32| {
            let mention = Mention { url: "http://a/1", priority: 5, hits: 1, tag: TagHash::of(tag), at_s };
            let import = Import::mentioned(CrawlUrl::parse(mention.url).unwrap(), &mention);
            index.import(&import, NOW_S).unwrap()
        };
        let fetch = |index: &mut DocIndex, result, at_s| {
            assert_eq!(next(index).len(), 1);
            index.record(&crate::doc_index::Outcome::new(1, result, at_s), None)
        };
        assert_eq!(take(&mut index, "v1", NOW_S - 50), Imported::New);
        fetch(&mut index, ResultCode::Ok, NOW_S - 40);
        assert_eq!(take(&mut index, "v2", NOW_S - 30), Imported::Due);
        fetch(&mut index, ResultCode::Ok, NOW_S - 20);
        // Another master sends both again.
        assert_eq!(take(&mut index, "v1", NOW_S - 50), Imported::Known);
        assert_eq!(take(&mut index, "v2", NOW_S - 30), Imported::Known);
        assert_eq!(take(&mut index, "v1", NOW_S - 36_021), Imported::Due, "a clock that is wrong");
        fetch(&mut index, ResultCode::ConnectRefused, NOW_S - 10);
        assert_eq!(take(&mut index, "v3", NOW_S - 15), Imported::Due, "it was not had");
    }

    #[test]
    fn another_tag_makes_a_document_due() {
        let mut index = DocIndex::default();
        let line = |tag: &str| format!("b\t5\t0\t0\thttp://a/1\t0\t{tag}");
        assert_eq!(import(&mut index, &line("v1")), Imported::New);
        assert_eq!(import(&mut index, &line("v2")), Imported::Known, "pending anyhow");
        assert_eq!(next(&mut index).len(), 1);
        let outcome = crate::doc_index::Outcome::new(1, crate::proto::record::ResultCode::Ok, NOW_S);
        assert!(index.record(&outcome, None));
        assert_eq!(import(&mut index, &line("v2")), Imported::Known);
        assert_eq!(import(&mut index, &line("")), Imported::Known, "nothing said");
        assert_eq!(index.stats().success, 1);
        assert_eq!(import(&mut index, &line("v3")), Imported::Due);
        assert_eq!((index.stats().success, index.stats().pending), (0, 1));
        assert_eq!(next(&mut index), ["http://a/1"]);
        assert!(index.record(&outcome, None));
        assert_eq!(index.look("http://a/1").unwrap().unwrap().row.unwrap().fetches, 2);
    }

    #[test]
    fn what_another_index_knew_is_restored() {
        let folder = Folder::new("restored");
        let mut index = folder.open();
        let line = DocumentLine {
            doc_id: 77,
            url: "http://a/1".to_string(),
            kind: "content".to_string(),
            state: Some(DocState::Success),
            via: Some("http://a/".to_string()),
            depth: 3,
            priority: 5,
            fetched_at: Some("2026-01-02T03:04:05.000Z".to_string()),
            result: Some(ResultCode::Ok),
            http_status: Some(200),
            fetches: 4,
            digest: Some("00000000000000ff".to_string()),
            etag: Some("\"x\"".to_string()),
            canonical: Some("http://a/one".to_string()),
            ..DocumentLine::default()
        };
        let waiting = DocumentLine {
            url: "http://a/2".to_string(),
            state: Some(DocState::Pending),
            due_at: Some("2099-01-01T00:00:00Z".to_string()),
            retries: 2,
            ..line.clone()
        };
        for line in [&line, &waiting] {
            assert_eq!(import(&mut index, &serde_json::to_string(line).unwrap()), Imported::New);
        }
        for _ in 0..2 {
            let stats = index.stats();
            assert_eq!((stats.known, stats.pending, stats.waiting, stats.success), (2, 0, 1, 1));
            assert!(next(&mut index).is_empty());
            let found = index.look("http://a/1").unwrap().unwrap();
            let back = DocumentLine::of(&found, None);
            let expected = DocumentLine {
                doc_id: 1,
                via: None,
                discovered_at: back.discovered_at.clone(),
                ..line.clone()
            };
            assert_eq!(back, expected);
            assert_eq!(index.look("http://a/2").unwrap().unwrap().row.unwrap().retries, 2);
            index.close().unwrap();
            drop(index);
            index = folder.open();
        }
    }
}
