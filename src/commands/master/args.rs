use super::command::MasterData;
use crate::base::shown;
use crate::commands::shared::{Failure, counted, print, tell};
use crate::master::args::{ArgLine, Args, DeclaredLine, Verdict};
use crate::proto::url::Canon;
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use std::path::Path;

/// Show which parameters of a domain's URLs make another document, and how that is known
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  nephila master args example.org --data ./nephila-master\n  nephila master args set example.org sid drop --data ./nephila-master\n\nA parameter is dropped from what tells documents apart where robots.txt declares it (Clean-param), where the settings say so (query_drop), or after 50 pairs of pages that differ in it only, over 3 values, with less than 1 % of different texts; after 3 different ones it is kept. What a person says wins. The URL that is fetched is always the whole one that came last. Exit status 1 if nothing is known of the domain."
)]
pub(super) struct ArgsArgs {
    #[command(subcommand)]
    command: Option<ArgsCommand>,
    /// A domain; hosts in it are shown, too
    #[arg(required = true)]
    domain: Option<String>,
    #[command(flatten)]
    data: MasterData,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum ArgsCommand {
    /// Say what becomes of a parameter; it wins over what is declared or learned
    #[command(
        after_help = "Examples:\n  nephila master args set example.org sid drop\n  nephila master args set example.org sid unset\n\nA master that runs hears of it with its next epoch."
    )]
    Set {
        /// A domain; it holds for the hosts in it, unless a nearer one says otherwise
        domain: String,
        /// The name of the parameter, as it stands in a URL
        arg: String,
        word: Word,
        #[command(flatten)]
        data: MasterData,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Word {
    /// It makes another document
    Keep,
    /// It does not
    Drop,
    /// Take the word back
    Unset,
}

#[derive(Serialize)]
struct Known {
    domain: String,
    args: Vec<ArgLine>,
    declared: Vec<DeclaredLine>,
}

impl ArgsArgs {
    pub fn run(self) -> Result<(), Failure> {
        match (self.command, self.domain) {
            (Some(ArgsCommand::Set { domain, arg, word, data }), _) => set(&data.path, &domain, &arg, word),
            (None, Some(domain)) => show(&self.data.path, domain, self.json),
            (None, None) => Err(Failure::Usage("name a domain".to_string())),
        }
    }
}

fn show(data: &Path, domain: String, json: bool) -> Result<(), Failure> {
    there(data)?;
    let args = Args::view(data)?;
    let domain = domain.to_ascii_lowercase();
    let known = Known { args: args.lines(&domain), declared: args.declared(&domain), domain };
    let is_empty = known.args.is_empty() && known.declared.is_empty();
    tell(&known, json, Known::text)?;
    if is_empty { Err(Failure::No(String::new())) } else { Ok(()) }
}

fn set(data: &Path, domain: &str, arg: &str, word: Word) -> Result<(), Failure> {
    there(data)?;
    let verdict = match word {
        Word::Keep => Verdict::Keep,
        Word::Drop => Verdict::Drop,
        Word::Unset => Verdict::Unknown,
    };
    let mut args = Args::open(data, Canon::default())?;
    let domain = domain.to_ascii_lowercase();
    args.set(&domain, arg, verdict)
        .map_err(|cause| Failure::Usage(format!("{}: {cause}", shown(&domain, 100))))?;
    args.flush()?;
    let said = match word {
        Word::Keep => "is kept",
        Word::Drop => "is dropped",
        Word::Unset => "is judged by what is declared and learned",
    };
    print(&format!("{arg} of {domain} {said}\n"))
}

fn there(data: &Path) -> Result<(), Failure> {
    match data.is_dir() {
        true => Ok(()),
        false => {
            let text = format!(
                "{} is no directory (name the data directory of a master with --data)",
                data.display()
            );
            Err(Failure::CannotRun(text))
        }
    }
}

impl Known {
    fn text(&self) -> String {
        let Known { domain, args, declared } = self;
        if args.is_empty() && declared.is_empty() {
            return format!("nothing is known of parameters of {}\n", shown(domain, 253));
        }
        let mut text = String::new();
        for DeclaredLine { origin, rule } in declared {
            text +=
                &format!("drop     declared  {}: Clean-param: {}\n", shown(origin, 300), shown(rule, 500));
        }
        for ArgLine { path, arg, verdict, by, pairs, values, same, differ } in args {
            let (path, arg, verdict) = (shown(path, 256), shown(arg, 64), verdict.name());
            text += &match *by {
                "person" => format!("{verdict:<8} {by:<9} {arg}\n"),
                _ => format!(
                    "{verdict:<8} {by:<9} {arg} on {path}: {} over {}, {same} same, {differ} different\n",
                    counted(u64::from(*pairs), "pair"),
                    counted(*values as u64, "value"),
                ),
            };
        }
        text
    }
}
