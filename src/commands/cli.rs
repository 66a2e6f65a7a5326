use super::shared::{Failure, Verbosity, columns, tell_event, written};
use super::{
    add, audit, bench, cluster, completions, config, crawl, demo, explain, export, farm, feeds, help, import,
    index, man, master, metrics, node, parse, pause, reflog, robots, search, sim, spider, status, stop,
    store, storeserver, stories, tune, urlserver,
};
use crate::engine::Event;
use clap::{Parser, Subcommand};
use std::io::stdout;
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
    help_template = template(),
    after_help = help::topics()
)]
pub struct Cli {
    /// Say nothing but failures: no progress, no notices, no summary (but with --json its object)
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// Say more of what is done
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Crawl(Box<crawl::CrawlArgs>),
    Node(Box<node::NodeArgs>),
    Cluster(cluster::ClusterArgs),
    Status(status::StatusArgs),
    Stop(stop::StopArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Add(add::AddArgs),
    Store(store::StoreArgs),
    Index(index::IndexArgs),
    Search(search::SearchArgs),
    Explain(explain::ExplainArgs),
    Metrics(metrics::MetricsArgs),
    Audit(audit::AuditArgs),
    Config(config::ConfigArgs),
    Feeds(feeds::FeedsArgs),
    Stories(stories::StoriesArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Urlserver(Box<urlserver::UrlServerArgs>),
    Spider(Box<spider::SpiderArgs>),
    Storeserver(storeserver::StoreServerArgs),
    Master(Box<master::MasterArgs>),
    Reflog(reflog::ReflogArgs),
    Tune(tune::TuneArgs),
    Farm(farm::FarmArgs),
    Robots(robots::RobotsArgs),
    Parse(parse::ParseArgs),
    Sim(sim::SimArgs),
    Bench(bench::BenchArgs),
    Help(help::HelpArgs),
    Man(man::ManArgs),
    Completions(completions::CompletionsArgs),
}

/// The commands as they belong together. One that is not here is of the last group.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Crawl", &["demo", "crawl", "status", "stop", "pause", "resume", "add", "set"]),
    ("Look", &["store", "index", "explain", "audit", "help"]),
    ("Feeds and stories", &["feeds"]),
    ("Archives", &["export", "import"]),
    ("Many nodes", &["node", "cluster"]),
    ("Split over processes", &["urlserver", "spider", "storeserver", "master", "reflog"]),
    ("Machine", &["tune", "config", "metrics", "man", "completions"]),
    ("Lab", &["farm", "robots", "parse", "sim", "bench"]),
];

/// The help of nephila, with its commands in groups.
fn template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("nephila"));
    let width = help_width();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut text = "{about}\n\n{usage-heading} {usage}\n\n".to_string();
    for (number, (group, names)) in GROUPS.iter().enumerate() {
        text += &format!("{group}:\n");
        let named = names.iter().filter_map(|name| commands.find_subcommand(name));
        let others = commands.get_subcommands().filter(|command| !is_grouped(command.get_name()));
        for command in named.chain(others.filter(|_| number + 1 == GROUPS.len())) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {:<12} {}\n", command.get_name(), wrapped(&about, 15, width));
        }
    }
    let more = wrapped("nephila COMMAND --help lists the flags of a command, with examples.", 0, width);
    text + "\nOptions:\n{options}\n\n" + &more + "{after-help}"
}

/// The width of the help, where it is put into lines here.
pub(super) fn help_width() -> usize {
    columns(stdout(), HELP_WIDTH).clamp(60, 110)
}

/// Of help that goes to no terminal.
const HELP_WIDTH: usize = 90;

/// A text in lines no longer than this, with an indent from the second on.
pub(super) fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let (mut lines, mut room) = (String::new(), width - indent);
    for word in text.split_whitespace() {
        let chars = word.chars().count() + 1;
        if chars > room {
            lines += &format!("\n{}", " ".repeat(indent));
            room = width - indent;
        } else if !lines.is_empty() {
            lines.push(' ');
        }
        lines += word;
        room = room.saturating_sub(chars);
    }
    lines
}

/// Runs what was typed.
pub fn run(cli: Cli) -> ExitCode {
    match (cli.quiet, cli.verbose) {
        (true, _) => Verbosity::Quiet.set(),
        (_, true) => Verbosity::Verbose.set(),
        _ => {}
    }
    let ran = match cli.command {
        Command::Demo(args) => args.run(),
        Command::Crawl(args) => args.run(),
        Command::Node(args) => args.run(),
        Command::Cluster(args) => args.run(),
        Command::Status(args) => args.run(),
        Command::Stop(args) => args.run(),
        Command::Pause(args) => args.run(),
        Command::Resume(args) => args.run(),
        Command::Add(args) => args.run(),
        Command::Urlserver(args) => args.run(),
        Command::Spider(args) => args.run(),
        Command::Storeserver(args) => args.run(),
        Command::Master(args) => args.run(),
        Command::Reflog(args) => args.run(),
        Command::Tune(args) => args.run(),
        Command::Store(args) => args.run(),
        Command::Index(args) => args.run(),
        Command::Search(args) => args.run(),
        Command::Explain(args) => args.run(),
        Command::Metrics(args) => args.run(),
        Command::Feeds(args) => args.run(),
        Command::Stories(args) => args.run(),
        Command::Export(args) => args.run(),
        Command::Import(args) => args.run(),
        Command::Audit(args) => args.run(),
        Command::Robots(args) => args.run(),
        Command::Parse(args) => args.run(),
        Command::Farm(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Sim(args) => args.run(),
        Command::Config(args) => args.run(),
        Command::Help(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Completions(args) => args.run(),
    };
    ended(ran)
}

/// Shows help or the version, where they were asked for instead of a command.
pub(super) fn show_help(help: &clap::Error) -> ExitCode {
    match written(help.print()) {
        Err(failure) if !help.use_stderr() => ended(Err(failure)),
        _ => ExitCode::from(help.exit_code() as u8),
    }
}

/// The status of a command, and the line that says why it failed.
fn ended(ran: Result<(), Failure>) -> ExitCode {
    let (text, status) = match ran {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::No(text)) => (text, 1),
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::CannotRun(text)) => (text, 3),
    };
    if !text.is_empty() {
        tell_event(Event::Failed, vec![("status", u64::from(status).into())], format!("nephila: {text}"));
    }
    ExitCode::from(status)
}
