use crate::engine::runtime::log_writer::LogWriter;
use crate::engine::runtime::threads::{Health, NodeError, SLEEP_MAX, joined, rest, spawn};
use crate::rings::{Doorbell, ThreadBell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The thread of a [`LogWriter`].
pub(crate) struct LogWriterThread {
    end: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    thread: JoinHandle<()>,
}

impl LogWriterThread {
    pub fn start(
        scribe: LogWriter,
        thread: Arc<ThreadBell>,
        bell: Arc<Doorbell>,
        trouble: Arc<Health>,
    ) -> Result<LogWriterThread, NodeError> {
        let end = Arc::new(AtomicBool::new(false));
        let body = {
            let (end, bell) = (end.clone(), bell.clone());
            move || run(scribe, &end, &thread, &bell, &trouble)
        };
        Ok(LogWriterThread { end, bell, thread: spawn("scribe", body)? })
    }

    /// Lets it write what it has been told, and ends it.
    pub fn end(self) {
        self.end.store(true, Ordering::Release);
        self.bell.ring_if_asleep();
        joined(self.thread);
    }
}

fn run(mut scribe: LogWriter, end: &AtomicBool, thread: &ThreadBell, bell: &Doorbell, trouble: &Health) {
    thread.belongs_to_me();
    loop {
        match scribe.turn() {
            Ok(words) => {
                trouble.scribe_waits(None);
                if end.load(Ordering::Acquire) && scribe.is_idle() {
                    return;
                }
                rest(thread, bell, SLEEP_MAX, words as u64, || !scribe.is_idle());
            }
            Err(cause) => {
                let text = format!("cannot write the crawl log or the journal of hosts: {cause}");
                trouble.scribe_waits(Some(text));
                if end.load(Ordering::Acquire) {
                    return;
                }
                std::thread::sleep(SLEEP_MAX);
            }
        }
    }
}
