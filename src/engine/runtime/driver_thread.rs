//! A thread that has a driver of its own and turns one actor over it.

use super::actor::{InDriver, Networked, run};
use super::events::Event;
use super::health::Health;
use super::shard_thread::BellSlot;
use crate::driver::Driver;
use crate::rings::Doorbell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

/// The thread. It ends by `end`, or with this value.
pub(crate) struct DriverThread {
    end: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: Option<JoinHandle<()>>,
}

impl DriverThread {
    /// Driver and actor are made on the thread that will use them; what comes with the actor is handed out. `failed` is
    /// what a user reads if the driver fails.
    pub fn start<D: Driver, A: Networked<Net = D>, T: Send + 'static>(
        name: &str,
        make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
        make_actor: impl FnOnce(D, Arc<Doorbell>) -> io::Result<(A, T)> + Send + 'static,
        failed: &'static str,
        health: &Health,
    ) -> io::Result<(DriverThread, T)> {
        let end = Arc::new(AtomicBool::new(false));
        let (slot, bell) = BellSlot::with_doorbell();
        let (ready, started) = sync_channel(1);
        let (notices, pulse) = (health.notices.clone(), health.pulses.thread(name, bell.clone()));
        let thread = std::thread::Builder::new().name(name.to_string()).spawn({
            let (bell, end) = (bell.clone(), end.clone());
            move || {
                let made = make_driver().and_then(|driver| {
                    slot.hang(driver.bell());
                    make_actor(driver, bell.clone())
                });
                match made {
                    Err(e) => drop(ready.send(Err(e))),
                    Ok((mut actor, with_it)) => {
                        let _ = ready.send(Ok(with_it));
                        if let Err(e) = run(&mut actor, &InDriver(bell), &pulse, &end, || false) {
                            let fields = vec![("cause", e.to_string().into())];
                            notices.tell(Event::ThreadFailed, fields, format!("{failed}: {e}"));
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
