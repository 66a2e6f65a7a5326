//! What is said about a command line that cannot be understood: the cause, how the command is used, and where to read on.

use super::Cli;
use super::cli::show_help;
use super::shared::say_failure;
use crate::base::shown;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

impl Cli {
    /// What was typed, or the exit status after it was answered: with help, or with what is wrong.
    pub fn typed() -> Result<Cli, ExitCode> {
        Cli::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => show_help(&error),
            _ => {
                let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
                say_failure(complaint(&error.to_string(), typed));
                ExitCode::from(2)
            }
        })
    }
}

/// Three lines: the cause with a hint where there is one, the usage of the command at hand, and its help.
fn complaint(error: &str, typed: impl Iterator<Item = String>) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let cause = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let hint: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.starts_with("For more"))
        .collect();
    let hint = if hint.is_empty() { String::new() } else { format!(" ({})", hint.join(" ")) };
    let mut command = Cli::command();
    command.build();
    // The words that name commands, one below the other, are the command at hand.
    let mut at = &mut command;
    for word in typed.filter(|word| !word.starts_with('-')) {
        if at.find_subcommand(&word).is_none() {
            break;
        }
        at = at.find_subcommand_mut(&word).expect("it was found a moment ago");
    }
    let usage = at.render_usage().to_string();
    let usage = usage.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    let name = at.get_bin_name().unwrap_or("nephila");
    let cause = shown(&format!("{cause}{hint}"), 4_000);
    format!("nephila: {cause}\nusage: {usage}\nhelp:  {name} --help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_at_hand_is_the_one_that_was_named() {
        let said = |error: &str, typed: &[&str]| complaint(error, typed.iter().map(|word| word.to_string()));
        let text = said("error: bad\n\n  tip: try\n\nUsage: x\n", &["-q", "store", "cat", "--head", "ls"]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "nephila: bad (tip: try)");
        assert!(lines[1].starts_with("usage: nephila store cat ") && lines[1].contains("URL"), "{text}");
        assert_eq!(lines[2], "help:  nephila store cat --help");
        let text = said("error: bad", &["nonsense", "crawl"]);
        assert!(text.ends_with("help:  nephila --help"), "{text}");
    }

    /// Every command, and every command of a command.
    #[test]
    fn every_help_has_an_example() {
        fn look(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name());
                let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(after.contains("Example"), "{path}");
                look(sub, &path);
            }
        }
        look(&Cli::command(), "nephila");
    }
}
