use super::add_seeds::AddSeedsArgs;
use super::order::{DrainArgs, ForgetArgs, FreezeArgs, ThawArgs};
use super::status::StatusArgs;
use super::table::TableArgs;
use super::verify::VerifyArgs;
use super::wait::WaitArgs;
use crate::commands::shared::Failure;
use clap::{Args, Subcommand};

/// Ask a node how its cluster stands, whose a URL is, and when all is done; give it URLs and orders
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila cluster status --data ./n1\n  nephila cluster add-seeds seeds.txt --data ./n2\n  nephila cluster wait --data ./n1\n\nAny node of the cluster that runs on this machine will do: --data is its data directory. nephila help cluster is\nthe page of the manual."
)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand)]
enum ClusterCommand {
    Status(StatusArgs),
    Table(TableArgs),
    AddSeeds(AddSeedsArgs),
    Wait(WaitArgs),
    Verify(VerifyArgs),
    Drain(DrainArgs),
    Forget(ForgetArgs),
    Freeze(FreezeArgs),
    Thaw(ThawArgs),
}

impl ClusterArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ClusterCommand::Status(args) => args.run(),
            ClusterCommand::Table(args) => args.run(),
            ClusterCommand::AddSeeds(args) => args.run(),
            ClusterCommand::Wait(args) => args.run(),
            ClusterCommand::Verify(args) => args.run(),
            ClusterCommand::Drain(args) => args.run(),
            ClusterCommand::Forget(args) => args.run(),
            ClusterCommand::Freeze(args) => args.run(),
            ClusterCommand::Thaw(args) => args.run(),
        }
    }
}
