use super::{Failure, now_ms};
use crate::base::rfc3339;
use crate::engine::{Ended, Summary};
use crate::storage::replace;
use crate::store_server::{DataDir, HeldDirectory};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The last crawl of a data directory: when it began and, unless it was killed, when and how it ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunNote {
    pub pid: u32,
    pub started_at: String,
    pub ended_at: Option<String>,
    /// `done`, `stopped`, the limit that was reached, or what kept it from going on.
    pub ended: Option<String>,
    pub pages: u64,
}

/// The note of a crawl that runs. Until it has ended, the directory is held.
pub(crate) struct OpenNote {
    path: PathBuf,
    note: RunNote,
    _held: HeldDirectory,
}

const FILE: &str = "run.json";
const BYTES_MAX: u64 = 64 * 1_024;

impl RunNote {
    /// `None` where there is none that can be read.
    pub fn read(data: &Path) -> Option<RunNote> {
        let mut text = Vec::new();
        File::open(data.join(FILE)).ok()?.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl OpenNote {
    /// Notes that a crawl begins in a directory that it holds.
    pub fn begin(directory: &DataDir) -> OpenNote {
        let note = RunNote { pid: std::process::id(), started_at: rfc3339(now_ms()), ..RunNote::default() };
        let note = OpenNote { path: directory.path().join(FILE), note, _held: directory.hold() };
        note.write();
        note
    }

    /// Notes how it ended.
    pub fn end(mut self, ended: &Result<Summary, Failure>) {
        let how = match ended {
            Ok(summary) => match summary.ended {
                Ended::Done => "done",
                Ended::Linger => "what is left is not due yet",
                Ended::MaxPages => "--max-pages reached",
                Ended::MaxSeconds => "--max-seconds reached",
                Ended::Signal => "stopped",
            },
            Err(Failure::No(text) | Failure::Usage(text) | Failure::CannotRun(text)) => text,
        };
        self.note.ended = Some(how.to_string());
        self.note.pages = ended.as_ref().map_or(0, |summary| summary.pages);
    }

    /// Notes that it ends without taking leave; nothing is dropped after this.
    pub fn stopped_at_once(&mut self, pages: u64) {
        self.note.ended = Some("stopped at once by a second signal".to_string());
        (self.note.ended_at, self.note.pages) = (Some(rfc3339(now_ms())), pages);
        self.write();
    }

    /// A note that cannot be written is no reason to stop.
    fn write(&self) {
        let _ = serde_json::to_vec(&self.note).map(|text| replace(&self.path, &text));
    }
}

impl Drop for OpenNote {
    fn drop(&mut self) {
        self.note.ended.get_or_insert_with(|| "it could not start".to_string());
        self.note.ended_at = Some(rfc3339(now_ms()));
        self.write();
    }
}
