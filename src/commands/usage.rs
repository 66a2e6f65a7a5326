//! What is said about a command line that cannot be understood: the cause, how the command is used, and where to read on.

use super::Cli;
use super::cli::show_help;
use super::shared::say_failure;
use crate::base::shown;
use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

impl Cli {
    /// What was typed, or the exit status after it was answered: with help, or with what is wrong.
    pub fn typed() -> Result<Cli, ExitCode> {
        parse(std::env::args_os()).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => show_help(&error),
            _ => {
                let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
                say_failure(complaint(&said_of(&error), typed));
                ExitCode::from(2)
            }
        })
    }
}

/// A number below zero is a value like any other: what it is given to knows what is wrong with it.
fn parse(typed: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = takes_negative(Cli::command());
    let matches = command.try_get_matches_from_mut(typed)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn takes_negative(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| {
            let is_value = !arg.is_positional() && arg.get_action().takes_values();
            if is_value { arg.allow_negative_numbers(true) } else { arg }
        })
        .mut_subcommands(takes_negative)
}

/// What is wrong, without what was meant for other programs.
fn said_of(error: &clap::Error) -> String {
    let value = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (number, flag) = (value(ContextKind::InvalidValue), value(ContextKind::InvalidArg));
    if error.kind() == ErrorKind::ValueValidation && number.parse::<f64>().is_ok_and(|number| number < 0.0) {
        return format!("error: {number} for {flag}: must be at least 0");
    }
    error.to_string()
}

/// One line: the cause with a hint where there is one, the usage of the command at hand, and its help.
fn complaint(error: &str, typed: impl Iterator<Item = String>) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let cause = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let hint: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.starts_with("For more") && !line.contains(" as a value, use '-- "))
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
    format!("nephila: {cause}; usage: {usage}; see {name} --help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_at_hand_is_the_one_that_was_named() {
        let said = |error: &str, typed: &[&str]| complaint(error, typed.iter().map(|word| word.to_string()));
        let text = said("error: bad\n\n  tip: try\n\nUsage: x\n", &["-q", "store", "cat", "--head", "ls"]);
        assert!(text.starts_with("nephila: bad (tip: try); usage: nephila store cat ["), "{text}");
        assert!(text.contains("URL") && text.ends_with("; see nephila store cat --help"), "{text}");
        let text = said("error: bad", &["nonsense", "crawl"]);
        assert!(text.ends_with("; see nephila --help"), "{text}");
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
