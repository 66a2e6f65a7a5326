use std::fmt::Display;

/// Why a command did not do what it was asked. What went wrong below commands, and is not of the user's making, turns
/// into `CannotRun` by `?`.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The answer is "no": exit 1. The text may be empty if the answer was printed.
    No(String),
    /// Usage or configuration: exit 2.
    Usage(String),
    /// Could not run: exit 3.
    CannotRun(String),
}

impl Failure {
    pub fn usage(error: impl Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    pub fn cannot_run(error: impl Display) -> Failure {
        Failure::CannotRun(error.to_string())
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::cannot_run(error)
    }
}
