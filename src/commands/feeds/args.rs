use super::parse::ParseArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};

/// Feeds: look at what they say
#[derive(Args)]
#[command(after_help = "Example:\n  nephila feeds parse feed.xml")]
pub(crate) struct FeedsArgs {
    #[command(subcommand)]
    what: FeedsWhat,
}

#[derive(Subcommand)]
enum FeedsWhat {
    Parse(ParseArgs),
}

impl FeedsArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            FeedsWhat::Parse(parse) => parse.run(),
        }
    }
}
