//! One PUT over a connection of its own, blocking: a thread that has nothing else to do waits for it.

use crate::proto::tls::{TlsClient, TlsConn};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use url::Url;

/// What the other side said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: u16,
    /// The beginning of its document, unless all is well.
    pub text: String,
}

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Between two pieces.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// For all of it.
const PUT_MAX: Duration = Duration::from_secs(600);
const HEAD_BYTES_MAX: usize = 32 << 10;
const TEXT_BYTES_MAX: usize = 4 << 10;
const HEADERS_MAX: usize = 64;
const PIECE_BYTES: usize = 64 << 10;

pub(super) fn put(url: &Url, headers: &[u8], body: &[u8], tls: &TlsClient) -> io::Result<Answer> {
    let host = url.host_str().ok_or(ErrorKind::InvalidInput)?;
    let port = url.port_or_known_default().ok_or(ErrorKind::InvalidInput)?;
    let mut line = Line::open(host, port, (url.scheme() == "https").then_some(tls))?;
    let at = url.port().map_or(host.to_string(), |port| format!("{host}:{port}"));
    let (path, query) = (url.path(), url.query().unwrap_or_default());
    let length = body.len();
    let mut head =
        format!("PUT {path}?{query} HTTP/1.1\r\nHost: {at}\r\nContent-Length: {length}\r\n").into_bytes();
    head.extend_from_slice(headers);
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    let sent = line.send(&head).and_then(|()| line.send(body));
    // Whoever says no may do so before it has read everything.
    let answer = read(&mut line);
    match (sent, answer) {
        (Ok(()), answer) => answer,
        (Err(_), Ok(answer)) => Ok(answer),
        (Err(error), Err(_)) => Err(error),
    }
}

fn read(line: &mut Line) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let (status, end) = loop {
        if let Some(found) = head(&bytes)? {
            match found.0 {
                100..200 => drop(bytes.drain(..found.1)),
                _ => break found,
            }
            continue;
        }
        if bytes.len() > HEAD_BYTES_MAX || line.receive(&mut bytes)? == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection ended without an answer"));
        }
    };
    if !(200..300).contains(&status) {
        while bytes.len() < end + TEXT_BYTES_MAX && line.receive(&mut bytes).is_ok_and(|more| more > 0) {}
    }
    let text = &bytes[end..bytes.len().min(end + TEXT_BYTES_MAX)];
    Ok(Answer { status, text: String::from_utf8_lossy(text).into_owned() })
}

/// The status of a head that is whole, and where it ends.
fn head(bytes: &[u8]) -> io::Result<Option<(u16, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => Ok(Some((response.code.unwrap_or(0), end))),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(io::Error::new(ErrorKind::InvalidData, format!("this is no HTTP: {error}"))),
    }
}

struct Line {
    tcp: TcpStream,
    tls: Option<TlsConn>,
    buffer: Vec<u8>,
    until: Instant,
}

impl Line {
    fn open(host: &str, port: u16, tls: Option<&TlsClient>) -> io::Result<Line> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let until = Instant::now() + PUT_MAX;
        let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
        for addr in (bare, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, CONNECT_MAX) {
                Ok(tcp) => {
                    tcp.set_nodelay(true)?;
                    let tls = tls.map(|tls| tls.open(bare)).transpose().map_err(io::Error::other)?;
                    let mut line = Line { tcp, tls, buffer: vec![0; PIECE_BYTES], until };
                    line.greet()?;
                    return Ok(line);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn greet(&mut self) -> io::Result<()> {
        let mut early = Vec::new();
        self.flush()?;
        while self.tls.as_ref().is_some_and(TlsConn::is_handshaking) {
            if self.receive(&mut early)? == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "it ended the connection while greeting",
                ));
            }
        }
        self.flush()
    }

    /// Sends what TLS itself has to say.
    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut out = Vec::new();
        tls.take_output(&mut out);
        self.write(&out)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = Vec::new();
        for piece in bytes.chunks(PIECE_BYTES) {
            match &mut self.tls {
                None => self.write(piece)?,
                Some(tls) => {
                    out.clear();
                    tls.send(piece, &mut out);
                    self.write(&out)?;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tcp.set_write_timeout(Some(self.rest()?))?;
        self.tcp.write_all(bytes)
    }

    /// How long the next piece may take.
    fn rest(&self) -> io::Result<Duration> {
        let rest = self.until.saturating_duration_since(Instant::now());
        match rest.is_zero() {
            true => Err(io::Error::new(ErrorKind::TimedOut, "it takes too long")),
            false => Ok(rest.min(SILENCE_MAX)),
        }
    }

    /// Appends what came; 0 if the other side has ended. Of TLS a record may hold nothing that is shown.
    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.tcp.set_read_timeout(Some(self.rest()?))?;
        let (got, before) = (self.tcp.read(&mut self.buffer)?, into.len());
        match &mut self.tls {
            None => into.extend_from_slice(&self.buffer[..got]),
            Some(tls) => {
                let received = tls.receive(&self.buffer[..got], into);
                let closed = tls.peer_closed();
                self.flush()?;
                received.map_err(io::Error::other)?;
                // What is said last comes with the farewell.
                return Ok(if closed && into.len() == before { 0 } else { got });
            }
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tls::TlsSettings;
    use std::net::TcpListener;

    /// Answers one request with these bytes; gives back what it read of it.
    fn answer(said: &'static [u8]) -> (Url, std::thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/b/k?x=1", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            let mut buffer = [0; 1_024];
            while !got.ends_with(b"12345") {
                let more = stream.read(&mut buffer).unwrap();
                got.extend_from_slice(&buffer[..more]);
            }
            // However it is cut. Who has heard enough need not hear the rest.
            let _ = said.iter().try_for_each(|byte| stream.write_all(&[*byte]));
            got
        });
        (Url::parse(&url).unwrap(), thread)
    }

    fn put_to(said: &'static [u8]) -> io::Result<Answer> {
        let tls = TlsClient::new(&TlsSettings::default()).unwrap();
        let (url, thread) = answer(said);
        let answer = put(&url, b"X: y\r\n", b"12345", &tls);
        let got = String::from_utf8(thread.join().unwrap()).unwrap();
        assert!(got.starts_with("PUT /b/k?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{got}");
        assert!(got.contains("\r\nContent-Length: 5\r\nX: y\r\n"), "{got}");
        answer
    }

    #[test]
    fn an_answer_is_a_status_and_what_it_says_of_itself() {
        let said =
            put_to(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert_eq!(said, Answer { status: 200, text: String::new() });
        let said = put_to(b"HTTP/1.1 403 No\r\nConnection: close\r\n\r\n<Code>AccessDenied</Code>").unwrap();
        assert_eq!((said.status, &*said.text), (403, "<Code>AccessDenied</Code>"));
        assert_eq!(put_to(b"HTTP/1.1 200 OK\r\nServer: ").unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(put_to(b"SMTP hello\r\n\r\n").unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
