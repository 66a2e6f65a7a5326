use crate::base::{Now, Rng};
use crate::config::{Bytes, Millis, Rate, Seconds};
use crate::sim::misfortunes::Misfortunes;
use crate::sim::plan::Plan;

/// What one seed stands for: a web and its settings, the sizes of the processes and their misfortunes.
pub struct SplitPlan {
    /// The web, and the settings of every process.
    pub web: Plan,
    /// Of each spider.
    pub shards: [usize; SPIDERS],
    pub workers: usize,
    pub faults: Misfortunes<Misfortune>,
}

/// One misfortune.
#[derive(Clone, Copy, Debug)]
pub enum Misfortune {
    Cut,
    Delay,
    Reset,
    Kill,
    /// As a kill, and what a store server had not synced is lost.
    PowerLoss,
}

pub const SPIDERS: usize = 3;

const KINDS: [Misfortune; 5] =
    [Misfortune::Cut, Misfortune::Delay, Misfortune::Reset, Misfortune::Kill, Misfortune::PowerLoss];

impl SplitPlan {
    pub fn from_seed(seed: u64) -> SplitPlan {
        let mut web = Plan::from_seed(seed);
        let mut rng = Rng::new(seed ^ 0x0005_9117);
        web.site.hosts = 2 + rng.below(7) as u32;
        web.site.pages = 2 + rng.below(6) as u32;
        web.site.page_bytes = 300 + rng.below(2_000) as u32;
        web.addresses = 1 + rng.below(u64::from(web.site.hosts)) as u32;
        web.conns_max = 2 + rng.below(16) as usize;
        let url_server = &mut web.config.url_server;
        // What is remembered of hosts has room for all of them.
        url_server.queue_count = 16;
        url_server.queue_len = 1 + rng.below(12) as usize;
        url_server.req_host_concurrent = 1;
        url_server.req_ip_concurrent = None;
        url_server.req_ip_per_sec = None;
        url_server.req_host_per_sec = Rate([0.5, 1.0, 3.0, 50.0][rng.below(4) as usize]);
        url_server.timeout_spider_status = Seconds(4 + rng.below(12));
        let spider = &mut web.config.spider;
        spider.fetches_max = web.conns_max;
        spider.timeout_update = Millis(300 + rng.below(1_700));
        spider.timeout_req = Millis(3_000 + rng.below(20_000));
        spider.timeout_read = Millis(1_000 + rng.below(8_000));
        spider.timeout_connect = Millis(1_000 + rng.below(4_000));
        web.config.store.segment_bytes = Bytes(256 << 10);
        web.config.store.commit_ms = Millis(5 + rng.below(400));
        // A plan without any is audited by its logs.
        let every_ms = if rng.chance(150) { 0 } else { 400 + rng.below(6_000) };
        // Without reports a URL server does not learn what servers ask for.
        web.config.spider.report = rng.chance(800) || every_ms == 0;
        let mut weight = || if rng.chance(700) { 1 + rng.below(4) } else { 0 };
        let mut weights: [u64; 5] = std::array::from_fn(|_| weight());
        weights[3] += u64::from(weights.iter().sum::<u64>() == 0);
        let until = Now::from_us(1_000_000 * (20 + rng.below(60)));
        SplitPlan {
            shards: std::array::from_fn(|_| 1 + rng.below(2) as usize),
            workers: 1 + rng.below(2) as usize,
            faults: Misfortunes { every_ms, until, weights: KINDS.into_iter().zip(weights).collect() },
            web,
        }
    }
}
