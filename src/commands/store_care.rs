//! What is done to a store as a whole: looking through it, making its indexes anew, letting old records go.

use super::Failure;
use super::output::print;
use crate::base::{Civil, shown};
use crate::config::StoreSettings;
use crate::store_server::{DataDir, Dropped, Maintenance, Reader, Retention, RetentionRules, Verified};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

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

pub fn verify(data: &Path, json: bool) -> Result<(), Failure> {
    let verified = Reader::open(data).and_then(|reader| reader.verify()).map_err(Failure::cannot_run)?;
    let text = match json {
        true => verified_json(&verified)?,
        false => verified_text(&verified),
    };
    print(&text)?;
    if verified.is_sound() {
        return Ok(());
    }
    let mend = match verified.damages.is_empty() && verified.broken.is_empty() {
        true => "nephila store reindex makes the indexes anew",
        false => {
            "everything else can be read; after nephila store reindex what is damaged can be fetched again"
        }
    };
    Err(Failure::No(format!("the store at {} is not sound: {mend}", data.display())))
}

fn verified_json(verified: &Verified) -> Result<String, Failure> {
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
    Ok(serde_json::to_string(&object).map_err(Failure::cannot_run)? + "\n")
}

fn verified_text(verified: &Verified) -> String {
    let mut text = format!(
        "segments   {}\nrecords    {} ({} of them references)\ndocuments  {:.1} MB\n",
        verified.segments,
        verified.records,
        verified.references,
        verified.document_bytes as f64 / 1e6
    );
    for (path, end) in verified.torn.iter().take(NAMED_MAX) {
        let _ = writeln!(
            text,
            "torn       {} behind byte {end}: being written, or its process was killed",
            path.display()
        );
    }
    if verified.unindexed > 0 {
        let _ = writeln!(text, "unindexed  {} segments: they are read themselves", verified.unindexed);
    }
    for damage in verified.damages.iter().take(NAMED_MAX) {
        let _ = writeln!(
            text,
            "damaged    {} from byte {} to {}",
            damage.path.display(),
            damage.bytes.start,
            damage.bytes.end
        );
    }
    for (url, place) in verified.broken.iter().take(NAMED_MAX) {
        let _ = writeln!(
            text,
            "broken     {}: no document ({} at byte {})",
            shown(url, 200),
            place.path.display(),
            place.bytes.start
        );
    }
    for path in verified.wrong_indexes.iter().take(NAMED_MAX) {
        let _ = writeln!(text, "index      {} does not say what is there", path.display());
    }
    let _ = writeln!(text, "{}", if verified.is_sound() { "sound" } else { "not sound" });
    text
}

pub fn reindex(data: &Path) -> Result<(), Failure> {
    let directory = own(data)?;
    let mut librarian = Maintenance::new(directory.path(), keeping(), Vec::new());
    let made = librarian.reindex().map_err(Failure::cannot_run)?;
    print(&format!("indexed {} records of {} segments\n", made.records, made.segments))
}

/// What is to go.
pub enum ToGo {
    /// `YYYY-MM-DD`, or with a time as RFC 3339 has it in UTC.
    Before(String),
    /// All but so many bytes, the oldest first.
    Beyond(u64),
    /// All but the newest record of each URL.
    OutOfDate,
}

pub fn let_go(data: &Path, what: &ToGo) -> Result<(), Failure> {
    let before = match what {
        ToGo::Before(text) => Some(unix_ms_of(text)?),
        _ => None,
    };
    let directory = own(data)?;
    let mut retention = Retention::new(directory.path(), keeping(), Vec::new());
    let gone = match (what, before) {
        (ToGo::Before(_), Some(unix_ms)) => retention.drop_before(unix_ms),
        (ToGo::Beyond(bytes), _) => retention.drop_to(*bytes),
        _ => retention.repack(),
    }
    .map_err(Failure::cannot_run)?;
    // Merged indexes of what has changed are gone; they are made anew here, not by the next crawl.
    Maintenance::new(directory.path(), keeping(), Vec::new()).turn(&[]).map_err(Failure::cannot_run)?;
    print(&gone_text(gone))
}

fn gone_text(gone: Dropped) -> String {
    let mut text = format!(
        "{} segments and {} records ({:.1} MB) are gone\n",
        gone.segments,
        gone.records,
        gone.bytes as f64 / 1e6
    );
    if gone.kept > 0 {
        text += &format!("{} records stay: they are the newest, or others read like them\n", gone.kept);
    }
    text
}

/// Nobody else may write while segments go. A crawl does the same by itself, by `bytes_max` and `history`.
fn own(data: &Path) -> Result<DataDir, Failure> {
    // Opening would make a directory that is not there.
    Reader::open(data).map_err(Failure::cannot_run)?;
    DataDir::open(data).map_err(|error| {
        Failure::CannotRun(format!(
            "{error}; a running crawl does this by itself with [store] bytes_max and history"
        ))
    })
}

fn keeping() -> RetentionRules {
    RetentionRules::all(StoreSettings::default().segment_bytes.0)
}

fn unix_ms_of(text: &str) -> Result<u64, Failure> {
    let bad = || {
        Failure::Usage(format!(
            "--before {}: not a date like 2026-11-15 or 2026-11-15T12:00:00Z",
            shown(text, 60)
        ))
    };
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z').ok_or_else(bad)?),
        None => (text, "00:00:00"),
    };
    let numbers = |text: &str, mark: char, widths: [usize; 3]| -> Option<[u32; 3]> {
        let parts: Vec<&str> = text.split(mark).collect();
        let fits = parts.len() == 3
            && parts
                .iter()
                .zip(widths)
                .all(|(part, width)| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()));
        fits.then(|| [0, 1, 2].map(|index| parts[index].parse().unwrap_or(u32::MAX)))
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or_else(bad)?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).ok_or_else(bad)?;
    let day = Civil::checked(year, month, day).filter(|_| hour < 24 && minute < 60 && second < 60);
    let days = u64::from(day.ok_or_else(bad)?.days());
    Ok((days * 86_400 + u64::from(hour * 3_600 + minute * 60 + second)) * 1_000)
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
