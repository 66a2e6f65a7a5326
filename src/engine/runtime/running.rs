use super::counters::Snapshot;
use super::health::{Health, NodeError, Part};
use super::notices::Untaken;
use super::readings::Role;
use super::settings_news::SettingsNews;
use crate::config::Config;
use crate::rings::Doorbell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A node of any kind, while it runs.
pub trait Running: Sized {
    type Summary;

    const ROLE: Role;

    fn health(&self) -> &Health;

    fn stop_switch(&self) -> &StopSwitch;

    fn is_finished(&self) -> bool;

    /// Starts nothing new; what is open may end.
    fn stop(&self) {
        self.stop_switch().stop();
    }

    /// What it waits for, if it is more than the network.
    fn waiting(&self) -> Option<(Part, String)> {
        self.health().waiting()
    }

    /// What users are to be told that happened since this was last asked.
    fn notices(&self) -> Untaken {
        self.health().notices().take()
    }

    /// Begins a new part of the crawl log.
    fn rotate_log(&self) {
        self.health().ask_log_part();
    }

    /// What it has counted, for the sentence that says how it goes.
    fn counted(&self) -> Snapshot;

    /// What it goes by, if that may change while it runs.
    fn settings(&self) -> Option<Arc<Config>> {
        None
    }

    /// Whether it can take a change of a setting, `section.name`, if any process can.
    fn takes(&self, _setting: &str) -> bool {
        false
    }

    /// Goes by these settings from now on. False if it ends, or takes none.
    fn set(&self, _config: Arc<Config>) -> bool {
        false
    }

    /// Where those who watch it read what became of changed settings.
    fn settings_news(&self) -> Option<&SettingsNews> {
        None
    }

    /// How far it is, where that is shown.
    fn snapshot(&self) -> Option<Snapshot> {
        None
    }

    /// Waits for the end, writes everything and sums up.
    fn finish(self) -> Result<Self::Summary, NodeError>;
}

/// Tells the threads of a node to stop, and wakes those that must hear of it.
#[derive(Clone)]
pub struct StopSwitch {
    stop: Arc<AtomicBool>,
    bells: Vec<Arc<Doorbell>>,
}

impl StopSwitch {
    pub(crate) fn new(stop: Arc<AtomicBool>, bells: Vec<Arc<Doorbell>>) -> StopSwitch {
        StopSwitch { stop, bells }
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.bells.iter().for_each(|bell| bell.ring_if_asleep());
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
