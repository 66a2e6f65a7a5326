use super::error::SearchError;
use super::fields::{Fields, VERSION, analyzers};
use super::known::Known;
use super::languages::{OTHER, code};
use super::library::{Committed, guarded, opened};
use super::source::{SearchDoc, SearchSource};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::Schema;
use tantivy::{Index, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};

/// Memory for stories that are not on disk yet: the more there is, the fewer segments are to be merged.
const MEMORY_BYTES: usize = 192 << 20;
/// A longer text is indexed up to here.
const TEXT_BYTES_MAX: usize = 1 << 20;
const TITLE_BYTES_MAX: usize = 4 << 10;
const NAME_BYTES_MAX: usize = 1 << 10;
/// A word in a title counts as so many in a text.
const TITLE_COUNTS: usize = 2;
/// Stories of one commit while an index is made anew.
const STORIES_PER_COMMIT: u64 = 100_000;

/// The index as its one writer has it.
pub struct StoryIndex {
    path: PathBuf,
    fields: Fields,
    writer: IndexWriter,
    known: Known,
    /// The place in the source behind what was added, and whether some of it is not committed.
    place: u64,
    is_ahead: bool,
}

/// What making an index anew came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Reindexed {
    pub stories: u64,
}

impl StoryIndex {
    /// Opens the index in a folder, or makes it there.
    pub fn open(path: &Path) -> Result<StoryIndex, SearchError> {
        guarded(path, || {
            let fields = Fields::new();
            let index = match opened(path, &fields) {
                Err(SearchError::None(_)) => made(path, &fields.schema)?,
                opened => opened?,
            };
            let told = |error| SearchError::told(path, error);
            let options = IndexWriterOptions::builder()
                .num_worker_threads(1)
                .num_merge_threads(1)
                .memory_budget_per_thread(MEMORY_BYTES)
                .build();
            let writer = index.writer_with_options(options).map_err(told)?;
            // Behind the lock: nobody commits between this and the first of ours.
            let committed = Committed::of(path, &index)?;
            let known = known(&index).map_err(told)?;
            Ok(StoryIndex {
                path: path.to_path_buf(),
                fields,
                writer,
                known,
                place: committed.place,
                is_ahead: false,
            })
        })
    }

    /// The place in the source up to which stories were added.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Adds a story; what the index had of it is replaced.
    pub fn add(&mut self, story: &SearchDoc) -> Result<(), SearchError> {
        let Self { fields, writer, known, .. } = self;
        if known.insert(story.story) {
            writer.delete_term(Term::from_field_u64(fields.story, story.story));
        }
        let language = code(&story.language);
        let text = fields.of_language(language.as_deref().unwrap_or(OTHER));
        let mut document = TantivyDocument::default();
        document.add_u64(fields.story, story.story);
        document.add_text(fields.source, cut(&story.source, NAME_BYTES_MAX).to_lowercase());
        document.add_text(fields.source_shown(), cut(&story.source, NAME_BYTES_MAX));
        document.add_text(fields.url, cut(&story.url, crate::limits::URL_BYTES_MAX));
        document.add_text(fields.title, cut(&story.title, TITLE_BYTES_MAX));
        if let Some(language) = &language {
            document.add_text(fields.language, language);
        }
        if let Some(published_s) = story.published_s {
            document.add_i64(fields.published, published_s);
        }
        for _ in 0..TITLE_COUNTS {
            document.add_text(text, cut(&story.title, TITLE_BYTES_MAX));
        }
        document.add_text(text, cut(&story.text, TEXT_BYTES_MAX));
        writer.add_document(document).map_err(|error| SearchError::told(&self.path, error))?;
        (self.place, self.is_ahead) = (story.after, true);
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

    /// Makes what was added durable and findable, together with its place.
    pub fn commit(&mut self) -> Result<(), SearchError> {
        if !self.is_ahead {
            return Ok(());
        }
        let payload = Committed { version: VERSION, place: self.place }.written();
        let mut prepared =
            self.writer.prepare_commit().map_err(|error| SearchError::told(&self.path, error))?;
        prepared.set_payload(&payload);
        prepared.commit().map_err(|error| SearchError::told(&self.path, error))?;
        self.is_ahead = false;
        Ok(())
    }

    /// Waits for segments that are being merged.
    pub fn close(self) -> Result<(), SearchError> {
        let path = self.path;
        self.writer.wait_merging_threads().map_err(|error| SearchError::told(&path, error))
    }

    /// Makes the index anew beside the old one, and puts it in its place when it is whole. The old one may be damaged.
    pub fn reindex(
        path: &Path,
        source: &mut dyn SearchSource,
        mut progress: impl FnMut(u64),
    ) -> Result<Reindexed, SearchError> {
        let disk = |error| SearchError::Disk(path.to_path_buf(), error);
        fs::create_dir_all(path).map_err(disk)?;
        let old = MmapDirectory::open(path).map_err(|error| SearchError::told(path, error.into()))?;
        let held = old
            .acquire_lock(&INDEX_WRITER_LOCK)
            .map_err(|error| SearchError::told(path, TantivyError::LockFailure(error, None)))?;
        let beside = path.with_extension("new");
        absent(&beside).map_err(disk)?;
        let stories = StoryIndex::make(&beside, source, &mut progress).inspect_err(|_| {
            // On a disk that is full, it would only be in the way.
            let _ = absent(&beside);
        })?;
        // Between the two there is none, which is said with its mend.
        let gone = path.with_extension("old");
        absent(&gone).map_err(disk)?;
        fs::rename(path, &gone).and_then(|()| fs::rename(&beside, path)).map_err(disk)?;
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

fn made(path: &Path, schema: &Schema) -> Result<Index, SearchError> {
    fs::create_dir_all(path).map_err(|error| SearchError::Disk(path.to_path_buf(), error))?;
    Index::builder()
        .schema(schema.clone())
        .tokenizers(analyzers())
        .create_in_dir(path)
        .map_err(|error| SearchError::told(path, error))
}

fn absent(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The stories that are in an index.
fn known(index: &Index) -> Result<Known, TantivyError> {
    let mut known = Known::default();
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
    for segment in reader.searcher().segment_readers() {
        let stories = segment.fast_fields().u64("story")?;
        for row in segment.doc_ids_alive() {
            for story in stories.values_for_doc(row) {
                known.insert(story);
            }
        }
    }
    Ok(known)
}

/// The beginning of a text, in whole characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
