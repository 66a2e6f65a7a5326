use super::super::errno::net_error;
use super::super::{ServerDriver, listener};
use super::ring::{Conn, OP_ACCEPT, OP_CANCEL, OP_RECV, OP_SHUTDOWN, UringDriver};
use crate::base::{Accepted, Key, NetError, Socket};
use io_uring::opcode;
use io_uring::types::{Fd, Fixed};
use nix::libc;
use nix::sys::socket::{AddressFamily, Shutdown, SockFlag, SockType, shutdown, socket};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The sockets that listen. They are ordinary descriptors, and so is what they accept, so that a connection can be sent
/// to the ring of another thread.
#[derive(Default)]
pub(super) struct Listeners {
    open: Vec<Listener>,
    /// Completions name a listener by its number, which is not used again.
    next_number: u32,
}

struct Listener {
    key: Key,
    number: u32,
    socket: TcpListener,
}

impl Drop for Listener {
    /// An accept that is open would keep the socket, and with it the address, until it has ended.
    fn drop(&mut self) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

impl Listeners {
    /// An accept completed. `None` when its listener is gone; what was accepted is closed then.
    pub fn accepted(&self, number: Key, result: i32) -> Option<(Key, Result<Box<Accepted>, NetError>)> {
        let accepted = match result {
            // JUSTIFICATION: the kernel hands a descriptor over as a number.
            // SAFETY: this completion is the only place that names it, and it is seen once.
            fd @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            errno => Err(net_error(-errno)),
        };
        let listener = self.open.iter().find(|listener| listener.number as usize == number.index())?;
        let accepted = accepted.and_then(|fd| {
            let stream = TcpStream::from(fd);
            // A peer that is gone already has no address.
            let peer = stream.peer_addr().map_err(|_| NetError::Reset)?;
            Ok(Box::new(Accepted { socket: Socket::Kernel(stream.into()), peer }))
        });
        Some((listener.key, accepted))
    }

    /// Nobody listens any more.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    fn get(&self, key: Key) -> &Listener {
        let found = self.open.iter().find(|listener| listener.key == key);
        found.unwrap_or_else(|| panic!("{key:?} does not name a listener"))
    }
}

/// A socket for a link, before it is connected.
pub(super) fn link_socket(family: i32) -> io::Result<OwnedFd> {
    let family = if family == libc::AF_INET { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    listener::set_link_options(&socket)?;
    Ok(socket)
}

impl ServerDriver for UringDriver {
    fn listen(&mut self, key: Key, addr: SocketAddr) -> io::Result<SocketAddr> {
        let socket = TcpListener::from(listener::open(addr)?);
        // A ring does not wait on a socket that says that it never waits.
        socket.set_nonblocking(false)?;
        let bound = socket.local_addr()?;
        let number = self.listeners.next_number;
        self.listeners.next_number += 1;
        self.listeners.open.push(Listener { key, number, socket });
        Ok(bound)
    }

    fn accept(&mut self, key: Key) {
        let listener = self.listeners.get(key);
        let (fd, null) = (Fd(listener.socket.as_raw_fd()), std::ptr::null_mut());
        let entry = opcode::Accept::new(fd, null, null.cast())
            .flags(libc::SOCK_CLOEXEC)
            .build()
            .user_data(Key::new(listener.number, 0).pack(OP_ACCEPT));
        self.push(&[entry]);
    }

    fn unlisten(&mut self, key: Key) {
        // An accept that was asked for is to find its descriptor; it ends with an error that nobody is told.
        self.syscalls += 1;
        let _ = self.ring.submit();
        self.listeners.open.retain(|listener| listener.key != key);
    }

    fn adopt(&mut self, key: Key, socket: Socket) {
        let Socket::Kernel(fd) = socket else { panic!("a socket of another world") };
        assert!(!self.conns[key.index()].open, "{key:?} is still in use");
        self.conns[key.index()] = Conn::opened(key);
        if self.install(key, Ok(fd)) {
            self.arm_receive(key);
        }
    }

    fn refuse(&mut self, socket: Socket) {
        drop(socket);
    }

    fn pause(&mut self, key: Key) {
        let conn = self.conn_mut(key);
        conn.paused = true;
        if conn.receiving {
            conn.ops += 1;
            let cancel = opcode::AsyncCancel::new(key.pack(OP_RECV)).build();
            self.push(&[cancel.user_data(key.pack(OP_CANCEL))]);
        }
    }

    fn resume(&mut self, key: Key) {
        self.conn_mut(key).paused = false;
        self.rearm.push(key);
    }

    fn finish(&mut self, key: Key) {
        self.conn_mut(key).ops += 1;
        let shutdown = opcode::Shutdown::new(Fixed(key.index() as u32), libc::SHUT_WR).build();
        self.push(&[shutdown.user_data(key.pack(OP_SHUTDOWN))]);
    }
}
