use crate::base::{Key, Now};
use crate::proto::http1::{BodyDecoder, Flags, Head, HeadParser};
use crate::proto::lines::TransId;
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
    /// The response head as received, then the document.
    pub bytes: Vec<u8>,
    pub flags: Flags,
    pub started: Now,
    pub took_us: u64,
    /// The connection had been idle and was dead before a byte came, or what came was no response: nothing is known
    /// of this request, and it may be sent again.
    pub stale: bool,
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
    /// Bytes of the head, then of the document.
    pub bytes: Vec<u8>,
    pub started: Now,
    /// The present state must move on by then.
    pub state_by: Now,
    pub working_at: Now,
}

/// The life of a fetch, in order.
pub(super) enum FetchState {
    /// The connection is being made.
    Connect,
    /// The request is on its way, or the status line and headers are.
    Await { parser: HeadParser },
    /// The document is coming.
    Body { head: Head, decoder: BodyDecoder },
}

impl Fetch {
    /// When something must be done about this fetch if nothing comes: its state, its total time or WORKING.
    pub fn due(&self, total_us: u64) -> Now {
        self.state_by.min(self.started.plus_us(total_us)).min(self.working_at)
    }
}
