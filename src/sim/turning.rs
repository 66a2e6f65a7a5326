//! What the simulations of several processes have in common.

use crate::base::Now;
use crate::driver::SimNet;
use crate::engine::Actor;
use crate::rings::Doorbell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An actor, and the driver that it sleeps in.
pub type Seat<'a> = (&'a mut dyn Actor, Option<usize>);

/// A bell that nobody hears: actors are turned when they have something to do.
pub fn silent() -> Arc<Doorbell> {
    Arc::new(Doorbell::new(|| ()))
}

/// Whether an actor has something to do.
pub fn is_due(actor: &dyn Actor, driver: Option<usize>, net: &SimNet, now: Now) -> bool {
    actor.has_messages()
        || actor.next_due().is_some_and(|due| due <= now)
        || driver.is_some_and(|driver| net.has_arrived(driver))
}

/// A directory of the machine for one run, gone after it.
pub struct DataFolder(PathBuf);

impl DataFolder {
    pub fn new() -> DataFolder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("nephila-sim-{}-{number}", std::process::id()));
        // A process that was killed had this number, and left it.
        let _ = std::fs::remove_dir_all(&path);
        DataFolder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
