use super::best::Best;
use super::clauses::{Asked, asked};
use super::conditions::Conditions;
use super::error::SearchError;
use super::fields::{Fields, VERSION, analyzers};
use super::query::{QueryError, SearchQuery};
use crate::base::{Workers, shown};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tantivy::directory::error::OpenReadError;
use tantivy::query::{EnableScoring, Weight};
use tantivy::schema::{Field, Value};
use tantivy::{
    DocAddress, Index, IndexReader, ReloadPolicy, Score, Searcher, SegmentReader, TantivyDocument,
    TantivyError,
};

/// Hits of one question.
const HITS_MAX: usize = 1_000;
/// Work is shared where more stories than that may have all words: fewer are looked through while another begins.
const STORIES_SHARED: u64 = if cfg!(test) { 1 } else { 20_000 };

/// The index as readers have it: what was committed when it was opened, whoever writes meanwhile.
pub(crate) struct Library {
    path: PathBuf,
    fields: Fields,
    index: Index,
    reader: IndexReader,
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

impl Library {
    pub fn open(path: &Path) -> Result<Library, SearchError> {
        guarded(path, || {
            let fields = Fields::new();
            let index = opened(path, &fields)?;
            Committed::of(path, &index)?;
            let reader = index
                .reader_builder()
                .reload_policy(ReloadPolicy::Manual)
                .try_into()
                .map_err(|error| SearchError::told(path, error))?;
            Ok(Library { path: path.to_path_buf(), fields, index, reader })
        })
    }

    /// The stories that answer a question best, the best first. The work is shared where many stories may do.
    pub fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        workers: &dyn Workers,
    ) -> Result<Vec<Hit>, FindError> {
        let asked = asked(query, &self.fields)?;
        let limit = limit.clamp(1, HITS_MAX);
        Ok(guarded(&self.path, || {
            let searcher = self.reader.searcher();
            let best = best_of(&searcher, &asked, limit, workers);
            let hits = best.and_then(|best| {
                best.into_iter()
                    .map(|(score, address)| Ok(self.hit(score, &searcher.doc(address)?)))
                    .collect::<Result<_, TantivyError>>()
            });
            hits.map_err(|error| SearchError::told(&self.path, error))
        })?)
    }

    fn hit(&self, score: f32, document: &TantivyDocument) -> Hit {
        let value = |field: Field| document.get_first(field);
        let text = |field| value(field).and_then(|value| value.as_str()).unwrap_or_default().to_string();
        let fields = &self.fields;
        Hit {
            story: value(fields.story).and_then(|value| value.as_u64()).unwrap_or(0),
            score,
            source: text(fields.source_shown()),
            language: text(fields.language),
            published_s: value(fields.published).and_then(|value| value.as_i64()),
            title: text(fields.title),
            url: text(fields.url),
        }
    }

    /// What the index comes to, after every byte of it was compared with its checksum.
    pub fn checked(&self) -> Result<SearchFacts, SearchError> {
        guarded(&self.path, || {
            let told = |error| SearchError::told(&self.path, error);
            if let Some(file) = self.index.validate_checksum().map_err(told)?.into_iter().next() {
                let said = format!("the checksum of {} is wrong", file.display());
                return Err(SearchError::Damaged(self.path.clone(), said));
            }
            let searcher = self.reader.searcher();
            let bytes = searcher.space_usage().map_err(|error| told(TantivyError::from(error)))?.total();
            let (stories, replaced) =
                searcher.segment_readers().iter().fold((0, 0), |(alive, gone), segment| {
                    (alive + u64::from(segment.num_docs()), gone + u64::from(segment.num_deleted_docs()))
                });
            Ok(SearchFacts {
                stories,
                replaced,
                segments: searcher.segment_readers().len(),
                bytes: bytes.get_bytes(),
                place: Committed::of(&self.path, &self.index)?.place,
            })
        })
    }
}

/// The best of what is found in any language; equals are in the order of the index. What was found already tells what need not be
/// looked at, in whatever language and segment.
fn best_of(
    searcher: &Searcher,
    asked: &[Asked],
    limit: usize,
    workers: &dyn Workers,
) -> Result<Vec<(Score, DocAddress)>, TantivyError> {
    let best = Best::new(limit);
    for asked in asked {
        let stories = asked.stories_at_most(searcher)?;
        if stories == 0 {
            continue;
        }
        let slacks = slacks(searcher, asked.field)?;
        let mut segments: Vec<_> = (0..).zip(slacks).zip(searcher.segment_readers()).collect();
        segments.sort_by_key(|(_, segment)| std::cmp::Reverse(segment.max_doc()));
        let weight = asked.query.weight(EnableScoring::enabled_from_searcher(searcher))?;
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let look = |_| {
            while let Some((of_segment, segment)) = segments.get(next.fetch_add(1, Relaxed)) {
                if let Err(error) = look_through(segment, *of_segment, (asked, &*weight), &best) {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        };
        match stories < STORIES_SHARED || asked.is_one_word {
            true => look(0),
            false => workers.each(&look),
        }
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
    }
    Ok(best.into_sorted())
}

/// Puts those of a segment that answer to the best.
fn look_through(
    segment: &SegmentReader,
    (number, slack): (u32, Score),
    (asked, weight): (&Asked, &dyn Weight),
    best: &Best,
) -> Result<(), TantivyError> {
    let Some(mut conditions) = Conditions::here(asked, segment)? else { return Ok(()) };
    let alive = segment.alive_bitset();
    let too_little = || {
        let worst = best.worst();
        if worst > 0.0 { worst * slack } else { worst }
    };
    weight.for_each_pruning(too_little(), segment, &mut |story, score| {
        let is_good = score >= best.worst() && alive.is_none_or(|alive| alive.is_alive(story));
        if is_good && conditions.hold(story) {
            best.put(score, DocAddress::new(number, story));
        }
        too_little()
    })
}

/// What a block of stories says of its best is by the mean length of texts in its segment, and scores are by that in all of
/// them: a block may have a story that is better by as much as the two differ. Beside it, sums are rounded.
fn slacks(searcher: &Searcher, field: Field) -> Result<Vec<Score>, TantivyError> {
    const ROUNDING: f64 = 1e-5;
    let lengths = searcher.segment_readers().iter().map(|segment| {
        let tokens = segment.inverted_index(field)?.total_num_tokens();
        Ok((tokens as f64, f64::from(segment.max_doc())))
    });
    let lengths: Vec<(f64, f64)> = lengths.collect::<Result<_, TantivyError>>()?;
    let all = lengths.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let slack = |(tokens, stories): (f64, f64)| {
        let ratio = (tokens * all.1) / (stories * all.0);
        let slack = ratio.min(1.0 / ratio) * (1.0 - ROUNDING);
        if slack.is_finite() { slack as Score } else { 0.0 }
    };
    Ok(lengths.into_iter().map(slack).collect())
}

/// Why nothing can be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Index(#[from] SearchError),
}

/// What a commit says beside its segments.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Committed {
    pub version: u32,
    pub place: u64,
}

impl Committed {
    /// The last one; that of an index without any is the beginning.
    pub fn of(path: &Path, index: &Index) -> Result<Committed, SearchError> {
        let metas = index.load_metas().map_err(|error| SearchError::told(path, error))?;
        let Some(payload) = metas.payload else { return Ok(Committed { version: VERSION, place: 0 }) };
        let committed: Committed = serde_json::from_str(&payload)
            .map_err(|error| SearchError::Damaged(path.to_path_buf(), shown(&error.to_string(), 200)))?;
        match committed.version == VERSION {
            true => Ok(committed),
            false => Err(SearchError::OtherVersion(path.to_path_buf())),
        }
    }

    pub fn written(&self) -> String {
        format!("{{\"version\":{},\"place\":{}}}", self.version, self.place)
    }
}

/// The index that is in a folder, if it is one of ours.
pub(super) fn opened(path: &Path, fields: &Fields) -> Result<Index, SearchError> {
    let mut index = Index::open_in_dir(path).map_err(|error| match error {
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(file)) if file.ends_with("meta.json") => {
            SearchError::None(path.to_path_buf())
        }
        error => SearchError::told(path, error),
    })?;
    if index.schema() != fields.schema {
        return Err(SearchError::OtherVersion(path.to_path_buf()));
    }
    index.set_tokenizers(analyzers());
    Ok(index)
}

/// The library underneath trusts its files: what a damaged one makes it panic over is said like any other damage.
pub(super) fn guarded<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, SearchError>,
) -> Result<T, SearchError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(SearchError::Damaged(path.to_path_buf(), shown(said(&*panic), 200))))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it cannot be read")
}
