//! A thread that has a driver of its own and turns one actor over it.

use super::notices::{Level, Notices};
use crate::base::Now;
use crate::driver::{Bell, Driver};
use crate::rings::Doorbell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// What is turned, on a thread or by the simulation.
pub trait DriverActor {
    type Driver: Driver;

    fn driver(&mut self) -> &mut Self::Driver;

    /// Does what can be done without waiting.
    fn turn(&mut self, now: Now);

    /// When it has something to do even if nothing comes.
    fn next_due(&self) -> Option<Now>;

    /// Another thread has given it something to do.
    fn has_words(&self) -> bool;

    /// Completions that are likely soon.
    fn busy(&self) -> usize {
        0
    }

    /// The thread is to end; it does so once the actor `is_over`.
    fn end(&mut self, _now: Now) {}

    fn is_over(&self) -> bool {
        true
    }
}

/// The thread. It ends by `end`, or with this value.
pub(super) struct DriverThread {
    end: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: Option<JoinHandle<()>>,
}

impl DriverThread {
    /// Driver and actor are made on the thread that will use them; what comes with the actor is handed out. `failed` is
    /// what a user reads if the driver fails.
    pub fn start<D: Driver, A: DriverActor<Driver = D>, T: Send + 'static>(
        name: &str,
        make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
        make_actor: impl FnOnce(D, Arc<Doorbell>) -> io::Result<(A, T)> + Send + 'static,
        failed: &'static str,
        notices: Notices,
    ) -> io::Result<(DriverThread, T)> {
        let end = Arc::new(AtomicBool::new(false));
        let hook: Arc<OnceLock<Arc<dyn Bell>>> = Arc::default();
        let bell = Arc::new(Doorbell::new({
            let hook = hook.clone();
            move || {
                if let Some(bell) = hook.get() {
                    bell.ring();
                }
            }
        }));
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new().name(name.to_string()).spawn({
            let (bell, end) = (bell.clone(), end.clone());
            move || {
                let made = make_driver().and_then(|driver| {
                    let _ = hook.set(driver.bell());
                    make_actor(driver, bell.clone())
                });
                match made {
                    Err(e) => drop(ready.send(Err(e))),
                    Ok((actor, with_it)) => {
                        let _ = ready.send(Ok(with_it));
                        if let Err(e) = run(actor, &bell, &end) {
                            let fields = vec![("cause", e.to_string())];
                            notices.tell(Level::Error, "thread_failed", fields, format!("{failed}: {e}"));
                        }
                    }
                }
            }
        })?;
        let started = started.recv().unwrap_or_else(|_| Err(io::Error::other("the thread died")));
        let thread = DriverThread { end, bell, thread: Some(thread) };
        started.map(|with_it| (thread, with_it))
    }

    /// Wakes it: another thread has given it something to do.
    pub fn ring(&self) {
        self.bell.ring_if_asleep();
    }

    /// It ended of itself.
    pub fn is_dead(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Tells it to end, and does not wait for that.
    pub fn tell_to_end(&self) {
        self.end.store(true, Ordering::Release);
        self.bell.ring_if_asleep();
    }
}

impl Drop for DriverThread {
    fn drop(&mut self) {
        self.tell_to_end();
        if let Some(thread) = self.thread.take() {
            // A panic there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Turns an actor on its own thread until it has ended.
pub(super) fn run(mut actor: impl DriverActor, bell: &Doorbell, end: &AtomicBool) -> io::Result<()> {
    let mut is_ending = false;
    loop {
        let now = actor.driver().now();
        if !is_ending && end.load(Ordering::Acquire) {
            is_ending = true;
            actor.end(now);
        }
        actor.turn(now);
        if is_ending && actor.is_over() {
            return Ok(());
        }
        bell.falling_asleep();
        let has_words = actor.has_words() || (!is_ending && end.load(Ordering::Acquire));
        let until = if has_words { Some(Now::ZERO) } else { actor.next_due() };
        let busy = actor.busy();
        let waited = actor.driver().wait(until, busy);
        bell.awake();
        waited?;
    }
}
