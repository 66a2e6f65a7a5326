use super::args::ArgsArgs;
use super::status::StatusArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Deal the URLs of logs to nodes: each domain to one, no URL more often than once an hour
#[derive(Args)]
#[command(after_help = "Example:\n  nephila master status --data ./nephila-master")]
pub struct MasterArgs {
    #[command(subcommand)]
    command: MasterCommand,
}

#[derive(Subcommand)]
enum MasterCommand {
    Status(StatusArgs),
    Args(ArgsArgs),
}

impl MasterArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            MasterCommand::Status(args) => args.run(),
            MasterCommand::Args(args) => args.run(),
        }
    }
}

/// The data directory that a command of a master looks into.
#[derive(Args)]
pub(super) struct MasterData {
    /// The data directory of a master
    #[arg(long = "data", id = "data", value_name = "DIR", default_value = "./nephila-master")]
    pub path: PathBuf,
}
