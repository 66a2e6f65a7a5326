//! What a user types: one file per sub-command, thin. Each turns flags into a configuration, hands it down, and
//! turns the answer into text, JSON and an exit status.
//!
//! Exit status: 0 done, 1 the answer is "no", 2 usage or configuration error, 3 could not run; each failure with
//! one line on stderr that names the cause and the mend.

mod audit;
mod bench;
mod bench_index;
#[path = "../../bench/index-peers/src/workload.rs"]
#[allow(dead_code)] // The peers use the rest.
mod bench_index_load;
mod bench_long;
mod bench_long_course;
mod bench_parse;
mod bench_queues;
mod bench_record;
mod bench_slow;
mod bench_store;
mod bench_store_work;
mod bench_tls;
mod child_farm;
mod crawl;
mod demo;
mod explain;
mod export;
mod farm;
mod help;
mod import;
mod index;
mod index_hosts;
mod index_import;
mod index_stat;
mod machine;
mod output;
pub mod parse;
mod process_sample;
mod progress;
mod report;
mod robots;
mod settings;
mod signals;
mod sim;
mod spider;
mod store;
mod store_care;
mod storeserver;
mod ticker;
mod urlserver;

use crate::base::shown;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Nephila: an io_uring crawl appliance.
#[derive(Parser)]
#[command(
    name = "nephila",
    version,
    about,
    max_term_width = 110,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = help::topics()
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Crawl(Box<crawl::CrawlArgs>),
    Store(store::StoreArgs),
    Index(index::IndexArgs),
    Explain(explain::ExplainArgs),
    Audit(audit::AuditArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Urlserver(Box<urlserver::UrlServerArgs>),
    Spider(Box<spider::SpiderArgs>),
    Storeserver(storeserver::StoreServerArgs),
    Farm(farm::FarmArgs),
    Robots(robots::RobotsArgs),
    Parse(parse::ParseArgs),
    Sim(sim::SimArgs),
    Bench(bench::BenchArgs),
    Help(help::HelpArgs),
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The answer is "no": exit 1. The text may be empty if the answer was printed.
    No(String),
    /// Usage or configuration: exit 2.
    Usage(String),
    /// Could not run: exit 3.
    CannotRun(String),
}

/// What is shown of a line about a failure.
const LINE_CHARS_MAX: usize = 4_000;

impl Failure {
    pub fn usage(error: impl std::fmt::Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    pub fn cannot_run(error: impl std::fmt::Display) -> Failure {
        Failure::CannotRun(error.to_string())
    }
}

/// Runs what was typed.
pub fn run(cli: Cli) -> ExitCode {
    let ran = match cli.command {
        Command::Demo(args) => args.run(),
        Command::Crawl(args) => args.run(),
        Command::Urlserver(args) => args.run(),
        Command::Spider(args) => args.run(),
        Command::Storeserver(args) => args.run(),
        Command::Store(args) => args.run(),
        Command::Index(args) => args.run(),
        Command::Explain(args) => args.run(),
        Command::Export(args) => args.run(),
        Command::Import(args) => args.run(),
        Command::Audit(args) => args.run(),
        Command::Robots(args) => args.run(),
        Command::Parse(args) => args.run(),
        Command::Farm(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Sim(args) => args.run(),
        Command::Help(args) => args.run(),
    };
    let (text, status) = match ran {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::No(text)) => (text, 1),
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::CannotRun(text)) => (text, 3),
    };
    if !text.is_empty() {
        // Whatever it names was typed, or came from a file or a server.
        let lines: Vec<String> = text.lines().map(|line| shown(line, LINE_CHARS_MAX)).collect();
        eprintln!("nephila: {}", lines.join("\n"));
    }
    ExitCode::from(status)
}
