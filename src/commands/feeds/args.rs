use super::add::AddArgs;
use super::change::{ChangeArgs, Verb};
use super::export::ExportArgs;
use super::import::ImportArgs;
use super::ls::LsArgs;
use super::show::ShowArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};

/// Feeds: add them, look at them, and say when they are polled
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds add --data ./example http://example.org/rss.xml\n  nephila feeds import --data ./example subscriptions.opml\n  nephila feeds ls --data ./example --failing\n  nephila feeds show --data ./example 7\n\nA running crawl is told, and does it at once; without one it is done in the directory."
)]
pub struct FeedsArgs {
    #[command(subcommand)]
    what: FeedsWhat,
}

#[derive(Subcommand)]
enum FeedsWhat {
    Add(AddArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Ls(LsArgs),
    /// Do not poll feeds until they are resumed
    #[command(
        after_help = "Example:\n  nephila feeds pause --data ./example 7 8\n\nExit status 1 if one of them is not known."
    )]
    Pause(ChangeArgs),
    /// Poll feeds now, as far as their hosts may be asked
    #[command(
        after_help = "Example:\n  nephila feeds poll --data ./example 7\n\nExit status 1 if one of them is not known, paused or gone."
    )]
    Poll(ChangeArgs),
    /// Poll feeds again that were paused, or are gone
    #[command(
        after_help = "Example:\n  nephila feeds resume --data ./example 7\n\nExit status 1 if one of them is not known."
    )]
    Resume(ChangeArgs),
    /// Take feeds out of the book; their stories stay
    #[command(
        after_help = "Example:\n  nephila feeds rm --data ./example http://example.org/rss.xml\n\nExit status 1 if one of them is not known."
    )]
    Rm(ChangeArgs),
    Show(ShowArgs),
}

impl FeedsArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            FeedsWhat::Add(args) => args.run(),
            FeedsWhat::Export(args) => args.run(),
            FeedsWhat::Import(args) => args.run(),
            FeedsWhat::Ls(args) => args.run(),
            FeedsWhat::Pause(args) => args.run(Verb::Pause),
            FeedsWhat::Poll(args) => args.run(Verb::Poll),
            FeedsWhat::Resume(args) => args.run(Verb::Resume),
            FeedsWhat::Rm(args) => args.run(Verb::Rm),
            FeedsWhat::Show(args) => args.run(),
        }
    }
}
