use super::shared::{Failure, Intake, Ticker, say, tell};
use crate::base::shown;
use crate::doc_index::Import;
use crate::engine::Taken;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// What `index import` says at its end.
#[derive(Serialize, Default)]
struct Summary {
    lines: u64,
    #[serde(flatten)]
    taken: Taken,
    /// A crawl runs there, and has them.
    running: bool,
}

/// The longest line: a URL of 8,192 bytes, each of them escaped, in three fields of an export.
const LINE_BYTES_MAX: usize = 256 * 1_024;
/// Bad lines that are named one by one; the rest is counted.
const NAMED_MAX: u64 = 20;

pub(super) fn import(data: &Path, file: &Path, json: bool) -> Result<(), Failure> {
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(file).map_err(|e| {
            Failure::Usage(format!("cannot read {}: {e} (name a file, or - for stdin)", file.display()))
        })?),
    };
    let mut intake = Intake::open(data, false)?;
    let mut ticker = Ticker::new();
    let mut summary = Summary { running: intake.is_running(), ..Summary::default() };
    let taken = take(&mut intake, BufReader::new(input), &mut summary, &mut ticker, file);
    let taken = taken.and_then(|()| intake.close());
    ticker.end();
    let taken = taken.map_err(|failure| match failure {
        Failure::CannotRun(e) => {
            Failure::CannotRun(format!("{}: {e}; what came before is kept", file.display()))
        }
        other => other,
    })?;
    summary.taken.add(&taken);
    tell(&summary, json, Summary::text)?;
    match summary.taken.bad > 0 && summary.taken.bad == summary.lines {
        true => Err(Failure::Usage("no line could be read".to_string())),
        false => Ok(()),
    }
}

fn take(
    intake: &mut Intake,
    mut input: impl BufRead,
    summary: &mut Summary,
    ticker: &mut Ticker,
    file: &Path,
) -> Result<(), Failure> {
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
            Ok(Some(import)) => intake.hand(&line, &import)?,
            Err(cause) => {
                let bad = &mut summary.taken.bad;
                *bad += 1;
                if *bad <= NAMED_MAX {
                    let (line, cause) = (shown(line.trim_end(), 100), shown(&cause, 200));
                    say(format_args!("nephila: {}:{number}: skipped: {line}: {cause}", file.display()));
                } else if *bad == NAMED_MAX + 1 {
                    say(format_args!("nephila: {}: more bad lines are counted, not named", file.display()));
                }
            }
        }
        summary.lines += 1;
        ticker.show(|_| Some(format!("{} lines", summary.lines)));
    }
}

impl Summary {
    fn text(&self) -> String {
        let Summary { lines, taken: Taken { new, known, moved_up, due, refused, bad }, running } = self;
        let running = if *running { "; the running crawl has them" } else { "" };
        format!(
            "{lines} lines: {new} new, {known} known, {moved_up} moved up, {due} due at once, {refused} over budget, {bad} bad{running}\n"
        )
    }
}
