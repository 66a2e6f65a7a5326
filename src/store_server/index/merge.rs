use super::entry::Entry;
use super::file::{self, IndexFile, List};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// So many indexes become one.
pub const FAN_IN: usize = 16;

/// A merged index, by its name.
#[derive(Clone, Debug)]
pub struct RunFile {
    pub tier: u32,
    pub path: PathBuf,
}

/// The runs of a directory, the largest first.
pub fn runs_of(segments: &Path) -> io::Result<Vec<RunFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(segments)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "run") {
            continue;
        }
        let tier = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('-'));
        if let Some(tier) = tier.and_then(|(tier, _)| tier.parse().ok()) {
            found.push(RunFile { tier, path });
        }
    }
    found.sort_by(|a, b| (Reverse(a.tier), &a.path).cmp(&(Reverse(b.tier), &b.path)));
    Ok(found)
}

/// Merges indexes into a run of the given tier, and returns its path. The sources are left as they are.
pub fn merge(segments: &Path, tier: u32, sources: &[IndexFile]) -> io::Result<PathBuf> {
    let mut covered: Vec<(u64, u64)> = sources.iter().flat_map(|source| source.segments()).copied().collect();
    covered.sort_unstable();
    let (first, last) = (covered.first().map_or(0, |c| c.0), covered.last().map_or(0, |c| c.0));
    let path = segments.join(format!("{tier}-{first:010}-{last:010}.run"));
    let counts = List::ALL.map(|list| sources.iter().map(|source| source.entries(list).len()).sum());
    let lists =
        List::ALL.map(|list| Merged::new(sources.iter().map(|source| source.entries(list)).collect()));
    file::write(&path, &covered, counts, lists)?;
    Ok(path)
}

/// Sorted lists as one.
struct Merged<I> {
    sources: Vec<I>,
    heads: BinaryHeap<Reverse<Head>>,
}

/// The first entry of a source, in the order of an index.
struct Head {
    entry: Entry,
    source: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.entry.order().cmp(&other.entry.order()).then(self.source.cmp(&other.source))
    }
}

impl<I: Iterator<Item = Entry>> Merged<I> {
    fn new(mut sources: Vec<I>) -> Merged<I> {
        let heads = sources.iter_mut().enumerate();
        let heads = heads
            .filter_map(|(source, entries)| entries.next().map(|entry| Reverse(Head { entry, source })))
            .collect();
        Merged { sources, heads }
    }
}

impl<I: Iterator<Item = Entry>> Iterator for Merged<I> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let mut top = self.heads.peek_mut()?;
        let Reverse(Head { entry, source }) = &mut *top;
        let taken = *entry;
        match self.sources[*source].next() {
            Some(next) => *entry = next,
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        Some(taken)
    }
}
