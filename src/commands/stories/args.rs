use super::export::ExportArgs;
use super::ls::LsArgs;
use super::show::ShowArgs;
use super::why::WhyArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};

/// Stories that feeds have brought: list them, say why an entry is one or not, export them
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila stories ls --data ./example --since 2h\n  nephila stories why --data ./example http://example.org/2026/a-story\n  nephila stories export --data ./example --csv > stories.csv"
)]
pub struct StoriesArgs {
    #[command(subcommand)]
    what: StoriesWhat,
}

#[derive(Subcommand)]
enum StoriesWhat {
    Export(ExportArgs),
    Ls(LsArgs),
    Show(ShowArgs),
    Why(WhyArgs),
}

impl StoriesArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            StoriesWhat::Export(args) => args.run(),
            StoriesWhat::Ls(args) => args.run(),
            StoriesWhat::Show(args) => args.run(),
            StoriesWhat::Why(args) => args.run(),
        }
    }
}
