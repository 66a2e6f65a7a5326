//! What a farm has done, counted per thread without sharing.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over all threads of a farm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarmStats {
    /// Requests for anything but these figures, refused ones included.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Requests for robots.txt, and for what it denies.
    pub robots_requests: u64,
    pub denied_requests: u64,
    /// Bytes of answers, heads included, that the kernel has taken.
    pub bytes: u64,
    /// Questions for names that were answered.
    pub names_asked: u64,
}

impl FarmStats {
    pub(super) fn sum(threads: &[Counters]) -> FarmStats {
        let sum = |of: fn(&Counters) -> &Counter| threads.iter().map(|thread| of(thread).get()).sum();
        FarmStats {
            requests: sum(|thread| &thread.requests),
            connections: sum(|thread| &thread.connections),
            robots_requests: sum(|thread| &thread.robots_requests),
            denied_requests: sum(|thread| &thread.denied_requests),
            bytes: sum(|thread| &thread.bytes),
            names_asked: sum(|thread| &thread.names_asked),
        }
    }
}

/// One JSON object.
impl fmt::Display for FarmStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FarmStats { requests, connections, robots_requests, denied_requests, bytes, names_asked } = self;
        write!(f, "{{\"requests\":{requests},\"connections\":{connections},")?;
        write!(f, "\"robots_requests\":{robots_requests},")?;
        write!(f, "\"denied_requests\":{denied_requests},\"bytes\":{bytes},\"names_asked\":{names_asked}}}")
    }
}

/// The counters of one thread, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) requests: Counter,
    pub(super) connections: Counter,
    pub(super) robots_requests: Counter,
    pub(super) denied_requests: Counter,
    pub(super) bytes: Counter,
    pub(super) names_asked: Counter,
}

/// One thread adds, any thread reads: a load and a store, no locked instruction.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.store(self.get() + count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
