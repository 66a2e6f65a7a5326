use super::desk::book;
use super::feed_told::FeedTold;
use crate::commands::shared::{DataArg, Failure, print, stream, write_json};
use crate::feeds::Feed;
use crate::proto::feed::opml::{self, OpmlFeed};
use clap::Args;

/// Write all feeds: as JSON Lines, or as OPML that other programs read
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds export --data ./example --opml > feeds.opml\n  nephila feeds export --data ./example | jq -r .url\n\nIn OPML, sources are folders."
)]
pub struct ExportArgs {
    #[command(flatten)]
    data: DataArg,
    /// OPML 2.0
    #[arg(long, conflicts_with = "json")]
    opml: bool,
    /// Changes nothing: without --opml the output is JSON in any case
    #[arg(long)]
    json: bool,
}

impl ExportArgs {
    pub fn run(self) -> Result<(), Failure> {
        let view = book(&self.data.path)?;
        if !self.opml {
            return stream(|out| {
                view.feeds().try_for_each(|feed| write_json(out, &FeedTold::of(&view, feed)))
            });
        }
        let mut feeds: Vec<&Feed> = view.feeds().collect();
        feeds.sort_by_key(|feed| (feed.source(), feed.id()));
        let told = feeds.into_iter().map(|feed| OpmlFeed {
            url: feed.url().into(),
            title: feed.title().into(),
            site: None,
            folder: view.source(feed.source()).map_or("", |source| &source.name).replace('/', "-").into(),
            line: 0,
        });
        print(&opml::write("Feeds", told))
    }
}
