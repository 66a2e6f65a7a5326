use crate::base::{Accepted, Key, NetError, NetEvent, Now};
use crate::driver::ServerDriver;
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::notices::Notices;
use crate::rings::{Doorbell, Sender};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lets spiders in, up to a bound, and deals each to the worker that has the fewest.
pub(crate) struct Acceptor<D: ServerDriver> {
    driver: D,
    workers: Vec<WorkerPort>,
    connections_max: usize,
    notices: Notices,
    /// No connection is asked for before then.
    pause_until: Option<Now>,
    is_full_told: bool,
    is_failing_told: bool,
    is_ending: bool,
}

/// The way to one worker.
#[derive(Clone)]
pub(crate) struct WorkerPort {
    /// Has room for as many as may be open.
    pub accepted: Sender<Box<Accepted>>,
    /// Connections that were dealt to it and are not gone.
    pub open: Arc<AtomicUsize>,
    pub bell: Arc<Doorbell>,
}

const LISTENER: Key = Key::new(0, 0);
/// Without descriptors it tries again after this.
const PAUSE_US: u64 = 20_000;

impl<D: ServerDriver> Acceptor<D> {
    /// Listens; the address is the one that others can dial from here on. They wait until it is turned.
    pub fn new(
        mut driver: D,
        listen: SocketAddr,
        workers: Vec<WorkerPort>,
        connections_max: usize,
        notices: Notices,
    ) -> io::Result<(Acceptor<D>, SocketAddr)> {
        let bound = driver.listen(LISTENER, listen)?;
        let acceptor = Acceptor {
            driver,
            workers,
            connections_max,
            notices,
            pause_until: Some(Now::ZERO),
            is_full_told: false,
            is_failing_told: false,
            is_ending: false,
        };
        Ok((acceptor, bound))
    }

    fn admit(&mut self, accepted: Box<Accepted>) {
        let open: usize = self.workers.iter().map(|port| port.open.load(Ordering::Relaxed)).sum();
        let fewest = self.workers.iter().min_by_key(|port| port.open.load(Ordering::Relaxed));
        let Some(port) = fewest.filter(|_| open < self.connections_max) else {
            let peer = accepted.peer;
            if !std::mem::replace(&mut self.is_full_told, true) {
                let fields = vec![("connections", open.into()), ("peer", peer.into())];
                let text =
                    format!("storeserver: all {open} connections are in use: {peer} and others are refused");
                self.notices.tell(Event::StoreFull, fields, text);
            }
            self.driver.refuse(accepted.socket);
            return;
        };
        self.is_full_told = false;
        port.open.fetch_add(1, Ordering::Relaxed);
        assert!(port.accepted.push(accepted).is_ok(), "there is room for all that may be open");
        port.bell.ring_if_asleep();
    }

    fn tell_failing(&mut self, error: NetError) {
        if !std::mem::replace(&mut self.is_failing_told, true) {
            let text = format!("storeserver: cannot accept connections: {error} (raise ulimit -n?)");
            let fields = vec![("cause", error.to_string().into())];
            self.notices.tell(Event::StoreCannotAccept, fields, text);
        }
    }
}

impl<D: ServerDriver> Actor for Acceptor<D> {
    /// Lets in who waits.
    fn turn(&mut self, now: Now) -> Turned {
        if self.pause_until.is_some_and(|until| until <= now) {
            self.pause_until = None;
            self.driver.accept(LISTENER);
        }
        while !self.is_ending
            && let Some((_, event)) = self.driver.next()
        {
            let NetEvent::Accepted(came) = event else { unreachable!("it has no connections of its own") };
            match came {
                Ok(accepted) => {
                    self.is_failing_told = false;
                    self.admit(accepted);
                    self.driver.accept(LISTENER);
                }
                Err(error) => {
                    // The peer may have left while it waited: the next may do better.
                    if error != NetError::Reset {
                        self.tell_failing(error);
                    }
                    self.pause_until = Some(now.plus_us(PAUSE_US));
                }
            }
        }
        Turned::finished_if(self.is_ending)
    }

    fn next_due(&self) -> Option<Now> {
        self.pause_until
    }

    fn has_messages(&self) -> bool {
        false
    }

    /// From here on nobody can dial.
    fn end(&mut self, _now: Now) {
        self.is_ending = true;
        self.pause_until = None;
        self.driver.unlisten(LISTENER);
    }
}

impl<D: ServerDriver> Networked for Acceptor<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}
