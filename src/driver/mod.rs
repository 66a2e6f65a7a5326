//! The one boundary to the kernel: a trait, and three drivers behind it.
//!
//! ```text
//!   NetAsk ──► connect · send · close ──► kernel (or the simulated network)
//!                                             │
//!   NetEvent ◄── next ◄── wait: submit what was asked, reap a batch, ring on doorbells
//! ```
//!
//! Processes that others connect to use a [`ServerDriver`], which all three are:
//!
//! ```text
//!   listen ──► accept ──► Accepted(socket) ──► adopt: a connection like any other, under a key of the client's choice
//!                                └──► or sent to another thread, whose driver adopts it; or refuse
//! ```
//!
//! A driver belongs to one thread. It never calls back: [`Driver::wait`] collects a batch of completions,
//! [`Driver::next`] hands them out one by one and takes each lent buffer back on the following call.
//!
//! | driver  | what it is                                                                              |
//! |---------|-----------------------------------------------------------------------------------------|
//! | `uring` | the product: raw io_uring, provided buffers, multishot receive, direct descriptors      |
//! | `epoll` | mio, for kernels and containers where io_uring is switched off                          |
//! | `sim`   | a seeded network and clock in virtual time, for whole nodes on one thread               |

mod epoll;
mod errno;
mod listener;
mod route;
mod sim;
#[cfg(test)]
mod tests;
mod uring;

pub use epoll::EpollDriver;
#[cfg(test)]
pub(crate) use sim::NoWeb;
pub(crate) use sim::{ConnectFate, Reaction, SimClock, SimDriver, SimNet, SimWeb, Then};
pub use uring::UringDriver;

use crate::base::{Key, NetAsk, NetEvent, Now, Socket, Transport};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A completion-shaped network. Keys in, events out.
pub trait Driver {
    /// Reads the clock. The loop does so once a turn and hands the time down.
    fn now(&self) -> Now;

    /// Whether there is a way to an address at all, as far as this machine knows. Nothing is sent.
    fn has_way(&self, _: IpAddr) -> bool {
        true
    }

    /// Opens a connection under a key whose slot is free. Receiving starts with `Connected`.
    fn connect(&mut self, conn: Key, addr: SocketAddr, transport: Transport);

    /// Sends all of `bytes`; one send at a time per connection.
    fn send(&mut self, conn: Key, bytes: Vec<u8>);

    /// Lets go. `Closed` follows when the kernel has nothing more to say about this key.
    fn close(&mut self, conn: Key);

    /// Does what a role asks.
    fn ask(&mut self, ask: NetAsk) {
        match ask {
            NetAsk::Connect { conn, addr, transport } => self.connect(conn, addr, transport),
            NetAsk::Send { conn, bytes } => self.send(conn, bytes),
            NetAsk::Close { conn } => self.close(conn),
        }
    }

    /// Hands what was asked to the kernel, then waits until something completes, the bell rings or `until` has
    /// come. `busy` is how many completions are likely soon: with many of them it pays to wait for a few.
    fn wait(&mut self, until: Option<Now>, busy: usize) -> io::Result<()>;

    /// The next completion of the batch. A lent buffer goes back with the next call.
    fn next(&mut self) -> Option<(Key, NetEvent<'_>)>;

    /// Wakes `wait` from another thread.
    fn bell(&self) -> Arc<dyn Bell>;

    /// How many connections can be open at once; keys must have an index below this.
    fn conns_max(&self) -> usize;

    /// System calls made so far, for the benches.
    fn syscalls(&self) -> u64;
}

/// A driver that can be connected to, and whose connections hold their peers back.
///
/// Slots stay the client's: a connection that comes has no key until the client adopts it under a key of a slot that is
/// free, so that no slot is used again while the kernel may still complete on it.
pub trait ServerDriver: Driver {
    /// Listens; port 0 takes a free one. Returns the address that peers may connect to. Listeners have keys of their own,
    /// apart from those of connections.
    fn listen(&mut self, listener: Key, addr: SocketAddr) -> io::Result<SocketAddr>;

    /// Asks for the next connection that comes; `Accepted` follows, once. One at a time per listener. Without it peers wait
    /// in the kernel.
    fn accept(&mut self, listener: Key);

    /// Lets no more connections in, from now on. Nothing more is told of the listener.
    fn unlisten(&mut self, listener: Key);

    /// Takes an accepted connection in under a key whose slot is free. From then on it is as one that was `Connected`: it
    /// receives.
    fn adopt(&mut self, conn: Key, socket: Socket);

    /// Closes an accepted connection that is not adopted.
    fn refuse(&mut self, socket: Socket);

    /// Receives no more until `resume`, so that the peer has to wait in the end. What the driver has received already is
    /// still told.
    fn pause(&mut self, conn: Key);

    /// Receives again.
    fn resume(&mut self, conn: Key);

    /// Ends our side of a stream: behind all that was `Sent` the peer sees the end. Not while a send is open.
    fn finish(&mut self, conn: Key);
}

/// The part of a driver that other threads may touch.
pub trait Bell: Send + Sync {
    fn ring(&self);
}
