use super::settings::{Before, checked, read_layers};
use super::shared::{Failure, counted, hint, print, stream, write_json};
use crate::base::shown;
use crate::config::{ConfigError, Listed, Mistake, Reading, Role, picked, template};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Check settings files, and show what holds and who said so
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila config template > job.toml\n  nephila config check job.toml\n  nephila config show --config job.toml --diff"
)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    Check(CheckArgs),
    Show(ShowArgs),
    Template(TemplateArgs),
}

/// Tell every mistake of settings files
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila config check job.toml\n  nephila config check --for urlserver urls.toml\n\nA line for each mistake: file:line:key: what is wrong, and the mend. Exit status 0: there is none; 1: there are some;\n2: a file cannot be read."
)]
struct CheckArgs {
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The command that is to be given the file
    #[arg(long = "for", value_name = "COMMAND", default_value = "crawl")]
    role: Role,
    /// JSON Lines: an object for each mistake, or one for a file without any
    #[arg(long)]
    json: bool,
}

/// Show every setting: its value, who said so, and when a change of it holds
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila config show --data ./example --diff\n  nephila config show --config job.toml req_host_per_sec spider\n  nephila config show --config job.toml --toml > whole.toml\n\nThe last column says when a change holds in a crawl that runs and is sent SIGHUP: live, with new fetches, or after a\nrestart. Passwords are never shown."
)]
struct ShowArgs {
    /// Settings (name or section.name) or sections [default: all]
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// A file of settings in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory of a crawl, whether it runs or not [default: the file's, if it says one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only what is not as it is by default
    #[arg(long)]
    diff: bool,
    /// As a settings file, which may be given to --config
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// JSON Lines: an object for each setting
    #[arg(long)]
    json: bool,
}

/// Print a settings file in which every setting stands as a comment, with its default
#[derive(Args)]
#[command(after_help = "Example:\n  nephila config template > job.toml")]
struct TemplateArgs {}

impl ValueEnum for Role {
    fn value_variants<'a>() -> &'a [Role] {
        Role::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

impl ConfigArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            ConfigCommand::Check(args) => args.run(),
            ConfigCommand::Show(args) => args.run(),
            ConfigCommand::Template(TemplateArgs {}) => print(&template()),
        }
    }
}

/// A mistake, or that a file has none.
#[derive(Serialize)]
struct Finding<'a> {
    file: String,
    line: Option<usize>,
    key: Option<&'a str>,
    problem: Option<&'a str>,
    ok: bool,
}

impl CheckArgs {
    fn run(self) -> Result<(), Failure> {
        let (mut mistakes, mut unreadable) = (0, Vec::new());
        for path in &self.files {
            match Reading::of(path) {
                Ok(file) => mistakes += self.tell(&file)?,
                Err(ConfigError::Unreadable { path, cause }) => {
                    unreadable.push(format!("cannot read {}: {cause}", path.display()));
                }
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        match (unreadable.is_empty(), mistakes) {
            (false, _) => Err(Failure::Usage(unreadable.join("\n"))),
            (true, 0) => Ok(()),
            (true, count) => Err(Failure::No(format!(
                "{} (nephila help settings lists what may be said)",
                counted(count as u64, "mistake")
            ))),
        }
    }

    /// Tells the mistakes of one file, and says how many they are.
    fn tell(&self, file: &Reading) -> Result<usize, Failure> {
        let mistakes = checked(file, self.role);
        let name = shown(&file.path.display().to_string(), 200);
        stream(|out| {
            for mistake in &mistakes {
                match self.json {
                    true => write_json(out, &Finding::of(&name, Some(mistake)))?,
                    false => writeln!(out, "{}", shown_lines(&mistake.told(&file.path)))?,
                }
            }
            match (mistakes.is_empty(), self.json) {
                (true, true) => write_json(out, &Finding::of(&name, None)),
                (true, false) => {
                    let count = counted(file.count() as u64, "setting");
                    writeln!(out, "{name}: {count}, no mistake")
                }
                (false, _) => Ok(()),
            }
        })?;
        if file.holds_password() && is_open_to_others(&file.path) {
            hint(format_args!("{name}: holds a password, and others may read it (chmod o-r {name})"));
        }
        file.config.auth.notice().iter().for_each(hint);
        Ok(mistakes.len())
    }
}

impl<'a> Finding<'a> {
    fn of(file: &str, mistake: Option<&'a Mistake>) -> Finding<'a> {
        Finding {
            file: file.to_string(),
            line: mistake.and_then(|mistake| mistake.line),
            key: mistake.map(|mistake| mistake.key.as_str()).filter(|key| !key.is_empty()),
            problem: mistake.map(|mistake| mistake.cause.as_str()),
            ok: mistake.is_none(),
        }
    }
}

/// What it repeats was written by somebody.
fn shown_lines(text: &str) -> String {
    shown(text, 4_000)
}

fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

impl ShowArgs {
    fn run(self) -> Result<(), Failure> {
        let layers = read_layers(self.config.as_deref(), self.data.as_deref(), Before::Holds)?;
        let all = layers.layered.listing(layers.file.as_ref());
        let mut all = picked(all, &self.keys).map_err(Failure::Usage)?;
        if self.diff {
            all.retain(|listed| !listed.is_default());
        }
        stream(|out| match (self.json, self.toml) {
            (true, _) => all.iter().try_for_each(|listed| write_json(out, listed)),
            (_, true) => out.write_all(as_file(&all).as_bytes()),
            _ => out.write_all(as_table(&all).as_bytes()),
        })
    }
}

/// What is shown of a value in a column.
const VALUE_CHARS_MAX: usize = 60;

fn as_table(all: &[Listed]) -> String {
    let row = |listed: &Listed| {
        let value = shown(listed.text.as_deref().unwrap_or("unset"), VALUE_CHARS_MAX);
        let source = match (&listed.from, listed.source) {
            (Some(from), "file") => from.clone(),
            (Some(from), source) => format!("{source}: {from}"),
            (None, source) => source.to_string(),
        };
        // A value with a unit in it needs no other.
        let unit = if listed.value.is_number() && !value.starts_with('"') { listed.unit } else { "" };
        [
            listed.key.clone(),
            format!("{value} {unit}").trim_end().to_string(),
            source,
            listed.changes.to_string(),
        ]
    };
    let rows: Vec<[String; 4]> = all.iter().map(row).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let (a, b, c) = (width(0), width(1), width(2));
    rows.iter()
        .map(|[key, value, source, live]| format!("{key:a$}  {value:b$}  {source:c$}  {live}\n"))
        .collect()
}

/// Settings that have a value, in their sections. Credentials are not among them.
fn as_file(all: &[Listed]) -> String {
    let (mut text, mut section) = (String::new(), "");
    // A list of tables may stand before the first section only.
    let (lists, settings): (Vec<&Listed>, Vec<&Listed>) =
        all.iter().partition(|listed| !listed.key.contains('.'));
    for listed in lists
        .into_iter()
        .filter(|listed| ["recrawl", "server"].contains(&listed.key.as_str()))
        .chain(settings)
    {
        let Some(value) = &listed.text else { continue };
        let (header, name) = listed.key.split_once('.').unwrap_or(("", &listed.key));
        if header != section {
            text += &format!("{}[{header}]\n", if text.is_empty() { "" } else { "\n" });
            section = header;
        }
        text += &format!("{name} = {value}\n");
    }
    text
}
