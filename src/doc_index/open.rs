use super::block::Scanned;
use super::documents::{DocumentFiles, Documents, RowsInOrder};
use super::entry::{Entry, Origin};
use super::frontier::split;
use super::index::{DocIndex, domain_fingerprint};
use super::ledger::{Ledger, Told};
use super::line::InLine;
use super::row::{DocState, Row};
use super::rules::IndexRules;
use crate::base::random_u64;
use crate::proto::url::CrawlUrl;
use crate::storage::Spill;
use crate::storage::seen::Seen;
use crate::storage::{Bytes, sync_directory};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The files of a doc index.
pub(super) const LEDGER: &str = "ledger";
pub(super) const ROWS: &str = "documents";
pub(super) const ROWS_LOG: &str = "documents.log";
pub(super) const NOTES: &str = "notes";
pub(super) const SEEN: &str = "seen";
const SPILL: &str = "spill";

/// What an index that was opened tells about the time before.
#[derive(Debug, Default)]
pub struct Opened {
    /// URLs that somebody typed, and where they led: what is in scope. Empty if somebody was told one by one.
    pub seeds: Vec<CrawlUrl>,
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
        let mut seeds = Vec::new();
        let (index, opened) = DocIndex::open_telling(folder, rules, now_s, |url| seeds.push(url))?;
        Ok((index, Opened { seeds, ..opened }))
    }

    /// The same for millions of seeds: each is told once or twice, as it is read, and none is kept.
    pub fn open_telling(
        folder: &Path,
        rules: IndexRules,
        now_s: u32,
        mut seed: impl FnMut(CrawlUrl),
    ) -> Result<(DocIndex, Opened), IndexError> {
        let unusable = |cause| IndexError::Unusable { path: folder.to_path_buf(), cause };
        loop {
            let Some((mut index, opened)) = DocIndex::open_once(folder, &rules, now_s, &mut seed, &unusable)?
            else {
                continue;
            };
            // What does not count is gone before the ledger takes more, by which it might seem to count again.
            index.documents.write().and_then(|()| index.documents.sync()).map_err(unusable)?;
            index.ledger.push(&Entry::Run { rules: rules.signature }, now_s);
            index.flush(true).map_err(unusable)?;
            return Ok((index, opened));
        }
    }

    fn open_once(
        folder: &Path,
        rules: &IndexRules,
        now_s: u32,
        seed_told: &mut dyn FnMut(CrawlUrl),
        unusable: &impl Fn(io::Error) -> IndexError,
    ) -> Result<Option<(DocIndex, Opened)>, IndexError> {
        fs::create_dir_all(folder).map_err(unusable)?;
        let ledger = Bytes::open(&folder.join(LEDGER)).map_err(unusable)?;
        let ledger_bytes = ledger.len();
        let seed = Ledger::seed_of(&ledger).map_err(unusable)?;
        let (seed, ledger) = match seed {
            Some(seed) => (seed, ledger),
            // Killed before its header was written: nothing can be in it.
            None if ledger_bytes < super::ledger::FILE_HEADER_BYTES as u64 => {
                let seed = random_u64();
                for name in [ROWS, ROWS_LOG, NOTES] {
                    fs::write(folder.join(name), []).map_err(unusable)?;
                }
                remove_all(&folder.join(SEEN)).map_err(unusable)?;
                Ledger::create(ledger, seed).map_err(unusable)?;
                sync_directory(folder).map_err(unusable)?;
                (seed, Bytes::open(&folder.join(LEDGER)).map_err(unusable)?)
            }
            None => return Err(IndexError::Foreign(folder.join(LEDGER))),
        };
        let file = |name: &str| Bytes::open(&folder.join(name)).map_err(unusable);
        let files = DocumentFiles { table: file(ROWS)?, log: file(ROWS_LOG)?, notes: file(NOTES)? };
        let mut documents = Documents::open(files, rules.memory_bytes / 64).map_err(unusable)?;
        // From here on the table alone has them all.
        documents.settle().map_err(unusable)?;
        let seen = Seen::open(&folder.join(SEEN), seed, rules.memory_bytes / 2).map_err(unusable)?;
        let spill = Spill::open(folder.join(SPILL)).map_err(unusable)?;
        // Takes the place of the ledger while that is read.
        let blank = Ledger::create(Bytes::Memory(Vec::new()), 0).map_err(unusable)?;
        let mut index = DocIndex::of_parts(rules.clone(), seed, blank, documents, seen, spill);
        let rows = RowsInOrder::new(Bytes::read_only(&folder.join(ROWS)).map_err(unusable)?);
        let sure = Ledger::end_of(&ledger).map_err(unusable)?;
        let mut retelling = Retelling::new(index.seen.covered(), rows, sure, now_s, seed_told);
        let (ledger, scanned) =
            Ledger::open(ledger, |told| retelling.take(&mut index, told)).map_err(unusable)?;
        index.ledger = ledger;
        // It ends sooner than its end told: that is cut off now, and rows are judged by what is left.
        if scanned.end < sure {
            return Ok(None);
        }
        // The seen-set tells of URLs that the ledger has lost: what it calls known would never be fetched.
        let is_ahead = index.seen.covered() >= index.ledger.next_doc();
        if is_ahead || (scanned.damaged_bytes > 0 && index.seen.covered() > 0) {
            remove_all(&folder.join(SEEN)).map_err(unusable)?;
            return Ok(None);
        }
        index.documents.cut(index.ledger.next_doc()).map_err(unusable)?;
        let opened = retelling.end(&mut index, &scanned, ledger_bytes).map_err(unusable)?;
        Ok(Some((index, opened)))
    }
}

/// Makes everything that is not on disk from what is.
struct Retelling<'a> {
    /// Documents up to here are in the seen-set.
    covered: u32,
    rows: RowsInOrder,
    /// Where the ledger ends: rows that rely on more are void.
    sure: u64,
    now_s: u32,
    opened: Opened,
    /// Who is told of what is in scope.
    seed_told: &'a mut dyn FnMut(CrawlUrl),
    doubts: Vec<(Origin, Box<str>)>,
    /// The rules of the last process, and where the first of those began that had the same.
    rules: Option<(u64, u64)>,
    error: Option<io::Error>,
}

impl<'a> Retelling<'a> {
    fn new(
        covered: u32,
        rows: RowsInOrder,
        sure: u64,
        now_s: u32,
        seed_told: &'a mut dyn FnMut(CrawlUrl),
    ) -> Retelling<'a> {
        Retelling {
            covered,
            rows,
            sure,
            now_s,
            opened: Opened::default(),
            seed_told,
            doubts: Vec::new(),
            rules: None,
            error: None,
        }
    }

    fn take(&mut self, index: &mut DocIndex, told: Told<'_>) {
        match told.entry {
            Entry::Doc { origin, url } => {
                if origin.seed_chain && origin.hops == 0 {
                    CrawlUrl::from_normal(url).into_iter().for_each(&mut self.seed_told);
                }
                if told.doc_id > self.covered {
                    let fingerprint = xxh3_64_with_seed(url.as_bytes(), index.seed);
                    self.error = self.error.take().or(index.seen.insert(fingerprint, told.doc_id).err());
                }
                if told.doc_id.is_multiple_of(DOCS_PER_TIDYING) {
                    self.error = self.error.take().or(self.make_room(index).err());
                }
                match self.rows.get(told.doc_id) {
                    Ok(Some(row)) if row.after > self.sure => {
                        let row = row.unanswered();
                        index.documents.put(told.doc_id, row);
                        self.place(index, told.doc_id, origin, url, Some(row));
                    }
                    Ok(row) => self.place(index, told.doc_id, origin, url, row),
                    Err(error) => self.error = Some(error),
                }
            }
            Entry::Doubt { origin, url } => self.doubts.push((origin, url.into())),
            Entry::Settled => self.doubts.clear(),
            Entry::Scope { url } => {
                // Ledgers of earlier builds may say it again and again.
                if index.scoped.insert(xxh3_64_with_seed(url.as_bytes(), index.seed)) {
                    CrawlUrl::from_normal(url).into_iter().for_each(&mut self.seed_told);
                }
            }
            Entry::Run { rules } => {
                let since = self.rules.filter(|&(before, _)| before == rules).map(|(_, since)| since);
                self.rules = Some((rules, since.unwrap_or(told.at)));
            }
        }
    }

    /// Rows that were changed on the way go to the table, behind where it is being read.
    fn make_room(&self, index: &mut DocIndex) -> io::Result<()> {
        if index.documents.is_full() {
            index.documents.write()?;
            index.documents.settle()?;
        }
        index.make_room()
    }

    /// Gives a document its place: pending, waiting or done.
    fn place(&self, index: &mut DocIndex, doc_id: u32, origin: Origin, url: &str, row: Option<Row>) {
        let Some((host_origin, path)) = split(url) else { return };
        let host = index.frontier.host(host_origin);
        index.counts.known += 1;
        index.frontier.counts(host).known += 1;
        if !origin.seed_chain {
            index.variants.admit(url);
            if index.rules.pages_per_domain > 0 {
                *index.by_domain.entry(domain_fingerprint(url)).or_default() += 1;
            }
        }
        let mut origin = origin;
        if let Some(mut row) = row {
            index.rowed.set(doc_id, true);
            origin = row.raise(origin);
            if !self.is_pending(index, &mut row, doc_id) {
                index.taken.set(doc_id, true);
                index.count(doc_id, host, &row);
                return;
            }
        }
        index.frontier.push_back(host, &InLine { doc_id, origin, path, via: "" });
    }

    fn is_pending(&self, index: &mut DocIndex, row: &mut Row, doc_id: u32) -> bool {
        let recrawl = index.rules.schedule.recrawl;
        let due_s = index.rules.schedule.mended_due_s(row, self.now_s);
        if row.due_s != due_s {
            row.due_s = due_s;
            index.documents.put(doc_id, *row);
        }
        match (row.state, recrawl) {
            (DocState::Excluded | DocState::Fetching, _) => true,
            (DocState::Pending, _) => index.rules.again || row.due_s <= self.now_s,
            _ if index.rules.again => true,
            // Nobody is to look again.
            (_, None) => {
                row.due_s = 0;
                false
            }
            (_, Some(_)) if row.due_s > 0 => row.due_s <= self.now_s,
            (_, Some(recrawl)) => {
                // It was fetched by a crawl that did not mean to look again.
                row.interval_s = recrawl.start_s;
                row.due_s = row.fetched_s.min(self.now_s).saturating_add(recrawl.start_s);
                index.documents.put(doc_id, *row);
                row.due_s <= self.now_s
            }
        }
    }

    fn end(mut self, index: &mut DocIndex, scanned: &Scanned, bytes: u64) -> io::Result<Opened> {
        index.make_room()?;
        index.shrink_seen()?;
        index.seen.order();
        // The ledger has them, and will until they are settled.
        for (origin, url) in std::mem::take(&mut self.doubts) {
            let fingerprint = xxh3_64_with_seed(url.as_bytes(), index.seed);
            index.doubts.park(fingerprint, &url, origin);
        }
        if index.doubts.is_full() {
            index.settle_doubts(self.now_s);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.opened.torn_bytes = bytes.saturating_sub(scanned.end);
        self.opened.damaged_bytes = scanned.damaged_bytes;
        self.opened.runs_removed = index.seen.removed().len();
        // A page that was read before is to be read anew, in whichever process its turn comes.
        let since = self.rules.filter(|&(rules, _)| rules == index.rules.signature).map(|(_, since)| since);
        index.rules_since = since.unwrap_or_else(|| index.ledger.told());
        self.opened.first_new = index.ledger.next_doc();
        Ok(self.opened)
    }
}

fn remove_all(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
