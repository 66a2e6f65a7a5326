use super::shared::{Failure, Ticker, now_ms, say, tell};
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

pub(super) fn import(data: &Path, file: &Path, json: bool) -> Result<(), Failure> {
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(file).map_err(|e| {
            Failure::Usage(format!("cannot read {}: {e} (name a file, or - for stdin)", file.display()))
        })?),
    };
    let directory = DataDir::open(data)?;
    let mut index = OpenIndex::open_as_before(&directory)?.index;
    let mut ticker = Ticker::new();
    let mut summary = Summary::default();
    let taken = take(&mut index, BufReader::new(input), &mut summary, &mut ticker, file);
    let taken = taken.and_then(|()| index.close());
    ticker.end();
    taken.map_err(|e| Failure::CannotRun(format!("{}: {e}; what came before is kept", file.display())))?;
    tell(&summary, json, Summary::text)?;
    match summary.bad > 0 && summary.bad == summary.lines {
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
            input.skip_until(b'\n')?;
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
                    let (line, cause) = (shown(line.trim_end(), 100), shown(&cause, 200));
                    say(format_args!("nephila: {}:{number}: skipped: {line}: {cause}", file.display()));
                } else if summary.bad == NAMED_MAX + 1 {
                    say(format_args!("nephila: {}: more bad lines are counted, not named", file.display()));
                }
            }
        }
        summary.lines += 1;
        if summary.lines.is_multiple_of(LINES_PER_FLUSH) {
            index.flush(false)?;
        }
        ticker.show(|_| Some(format!("{} lines", summary.lines)));
    }
}

impl Summary {
    fn text(&self) -> String {
        let Summary { lines, new, known, moved_up, due, refused, bad } = self;
        format!(
            "{lines} lines: {new} new, {known} known, {moved_up} moved up, {due} due at once, {refused} over budget, {bad} bad\n"
        )
    }

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
