use super::best::{Best, Score, StoryAt};
use super::error::SearchError;
use super::fields::LANGUAGES;
use super::manifest::Manifest;
use super::query::{QueryError, SearchQuery};
use super::question::Question;
use super::rank::{Ranks, weight};
use super::segments::{Gone, Segment, Shown};
use super::walk::Part;
use crate::base::Workers;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Hits of one question.
const HITS_MAX: usize = 1_000;
/// Work is shared where more stories than that may have all words: fewer are looked through while another begins.
const STORIES_SHARED: u64 = if cfg!(test) { 1 } else { 20_000 };
/// A writer may put other segments in place of some while they are opened: so often it is looked again.
const OPENINGS: u32 = 20;

/// The index as readers have it: what was committed when it was opened, whoever writes meanwhile.
pub(crate) struct Library {
    path: PathBuf,
    place: u64,
    segments: Vec<(PathBuf, Segment, Option<Gone>)>,
    /// By the mean length of stories in each language.
    ranks: [Ranks; LANGUAGES],
}

/// A story that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Hit {
    pub story: u64,
    pub score: f32,
    pub source: String,
    pub language: String,
    pub published_s: Option<i64>,
    pub title: String,
    pub url: String,
}

/// What an index comes to.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SearchFacts {
    pub stories: u64,
    /// Replaced, and not yet merged away.
    pub replaced: u64,
    pub segments: usize,
    pub bytes: u64,
    /// The place in the texts up to which they are indexed.
    pub place: u64,
}

/// Why nothing can be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Index(#[from] SearchError),
}

impl Library {
    pub fn open(path: &Path) -> Result<Library, SearchError> {
        let read = || Manifest::read(path)?.ok_or_else(|| SearchError::None(path.to_path_buf()));
        let mut manifest = read()?;
        for _ in 0..OPENINGS {
            let opened = Library::open_at(path, &manifest);
            let now = read()?;
            // Numbers of files begin anew with an index that is made anew.
            if now == manifest {
                return opened;
            }
            manifest = now;
        }
        Library::open_at(path, &manifest)
    }

    fn open_at(path: &Path, manifest: &Manifest) -> Result<Library, SearchError> {
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for listed in &manifest.segments {
            let at = listed.path(path);
            let segment = Segment::open(&at).map_err(|error| SearchError::of_file(path, &at, error))?;
            let gone = listed.gone_path(path).map(|gone| {
                let read = Gone::read(&gone, segment.stories());
                read.map_err(|error| SearchError::of_file(path, &gone, error))
            });
            segments.push((at, segment, gone.transpose()?));
        }
        let mean = |language: usize| {
            let of_language = segments.iter().map(|(_, segment, _)| segment.languages()[language]);
            let all =
                of_language.fold((0, 0), |all, one| (all.0 + u64::from(one.stories), all.1 + one.words));
            Ranks::new(all.1 as f32 / all.0.max(1) as f32)
        };
        let ranks = std::array::from_fn(mean);
        Ok(Library { path: path.to_path_buf(), place: manifest.place, segments, ranks })
    }

    /// The stories that answer a question best, the best first. The work is shared where many stories may do.
    pub fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        workers: &dyn Workers,
    ) -> Result<Vec<Hit>, FindError> {
        let Some(question) = Question::new(query)? else { return Ok(Vec::new()) };
        let best = Best::new(limit.clamp(1, HITS_MAX));
        let parts = self.parts(&question)?;
        let ranges: Vec<_> =
            parts.iter().flat_map(|part| part.ranges(&question).map(move |range| (part, range))).collect();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let look = |_| {
            while let Some((part, range)) = ranges.get(next.fetch_add(1, Relaxed)) {
                if let Err(error) = part.look_through(range.clone(), &question, &best) {
                    let error = self.told(part.number, error);
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        };
        let stories: u64 = parts.iter().map(|part| u64::from(part.stories_at_most())).sum();
        // Few of the stories that have a single word are looked at.
        let is_one_word = question.is_one_word();
        match stories < STORIES_SHARED || is_one_word {
            true => look(0),
            false => workers.each(&look),
        }
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let hits = best.into_sorted().into_iter().map(|(score, at)| self.hit(score, at));
        Ok(hits.collect::<Result<_, SearchError>>()?)
    }

    /// Where there are stories with all words, the most first.
    fn parts<'a>(&'a self, question: &'a Question) -> Result<Vec<Part<'a>>, SearchError> {
        let mut parts: Vec<Part<'a>> = Vec::new();
        // Stories that have a word as it was typed, in whatever language.
        let mut having: Vec<u64> = Vec::new();
        for (number, (_, segment, gone)) in (0..).zip(&self.segments) {
            for asked in &question.languages {
                if segment.languages()[asked.language].stories == 0 {
                    continue;
                }
                let found: Result<Vec<_>, _> =
                    asked.words.iter().map(|word| segment.dictionary().find(word)).collect();
                let found = found.map_err(|error| self.told(number, error))?;
                having.resize(asked.typed.len(), 0);
                for (having, word) in having.iter_mut().zip(&asked.typed) {
                    let found = word.and_then(|word| found[word]);
                    *having += found.map_or(0, |found| u64::from(found.stories));
                }
                let ranks = &self.ranks[asked.language];
                if let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() {
                    let gone = gone.as_ref();
                    parts.push(Part { number, segment, gone, asked, found, weights: Vec::new(), ranks });
                }
            }
        }
        let stories = self.segments.iter().map(|(_, segment, _)| u64::from(segment.stories())).sum();
        for part in &mut parts {
            // A word weighs what it does as it was typed first.
            let typed = |word| part.asked.typed.iter().position(|typed| *typed == Some(word)).unwrap_or(0);
            part.weights = (0..part.found.len()).map(|word| weight(having[typed(word)], stories)).collect();
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.stories_at_most()));
        Ok(parts)
    }

    fn hit(&self, score: Score, at: StoryAt) -> Result<Hit, SearchError> {
        let (_, segment, _) = &self.segments[at.segment as usize];
        let shown = segment.shown(at.story).map_err(|error| self.told(at.segment, error))?;
        let Shown { story, published_s, language, source, title, url } = shown;
        Ok(Hit { story, score, source, language, published_s, title, url })
    }

    fn told(&self, segment: u32, error: io::Error) -> SearchError {
        SearchError::of_file(&self.path, &self.segments[segment as usize].0, error)
    }

    /// What the index comes to, after every byte of it was compared with its checksum.
    pub fn checked(&self) -> Result<SearchFacts, SearchError> {
        let mut facts = SearchFacts {
            stories: 0,
            replaced: 0,
            segments: self.segments.len(),
            bytes: 0,
            place: self.place,
        };
        for (number, (_, segment, gone)) in (0..).zip(&self.segments) {
            segment.check().map_err(|error| self.told(number, error))?;
            let replaced = gone.as_ref().map_or(0, Gone::count);
            facts.stories += u64::from(segment.stories().saturating_sub(replaced));
            facts.replaced += u64::from(replaced);
            facts.bytes += segment.bytes();
        }
        Ok(facts)
    }
}
