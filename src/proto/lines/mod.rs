//! The words that roles exchange about one URL.
//!
//! Between processes they are lines of text; inside one process they are these values on a ring. Either way a
//! URL travels as a [`Candidate`] from the doc index, as a [`Job`] once its name is resolved, and is answered
//! for under a [`TransId`] that the url server made.
//!
//! ```text
//!   url server ── <TRANS_ID> <DOC_ID> <HOST_IP> [<HOST_NAME>] <URL> ──► spider      WorkOrder, WorkLine
//!   url server ◄── GET <URL_COUNT> · WORKING <TRANS_ID> · DONE <TRANS_ID> ── spider SpiderWord
//!   bytes, however cut ──► LineBuffer ──► lines
//! ```
//!
//! In the push dialect work has four fields and the status words come after the id; in the pull dialect work has
//! five fields and the words come first. Either end reads both.

mod doc_kind;
mod fields;
mod line_buffer;
mod line_error;
mod spider_word;
mod trans_id;
mod work_line;

pub use doc_kind::DocKind;
pub use line_buffer::LineBuffer;
pub use line_error::LineError;
pub use spider_word::{Dialect, Reported, SpiderWord};
pub use trans_id::TransId;
pub use work_line::{WorkLine, WorkOrder};

use crate::proto::http1::Validators;
use crate::proto::url::CrawlUrl;
use std::net::IpAddr;
use std::sync::Arc;

/// A URL that the doc index wants fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub doc_id: u32,
    pub url: CrawlUrl,
    pub kind: DocKind,
    /// Links followed from a seed; redirects do not count.
    pub depth: u16,
    /// Redirects followed from the first URL of this chain.
    pub hops: u8,
    /// A seed, or reached from one by redirects alone: its final host comes into scope.
    pub seed_chain: bool,
    /// Whether it is there and has changed is all that is asked.
    pub head_only: bool,
    /// The page that named it; a seed has none.
    pub via: Option<Box<str>>,
    /// The URLs that were redirected here, one after the other; as many as `hops`.
    pub chain: Option<Box<Chain>>,
    /// What the store holds of it from before.
    pub held: Option<Box<Held>>,
}

/// A stored document that a server can be asked about: has it changed?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub validators: Validators,
    /// The segment it is in. One that may go away is no answer to anybody.
    pub segment: u64,
}

impl Candidate {
    /// A URL that somebody typed.
    pub fn seed(doc_id: u32, url: CrawlUrl) -> Candidate {
        Candidate {
            doc_id,
            url,
            kind: DocKind::Content,
            depth: 0,
            hops: 0,
            seed_chain: true,
            head_only: false,
            via: None,
            chain: None,
            held: None,
        }
    }
}

/// Fingerprints of the URLs of a chain of redirects, the first one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain(pub Vec<u64>);

impl Candidate {
    /// Whether a redirect to `target` comes back to where the chain has been.
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
    /// Where else its host may be had, in the order to try them. Most hosts have one address and nothing here.
    pub others: Option<Arc<[IpAddr]>>,
}

impl Job {
    /// A candidate whose host has one address.
    pub fn at(ip: IpAddr, candidate: Candidate) -> Job {
        Job { candidate, ip, others: None }
    }
}
