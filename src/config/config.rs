use super::admin::AdminSettings;
use super::cluster::ClusterSettings;
use super::content::ContentSettings;
use super::crawl::CrawlSettings;
use super::doc_index::DocIndexSettings;
use super::feeds::FeedsSettings;
use super::file::ConfigError;
use super::master::{MasterSettings, Server, ServerEntry};
use super::recrawl::RecrawlEntry;
use super::section::{Section, Value};
use super::spider::SpiderSettings;
use super::store::StoreSettings;
use super::units::{Bytes, Seconds};
use super::url_server::UrlServerSettings;
use crate::base::named_enum;
use crate::limits::{MASTERS_MAX, NAME_SERVERS_MAX, SEGMENT_HEADER_BYTES, URL_BYTES_MAX};
use crate::master::map::Assign;
use crate::proto::auth::{MissingAuth, Sites};
use crate::proto::url::RecrawlRules;

/// Everything a node is told: the sections of the settings file, with the flags laid over them.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub crawl: CrawlSettings,
    pub url_server: UrlServerSettings,
    pub spider: SpiderSettings,
    pub store: StoreSettings,
    pub doc_index: DocIndexSettings,
    pub feeds: FeedsSettings,
    pub content: ContentSettings,
    pub master: MasterSettings,
    pub cluster: ClusterSettings,
    pub admin: AdminSettings,
    /// `[[auth]]`
    pub auth: Sites,
    /// Credentials that earlier runs on the data directory had, and this one has not.
    pub auth_missing: MissingAuth,
    /// `[[recrawl]]`
    pub recrawl: RecrawlRules,
    /// `[[server]]`, no two of one id.
    pub servers: Vec<Server>,
    /// The cores of this machine to run a shard on each.
    pub cores: Vec<usize>,
}

/// Two settings or more that do not go together, or one that is out of its bounds.
#[derive(Debug)]
pub struct Fault {
    /// The settings that it is about, as `section.name`.
    pub keys: Vec<String>,
    pub cause: String,
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

impl Value for DriverChoice {}

named_enum! {
    /// A process that is given a settings file.
    #[derive(Default)]
    pub enum Role {
        #[default]
        Crawl = "crawl",
        UrlServer = "urlserver",
        Spider = "spider",
        StoreServer = "storeserver",
        Master = "master",
        Node = "node",
    }
}

impl Config {
    /// Bounds of settings and relations between them. Called once, after the flags.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.faults() {
            faults if faults.is_empty() => Ok(()),
            faults => Err(ConfigError::Wrong(faults.into_iter().map(|fault| fault.cause).collect())),
        }
    }

    /// Everything that is wrong with these settings, however they came about.
    pub fn faults(&self) -> Vec<Fault> {
        let (url_server, spider, store, doc_index) =
            (&self.url_server, &self.spider, &self.store, &self.doc_index);
        let mut faults = Vec::new();
        beyond_bounds(&self.crawl, &mut faults);
        beyond_bounds(url_server, &mut faults);
        beyond_bounds(spider, &mut faults);
        beyond_bounds(store, &mut faults);
        beyond_bounds(doc_index, &mut faults);
        beyond_bounds(&self.feeds, &mut faults);
        beyond_bounds(&self.content, &mut faults);
        beyond_bounds(&self.master, &mut faults);
        beyond_bounds(&self.cluster, &mut faults);
        if !faults.is_empty() {
            return faults;
        }
        let mut wrong = |keys: &[&str], cause: String| {
            faults.push(Fault { keys: keys.iter().map(ToString::to_string).collect(), cause });
        };
        if url_server.timeout_spider_status.us() < 2 * spider.timeout_update.us() {
            wrong(
                &["spider.timeout_update", "url_server.timeout_spider_status"],
                format!(
                    "timeout_spider_status ({}) must be at least twice timeout_update ({})",
                    url_server.timeout_spider_status, spider.timeout_update
                ),
            );
        }
        let (doc_max, doc_bytes_max) = (spider.max_doc_size, spider.max_doc_size.0);
        if spider.body_memory.0 < doc_bytes_max {
            wrong(
                &["spider.body_memory", "spider.max_doc_size"],
                format!(
                    "body_memory ({}) must hold a document of max_doc_size ({doc_max})",
                    spider.body_memory
                ),
            );
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
            wrong(
                &["store.segment_bytes", "spider.max_doc_size"],
                format!(
                    "segment_bytes ({}) is too small for a document of max_doc_size ({doc_max}): at least {record_max} bytes are needed",
                    store.segment_bytes
                ),
            );
        }
        // Each shard has one segment in use and one ready, and as much again is to be kept.
        let least = segment_bytes.saturating_mul(4 * self.cores.len().max(1) as u64);
        if (1..least).contains(&store.bytes_max.0) {
            wrong(
                &["store.bytes_max", "store.segment_bytes"],
                format!("bytes_max must be at least {}: four segments for every core", Bytes(least)),
            );
        }
        if spider.user_agent.is_empty() || spider.user_agent.bytes().any(|b| !(b' '..=b'~').contains(&b)) {
            wrong(&["spider.user_agent"], "user_agent must be printable ASCII and not empty".to_string());
        }
        let (min, start, max) = (doc_index.recrawl_min, doc_index.recrawl_start, doc_index.recrawl_max);
        if start < min || start > max {
            wrong(
                &["doc_index.recrawl_start", "doc_index.recrawl_min", "doc_index.recrawl_max"],
                format!(
                    "recrawl_start ({start}) must lie between recrawl_min ({min}) and recrawl_max ({max})"
                ),
            );
        }
        let feeds = &self.feeds;
        for (name, least) in [("poll_min", feeds.poll_min), ("poll_min_plain", feeds.poll_min_plain)] {
            if least > feeds.poll_max {
                wrong(
                    &[&format!("feeds.{name}"), "feeds.poll_max"],
                    format!("{name} ({least}) can be at most poll_max ({})", feeds.poll_max),
                );
            }
        }
        if let Some(addr) = self.admin.listen.filter(|addr| !addr.ip().is_loopback())
            && self.admin.hosts.is_empty()
        {
            wrong(
                &["admin.listen", "admin.hosts"],
                format!(
                    "{addr} is not loopback: other machines could reach it; set hosts of [admin] to the names by which it may be called, or use 127.0.0.1 and a tunnel (ssh -L)"
                ),
            );
        }
        let crawl = &self.crawl;
        match (crawl.has_master(), crawl.server) {
            (true, None) => wrong(
                &["crawl.server", "crawl.master"],
                "a master is given, and not which of its servers this node is: give its number with --server N"
                    .to_string(),
            ),
            (false, Some(_)) => wrong(
                &["crawl.master", "crawl.server"],
                "server is set, and no master to take from: give one with --master HOST:PORT".to_string(),
            ),
            _ => {}
        }
        let is_twice = |at: usize| crawl.master[..at].contains(&crawl.master[at]);
        if crawl.master.len() > MASTERS_MAX || (0..crawl.master.len()).any(is_twice) {
            wrong(&["crawl.master"], format!("master: at most {MASTERS_MAX}, and none twice (--master)"));
        }
        if self.crawl.dns.len() > NAME_SERVERS_MAX {
            wrong(&["crawl.dns"], format!("dns: at most {NAME_SERVERS_MAX} name servers (--dns)"));
        }
        let master = &self.master;
        if master.peer.is_some() && master.assign == Assign::LeastLoaded && master.database.is_none() {
            wrong(
                &["master.peer", "master.assign", "master.database"],
                "two masters with assign = \"least_loaded\" and no database could give one domain to two servers (set database, or assign = \"rendezvous\" in both)".to_string(),
            );
        }
        if master.keep_repeats < master.resend_after {
            wrong(
                &["master.keep_repeats", "master.resend_after"],
                format!(
                    "keep_repeats ({}) must be at least resend_after ({})",
                    master.keep_repeats, master.resend_after
                ),
            );
        }
        if master.spool().components().eq(master.data.components()) {
            let cause = "spool and data are one directory (give each its own)".to_string();
            wrong(&["master.spool", "master.data"], cause);
        }
        faults
    }

    /// Every setting that has a value, as the file would have it: `section.name`. Lists of re-crawl rules and of
    /// servers are one each; credentials are none.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        fn of<S: Section>(section: &S) -> impl Iterator<Item = (String, String)> {
            section.written().into_iter().map(|(name, text)| (key::<S>(name), text))
        }
        let sections = of(&self.crawl).chain(of(&self.url_server)).chain(of(&self.spider));
        let sections = sections.chain(of(&self.store)).chain(of(&self.doc_index)).chain(of(&self.master));
        let sections = sections.chain(of(&self.feeds)).chain(of(&self.content)).chain(of(&self.admin));
        let sections = sections.chain(of(&self.cluster));
        let rules = Vec::from(self.recrawl.clone()).into_iter();
        let rules =
            rules.map(|(rule, every)| RecrawlEntry { r#match: Some(rule), every: Some(Seconds(every)) });
        let servers = self.servers.iter().copied().map(ServerEntry::from);
        listed(rules).into_iter().chain(listed(servers)).chain(sections).collect()
    }

    /// Takes over one setting.
    pub(crate) fn adopt(&mut self, setting: &str, from: &Config) {
        let (section, name) = setting.split_once('.').unwrap_or((setting, ""));
        match section {
            CrawlSettings::NAME => self.crawl.adopt(name, &from.crawl),
            UrlServerSettings::NAME => self.url_server.adopt(name, &from.url_server),
            SpiderSettings::NAME => self.spider.adopt(name, &from.spider),
            StoreSettings::NAME => self.store.adopt(name, &from.store),
            DocIndexSettings::NAME => self.doc_index.adopt(name, &from.doc_index),
            FeedsSettings::NAME => self.feeds.adopt(name, &from.feeds),
            ContentSettings::NAME => self.content.adopt(name, &from.content),
            AdminSettings::NAME => self.admin.adopt(name, &from.admin),
            MasterSettings::NAME => self.master.adopt(name, &from.master),
            ClusterSettings::NAME => self.cluster.adopt(name, &from.cluster),
            RecrawlEntry::NAME => self.recrawl = from.recrawl.clone(),
            ServerEntry::NAME => self.servers.clone_from(&from.servers),
            _ => {}
        }
    }

    /// Makes files mean the same from every directory.
    pub(super) fn make_paths_absolute(&mut self) {
        self.crawl.make_paths_absolute();
        self.spider.make_paths_absolute();
        self.content.make_paths_absolute();
        self.master.make_paths_absolute();
        self.cluster.make_paths_absolute();
    }
}

/// A list of tables as one setting, if it has any.
fn listed<S: Section>(entries: impl Iterator<Item = S>) -> Option<(String, String)> {
    let entries = entries.map(|entry| {
        let settings = entry.written().into_iter().map(|(name, text)| format!("{name} = {text}"));
        format!("{{ {} }}", settings.collect::<Vec<_>>().join(", "))
    });
    let entries: Vec<String> = entries.collect();
    (!entries.is_empty()).then(|| (S::NAME.to_string(), format!("[{}]", entries.join(", "))))
}

/// How a setting is named where its section is not at hand.
pub(super) fn key<S: Section>(name: &str) -> String {
    format!("{}.{name}", S::NAME)
}

fn beyond_bounds<S: Section>(section: &S, faults: &mut Vec<Fault>) {
    faults.extend(section.out_of_bounds().into_iter().map(|(name, cause)| Fault {
        keys: vec![key::<S>(name)],
        cause: format!("{} {cause}", key::<S>(name)),
    }));
}
