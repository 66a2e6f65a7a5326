//! The thread that answers for the farm's names, on a UDP port of 127.0.0.1.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::socket::{setsockopt, sockopt};

use super::farm::FarmError;
use super::farm_stats::Counters;
use super::names::FarmNames;

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);
/// No question is longer; the rest of a datagram that is gets lost, and with it its sense.
const QUESTION_BYTES_MAX: usize = 2_048;
/// Questions that may wait: a crawl asks for thousands of names at once when it starts.
const WAITING_BYTES: usize = 4 << 20;
/// Questions in a row before it is looked whether to stop.
const QUESTIONS_PER_TURN: usize = 1_024;

pub(super) struct NameServer {
    poll: Poll,
    socket: UdpSocket,
    names: FarmNames,
    counters: Arc<[Counters]>,
    /// The place of this thread's among them.
    thread: usize,
    stop: Arc<AtomicBool>,
}

impl NameServer {
    /// Takes a port; 0 is any that is free. The waker makes it look at `stop`.
    pub(super) fn new(
        port: u16,
        names: FarmNames,
        counters: Arc<[Counters]>,
        thread: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<(NameServer, Waker, SocketAddr), FarmError> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => FarmError::AddressInUse { port },
            io::ErrorKind::PermissionDenied => FarmError::PortDenied { port },
            _ => FarmError::Start(error),
        };
        let mut socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port).into()).map_err(refused)?;
        // As far as the administrator allows; with less room, who asks too much at once asks again.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &WAITING_BYTES);
        let addr = socket.local_addr().map_err(FarmError::Start)?;
        let poll = Poll::new().map_err(FarmError::Start)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(FarmError::Start)?;
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE).map_err(FarmError::Start)?;
        Ok((NameServer { poll, socket, names, counters, thread, stop }, waker, addr))
    }

    /// Serves until told to stop.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(2);
        let mut datagram = vec![0; QUESTION_BYTES_MAX];
        let mut more = false;
        while !self.stop.load(Ordering::Acquire) {
            let timeout = more.then_some(std::time::Duration::ZERO);
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("the farm's own epoll descriptor fails: {error}"),
            }
            more = self.turn(&mut datagram);
        }
    }

    /// Answers what waits. Says whether there may be more.
    fn turn(&mut self, datagram: &mut [u8]) -> bool {
        for _ in 0..QUESTIONS_PER_TURN {
            match self.socket.recv_from(datagram) {
                Ok((bytes, peer)) => {
                    if let Some(answer) = self.names.answer(&datagram[..bytes]) {
                        self.counters[self.thread].names_asked.add(1);
                        // Whoever does not get it asks again.
                        let _ = self.socket.send_to(&answer, peer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // A signal, or an earlier answer that found nobody.
                Err(_) => {}
            }
        }
        true
    }
}
