//! Writing to stdout, where a reader may have seen enough and a disk may be full.

use super::Failure;
use std::io::{self, ErrorKind, Write};

/// Prints a text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A closed pipe is no failure (`store ls | head`); anything else is.
pub fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::CannotRun(format!("cannot write to stdout: {e}"))),
        Ok(()) => Ok(()),
    }
}
