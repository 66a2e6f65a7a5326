use super::Key;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// What a role asks of the network. Every ask names a connection by a key that the role chose.
#[derive(Debug, PartialEq, Eq)]
pub enum NetAsk {
    /// Open a connection; answered by `Connected` or `Failed`. Receiving starts by itself.
    Connect { conn: Key, addr: SocketAddr, transport: Transport },
    /// Send all of `bytes`, over UDP as one datagram; answered by `Sent` or `Failed`.
    Send { conn: Key, bytes: Vec<u8> },
    /// Close the connection in whatever state it is; answered by `Closed`, after which nothing more comes
    /// under this key and its slot may be used again.
    Close { conn: Key },
}

/// What a connection is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A stream of bytes.
    Tcp,
    /// A stream that stays open for short messages, each wanted at once: what is sent does not wait for more of it, and a
    /// peer that vanished without a notification is detected in the end.
    Link,
    /// A connected UDP socket on a port that the kernel draws at random: it receives from its peer only.
    /// Every `Send` is one datagram, every `Received` is one datagram, which may be empty; it never `Ended`.
    /// A peer without a listener shows, if at all, as `Failed(Refused)` after a send.
    Udp,
}

/// What the network answers.
#[derive(Debug, PartialEq, Eq)]
pub enum NetEvent<'a> {
    Connected,
    /// Everything was handed to the kernel. The buffer comes back for another use.
    Sent(Vec<u8>),
    /// Bytes, lent until the event has been dealt with.
    Received(&'a [u8]),
    /// The peer will send no more.
    Ended,
    /// The connection is of no more use; it must still be closed.
    Failed(NetError),
    /// The last word on a connection.
    Closed,
    /// Of a listener: the connection that was asked for, or why none can be had at the moment.
    Accepted(Result<Box<Accepted>, NetError>),
}

const _: () = assert!(size_of::<NetEvent<'_>>() == 24, "an event is no larger than a buffer that comes back");

/// A connection that came to a listener. It has no key yet: a driver adopts it, on this thread or on another.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    pub socket: Socket,
    pub peer: SocketAddr,
}

/// A connection between two drivers.
#[derive(Debug)]
pub enum Socket {
    Kernel(OwnedFd),
    /// One end of a connection of the simulated network, by number.
    Simulated(u64),
}

impl PartialEq for Socket {
    fn eq(&self, other: &Socket) -> bool {
        match (self, other) {
            (Socket::Kernel(a), Socket::Kernel(b)) => a.as_raw_fd() == b.as_raw_fd(),
            (Socket::Simulated(a), Socket::Simulated(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Socket {}

/// Why the network said no. The errno behind it is read in the driver and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    Refused,
    TimedOut,
    Unreachable,
    Reset,
    /// We are out of descriptors, ports or memory: our own trouble, not the host's.
    Exhausted,
    /// No address of ours will do, or none has a free port.
    NoAddress,
    Other(i32),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetError::Refused => f.write_str("connection refused"),
            NetError::TimedOut => f.write_str("timed out"),
            NetError::Unreachable => f.write_str("unreachable"),
            NetError::Reset => f.write_str("connection reset"),
            NetError::NoAddress => f.write_str("no address of ours with a free port"),
            NetError::Exhausted => f.write_str("out of descriptors, ports or memory"),
            NetError::Other(errno) => write!(f, "errno {errno}"),
        }
    }
}
