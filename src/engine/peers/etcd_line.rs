use super::outside::Decided;
use crate::base::shown;
use crate::peer::beat::Wish;
use crate::peer::register::{Change, Outcome, Register};
use crate::proto::etcd::{EtcdError, EtcdRequest, HttpAnswer, Swapped, http_answer, key_value, swapped};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The way to an etcd: one call at a time, to the endpoint that answered last.
///
/// A read goes on to the next endpoint if one does not answer. A swap does so only while nothing was sent: once it was, it may
/// have been made, and nobody but a later read can tell.
pub(super) struct EtcdLine {
    endpoints: Vec<Endpoint>,
    /// The one that is asked next.
    at: usize,
    prefix: String,
    /// Which etcd has answered: registers in two of them would be no registers.
    cluster: Option<u64>,
    /// Attempts since one succeeded.
    failed: usize,
}

struct Endpoint {
    name: String,
    /// As its name was resolved, until none of them can be connected to.
    addresses: Vec<SocketAddr>,
}

/// Why an endpoint did not answer, and whether it may have done what it was asked for.
struct Fault {
    text: String,
    was_sent: bool,
}

/// With the shortest takeover there is a beat every 3 s, and a right of four of them.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// For one endpoint, and for all that a question asks.
const CALL_MAX: Duration = Duration::from_secs(2);
const QUESTION_MAX: Duration = Duration::from_secs(4);
const ADDRESSES_MAX: usize = 8;
const PIECE_BYTES: usize = 16 << 10;
const TEXT_CHARS_MAX: usize = 300;

impl EtcdLine {
    pub fn new(endpoints: &[String], prefix: String) -> EtcdLine {
        let endpoint = |name: &String| Endpoint { name: name.clone(), addresses: Vec::new() };
        let endpoints = endpoints.iter().map(endpoint).collect();
        EtcdLine { endpoints, at: 0, prefix, cluster: None, failed: 0 }
    }

    /// Whether every endpoint has failed since one answered.
    pub fn is_away(&self) -> bool {
        self.failed >= self.endpoints.len()
    }

    /// Makes a change, or says why it is not known to be made.
    pub fn change(&mut self, wish: &Wish) -> Decided {
        let key = self.key(wish.register);
        let request = match &wish.change {
            Change::Read => EtcdRequest::read(&key),
            Change::Swap { expect, new } => EtcdRequest::swap(&key, expect.as_deref(), new.as_deref()),
        };
        let until = Instant::now() + QUESTION_MAX;
        let (mut outcome, mut fault) = (Outcome::NotDone, "it has no endpoints".to_string());
        for _ in 0..self.endpoints.len() {
            match self.call(&request, until, |answer| told(&key, &wish.change, answer)) {
                Ok(outcome) => {
                    self.failed = 0;
                    return Decided { register: wish.register, outcome, fault: None };
                }
                Err(Fault { text, was_sent }) => {
                    fault = format!("{}: {}", self.endpoints[self.at].name, shown(&text, TEXT_CHARS_MAX));
                    self.failed += 1;
                    self.at = (self.at + 1) % self.endpoints.len();
                    if was_sent && matches!(wish.change, Change::Swap { .. }) {
                        outcome = Outcome::Unknown;
                        break;
                    }
                }
            }
        }
        Decided { register: wish.register, outcome, fault: Some(fault) }
    }

    fn key(&self, register: Register) -> String {
        match register {
            Register::Table => format!("{}table", self.prefix),
            Register::Beat(node) => format!("{}beat/{node}", self.prefix),
        }
    }

    /// Asks the endpoint whose turn it is.
    fn call(
        &mut self,
        request: &EtcdRequest,
        until: Instant,
        told: impl Fn(HttpAnswer<'_>) -> Result<(u64, Outcome), EtcdError>,
    ) -> Result<Outcome, Fault> {
        let until = until.min(Instant::now() + CALL_MAX);
        let endpoint = &mut self.endpoints[self.at];
        let unsent = |cause: io::Error| Fault { text: cause.to_string(), was_sent: false };
        let mut stream = endpoint.connect(until).map_err(unsent)?;
        let sent = |text: String| Fault { text, was_sent: true };
        send(&mut stream, &request.http(&endpoint.name), until).map_err(|cause| sent(cause.to_string()))?;
        let (cluster, outcome) = receive(&mut stream, until, told).map_err(sent)?;
        match self.cluster.get_or_insert(cluster) {
            known if *known == cluster => Ok(outcome),
            _ => Err(sent("it is of another etcd than the others of --council".to_string())),
        }
    }
}

impl Endpoint {
    fn connect(&mut self, until: Instant) -> io::Result<TcpStream> {
        if self.addresses.is_empty() {
            self.addresses = self.name.to_socket_addrs()?.take(ADDRESSES_MAX).collect();
        }
        let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
        for addr in &self.addresses {
            match TcpStream::connect_timeout(addr, rest(until)?.min(CONNECT_MAX)) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        // The name may have others by the next time.
        self.addresses.clear();
        Err(last)
    }
}

/// What an etcd says to a change, and which etcd it is.
fn told(key: &str, change: &Change, answer: HttpAnswer<'_>) -> Result<(u64, Outcome), EtcdError> {
    let value = |bytes: Option<Vec<u8>>| bytes.map(Arc::from);
    match change {
        Change::Read => {
            key_value(key, answer).map(|answer| (answer.cluster, Outcome::Read(value(answer.told))))
        }
        Change::Swap { .. } => swapped(key, answer).map(|answer| match answer.told {
            Swapped::Done => (answer.cluster, Outcome::Swapped),
            Swapped::Differs(held) => (answer.cluster, Outcome::Differs(value(held))),
        }),
    }
}

fn send(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(rest(until)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(in_time(cause)),
        }
    }
    Ok(())
}

fn receive<T>(
    stream: &mut TcpStream,
    until: Instant,
    told: impl Fn(HttpAnswer<'_>) -> Result<T, EtcdError>,
) -> Result<T, String> {
    let (mut bytes, mut piece, mut is_over) = (Vec::new(), [0; PIECE_BYTES], false);
    loop {
        if let Some(answer) = http_answer(&bytes, is_over).map_err(|error| error.to_string())? {
            return told(answer).map_err(|error| error.to_string());
        }
        let rest = rest(until).map_err(|cause| cause.to_string())?;
        let read = stream.set_read_timeout(Some(rest)).and_then(|()| stream.read(&mut piece));
        match read {
            Ok(0) => is_over = true,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(in_time(cause).to_string()),
        }
    }
}

/// What is left of a time.
fn rest(until: Instant) -> io::Result<Duration> {
    let rest = until.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(silent()) } else { Ok(rest) }
}

fn in_time(cause: io::Error) -> io::Error {
    match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(),
        _ => cause,
    }
}

fn silent() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", CALL_MAX.as_secs()))
}
