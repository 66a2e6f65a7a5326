use super::Failure;
use super::index::now_ms;
use super::output::print;
use super::ticker::Ticker;
use crate::base::shown;
use crate::doc_index::{DocIndex, Import, Imported};
use crate::engine::OpenIndex;
use crate::store_server::DataDir;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// What `index import` says at its end.
#[derive(Serialize, Default)]
struct Summary {
    lines: u64,
    new: u64,
    known: u64,
    moved_up: u64,
    due: u64,
    refused: u64,
    bad: u64,
}

/// The longest line: a URL of 8,000 bytes, each of them escaped, in three fields of an export.
const LINE_BYTES_MAX: usize = 256 * 1_024;
/// Bad lines that are named one by one; the rest is counted.
const NAMED_MAX: u64 = 20;
/// Lines between two writings to the disk.
const LINES_PER_FLUSH: u64 = 100_000;

pub fn import(data: &Path, file: &Path, json: bool) -> Result<(), Failure> {
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(file).map_err(|e| {
            Failure::Usage(format!("cannot read {}: {e} (name a file, or - for stdin)", file.display()))
        })?),
    };
    let directory = DataDir::open(data).map_err(Failure::cannot_run)?;
    let mut index = OpenIndex::open_as_before(&directory).map_err(Failure::cannot_run)?.index;
    let mut ticker = Ticker::new();
    let mut summary = Summary::default();
    let taken = take(&mut index, BufReader::new(input), &mut summary, &mut ticker, file);
    let taken = taken.and_then(|()| index.close());
    ticker.end();
    taken.map_err(|e| Failure::CannotRun(format!("{}: {e}; what came before is kept", file.display())))?;
    let Summary { lines, new, known, moved_up, due, refused, bad } = &summary;
    match json {
        true => print(&(serde_json::to_string(&summary).map_err(Failure::cannot_run)? + "\n"))?,
        false => print(&format!(
            "{lines} lines: {new} new, {known} known, {moved_up} moved up, {due} due at once, {refused} over budget, {bad} bad\n"
        ))?,
    }
    match *bad > 0 && *bad == *lines {
        true => Err(Failure::Usage("no line could be read".to_string())),
        false => Ok(()),
    }
}

fn take(
    index: &mut DocIndex,
    mut input: impl BufRead,
    summary: &mut Summary,
    ticker: &mut Ticker,
    file: &Path,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut number = 0u64;
    loop {
        bytes.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        let whole = bytes.ends_with(b"\n") || read < LINE_BYTES_MAX;
        if !whole {
            skip_line(&mut input)?;
        }
        let line = String::from_utf8_lossy(&bytes);
        let import = match whole {
            true => Import::read(&line).map_err(|error| error.to_string()),
            false => Err(format!("longer than {LINE_BYTES_MAX} bytes")),
        };
        match import {
            Ok(None) => continue,
            Ok(Some(import)) => summary.count(index.import(&import, (now_ms() / 1_000) as u32)?),
            Err(cause) => {
                summary.bad += 1;
                if summary.bad <= NAMED_MAX {
                    let line = shown(line.trim_end(), 100);
                    eprintln!(
                        "nephila: {}:{number}: skipped: {line}: {}",
                        file.display(),
                        shown(&cause, 200)
                    );
                } else if summary.bad == NAMED_MAX + 1 {
                    eprintln!("nephila: {}: more bad lines are counted, not named", file.display());
                }
            }
        }
        summary.lines += 1;
        if summary.lines.is_multiple_of(LINES_PER_FLUSH) {
            index.flush(false)?;
        }
        ticker.show(|| format!("{} lines", summary.lines));
    }
}

/// Passes over what is left of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let held = input.fill_buf()?;
        let (used, ended) = match held.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (held.len(), held.is_empty()),
        };
        input.consume(used);
        if ended {
            return Ok(());
        }
    }
}

impl Summary {
    fn count(&mut self, imported: Imported) {
        let counter = match imported {
            Imported::New => &mut self.new,
            Imported::Known => &mut self.known,
            Imported::MovedUp => &mut self.moved_up,
            Imported::Due => &mut self.due,
            Imported::Refused => &mut self.refused,
        };
        *counter += 1;
    }
}
