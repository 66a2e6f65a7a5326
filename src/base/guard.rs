use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Decides which addresses may be connected to. Everything that is not the public internet is refused unless
/// a network was allowed by name; addresses that embed an IPv4 address are judged by that one too.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    allowed: Vec<IpNet>,
}

/// Why an address or port was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The address lies in a network that is not the public internet.
    Address(IpAddr),
    /// The port is on the Fetch standard's list of bad ports.
    Port(u16),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Address(ip) => {
                write!(f, "{ip} is not a public address (allow its network with --allow-net)")
            }
            Refusal::Port(port) => {
                write!(f, "port {port} is on the list of ports that are never web servers")
            }
        }
    }
}

const REFUSED_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

const REFUSED_V6: [(Ipv6Addr, u8); 9] = [
    (Ipv6Addr::UNSPECIFIED, 128),
    (Ipv6Addr::LOCALHOST, 128),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

impl AddressGuard {
    pub fn new(allowed: Vec<IpNet>) -> AddressGuard {
        AddressGuard { allowed }
    }

    pub fn check(&self, ip: IpAddr, port: u16) -> Result<(), Refusal> {
        if port_is_bad(port) {
            return Err(Refusal::Port(port));
        }
        if is_public(ip) || self.allowed.iter().any(|net| net.contains(&ip)) {
            return Ok(());
        }
        // A mapped address is allowed by the IPv4 network that holds the address inside it.
        if let IpAddr::V6(v6) = ip
            && let Some(v4) = embedded_v4(v6)
            && self.allowed.iter().any(|net| net.contains(&IpAddr::V4(v4)))
        {
            return Ok(());
        }
        Err(Refusal::Address(ip))
    }
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => is_public_v4(v4),
            None => !REFUSED_V6.iter().any(|&(net, bits)| {
                let mask = u128::MAX << (128 - u32::from(bits));
                u128::from(v6) & mask == u128::from(net) & mask
            }),
        },
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    !REFUSED_V4.iter().any(|&(net, bits)| {
        let mask = u32::MAX << (32 - u32::from(bits));
        u32::from(v4) & mask == u32::from(net) & mask
    })
}

/// The IPv4 address inside a mapped (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96`, `64:ff9b:1::/48`) or 6to4
/// (`2002::/16`) address.
fn embedded_v4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = v6.segments();
    let tail = Ipv4Addr::from(u32::from(s[6]) << 16 | u32::from(s[7]));
    match s {
        [0, 0, 0, 0, 0, 0xffff, _, _] => Some(tail),
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0x64, 0xff9b, 1, ..] => Some(tail),
        [0x2002, a, b, ..] => Some(Ipv4Addr::from(u32::from(a) << 16 | u32::from(b))),
        _ => None,
    }
}

/// Ports that browsers refuse as well, in order.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
    515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
    2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

pub fn port_is_bad(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_ports_can_be_searched() {
        assert!(BAD_PORTS.is_sorted());
        assert!(port_is_bad(22) && port_is_bad(6667) && !port_is_bad(80) && !port_is_bad(8080));
    }

    #[test]
    fn private_addresses_are_refused() {
        let guard = AddressGuard::default();
        for ip in [
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "ff02::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "3fff::1",
            "::ffff:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            assert_eq!(guard.check(ip, 80), Err(Refusal::Address(ip)), "{ip}");
        }
    }

    #[test]
    fn public_addresses_and_allowed_networks_pass() {
        let guard = AddressGuard::new(vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        for ip in [
            "1.1.1.1",
            "100.63.255.255",
            "172.32.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "2002:808:808::",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
        ] {
            assert_eq!(guard.check(ip.parse().unwrap(), 80), Ok(()), "{ip}");
        }
        assert_eq!(guard.check("1.1.1.1".parse().unwrap(), 25), Err(Refusal::Port(25)));
        assert!(guard.check("10.0.0.1".parse().unwrap(), 80).is_err());
    }
}
