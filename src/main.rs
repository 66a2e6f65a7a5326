//! The `nephila` binary: see the library for everything.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    nephila::commands::run(nephila::commands::Cli::parse())
}
