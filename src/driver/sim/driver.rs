use super::super::{Bell, Driver, ServerDriver};
use super::clock::SimClock;
use super::net::{Kind, SimNet};
use crate::base::{Key, NetEvent, Now, Socket, Transport};
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// One shard's view of the simulated network.
pub struct SimDriver {
    net: Rc<RefCell<SimNet>>,
    id: usize,
    conns_max: usize,
    clock: SimClock,
    /// The bytes behind the last `Received`.
    lent: Vec<u8>,
}

struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

impl SimDriver {
    pub fn new(net: Rc<RefCell<SimNet>>, id: usize, conns_max: usize) -> SimDriver {
        SimDriver { net, id, conns_max, clock: SimClock::TRUE, lent: Vec::new() }
    }

    /// On a machine whose clock has a rate of its own.
    pub fn with_clock(self, clock: SimClock) -> SimDriver {
        SimDriver { clock, ..self }
    }
}

impl Driver for SimDriver {
    fn now(&self) -> Now {
        self.clock.shows(self.net.borrow().now())
    }

    fn connect(&mut self, conn: Key, addr: SocketAddr, transport: Transport) {
        assert!(conn.index() < self.conns_max, "a key beyond the driver's table");
        self.net.borrow_mut().connect(self.id, conn, addr, transport);
    }

    fn send(&mut self, conn: Key, bytes: Vec<u8>) {
        self.net.borrow_mut().send(self.id, conn, bytes);
    }

    fn close(&mut self, conn: Key) {
        self.net.borrow_mut().close(self.id, conn);
    }

    /// Does not wait: whoever runs the simulation lets time pass.
    fn wait(&mut self, _until: Option<Now>, _busy: usize) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        let event = self.net.borrow_mut().arrived(self.id)?;
        let told = match event.kind {
            Kind::Connected => NetEvent::Connected,
            Kind::Sent(buffer) => NetEvent::Sent(buffer),
            Kind::Ended => NetEvent::Ended,
            Kind::Failed(error) => NetEvent::Failed(error),
            Kind::Closed => NetEvent::Closed,
            Kind::Accepted(accepted) => NetEvent::Accepted(Ok(accepted)),
            Kind::Bytes(bytes) => {
                self.lent = bytes;
                NetEvent::Received(&self.lent)
            }
        };
        Some((event.key, told))
    }

    fn bell(&self) -> Arc<dyn Bell> {
        Arc::new(NoBell)
    }

    fn conns_max(&self) -> usize {
        self.conns_max
    }

    fn syscalls(&self) -> u64 {
        0
    }
}

impl ServerDriver for SimDriver {
    fn listen(&mut self, listener: Key, addr: SocketAddr) -> io::Result<SocketAddr> {
        self.net.borrow_mut().listen(self.id, listener, addr)
    }

    fn accept(&mut self, listener: Key) {
        self.net.borrow_mut().accept(self.id, listener);
    }

    fn unlisten(&mut self, listener: Key) {
        self.net.borrow_mut().unlisten(self.id, listener);
    }

    fn adopt(&mut self, conn: Key, socket: Socket) {
        assert!(conn.index() < self.conns_max, "a key beyond the driver's table");
        self.net.borrow_mut().adopt(self.id, conn, &socket);
    }

    fn refuse(&mut self, socket: Socket) {
        self.net.borrow_mut().refuse(&socket);
    }

    fn pause(&mut self, conn: Key) {
        self.net.borrow_mut().set_paused(self.id, conn, true);
    }

    fn resume(&mut self, conn: Key) {
        self.net.borrow_mut().set_paused(self.id, conn, false);
    }

    fn finish(&mut self, conn: Key) {
        self.net.borrow_mut().finish(self.id, conn);
    }
}
