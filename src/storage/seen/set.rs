use super::table::{Answer, SeenTable};
use super::unwritten::Unwritten;
use crate::storage::runs::{Entry, Pages, Query, Runs};
use std::fs;
use std::io;
use std::path::Path;

/// See the folder's docs. A fingerprint of 0 is taken for 1.
pub(crate) struct Seen {
    table: SeenTable,
    unwritten: Unwritten,
    /// None for a set that lives in memory alone.
    runs: Option<Runs>,
    unwritten_max: usize,
    /// The document that was inserted last.
    last: u32,
    removed: Vec<String>,
}

/// What a set may take of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub table_bytes_max: usize,
    /// Entries that are in no run yet.
    pub unwritten_max: usize,
}

/// An eighth of the budget is for what is in no run yet, within these bounds: fewer would make runs by the thousand,
/// and more would make them no better.
const UNWRITTEN_SHARE: usize = 8;
const UNWRITTEN_MIN: usize = 4_096;
const UNWRITTEN_MAX: usize = 2 << 20;

/// Merging goes on after this many insertions, and moves this many entries for each of them. An entry is moved once in
/// each tier, of which there are seven: at this pace a merge is over long before the next of its tier.
const INSERTS_PER_WORK: usize = 256;
const MOVES_PER_INSERT: u64 = 32;
/// What a flush moves: short sessions, too, have to merge what they leave behind.
const MOVES_PER_FLUSH: u64 = 1 << 20;

impl Sizes {
    fn of(bytes_max: usize) -> Sizes {
        let unwritten_max = bytes_max / UNWRITTEN_SHARE / size_of::<Entry>();
        let unwritten_max = unwritten_max.clamp(UNWRITTEN_MIN, UNWRITTEN_MAX);
        Sizes { table_bytes_max: bytes_max.saturating_sub(unwritten_max * size_of::<Entry>()), unwritten_max }
    }
}

impl Seen {
    /// In memory alone, without a bound: for simulations and tests.
    pub fn in_memory() -> Seen {
        Seen {
            table: SeenTable::new(usize::MAX),
            unwritten: Unwritten::default(),
            runs: None,
            unwritten_max: usize::MAX,
            last: 0,
            removed: Vec::new(),
        }
    }

    /// Opens the folder, makes it if need be, and loads as many fingerprints as the budget has room for. Runs that
    /// cannot be used are removed: [`Seen::removed`] names them, and [`Seen::covered`] says what is to be inserted
    /// again.
    pub fn open(folder: &Path, seed: u64, bytes_max: usize) -> io::Result<Seen> {
        Seen::open_with(folder, seed, Sizes::of(bytes_max))
    }

    pub(super) fn open_with(folder: &Path, seed: u64, sizes: Sizes) -> io::Result<Seen> {
        fs::create_dir_all(folder)?;
        let (runs, removed) = Runs::open(folder, seed_check(seed))?;
        Ok(Seen {
            table: load(&runs, sizes.table_bytes_max)?,
            unwritten: Unwritten::with_capacity(sizes.unwritten_max),
            unwritten_max: sizes.unwritten_max,
            last: runs.covered(),
            runs: Some(runs),
            removed,
        })
    }

    /// The names of runs that were there and could not be used.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// All documents up to this one are safe on the disk. After an opening it is from the next one on that they have to
    /// be inserted again.
    pub fn covered(&self) -> u32 {
        self.runs.as_ref().map_or(0, Runs::covered)
    }

    /// One answer for each fingerprint, in their order, in place of what was in `answers`.
    pub fn ask(&self, fingerprints: &[u64], answers: &mut Vec<Answer>) {
        self.table.ask(fingerprints, answers);
    }

    /// Whether memory knows of one.
    pub fn holds(&self, fingerprint: u64) -> bool {
        self.table.holds(fingerprint)
    }

    /// Says which are inserted next: a few at a time, memory works on all of them at once.
    pub fn touch(&self, fingerprints: impl Iterator<Item = u64>) {
        self.table.touch(fingerprints);
    }

    /// Takes in a URL that is new for certain. Documents come in the order of their numbers. This may write a run, or
    /// go on with merging others; if that fails, nothing was taken in. `InvalidData` means that a run went bad: open
    /// the set again, which throws it away.
    pub fn insert(&mut self, fingerprint: u64, doc_id: u32) -> io::Result<()> {
        assert!(doc_id > self.last, "documents come in the order of their numbers");
        if self.unwritten.len() >= self.unwritten_max {
            self.write_out()?;
        }
        if self.unwritten.len().is_multiple_of(INSERTS_PER_WORK)
            && let Some(runs) = &mut self.runs
        {
            runs.work(INSERTS_PER_WORK as u64 * MOVES_PER_INSERT)?;
        }
        let fingerprint = fingerprint.max(1);
        self.table.insert(fingerprint);
        self.unwritten.push(Entry { fingerprint, doc_id });
        self.last = doc_id;
        Ok(())
    }

    /// Remembers a fingerprint that the disk turned out to know.
    pub fn note(&mut self, fingerprint: u64) {
        self.table.insert(fingerprint);
    }

    /// Asks the disk about many at a time: sorts them by fingerprint, and marks those that are known.
    pub fn resolve(&mut self, queries: &mut [Query]) -> io::Result<()> {
        queries.sort_unstable_by_key(|query| query.fingerprint);
        queries.iter_mut().for_each(|query| query.known = false);
        self.unwritten.resolve(queries);
        self.runs.as_ref().map_or(Ok(()), |runs| runs.resolve(queries))
    }

    /// The document of a fingerprint. For people: it may look through all that is in no run yet.
    pub fn find(&self, fingerprint: u64) -> io::Result<Option<u32>> {
        let fingerprint = fingerprint.max(1);
        match (self.unwritten.find(fingerprint), &self.runs) {
            (None, Some(runs)) => runs.find(fingerprint),
            (found, _) => Ok(found),
        }
    }

    /// Makes finding quick, for a caller that finds many between what is inserted.
    pub fn order(&mut self) {
        self.unwritten.order();
    }

    /// Writes what is in no run yet into one.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.runs.as_mut().map_or(Ok(()), |runs| runs.work(MOVES_PER_FLUSH))
    }

    fn write_out(&mut self) -> io::Result<()> {
        if let Some(runs) = &mut self.runs
            && self.unwritten.len() > 0
        {
            runs.write(self.unwritten.sorted(), self.last)?;
            self.unwritten.clear();
        }
        Ok(())
    }

    /// What it may take of memory from here on. What it has, it keeps.
    pub fn bound(&mut self, bytes_max: usize) {
        if self.runs.is_some() {
            self.table.bound(bytes_max.saturating_sub(self.unwritten_max * size_of::<Entry>()));
        }
    }

    /// Gives memory back, if it has much more than it may have.
    pub fn shrink(&mut self, bytes_max: usize) -> io::Result<()> {
        let table_max = bytes_max.saturating_sub(self.unwritten_max * size_of::<Entry>());
        if self.runs.is_none() || self.table.bytes() / 5 * 4 <= table_max {
            return Ok(());
        }
        self.write_out()?;
        if let Some(runs) = &self.runs {
            self.table = SeenTable::new(0);
            self.table = load(runs, table_max)?;
        }
        Ok(())
    }

    /// Whether every question is answered without the disk.
    pub fn is_complete(&self) -> bool {
        self.table.is_complete()
    }

    pub fn ram_bytes(&self) -> usize {
        self.table.bytes() + self.unwritten.bytes()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.runs.as_ref().map_or(0, Runs::disk_bytes)
    }

    /// URLs known.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        self.runs.as_ref().map_or(0, Runs::count) + self.unwritten.len() as u64
    }
}

/// A table of what is in the runs. If there is no room for all, the newest are the likeliest to be asked for.
fn load(runs: &Runs, bytes_max: usize) -> io::Result<SeenTable> {
    let mut table = SeenTable::with_room_for(runs.count(), bytes_max);
    let mut loaded = 0;
    for run in runs.newest_first() {
        let mut pages = Pages::of(run);
        while let Some(page) = pages.advance()? {
            for entry in page.iter() {
                table.fill(entry.fingerprint);
            }
        }
        loaded += run.count();
        if !table.is_complete() && loaded >= table.places() as u64 {
            break;
        }
    }
    Ok(table)
}

/// Tells runs of one seed from those of another, and not what the seed is.
pub(super) fn seed_check(seed: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(b"nephila seen", seed)
}
