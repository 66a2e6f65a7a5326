use super::FetchOrder;
use crate::base::Now;
use crate::proto::http1::{Flags, Head};
use crate::proto::job::TransId;
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::SocketAddr;

/// Why a fetch has to be made again before it counts as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The connection had been idle and was dead before a byte came, or what came was not a response. The server may
    /// not have seen the request, so it may be sent again.
    StaleConnection,
    /// The server wants another request, and the next one for this URL differs: GET instead of HEAD, or with the answer
    /// to its challenge.
    NewRequest,
    /// This process stops and has cut it, which says nothing of its server: for all but the pause of its host it was never
    /// made.
    Stopped,
    /// This machine had no port, descriptor or memory for a connection, which says nothing of its server: it was never made.
    NoSocket,
    /// No way was found to its server, or the network broke off: whether our own network is down is for the shard to say.
    NoWay,
    /// Nobody looked at it for so long, when it was due, that an answer could have come: this process or its machine stood still,
    /// which says nothing of its server.
    Stalled,
    /// The time until which it might be sent was over before it was: its server was not asked.
    TooLate,
}

/// A fetch that has ended, successfully or not.
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
    /// Set if the same order has to be given again.
    pub retry: Option<Retry>,
}

impl Fetched {
    /// The end of an order without a response.
    pub(super) fn without_response(order: FetchOrder, result: ResultCode, now: Now) -> Fetched {
        Fetched {
            trans: order.trans,
            url: order.url,
            addr: order.addr,
            result,
            head: None,
            bytes: Vec::new(),
            flags: Flags::NONE,
            started: now,
            took_us: 0,
            retry: None,
        }
    }

    pub fn head_bytes(&self) -> &[u8] {
        &self.bytes[..self.head_len()]
    }

    pub fn document(&self) -> &[u8] {
        &self.bytes[self.head_len()..]
    }

    pub fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    pub(super) fn head_len(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.head_bytes as usize)
    }
}
