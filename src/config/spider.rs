use super::section::settings;
use super::units::{Bytes, Millis};
use crate::limits::FETCHES_PER_SHARD_MAX;
use std::path::PathBuf;

/// No time is longer than a week.
pub(super) const WEEK_MS: u64 = 7 * 86_400_000;

settings! {
    /// Fetches: who asks, how long an answer may take and how large it may be. Times are in milliseconds.
    "[spider]" SpiderSettings {
        /// Who we say we are; its first word is our name in robots.txt.
        user_agent: String = concat!("nephila/", env!("CARGO_PKG_VERSION")).to_string(), flag "S";
        /// Milliseconds between two signs of life of an open fetch.
        timeout_update: Millis = Millis(20_000), in 1 to WEEK_MS, flag "MS";
        /// Milliseconds a fetch may take in all.
        timeout_req: Millis = Millis(60_000), in 1 to WEEK_MS, flag "MS";
        /// Milliseconds until a connection is made, with TLS.
        timeout_connect: Millis = Millis(10_000), in 0 to WEEK_MS;
        /// Milliseconds from the request to the first byte of its answer.
        timeout_first_byte: Millis = Millis(30_000), in 0 to WEEK_MS;
        /// Milliseconds until a host that has several addresses is tried at the next.
        fallback_delay: Millis = Millis(300), in 1 to WEEK_MS, flag "MS";
        /// Milliseconds between two arrivals of an answer's bytes.
        timeout_read: Millis = Millis(30_000), in 0 to WEEK_MS;
        /// Bytes a second that a server must send on average once it sends; 0 = no such rule.
        min_rate: u64 = 100, in 0 to 1 << 30;
        /// Milliseconds that an idle connection is kept for the next request.
        keep_alive: Millis = Millis(15_000), in 0 to WEEK_MS;
        /// Bytes after which a document is cut; a store server refuses longer ones.
        max_doc_size: Bytes = Bytes(16 << 20), in 1 to 1 << 30, flag "BYTES";
        /// Memory in bytes for documents on their way, over all shards; when it is used up, new fetches wait.
        body_memory: Bytes = Bytes(1 << 30);
        /// Certificates (PEM) to trust besides those of the web.
        ca_file: Option<PathBuf> = None, flag "PEM";
        /// Note a bad certificate on the document and go on.
        insecure_tls: bool = false, flag "";
        /// Fetches open at once per shard.
        fetches_max: usize = 16_384, in 1 to FETCHES_PER_SHARD_MAX, flag "N";
        /// Tell a URL server in another process status, milliseconds and Retry-After with each DONE.
        report: bool = false;
        /// Keep cookies until the end, and send each back to the scheme, host and port that it came from.
        cookies: bool = false, flag "";
    }
}

impl SpiderSettings {
    /// The agent that requests, records and robots rules go by.
    pub fn agent(&self) -> String {
        self.user_agent.clone()
    }
}
