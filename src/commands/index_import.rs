use super::shared::{Failure, Intake, Ticker, hint, tell};
use crate::base::{bytes_without_mark, listed, shown};
use crate::doc_index::{Import, ImportError};
use crate::engine::Taken;
use crate::proto::reflog::{ReflogReader, Reject, Told};
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
    let mut lines = Lines::default();
    loop {
        bytes.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
        number += 1;
        let whole = bytes.ends_with(b"\n") || read < LINE_BYTES_MAX;
        if !whole {
            input.skip_until(b'\n')?;
        }
        let is_end = read == 0;
        let line = if number == 1 { bytes_without_mark(&bytes) } else { &bytes };
        match (is_end, whole) {
            (true, _) => lines.end(number),
            (false, true) => lines.take(number, line),
            (false, false) => {
                let cause = format!("longer than {LINE_BYTES_MAX} bytes");
                lines.told.push((number, String::from_utf8_lossy(&bytes).into_owned(), Err(cause)));
            }
        }
        for (number, line, import) in lines.told.drain(..) {
            match import {
                Ok(import) => intake.hand(&line, &import)?,
                Err(cause) => {
                    let bad = &mut summary.taken.bad;
                    *bad += 1;
                    if *bad <= NAMED_MAX {
                        let (line, cause) = (shown(line.trim_end(), 100), shown(&cause, 200));
                        hint(format_args!("{}:{number}: skipped: {line}: {cause}", file.display()));
                    } else if *bad == NAMED_MAX + 1 {
                        hint(format_args!("{}: more bad lines are counted, not named", file.display()));
                    }
                }
            }
            summary.lines += 1;
        }
        if is_end {
            return Ok(());
        }
        ticker.show(|_| Some(format!("{} lines", summary.lines)));
    }
}

/// Lines of an import: each by itself, but for the records of a reflog that are broken over several.
#[derive(Default)]
struct Lines {
    reflog: ReflogReader,
    /// The line that it is in or begins with, what it says in one, and what that means.
    told: Vec<(u64, String, Result<Import, String>)>,
}

/// Tabs of a record that stands in one line.
const RECORD_TABS: usize = 5;

impl Lines {
    /// One line, with its end.
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let tabs = memchr::memchr_iter(b'\t', bytes).take(RECORD_TABS).count();
        let is_json = bytes.trim_ascii_start().starts_with(b"{");
        // The tab before a comment is none of a record.
        let is_plain = || tabs == 0 || !listed(&String::from_utf8_lossy(bytes)).contains('\t');
        if tabs == RECORD_TABS || is_json || (!self.reflog.is_open() && is_plain()) {
            self.end(number);
            return self.read(number, bytes);
        }
        let unknown = self.reflog.counts().unknown;
        self.join(number, |reflog, told| reflog.read(bytes, told));
        if self.reflog.counts().unknown > unknown {
            self.read(number, bytes);
        }
    }

    /// No more lines of a record come.
    fn end(&mut self, number: u64) {
        if self.reflog.is_open() {
            self.join(number, |reflog, told| reflog.end(told));
        }
    }

    fn read(&mut self, number: u64, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes);
        if let Some(import) = Import::read(&line).map_err(|error| error.to_string()).transpose() {
            self.told.push((number, line.into_owned(), import));
        }
    }

    fn join(&mut self, number: u64, step: impl FnOnce(&mut ReflogReader, &mut dyn FnMut(Told<'_>))) {
        // Lines of an open record are handed on without a gap, so that they are counted as the file does.
        let next = self.reflog.lines() + 1;
        let place = |line: u64| number.saturating_sub(next.saturating_sub(line));
        let all = &mut self.told;
        step(&mut self.reflog, &mut |told| match told {
            Told::Record { line, record } => {
                let mut out = Vec::new();
                record.write(&mut out);
                let text = String::from_utf8_lossy(&out).into_owned();
                let import = Import::read(&text).map_err(|error| error.to_string()).transpose();
                all.extend(import.map(|import| (place(line), text, import)));
            }
            Told::Reject(Reject { line, why, text, .. }) => {
                let cause = ImportError::reflog(why).to_string();
                all.push((place(line), String::from_utf8_lossy(text).into_owned(), Err(cause)));
            }
        });
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
