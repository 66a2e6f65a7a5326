//! The `nephila` binary: see the library for everything.

use clap::Parser;
use clap::error::ErrorKind;
use nephila::base::shown;
use nephila::commands::{Cli, run, say, show_help, survive_file_limits};
use std::process::ExitCode;

fn main() -> ExitCode {
    survive_file_limits();
    match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(e) => match e.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => show_help(&e),
            // One line: what is wrong, and a hint where there is one.
            _ => {
                let text = e.to_string();
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let cause = lines.next().unwrap_or_default().trim_start_matches("error: ");
                let hint: Vec<&str> = lines
                    .take_while(|line| !line.starts_with("Usage:"))
                    .filter(|line| !line.starts_with("For more"))
                    .collect();
                let hint = if hint.is_empty() { String::new() } else { format!(" ({})", hint.join(" ")) };
                let text = shown(&format!("{cause}{hint}"), 4_000);
                say(format_args!("nephila: {text}; see nephila --help"));
                ExitCode::from(2)
            }
        },
    }
}
