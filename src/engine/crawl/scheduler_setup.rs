//! What a scheduler is told, and what it is joined to.

use crate::base::{AddressGuard, Wall};
use crate::config::Config;
use crate::engine::crawl::index_actor::IndexPort;
use crate::engine::crawl::messages::{Done, FromShard, ToShard};
use crate::engine::names::Names;
use crate::engine::runtime::counters::Counters;
use crate::engine::runtime::health::Health;
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::engine::runtime::shard_lane::ShardLane;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone)]
pub struct SchedulerConfig {
    pub queue_len: usize,
    pub hosts_per_ip_max: usize,
    pub pages_max: Option<u64>,
    pub seconds_max: Option<u64>,
    pub guard: AddressGuard,
    /// Of the seeds only the heads are asked for.
    pub head_only: bool,
    /// Stay when everything is done.
    pub wait: bool,
    /// Without `wait`, it ends if all that is left must wait longer than this.
    pub linger_us: u64,
}

impl SchedulerConfig {
    pub fn new(config: &Config) -> SchedulerConfig {
        SchedulerConfig {
            queue_len: config.url_server.queue_len,
            hosts_per_ip_max: config.url_server.hosts_per_ip_max,
            pages_max: config.crawl.max_pages,
            seconds_max: config.crawl.max_seconds.map(|time| time.0),
            guard: AddressGuard::new(config.crawl.allowed()),
            head_only: config.crawl.head,
            wait: config.crawl.stays(),
            linger_us: config.url_server.linger.us().max(2 * own_pause_us(config)),
        }
    }
}

impl SchedulerConfig {
    /// Takes over what may change while a crawl runs.
    pub fn renew(&mut self, config: &Config) {
        let (queue_len, head_only) = (self.queue_len, self.head_only);
        *self = SchedulerConfig { queue_len, head_only, ..SchedulerConfig::new(config) };
    }
}

/// The pause between two requests to a host that an operator asked for: no reason to end.
fn own_pause_us(config: &Config) -> u64 {
    let settings = &config.url_server;
    let rates = [Some(settings.req_host_per_sec), settings.req_ip_per_sec];
    let pauses = rates.into_iter().flatten().filter(|rate| rate.0 > 0.0).map(|rate| (1e6 / rate.0) as u64);
    pauses.max().unwrap_or(0)
}

/// What a scheduler is joined to.
pub(crate) struct SchedulerParts {
    pub lanes: Vec<SchedulerLane>,
    pub index: IndexPort,
    pub names: Names,
    pub log: LogWriterPort,
    pub wall: Wall,
    pub stop: Arc<AtomicBool>,
    pub counters: Arc<Counters>,
    pub health: Arc<Health>,
    pub live: LiveConfig,
}

pub(crate) type SchedulerLane = ShardLane<ToShard, FromShard, Done>;
