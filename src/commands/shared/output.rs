//! Writing to stdout and stderr, where a reader may have gone and a disk may be full. Nothing else in the program writes
//! there, so that nothing of it can panic over it.

use super::{Failure, Verbosity};
use crate::base;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines that could not be written to stderr, and how many of them no line has told of.
static LINES_LOST: AtomicU64 = AtomicU64::new(0);
static UNTOLD: AtomicU64 = AtomicU64::new(0);

/// Says something on stderr, unless `-q` was given.
pub(crate) fn say(line: impl Display) {
    if Verbosity::Normal.is_on() {
        say_failure(line);
    }
}

/// Says what leads on or was not looked for, in the voice of all messages of a command: behind its name, unless `-q` was
/// given.
pub(crate) fn hint(line: impl Display) {
    say(format_args!("nephila: {line}"));
}

/// Says why a command failed. A line that cannot be written is counted: telling is never a reason to stop.
pub(crate) fn say_failure(line: impl Display) {
    let untold = UNTOLD.load(Ordering::Relaxed);
    let before = match untold {
        0 => String::new(),
        _ => format!("({untold} lines before this one could not be written)\n"),
    };
    if put_line(&format!("{before}{line}")) {
        UNTOLD.fetch_sub(untold, Ordering::Relaxed);
    }
}

/// Writes a line to stderr as it is. False if it was lost, which is counted.
pub(super) fn put_line(line: &str) -> bool {
    let is_written = write_stderr(&format!("{line}\n")).is_ok();
    if !is_written {
        UNTOLD.fetch_add(1, Ordering::Relaxed);
        LINES_LOST.fetch_add(1, Ordering::Relaxed);
    }
    is_written
}

/// Writes a text to stderr at once, for a line that is rewritten in place and may be missed.
pub(super) fn write_stderr(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// Prints a text.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    stream(|out| out.write_all(text.as_bytes()))
}

/// A report, and how much of what was said beside it was lost.
#[derive(Serialize)]
struct Told<'a, R> {
    #[serde(flatten)]
    report: &'a R,
    lines_lost: u64,
}

/// Prints a report: as one JSON object a line, or as `text` has it.
pub(crate) fn tell<R: Serialize>(
    report: &R,
    json: bool,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    let lines_lost = LINES_LOST.load(Ordering::Relaxed);
    stream(|out| match (json, lines_lost) {
        (true, 0) => write_json(out, report),
        (true, _) => write_json(out, &Told { report, lines_lost }),
        (false, 0) => out.write_all(text(report).as_bytes()),
        (false, _) => {
            writeln!(out, "{}{lines_lost} lines could not be written to stderr", text(report))
        }
    })
}

/// Prints what a process came to: nothing with `-q`, unless JSON was asked for.
pub(crate) fn tell_summary<R: Serialize>(
    report: &R,
    json: bool,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    match json || Verbosity::Normal.is_on() {
        true => tell(report, json, text),
        false => Ok(()),
    }
}

/// Writes as it goes. A closed pipe is no failure (`store ls | head`); anything else is.
pub(crate) fn stream(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    written(write(&mut out).and_then(|()| out.flush()))
}

/// What became of a text for stdout, whoever wrote it.
pub(crate) fn written(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::CannotRun(format!("cannot write to stdout: {e}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a value as one line of JSON.
pub(crate) fn write_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    base::write_json(out, value)?;
    out.write_all(b"\n")
}

/// Bytes as they are shown, in a unit in which they do not vanish.
pub(crate) fn sized(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", mb(bytes)),
    }
}

/// Bytes in millions, as they are shown.
pub(crate) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
