//! The doc index of a process: opened, and told by which rules it works.

use crate::config::Config;
use crate::doc_index::{DocIndex, IndexError, IndexRules, Opened, Segments};
use crate::engine::crawl::provider::ProviderRules;
use crate::engine::crawl::resume::IndexedMark;
use crate::engine::crawl::settings::{index_rules, our_product_token, scope_of};
use crate::engine::crawl::stored_pages::StoredPages;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::handler::{FeedReading, Handler, Scope};
use crate::proto::feed::FeedLimits;
use crate::proto::partition::Share;
use crate::proto::robots::product_token;
use crate::proto::url::CrawlUrl;
use crate::store_server::DataDir;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A doc index that was opened, and what it told about the time before.
pub struct OpenIndex {
    pub index: DocIndex,
    pub opened: Opened,
    /// From where on the store may have more; `None` for one that leaves nothing behind.
    pub(crate) told: Option<IndexedMark>,
    /// All that was ever typed, and where it led. It takes memory by hosts, domains or prefixes, and not by URLs.
    scope: Scope,
}

/// Where the doc index of a data directory is.
pub fn index_folder(data: &Path) -> PathBuf {
    data.join("index")
}

impl OpenIndex {
    /// Opens the index of a data directory whose lock is held, and notes the rules beside it. A node of a cluster has a share.
    /// `seed` is told every URL that was ever typed, and where it led.
    pub fn open(
        config: &Config,
        directory: &DataDir,
        share: Option<Arc<Share>>,
        seed: impl FnMut(&CrawlUrl),
    ) -> Result<OpenIndex, IndexError> {
        OpenIndex::open_at(config, directory, share, present_s(), seed)
    }

    /// The same at another time than the clock's, in seconds since 1970.
    pub(crate) fn open_at(
        config: &Config,
        directory: &DataDir,
        share: Option<Arc<Share>>,
        now_s: u32,
        seed: impl FnMut(&CrawlUrl),
    ) -> Result<OpenIndex, IndexError> {
        let folder = index_folder(directory.path());
        let denied_anew = !was_opened_as(config, &folder);
        let rules = IndexRules { denied_anew, share, ..index_rules(config) };
        let index = OpenIndex::open_quietly(config, rules, directory, now_s, seed)?;
        let noted = CrawlRules::of(config).write(&folder);
        noted.map_err(|cause| IndexError::Unusable { path: folder, cause })?;
        Ok(index)
    }

    /// Opens it by the rules of the last process, for whoever has none of their own.
    pub fn open_as_before(directory: &DataDir) -> Result<OpenIndex, IndexError> {
        let folder = index_folder(directory.path());
        let rules = CrawlRules::read(&folder);
        let rules = rules.map_err(|cause| IndexError::Unusable { path: folder, cause })?;
        let config = rules.map(|rules| rules.config()).unwrap_or_default();
        OpenIndex::open_quietly(&config, index_rules(&config), directory, present_s(), |_| {})
    }

    fn open_quietly(
        config: &Config,
        rules: IndexRules,
        directory: &DataDir,
        now_s: u32,
        mut seed: impl FnMut(&CrawlUrl),
    ) -> Result<OpenIndex, IndexError> {
        let rules = IndexRules { segments: segments_of(directory), ..rules };
        let (folder, mut scope) = (index_folder(directory.path()), scope_of(config, []));
        let (index, opened) = DocIndex::open_telling(&folder, rules, now_s, |url| {
            seed(&url);
            scope.add(&url);
        })?;
        let told = IndexedMark::read(&folder);
        let told = told.map_err(|cause| IndexError::Unusable { path: folder, cause })?;
        Ok(OpenIndex { index, opened, scope, told: Some(told) })
    }

    /// One that leaves nothing behind: what fails has no other time to be tried at.
    pub fn in_memory(config: &Config) -> OpenIndex {
        let mut rules = index_rules(config);
        rules.schedule.retries_max = 0;
        let index = DocIndex::in_memory(rules);
        OpenIndex { index, opened: Opened::default(), scope: scope_of(config, []), told: None }
    }

    /// An index that a simulation looks into.
    pub fn over(index: DocIndex, config: &Config) -> OpenIndex {
        OpenIndex { index, opened: Opened::default(), scope: scope_of(config, []), told: None }
    }

    /// What is in scope: all that was ever typed, and where it led.
    pub(crate) fn scope(&self, seeds: &[CrawlUrl]) -> Arc<Scope> {
        let mut scope = self.scope.clone();
        seeds.iter().for_each(|url| scope.add(url));
        Arc::new(scope)
    }

    /// What the provider of a crawl goes by.
    pub(crate) fn provider_rules(&self, config: &Config, scope: &Arc<Scope>) -> ProviderRules {
        if self.opened.first_new == 0 {
            return ProviderRules::plain();
        }
        ProviderRules {
            stored_pages: Some(StoredPages::new(
                config.store.data.clone(),
                self.index.first_segment(),
                handler_of(config, scope),
            )),
            scope: Some(scope.clone()),
            first_new: self.opened.first_new,
            sitemaps: config.doc_index.sitemaps,
            recrawl: config.recrawl.clone(),
            locked: config.auth_missing.clone(),
        }
    }
}

/// Whether the last process on an index had the same name in robots.txt. One that is not known is another.
fn was_opened_as(config: &Config, folder: &Path) -> bool {
    let before = CrawlRules::read(folder).ok().flatten();
    before.is_some_and(|before| {
        product_token(&before.user_agent).eq_ignore_ascii_case(&our_product_token(config))
    })
}

fn present_s() -> u32 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(unix.as_secs()).unwrap_or(u32::MAX)
}

/// One that reads pages.
pub(crate) fn handler_of(config: &Config, scope: &Arc<Scope>) -> Handler {
    let limits = FeedLimits { entries_max: config.feeds.entries_max, ..FeedLimits::default() };
    let feeds = FeedReading { limits, discover: config.feeds.discover };
    Handler::new(scope.clone(), our_product_token(config)).with_feeds(feeds)
}

fn segments_of(directory: &DataDir) -> Segments {
    let mut before = directory.segment_numbers();
    before.sort_unstable();
    Segments { first_new: directory.next_segment(), before }
}
