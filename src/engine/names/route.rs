use std::net::{Ipv6Addr, UdpSocket};

/// Whether this machine has a route to the IPv6 internet. Connecting a datagram socket looks one up and sends nothing.
pub(super) fn has_ipv6() -> bool {
    // Any address that is not ours and not set apart for something else.
    let anywhere = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect((anywhere, 53))).is_ok()
}
