use super::story_told::Views;
use crate::base::shown;
use crate::commands::shared::{DataArg, Failure, read_since, stream, write_json};
use crate::feeds::{Story, StoryId};
use clap::Args;
use std::io::{self, Write};

/// List stories in the order they were found
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila stories ls --data ./example --since 2h\n  nephila stories ls --data ./example --source 'Example News' --lang en --json"
)]
pub struct LsArgs {
    #[command(flatten)]
    data: DataArg,
    #[command(flatten)]
    filter: StoryFilter,
    /// At most this many, the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Which stories.
#[derive(Args)]
pub(super) struct StoryFilter {
    /// Only those of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only those that were found since then: 2h, 7d, 2026-01-01, 2026-01-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    since: Option<u64>,
    /// Only those of feeds in this language, like en
    #[arg(long, value_name = "CODE")]
    lang: Option<String>,
}

impl StoryFilter {
    /// Goes through the stories that are asked for.
    pub fn each(&self, views: &Views, mut each: impl FnMut(&Story) -> io::Result<()>) -> io::Result<()> {
        let named = |name: &String| views.feeds.source_named(name).map(|source| source.id);
        let source = self.source.as_ref().map(named);
        let is_of = |language: &str, lang: &str| {
            let part = language.get(..lang.len());
            part.is_some_and(|part| part.eq_ignore_ascii_case(lang))
                && language[lang.len()..].chars().next().is_none_or(|next| !next.is_alphanumeric())
        };
        for story in views.stories.since(StoryId(0))? {
            let story = story?;
            let is_asked_for = source.is_none_or(|source| source == Some(story.source))
                && self.since.is_none_or(|since_ms| u64::from(story.seen_s) * 1_000 >= since_ms)
                && self.lang.as_ref().is_none_or(|lang| is_of(&story.language, lang));
            if is_asked_for {
                each(&story)?;
            }
        }
        Ok(())
    }
}

impl LsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let views = Views::open(&self.data.path)?;
        let mut skip = 0;
        if let Some(limit) = self.limit {
            let mut count = 0usize;
            self.filter.each(&views, |_| {
                count += 1;
                Ok(())
            })?;
            skip = count.saturating_sub(limit);
        }
        stream(|out| {
            if !self.json {
                writeln!(out, "{:>9}  {:<24}  {:<9}  {:<20}  title, url", "id", "found", "state", "source")?;
            }
            self.filter.each(&views, |story| {
                if skip > 0 {
                    skip -= 1;
                    return Ok(());
                }
                let told = views.told(story);
                match self.json {
                    true => write_json(out, &told),
                    false => writeln!(
                        out,
                        "{:>9}  {:<24}  {:<9}  {:<20}  {}  {}",
                        told.id,
                        told.seen,
                        told.state.name(),
                        shown(&told.source, 20),
                        shown(&told.title, 80),
                        shown(&told.url, 300)
                    ),
                }
            })
        })
    }
}
