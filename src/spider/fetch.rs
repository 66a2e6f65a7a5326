use super::manners::Asked;
use crate::base::{Key, Now};
use crate::proto::http1::{BodyDecoder, Flags, Head, HeadParser, Validators};
use crate::proto::job::TransId;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::SocketAddr;

/// What the spider is told to fetch. The address was checked where it was resolved, and is checked again here.
#[derive(Clone, Debug)]
pub struct FetchOrder {
    pub trans: TransId,
    pub url: CrawlUrl,
    pub addr: SocketAddr,
    /// There are other addresses to try: a connection to this one is waited for only `fallback_us`.
    pub more: bool,
    /// Whether it is there and has changed is all that is asked.
    pub head_only: bool,
    /// Of the document as it is stored: it need not come if it is still the same.
    pub validators: Option<Box<Validators>>,
}

impl FetchOrder {
    /// The whole document, whatever is stored.
    pub fn new(trans: TransId, url: CrawlUrl, addr: SocketAddr) -> FetchOrder {
        FetchOrder { trans, url, addr, more: false, head_only: false, validators: None }
    }
}

/// Why a fetch is not an answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The connection had been idle and was dead before a byte came, or what came was no response: nothing is known
    /// of this request, and it may be sent again.
    Stale,
    /// The server has answered that it wants to be asked differently, and next time it is: with GET in place of HEAD, or
    /// with the answer to its challenge.
    Differently,
}

/// A fetch that came to its end, well or not.
#[derive(Debug)]
pub struct Fetched {
    pub trans: TransId,
    pub url: CrawlUrl,
    pub addr: SocketAddr,
    pub result: ResultCode,
    /// Absent without a response.
    pub head: Option<Head>,
    /// The response head as received, then the document, without its content coding.
    pub bytes: Vec<u8>,
    pub flags: Flags,
    pub started: Now,
    pub took_us: u64,
    /// The same order is to be given again.
    pub again: Option<Again>,
}

impl Fetched {
    pub fn head_bytes(&self) -> &[u8] {
        &self.bytes[..self.head_len()]
    }

    pub fn document(&self) -> &[u8] {
        &self.bytes[self.head_len()..]
    }

    pub fn status(&self) -> u16 {
        self.head.map_or(0, |head| head.status)
    }

    fn head_len(&self) -> usize {
        self.head.map_or(0, |head| head.head_bytes as usize)
    }
}

/// An open fetch.
pub(super) struct Fetch {
    pub trans: TransId,
    pub url: CrawlUrl,
    pub addr: SocketAddr,
    pub conn: Key,
    pub state: FetchState,
    pub asked: Asked,
    pub head_only: bool,
    pub validators: Option<Box<Validators>>,
    /// Oddities of the connection.
    pub flags: Flags,
    /// Bytes of the head, then of the document.
    pub bytes: Vec<u8>,
    pub started: Now,
    /// The present state must move on by then.
    pub state_by: Now,
    pub working_at: Now,
    pub rate: Rate,
}

/// The life of a fetch, in order.
pub(super) enum FetchState {
    /// The connection is being made.
    Connect,
    /// It is there, and TLS is agreeing on its keys.
    Handshake,
    /// The request is on its way, or the status line and headers are.
    Await { parser: HeadParser },
    /// The document is coming.
    Body { head: Head, decoder: BodyDecoder },
}

/// How much came of late. It is looked at every [`RATE_WINDOW_US`], from the first byte on.
pub(super) struct Rate {
    bytes: u64,
    /// When the last of them came.
    last: Now,
    pub look_at: Now,
}

pub(super) const RATE_WINDOW_US: u64 = 10_000_000;

impl Rate {
    pub const NOT_YET: Rate = Rate { bytes: 0, last: Now::ZERO, look_at: Now::NEVER };

    pub fn received(&mut self, bytes: usize, now: Now) {
        if self.look_at == Now::NEVER {
            self.look_at = now.plus_us(RATE_WINDOW_US);
        }
        self.bytes += bytes as u64;
        self.last = now;
    }

    /// The window is over: whether enough came in it. The next one begins. A server that has fallen silent may be
    /// thinking, for as long as the time-out for reading lets it; this is about those that drip.
    pub fn is_enough(&mut self, bytes_per_s: u64, now: Now) -> bool {
        let drips = now.since_us(self.last) < RATE_WINDOW_US / 2;
        let enough = self.bytes >= bytes_per_s * (RATE_WINDOW_US / 1_000_000);
        (self.bytes, self.look_at) = (0, now.plus_us(RATE_WINDOW_US));
        enough || !drips
    }
}

impl Fetch {
    /// When something must be done about this fetch if nothing comes: its state, its rate, its total time or WORKING.
    pub fn due(&self, total_us: u64) -> Now {
        let total_by = self.started.plus_us(total_us);
        self.state_by.min(total_by).min(self.working_at).min(self.rate.look_at)
    }
}
