//! Listening sockets: every address of 127.0.0.0/8, one socket per thread, no peer from elsewhere.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, setsockopt, socket,
    sockopt,
};

use super::farm::FarmError;

/// One listener per thread on the same port, among which the kernel spreads connections.
pub(super) fn bind_all(port: u16, threads: u16) -> Result<Vec<TcpListener>, FarmError> {
    // Listeners that share their port would also share it with another farm. One that does not share finds
    // out whether there is another, and it finds a free port if none was asked for.
    let alone = bind_one(port, false)?;
    if threads == 1 {
        return Ok(vec![alone]);
    }
    let port = alone.local_addr().map_err(FarmError::Start)?.port();
    drop(alone);
    (0..threads).map(|_| bind_one(port, true)).collect()
}

/// Holds a port without a listener, as long as the socket is kept.
pub(super) fn bind_deaf() -> Result<(OwnedFd, u16), FarmError> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(FarmError::Listen)?;
    bind(fd.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, 0)).map_err(FarmError::Listen)?;
    let port = getsockname::<SockaddrIn>(fd.as_raw_fd()).map_err(FarmError::Listen)?.port();
    Ok((fd, port))
}

/// Listens on every address of 127.0.0.0/8.
fn bind_one(port: u16, share: bool) -> Result<TcpListener, FarmError> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(FarmError::Listen)?;
    setsockopt(&fd, sockopt::ReuseAddr, &true).map_err(FarmError::Listen)?;
    setsockopt(&fd, sockopt::ReusePort, &share).map_err(FarmError::Listen)?;
    // Accepted connections inherit it. An answer goes out in one write, and its last segment should not wait
    // for an ACK.
    setsockopt(&fd, sockopt::TcpNoDelay, &true).map_err(FarmError::Listen)?;
    match setsockopt(&fd, sockopt::BindToDevice, &OsString::from("lo")) {
        Ok(()) => {}
        // Not ours to tie, or a loopback device of another name: workers turn away peers from elsewhere.
        Err(Errno::EPERM | Errno::ENODEV) => {}
        Err(errno) => return Err(FarmError::Listen(errno)),
    }
    let refused = |errno| match errno {
        Errno::EADDRINUSE => FarmError::AddressInUse { port },
        Errno::EACCES => FarmError::PortDenied { port },
        errno => FarmError::Listen(errno),
    };
    bind(fd.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port)).map_err(refused)?;
    // As long a backlog as net.core.somaxconn allows.
    listen(&fd, Backlog::MAXALLOWABLE).map_err(refused)?;
    Ok(TcpListener::from(fd))
}
