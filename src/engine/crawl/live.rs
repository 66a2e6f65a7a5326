//! Settings that change while a crawl runs.

use crate::config::Config;
use crate::engine::crawl::settings::{fetch_limits, niceness_rules};
use crate::engine::runtime::log_writer::run_rules;
use crate::proto::crawl_log::RunRules;
use crate::spider::FetchLimits;
use crate::url_server::NicenessRules;

/// What a shard keeps to from the moment that it takes this.
pub struct ShardRules {
    pub(crate) niceness: NicenessRules,
    pub(crate) limits: FetchLimits,
    /// For the crawl log.
    pub(crate) told: RunRules,
}

impl ShardRules {
    pub(crate) fn of(config: &Config) -> ShardRules {
        ShardRules {
            niceness: niceness_rules(config),
            limits: fetch_limits(config),
            told: run_rules(config, 0),
        }
    }
}
