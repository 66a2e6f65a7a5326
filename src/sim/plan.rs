use crate::base::Rng;
use crate::config::{Bytes, Config, Millis, Rate, Seconds};
use crate::farm::SiteSpec;
use crate::handler::ScopeKind;

/// What one seed stands for: a web, a configuration and its misfortunes.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub shards: usize,
    pub site: SiteSpec,
    /// Addresses that the hosts share.
    pub addresses: u32,
    pub config: Config,
    pub conns_max: usize,
    /// Per thousand: connections refused, never answered, answers cut, reset, stalled, slowed, closed after.
    pub faults: Faults,
    /// One in so many hosts has its robots.txt on another host; 0 = none.
    pub robots_elsewhere: u32,
    /// Of a thousand hosts so many have two addresses, one of them dead or both alive.
    pub several: u64,
    /// Milliseconds between two commits of the keeper.
    pub commit_ms: u64,
    /// Mean virtual milliseconds between two deaths of shards; 0 = none die.
    pub death_ms: u64,
    /// Mean virtual milliseconds between two pauses of the whole crawl; 0 = none.
    pub pause_ms: u64,
    /// Mean virtual milliseconds between two changes of the rules; 0 = none.
    pub change_ms: u64,
    /// Virtual microseconds that pass at least when no actor has work.
    pub tick_us: u64,
    /// Invariants are checked after every turn. A plan whose instructions are counted does without.
    pub checked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub refuse: u64,
    pub silence: u64,
    pub cut: u64,
    pub reset: u64,
    pub stall: u64,
    pub slow: u64,
    pub close: u64,
    /// 429 and 503, most with Retry-After.
    pub busy: u64,
}

const PAGES_PER_HOST: u32 = 40;
/// A simulated crawl waits for everything: what it has left at its end is lost.
const STAYS: Seconds = Seconds(1_000 * 86_400);

impl Plan {
    pub fn from_seed(seed: u64) -> Plan {
        let mut rng = Rng::new(seed);
        let hosts = 1 + rng.below(24) as u32;
        let site = SiteSpec {
            seed,
            hosts,
            pages: 1 + rng.below(12) as u32,
            page_bytes: 600 + rng.below(4_000) as u32,
            links: 4 + rng.below(8) as u16,
            redirects: rng.below(20) as f64 / 100.0,
            errors: rng.below(20) as f64 / 100.0,
            broken: rng.below(20) as f64 / 100.0,
            chunked: rng.below(100) as f64 / 100.0,
            denied: 1,
            crawl_delay_s: rng.chance(100).then_some(0.5),
            ..SiteSpec::default()
        };
        let mut config = Config::default();
        config.crawl.scope = ScopeKind::Any;
        config.url_server.linger = STAYS;
        let url_server = &mut config.url_server;
        url_server.queue_count = 2 + rng.below(40) as usize;
        url_server.queue_len = 1 + rng.below(12) as usize;
        url_server.req_host_concurrent = 1 + rng.below(3) as u8;
        url_server.req_host_per_sec = Rate([0.0, 0.5, 1.0, 3.0, 50.0][rng.below(5) as usize]);
        if rng.chance(300) {
            url_server.req_ip_concurrent = Some(1 + rng.below(4) as u8);
            url_server.req_ip_per_sec = Some(Rate([0.0, 1.0, 10.0][rng.below(3) as usize]));
        }
        let spider = &mut config.spider;
        spider.timeout_req = Millis(5_000 + rng.below(60_000));
        spider.timeout_read = Millis(2_000 + rng.below(20_000));
        spider.timeout_connect = Millis(1_000 + rng.below(10_000));
        spider.fallback_delay = Millis(20 + spider.timeout_connect.0 % 3_000);
        spider.keep_alive = Millis(100 + rng.below(20_000));
        spider.max_doc_size = Bytes(64 << 10);
        let mut share = |usual: u64| if rng.chance(500) { rng.below(usual) } else { 0 };
        let faults = Faults {
            refuse: share(150),
            silence: share(60),
            cut: share(150),
            reset: share(150),
            stall: share(80),
            slow: share(200),
            close: share(500),
            busy: share(100),
        };
        let url_server = &mut config.url_server;
        url_server.leftover_urls = 1 + rng.below(60) as usize;
        url_server.in_ram = rng.chance(200);
        url_server.hosts_per_ip_max = 1 + rng.below(12) as usize;
        url_server.host_failures_max = 2 + rng.below(12) as u8;
        Plan {
            seed,
            shards: 1 + rng.below(3) as usize,
            addresses: 1 + rng.below(u64::from(hosts)) as u32,
            site,
            config,
            conns_max: 1 + rng.below(24) as usize,
            faults,
            robots_elsewhere: if rng.chance(300) { 2 + rng.below(4) as u32 } else { 0 },
            commit_ms: 1 + rng.below(200),
            death_ms: if rng.chance(300) { 500 + rng.below(60_000) } else { 0 },
            several: if rng.chance(500) { 100 + rng.below(900) } else { 0 },
            tick_us: 10,
            checked: true,
            pause_ms: if rng.chance(200) { 1_000 + rng.below(60_000) } else { 0 },
            change_ms: if rng.chance(400) { 200 + rng.below(40_000) } else { 0 },
        }
    }

    /// Other rules, as somebody may set them while the crawl runs.
    pub fn changed(config: &Config, rng: &mut Rng) -> Config {
        let mut config = config.clone();
        let settings = &mut config.url_server;
        settings.req_host_per_sec = Rate([0.0, 0.5, 1.0, 3.0, 20.0, 50.0][rng.below(6) as usize]);
        settings.req_host_concurrent = 1 + rng.below(4) as u8;
        settings.delay_factor = Rate([0.0, 0.5, 1.0, 3.0][rng.below(4) as usize]);
        settings.host_failures_max = 2 + rng.below(12) as u8;
        (settings.req_ip_per_sec, settings.req_ip_concurrent) = match rng.chance(300) {
            true => {
                let rate = Rate([0.0, 1.0, 10.0][rng.below(3) as usize]);
                (Some(rate), Some(1 + rng.below(4) as u8))
            }
            false => (None, None),
        };
        config.spider.timeout_read = Millis(2_000 + rng.below(20_000));
        config.spider.keep_alive = Millis(100 + rng.below(20_000));
        config
    }

    /// A crawl of about this many pages in which the work per page is all that counts: forty pages of 10 KB per host,
    /// every connection kept, no faults, no waits for politeness, and many answers per turn of the shard.
    pub fn of_pages(pages: u32) -> Plan {
        let hosts = pages.div_ceil(PAGES_PER_HOST).max(1);
        let site = SiteSpec { seed: 1, hosts, pages: PAGES_PER_HOST, ..SiteSpec::default() };
        let mut config = Config::default();
        config.crawl.scope = ScopeKind::Any;
        config.url_server.linger = STAYS;
        config.url_server.req_host_per_sec = Rate(0.0);
        Plan {
            seed: 1,
            shards: 1,
            addresses: hosts,
            site,
            config,
            conns_max: 256,
            faults: Faults::default(),
            robots_elsewhere: 0,
            commit_ms: 100,
            death_ms: 0,
            several: 0,
            pause_ms: 0,
            change_ms: 0,
            tick_us: 1_000,
            checked: false,
        }
    }
}
