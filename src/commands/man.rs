//! Manual pages: of commands, by the command line's own definition (section 1), and of the manual's topics (section 7).

use super::Cli;
use super::help::{TOPICS, Topic, unknown};
use super::roff::{control, roff};
use super::shared::{Failure, counted, hint, print};
use crate::base::shown;
use clap::{Arg, Args, Command, CommandFactory};
use std::path::{Path, PathBuf};

/// Print a manual page in roff, or write all of them
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila man crawl | man -l -\n  nephila man store ls | man -l -\n  nephila man 7 store | man -l -       (the topic, not the command)\n  nephila man --out ./man\n\nCommands are in section 1, topics of the manual in section 7. Without a name it prints nephila(1)."
)]
pub struct ManArgs {
    /// The section, 1 or 7, where a command and a topic have one name; then a command or a topic
    #[arg(value_name = "NAME")]
    words: Vec<String>,
    /// Write every page into this directory, each into a file of its own
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    out: Option<PathBuf>,
}

/// A page, ready for `man`.
struct Page {
    name: String,
    section: u8,
    text: String,
}

impl ManArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut root = Cli::command();
        root.build();
        match self.out {
            Some(dir) => write_all(&dir, &pages(&root)),
            None => print(&find(&self.words, &root)?.text),
        }
    }
}

fn write_all(dir: &Path, pages: &[Page]) -> Result<(), Failure> {
    let failed = |path: &Path, e| Failure::CannotRun(format!("cannot write {}: {e}", path.display()));
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    for Page { name, section, text } in pages {
        let path = dir.join(format!("{name}.{section}"));
        std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
    }
    hint(format_args!("{} in {}", counted(pages.len() as u64, "page"), dir.display()));
    Ok(())
}

/// Every page.
fn pages(root: &Command) -> Vec<Page> {
    fn below(command: &Command, pages: &mut Vec<Page>) {
        pages.push(command_page(command));
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.for_each(|command| below(command, pages));
    }
    let mut pages = Vec::new();
    below(root, &mut pages);
    pages.extend(TOPICS.iter().map(topic_page));
    pages
}

/// The page of these words: of a command where there is one, unless section 7 is asked for.
fn find(words: &[String], root: &Command) -> Result<Page, Failure> {
    // By the name of the page, as well.
    let words: Vec<String> = words
        .iter()
        .flat_map(|word| match word.strip_prefix("nephila") {
            Some("") => Vec::new(),
            Some(rest) if rest.starts_with('-') => {
                let name = &rest[1..];
                match TOPICS.iter().any(|topic| topic.name == name) {
                    true => vec![name.to_string()],
                    false => name.split('-').map(str::to_string).collect(),
                }
            }
            _ => vec![word.clone()],
        })
        .collect();
    let words = &words[..];
    let (section, words) = match words.split_first() {
        Some((section, rest)) if ["1", "7"].contains(&section.as_str()) => (Some(section.as_str()), rest),
        _ => (None, words),
    };
    let mut command = Some(root).filter(|_| section != Some("7"));
    for word in words {
        command = command.and_then(|command| command.find_subcommand(word));
    }
    let topic = match words {
        [word] if section != Some("1") => TOPICS.iter().find(|topic| topic.name == word.as_str()),
        _ => None,
    };
    match (command, topic, words) {
        (Some(command), ..) => Ok(command_page(command)),
        (None, Some(topic), _) => Ok(topic_page(topic)),
        (None, None, [word]) => Err(unknown(word, root)),
        (None, None, _) => {
            let name = shown(&words.join(" "), 100);
            Err(Failure::Usage(format!("no command is called {name} (nephila --help lists them)")))
        }
    }
}

fn title(name: &str, section: &str) -> String {
    let version = concat!("Nephila ", env!("CARGO_PKG_VERSION"));
    control(".TH", &[name, section, "", version, "Nephila Manual"])
}

/// Names of flags and pages are not cut at the end of a line; the string is one that the pages of commands use.
const PREAMBLE: &str = ".nh\n.ad l\n.ds Aq \\(aq\n";

/// The values of a flag are listed only where its help does not name them.
fn with_values_once(arg: Arg) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let is_told = arg.get_possible_values().iter().all(|value| help.contains(value.get_name()));
    if is_told { arg.hide_possible_values(true) } else { arg }
}

/// The page of a command, which must be built.
fn command_page(command: &Command) -> Page {
    let name = command.get_display_name().unwrap_or("nephila").to_string();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let is_root = name == "nephila";
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_string();
    let shaped = command.clone().after_help(None::<&str>).override_usage(usage).mut_args(with_values_once);
    let mut rendered = Vec::new();
    clap_mangen::Man::new(shaped).render(&mut rendered).expect("memory takes it");
    let rendered = String::from_utf8_lossy(&rendered);
    // Its title loses an argument that is empty.
    let (_, body) = rendered.split_once(".SH NAME\n").unwrap_or_default();
    let mut text = title(&name, "1") + PREAMBLE + ".SH NAME\n" + body;
    text += &roff(&if is_root { EXIT_STATUS.to_string() } else { examples(&after) });
    let same_name = TOPICS.iter().filter(|topic| name.strip_prefix("nephila-") == Some(topic.name));
    match is_root {
        true => see_also(&mut text, TOPICS.iter(), false),
        false => see_also(&mut text, same_name, true),
    }
    Page { name, section: 1, text }
}

/// The page of a topic.
fn topic_page(topic: &Topic) -> Page {
    let name = format!("nephila-{}", topic.name);
    let mut text = title(&name, "7") + PREAMBLE;
    let page = topic.page();
    let (_, body) = page.split_once('\n').unwrap_or_default();
    text += &roff(&format!("## NAME\n\n{name} - {}\n\n## DESCRIPTION\n{body}", topic.about));
    see_also(&mut text, TOPICS.iter().filter(|other| other.name != topic.name), true);
    Page { name, section: 7, text }
}

const EXIT_STATUS: &str = "\
## EXIT STATUS

| status | means |
| --- | --- |
| `0` | Done. |
| `1` | The answer is no: what was checked is damaged or denied, or nothing runs there. |
| `2` | The command line or a settings file is wrong. |
| `3` | It could not run: an address in use, no permission, a full disk. |
";

/// What follows the flags in the help of a command, as Markdown: lines of examples, then remarks.
fn examples(after: &str) -> String {
    let (mut examples, mut notes) = (String::new(), String::new());
    for line in after.lines() {
        match line.strip_prefix("  ") {
            Some(code) => examples += &format!("    {code}\n"),
            None if line.starts_with("Example") => {}
            None => notes += &format!("{line}\n"),
        }
    }
    let mut text = format!("## EXAMPLES\n\n{examples}");
    if !notes.trim().is_empty() {
        text += &format!("\n## NOTES\n{notes}");
    }
    text
}

fn see_also<'a>(text: &mut String, topics: impl Iterator<Item = &'a Topic>, with_root: bool) {
    let pages = topics.map(|topic| format!("**nephila-{}**(7)", topic.name));
    let pages: Vec<String> =
        with_root.then(|| "**nephila**(1)".to_string()).into_iter().chain(pages).collect();
    *text += &roff(&format!("## SEE ALSO\n\n{}", pages.join(", ")));
}
