//! What is done to a store as a whole: looking through it, making its indexes anew, letting old records go.

use super::shared::{DataArg, Failure, mb, print, tell};
use crate::base::{rfc3339, shown};
use crate::config::StoreSettings;
use crate::proto::warc::read_date;
use crate::store_server::{Damage, DataDir, Maintenance, Retention, RetentionRules, Verified};
use serde::Serialize;
use std::fmt::Write;

/// Faults that are named one by one; the rest is counted.
const NAMED_MAX: usize = 20;

#[derive(Serialize)]
struct VerifiedJson {
    sound: bool,
    segments: usize,
    records: u64,
    references: u64,
    document_bytes: u64,
    damaged: usize,
    broken: usize,
    wrong_indexes: usize,
    unindexed: usize,
    torn: usize,
}

pub(super) fn verify(data: &DataArg, json: bool) -> Result<(), Failure> {
    let verified = data.reader()?.verify()?;
    let object = VerifiedJson {
        sound: verified.is_sound(),
        segments: verified.segments,
        records: verified.records,
        references: verified.references,
        document_bytes: verified.document_bytes,
        damaged: verified.damages.len(),
        broken: verified.broken.len(),
        wrong_indexes: verified.wrong_indexes.len(),
        unindexed: verified.unindexed,
        torn: verified.torn.len(),
    };
    tell(&object, json, |_| verified_text(&verified))?;
    if verified.is_sound() {
        return Ok(());
    }
    let mend = match verified.damages.is_empty() && verified.broken.is_empty() {
        true => "nephila store reindex makes the indexes anew",
        false => {
            "everything else can be read; after nephila store reindex what is damaged can be fetched again"
        }
    };
    Err(Failure::No(format!("the store at {} is not sound: {mend}", data.path.display())))
}

fn verified_text(verified: &Verified) -> String {
    let Verified { segments, records, references, unindexed, .. } = verified;
    let document_mb = mb(verified.document_bytes);
    let mut text = format!(
        "segments   {segments}\nrecords    {records} ({references} of them references)\ndocuments  {document_mb:.1} MB\n"
    );
    for (path, end) in verified.torn.iter().take(NAMED_MAX) {
        let path = path.display();
        let _ =
            writeln!(text, "torn       {path} behind byte {end}: being written, or its process was killed");
    }
    if *unindexed > 0 {
        let _ = writeln!(text, "unindexed  {unindexed} segments: they are read themselves");
    }
    for Damage { path, bytes } in verified.damages.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "damaged    {} from byte {} to {}", path.display(), bytes.start, bytes.end);
    }
    for (url, Damage { path, bytes }) in verified.broken.iter().take(NAMED_MAX) {
        let (url, path, start) = (shown(url, 200), path.display(), bytes.start);
        let _ = writeln!(text, "broken     {url}: no document ({path} at byte {start})");
    }
    for path in verified.wrong_indexes.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "index      {} does not say what is there", path.display());
    }
    text + if verified.is_sound() { "sound\n" } else { "not sound\n" }
}

pub(super) fn reindex(data: &DataArg) -> Result<(), Failure> {
    let directory = own(data)?;
    let made = Maintenance::new(directory.path(), keeping(), Vec::new()).reindex()?;
    print(&format!("indexed {} records of {} segments\n", made.records, made.segments))
}

/// What is to go.
pub(super) enum ToGo {
    /// `YYYY-MM-DD`, or with a time as RFC 3339 has it in UTC.
    Before(String),
    /// The oldest, until no more than this many bytes are left.
    Beyond(u64),
    /// All but the newest record of each URL.
    OutOfDate,
}

pub(super) fn let_go(data: &DataArg, what: &ToGo) -> Result<(), Failure> {
    // A date that cannot be read is told before anything is opened.
    let before = if let ToGo::Before(text) = what { Some(unix_ms_of(text)?) } else { None };
    let directory = own(data)?;
    let mut retention = Retention::new(directory.path(), keeping(), Vec::new());
    let gone = match (what, before) {
        (ToGo::Before(_), Some(unix_ms)) => retention.drop_before(unix_ms)?,
        (ToGo::Beyond(bytes), _) => retention.drop_to(*bytes)?,
        _ => retention.repack()?,
    };
    // Merged indexes of what has changed are gone; they are made anew here, not by the next crawl.
    Maintenance::new(directory.path(), keeping(), Vec::new()).turn(&[])?;
    let (segments, records, gone_mb) = (gone.segments, gone.records, mb(gone.bytes));
    let mut text = format!("{segments} segments and {records} records ({gone_mb:.1} MB) are gone\n");
    if gone.kept > 0 {
        text += &format!("{} records stay: they are the newest, or others read like them\n", gone.kept);
    }
    print(&text)
}

/// No other process may write while segments go. A crawl does the same by itself, by `bytes_max` and `history`.
fn own(data: &DataArg) -> Result<DataDir, Failure> {
    // Opening would make a directory that is not there.
    data.reader()?;
    DataDir::open(&data.path).map_err(|error| {
        Failure::CannotRun(format!(
            "{error}; a running crawl does this by itself with [store] bytes_max and history"
        ))
    })
}

fn keeping() -> RetentionRules {
    RetentionRules::all(StoreSettings::default().segment_bytes.0)
}

/// A day, or a time of it in seconds, in UTC: only what reads as it would be written.
fn unix_ms_of(text: &str) -> Result<u64, Failure> {
    let as_written = |unix_ms: &u64| {
        let written = rfc3339(*unix_ms);
        text == &written[..10] || text.strip_suffix('Z') == Some(&written[..19])
    };
    read_date(text).filter(as_written).ok_or_else(|| {
        Failure::Usage(format!(
            "--before {}: not a date like 2026-11-15 or 2026-11-15T12:00:00Z",
            shown(text, 60)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_strictly() {
        assert_eq!(unix_ms_of("1970-01-02").ok(), Some(86_400_000));
        assert_eq!(unix_ms_of("2026-11-15T12:00:01Z").ok(), Some(1_794_744_001_000));
        for bad in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-1-1",
            "2026-11-15T12:00:00",
            "2026-11-15T24:00:00Z",
            "2026-11-15 12:00:00Z",
            "+026-11-15",
        ] {
            assert!(unix_ms_of(bad).is_err(), "{bad}");
        }
    }
}
