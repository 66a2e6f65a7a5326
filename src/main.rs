//! The `nephila` binary: see the library for everything.

use nephila::commands::{Cli, run, survive_file_limits};
use std::process::ExitCode;

fn main() -> ExitCode {
    survive_file_limits();
    match Cli::typed() {
        Ok(cli) => run(cli),
        Err(status) => status,
    }
}
