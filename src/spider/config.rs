use super::BodyBudget;
use crate::base::{AddressGuard, Wall};
use crate::proto::auth::Sites;
use crate::proto::http1::{BodyLimits, HeadLimits};
use crate::proto::tls::TlsSettings;
use std::sync::Arc;

/// The settings that the spider needs, as built.
#[derive(Clone)]
pub struct SpiderConfig {
    pub user_agent: String,
    pub limits: FetchLimits,
    pub head: HeadLimits,
    /// Connections, busy and idle together.
    pub conns_max: usize,
    pub tls: Arc<TlsSettings>,
    pub sites: Arc<Sites>,
    pub cookies: bool,
    pub budget: Arc<BodyBudget>,
    pub wall: Wall,
}

/// How long a fetch may take, how large its answer may be and where it may go. It may change while a spider runs.
#[derive(Clone)]
pub struct FetchLimits {
    /// Time between two WORKING reports of an open fetch.
    pub working_us: u64,
    /// Time that a fetch may take in all.
    pub total_us: u64,
    /// For the connection, and again for the TLS handshake.
    pub connect_us: u64,
    /// From the request to the first byte of the answer.
    pub first_byte_us: u64,
    /// For the connection, where there is another address to try.
    pub fallback_us: u64,
    /// Between two receives.
    pub read_us: u64,
    /// Least average rate of a server that sends; 0 for no such rule.
    pub rate_bytes_per_s: u64,
    /// A connection is kept this long without use.
    pub idle_us: u64,
    pub body: BodyLimits,
    /// Memory for documents in flight, over all spiders.
    pub body_memory: u64,
    pub guard: AddressGuard,
}
