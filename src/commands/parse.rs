use super::shared::{Failure, stream, write_json};
use crate::proto::http1::{
    BodyDecoder, BodyEnd, BodyError, BodyLimits, BodyStep, Flags, Framing, Head, HeadError, HeadLimits,
    HeadParser, HeadStep, Method,
};
use clap::{Args, ValueEnum};
use serde::Serialize;
use sha1::{Digest, Sha1};
use std::fmt;
use std::io::{self, Read};

/// Parse a raw HTTP/1.1 response on stdin, and print it as one JSON object; exit 1 if it is rejected
#[derive(Args)]
#[command(after_help = "\
Example:
  printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi' | nephila parse
  printf 'GET / HTTP/1.1\\r\\nHost: example.org\\r\\nConnection: close\\r\\n\\r\\n' | nc example.org 80 | nephila parse

Stdin is one response up to the end of its connection. Interim (1xx) heads are skipped; bytes after
the response make keep_alive false. The body is taken out of its framing and stays in its
Content-Encoding.

  {\"status\":200,\"version\":\"1.1\",\"headers\":[[\"Content-Length\",\"2\"]],\"framing\":\"length\",
   \"body_bytes\":2,\"body_sha1\":\"…\",\"complete\":true,\"keep_alive\":true,\"flags\":[]}

framing is length, chunked, close or none. Names and values of headers are as sent: each byte is the
code point of its number (U+0000 to U+00FF), so that nothing is lost whatever their encoding; folded
lines are joined with one space. complete is false for a body that stops short, and for one larger
than 16 MiB, which is cut there (flag cut). A cut head, a rejected head and a malformed chunk are
{\"error\":\"…\"}, which begins with these words, and exit status 1.")]
pub(super) struct ParseArgs {
    /// The method of the request: the answer to HEAD has no body
    #[arg(long, value_name = "NAME", default_value = "GET", ignore_case = true)]
    method: Asked,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Asked {
    Get,
    Head,
}

/// What is read of a writer that goes on after the answer is known, so that it sees no broken pipe.
const LEFT_OVER_BYTES_MAX: u64 = 16 << 20;

impl ParseArgs {
    pub fn run(self) -> Result<(), Failure> {
        let method = match self.method {
            Asked::Get => Method::Get,
            Asked::Head => Method::Head,
        };
        let mut reading = Reading::new(method);
        let mut input = io::stdin().lock();
        let cannot_read = |e| Failure::CannotRun(format!("cannot read stdin: {e}"));
        let mut buffer = vec![0; 64 * 1024];
        while !reading.is_settled() {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => reading.push(&buffer[..count]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(cannot_read(e)),
            }
        }
        io::copy(&mut input.take(LEFT_OVER_BYTES_MAX), &mut io::sink()).map_err(cannot_read)?;
        let answer = reading.end();
        stream(|out| match &answer {
            Ok(response) => write_json(out, response),
            Err(error) => write_json(out, &Refusal { error: error.to_string() }),
        })?;
        answer.map(drop).map_err(|_| Failure::No(String::new()))
    }
}

/// A response as the parser understood it, in the shape that is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Response {
    pub status: u16,
    pub version: String,
    pub headers: Vec<(String, String)>,
    pub framing: &'static str,
    pub body_bytes: u64,
    pub body_sha1: String,
    pub complete: bool,
    pub keep_alive: bool,
    pub flags: Vec<&'static str>,
}

/// Why there is no response to speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    CutHead,
    Head(HeadError),
    Chunk(BodyError),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::CutHead => write!(f, "cut head: the input ends before the blank line"),
            ParseError::Head(error) => write!(f, "rejected head: {error}"),
            ParseError::Chunk(error) => write!(f, "malformed chunk: {error}"),
        }
    }
}

#[derive(Serialize)]
struct Refusal {
    error: String,
}

/// One response on its way in, however its bytes are cut. Of the body only its digest is kept.
pub struct Reading {
    stage: Stage,
}

enum Stage {
    /// Status line and headers; `received` is everything so far.
    Head { parser: HeadParser, received: Vec<u8> },
    /// What follows the head.
    Body(Box<Body>),
    /// No byte can mend it.
    Failed(ParseError),
}

struct Body {
    head: Head,
    headers: Vec<(String, String)>,
    decoder: BodyDecoder,
    digest: Sha1,
    /// Document bytes of one push, on their way to the digest.
    piece: Vec<u8>,
    cut: bool,
    /// Bytes came after the response's own last one.
    left_over: bool,
}

impl Reading {
    pub fn new(method: Method) -> Reading {
        let parser = HeadParser::new(HeadLimits::default(), method);
        Reading { stage: Stage::Head { parser, received: Vec::new() } }
    }

    /// Takes the next bytes of the connection.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.stage {
            Stage::Head { parser, received } => {
                received.extend_from_slice(bytes);
                match parser.parse(received) {
                    Ok(HeadStep::NeedMore) => {}
                    Ok(HeadStep::Done(head)) => {
                        let mut body = Box::new(Body::new(head, received));
                        let pushed = body.push(&received[head.head_bytes as usize..]);
                        self.stage = pushed.map_or_else(Stage::Failed, |()| Stage::Body(body));
                    }
                    Err(error) => self.stage = Stage::Failed(ParseError::Head(error)),
                }
            }
            Stage::Body(body) => {
                if let Err(error) = body.push(bytes) {
                    self.stage = Stage::Failed(error);
                }
            }
            Stage::Failed(_) => {}
        }
    }

    /// Whether further bytes change nothing.
    pub fn is_settled(&self) -> bool {
        match &self.stage {
            Stage::Head { .. } => false,
            Stage::Body(body) => body.cut || body.left_over,
            Stage::Failed(_) => true,
        }
    }

    /// What came, if the connection ends here.
    pub fn end(self) -> Result<Response, ParseError> {
        match self.stage {
            Stage::Head { .. } => Err(ParseError::CutHead),
            Stage::Body(body) => Ok(body.end()),
            Stage::Failed(error) => Err(error),
        }
    }
}

impl Body {
    fn new(head: Head, received: &[u8]) -> Body {
        Body {
            head,
            headers: head.headers(received).map(|(name, value)| (latin1(name), latin1(&value))).collect(),
            decoder: BodyDecoder::new(head.framing, BodyLimits::default()),
            digest: Sha1::new(),
            piece: Vec::new(),
            cut: false,
            left_over: false,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        self.piece.clear();
        match self.decoder.push(bytes, &mut self.piece).map_err(ParseError::Chunk)? {
            BodyStep::NeedMore => {}
            BodyStep::Done { consumed } => self.left_over |= consumed < bytes.len(),
            BodyStep::TooLarge => self.cut = true,
        }
        self.digest.update(&self.piece);
        Ok(())
    }

    fn end(self) -> Response {
        let mut flags = self.head.flags | self.decoder.flags();
        if self.cut {
            flags.insert(Flags::CUT);
        }
        if self.head.status == 206 {
            flags.insert(Flags::PARTIAL);
        }
        Response {
            status: self.head.status,
            version: format!("1.{}", self.head.version_minor),
            headers: self.headers,
            framing: match self.head.framing {
                Framing::None => "none",
                Framing::Length(_) => "length",
                Framing::Chunked => "chunked",
                Framing::Close => "close",
            },
            body_bytes: self.decoder.doc_bytes(),
            body_sha1: self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
            complete: self.decoder.end() == BodyEnd::Complete,
            keep_alive: self.head.keep_alive && self.decoder.keep_alive() && !self.left_over,
            flags: flags.names().collect(),
        }
    }
}

/// Each byte as the code point of its number: whatever the bytes are, they can be had back.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}
