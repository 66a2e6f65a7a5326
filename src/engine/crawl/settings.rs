//! Each role's own settings, out of the one configuration. Rules over URLs are compiled when it is read; here they are
//! only handed on.

use crate::base::{AddressGuard, Wall};
use crate::config::Config;
use crate::doc_index::{IndexRules, Recrawl, Schedule, Segments};
use crate::engine::crawl::node_setup::SpiderSetup;
use crate::handler::{Scope, ScopeRules};
use crate::proto::http1::{BodyLimits, HeadLimits};
use crate::proto::robots::product_token;
use crate::proto::url::{CrawlUrl, UrlRules};
use crate::spider::{FetchLimits, SpiderConfig};
use crate::store_server::StoreRules;
use crate::url_server::{Niceness, NicenessRules, UrlServerConfig};
use xxhash_rust::xxh3::xxh3_64;

/// Without a figure for its memory, an index takes no more than this.
const MEMORY_BYTES_USUAL: u64 = 1 << 30;

pub fn url_server_config(config: &Config, wall: Wall, epoch: u32) -> UrlServerConfig {
    let settings = &config.url_server;
    let NicenessRules { host, ip, host_failures_max } = niceness_rules(config);
    UrlServerConfig {
        queue_count: settings.queue_count,
        queue_len: settings.queue_len,
        host,
        ip,
        spider_silence_us: settings.timeout_spider_status.us(),
        product_token: our_product_token(config),
        leftover_urls: if settings.in_ram { usize::MAX } else { settings.leftover_urls },
        host_failures_max,
        wall,
        // Another process at another time starts elsewhere, and so does a shard after a death.
        seed: (wall.unix_ms_at_zero as u32).wrapping_add(epoch.wrapping_mul(0x0100_0193)),
    }
}

pub fn niceness_rules(config: &Config) -> NicenessRules {
    let settings = &config.url_server;
    let factor = settings.delay_factor.0 as f32;
    NicenessRules {
        host: Niceness::from_rate(settings.req_host_per_sec.0, settings.req_host_concurrent, factor),
        ip: Niceness::from_rate(
            settings.req_ip_per_sec.unwrap_or(settings.req_host_per_sec).0,
            settings.req_ip_concurrent.unwrap_or(settings.req_host_concurrent),
            factor,
        ),
        host_failures_max: settings.host_failures_max,
    }
}

/// Our name in robots.txt.
pub(crate) fn our_product_token(config: &Config) -> String {
    product_token(&config.spider.agent()).to_string()
}

pub fn spider_config(config: &Config, kit: &SpiderSetup, wall: Wall) -> SpiderConfig {
    let settings = &config.spider;
    SpiderConfig {
        user_agent: settings.agent(),
        limits: fetch_limits(config),
        head: HeadLimits::default(),
        conns_max: settings.fetches_max,
        tls: kit.tls.clone(),
        sites: kit.sites.clone(),
        cookies: settings.cookies,
        budget: kit.budget.clone(),
        wall,
    }
}

pub fn fetch_limits(config: &Config) -> FetchLimits {
    let settings = &config.spider;
    let total_us = settings.timeout_req.us();
    let connect_us = settings.timeout_connect.us().min(total_us);
    FetchLimits {
        working_us: settings.timeout_update.us(),
        total_us,
        connect_us,
        first_byte_us: settings.timeout_first_byte.us().min(total_us),
        fallback_us: settings.fallback_delay.us().min(connect_us),
        read_us: settings.timeout_read.us().min(total_us),
        rate_bytes_per_s: settings.min_rate.0,
        idle_us: settings.keep_alive.us(),
        body: BodyLimits { doc_bytes_max: settings.max_doc_size.0, ..BodyLimits::default() },
        body_memory: settings.body_memory.0,
        guard: AddressGuard::new(config.crawl.allowed()),
    }
}

/// The plain pause between two requests to one host.
pub fn gap_us(config: &Config) -> u64 {
    let settings = &config.url_server;
    Niceness::from_rate(settings.req_host_per_sec.0, settings.req_host_concurrent, 0.0).gap_us
}

/// The scope that the seeds span, with the rules of the settings.
pub fn scope_of<'a>(config: &Config, seeds: impl IntoIterator<Item = &'a CrawlUrl>) -> Scope {
    let settings = &config.doc_index;
    let mut scope = Scope::new(config.crawl.scope, config.crawl.depth_max()).with_rules(ScopeRules {
        urls: UrlRules { allow: settings.allow.clone(), deny: settings.deny.clone() },
        path_depth_max: settings.path_depth_max,
        segment_repeats_max: settings.segment_repeats_max,
        canon: settings.canon(),
    });
    for seed in seeds {
        scope.add(seed);
    }
    scope
}

pub fn store_rules(config: &Config) -> StoreRules {
    StoreRules {
        segment_bytes: config.store.segment_bytes.0,
        agent: config.spider.agent(),
        dedup: config.store.dedup,
        compress: config.store.compress,
        free_bytes_min: config.store.free_bytes_min.map(|bytes| bytes.0),
    }
}

/// How a doc index works.
pub fn index_rules(config: &Config) -> IndexRules {
    let settings = &config.doc_index;
    let seconds = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
    let memory_bytes = settings.memory.map_or(MEMORY_BYTES_USUAL, |bytes| bytes.0);
    IndexRules {
        memory_bytes: usize::try_from(memory_bytes).unwrap_or(usize::MAX),
        schedule: Schedule {
            retry_first_s: seconds(settings.retry_first.0),
            retries_max: settings.retries_max,
            recrawl: settings.recrawl.then(|| Recrawl {
                min_s: seconds(settings.recrawl_min.0),
                start_s: seconds(settings.recrawl_start.0),
                max_s: seconds(settings.recrawl_max.0),
            }),
            fixed_s_max: seconds(config.recrawl.every_s_max()),
        },
        again: config.crawl.again,
        denied_anew: false,
        pages_per_host: settings.pages_per_host,
        pages_per_domain: settings.pages_per_domain,
        query_variants_max: settings.query_variants_max,
        signature: signature(config),
        segments: Segments::default(),
        share: None,
    }
}

/// The rules by which links are followed, as a number. It goes to disk.
fn signature(config: &Config) -> u64 {
    let settings = &config.doc_index;
    let rules = format!(
        "{} {:?} {} {:?} {:?} {} {}",
        settings.canon().signature(),
        config.crawl.scope,
        config.crawl.depth_max(),
        settings.allow.texts(),
        settings.deny.texts(),
        settings.path_depth_max,
        settings.segment_repeats_max,
    );
    xxh3_64(rules.as_bytes())
}
