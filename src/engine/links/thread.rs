use super::links::{Links, LinksConfig};
use super::port::LinkPort;
use crate::base::random_u64;
use crate::driver::{EpollDriver, ServerDriver, UringDriver};
use crate::engine::runtime::driver_thread::DriverThread;
use crate::engine::runtime::health::{Health, NodeError};
use crate::rings::Doorbell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// The thread that turns [`Links`]. It ends by `end`, or when this goes away.
pub struct LinksThread(DriverThread);

impl LinksThread {
    /// Starts the thread over a driver of its own, of the kind that the process has chosen. `owner` is rung when there are
    /// events; the address is that of the listener.
    pub fn start(
        config: LinksConfig,
        driver: &str,
        started: Instant,
        owner: Arc<Doorbell>,
        health: &Health,
    ) -> Result<(LinkPort, LinksThread, Option<SocketAddr>), NodeError> {
        let (links_max, listen) = (config.links_max, config.listen);
        let started = match driver {
            "uring" => over(config, move || UringDriver::new(links_max, started), owner, health),
            _ => over(config, move || EpollDriver::new(links_max, started), owner, health),
        };
        started.map_err(|cause| match listen {
            Some(addr) => NodeError::Listen { addr, cause },
            None => NodeError::Thread(cause),
        })
    }

    /// Sends what is still to be sent, closes every link and ends the thread; it takes a second at most.
    pub fn end(self) {
        drop(self.0);
    }
}

fn over<D: ServerDriver + 'static>(
    config: LinksConfig,
    make_driver: impl FnOnce() -> io::Result<D> + Send + 'static,
    owner: Arc<Doorbell>,
    health: &Health,
) -> io::Result<(LinkPort, LinksThread, Option<SocketAddr>)> {
    let make_links = {
        let notices = health.notices().clone();
        move |driver, bell| {
            // It only spreads reconnections.
            let seed = random_u64();
            let (links, port, bound) = Links::new(driver, config, (bell, owner), notices, seed)?;
            Ok((links, (port, bound)))
        }
    };
    let (thread, (port, bound)) =
        DriverThread::start("links", make_driver, make_links, "links: cannot wait for peers", health)?;
    Ok((port, LinksThread(thread), bound))
}
