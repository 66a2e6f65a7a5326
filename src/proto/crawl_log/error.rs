use super::LINE_BYTES_MAX;
use thiserror::Error;

/// What is wrong with a line, by its first fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LogError {
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("not printable ASCII")]
    NotText,
    #[error("{0} fields, not 11")]
    Fields(usize),
    /// The field of this name does not read.
    #[error("the {0} does not read")]
    Field(&'static str),
    /// The note of this name is missing or does not read.
    #[error("the note {0} is missing or does not read")]
    Note(&'static str),
    /// The setting of this name in the line that opens a run.
    #[error("the setting {0} is missing or does not read")]
    Setting(&'static str),
}
