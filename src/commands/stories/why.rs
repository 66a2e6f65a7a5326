use super::story_told::{Views, time};
use crate::base::shown;
use crate::commands::index::typed;
use crate::commands::shared::{DataArg, Failure, tell};
use crate::feeds::{DuplicateBy, Known, StoryState, is_home_page};
use clap::Args;
use serde::Serialize;

/// Say what became of a URL that feeds listed: a story, or a duplicate of which one and by what
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila stories why --data ./example http://example.org/2026/a-story\n\nA story is new if neither its URL nor its guid is known for its source, and no story of the source has its title in\nthe same calendar week. A guid that several entries of one listing have says nothing, and is not looked at.\nExit status 1 if no feed has listed the URL."
)]
pub struct WhyArgs {
    /// The URL
    url: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Why {
    url: String,
    /// One for each source that has listed it.
    verdicts: Vec<Verdict>,
}

#[derive(Serialize)]
struct Verdict {
    verdict: &'static str,
    source: String,
    feed: u32,
    /// The story that it is, or is a duplicate of.
    story: u32,
    by: Option<DuplicateBy>,
    week: Option<String>,
    seen: String,
    state: Option<StoryState>,
    /// It has a guid that says nothing: other entries have it, too.
    guid_ignored: bool,
    text: String,
}

impl WhyArgs {
    pub fn run(self) -> Result<(), Failure> {
        let views = Views::open(&self.data.path)?;
        let url = typed(&self.url, &self.data.path)?;
        let found = views.stories.by_url(url.as_str(), views.feeds.sources())?;
        if found.is_empty() {
            let why = match is_home_page(url.as_str()) {
                true => "is a home page: feeds that list it are not followed there",
                false => {
                    "was listed by no feed that was polled (nephila feeds ls --failing, or --gaps, may say why)"
                }
            };
            return Err(Failure::No(format!("{} {why}", shown(url.as_str(), 200))));
        }
        let verdicts = found.iter().map(|known| verdict(&views, known)).collect();
        tell(&Why { url: url.to_string(), verdicts }, self.json, |why| {
            why.verdicts.iter().map(|verdict| format!("{}\n", verdict.text)).collect()
        })
    }
}

fn verdict(views: &Views, known: &Known) -> Verdict {
    match known {
        Known::Story(story) => {
            let (source, seen) = (views.source_name(story.source), time(story.seen_s));
            let guid_ignored = !story.is_known_by_guid && !story.guid.is_empty() && story.guid != story.url;
            let guid = match guid_ignored {
                true => "; its guid was not looked at: other entries have it, too",
                false => "",
            };
            let text = format!(
                "new: story {} of {}, found {seen} in feed {}, {}{guid}",
                story.id,
                shown(&source, 200),
                story.feed,
                story.state.name()
            );
            Verdict {
                verdict: "new",
                source,
                feed: story.feed.0,
                story: story.id.0,
                by: None,
                week: None,
                seen,
                state: Some(story.state),
                guid_ignored,
                text,
            }
        }
        Known::Duplicate { of, by, week, source, feed, seen_s } => {
            let (source, seen, week) = (views.source_name(*source), time(*seen_s), week.to_string());
            let how = match by {
                DuplicateBy::Title => format!("title in week {week}"),
                by => by.name().to_string(),
            };
            let text = format!(
                "duplicate of story {of} by {how} ({}, listed {seen} in feed {feed})",
                shown(&source, 200)
            );
            let week = Some(week).filter(|_| *by == DuplicateBy::Title);
            Verdict {
                verdict: "duplicate",
                source,
                feed: feed.0,
                story: of.0,
                by: Some(*by),
                week,
                seen,
                state: None,
                guid_ignored: false,
                text,
            }
        }
    }
}
