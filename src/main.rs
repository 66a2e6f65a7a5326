//! The `nephila` binary: see the library for everything.

use nephila::commands::{Cli, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::typed() {
        Ok(cli) => run(cli),
        Err(status) => status,
    }
}
