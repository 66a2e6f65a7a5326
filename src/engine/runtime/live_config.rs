use super::settings_news::SettingsNews;
use crate::config::Config;
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
