//! Writing to stdout, where a reader may have seen enough and a disk may be full.

use super::Failure;
use serde::Serialize;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

/// Prints a text.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    stream(|out| out.write_all(text.as_bytes()))
}

/// Prints a report: as one JSON object a line, or as `text` has it.
pub(crate) fn tell<R: Serialize>(
    report: &R,
    json: bool,
    text: impl FnOnce(&R) -> String,
) -> Result<(), Failure> {
    print(&if json { serde_json::to_string(report)? + "\n" } else { text(report) })
}

/// Writes as it goes. A closed pipe is no failure (`store ls | head`); anything else is.
pub(crate) fn stream(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::CannotRun(format!("cannot write to stdout: {e}"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a value as one line of JSON.
pub(crate) fn write_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Bytes in millions, as they are shown.
pub(crate) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
