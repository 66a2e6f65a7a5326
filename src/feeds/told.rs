use crate::base::{counted, shown};
use std::fmt;
use std::path::PathBuf;

/// What an operator should hear about the files of feeds and stories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The end of the journal of feeds was torn.
    JournalTorn { bytes: u64 },
    /// The end of the ledger of stories was torn.
    LedgerTorn { bytes: u64 },
    /// A part of the ledger cannot be read.
    LedgerDamaged { file: PathBuf, at: u64, bytes: u64 },
    /// Feeds that are read again, as the ledger lacks stories that they brought.
    ReadAgain { feeds: u64 },
    /// What stories are known by was made again from the ledger.
    PrintsRebuilt,
}

impl Told {
    /// A name for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Told::JournalTorn { .. } => "feeds_journal_torn",
            Told::LedgerTorn { .. } => "stories_torn",
            Told::LedgerDamaged { .. } => "stories_damaged",
            Told::ReadAgain { .. } => "feeds_read_again",
            Told::PrintsRebuilt => "stories_prints_rebuilt",
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Told::JournalTorn { bytes } => {
                write!(f, "feeds: the last {} of the journal were torn by a crash", counted(*bytes, "byte"))
            }
            Told::LedgerTorn { bytes } => write!(
                f,
                "stories: the last {} were torn by a crash; what was in them is found again",
                counted(*bytes, "byte")
            ),
            Told::LedgerDamaged { file, at, bytes } => write!(
                f,
                "stories: {} of {} from byte {at} on are damaged; the stories in them are lost (put a copy back)",
                counted(*bytes, "byte"),
                shown(&file.to_string_lossy(), 300)
            ),
            Told::ReadAgain { feeds } => {
                write!(
                    f,
                    "feeds: {} had more stories than reached the disk, and are read again",
                    counted(*feeds, "feed")
                )
            }
            Told::PrintsRebuilt => {
                f.write_str("stories: what they are known by was made again from the ledger")
            }
        }
    }
}
