//! A process that runs, asked over HTTP by the socket of its data directory.

use super::Failure;
use crate::admin::{self, ADMIN_SOCKET};
use crate::base::shown;
use crate::proto::http1::{BodyDecoder, BodyLimits, BodyStep, HeadLimits, HeadParser, HeadStep, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) struct RunningCrawl {
    stream: UnixStream,
}

/// More than any answer: it has a few URLs, or some hundred figures.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// How long a node that listens may take to answer. It gives up by itself after two seconds, and after a minute if it
/// waits for its disk.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(65);

/// An answer, as it came.
struct Response {
    status: u16,
    body: Vec<u8>,
}

impl RunningCrawl {
    /// `None` if no crawl listens in this directory.
    pub fn at(data: &Path) -> Result<Option<RunningCrawl>, Failure> {
        match admin::connect(data) {
            Ok(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Some(RunningCrawl { stream }))
            }
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(Failure::CannotRun(format!(
                "cannot ask the crawl by {}: {e} (ask as the user that runs it)",
                data.join(ADMIN_SOCKET).display()
            ))),
            Err(_) => Ok(None),
        }
    }

    /// Asks for something. `None` if the node has ended; an error if it does not answer, or says one.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> io::Result<Option<T>> {
        self.send("GET", path, "", PATIENCE)?.map(understood).transpose()
    }

    /// The same, as text.
    pub fn text(&mut self, path: &str) -> io::Result<Option<String>> {
        let Some(response) = self.send("GET", path, "", PATIENCE)? else { return Ok(None) };
        match response.status {
            200 => Ok(Some(String::from_utf8_lossy(&response.body).into_owned())),
            _ => understood::<Value>(response).map(|_| None),
        }
    }

    /// Tells it to do something; that it is so already is no error.
    pub fn tell<T: DeserializeOwned>(&mut self, path: &str) -> io::Result<Option<T>> {
        self.send("POST", path, "", PATIENCE)?.map(understood).transpose()
    }

    /// Hands in a piece of lines.
    pub fn hand<T: DeserializeOwned>(&mut self, path: &str, piece: &str) -> io::Result<Option<T>> {
        self.send("POST", path, piece, PATIENCE_WITH_DISK)?.map(understood).transpose()
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        patience: Duration,
    ) -> io::Result<Option<Response>> {
        let content = match body {
            "" => String::new(),
            _ => "Content-Type: text/plain; charset=utf-8\r\n".to_string(),
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{content}Content-Length: {length}\r\n\r\n"
        );
        let until = Instant::now() + patience;
        // One that ends, or wants nothing more of this, may have said why.
        let sent = self.stream.write_all(format!("{head}{body}").as_bytes());
        let answered = match self.receive(until) {
            Ok(Some(response)) => Ok(Some(response)),
            other => sent.and(other),
        };
        match answered {
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(None),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(io::Error::other("the running crawl does not answer"))
            }
            answered => answered,
        }
    }

    /// Reads one response; `None` if the connection ends before it.
    fn receive(&mut self, until: Instant) -> io::Result<Option<Response>> {
        let limits = HeadLimits { head_bytes_max: 16 << 10, ..HeadLimits::default() };
        let mut parser = HeadParser::new(limits, Method::Get);
        let (mut received, mut buffer) = (Vec::new(), [0; 16 << 10]);
        let head = loop {
            match self.read(&mut buffer, until)? {
                0 if received.is_empty() => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => received.extend_from_slice(&buffer[..count]),
            }
            if let HeadStep::Done(head) = parser.parse(&received).map_err(io::Error::other)? {
                break head;
            }
        };
        let limits = BodyLimits { doc_bytes_max: ANSWER_BYTES_MAX, ..BodyLimits::default() };
        let (mut decoder, mut body) = (BodyDecoder::new(head.framing, limits), Vec::new());
        let mut step = decoder.push(&received[head.head_bytes as usize..], &mut body);
        loop {
            match step.map_err(io::Error::other)? {
                BodyStep::NeedMore => {}
                BodyStep::Done { .. } => return Ok(Some(Response { status: head.status, body })),
                BodyStep::TooLarge => return Err(io::Error::other("the answer is too long")),
            }
            let count = self.read(&mut buffer, until)?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            step = decoder.push(&buffer[..count], &mut body);
        }
    }

    fn read(&mut self, buffer: &mut [u8], until: Instant) -> io::Result<usize> {
        let left = until.saturating_duration_since(Instant::now());
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.stream.read(buffer)
    }
}

/// What an answer says. That something is so already is said with how it is.
fn understood<T: DeserializeOwned>(response: Response) -> io::Result<T> {
    let value: Value = serde_json::from_slice(&response.body).map_err(io::Error::other)?;
    if !matches!(response.status, 200..=299 | 409) {
        let why = value.get("detail").and_then(Value::as_str).unwrap_or("it gave no reason");
        return Err(io::Error::other(format!("the running crawl: {}", shown(why, 600))));
    }
    serde_json::from_value(value).map_err(io::Error::other)
}
