use super::search::AskArgs;
use super::shared::{Failure, say, sized, stream, tell, write_json};
use crate::base::{rfc3339, shown};
use crate::engine::{StoryTexts, Threads, search_folder};
use crate::feeds::StoriesView;
use crate::search::{FindError, Hit, Library, SearchFacts, SearchQuery, StoryIndex};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Characters of a title and a name that are shown.
const SHOWN_CHARS: usize = 200;

/// One line of `search --json`.
#[derive(Serialize)]
struct Listed<'a> {
    story: u64,
    score: f32,
    source: &'a str,
    language: Option<&'a str>,
    published_at: Option<String>,
    title: &'a str,
    url: &'a str,
}

/// A question is answered by so many.
pub(super) const THREADS_MAX: usize = 4;

pub(super) fn ask(asked: &AskArgs) -> Result<(), Failure> {
    let mut query = SearchQuery::parse(&asked.words.join(" ")).map_err(Failure::usage)?;
    for name in &asked.source {
        query = query.of_source(name).map_err(Failure::usage)?;
    }
    for names in &asked.lang {
        query = query.in_languages(names).map_err(Failure::usage)?;
    }
    let seconds = |ms: Option<u64>| ms.map(|ms| (ms / 1_000) as i64);
    let query = query.published(seconds(asked.since), seconds(asked.until)).map_err(Failure::usage)?;
    let library = Library::open(&search_folder(&asked.data.path))?;
    let hits = library.find(&query, usize::from(asked.limit), &Threads::at_most(THREADS_MAX));
    let hits = hits.map_err(|error| match error {
        FindError::Query(error) => Failure::usage(error),
        FindError::Index(error) => error.into(),
    })?;
    if hits.is_empty() {
        return Err(Failure::No("no story has that".to_string()));
    }
    stream(|out| hits.iter().try_for_each(|hit| list(hit, asked.json, out)))
}

fn list(hit: &Hit, json: bool, out: &mut dyn Write) -> io::Result<()> {
    let at = hit
        .published_s
        .and_then(|at_s| u64::try_from(at_s).ok())
        .map(|at_s| rfc3339(at_s.min(LAST_S) * 1_000));
    if json {
        return write_json(
            out,
            &Listed {
                story: hit.story,
                score: hit.score,
                source: &hit.source,
                language: Some(hit.language.as_str()).filter(|language| !language.is_empty()),
                published_at: at,
                title: &hit.title,
                url: &hit.url,
            },
        );
    }
    let day = at.as_deref().map_or("no date   ", |at| &at[..10]);
    let (title, source) = (shown(&hit.title, SHOWN_CHARS), shown(&hit.source, SHOWN_CHARS));
    writeln!(out, "{:>8}  {day}  {title}  ({source})", hit.story)?;
    writeln!(out, "          {}", shown(&hit.url, crate::limits::URL_BYTES_MAX))
}

/// The last second of the year 9999.
const LAST_S: u64 = 253_402_300_799;

pub(super) fn stat(data: &Path, json: bool) -> Result<(), Failure> {
    let facts = Library::open(&search_folder(data))?.checked()?;
    tell(&facts, json, |facts| {
        let SearchFacts { stories, replaced, segments, bytes, place } = facts;
        format!(
            "stories    {stories}\nreplaced   {replaced} (until their segments are merged)\nsegments   {segments}\nsize       {}\nplace      {place} (of the texts, up to which they are indexed)\n",
            sized(*bytes)
        )
    })
}

pub(super) fn reindex(data: &Path) -> Result<(), Failure> {
    if StoriesView::open(data)?.is_none() {
        let text = format!("{} has no stories (nephila crawl --feeds brings some)", data.display());
        return Err(Failure::CannotRun(text));
    }
    let mut source = StoryTexts::open(data)?;
    let made = StoryIndex::reindex(&search_folder(data), &mut source, |stories| {
        if stories > 0 {
            say(format!("search: {} so far", counted_stories(stories)));
        }
    })?;
    say(format!("search: {} indexed", counted_stories(made.stories)));
    Ok(())
}

fn counted_stories(stories: u64) -> String {
    match stories {
        1 => "1 story".to_string(),
        _ => format!("{stories} stories"),
    }
}
