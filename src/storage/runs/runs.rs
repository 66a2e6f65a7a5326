use super::merging::Merging;
use super::page::Entry;
use super::query::Query;
use super::run::{Run, RunHead, Span};
use super::writer::RunWriter;
use crate::storage::files::FRESH;
use std::cmp::Ordering;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The runs of a folder, the oldest first. Together they tell of every document from the first to [`Runs::covered`],
/// each in one of them.
///
/// Eight runs of one tier become one, so that there are never many to ask, and an entry is written again once in a
/// tier. That is done bit by bit, as entries come in. The merged run is durable before those it was made of are
/// removed. What a crash leaves of them lies within its span, and is removed at the next opening.
pub(crate) struct Runs {
    folder: PathBuf,
    seed_check: u64,
    list: Vec<Arc<Run>>,
    /// Runs of these places are becoming one. Others may come after them meanwhile.
    merging: Option<(Merging, Range<usize>)>,
}

/// Runs of one tier that become one.
const TIER_RUNS: usize = 8;
/// The most entries that a run of the lowest tier has; each tier has eight times as many as the one below.
const TIER_ENTRIES: u64 = if cfg!(test) { 16 } else { 4_096 };
/// Above this the merges are waited for: each run holds a descriptor, and is one more to ask.
const RUNS_MAX: usize = 64;
/// Listings that are tried. Runs vanish under one only while the writer merges, which it does not do that often.
const TRIES: usize = 8;

impl Runs {
    /// Reads every run of the folder. Those that are broken, of another seed, or behind a gap are removed, and named.
    pub fn open(folder: &Path, seed_check: u64) -> io::Result<(Runs, Vec<String>)> {
        remove_fresh(folder)?;
        let (list, unused) = open_all(folder, |span| {
            let run = Run::open(folder, span, seed_check)?;
            run.verify().map(|()| run)
        })?;
        let mut removed = Vec::new();
        for (span, why) in unused {
            fs::remove_file(folder.join(span.name()))?;
            removed.extend((why != Unused::Within).then(|| span.name()));
        }
        Ok((Runs { folder: folder.to_path_buf(), seed_check, list, merging: None }, removed))
    }

    /// Opens the runs of a folder that another process may be writing to, and changes nothing there. A run that is broken,
    /// and all that come after it, are as if they were not there. Runs that are merged and removed later stay open.
    pub fn open_read_only(folder: &Path, seed_check: u64) -> io::Result<Runs> {
        let mut runs = Runs { folder: folder.to_path_buf(), seed_check, list: Vec::new(), merging: None };
        for _ in 0..TRIES {
            let (list, unused) = open_all(folder, |span| Run::open(folder, span, seed_check))?;
            if covered(&list) >= runs.covered() {
                runs.list = list;
            }
            if unused.iter().all(|&(_, why)| why != Unused::Gap) {
                break;
            }
        }
        Ok(runs)
    }

    /// Every document up to this one is in a run.
    pub fn covered(&self) -> u32 {
        covered(&self.list)
    }

    pub fn count(&self) -> u64 {
        self.list.iter().map(|run| run.count()).sum()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.list.iter().map(|run| run.bytes()).sum()
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &Run> {
        self.list.iter().rev().map(Arc::as_ref)
    }

    /// Writes the documents after those covered, up to `last`: sorted by fingerprint.
    pub fn write(&mut self, entries: &[Entry], last: u32) -> io::Result<()> {
        let span = Span { first: self.covered() + 1, last };
        let head = RunHead { seed_check: self.seed_check, span, count: entries.len() as u64 };
        let mut writer = RunWriter::create(&self.folder, head)?;
        entries.iter().try_for_each(|&entry| writer.push(entry))?;
        self.list.push(Arc::new(writer.finish()?));
        Ok(())
    }

    /// Does what is to be merged, but moves no more than `entries_max` entries.
    pub fn work(&mut self, entries_max: u64) -> io::Result<()> {
        let mut left = if self.list.len() > RUNS_MAX { u64::MAX } else { entries_max };
        while left > 0 {
            // A merge that fails is dropped, and its file with it.
            let (mut merging, range) = match (self.merging.take(), self.to_merge()) {
                (Some(merging), _) => merging,
                (None, Some(range)) => (Merging::begin(&self.folder, &self.list[range.clone()])?, range),
                (None, None) => return Ok(()),
            };
            match merging.step(&mut left)? {
                true => self.replace(range, merging.finish()?)?,
                false => self.merging = Some((merging, range)),
            }
        }
        Ok(())
    }

    fn replace(&mut self, range: Range<usize>, merged: Run) -> io::Result<()> {
        let old: Vec<Arc<Run>> = self.list.splice(range, [Arc::new(merged)]).collect();
        old.iter().try_for_each(|run| fs::remove_file(self.folder.join(run.span().name())))
    }

    /// Eight runs of a tier, and smaller ones between them, that no larger one divides.
    fn to_merge(&self) -> Option<Range<usize>> {
        let tiers: Vec<u32> = self.list.iter().map(|run| tier_of(run.count())).collect();
        let in_tier = |tier: u32| {
            let (mut first, mut found) = (0, 0);
            for (index, of_run) in tiers.iter().enumerate() {
                match of_run.cmp(&tier) {
                    Ordering::Greater => found = 0,
                    Ordering::Less => {}
                    Ordering::Equal => {
                        first = if found == 0 { index } else { first };
                        found += 1;
                        if found == TIER_RUNS {
                            return Some(first..index + 1);
                        }
                    }
                }
            }
            None
        };
        let highest = tiers.iter().copied().max()?;
        let too_many = (tiers.len() > RUNS_MAX).then_some(RUNS_MAX / 2..tiers.len());
        (0..=highest).find_map(in_tier).or(too_many)
    }

    /// Marks those of the queries, sorted by fingerprint, that are in a run.
    pub fn resolve(&self, queries: &mut [Query]) -> io::Result<()> {
        self.newest_first().try_for_each(|run| run.resolve(queries))
    }

    /// The document of a fingerprint, from the newest run that has it.
    pub fn find(&self, fingerprint: u64) -> io::Result<Option<u32>> {
        for run in self.newest_first() {
            if let Some(doc_id) = run.find(fingerprint)? {
                return Ok(Some(doc_id));
            }
        }
        Ok(None)
    }
}

/// Why a run that a folder names is of no use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unused {
    /// Others have all of it.
    Within,
    Broken,
    /// It vanished, or documents before it are in no run.
    Gap,
}

type UnusedRuns = Vec<(Span, Unused)>;

/// Opens the runs of a folder, as far as they tell of every document, and names those that are of no use.
fn open_all(
    folder: &Path,
    open: impl Fn(Span) -> io::Result<Run>,
) -> io::Result<(Vec<Arc<Run>>, UnusedRuns)> {
    let (mut list, mut unused) = (Vec::new(), Vec::new());
    for span in spans(folder)? {
        let why = match covered(&list) {
            covered if span.last <= covered => Unused::Within,
            covered if span.first != covered.saturating_add(1) => Unused::Gap,
            _ => match open(span) {
                Ok(run) => {
                    list.push(Arc::new(run));
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::InvalidData => Unused::Broken,
                Err(e) if e.kind() == io::ErrorKind::NotFound => Unused::Gap,
                Err(e) => return Err(e),
            },
        };
        unused.push((span, why));
    }
    Ok((list, unused))
}

/// Every document up to this one is in a run.
fn covered(list: &[Arc<Run>]) -> u32 {
    list.last().map_or(0, |run| run.span().last)
}

/// The runs that a folder names, in the order of their documents; of those that begin together the longest first, for
/// it was made of the others.
fn spans(folder: &Path) -> io::Result<Vec<Span>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        found.extend(entry?.file_name().to_str().and_then(Span::of_name));
    }
    found.sort_by_key(|span| (span.first, std::cmp::Reverse(span.last)));
    Ok(found)
}

/// Runs that were never finished.
fn remove_fresh(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let run = path.with_extension("run");
        let is_run = run.file_name().and_then(|name| name.to_str()).and_then(Span::of_name).is_some();
        if is_run && path.extension().is_some_and(|ending| ending == FRESH) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn tier_of(count: u64) -> u32 {
    let mut tier = 0;
    let mut entries_max = TIER_ENTRIES;
    while count > entries_max {
        tier += 1;
        entries_max *= TIER_RUNS as u64;
    }
    tier
}
