use super::shared::{Failure, print};
use crate::config::template;
use clap::{Args, Subcommand};

/// Print a settings file to begin with
#[derive(Args)]
#[command(after_help = "Example:\n  nephila config template > job.toml")]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    Template(TemplateArgs),
}

/// Print a settings file in which every setting stands as a comment, with its default
#[derive(Args)]
#[command(after_help = "Example:\n  nephila config template > job.toml")]
struct TemplateArgs {}

impl ConfigArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ConfigCommand::Template(TemplateArgs {}) => print(&template()),
        }
    }
}
