use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Whether the kernel knows a way to an address. Connecting a datagram socket looks one up and sends nothing; a machine that
/// has no socket to ask with tells nothing.
pub(in crate::driver) fn has_way(ip: IpAddr) -> bool {
    let from: SocketAddr = match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    match UdpSocket::bind(from) {
        Ok(socket) => socket.connect((ip, 9)).is_ok(),
        // Without addresses of that kind there is no way.
        Err(_) => ip.is_ipv4(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_way_to_this_machine() {
        assert!(has_way(Ipv4Addr::LOCALHOST.into()));
        assert!(!has_way(Ipv4Addr::BROADCAST.into()), "the kernel refuses it");
    }
}
