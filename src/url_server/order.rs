use crate::base::Now;
use crate::proto::job::{Held, Job, TransId};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;
use std::sync::Arc;

/// What `acquire` found.
#[derive(Debug, PartialEq, Eq)]
pub enum Acquired {
    /// To be fetched now.
    Fetch(Order),
    /// Not to be fetched, and why.
    Refused(Job, Refusal),
    /// Nothing may be sent at this moment.
    Nothing,
}

/// Why a URL is not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The robots rules say no.
    Robots,
    /// They could not be learnt, which disallows everything.
    RobotsUnreachable,
    /// The host has done nothing but fail.
    SetAside,
    /// Its domain moves to another server: it is no fault, and no answer.
    Moved,
}

impl Refusal {
    pub fn result(self) -> ResultCode {
        match self {
            Refusal::Robots | Refusal::RobotsUnreachable => ResultCode::RobotsDenied,
            Refusal::SetAside => ResultCode::HostSetAside,
            Refusal::Moved => ResultCode::BlockedAddress,
        }
    }
}

/// A request that may go out now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub trans: TransId,
    pub doc_id: u32,
    pub url: CrawlUrl,
    pub ip: IpAddr,
    /// The host has other addresses to try should this one be slow to connect to.
    pub more: bool,
    pub kind: OrderKind,
    /// The spider it goes to, for a page while spiders are behind links.
    pub spider: u16,
    /// Only whether it is there and has changed is asked (HEAD).
    pub head_only: bool,
    /// What the store holds of it from before.
    pub held: Option<Box<Held>>,
    /// It is not sent from then on: the right to ask, or the loan of its address, is over. `Now::NEVER` without a cluster.
    pub send_by: Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    Page,
    Robots,
    /// The robots rules of another host, which redirected here; the number is the asker's.
    RemoteRobots(u64),
}

/// A request for the robots rules of a host that redirected to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRobots {
    pub id: u64,
    pub url: CrawlUrl,
    pub ip: IpAddr,
    /// As those of a [`Job`].
    pub others: Option<Arc<[IpAddr]>>,
}
