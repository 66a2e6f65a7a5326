use super::record_sender::{RecordSender, SenderParts, links_max};
use super::sink::SenderPort;
use crate::base::random_u64;
use crate::driver::{EpollDriver, ServerDriver, UringDriver};
use crate::engine::runtime::driver_thread::DriverThread;
use crate::engine::runtime::health::NodeError;
use std::io;
use std::time::Instant;

/// The thread that sends the records of a process.
pub(in crate::engine) struct StoreThread(DriverThread);

impl StoreThread {
    /// Dials the store server, once for every shard.
    pub fn start(
        parts: SenderParts,
        shards: usize,
        driver: &str,
        started: Instant,
    ) -> Result<(StoreThread, Vec<SenderPort>), NodeError> {
        let conns_max = links_max(shards);
        let over = match driver {
            "uring" => over(parts, shards, move || UringDriver::new(conns_max, started)),
            _ => over(parts, shards, move || EpollDriver::new(conns_max, started)),
        };
        over.map_err(NodeError::Thread)
    }

    /// No shard is left: sends what is still to be sent, and ends.
    pub fn end(self) {
        drop(self.0);
    }
}

fn over<D: ServerDriver + 'static>(
    parts: SenderParts,
    shards: usize,
    make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
) -> io::Result<(StoreThread, Vec<SenderPort>)> {
    let health = parts.health.clone();
    // The seed only spreads reconnections.
    let make = move |driver, bell| RecordSender::new(driver, parts, shards, &bell, random_u64());
    let failed = "cannot wait for the store server";
    let (thread, ports) = DriverThread::start("record-sender", make_driver, make, failed, &health)?;
    Ok((StoreThread(thread), ports))
}
