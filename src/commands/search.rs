use super::shared::{DataArg, Failure};
use clap::{Args, Subcommand};

/// Find stories by their words, also while a crawl indexes them
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  nephila search --data ./example climate rivers\n  nephila search --data ./example '\"sea level\"' source:example.org lang:en,de --since 7d\n  nephila search --data ./example 東京 --limit 5 --json\n\nA story has every word and every \"phrase\" that is asked for, in its title or its text; words are found by\ntheir stems in 18 languages at once. source:NAME and lang:CODE among the words are as --source and --lang.\nThe best come first. Exit status 1 if there is none. A word that is a command is asked for behind --."
)]
pub struct SearchArgs {
    #[command(subcommand)]
    command: Option<SearchCommand>,
    #[command(flatten)]
    ask: AskArgs,
}

/// What is asked for.
#[derive(Args)]
pub(super) struct AskArgs {
    #[command(flatten)]
    pub data: DataArg,
    /// Words, "phrases", source:NAME, lang:CODE
    #[arg(required = true, value_name = "WORDS")]
    pub words: Vec<String>,
    /// Only of this source, by its name; several if given again
    #[arg(long, value_name = "NAME")]
    pub source: Vec<String>,
    /// Only in this language, by its code, like en or ja; several with commas between them
    #[arg(long, value_name = "CODE")]
    pub lang: Vec<String>,
    /// Only published since then: 90s, 30min, 2h or 7d ago, a day like 2026-01-01, or a time of it in UTC
    #[arg(long, value_name = "TIME", value_parser = super::shared::read_since)]
    pub since: Option<u64>,
    /// Only published until then, in the same forms
    #[arg(long, value_name = "TIME", value_parser = super::shared::read_since)]
    pub until: Option<u64>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub limit: u16,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
enum SearchCommand {
    /// Make the index anew from the texts that were extracted
    #[command(
        after_help = "Example:\n  nephila search reindex --data ./example\n\nThe index in use stays until the new one is whole. A crawl that writes it must be stopped first."
    )]
    Reindex {
        #[command(flatten)]
        data: DataArg,
    },
    /// Count what is indexed, and compare every byte of the index with its checksum
    #[command(
        after_help = "Example:\n  nephila search stat --data ./example\n\nExit status 3 if the index is damaged."
    )]
    Stat {
        #[command(flatten)]
        data: DataArg,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

impl SearchArgs {
    #[cfg(feature = "search")]
    pub fn run(self) -> Result<(), Failure> {
        use super::search_answers::{ask, reindex, stat};
        match self.command {
            None => ask(&self.ask),
            Some(SearchCommand::Reindex { data }) => reindex(&data.path),
            Some(SearchCommand::Stat { data, json }) => stat(&data.path, json),
        }
    }

    #[cfg(not(feature = "search"))]
    pub fn run(self) -> Result<(), Failure> {
        Err(Failure::CannotRun(
            "this build has no search (build it with the feature search, which is on by default)".to_string(),
        ))
    }
}
