use super::args::ArgsArgs;
use super::audit::AuditArgs;
use super::diff::DiffArgs;
use super::explain::ExplainArgs;
use super::log::LogArgs;
use super::map::MapArgs;
use super::once::OnceArgs;
use super::queue::QueueArgs;
use super::rejects::RejectsArgs;
use super::run::RunArgs;
use super::status::StatusArgs;
use crate::base::shown;
use crate::commands::shared::Failure;
use crate::master::keeping::MasterView;
use clap::{Args, Subcommand};
use std::io;
use std::path::{Path, PathBuf};

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
    Once(Box<OnceArgs>),
    Status(StatusArgs),
    Map(MapArgs),
    Queue(QueueArgs),
    Log(LogArgs),
    Rejects(RejectsArgs),
    Explain(ExplainArgs),
    Audit(AuditArgs),
    Diff(DiffArgs),
    Args(ArgsArgs),
}

impl MasterArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            MasterCommand::Run(args) => args.run(),
            MasterCommand::Once(args) => args.run(),
            MasterCommand::Status(args) => args.run(),
            MasterCommand::Map(args) => args.run(),
            MasterCommand::Queue(args) => args.run(),
            MasterCommand::Log(args) => args.run(),
            MasterCommand::Rejects(args) => args.run(),
            MasterCommand::Explain(args) => args.run(),
            MasterCommand::Audit(args) => args.run(),
            MasterCommand::Diff(args) => args.run(),
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

impl MasterData {
    /// What is committed there, also while a master writes it.
    pub fn view(&self) -> Result<MasterView, Failure> {
        view_of(&self.path, "name the data directory of one with --data")
    }
}

/// What is committed in a data directory.
pub(super) fn view_of(path: &Path, mend: &str) -> Result<MasterView, Failure> {
    MasterView::open(path)?
        .ok_or_else(|| Failure::CannotRun(format!("{} holds no master ({mend})", path.display())))
}

/// Looks again if a file is gone: a master that runs meanwhile lets those go that its next epoch has replaced.
pub(super) fn while_it_runs<T>(look: impl Fn() -> Result<io::Result<T>, Failure>) -> Result<T, Failure> {
    let mut tries = 1;
    loop {
        match look()? {
            Err(e) if e.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
            looked => return Ok(looked?),
        }
    }
}

/// Looks at a directory that changes meanwhile.
const TRIES: u32 = 20;

/// A line of fields as it is safe to look at.
pub(super) fn plain_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.split('\t').map(|field| shown(field, 16_384)).collect::<Vec<String>>().join("\t")
}
