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
    pub head: HeadLimits,
    pub body: BodyLimits,
    /// Connections, busy and idle together.
    pub conns_max: usize,
    pub guard: AddressGuard,
    pub tls: Arc<TlsSettings>,
    pub sites: Arc<Sites>,
    pub cookies: bool,
    pub budget: Arc<BodyBudget>,
    pub wall: Wall,
}
