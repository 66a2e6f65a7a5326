use super::buffer::StoryBuffer;
use super::error::SearchError;
use super::known::Known;
use super::manifest::{Listed, Manifest};
use super::policy::{Size, next_merge};
use super::segments::{Gone, Merge, Segment};
use super::source::{SearchDoc, SearchSource};
use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Memory for stories that are in no segment yet: the more there is, the less is to be merged.
const BUFFER_BYTES: usize = 192 << 20;
/// Stories of one commit while an index is made anew.
const STORIES_PER_COMMIT: u64 = 100_000;
/// What is merged at one time, beside what comes in.
const STEP_BYTES: u64 = if cfg!(test) { 500 } else { 4 << 20 };
/// The name of its own that a lock has in the folder.
const LOCK: &str = "lock";

/// The index as its one writer has it.
pub struct StoryIndex {
    path: PathBuf,
    _lock: File,
    buffer: StoryBuffer,
    /// From the oldest to the youngest. The last of them may not be committed yet.
    segments: Vec<Written>,
    committed: usize,
    committed_place: u64,
    known: Known,
    /// Stories that came again: what there was of them before is gone with the next commit.
    replaced: HashSet<u64>,
    /// The place in the source behind what was added, and whether some of it is not committed.
    place: u64,
    is_ahead: bool,
    merging: Option<Merging>,
    /// The number of the next file.
    next: u64,
}

struct Written {
    listed: Listed,
    segment: Arc<Segment>,
    gone: Option<Gone>,
}

impl Written {
    /// Writes what is gone into a file with that number.
    fn write_gone(&mut self, folder: &Path, number: u64) -> Result<(), SearchError> {
        let listed = Listed { gone: Some(number), ..self.listed };
        if let (Some(gone), Some(path)) = (&self.gone, listed.gone_path(folder)) {
            gone.write(&path).map_err(|error| SearchError::of_disk(folder, error))?;
            self.listed = listed;
        }
        Ok(())
    }
}

struct Merging {
    range: Range<usize>,
    into: Listed,
    merge: Merge,
}

/// What making an index anew came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Reindexed {
    pub stories: u64,
}

impl StoryIndex {
    /// Opens the index in a folder, or makes it there.
    pub fn open(path: &Path) -> Result<StoryIndex, SearchError> {
        let manifest = Manifest::read(path)?;
        let is_new = manifest.is_none();
        if is_new {
            crate::storage::make_directory(path).map_err(|error| SearchError::of_disk(path, error))?;
        }
        let lock = locked(path)?;
        // Behind the lock: nobody commits between this and the first of ours.
        let manifest = Manifest::read(path)?.unwrap_or_default();
        let mut index = StoryIndex {
            path: path.to_path_buf(),
            _lock: lock,
            buffer: StoryBuffer::new(),
            segments: Vec::with_capacity(manifest.segments.len()),
            committed: manifest.segments.len(),
            committed_place: manifest.place,
            known: Known::default(),
            replaced: HashSet::new(),
            place: manifest.place,
            is_ahead: false,
            merging: None,
            next: 1,
        };
        for listed in &manifest.segments {
            index.next = index.next.max(listed.number + 1).max(listed.gone.unwrap_or(0) + 1);
            let written = index.opened(*listed)?;
            let at = listed.path(path);
            let stories =
                written.segment.by_story().map_err(|error| SearchError::of_file(path, &at, error))?;
            stories.into_iter().for_each(|(story, _)| _ = index.known.insert(story));
            index.segments.push(written);
        }
        if is_new {
            index.write_manifest()?;
        }
        index.remove_unlisted()?;
        Ok(index)
    }

    fn opened(&self, listed: Listed) -> Result<Written, SearchError> {
        let at = listed.path(&self.path);
        let segment = Segment::open(&at).map_err(|error| SearchError::of_file(&self.path, &at, error))?;
        let gone = listed.gone_path(&self.path).map(|gone| {
            let read = Gone::read(&gone, segment.stories());
            read.map_err(|error| SearchError::of_file(&self.path, &gone, error))
        });
        Ok(Written { listed, segment: Arc::new(segment), gone: gone.transpose()? })
    }

    /// Removes what a killed writer left, and what is in no manifest any more.
    fn remove_unlisted(&self) -> Result<(), SearchError> {
        let listed = self.segments.iter().map(|written| written.listed);
        let kept: HashSet<PathBuf> = listed
            .flat_map(|listed| [Some(listed.path(&self.path)), listed.gone_path(&self.path)])
            .flatten()
            .collect();
        let disk = |error| SearchError::of_disk(&self.path, error);
        for entry in fs::read_dir(&self.path).map_err(disk)? {
            let path = entry.map_err(disk)?.path();
            let is_ours = path.extension().is_some_and(|ending| {
                ending == "segment" || ending == "gone" || ending == crate::storage::FRESH
            });
            if is_ours && !kept.contains(&path) {
                fs::remove_file(&path).map_err(disk)?;
            }
        }
        Ok(())
    }

    fn listed(&mut self) -> Listed {
        self.next += 1;
        Listed { number: self.next - 1, gone: None }
    }

    fn write_manifest(&self) -> Result<(), SearchError> {
        let segments = self.segments[..self.committed].iter().map(|written| written.listed).collect();
        Manifest { place: self.committed_place, segments }.write(&self.path)
    }

    /// The place in the source up to which stories were added.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Adds a story; what the index had of it is replaced.
    pub fn add(&mut self, story: &SearchDoc) -> Result<(), SearchError> {
        if self.known.insert(story.story) {
            self.replaced.insert(story.story);
        }
        self.buffer.add(story);
        (self.place, self.is_ahead) = (story.after, true);
        if self.buffer.bytes() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        Ok(())
    }

    /// Takes what a source has further on, at most so many stories, and says how many there were.
    pub fn take(&mut self, source: &mut dyn SearchSource, max: u64) -> Result<u64, SearchError> {
        if !source.seek(self.place).map_err(SearchError::Source)? {
            return Err(SearchError::OtherStories(self.path.clone()));
        }
        for taken in 0..max {
            match source.next().map_err(SearchError::Source)? {
                Some(story) => self.add(&story)?,
                None => {
                    self.place = source.place();
                    return Ok(taken);
                }
            }
        }
        Ok(max)
    }

    /// Writes what is in memory as a segment, which the next commit makes findable.
    fn write_buffer(&mut self) -> Result<(), SearchError> {
        if self.buffer.stories() == 0 {
            return Ok(());
        }
        let listed = self.listed();
        let at = listed.path(&self.path);
        self.buffer.write(&at).map_err(|error| SearchError::of_disk(&self.path, error))?;
        let written = self.opened(listed)?;
        self.segments.push(written);
        Ok(())
    }

    /// Makes what was added durable and findable, together with its place.
    pub fn commit(&mut self) -> Result<(), SearchError> {
        if !self.is_ahead {
            return Ok(());
        }
        self.write_buffer()?;
        let before = self.replace()?;
        (self.committed, self.committed_place) = (self.segments.len(), self.place);
        self.write_manifest()?;
        self.is_ahead = false;
        self.remove(&before);
        Ok(())
    }

    /// Marks what was replaced as gone; says which files are of no use then.
    fn replace(&mut self) -> Result<Vec<PathBuf>, SearchError> {
        let replaced = std::mem::take(&mut self.replaced);
        // Each story with its segment and its number there: the last one is as it is now.
        let mut found: Vec<(u64, usize, u32)> = Vec::new();
        for (at, written) in self.segments.iter().enumerate() {
            let here = written.segment.numbers_of(&replaced);
            let path = written.listed.path(&self.path);
            let here = here.map_err(|error| SearchError::of_file(&self.path, &path, error))?;
            found.extend(here.into_iter().map(|(story, number)| (story, at, number)));
        }
        found.sort_unstable();
        let mut changed = vec![false; self.segments.len()];
        for (_, at, number) in found.windows(2).filter(|two| two[0].0 == two[1].0).map(|two| two[0]) {
            let Written { segment, gone, .. } = &mut self.segments[at];
            changed[at] |= gone.get_or_insert_with(|| Gone::of(segment.stories())).insert(number);
        }
        let mut before = Vec::new();
        for at in (0..changed.len()).filter(|at| changed[*at]) {
            let number = self.listed().number;
            before.extend(self.segments[at].listed.gone_path(&self.path));
            self.segments[at].write_gone(&self.path, number)?;
        }
        Ok(before)
    }

    /// What cannot be removed is removed by the next one that opens the index.
    fn remove(&self, files: &[PathBuf]) {
        files.iter().for_each(|file| _ = fs::remove_file(file));
    }

    /// Merges a part of what is to be merged; false if there is nothing.
    pub fn tend(&mut self) -> Result<bool, SearchError> {
        if self.merging.is_none() && !self.begin_merge()? {
            return Ok(false);
        }
        let step = self.merging.as_mut().map_or(Ok(false), |merging| merging.merge.step(STEP_BYTES));
        let is_whole = step.map_err(|error| {
            self.merging = None;
            SearchError::of_disk(&self.path, error)
        })?;
        if is_whole {
            self.end_merge()?;
        }
        Ok(true)
    }

    fn begin_merge(&mut self) -> Result<bool, SearchError> {
        let size = |written: &Written| Size {
            stories: written.segment.stories(),
            gone: written.gone.as_ref().map_or(0, Gone::count),
            bytes: written.segment.bytes(),
        };
        let sizes: Vec<Size> = self.segments[..self.committed].iter().map(size).collect();
        let Some(range) = next_merge(&sizes) else { return Ok(false) };
        let into = self.listed();
        let inputs = self.segments[range.clone()].iter();
        let inputs = inputs.map(|written| (written.segment.clone(), written.gone.clone())).collect();
        let merge = Merge::new(&into.path(&self.path), inputs);
        let merge = merge.map_err(|error| SearchError::of_disk(&self.path, error))?;
        self.merging = Some(Merging { range, into, merge });
        Ok(true)
    }

    /// Puts the merged segment in place of those that it was made of.
    fn end_merge(&mut self) -> Result<(), SearchError> {
        let Some(Merging { range, into, merge }) = self.merging.take() else { return Ok(()) };
        // What was replaced since it was begun.
        let gone: Vec<Option<Gone>> =
            self.segments[range.clone()].iter().map(|written| written.gone.clone()).collect();
        let gone: Vec<u32> = merge.gone_since(&gone).collect();
        merge.finish().map_err(|error| SearchError::of_disk(&self.path, error))?;
        let mut written = self.opened(into)?;
        let stories = written.segment.stories();
        if !gone.is_empty() {
            let all = written.gone.insert(Gone::of(stories));
            gone.into_iter().for_each(|number| _ = all.insert(number));
            let number = self.listed().number;
            written.write_gone(&self.path, number)?;
        }
        self.committed -= range.len() - 1;
        let before: Vec<Written> = self.segments.splice(range, [written]).collect();
        self.write_manifest()?;
        let files = before.iter().map(|written| written.listed);
        let files: Vec<PathBuf> = files
            .flat_map(|listed| [Some(listed.path(&self.path)), listed.gone_path(&self.path)])
            .flatten()
            .collect();
        self.remove(&files);
        Ok(())
    }

    /// Merges all that is to be merged.
    pub fn close(mut self) -> Result<(), SearchError> {
        while self.tend()? {}
        Ok(())
    }

    /// Makes the index anew beside the old one, and puts it in its place when it is whole. The old one may be damaged.
    pub fn reindex(
        path: &Path,
        source: &mut dyn SearchSource,
        mut progress: impl FnMut(u64),
    ) -> Result<Reindexed, SearchError> {
        let disk = |error| SearchError::Disk(path.to_path_buf(), error);
        fs::create_dir_all(path).map_err(disk)?;
        let held = locked(path)?;
        let beside = path.with_extension("new");
        absent(&beside).map_err(disk)?;
        let stories = StoryIndex::make(&beside, source, &mut progress).inspect_err(|_| {
            // On a disk that is full, it would only be in the way.
            let _ = absent(&beside);
        })?;
        // Between the two there is none, which is said with its mend.
        let gone = path.with_extension("old");
        absent(&gone).map_err(disk)?;
        fs::rename(path, &gone).map_err(disk)?;
        if let Err(error) = fs::rename(&beside, path) {
            // The old one is better than none.
            let _ = fs::rename(&gone, path);
            return Err(disk(error));
        }
        crate::storage::sync_parent(path).map_err(disk)?;
        drop(held);
        absent(&gone).map_err(disk)?;
        Ok(Reindexed { stories })
    }

    /// Makes an index where there is none; says of how many stories.
    fn make(
        path: &Path,
        source: &mut dyn SearchSource,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, SearchError> {
        let mut index = StoryIndex::open(path)?;
        let mut stories = 0;
        loop {
            let taken = index.take(source, STORIES_PER_COMMIT)?;
            stories += taken;
            progress(stories);
            if taken < STORIES_PER_COMMIT {
                break;
            }
            index.commit()?;
        }
        // An index of no stories has a place, too.
        index.is_ahead = true;
        index.commit()?;
        index.close()?;
        Ok(stories)
    }
}

/// The lock of the one writer.
fn locked(path: &Path) -> Result<File, SearchError> {
    let disk = |error| SearchError::of_disk(path, error);
    let lock =
        File::options().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(disk)?;
    let is_there = |lock: &File| {
        let there = fs::metadata(path.join(LOCK)).and_then(|there| Ok((there.ino(), lock.metadata()?.ino())));
        there.is_ok_and(|(there, held)| there == held)
    };
    match lock.try_lock() {
        Ok(()) if is_there(&lock) => Ok(lock),
        // The index was made anew in between.
        Ok(()) => Err(SearchError::InUse(path.to_path_buf())),
        Err(TryLockError::WouldBlock) => Err(SearchError::InUse(path.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(disk(error)),
    }
}

fn absent(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
