//! Settings as built: defaults, then a TOML file, then flags, each winning over the one before; checked once.
//!
//! `commands` holds the flags as typed. What stands here is what the engine runs on, and nothing is parsed or
//! defaulted after it.

use self::hints::{line_of, nearest};
use crate::base::shown;
use crate::limits::{FETCHES_PER_SHARD_MAX, SEGMENT_BYTES_MAX, SEGMENT_HEADER_BYTES, URL_BYTES_MAX};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use thiserror::Error;

mod doc_index;
mod hints;
mod sites;
mod store;

pub use doc_index::{DocIndexSettings, RecrawlRule, Sitemaps};
pub use sites::{AuthKind, Credentials, Site, Sites};
pub use store::{Dedup, History, StoreSettings};

/// Everything a crawl is told.
#[derive(Clone, Debug)]
pub struct Config {
    pub url_server: UrlServerSettings,
    pub spider: SpiderSettings,
    pub store: StoreSettings,
    pub doc_index: DocIndexSettings,
    pub scope: ScopeKind,
    pub depth: u16,
    /// Of the seeds only the heads are asked for.
    pub head_only: bool,
    /// Everything that was ever fetched is due at once.
    pub again: bool,
    /// Stay when nothing is due.
    pub wait: bool,
    pub pages_max: Option<u64>,
    pub seconds_max: Option<u64>,
    /// Cores to run a shard on each.
    pub cores: Vec<usize>,
    pub driver: DriverChoice,
    pub allow_net: Vec<IpNet>,
    pub hosts_file: Option<PathBuf>,
    /// Name servers; those of /etc/resolv.conf if there are none here.
    pub dns: Vec<SocketAddr>,
    /// `[[auth]]`
    pub auth: Sites,
}

/// `[url_server]`
#[derive(Clone, Debug)]
pub struct UrlServerSettings {
    pub queue_count: usize,
    pub queue_len: usize,
    pub req_host_concurrent: u8,
    /// 0 = no limit.
    pub req_host_per_sec: f64,
    /// By default the host's.
    pub req_ip_concurrent: Option<u8>,
    pub req_ip_per_sec: Option<f64>,
    pub delay_factor: f64,
    pub timeout_spider_status_s: u64,
    /// Names that may share an address in one batch of candidates before all of them are left out of the next.
    pub hosts_per_ip_max: usize,
    /// A host that failed this often in a row, and did nothing else, is set aside for a day.
    pub host_failures_max: u8,
    /// Leftovers stay in memory, however many there are.
    pub in_ram: bool,
    /// Leftovers of one shard that are kept in memory; the rest goes to disk.
    pub leftover_urls: usize,
    /// A spider to dial, and the port it listens on.
    pub spider_host: Option<String>,
    pub spider_port: u16,
    pub spider_protocol: SpiderProtocol,
    /// Where spiders may dial in.
    pub listen: Option<SocketAddr>,
}

/// How the URL server gives work to spiders in other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpiderProtocol {
    /// The spider says how much it can take: `GET <count>`.
    Pull,
    /// Work is sent as soon as the rules allow.
    Push,
}

/// `[spider]`
#[derive(Clone, Debug)]
pub struct SpiderSettings {
    pub user_agent: String,
    pub timeout_update_ms: u64,
    pub timeout_req_ms: u64,
    pub timeout_connect_ms: u64,
    pub timeout_first_byte_ms: u64,
    /// The same for an address of a host that has others to try.
    pub fallback_delay_ms: u64,
    pub timeout_read_ms: u64,
    /// Bytes a second that a server must send on average once it sends; 0 for no such rule.
    pub min_rate: u64,
    pub keep_alive_ms: u64,
    pub max_doc_size: u64,
    /// Memory for documents on their way, over all shards; when it is used up, new fetches wait.
    pub body_memory: u64,
    /// Certificates to trust besides those of the web.
    pub ca_file: Option<PathBuf>,
    /// A bad certificate is noted on the document and is no reason to stop.
    pub insecure_tls: bool,
    /// Fetches open at once, per shard.
    pub fetches_max: usize,
    /// A DONE to a URL server in another process tells status, milliseconds and Retry-After.
    pub report: bool,
    /// Cookies are kept for the length of the crawl, and sent where they came from.
    pub cookies: bool,
}

/// How far from its seeds a crawl may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// The hosts of the seeds; port and scheme may differ.
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// Everything below the seeds' directories.
    Prefix,
    Any,
}

impl ScopeKind {
    const ALL: [ScopeKind; 4] = [ScopeKind::Host, ScopeKind::Domain, ScopeKind::Prefix, ScopeKind::Any];

    /// As `--scope` has it.
    pub fn name(self) -> &'static str {
        match self {
            ScopeKind::Host => "host",
            ScopeKind::Domain => "domain",
            ScopeKind::Prefix => "prefix",
            ScopeKind::Any => "any",
        }
    }

    pub fn from_name(name: &str) -> Option<ScopeKind> {
        ScopeKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverChoice {
    Auto,
    Uring,
    Epoll,
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {cause} (name another file with --config)")]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("{path}: {cause}")]
    Syntax { path: PathBuf, cause: String },
    #[error("{path}: unknown setting {name}{hint}")]
    Unknown { path: PathBuf, name: String, hint: String },
    #[error("{path}: {name} must be {expected}")]
    Type { path: PathBuf, name: String, expected: &'static str },
    #[error("{path}: [[auth]] entry {entry}: {cause}")]
    Auth { path: PathBuf, entry: usize, cause: String },
    #[error("{path}: [[recrawl]] entry {entry}: {cause}")]
    Recrawl { path: PathBuf, entry: usize, cause: String },
    #[error("{0}")]
    Invalid(String),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            url_server: UrlServerSettings {
                queue_count: 65_536,
                queue_len: 256,
                req_host_concurrent: 1,
                req_host_per_sec: 1.0,
                req_ip_concurrent: None,
                req_ip_per_sec: None,
                delay_factor: 1.0,
                timeout_spider_status_s: 60,
                hosts_per_ip_max: 64,
                host_failures_max: 12,
                in_ram: false,
                leftover_urls: 1 << 18,
                spider_host: None,
                spider_port: SPIDER_PORT,
                spider_protocol: SpiderProtocol::Pull,
                listen: None,
            },
            spider: SpiderSettings {
                user_agent: concat!("nephila/", env!("CARGO_PKG_VERSION")).to_string(),
                timeout_update_ms: 20_000,
                timeout_req_ms: 60_000,
                timeout_connect_ms: 10_000,
                timeout_first_byte_ms: 30_000,
                fallback_delay_ms: 300,
                timeout_read_ms: 30_000,
                min_rate: 100,
                keep_alive_ms: 15_000,
                max_doc_size: 16 << 20,
                body_memory: 1 << 30,
                ca_file: None,
                insecure_tls: false,
                fetches_max: 16_384,
                report: false,
                cookies: false,
            },
            store: StoreSettings::default(),
            doc_index: DocIndexSettings::default(),
            scope: ScopeKind::Host,
            depth: u16::MAX,
            head_only: false,
            again: false,
            wait: false,
            pages_max: None,
            seconds_max: None,
            cores: Vec::new(),
            driver: DriverChoice::Auto,
            allow_net: Vec::new(),
            hosts_file: None,
            dns: Vec::new(),
            auth: Sites::default(),
        }
    }
}

/// A name server as typed: an address, with a port or on port 53.
pub fn parse_name_server(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let server = match (text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
        (Ok(addr), _) => Some(addr),
        (_, Ok(ip)) => Some(SocketAddr::new(ip, 53)),
        _ => None,
    };
    server.filter(|addr| addr.port() != 0).ok_or_else(|| {
        format!("{} is not ADDR[:PORT], like 9.9.9.9, 127.0.0.1:5353 or [::1]:53", shown(text, 100))
    })
}

/// Where a spider listens unless told otherwise.
pub const SPIDER_PORT: u16 = 7_171;

/// No time-out is longer than a week.
const TIME_MS_MAX: u64 = 7 * 86_400_000;

/// Every setting of the file, by section.
const KEYS: [(&str, &[&str]); 4] = [
    (
        "url_server",
        &[
            "queue_count",
            "queue_len",
            "req_host_concurrent",
            "req_host_per_sec",
            "req_ip_concurrent",
            "req_ip_per_sec",
            "delay_factor",
            "timeout_spider_status",
            "hosts_per_ip_max",
            "host_failures_max",
            "in_ram",
            "leftover_urls",
            "spider_host",
            "spider_port",
            "spider_protocol",
            "listen",
        ],
    ),
    (
        "spider",
        &[
            "user_agent",
            "timeout_update",
            "timeout_req",
            "timeout_connect",
            "timeout_first_byte",
            "fallback_delay",
            "timeout_read",
            "min_rate",
            "keep_alive",
            "max_doc_size",
            "body_memory",
            "ca_file",
            "insecure_tls",
            "fetches_max",
            "report",
            "cookies",
        ],
    ),
    ("store", &["data", "segment_bytes", "commit_ms", "dedup", "free_bytes_min", "bytes_max", "history"]),
    ("doc_index", &DocIndexSettings::KEYS),
];

/// Lists whose entries are sections of their own.
const LISTS: [&str; 2] = ["auth", "recrawl"];

impl Config {
    /// Lays the settings of a TOML file over these.
    pub fn read_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError::Unreadable { path: path.to_path_buf(), cause })?;
        self.read_text(&text, path)
    }

    fn read_text(&mut self, text: &str, path: &Path) -> Result<(), ConfigError> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
            path: path.to_path_buf(),
            cause: format!("line {}: {}", line_of(text, &e), e.message().lines().next().unwrap_or_default()),
        })?;
        for (section, settings) in &table {
            if section == "auth" {
                self.auth = Sites::read(settings, path)?;
                continue;
            }
            if section == "recrawl" {
                self.doc_index.recrawl_rules = RecrawlRule::read(settings, path)?;
                continue;
            }
            let unknown = |name: String, known: Vec<String>| ConfigError::Unknown {
                path: path.to_path_buf(),
                hint: nearest(&name, &known),
                name: shown(&name, 200),
            };
            let Some((_, keys)) = KEYS.iter().find(|(name, _)| name == section) else {
                return Err(unknown(
                    section.clone(),
                    KEYS.iter().map(|(name, _)| *name).chain(LISTS).map(str::to_string).collect(),
                ));
            };
            let Some(settings) = settings.as_table() else {
                return Err(ConfigError::Type {
                    path: path.to_path_buf(),
                    name: section.clone(),
                    expected: "a section",
                });
            };
            for (key, value) in settings {
                let name = format!("{section}.{key}");
                if !keys.contains(&key.as_str()) {
                    return Err(unknown(name, keys.iter().map(|key| format!("{section}.{key}")).collect()));
                }
                self.set(&name, value).map_err(|expected| ConfigError::Type {
                    path: path.to_path_buf(),
                    name,
                    expected,
                })?;
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &toml::Value) -> Result<(), &'static str> {
        let whole = || value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or("a whole number");
        let size = || whole().and_then(|n| usize::try_from(n).map_err(|_| "a smaller number"));
        let byte = || whole().and_then(|n| u8::try_from(n).map_err(|_| "at most 255"));
        let number = || value.as_float().or_else(|| value.as_integer().map(|n| n as f64)).ok_or("a number");
        let text = || value.as_str().map(str::to_string).ok_or("a text in quotes");
        let truth = || value.as_bool().ok_or("true or false");
        let (url_server, spider, store) = (&mut self.url_server, &mut self.spider, &mut self.store);
        match name {
            "url_server.queue_count" => url_server.queue_count = size()?,
            "url_server.queue_len" => url_server.queue_len = size()?,
            "url_server.req_host_concurrent" => url_server.req_host_concurrent = byte()?,
            "url_server.req_host_per_sec" => url_server.req_host_per_sec = number()?,
            "url_server.req_ip_concurrent" => url_server.req_ip_concurrent = Some(byte()?),
            "url_server.req_ip_per_sec" => url_server.req_ip_per_sec = Some(number()?),
            "url_server.delay_factor" => url_server.delay_factor = number()?,
            "url_server.timeout_spider_status" => url_server.timeout_spider_status_s = whole()?,
            "url_server.hosts_per_ip_max" => url_server.hosts_per_ip_max = size()?,
            "url_server.host_failures_max" => url_server.host_failures_max = byte()?,
            "url_server.in_ram" => url_server.in_ram = truth()?,
            "url_server.leftover_urls" => url_server.leftover_urls = size()?,
            "url_server.spider_host" => url_server.spider_host = Some(text()?),
            "url_server.spider_port" => {
                url_server.spider_port = whole()?.try_into().map_err(|_| "a port number")?
            }
            "url_server.spider_protocol" => {
                url_server.spider_protocol = match value.as_str() {
                    Some("pull") => SpiderProtocol::Pull,
                    Some("push") => SpiderProtocol::Push,
                    _ => return Err("\"pull\" or \"push\""),
                }
            }
            "url_server.listen" => {
                url_server.listen =
                    Some(text()?.parse().map_err(|_| "an address and port like \"0.0.0.0:7170\"")?)
            }
            "spider.user_agent" => spider.user_agent = text()?,
            "spider.timeout_update" => spider.timeout_update_ms = whole()?,
            "spider.timeout_req" => spider.timeout_req_ms = whole()?,
            "spider.timeout_connect" => spider.timeout_connect_ms = whole()?,
            "spider.timeout_first_byte" => spider.timeout_first_byte_ms = whole()?,
            "spider.fallback_delay" => spider.fallback_delay_ms = whole()?,
            "spider.timeout_read" => spider.timeout_read_ms = whole()?,
            "spider.min_rate" => spider.min_rate = whole()?,
            "spider.body_memory" => spider.body_memory = whole()?,
            "spider.ca_file" => spider.ca_file = Some(text()?.into()),
            "spider.insecure_tls" => spider.insecure_tls = truth()?,
            "spider.keep_alive" => spider.keep_alive_ms = whole()?,
            "spider.max_doc_size" => spider.max_doc_size = whole()?,
            "spider.fetches_max" => spider.fetches_max = size()?,
            "spider.report" => spider.report = truth()?,
            "spider.cookies" => spider.cookies = truth()?,
            "store.data" => store.data = text()?.into(),
            "store.segment_bytes" => store.segment_bytes = whole()?,
            "store.commit_ms" => store.commit_ms = whole()?,
            "store.dedup" => {
                store.dedup = value.as_str().and_then(Dedup::from_name).ok_or(Dedup::NAMES)?;
            }
            "store.free_bytes_min" => store.free_bytes_min = Some(whole()?),
            "store.bytes_max" => store.bytes_max = Some(whole()?).filter(|&bytes| bytes > 0),
            "store.history" => {
                store.history = value.as_str().and_then(History::from_name).ok_or(History::NAMES)?;
            }
            _ => {
                let key = name.strip_prefix("doc_index.").expect("every key of the table is set");
                self.doc_index.set(key, value)?;
            }
        }
        Ok(())
    }

    /// Relations between settings. Called once, after the flags.
    pub fn check(&self) -> Result<(), ConfigError> {
        let invalid = |text: String| Err(ConfigError::Invalid(text));
        let (url_server, spider, store) = (&self.url_server, &self.spider, &self.store);
        for (name, rate) in [
            ("req_host_per_sec", url_server.req_host_per_sec),
            ("req_ip_per_sec", url_server.req_ip_per_sec.unwrap_or(0.0)),
            ("delay_factor", url_server.delay_factor),
        ] {
            if !rate.is_finite() || rate < 0.0 {
                return invalid(format!("{name} must be 0 or more, not {rate}"));
            }
        }
        for (name, count) in [
            ("req_host_concurrent", usize::from(url_server.req_host_concurrent)),
            ("req_ip_concurrent", usize::from(url_server.req_ip_concurrent.unwrap_or(1))),
            ("queue_count", url_server.queue_count),
            ("queue_len", url_server.queue_len),
            ("hosts_per_ip_max", url_server.hosts_per_ip_max),
            ("leftover_urls", url_server.leftover_urls),
            ("host_failures_max", usize::from(url_server.host_failures_max)),
            ("spider_port", usize::from(url_server.spider_port)),
            ("fetches_max", spider.fetches_max),
            ("timeout_update", spider.timeout_update_ms as usize),
            ("timeout_req", spider.timeout_req_ms as usize),
            ("fallback_delay", spider.fallback_delay_ms as usize),
            ("max_doc_size", spider.max_doc_size as usize),
            ("commit_ms", store.commit_ms as usize),
        ] {
            if count == 0 {
                return invalid(format!("{name} must be at least 1"));
            }
        }
        for (name, ms) in [
            ("timeout_spider_status", url_server.timeout_spider_status_s.saturating_mul(1_000)),
            ("timeout_update", spider.timeout_update_ms),
            ("timeout_req", spider.timeout_req_ms),
            ("timeout_connect", spider.timeout_connect_ms),
            ("timeout_first_byte", spider.timeout_first_byte_ms),
            ("fallback_delay", spider.fallback_delay_ms),
            ("timeout_read", spider.timeout_read_ms),
            ("keep_alive", spider.keep_alive_ms),
            ("commit_ms", store.commit_ms),
        ] {
            if ms > TIME_MS_MAX {
                return invalid(format!("{name} can be at most a week ({TIME_MS_MAX} ms)"));
            }
        }
        if url_server.timeout_spider_status_s * 1_000 < 2 * spider.timeout_update_ms {
            return invalid(format!(
                "timeout_spider_status ({} s) must be at least twice timeout_update ({} ms)",
                url_server.timeout_spider_status_s, spider.timeout_update_ms
            ));
        }
        if spider.fetches_max > FETCHES_PER_SHARD_MAX {
            return invalid(format!("fetches_max can be at most {FETCHES_PER_SHARD_MAX}"));
        }
        if spider.max_doc_size > 1 << 30 {
            return invalid("max_doc_size can be at most 1 GiB".to_string());
        }
        if spider.body_memory < spider.max_doc_size {
            return invalid(format!(
                "body_memory ({}) must hold a document of max_doc_size ({})",
                spider.body_memory, spider.max_doc_size
            ));
        }
        if spider.min_rate > 1 << 30 {
            return invalid("min_rate can be at most 1 GiB a second".to_string());
        }
        // A document, its head and its URLs must fit into an empty segment, with a tenth more: what a compressor is given
        // in case nothing shrinks.
        let record_max = spider.max_doc_size
            + spider.max_doc_size / 10
            + (1 << 18)
            + 2 * URL_BYTES_MAX as u64
            + SEGMENT_HEADER_BYTES as u64;
        if store.segment_bytes < record_max {
            return invalid(format!(
                "segment_bytes ({}) is too small for a document of max_doc_size ({}): at least {record_max} are needed",
                store.segment_bytes, spider.max_doc_size
            ));
        }
        if store.segment_bytes > SEGMENT_BYTES_MAX {
            return invalid(format!("segment_bytes can be at most {SEGMENT_BYTES_MAX}"));
        }
        // Each shard has one segment in use and one ready, and as much again is to be kept.
        let least = store.segment_bytes.saturating_mul(4 * self.cores.len().max(1) as u64);
        if store.bytes_max.is_some_and(|max| max < least) {
            return invalid(format!("bytes_max must be at least {least}: four segments for every core"));
        }
        if spider.user_agent.is_empty() || spider.user_agent.bytes().any(|b| !(b' '..=b'~').contains(&b)) {
            return invalid("user_agent must be printable ASCII and not empty".to_string());
        }
        self.doc_index.check().map_err(ConfigError::Invalid)
    }
}

/// `0-3,6` as a list of cores.
pub fn parse_cores(text: &str) -> Result<Vec<usize>, String> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |s: &str| {
            s.trim().parse::<usize>().map_err(|_| format!("{part:?} is not a core or a range like 0-3"))
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to || to >= 1_024 {
            return Err(format!("{part:?} is not a range of cores"));
        }
        cores.extend(from..=to);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        config.read_text(text, Path::new("c.toml"))?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn every_key_can_be_set() {
        for (section, keys) in KEYS {
            for key in keys {
                let tried = [
                    "64000000",
                    "\"x\"",
                    "9",
                    "true",
                    "\"push\"",
                    "\"127.0.0.1:1\"",
                    "\"any\"",
                    "\"newest\"",
                    "\"all\"",
                    "[\"a\"]",
                ]
                .iter()
                .map(|value| format!("{key} = {value}"))
                .any(|line| {
                    Config::default().read_text(&format!("[{section}]\n{line}"), Path::new("c")).is_ok()
                });
                assert!(tried, "{section}.{key}");
            }
        }
        let config = read("[url_server]\nreq_host_per_sec = 0.5\n[store]\ndata = \"/d\"").unwrap();
        assert_eq!(config.url_server.req_host_per_sec, 0.5);
        assert_eq!(config.store.data, Path::new("/d"));
    }

    #[test]
    fn mistakes_are_named_with_their_mend() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            said("[url_server]\nque_len = 3"),
            "c.toml: unknown setting url_server.que_len (did you mean url_server.queue_len?)"
        );
        assert_eq!(said("[spyder]\n"), "c.toml: unknown setting spyder (did you mean spider?)");
        assert_eq!(
            said("[spider]\ntimeout_req = \"x\""),
            "c.toml: spider.timeout_req must be a whole number"
        );
        assert!(said("[spider]\ntimeout_update = 40000").contains("timeout_spider_status"));
        assert!(said("[store]\nsegment_bytes = 4096").contains("too small"));
        assert!(said("[store]\nsegment_bytes = 5000000000").contains("at most"));
        assert!(said("[store]\nbytes_max = 100000000").contains("four segments for every core"));
        assert!(said("[store]\ndedup = \"some\"").contains("\"off\", \"url\" or \"any\""));
        assert!(said("x = [").starts_with("c.toml: "));
    }

    #[test]
    fn cores_are_lists_and_ranges() {
        assert_eq!(parse_cores("0-3,6").unwrap(), [0, 1, 2, 3, 6]);
        assert_eq!(parse_cores("1").unwrap(), [1]);
        assert!(parse_cores("3-1").is_err() && parse_cores("a").is_err() && parse_cores("").is_err());
    }
}
