//! Errno, read arm by arm, and nowhere else.

use crate::base::NetError;
use nix::libc;

pub(super) fn net_error(errno: i32) -> NetError {
    match errno {
        // Nobody listens, or a firewall answers for them.
        libc::ECONNREFUSED => NetError::Refused,
        // The kernel gave up on retransmitting.
        libc::ETIMEDOUT => NetError::TimedOut,
        // No route to the host or network, or a local policy forbids it (EACCES and EPERM come from filters).
        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EPERM => NetError::Unreachable,
        // For IPv4 all ports are taken; for IPv6 it is also said where the machine has no address of that kind.
        libc::EADDRNOTAVAIL => NetError::NoAddress,
        // The peer reset, or closed while we were sending.
        libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => NetError::Reset,
        // Descriptors (own and the system's), socket memory, ephemeral ports.
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN | libc::EADDRINUSE => {
            NetError::Exhausted
        }
        other => NetError::Other(other),
    }
}
