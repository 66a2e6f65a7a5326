use super::doc_index::DocIndexSettings;
use super::file::ConfigError;
use super::section::Section;
use super::spider::SpiderSettings;
use super::store::StoreSettings;
use super::url_server::UrlServerSettings;
use crate::base::named_enum;
use crate::handler::ScopeKind;
use crate::limits::{SEGMENT_HEADER_BYTES, URL_BYTES_MAX};
use crate::proto::auth::Sites;
use crate::proto::url::RecrawlRules;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything a node is told: the sections of the settings file, and what only flags can say.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub url_server: UrlServerSettings,
    pub spider: SpiderSettings,
    pub store: StoreSettings,
    pub doc_index: DocIndexSettings,
    /// `[[auth]]`
    pub auth: Sites,
    /// `[[recrawl]]`
    pub recrawl: RecrawlRules,
    pub scope: ScopeKind,
    /// Links followed from a seed; without a figure, any number.
    pub depth: Option<u16>,
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
}

named_enum! {
    /// How a process talks to the kernel.
    #[derive(Default)]
    pub enum DriverChoice {
        #[default]
        Auto = "auto",
        Uring = "uring",
        Epoll = "epoll",
    }
}

impl Config {
    /// Links followed from a seed.
    pub fn depth_max(&self) -> u16 {
        self.depth.unwrap_or(u16::MAX)
    }

    /// Bounds of settings and relations between them. Called once, after the flags.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (url_server, spider, store, doc_index) =
            (&self.url_server, &self.spider, &self.store, &self.doc_index);
        within_bounds(url_server)?;
        within_bounds(spider)?;
        within_bounds(store)?;
        within_bounds(doc_index)?;
        let invalid = |text: String| Err(ConfigError::Invalid(text));
        if url_server.timeout_spider_status.us() < 2 * spider.timeout_update.us() {
            return invalid(format!(
                "timeout_spider_status ({} s) must be at least twice timeout_update ({} ms)",
                url_server.timeout_spider_status.0, spider.timeout_update.0
            ));
        }
        let doc_bytes_max = spider.max_doc_size.0;
        if spider.body_memory.0 < doc_bytes_max {
            return invalid(format!(
                "body_memory ({}) must hold a document of max_doc_size ({doc_bytes_max})",
                spider.body_memory.0
            ));
        }
        // A document, its head and its URLs must fit into an empty segment, with a tenth more: what a compressor is given
        // in case nothing shrinks.
        let record_max = doc_bytes_max
            + doc_bytes_max / 10
            + (1 << 18)
            + 2 * URL_BYTES_MAX as u64
            + SEGMENT_HEADER_BYTES as u64;
        let segment_bytes = store.segment_bytes.0;
        if segment_bytes < record_max {
            return invalid(format!(
                "segment_bytes ({segment_bytes}) is too small for a document of max_doc_size ({doc_bytes_max}): at least {record_max} are needed"
            ));
        }
        // Each shard has one segment in use and one ready, and as much again is to be kept.
        let least = segment_bytes.saturating_mul(4 * self.cores.len().max(1) as u64);
        if (1..least).contains(&store.bytes_max.0) {
            return invalid(format!("bytes_max must be at least {least}: four segments for every core"));
        }
        if spider.user_agent.is_empty() || spider.user_agent.bytes().any(|b| !(b' '..=b'~').contains(&b)) {
            return invalid("user_agent must be printable ASCII and not empty".to_string());
        }
        let [min, start, max] =
            [doc_index.recrawl_min, doc_index.recrawl_start, doc_index.recrawl_max].map(|seconds| seconds.0);
        if start < min || start > max {
            return invalid(format!(
                "recrawl_start ({start}) must lie between recrawl_min ({min}) and recrawl_max ({max})"
            ));
        }
        Ok(())
    }
}

fn within_bounds<S: Section>(section: &S) -> Result<(), ConfigError> {
    match section.out_of_bounds() {
        Some((name, cause)) => Err(ConfigError::Invalid(format!("{}.{name} {cause}", S::NAME))),
        None => Ok(()),
    }
}
