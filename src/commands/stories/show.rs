use super::story_told::{StoryTold, Views};
use crate::base::shown;
use crate::commands::index::typed;
use crate::commands::shared::{DataArg, Failure, tell, with_age};
use crate::feeds::{Known, Story, StoryId};
use clap::Args;

/// Print everything that is known of a story
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila stories show --data ./example 12\n  nephila stories show --data ./example http://example.org/2026/a-story --json\n\nA URL that several sources have listed is several stories: the first is shown, and why shows all.\nExit status 1 if there is no such story."
)]
pub struct ShowArgs {
    /// The story, by its number or URL
    #[arg(value_name = "ID|URL")]
    story: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl ShowArgs {
    pub fn run(self) -> Result<(), Failure> {
        let views = Views::open(&self.data.path)?;
        match find(&views, &self.story, &self.data)? {
            Some(story) => tell(&views.told(&story), self.json, text),
            None => Err(Failure::No(format!(
                "there is no story {} (nephila stories ls lists them, why says what became of a URL)",
                shown(&self.story, 200)
            ))),
        }
    }
}

/// A story as it was typed.
fn find(views: &Views, text: &str, data: &DataArg) -> Result<Option<Story>, Failure> {
    if let Ok(number) = text.parse::<u32>() {
        return Ok(views.stories.story(StoryId(number))?);
    }
    let known = views.stories.by_url(typed(text, &data.path)?.as_str(), views.feeds.sources())?;
    Ok(known.into_iter().find_map(|known| match known {
        Known::Story(story) => Some(story),
        Known::Duplicate { .. } => None,
    }))
}

fn text(story: &StoryTold) -> String {
    let rows = [
        ("id", story.id.to_string()),
        ("url", shown(&story.url, 8_000)),
        ("title", shown(&story.title, 1_000)),
        ("guid", shown(&story.guid, 1_000)),
        ("source", shown(&story.source, 200)),
        ("feed", story.feed.to_string()),
        (
            "published",
            format!(
                "{} (by {})",
                with_age(&story.published),
                match story.provenance.name() {
                    "feed" => "its feed",
                    _ => "when it was found: it has no date",
                }
            ),
        ),
        ("found", with_age(&story.seen)),
        ("language", shown(story.language.as_deref().unwrap_or(""), 40)),
        ("state", story.state.name().to_string()),
        ("doc_id", story.doc_id.map_or(String::new(), |doc_id| doc_id.to_string())),
    ];
    let mut out = String::new();
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("{name:<10} {value}\n");
    }
    out
}
