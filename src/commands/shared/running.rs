//! A crawl that runs, asked by the socket of its data directory.

use super::Failure;
use crate::engine::CONTROL_SOCKET;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) struct RunningCrawl {
    stream: BufReader<UnixStream>,
}

/// More than any answer: it has a few URLs.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// How long a node that listens may take to answer. It gives up by itself after two seconds, and after a minute if it
/// waits for its disk.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(65);

impl RunningCrawl {
    /// `None` if no crawl listens in this directory.
    pub fn at(data: &Path) -> Result<Option<RunningCrawl>, Failure> {
        let socket = data.join(CONTROL_SOCKET);
        match UnixStream::connect(&socket) {
            Ok(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Some(RunningCrawl { stream: BufReader::new(stream) }))
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Failure::CannotRun(format!(
                "cannot ask the crawl by {}: {e} (ask as the user that runs it)",
                socket.display()
            ))),
            Err(_) => Ok(None),
        }
    }

    /// Asks a question. `None` if the node has ended; an error if it does not answer, or says one.
    pub fn ask<T: DeserializeOwned>(&mut self, question: &str) -> io::Result<Option<T>> {
        self.send(question, "", PATIENCE)
    }

    /// Hands in a piece of lines.
    pub fn hand<T: DeserializeOwned>(&mut self, verb: &str, piece: &str) -> io::Result<Option<T>> {
        self.send(&format!("{verb} {}", piece.len()), piece, PATIENCE_WITH_DISK)
    }

    fn send<T: DeserializeOwned>(
        &mut self,
        question: &str,
        piece: &str,
        patience: Duration,
    ) -> io::Result<Option<T>> {
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(patience))?;
        let sent = stream.write_all(format!("{question}\n{piece}").as_bytes());
        let mut line = String::new();
        let read = sent.and_then(|()| (&mut self.stream).take(ANSWER_BYTES_MAX).read_line(&mut line));
        match read {
            // A node that ends closes its connections.
            Ok(0) => return Ok(None),
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(None);
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(io::Error::other("the running crawl does not answer"));
            }
            read => read?,
        };
        let value: serde_json::Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        if let Some(error) = value.get("error").and_then(serde_json::Value::as_str) {
            return Err(io::Error::other(format!("the running crawl: {error}")));
        }
        serde_json::from_value(value).map(Some).map_err(io::Error::other)
    }
}
