use super::Provenance;
use crate::proto::http1::Validators;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;
use std::sync::Arc;

/// A URL that the doc index wants fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub doc_id: u32,
    pub url: CrawlUrl,
    pub provenance: Provenance,
    /// The page that named it; a seed has none.
    pub via: Option<Box<str>>,
    /// The URLs that were redirected here, one after the other; as many as it has hops.
    pub chain: Option<Box<Chain>>,
    /// What the store holds of it from before.
    pub held: Option<Box<Held>>,
    /// Pages of its host were had before, so that its name must have resolved.
    pub host_had: bool,
    /// Of a feed: what this poll goes by.
    pub poll: Option<Box<Poll>>,
}

/// A poll of a feed: why it is now, and what the feed was when it was last had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poll {
    /// Not before this, in seconds since 1970, and why then: a name of printable ASCII without a comma.
    pub due_s: u32,
    pub why: Box<str>,
    /// Of the body; 0 if it was never had.
    pub digest: u64,
    /// Of the sorted URLs; 0 likewise.
    pub checksum: u64,
}

/// A stored document: its server can be asked whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub validators: Validators,
    /// The segment it is in. A document whose segment may be deleted is not held.
    pub segment: u64,
}

impl Candidate {
    /// A URL that an operator typed.
    pub fn seed(doc_id: u32, url: CrawlUrl) -> Candidate {
        Candidate {
            doc_id,
            url,
            provenance: Provenance::SEED,
            via: None,
            chain: None,
            held: None,
            host_had: false,
            poll: None,
        }
    }
}

/// Fingerprints of the URLs of a chain of redirects, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain(pub Vec<u64>);

impl Candidate {
    /// Whether a redirect to `target` leads back to a URL of the chain.
    pub fn is_loop(&self, target: &CrawlUrl) -> bool {
        let print = target.fingerprint();
        *target == self.url || self.chain.as_ref().is_some_and(|chain| chain.0.contains(&print))
    }
}

/// A candidate with the address its name resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub candidate: Candidate,
    pub ip: IpAddr,
    /// The other addresses of its host, in the order to try them. Most hosts have one address and nothing here.
    pub others: Option<Arc<[IpAddr]>>,
}

impl Job {
    /// A candidate whose host has one address.
    pub fn at(ip: IpAddr, candidate: Candidate) -> Job {
        Job { candidate, ip, others: None }
    }
}
