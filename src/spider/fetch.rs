use super::deadlines::Deadlines;
use super::fetched::Fetched;
use super::origin_policy::{Asked, OriginPolicy};
use super::request::Request;
use super::{FetchOrder, SpiderConfig};
use crate::base::{Key, Now};
use crate::proto::http1::{
    BodyDecoder, BodyEnd, BodyLimits, BodyStep, Flags, Framing, Head, HeadParser, HeadStep, Method,
};
use crate::proto::job::TransId;
use crate::proto::record::{ResultCode, StatusAction};
use crate::proto::robots::ROBOTS_BYTES_MAX;
use crate::proto::url::CrawlUrl;

/// An open fetch.
pub(super) struct Fetch {
    order: FetchOrder,
    conn: Key,
    state: FetchState,
    asked: Asked,
    /// Oddities of the connection.
    flags: Flags,
    /// Bytes of the head, then of the document.
    bytes: Vec<u8>,
    deadlines: Deadlines,
}

/// The life of a fetch, in order.
pub(super) enum FetchState {
    /// The connection is being made.
    Connect,
    /// The connection is made, and TLS is agreeing on its keys.
    Handshake,
    /// The request is being sent, or the head is arriving.
    Await { parser: HeadParser },
    /// The document is arriving.
    Body { head: Head, decoder: BodyDecoder },
}

/// How a fetch ends, as far as the bytes on its connection say.
#[derive(Clone, Copy)]
pub(super) struct FetchEnd {
    pub result: ResultCode,
    /// The response ended where the bytes did, and the server keeps the connection.
    pub reusable: bool,
    /// Bytes followed the response. They are never another response: only one was requested.
    pub trailed: bool,
}

impl From<ResultCode> for FetchEnd {
    /// An end that leaves nothing to use again.
    fn from(result: ResultCode) -> FetchEnd {
        FetchEnd { result, reusable: false, trailed: false }
    }
}

/// Capacity reserved at once for an announced document; a larger one grows as it arrives.
const BODY_RESERVE_MAX: u64 = 1 << 20;
/// Of a document that is not wanted, this much is read for the sake of its connection.
const UNWANTED_BYTES_MAX: u64 = 1_024;
/// Of robots.txt on the wire: its text, and what a coding may add to it.
const ROBOTS_WIRE_BYTES_MAX: u64 = ROBOTS_BYTES_MAX as u64 + 64 * 1_024;

impl Fetch {
    pub fn new(order: FetchOrder, conn: Key, bytes: Vec<u8>, config: &SpiderConfig, now: Now) -> Fetch {
        let connect_us = if order.more { config.limits.fallback_us } else { config.limits.connect_us };
        Fetch {
            order,
            conn,
            state: FetchState::Connect,
            asked: Asked { method: Method::Get, authorized: false },
            flags: Flags::NONE,
            bytes,
            deadlines: Deadlines::new(connect_us, config, now),
        }
    }

    pub fn state(&self) -> &FetchState {
        &self.state
    }

    pub fn trans(&self) -> TransId {
        self.order.trans
    }

    pub fn url(&self) -> &CrawlUrl {
        &self.order.url
    }

    pub fn conn(&self) -> Key {
        self.conn
    }

    /// Whether its request may not be sent any more.
    pub fn is_too_late(&self, now: Now) -> bool {
        now >= self.order.send_by
    }

    pub fn asked(&self) -> Asked {
        self.asked
    }

    pub fn head_only(&self) -> bool {
        self.order.head_only
    }

    pub fn is_robots(&self) -> bool {
        self.order.robots
    }

    /// Bytes of the response that it holds.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    pub fn start_handshake(&mut self, config: &SpiderConfig, now: Now) {
        self.state = FetchState::Handshake;
        self.deadlines.enter_state(config.limits.connect_us, now);
    }

    /// Writes the request, after which the response is awaited.
    pub fn start_request(
        &mut self,
        policy: &mut OriginPolicy,
        config: &SpiderConfig,
        out: &mut Vec<u8>,
        now: Now,
    ) {
        let FetchOrder { url, head_only, validators, .. } = &self.order;
        let method = if *head_only { policy.method_for_head(url) } else { Method::Get };
        let mut request = Request::new(method, url);
        request.first_byte_only = *head_only && method == Method::Get;
        request.validators = validators.as_deref();
        let authorized = policy.apply(&mut request, config.wall.unix_ms(now) / 1_000);
        request.write(out, &config.user_agent);
        self.asked = Asked { method, authorized };
        self.state = FetchState::Await { parser: HeadParser::new(config.head, method) };
        self.deadlines.enter_state(config.limits.first_byte_us, now);
    }

    /// Takes bytes of the response; an end if they complete it or break it.
    pub fn receive(&mut self, bytes: &[u8], config: &SpiderConfig, now: Now) -> Option<FetchEnd> {
        self.deadlines.received(bytes.len(), config.limits.read_us, now);
        match self.state {
            FetchState::Await { .. } => self.receive_head(bytes, config),
            FetchState::Body { .. } => self.receive_body(bytes),
            FetchState::Connect | FetchState::Handshake => unreachable!("nothing was requested yet"),
        }
    }

    /// Head bytes: usually the whole head in one piece, straight from the receive buffer.
    fn receive_head(&mut self, bytes: &[u8], config: &SpiderConfig) -> Option<FetchEnd> {
        let FetchState::Await { parser } = &mut self.state else { unreachable!("the caller matched") };
        let split = !self.bytes.is_empty();
        if split {
            self.bytes.extend_from_slice(bytes);
        }
        let head = match parser.parse(if split { &self.bytes } else { bytes }) {
            Ok(HeadStep::Done(head)) => head,
            Ok(HeadStep::NeedMore) => {
                if !split {
                    self.bytes.extend_from_slice(bytes);
                }
                return None;
            }
            Err(_) => return Some(ResultCode::Malformed.into()),
        };
        let head_bytes = head.head_bytes as usize;
        let unwanted = self.order.head_only
            && !matches!(head.framing, Framing::None | Framing::Length(..=UNWANTED_BYTES_MAX));
        let limits = match self.order.robots {
            true => BodyLimits { doc_bytes_max: ROBOTS_WIRE_BYTES_MAX, ..config.limits.body },
            false => config.limits.body,
        };
        let decoder = BodyDecoder::new(head.framing, limits);
        let expected = decoder.size_hint().unwrap_or(0).min(BODY_RESERVE_MAX) as usize;
        self.state = FetchState::Body { head, decoder };
        let rest;
        let body = if split {
            rest = self.bytes.split_off(head_bytes);
            &rest[..]
        } else {
            self.bytes.reserve(head_bytes + if unwanted { 0 } else { expected });
            self.bytes.extend_from_slice(&bytes[..head_bytes]);
            &bytes[head_bytes..]
        };
        if unwanted {
            // The connection costs less than the rest of the document.
            return Some(StatusAction::of(head.status).result().into());
        }
        self.bytes.reserve(expected);
        self.receive_body(body)
    }

    fn receive_body(&mut self, bytes: &[u8]) -> Option<FetchEnd> {
        let FetchState::Body { head, decoder } = &mut self.state else { unreachable!("the caller matched") };
        match decoder.push(bytes, &mut self.bytes) {
            Ok(BodyStep::NeedMore) => None,
            Ok(BodyStep::Done { consumed }) => {
                let trailed = consumed < bytes.len();
                let reusable = head.keep_alive && decoder.keep_alive() && !trailed;
                Some(FetchEnd { result: StatusAction::of(head.status).result(), reusable, trailed })
            }
            Ok(BodyStep::TooLarge) => {
                self.flags.insert(Flags::CUT);
                // An error page is one however long it is.
                let result = match StatusAction::of(head.status).result() {
                    ResultCode::Ok => ResultCode::TooLarge,
                    other => other,
                };
                Some(result.into())
            }
            Err(_) => Some(ResultCode::Malformed.into()),
        }
    }

    /// The result of a response that the server ended by closing the connection.
    pub fn end_of_stream(&mut self, lacks_close_notify: bool) -> ResultCode {
        match &mut self.state {
            FetchState::Body { head, decoder } => {
                if lacks_close_notify {
                    self.flags.insert(Flags::NO_CLOSE_NOTIFY);
                }
                match decoder.end() {
                    BodyEnd::Complete => StatusAction::of(head.status).result(),
                    BodyEnd::Truncated => ResultCode::Truncated,
                }
            }
            _ if self.bytes.is_empty() => ResultCode::Empty,
            _ => ResultCode::Malformed,
        }
    }

    /// When [`Fetch::overdue`] wants to be called if nothing arrives.
    pub fn due(&self, config: &SpiderConfig) -> Now {
        self.deadlines.due(config.limits.total_us)
    }

    /// Checks the deadlines: WORKING may be due (`Ok(true)`), or the fetch has to end.
    pub fn overdue(&mut self, config: &SpiderConfig, now: Now) -> Result<bool, ResultCode> {
        let late = match self.state {
            FetchState::Connect | FetchState::Handshake => ResultCode::ConnectTimeout,
            FetchState::Await { .. } | FetchState::Body { .. } => ResultCode::ReadTimeout,
        };
        self.deadlines.check(late, config, now)
    }

    /// The connection brought no response to this request: it ended, or what came may be the rest of the response
    /// before, which arrived when the request was out already.
    pub fn went_unanswered(&self, result: ResultCode) -> bool {
        match result {
            ResultCode::Malformed => !matches!(self.state, FetchState::Body { .. }),
            ResultCode::Empty | ResultCode::Reset => self.bytes.is_empty(),
            _ => false,
        }
    }

    pub fn into_fetched(self, result: ResultCode, now: Now) -> Fetched {
        let (head, flags) = match self.state {
            FetchState::Body { head, decoder } => (Some(head), head.flags | decoder.flags()),
            FetchState::Connect | FetchState::Handshake | FetchState::Await { .. } => (None, Flags::NONE),
        };
        let started = self.deadlines.started();
        Fetched {
            head,
            bytes: self.bytes,
            flags: flags | self.flags,
            took_us: now.since_us(started),
            ..Fetched::without_response(self.order, result, started)
        }
    }
}
