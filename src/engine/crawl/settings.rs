//! Each role's own settings, out of the one configuration.

use crate::base::{AddressGuard, Wall};
use crate::config::Config;
use crate::engine::crawl::node_setup::SpiderSetup;
use crate::handler::Scope;
use crate::proto::http1::{BodyLimits, HeadLimits};
use crate::proto::robots::product_token;
use crate::proto::url::{CrawlUrl, UrlRules};
use crate::spider::SpiderConfig;
use crate::store_server::StoreRules;
use crate::url_server::{Niceness, UrlServerConfig};

pub fn url_server_config(config: &Config, wall: Wall, epoch: u32) -> UrlServerConfig {
    let settings = &config.url_server;
    let factor = settings.delay_factor as f32;
    let host = Niceness::from_rate(settings.req_host_per_sec, settings.req_host_concurrent, factor);
    let ip = Niceness::from_rate(
        settings.req_ip_per_sec.unwrap_or(settings.req_host_per_sec),
        settings.req_ip_concurrent.unwrap_or(settings.req_host_concurrent),
        factor,
    );
    UrlServerConfig {
        queue_count: settings.queue_count,
        queue_len: settings.queue_len,
        host,
        ip,
        spider_silence_us: settings.timeout_spider_status_s * 1_000_000,
        product_token: product_token(&config.spider.user_agent).to_string(),
        leftover_urls: if settings.in_ram { usize::MAX } else { settings.leftover_urls },
        host_failures_max: settings.host_failures_max,
        wall,
        // Another process at another time starts elsewhere, and so does a shard after a death.
        seed: (wall.unix_ms_at_zero as u32).wrapping_add(epoch.wrapping_mul(0x0100_0193)),
    }
}

pub fn spider_config(config: &Config, kit: &SpiderSetup, wall: Wall) -> SpiderConfig {
    let settings = &config.spider;
    SpiderConfig {
        user_agent: settings.user_agent.clone(),
        working_us: settings.timeout_update_ms * 1_000,
        total_us: settings.timeout_req_ms * 1_000,
        connect_us: settings.timeout_connect_ms.min(settings.timeout_req_ms) * 1_000,
        first_byte_us: settings.timeout_first_byte_ms.min(settings.timeout_req_ms) * 1_000,
        fallback_us: settings.fallback_delay_ms.min(settings.timeout_connect_ms).min(settings.timeout_req_ms)
            * 1_000,
        read_us: settings.timeout_read_ms.min(settings.timeout_req_ms) * 1_000,
        rate_bytes_per_s: settings.min_rate,
        idle_us: settings.keep_alive_ms * 1_000,
        head: HeadLimits::default(),
        body: BodyLimits { doc_bytes_max: settings.max_doc_size, ..BodyLimits::default() },
        conns_max: settings.fetches_max,
        guard: AddressGuard::new(config.allow_net.clone()),
        tls: kit.tls.clone(),
        sites: kit.sites.clone(),
        cookies: settings.cookies,
        budget: kit.budget.clone(),
        wall,
    }
}

/// The plain pause between two requests to one host.
pub fn gap_us(config: &Config) -> u64 {
    let settings = &config.url_server;
    Niceness::from_rate(settings.req_host_per_sec, settings.req_host_concurrent, 0.0).gap_us
}

/// The scope that the seeds span, with the rules of the settings.
pub fn scope_of<'a>(config: &Config, seeds: impl IntoIterator<Item = &'a CrawlUrl>) -> Scope {
    let rules = UrlRules::of(&config.doc_index).expect("rules are compiled when the settings are checked");
    let mut scope = Scope::new(config.scope, config.depth).with_rules(&config.doc_index, rules);
    for seed in seeds {
        scope.add(seed);
    }
    scope
}

pub fn store_rules(config: &Config) -> StoreRules {
    StoreRules {
        segment_bytes: config.store.segment_bytes,
        agent: config.spider.user_agent.clone(),
        dedup: config.store.dedup,
        free_bytes_min: config.store.free_bytes_min,
    }
}
