use crate::base::shown;
use thiserror::Error;

/// Why a line was not understood, in words for a log: what came is shown escaped and cut.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LineError {
    #[error("a line longer than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("{what}: \"{line}\"")]
    Unreadable { what: &'static str, line: String },
}

/// Characters of a line that are shown.
const SHOWN_CHARS: usize = 100;

impl LineError {
    pub(super) fn unreadable(what: &'static str, line: &[u8]) -> LineError {
        // Four bytes a character at most, so that an endless line is not copied for its beginning.
        let start = &line[..line.len().min(4 * SHOWN_CHARS + 4)];
        LineError::Unreadable { what, line: shown(&String::from_utf8_lossy(start), SHOWN_CHARS) }
    }
}
