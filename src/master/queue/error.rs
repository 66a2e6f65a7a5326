use std::fmt;
use std::io;

/// Why entries of a queue cannot be had.
#[derive(Debug)]
pub enum QueueError {
    /// The queue ends before that number.
    Beyond {
        asked: u64,
        next: u64,
    },
    /// Entries below `first` were let go.
    Gone {
        asked: u64,
        first: u64,
    },
    /// A block is damaged; `next` is the first entry behind it that can be read.
    Damaged {
        seq: u64,
        next: u64,
        file: String,
    },
    Io(io::Error),
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueError::Beyond { asked, next } => {
                write!(f, "{asked} is beyond the queue, which ends at {next}")
            }
            QueueError::Gone { asked, first } => {
                write!(f, "{asked} was let go: the queue begins at {first}")
            }
            QueueError::Damaged { seq, next, file } => {
                write!(
                    f,
                    "{file} is damaged: entries {seq} to {next} cannot be read (go on from {next}, or take them from the other master)"
                )
            }
            QueueError::Io(cause) => write!(f, "the queue cannot be read: {cause}"),
        }
    }
}

impl std::error::Error for QueueError {}

impl From<io::Error> for QueueError {
    fn from(cause: io::Error) -> QueueError {
        QueueError::Io(cause)
    }
}
