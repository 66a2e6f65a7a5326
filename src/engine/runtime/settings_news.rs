use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What became of settings that were read again while a process runs, for whoever watches it.
#[derive(Debug)]
pub struct SettingsNews {
    taken: AtomicU64,
    is_reloaded: AtomicBool,
    reloaded_at_s: AtomicU64,
}

impl Default for SettingsNews {
    /// The settings of the start count as read.
    fn default() -> SettingsNews {
        SettingsNews {
            taken: AtomicU64::new(0),
            is_reloaded: AtomicBool::new(true),
            reloaded_at_s: AtomicU64::new(0),
        }
    }
}

impl SettingsNews {
    /// Changes that hold.
    pub fn taken(&self, changes: u64) {
        self.taken.fetch_add(changes, Ordering::Relaxed);
    }

    /// The settings were read, and could be understood and kept or not.
    pub fn reloaded(&self, is_good: bool, unix_s: u64) {
        self.is_reloaded.store(is_good, Ordering::Relaxed);
        if is_good {
            self.reloaded_at_s.store(unix_s, Ordering::Relaxed);
        }
    }

    /// Changes taken by SIGHUP since the start.
    pub fn changes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether the last reading was good, and when one last was; 0 if never since the start.
    pub fn last_reload(&self) -> (bool, u64) {
        (self.is_reloaded.load(Ordering::Relaxed), self.reloaded_at_s.load(Ordering::Relaxed))
    }
}
