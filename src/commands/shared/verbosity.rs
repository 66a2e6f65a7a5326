use std::sync::atomic::{AtomicU8, Ordering};

/// How much is said on stderr: as `-q` and `-v` ask for.
#[derive(Clone, Copy)]
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
