use crate::base::Now;
use crate::proto::http1::Validators;
use crate::proto::job::TransId;
use crate::proto::url::CrawlUrl;
use std::net::SocketAddr;

/// What the spider is told to fetch. The resolver checked the address; the spider checks it again.
#[derive(Clone, Debug)]
pub struct FetchOrder {
    pub trans: TransId,
    pub url: CrawlUrl,
    pub addr: SocketAddr,
    /// There are other addresses to try, so the connection to this one has only `fallback_us`.
    pub more: bool,
    /// Only the head is wanted: whether the document exists and has changed.
    pub head_only: bool,
    /// It is a robots.txt, which has a bound of its own, whatever documents may take.
    pub robots: bool,
    /// Of the stored document, which is not sent again if it has not changed.
    pub validators: Option<Box<Validators>>,
    /// Nothing is sent from then on; `Now::NEVER` if it may be sent at any time.
    pub send_by: Now,
}

impl FetchOrder {
    /// The whole document, whether a version is stored or not.
    pub fn new(trans: TransId, url: CrawlUrl, addr: SocketAddr) -> FetchOrder {
        let (more, head_only, robots, validators, send_by) = (false, false, false, None, Now::NEVER);
        FetchOrder { trans, url, addr, more, head_only, robots, validators, send_by }
    }
}
