//! What the kernel is asked for once, when a listener or a link is made.

use mio::net::TcpListener;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// A socket that listens. Connections that come to it inherit its options.
pub(super) fn open(addr: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addr)?;
    set_link_options(&listener)?;
    Ok(listener)
}

pub(super) fn set_link_options(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, sockopt::TcpNoDelay, &true)?;
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    Ok(())
}
