//! An index is opened: the ledger is read from its beginning, and everything that is not on disk is made from what is.

use super::super::documents::{DocState, DocumentFiles, Documents, Row, RowsInOrder};
use super::super::files::{LEDGER, NOTES, ROWS, ROWS_LOG, SEEN, SPILL};
use super::super::frontier::{QueuedDoc, split};
use super::super::ledger::{Entry, FILE_HEADER_BYTES, Ledger, Origin, Scanned, Told};
use super::super::rules::IndexRules;
use super::DocIndex;
use crate::base::random_u64;
use crate::proto::job::DocKind;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::storage::seen::Seen;
use crate::storage::{Bytes, Spill, sync_directory};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What an index that was opened tells about the time before.
#[derive(Debug, Default)]
pub struct Opened {
    /// Bytes at the end of the ledger that a crash left torn, and bytes in the middle that are damaged.
    pub torn_bytes: u64,
    pub damaged_bytes: u64,
    /// Parts of the seen-set that were damaged, and were made anew.
    pub runs_removed: usize,
    /// Documents numbered below this are of earlier processes.
    pub first_new: u32,
}

#[derive(Debug, Error)]
pub enum IndexError {
    #[error("cannot use {path} as doc index: {cause}")]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("{0} is no doc index that this build can read (move it away to begin a new one)")]
    Foreign(PathBuf),
}

/// Documents after which memory is looked at.
const DOCS_PER_TIDYING: u32 = 65_536;

impl DocIndex {
    /// Opens the index in a folder, or begins one there. What was being fetched when the last process ended is pending.
    pub fn open(folder: &Path, rules: IndexRules, now_s: u32) -> Result<(DocIndex, Opened), IndexError> {
        DocIndex::open_telling(folder, rules, now_s, |_| {})
    }

    /// The same, and tells each URL that was typed, and where they led, once or twice, as it is read: what is in scope.
    pub fn open_telling(
        folder: &Path,
        rules: IndexRules,
        now_s: u32,
        mut seed: impl FnMut(CrawlUrl),
    ) -> Result<(DocIndex, Opened), IndexError> {
        loop {
            let opened = DocIndex::try_open(folder, &rules, now_s, &mut seed);
            match opened.map_err(|cause| IndexError::Unusable { path: folder.to_path_buf(), cause })? {
                Attempt::Open(index, opened) => return Ok((*index, opened)),
                Attempt::Again => {}
                Attempt::Foreign => return Err(IndexError::Foreign(folder.join(LEDGER))),
            }
        }
    }

    fn try_open(
        folder: &Path,
        rules: &IndexRules,
        now_s: u32,
        seed_told: &mut dyn FnMut(CrawlUrl),
    ) -> io::Result<Attempt> {
        fs::create_dir_all(folder)?;
        let file = |name: &str| Bytes::open(&folder.join(name));
        // It begins with the key of the fingerprints.
        let open_ledger = || Bytes::open_secret(&folder.join(LEDGER));
        let mut ledger = open_ledger()?;
        let ledger_bytes = ledger.len();
        let seed = match Ledger::seed_of(&ledger)? {
            Some(seed) => seed,
            // Killed before its header was written: nothing can be in it.
            None if ledger_bytes < FILE_HEADER_BYTES as u64 => {
                let seed = random_u64();
                for name in [ROWS, ROWS_LOG, NOTES] {
                    fs::write(folder.join(name), [])?;
                }
                remove_all(&folder.join(SEEN))?;
                Ledger::create(ledger, seed)?;
                sync_directory(folder)?;
                ledger = open_ledger()?;
                seed
            }
            None => return Ok(Attempt::Foreign),
        };
        let files = DocumentFiles { table: file(ROWS)?, log: file(ROWS_LOG)?, notes: file(NOTES)? };
        let mut documents = Documents::open(files, rules.memory_bytes / 64)?;
        // From here on the table alone has them all.
        documents.settle()?;
        let seen = Seen::open(&folder.join(SEEN), seed, rules.memory_bytes / 2)?;
        let spill = Spill::open(folder.join(SPILL))?;
        // Takes the place of the ledger while that is read.
        let blank = Ledger::create(Bytes::Memory(Vec::new()), 0)?;
        let sure = Ledger::end_of(&ledger)?;
        let mut replay = Replay {
            covered: seen.covered(),
            index: DocIndex::of_parts(rules.clone(), seed, blank, documents, seen, spill),
            rows: RowsInOrder::new(Bytes::read_only(&folder.join(ROWS))?),
            sure,
            now_s,
            seed_told,
            unresolved: Vec::new(),
            rules: None,
        };
        let (ledger, scanned) = Ledger::open(ledger, |told| replay.take(told))?;
        replay.index.ledger = ledger;
        // It ends sooner than its end told: that is cut off now, and rows are judged by what is left.
        if scanned.end < sure {
            return Ok(Attempt::Again);
        }
        // The seen-set tells of URLs that the ledger has lost: what it calls known would never be fetched.
        let covered = replay.index.known.seen().covered();
        let is_ahead = covered >= replay.index.ledger.next_doc();
        if is_ahead || (scanned.damaged_bytes > 0 && covered > 0) {
            remove_all(&folder.join(SEEN))?;
            return Ok(Attempt::Again);
        }
        let (index, opened) = replay.finish(&scanned, ledger_bytes)?;
        Ok(Attempt::Open(Box::new(index), opened))
    }
}

/// What came of opening an index.
enum Attempt {
    Open(Box<DocIndex>, Opened),
    /// What could not be used was removed.
    Again,
    Foreign,
}

/// Makes everything that is not on disk from what is, entry by entry of the ledger.
struct Replay<'a> {
    index: DocIndex,
    /// Documents up to here are in the seen-set.
    covered: u32,
    rows: RowsInOrder,
    /// Where the ledger ends: rows that rely on more are void.
    sure: u64,
    now_s: u32,
    /// Is told what is in scope.
    seed_told: &'a mut dyn FnMut(CrawlUrl),
    unresolved: Vec<(Origin, Box<str>)>,
    /// The rules of the last process, and where the first of those began that had the same.
    rules: Option<(u64, u64)>,
}

impl Replay<'_> {
    fn take(&mut self, told: Told<'_>) -> io::Result<()> {
        match told.entry {
            Entry::Doc { origin, url } => {
                // A feed is asked for by name, and spans no scope.
                if origin.provenance.is_seed() && origin.provenance.kind == DocKind::Content {
                    CrawlUrl::from_normal(url).into_iter().for_each(&mut self.seed_told);
                }
                self.take_doc(told.doc_id, origin, url)?;
            }
            Entry::Unresolved { origin, url } => self.unresolved.push((origin, url.into())),
            Entry::Resolved => self.unresolved.clear(),
            Entry::Scope { url } | Entry::PeerScope { url } => {
                // Ledgers of earlier builds may say it again and again.
                if self.index.known.put_in_scope(url) {
                    CrawlUrl::from_normal(url).into_iter().for_each(&mut self.seed_told);
                }
            }
            Entry::Run { rules } => {
                let since = self.rules.filter(|&(before, _)| before == rules).map(|(_, since)| since);
                self.rules = Some((rules, since.unwrap_or(told.at)));
            }
        }
        Ok(())
    }

    fn take_doc(&mut self, doc_id: u32, origin: Origin, url: &str) -> io::Result<()> {
        let index = &mut self.index;
        if doc_id > self.covered {
            let fingerprint = index.known.fingerprint(url);
            index.known.seen_mut().insert(fingerprint, doc_id)?;
        }
        if doc_id.is_multiple_of(DOCS_PER_TIDYING) {
            // Rows that were changed on the way go to the table, behind where it is being read.
            if index.documents.is_full() {
                index.documents.write()?;
                index.documents.settle()?;
            }
            index.make_room()?;
        }
        let mut row = self.rows.get(doc_id)?;
        if let Some(row) = row.as_mut().filter(|row| row.after > self.sure) {
            *row = row.unanswered();
            index.documents.put(doc_id, *row);
        }
        self.place(doc_id, origin, url, row);
        Ok(())
    }

    /// Gives a document its place: pending, waiting or done.
    fn place(&mut self, doc_id: u32, mut origin: Origin, url: &str, row: Option<Row>) {
        let Some((host_origin, path)) = split(url) else { return };
        let is_ours = self.index.shares.admit(url);
        let is_done = row.is_some_and(|row| matches!(row.state, DocState::Success | DocState::Error));
        if !is_ours && !is_done {
            if row.is_some() {
                self.index.documents.set_has_row(doc_id);
            }
            return self.index.place_foreign(doc_id);
        }
        let host = self.index.frontier.host(host_origin);
        self.index.books.counts.known += 1;
        self.index.frontier.counts(host).known += 1;
        if !origin.provenance.seed_chain && !origin.provenance.is_story() {
            self.index.budgets.count(url);
        }
        if let Some(mut row) = row {
            self.index.documents.set_has_row(doc_id);
            origin = row.raise(origin);
            if !is_ours {
                // Fetched here, or by the node that handed it over. When it is due is for its owner to know.
                self.index.books.take(doc_id);
                self.index.books.count_elsewhere(row.state);
                return self.index.books.count(self.index.frontier.counts(host), row.state);
            }
            if !self.is_pending(&mut row, doc_id) {
                self.index.books.take(doc_id);
                self.index.count(doc_id, host, &row);
                return;
            }
        }
        self.index.frontier.push_back(host, &QueuedDoc { doc_id, origin, path, via: "" });
    }

    fn is_pending(&mut self, row: &mut Row, doc_id: u32) -> bool {
        let (index, now_s) = (&mut self.index, self.now_s);
        let due_s = index.rules.schedule.mended_due_s(row, now_s);
        if row.due_s != due_s {
            row.due_s = due_s;
            index.documents.put(doc_id, *row);
        }
        match (row.state, index.rules.schedule.recrawl) {
            (DocState::Excluded | DocState::HandedOut, _) => true,
            // Earlier builds took an address that was not allowed for an error.
            (DocState::Error, _) if row.result == Some(ResultCode::BlockedAddress) => true,
            // The name is known to be another for this once: what comes of it is for the disk to remember.
            (DocState::Error, _)
                if index.rules.denied_anew && row.result == Some(ResultCode::RobotsDenied) =>
            {
                (row.state, row.due_s) = (DocState::Pending, 0);
                index.documents.put(doc_id, *row);
                true
            }
            (DocState::Pending, _) => index.rules.again || row.due_s <= now_s,
            _ if index.rules.again => true,
            // This crawl does not look again.
            (_, None) => {
                row.due_s = 0;
                false
            }
            (_, Some(_)) if row.due_s > 0 => row.due_s <= now_s,
            (_, Some(recrawl)) => {
                // It was fetched by a crawl that did not mean to look again.
                row.interval_s = recrawl.start_s;
                row.due_s = row.fetched_s.min(now_s).saturating_add(recrawl.start_s);
                index.documents.put(doc_id, *row);
                row.due_s <= now_s
            }
        }
    }

    fn finish(self, scanned: &Scanned, ledger_bytes: u64) -> io::Result<(DocIndex, Opened)> {
        let Replay { mut index, now_s, unresolved, rules, .. } = self;
        index.documents.cut(index.ledger.next_doc())?;
        index.make_room()?;
        index.shrink_seen()?;
        index.known.seen_mut().order();
        // The ledger has them, and will until they are resolved.
        for (origin, url) in unresolved {
            index.known.park(index.known.fingerprint(&url), &url, origin);
        }
        if index.known.unresolved().is_full() {
            index.resolve(now_s);
        }
        index.trouble.tell()?;
        // A page that was read before is to be read anew, in whichever process its turn comes.
        let signature = index.rules.signature;
        let since = rules.filter(|&(rules, _)| rules == signature).map(|(_, since)| since);
        index.ledger.set_rules_since(since);
        let opened = Opened {
            torn_bytes: ledger_bytes.saturating_sub(scanned.end),
            damaged_bytes: scanned.damaged_bytes,
            runs_removed: index.known.seen().removed().len(),
            first_new: index.ledger.next_doc(),
        };
        // What does not count is gone before the ledger takes more, by which it might seem to count again.
        index.documents.write()?;
        index.documents.sync()?;
        index.ledger.begin_run(signature, now_s);
        index.flush(true)?;
        Ok((index, opened))
    }
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
