//! Settings that change while a crawl runs.

use crate::config::Config;
use crate::engine::crawl::settings::{fetch_limits, niceness_rules};
use crate::engine::runtime::log_writer::run_rules;
use crate::engine::runtime::settings_news::SettingsNews;
use crate::proto::crawl_log::RunRules;
use crate::spider::FetchLimits;
use crate::url_server::NicenessRules;
use std::sync::{Arc, Mutex, PoisonError};

/// The settings as they are at this moment: a shard that takes the place of another begins with them.
#[derive(Clone)]
pub(crate) struct LiveConfig {
    config: Arc<Mutex<Arc<Config>>>,
    pub news: Arc<SettingsNews>,
}

impl LiveConfig {
    pub fn new(config: &Config) -> LiveConfig {
        LiveConfig { config: Arc::new(Mutex::new(Arc::new(config.clone()))), news: Arc::default() }
    }

    pub fn get(&self) -> Arc<Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, config: Arc<Config>) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

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
