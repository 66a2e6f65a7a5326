use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory for documents in flight, over all spiders of the process. When it is used up, no spider starts another
/// fetch; open fetches run to their end, and nothing is dropped.
#[derive(Debug)]
pub struct BodyBudget {
    used: AtomicU64,
    bytes_max: AtomicU64,
}

impl BodyBudget {
    pub fn new(bytes_max: u64) -> Arc<BodyBudget> {
        Arc::new(BodyBudget { used: AtomicU64::new(0), bytes_max: AtomicU64::new(bytes_max) })
    }

    /// Another limit holds for fetches that begin from now on.
    pub fn set_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Bytes held, to within a step of each spider.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// The bytes that one spider holds. It publishes them in steps, so that a page costs no write to shared memory.
pub(super) struct Held {
    budget: Arc<BodyBudget>,
    bytes: u64,
    published: u64,
}

const STEP_BYTES: u64 = 256 * 1024;

impl Held {
    pub fn new(budget: Arc<BodyBudget>) -> Held {
        Held { budget, bytes: 0, published: 0 }
    }

    /// Accounts for a buffer that went from one size to another.
    pub fn resized(&mut self, from: usize, to: usize) {
        self.bytes = self.bytes + to as u64 - from as u64;
        if self.bytes.abs_diff(self.published) >= STEP_BYTES {
            self.publish();
        }
    }

    pub fn is_used_up(&self) -> bool {
        // What is not published yet counts here all the same.
        self.budget.used() + self.bytes.saturating_sub(self.published)
            >= self.budget.bytes_max.load(Ordering::Relaxed)
    }

    fn publish(&mut self) {
        if self.bytes >= self.published {
            self.budget.used.fetch_add(self.bytes - self.published, Ordering::Relaxed);
        } else {
            self.budget.used.fetch_sub(self.published - self.bytes, Ordering::Relaxed);
        }
        self.published = self.bytes;
    }
}

/// A spider that ends, also by a panic, holds nothing.
impl Drop for Held {
    fn drop(&mut self) {
        self.bytes = 0;
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_holds_the_other_sees() {
        let budget = BodyBudget::new(1_000_000);
        let (mut one, mut other) = (Held::new(budget.clone()), Held::new(budget.clone()));
        one.resized(0, 900_000);
        assert!(!one.is_used_up() && !other.is_used_up());
        other.resized(0, 100_000);
        assert!(other.is_used_up(), "its own count is exact");
        one.resized(900_000, 1_000_000);
        other.resized(100_000, 0);
        one.resized(1_000_000, 0);
        assert!(!one.is_used_up() && !other.is_used_up());
        other.resized(0, 2_000_000);
        assert!(one.is_used_up());
        drop(other);
        assert_eq!((budget.used(), one.is_used_up()), (0, false));
    }
}
