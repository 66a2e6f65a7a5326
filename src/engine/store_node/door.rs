use super::worker::Newcomer;
use crate::rings::{Doorbell, Sender};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Lets spiders in, up to a bound, and deals each to the worker that has the fewest.
pub(super) struct Door {
    poll: Poll,
    listener: TcpListener,
    workers: Vec<WorkerDoor>,
    connections_max: usize,
    stop: Arc<AtomicBool>,
    said_full: bool,
    said_failing: bool,
}

/// The way to one worker.
#[derive(Clone)]
pub(super) struct WorkerDoor {
    pub newcomers: Sender<Newcomer>,
    /// Connections that were dealt to it and are not gone.
    pub open: Arc<AtomicUsize>,
    pub bell: Arc<Doorbell>,
}

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);

/// Without descriptors, or with a worker that has no room, it looks again after this.
const STUCK_PAUSE: Duration = Duration::from_millis(20);

impl Door {
    /// A listener that others can dial from here on, and what wakes the thread that will `run` it.
    pub fn open(listen: SocketAddr) -> io::Result<(TcpListener, Poll, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut listener = TcpListener::bind(listen)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok((listener, poll, waker))
    }

    pub fn new(
        listener: TcpListener,
        poll: Poll,
        workers: Vec<WorkerDoor>,
        connections_max: usize,
        stop: Arc<AtomicBool>,
    ) -> Door {
        Door { poll, listener, workers, connections_max, stop, said_full: false, said_failing: false }
    }

    /// Until the node stops; then nobody can dial.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(8);
        while !self.stop.load(Ordering::Acquire) {
            let timeout = if self.accept() { None } else { Some(STUCK_PAUSE) };
            match self.poll.poll(&mut events, timeout) {
                Err(e) if e.kind() != ErrorKind::Interrupted => {
                    eprintln!("storeserver: cannot poll: {e}");
                    return;
                }
                _ => {}
            }
        }
    }

    /// Lets in whoever waits. False if it is to be tried again soon.
    fn accept(&mut self) -> bool {
        loop {
            if self.stop.load(Ordering::Acquire) {
                return true;
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    let open: usize = self.workers.iter().map(|door| door.open.load(Ordering::Relaxed)).sum();
                    if open >= self.connections_max {
                        if !std::mem::replace(&mut self.said_full, true) {
                            eprintln!("storeserver: {open} connections stand, {peer} and others are refused");
                        }
                        continue;
                    }
                    self.said_full = false;
                    // Counts are short and wanted at once; a peer that is gone without a word is found out some day.
                    let _ = stream.set_nodelay(true);
                    let _ = setsockopt(&stream, sockopt::KeepAlive, &true);
                    self.deal(Newcomer { stream, peer });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.said_failing = false;
                    return true;
                }
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(e) => {
                    if !std::mem::replace(&mut self.said_failing, true) {
                        eprintln!("storeserver: cannot accept connections: {e} (raise ulimit -n?)");
                    }
                    return false;
                }
            }
        }
    }

    fn deal(&self, mut newcomer: Newcomer) {
        let Some(door) = self.workers.iter().min_by_key(|door| door.open.load(Ordering::Relaxed)) else {
            return;
        };
        door.open.fetch_add(1, Ordering::Relaxed);
        while let Err(back) = door.newcomers.push(newcomer) {
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            newcomer = back;
            door.bell.ring_if_asleep();
            std::thread::sleep(STUCK_PAUSE);
        }
        door.bell.ring_if_asleep();
    }
}
