use super::desk::{Desk, NamedFeed, Told, Word};
use crate::commands::index::typed;
use crate::commands::shared::{DataArg, Failure, counted, tell};
use clap::Args;

/// Put feeds into the book, or pages that name them; they are polled at once
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds add --data ./example http://example.org/rss.xml\n  nephila feeds add --data ./example --source 'Example News' http://example.org/a.xml http://example.org/b.xml\n  nephila feeds add --data ./example http://example.org/\n\nA page is looked through when it is polled: the feeds that it names (link rel=alternate, Link:) take its place.\nWithin a source a story is there once, whichever of its feeds lists it. A feed that is gone gets another chance.\nThey are on disk when this command ends."
)]
pub struct AddArgs {
    /// URLs of feeds, or of pages that name theirs
    #[arg(required = true)]
    urls: Vec<String>,
    /// Whom they belong to; without it, the host of each
    #[arg(long, value_name = "NAME", default_value = "")]
    source: String,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl AddArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut feeds = Vec::new();
        for url in &self.urls {
            let url = typed(url, &self.data.path)?.to_string();
            feeds.push(NamedFeed { url, source: self.source.clone(), title: String::new() });
        }
        let told = Desk::open(&self.data.path)?.give(Word::Add { feeds })?;
        tell(&told, self.json, added)
    }
}

/// What became of feeds that were added.
pub(super) fn added(told: &Told) -> String {
    let Told { done, known, refused, running, .. } = told;
    let feeds = match done[..] {
        [feed] => format!("1 new feed, number {feed}"),
        [first, .., last] => format!("{}, numbers {first} to {last}", counted(done.len() as u64, "new feed")),
        [] => "no new feed".to_string(),
    };
    let known = match known[..] {
        [feed] => format!(", 1 known: number {feed}"),
        [] => String::new(),
        _ => format!(", {} known", known.len()),
    };
    let refused = if *refused > 0 { format!(", {refused} refused") } else { String::new() };
    let where_to = match running {
        true => "the running crawl has them",
        false => "the next crawl of this directory polls them",
    };
    format!("{feeds}{known}{refused}; {where_to}\n")
}
