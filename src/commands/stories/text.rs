use super::show::find;
use super::story_told::Views;
use crate::base::{rfc3339, shown};
use crate::commands::shared::{DataArg, Failure, tell};
use crate::extractor::{DateFrom, Extractor, StoryText};
use crate::feeds::{Story, StoryState};
use clap::Args;
use serde::Serialize;

/// Print the text of a story: of its page, without what stands around it
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila stories text --data ./example 12\n  nephila stories text --data ./example 12 --json | jq -r .text\n\nTexts are made by a crawl once a story's page is stored ([feeds] extract = \"full\"). Above the text stand title,\nauthor, date with where it is from (feed, json_ld, meta, text) and language.\nExit status 1 if there is no text; the line says why."
)]
pub struct TextArgs {
    /// The story, by its number or URL
    #[arg(value_name = "ID|URL")]
    story: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct TextTold {
    id: u32,
    url: String,
    title: String,
    author: String,
    published: Option<String>,
    date_from: DateFrom,
    language: String,
    /// By which version of the rules it was made.
    rules: u16,
    text: String,
}

impl TextArgs {
    pub fn run(self) -> Result<(), Failure> {
        let views = Views::open(&self.data.path)?;
        let asked = shown(&self.story, 200);
        let Some(story) = find(&views, &self.story, &self.data)? else {
            return Err(Failure::No(format!("there is no story {asked} (nephila stories ls lists them)")));
        };
        match views.texts.by_story(story.id.0)? {
            Some(StoryText { failed: Some(why), .. }) => {
                Err(Failure::No(format!("story {} has no text: {}", story.id, shown(&why, 300))))
            }
            Some(text) => tell(&TextTold::of(&story, text), self.json, TextTold::text),
            None => Err(Failure::No(format!("story {} has no text yet: {}", story.id, why_none(&story)))),
        }
    }
}

fn why_none(story: &Story) -> &'static str {
    match story.state {
        StoryState::Pending => "its page is not fetched yet",
        StoryState::Failed => "its page could not be fetched (nephila explain says why)",
        _ if !Extractor::is_built() => {
            "this build has no extraction (build it with the cargo feature extract)"
        }
        _ => "a crawl of this directory makes it ([feeds] extract = \"full\" or \"fast\")",
    }
}

impl TextTold {
    fn of(story: &Story, text: StoryText) -> TextTold {
        let published = text.published_s.and_then(|date_s| u64::try_from(date_s).ok());
        TextTold {
            id: text.story,
            url: story.url.to_string(),
            title: text.title,
            author: text.author,
            published: published.map(|date_s| rfc3339(date_s.saturating_mul(1_000))),
            date_from: text.date_from,
            language: text.language,
            rules: text.rules,
            text: text.text,
        }
    }

    fn text(&self) -> String {
        let published = self.published.as_ref().map(|date| format!("{date} (by {})", self.date_from.name()));
        let rows = [
            ("title", self.title.clone()),
            ("author", self.author.clone()),
            ("published", published.unwrap_or_default()),
            ("language", self.language.clone()),
            ("url", self.url.clone()),
        ];
        let mut out = String::new();
        for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
            out += &format!("{name:<10} {}\n", shown(&value, 8_000));
        }
        out.push('\n');
        for line in self.text.lines() {
            out += &shown(line, usize::MAX);
            out.push('\n');
        }
        out
    }
}
