use crate::base::shown;
use crate::commands::shared::{Failure, stream, write_json};
use crate::limits::FEED_ENTRIES_MAX;
use crate::proto::feed::{FeedEntry, FeedFacts, FeedFormat, FeedHints, FeedLimits, FeedSource, read};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};

/// Read a feed, and print what was made of it as one JSON object; exit 1 if it is no feed
#[derive(Args)]
#[command(after_help = "\
Example:
  nephila feeds parse feed.xml
  curl -s http://example.org/feed | nephila feeds parse --url http://example.org/feed -

RSS 0.9x, 1.0 and 2.0, Atom 0.3 and 1.0, CDF, JSON Feed and news sitemaps, in any charset, also
broken or cut: then damage says how, and what came before counts.

  {\"format\":\"rss20\",\"title\":\"News\",\"link\":\"http://example.org/\",\"language\":\"en\",\"hub\":null,
   \"hints\":{\"ttl_s\":3600,\"period_s\":null,\"skip_hours\":0,\"skip_days\":0},\"damage\":null,
   \"entries\":[{\"url\":\"http://example.org/1\",\"guid\":\"1\",\"title\":\"First\",\"published_s\":1085779885,
     \"updated_s\":null,\"author\":null,\"language\":null}]}

Dates are seconds since 1970. skip_hours has a bit for each hour (UTC), skip_days one for each day
from Monday on.")]
pub(super) struct ParseArgs {
    /// Where the feed came from: what its relative links are relative to
    #[arg(long, value_name = "URL", default_value = "")]
    url: String,
    /// The Content-Type that it came with
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Entries that are read
    #[arg(long, value_name = "N", default_value_t = FEED_ENTRIES_MAX)]
    entries_max: usize,
    /// The feed; - reads it from stdin
    file: String,
}

/// What is read of a file: more than any crawl keeps of a document.
const BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize)]
struct Entry {
    url: Option<String>,
    guid: Option<String>,
    title: String,
    published_s: Option<i64>,
    updated_s: Option<i64>,
    author: Option<String>,
    language: Option<String>,
}

/// The facts, with the entries in the place of their number.
#[derive(Serialize)]
struct Told {
    format: FeedFormat,
    title: String,
    link: Option<String>,
    language: Option<String>,
    hub: Option<String>,
    hints: FeedHints,
    damage: Option<&'static str>,
    entries: Vec<Entry>,
}

impl ParseArgs {
    pub fn run(self) -> Result<(), Failure> {
        let name = if self.file == "-" { "stdin" } else { &self.file };
        let bytes = self.read().map_err(|e| {
            Failure::Usage(format!("cannot read {}: {e}; - reads from stdin", shown(name, 1_000)))
        })?;
        let about =
            FeedSource { url: &self.url, content_type: self.content_type.as_deref().map(str::as_bytes) };
        let limits = FeedLimits { entries_max: self.entries_max, ..FeedLimits::default() };
        let mut entries = Vec::new();
        let facts = read(&bytes, &about, &limits, |entry| entries.push(Entry::new(entry)))
            .map_err(|e| Failure::No(format!("{} is no feed: {e}", shown(name, 1_000))))?;
        let FeedFacts { format, title, link, language, hub, hints, damage, .. } = facts;
        let told = Told { format, title, link, language, hub, hints, damage, entries };
        stream(|out| write_json(out, &told))
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &*self.file {
            "-" => io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)?,
            path => File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    }
}

impl Entry {
    fn new(entry: FeedEntry<'_>) -> Entry {
        Entry {
            url: entry.url.map(Into::into),
            guid: entry.guid.map(Into::into),
            title: entry.title.into(),
            published_s: entry.published_s,
            updated_s: entry.updated_s,
            author: entry.author.map(Into::into),
            language: entry.language.map(Into::into),
        }
    }
}
