use super::super::ServerId;
use crate::base::{counted, shown};
use std::fmt;
use std::path::PathBuf;

/// What an operator should hear about a master's directory and its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A process was killed in this epoch, which is made again.
    EpochAgain { epoch: u64 },
    /// The end of the journal was torn.
    JournalTorn { bytes: u64 },
    /// A part of a queue cannot be read.
    QueueDamaged { server: ServerId, file: PathBuf, at: u64, what: &'static str },
    /// A file with this content was taken before.
    KnownFile { path: PathBuf },
    /// It cannot be read, and is left where it is.
    UnreadableFile { path: PathBuf, cause: String },
    /// An input of an epoch that was to be made again is gone, or has changed: its epoch is made without it.
    LostFile { path: PathBuf },
    /// The current_log was emptied by hand.
    CurrentEmptied { path: PathBuf },
    /// Rows of the map name a server that is not configured; their URLs wait.
    NoServer { server: ServerId, urls: u64 },
    /// Files that are damaged, of which a part was taken.
    FilesCut { files: u64 },
    /// What follows a commit could not be done; it is tried again.
    Untidy { path: PathBuf, cause: String },
}

impl Told {
    /// A name for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Told::EpochAgain { .. } => "epoch_again",
            Told::JournalTorn { .. } => "journal_torn",
            Told::QueueDamaged { .. } => "queue_damaged",
            Told::KnownFile { .. } => "known_file",
            Told::UnreadableFile { .. } => "unreadable_file",
            Told::LostFile { .. } => "lost_file",
            Told::CurrentEmptied { .. } => "current_emptied",
            Told::NoServer { .. } => "no_server",
            Told::FilesCut { .. } => "files_cut",
            Told::Untidy { .. } => "untidy",
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |path: &PathBuf| shown(&path.to_string_lossy(), 300);
        match self {
            Told::EpochAgain { epoch } => write!(f, "epoch {epoch} was not committed, and is made again"),
            Told::JournalTorn { bytes } => {
                write!(f, "the last {} of the journal were torn by a crash", counted(*bytes, "byte"))
            }
            Told::QueueDamaged { server, file, at, what } => write!(
                f,
                "the queue of server {} is damaged in {} at byte {at}: {what} (its node takes what is missing from the other master)",
                server.0,
                name(file)
            ),
            Told::KnownFile { path } => write!(f, "{} was taken before, and is skipped", name(path)),
            Told::UnreadableFile { path, cause } => write!(f, "{} is left where it is: {cause}", name(path)),
            Told::LostFile { path } => {
                write!(
                    f,
                    "{} is gone or has changed since its epoch began, which is made without it",
                    name(path)
                )
            }
            Told::CurrentEmptied { path } => write!(
                f,
                "{} is empty: URLs of the last hour are sent again, and hits that waited are lost",
                name(path)
            ),
            Told::NoServer { server, urls } => write!(
                f,
                "{} of domains that the map has with server {} wait: it is not configured (add it, or move them)",
                counted(*urls, "URL"),
                server.0
            ),
            Told::FilesCut { files } => {
                let count = counted(*files, "file");
                write!(f, "{count} could be read in part only: what came was taken (see master rejects)")
            }
            Told::Untidy { path, cause } => write!(f, "{} could not be tidied up: {cause}", name(path)),
        }
    }
}
