use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::Thread;
use std::time::Duration;

/// Wakes one thread that sleeps on work from others.
///
/// The sleeper says so before it looks at its rings for the last time, and a producer looks for sleepers after it
/// has pushed. With a full fence on both sides one of the two sees the other, so no word is slept over.
pub struct Doorbell {
    asleep: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl Doorbell {
    /// `ring` is what wakes the thread: an eventfd, an epoll waker, an unpark.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Doorbell {
        Doorbell { asleep: AtomicBool::new(false), ring: Box::new(ring) }
    }

    /// Called by a producer after it has pushed.
    pub fn ring_if_asleep(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            (self.ring)();
        }
    }

    /// Called by the sleeper before its last look. If that finds something, `awake` takes it back.
    pub fn falling_asleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Whether nobody has rung since it fell asleep.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }
}

/// A bell for an ordinary thread: it parks.
#[derive(Default)]
pub struct ThreadBell {
    thread: OnceLock<Thread>,
}

impl ThreadBell {
    /// Called once by the thread that will sleep.
    pub fn belongs_to_me(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    pub fn ring(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub fn sleep(&self, at_most: Duration) {
        std::thread::park_timeout(at_most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::ring;
    use std::sync::Arc;

    /// A lost wake-up would leave the consumer asleep for the whole time-out of a minute.
    #[test]
    fn no_word_is_slept_over() {
        let bell = Arc::new(ThreadBell::default());
        let door = Arc::new(Doorbell::new({
            let bell = bell.clone();
            move || bell.ring()
        }));
        let (sender, receiver) = ring::<u32>(8);
        let consumer = std::thread::spawn({
            let (bell, door) = (bell.clone(), door.clone());
            move || {
                bell.belongs_to_me();
                let mut sum = 0u64;
                let mut count = 0;
                while count < 50_000 {
                    match receiver.pop() {
                        Some(n) => {
                            sum += u64::from(n);
                            count += 1;
                        }
                        None => {
                            door.falling_asleep();
                            if receiver.is_empty() {
                                bell.sleep(Duration::from_secs(60));
                            }
                            door.awake();
                        }
                    }
                }
                sum
            }
        });
        for n in 0..50_000u32 {
            let mut word = n;
            while let Err(back) = sender.push(word) {
                word = back;
                std::thread::yield_now();
            }
            door.ring_if_asleep();
        }
        assert_eq!(consumer.join().unwrap(), (0..50_000u64).sum::<u64>());
    }
}
