//! The manual, compiled in: a page for each topic, as Markdown that reads well in a terminal.

use super::Cli;
use super::cli::{help_width, wrapped};
use super::shared::{Failure, print, written};
use crate::admin::metrics::all_families;
use crate::base::{edits, shown};
use crate::config::reference;
use crate::engine::Event;
use clap::{Args, CommandFactory, Parser};

/// Print a page of the manual, or the help of a command
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila help crawling\n  nephila help store ls\n\nfarm, index and store are topics and commands: nephila store --help prints the help of the command."
)]
pub struct HelpArgs {
    /// A topic, or the name of a command
    #[arg(value_name = "TOPIC")]
    words: Vec<String>,
}

/// A page of the manual.
pub(super) struct Topic {
    pub name: &'static str,
    pub about: &'static str,
    text: &'static str,
}

pub(super) const TOPICS: [Topic; 17] = [
    Topic {
        name: "first-crawl",
        about: "a first hour: try, crawl, stop, resume, look, crawl again",
        text: include_str!("../manual/first-crawl.md"),
    },
    Topic {
        name: "crawling",
        about: "seeds, scope, https, credentials, results, data directory",
        text: include_str!("../manual/crawling.md"),
    },
    Topic {
        name: "index",
        about: "every URL known: resume, retries, rules, import, explain",
        text: include_str!("../manual/index.md"),
    },
    Topic {
        name: "store",
        about: "segments, records, bounds, damage",
        text: include_str!("../manual/store.md"),
    },
    Topic {
        name: "archives",
        about: "WARC, CDXJ and WACZ out of a store, WARC into one",
        text: include_str!("../manual/archives.md"),
    },
    Topic {
        name: "split",
        about: "URL server, spiders and store server as processes",
        text: include_str!("../manual/split.md"),
    },
    Topic {
        name: "master",
        about: "logs of URLs in, the queue of every node out; two masters",
        text: include_str!("../manual/master.md"),
    },
    Topic {
        name: "cluster",
        about: "many nodes, one crawl: keys, shares, what is promised, what to do",
        text: include_str!("../manual/cluster.md"),
    },
    Topic {
        name: "feeds",
        about: "feeds polled when they are due, stories found once, their texts searched",
        text: include_str!("../manual/feeds.md"),
    },
    Topic {
        name: "politeness",
        about: "pauses, robots.txt, back-off, audit",
        text: include_str!("../manual/politeness.md"),
    },
    Topic {
        name: "monitoring",
        about: "figures for Prometheus, and what to make of them",
        text: include_str!("../manual/monitoring.md"),
    },
    Topic {
        name: "services",
        about: "a crawl under systemd: start, watch, change, stop, move",
        text: include_str!("../manual/services.md"),
    },
    Topic {
        name: "logs",
        about: "events in text, JSON or systemd's journal; crawl.log in parts",
        text: include_str!("../manual/logs.md"),
    },
    Topic {
        name: "settings",
        about: "the settings file and every setting",
        text: include_str!("../manual/settings.md"),
    },
    Topic {
        name: "tuning",
        about: "settings of kernel and hardware: check, explain, change, revert",
        text: include_str!("../manual/tuning.md"),
    },
    Topic {
        name: "farm",
        about: "a made-up web on loopback: webs by name, traps, names, many hosts",
        text: include_str!("../manual/farm.md"),
    },
    Topic {
        name: "protocols",
        about: "lines, records, logs and JSON, to the byte",
        text: include_str!("../manual/protocols.md"),
    },
];

/// Lists the topics, for the end of `nephila --help`.
pub fn topics() -> String {
    let about = |topic: &Topic| wrapped(topic.about, 15, help_width());
    let lines: Vec<String> =
        TOPICS.iter().map(|topic| format!("  {:<12} {}", topic.name, about(topic))).collect();
    format!("Topics of the manual, printed by nephila help TOPIC:\n{}", lines.join("\n"))
}

impl HelpArgs {
    pub fn run(self) -> Result<(), Failure> {
        let topic = match &self.words[..] {
            [word] => TOPICS.iter().find(|topic| topic.name == word.as_str()),
            _ => None,
        };
        match topic {
            Some(topic) => print(&topic.page()),
            None => command_help(&self.words),
        }
    }
}

impl Topic {
    /// The text without what is written for other readers than people (`<!-- … -->`). The pages of the settings, of
    /// figures and of the logs end with the tables that their definitions make.
    pub fn page(&self) -> String {
        let mut page = String::with_capacity(self.text.len());
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("<!--") {
                // The blank line that follows it goes as well.
                lines.next();
                continue;
            }
            page += line;
            page.push('\n');
        }
        match self.name {
            "settings" => format!("{page}\n{}", reference()),
            "monitoring" => format!("{page}\n{}", all_families()),
            "logs" => page + &events(),
            _ => page,
        }
    }
}

/// Every event as a table.
fn events() -> String {
    let mut rows =
        vec![["event", "level", "fields", "means"].map(str::to_string), ["---"; 4].map(str::to_string)];
    for event in Event::ALL {
        let (name, level) = (format!("`{}`", event.name()), event.level().name().to_string());
        rows.push([name, level, event.fields().join(" "), event.meaning().to_string()]);
    }
    let [a, b, c] = [0, 1, 2].map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    let row = |[name, level, fields, means]: &[String; 4]| {
        format!("| {name:a$} | {level:b$} | {fields:c$} | {means} |\n")
    };
    rows.iter().map(row).collect()
}

/// Prints what `nephila WORDS… --help` prints.
fn command_help(words: &[String]) -> Result<(), Failure> {
    let command = Cli::command();
    if let Some(word) = words.first().filter(|word| command.find_subcommand(word).is_none()) {
        return Err(unknown(word, &command));
    }
    let typed = words.iter().map(String::as_str);
    match Cli::try_parse_from(std::iter::once("nephila").chain(typed).chain(["--help"])) {
        Err(help) if !help.use_stderr() => written(help.print()),
        _ => Err(Failure::Usage(format!("{} is no command", shown(&words.join(" "), 100)))),
    }
}

/// What is said of a word that is neither.
pub(super) fn unknown(word: &str, command: &clap::Command) -> Failure {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let names = topics.clone().chain(command.get_subcommands().map(clap::Command::get_name));
    // What begins as typed is nearer than any other.
    let distance = |name: &&str| if name.starts_with(word) { 0 } else { edits(word, name) };
    let nearest = names.min_by_key(distance).filter(|name| distance(name) <= name.len() / 2);
    let hint = nearest.map_or(String::new(), |name| format!("did you mean {name}? "));
    let topics: Vec<&str> = topics.collect();
    Failure::Usage(format!(
        "no topic or command is called {} ({hint}topics are {}; nephila --help lists the commands)",
        shown(word, 100),
        topics.join(", ")
    ))
}
