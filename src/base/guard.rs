use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Decides which addresses may be connected to. Everything that is not the public internet is refused unless
/// a network was allowed by name.
///
/// Of IPv4 the public internet is what stands in no special-purpose registry of IANA's (RFC 6890) and is no multicast; of
/// IPv6 it is 2000::/3 without what stands in such a registry. What the registries call globally reachable is refused all
/// the same: those are relays, anycast services and identifiers, and no web server is there.
///
/// An address with an IPv4 address inside it:
///
/// | prefix             | judged                                                                                    |
/// |--------------------|-------------------------------------------------------------------------------------------|
/// | `::ffff:0:0/96`    | is the IPv4 address, here and everywhere: [`canonical`] comes first                       |
/// | `64:ff9b::/96`     | by the IPv4 address: a gateway makes it that one (RFC 6052)                               |
/// | `2002::/16`        | by the IPv4 address: a relay sends it there (6to4)                                        |
/// | `::/96`            | refused, whatever is inside: deprecated, and routed only where it leads into a tunnel      |
/// | `64:ff9b:1::/48`   | refused: a gateway's own (RFC 8215), where the IPv4 address stands is its own affair       |
/// | `2001::/32`        | refused with all of `2001::/23`: the other end of a Teredo tunnel is somebody's private network |
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    allowed: Vec<IpNet>,
}

/// Why an address or port was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The address lies in a network that is not the public internet: this one.
    Address { ip: IpAddr, net: IpNet },
    /// The port is on the Fetch standard's list of bad ports.
    Port(u16),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Address { ip, net } => {
                write!(f, "{ip} is not a public address: allow it with --allow-net {net}")
            }
            Refusal::Port(port) => {
                write!(f, "port {port} is on the list of ports that are never web servers")
            }
        }
    }
}

/// The one way to write an address: an IPv4-mapped IPv6 address is the IPv4 address in it. Whatever comes in from outside
/// comes through here, so that an address is one key, with one budget.
pub(crate) fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// The same for a network: one of IPv4-mapped addresses is the IPv4 network.
fn canonical_net(net: IpNet) -> IpNet {
    match (net, net.network().to_canonical()) {
        (IpNet::V6(_), ip @ IpAddr::V4(_)) if net.prefix_len() >= 96 => {
            IpNet::new_assert(ip, net.prefix_len() - 96)
        }
        _ => net,
    }
}

const REFUSED_V4: [IpNet; 18] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 31, 196, 0], 24),
    v4([192, 52, 193, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([192, 175, 48, 0], 24),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// Of 2000::/3, but for 2002::/16.
const REFUSED_V6: [IpNet; 4] = [
    v6([0x2001, 0, 0], 23),
    v6([0x2001, 0xdb8, 0], 32),
    v6([0x2620, 0x4f, 0x8000], 48),
    v6([0x3fff, 0, 0], 20),
];

/// Networks outside 2000::/3 that have a name; an address of none of them is allowed by itself.
const NAMED_V6: [IpNet; 10] = [
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    v6([0, 0, 0], 96),
    v6([0x64, 0xff9b, 1], 48),
    v6([0x100, 0, 0], 64),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 1, 0, 0, 0, 0)), 64),
    v6([0x5f00, 0, 0], 16),
    v6([0xfc00, 0, 0], 7),
    v6([0xfe80, 0, 0], 10),
    v6([0xfec0, 0, 0], 10),
    v6([0xff00, 0, 0], 8),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

/// By the first of its eight words.
const fn v6([a, b, c]: [u16; 3], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), bits)
}

impl AddressGuard {
    pub fn new(allowed: Vec<IpNet>) -> AddressGuard {
        AddressGuard { allowed: allowed.into_iter().map(canonical_net).collect() }
    }

    pub fn check(&self, ip: IpAddr, port: u16) -> Result<(), Refusal> {
        if port_is_bad(port) {
            return Err(Refusal::Port(port));
        }
        let ip = canonical(ip);
        let Some(net) = refused_in(ip) else { return Ok(()) };
        // One that is judged by the IPv4 address inside it is allowed by a network of that, too.
        let inside = embedded_v4(ip).map(IpAddr::V4);
        let holds = |allowed: &IpNet| allowed.contains(&ip) || inside.is_some_and(|v4| allowed.contains(&v4));
        match self.allowed.iter().any(holds) {
            true => Ok(()),
            false => Err(Refusal::Address { ip, net }),
        }
    }
}

/// The network for which an address is refused, unless it is of the public internet.
fn refused_in(ip: IpAddr) -> Option<IpNet> {
    let one_of = |nets: &[IpNet], ip: IpAddr| nets.iter().find(|net| net.contains(&ip)).copied();
    match (ip, embedded_v4(ip)) {
        (IpAddr::V4(v4), _) | (_, Some(v4)) => one_of(&REFUSED_V4, IpAddr::V4(v4)),
        (IpAddr::V6(v6), None) if v6.segments()[0] >> 13 == 1 => one_of(&REFUSED_V6, ip),
        _ => one_of(&NAMED_V6, ip).or(Some(IpNet::from(ip))),
    }
}

/// The IPv4 address by which a NAT64 (`64:ff9b::/96`) or 6to4 (`2002::/16`) address is judged.
fn embedded_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = ip else { return None };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(Ipv4Addr::from(u32::from(a) << 16 | u32::from(b)))
        }
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
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn the_list_of_ports_can_be_searched() {
        assert!(BAD_PORTS.is_sorted());
        assert!(port_is_bad(22) && port_is_bad(6667) && !port_is_bad(80) && !port_is_bad(8080));
    }

    /// An address and the network it is refused for, of every row of the registries and what lies beside it.
    #[test]
    fn what_is_not_the_public_internet_is_refused() {
        let guard = AddressGuard::default();
        for (ip, net) in [
            ("0.1.2.3", "0.0.0.0/8"),
            ("10.0.0.1", "10.0.0.0/8"),
            ("100.64.0.1", "100.64.0.0/10"),
            ("100.127.255.255", "100.64.0.0/10"),
            ("127.0.0.1", "127.0.0.0/8"),
            ("169.254.169.254", "169.254.0.0/16"),
            ("172.16.0.1", "172.16.0.0/12"),
            ("172.31.255.255", "172.16.0.0/12"),
            ("192.0.0.8", "192.0.0.0/24"),
            ("192.0.0.170", "192.0.0.0/24"),
            ("192.0.2.1", "192.0.2.0/24"),
            ("192.31.196.1", "192.31.196.0/24"),
            ("192.52.193.1", "192.52.193.0/24"),
            ("192.88.99.1", "192.88.99.0/24"),
            ("192.168.1.1", "192.168.0.0/16"),
            ("192.175.48.6", "192.175.48.0/24"),
            ("198.18.0.1", "198.18.0.0/15"),
            ("198.19.255.255", "198.18.0.0/15"),
            ("198.51.100.7", "198.51.100.0/24"),
            ("203.0.113.9", "203.0.113.0/24"),
            ("224.0.0.1", "224.0.0.0/4"),
            ("240.0.0.1", "240.0.0.0/4"),
            ("255.255.255.255", "240.0.0.0/4"),
            ("::", "::/96"),
            ("::1", "::1/128"),
            ("::8.8.8.8", "::/96"),
            ("::127.0.0.1", "::/96"),
            ("::1:0:0:1", "::1:0:0:1/128"),
            ("::ffff:0:8.8.8.8", "::ffff:0:808:808/128"),
            ("64:ff9b:1::8.8.8.8", "64:ff9b:1::/48"),
            ("64:ff9b:0:1::8.8.8.8", "64:ff9b:0:1::808:808/128"),
            ("100::1", "100::/64"),
            ("100:0:0:1::1", "100:0:0:1::/64"),
            ("1fff:ffff::1", "1fff:ffff::1/128"),
            ("4000::1", "4000::1/128"),
            ("5f00::1", "5f00::/16"),
            ("fc00::1", "fc00::/7"),
            ("fdff::1", "fc00::/7"),
            ("fe80::1", "fe80::/10"),
            ("fec0::1", "fec0::/10"),
            ("ff02::1", "ff00::/8"),
            ("2001::1", "2001::/23"),
            ("2001:2::1", "2001::/23"),
            ("2001:20::1", "2001::/23"),
            ("2001:1ff::1", "2001::/23"),
            ("2001:db8::1", "2001:db8::/32"),
            ("2620:4f:8000::1", "2620:4f:8000::/48"),
            ("3fff::1", "3fff::/20"),
            ("3fff:fff::1", "3fff::/20"),
            ("64:ff9b::10.0.0.1", "10.0.0.0/8"),
            ("2002:7f00:1::", "127.0.0.0/8"),
            ("2002:c0a8:1::1", "192.168.0.0/16"),
        ] {
            let (ip, net): (IpAddr, IpNet) = (ip.parse().unwrap(), net.parse().unwrap());
            assert_eq!(guard.check(ip, 80), Err(Refusal::Address { ip, net }), "{ip}");
            // The network that is named is the mend.
            assert_eq!(AddressGuard::new(vec![net]).check(ip, 80), Ok(()), "{ip} with {net}");
        }
        let mapped = guard.check("::ffff:127.0.0.1".parse().unwrap(), 80).unwrap_err();
        assert_eq!(
            mapped.to_string(),
            "127.0.0.1 is not a public address: allow it with --allow-net 127.0.0.0/8"
        );
    }

    #[test]
    fn public_addresses_and_allowed_networks_pass() {
        let nets = ["127.0.0.0/8", "::1/128", "::ffff:10.1.0.0/112"];
        let guard = AddressGuard::new(nets.map(|net| net.parse().unwrap()).to_vec());
        for ip in [
            "1.1.1.1",
            "100.63.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2000::1",
            "2606:4700::1111",
            "2001:200::1",
            "2001:db9::1",
            "2003::1",
            "3ffe::1",
            "3fff:1000::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "10.1.2.3",
            "::ffff:10.1.2.3",
        ] {
            assert_eq!(guard.check(ip.parse().unwrap(), 80), Ok(()), "{ip}");
        }
        assert_eq!(guard.check("1.1.1.1".parse().unwrap(), 25), Err(Refusal::Port(25)));
        for ip in ["10.0.0.1", "::127.0.0.1", "::2"] {
            assert!(guard.check(ip.parse().unwrap(), 80).is_err(), "{ip}");
        }
    }

    proptest! {
        /// Nothing outside 2000::/3 passes, but for what is IPv4; what is IPv4 is judged as that; and what is refused is
        /// refused for a network that holds it, or what is inside it.
        #[test]
        fn only_2000_3_and_public_ipv4_pass(bits in any::<u128>(), top in any::<u16>(), v4 in any::<u32>()) {
            let guard = AddressGuard::default();
            let tops = [0, 0x64, 0x100, 0x2001, 0x2002, 0x2620, 0x3fff, 0x5f00, 0xfe80, 0xfec0, top];
            for top in tops {
                let v6 = Ipv6Addr::from_bits(bits >> 16 | u128::from(top) << 112);
                let (ip, v4_inside) = (IpAddr::V6(v6), embedded_v4(IpAddr::V6(v6)));
                match guard.check(ip, 80) {
                    Ok(()) => prop_assert!(
                        v6.segments()[0] >> 13 == 1 || v6.to_ipv4_mapped().is_some() || v4_inside.is_some(), "{}", v6
                    ),
                    Err(Refusal::Address { ip: refused, net }) => prop_assert!(
                        net.contains(&refused) || v4_inside.is_some_and(|v4| net.contains(&IpAddr::V4(v4))), "{}", v6
                    ),
                    Err(refusal) => prop_assert!(false, "{}", refusal),
                }
            }
            let v4 = Ipv4Addr::from_bits(v4);
            let [a, b, c, d] = v4.octets();
            let passes = |ip: IpAddr| guard.check(ip, 80).is_ok();
            let words = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, words[0], words[1]);
            let six_to_four = Ipv6Addr::new(0x2002, words[0], words[1], top, 0, 0, 0, 1);
            for v6 in [v4.to_ipv6_mapped(), nat64, six_to_four] {
                prop_assert_eq!(passes(v6.into()), passes(v4.into()), "{}", v6);
            }
            prop_assert!(!passes(Ipv6Addr::from_bits(v4.to_bits().into()).into()), "compatible {}", v4);
        }
    }
}
