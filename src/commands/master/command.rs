use super::run::RunArgs;
use super::status::StatusArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Deal the URLs of logs to nodes: each domain to one, no URL more often than once an hour
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master run --config master.toml\n  nephila master status --data ./nephila-master"
)]
pub struct MasterArgs {
    #[command(subcommand)]
    command: MasterCommand,
}

#[derive(Subcommand)]
enum MasterCommand {
    Run(Box<RunArgs>),
    Status(StatusArgs),
}

impl MasterArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            MasterCommand::Run(args) => args.run(),
            MasterCommand::Status(args) => args.run(),
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
