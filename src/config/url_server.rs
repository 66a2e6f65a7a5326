use super::section::settings;
use super::units::{Rate, Seconds};
use crate::proto::lines::Dialect;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a spider listens unless told otherwise.
const SPIDER_PORT: u16 = 7_171;
/// More a second than any host answers.
const RATE_MAX: u32 = 1_000_000_000;

settings! {
    /// Queues, pace and robots rules of hosts; and how URLs get to spiders in other processes.
    "[url_server]" UrlServerSettings {
        /// Hosts that have a queue at the same time, per shard; the URLs of others wait as leftovers.
        queue_count: usize = 65_536, in 1 to usize::MAX;
        /// URLs that wait in the queue of one host.
        queue_len: usize = 256, in 1 to usize::MAX;
        /// Requests open at once per host.
        req_host_concurrent: u8 = 1, in 1 to u8::MAX, flag "N", live now;
        /// Requests per second and host, also below 1; 0 = no limit.
        req_host_per_sec: Rate = Rate(1.0), in 0 to RATE_MAX, flag "F", live now;
        /// Requests open at once per address; unset, as many as per host.
        req_ip_concurrent: Option<u8> = None, in 1 to u8::MAX, live now;
        /// Requests per second and address; unset, as many as per host.
        req_ip_per_sec: Option<Rate> = None, in 0 to RATE_MAX, live now;
        /// The pause after an answer is at least this many times as long as the answer took; 0 = no such rule.
        delay_factor: Rate = Rate(1.0), in 0 to RATE_MAX, live now;
        /// Time of silence after which a URL that a spider has is sent again.
        timeout_spider_status: Seconds = Seconds(60), in 0 to 7 * 86_400;
        /// A crawl ends when all that is left must wait longer than this, because of Retry-After, penalties or Crawl-delay.
        linger: Seconds = Seconds(600), in 0 to 365 * 86_400, flag "SECONDS", live now;
        /// Names that may share an address in one batch of candidates before all of them are left out of the next.
        hosts_per_ip_max: usize = 64, in 1 to usize::MAX, live now;
        /// A host that failed this often in a row, and did nothing else, is set aside for a day.
        host_failures_max: u8 = 12, in 1 to u8::MAX, live now;
        /// Leftovers stay in memory, however many there are.
        in_ram: bool = false;
        /// Leftovers of one shard that are kept in memory; the rest goes to disk.
        leftover_urls: usize = 1 << 18, in 1 to usize::MAX;
        /// A spider that `nephila urlserver` dials.
        spider_host: Option<String> = None, told once;
        /// The port that this spider listens on.
        spider_port: u16 = SPIDER_PORT, in 1 to u16::MAX, told once;
        /// How spiders get work: "pull" when they ask for it, "push" as soon as the rules allow.
        spider_protocol: Dialect = Dialect::Pull, told once;
        /// Where spiders may dial in, like "0.0.0.0:7170".
        listen: Option<SocketAddr> = None, told once;
        /// A file of URLs for `nephila urlserver`, one a line, as by --urls; unset, what is due in the doc index.
        urls: Option<PathBuf> = None, told once;
    }
}
