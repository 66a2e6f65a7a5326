//! Words for the user on stderr, as many as `-q` and `-v` ask for. A line that cannot be written is lost, and nothing else.

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Failures only.
    Quiet,
    Normal,
    Verbose,
}

/// Of the whole process, set once before anything is said.
static VERBOSITY: AtomicU8 = AtomicU8::new(Verbosity::Normal as u8);

impl Verbosity {
    pub fn set(self) {
        VERBOSITY.store(self as u8, Ordering::Relaxed);
    }

    /// Whether what is said from this on is said.
    pub fn is_on(self) -> bool {
        VERBOSITY.load(Ordering::Relaxed) >= self as u8
    }
}

/// Says why a command failed.
pub(crate) fn say_failure(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says something, unless `-q` was given.
pub(crate) fn say(line: &str) {
    if Verbosity::Normal.is_on() {
        say_failure(line);
    }
}

/// Says something that is worth knowing with `-v` only.
pub(crate) fn say_more(line: &str) {
    if Verbosity::Verbose.is_on() {
        say_failure(line);
    }
}
