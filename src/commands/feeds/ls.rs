use super::desk::book;
use super::feed_told::FeedTold;
use crate::base::shown;
use crate::commands::shared::{DataArg, Failure, age, now_ms, stream, write_json};
use crate::feeds::{Feed, FeedState};
use clap::Args;
use std::io::Write;

/// List feeds: when each is polled next, and what it has brought
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds ls --data ./example\n  nephila feeds ls --data ./example --source 'Example News' --due\n  nephila feeds ls --data ./example --gaps --json"
)]
pub struct LsArgs {
    #[command(flatten)]
    data: DataArg,
    /// Only those of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only those that are due
    #[arg(long)]
    due: bool,
    /// Only those whose last poll failed
    #[arg(long)]
    failing: bool,
    /// Only those that have probably lost stories between two polls
    #[arg(long)]
    gaps: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

impl LsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let view = book(&self.data.path)?;
        let source = match &self.source {
            None => None,
            Some(name) => Some(view.source_named(name).map(|source| source.id).ok_or_else(|| {
                Failure::No(format!("there is no source {} (nephila feeds ls lists feeds)", shown(name, 200)))
            })?),
        };
        let now_ms = now_ms();
        let is_asked_for = |feed: &&Feed| {
            let polls = feed.polls();
            let is_due = polls.due_s() > 0 && u64::from(polls.due_s()) * 1_000 <= now_ms;
            source.is_none_or(|source| feed.source() == source)
                && (!self.due || is_due)
                && (!self.failing || (polls.failures() > 0 || feed.state() == FeedState::Gone))
                && (!self.gaps || polls.gaps() > 0)
        };
        stream(|out| {
            if !self.json {
                writeln!(
                    out,
                    "{:>7}  {:<8} {:>12}  {:>7} {:>7} {:>5} {:>5}  {:<20}  url",
                    "id", "state", "next", "polls", "new", "fails", "gaps", "source"
                )?;
            }
            for feed in view.feeds().filter(is_asked_for) {
                let told = FeedTold::of(&view, feed);
                if self.json {
                    write_json(out, &told)?;
                    continue;
                }
                let due_s = feed.polls().due_s();
                let next = match due_s {
                    0 => "never".to_string(),
                    due_s if u64::from(due_s) * 1_000 <= now_ms => "due".to_string(),
                    due_s => age(u64::from(due_s) * 1_000, now_ms),
                };
                writeln!(
                    out,
                    "{:>7}  {:<8} {:>12}  {:>7} {:>7} {:>5} {:>5}  {:<20}  {}",
                    told.id,
                    told.state.name(),
                    next,
                    told.counts.polls,
                    told.counts.new,
                    told.failures,
                    told.counts.gaps,
                    shown(&told.source, 20),
                    shown(&told.url, 300)
                )?;
            }
            Ok(())
        })
    }
}
