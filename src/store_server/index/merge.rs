use super::file::{self, IndexFile, List};
use crate::storage::runs::Merge;
use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many indexes become one.
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
    let lists = List::ALL.map(|list| sources.iter().map(|source| source.entries(list).map(Ok)).collect());
    let [urls, documents, digests] = lists.map(Merge::new);
    file::write(&path, &covered, counts, [urls?, documents?, digests?])?;
    Ok(path)
}
