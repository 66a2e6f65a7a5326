use super::route::has_ipv6;
use crate::limits::{LOOKUPS_MAX, NAME_SOCKETS_MAX, NAMES_CACHED_MAX};
use crate::resolver::ResolverConfig;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

/// Name servers, and how to ask them: /etc/resolv.conf, as far as it concerns whole names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    pub servers: Vec<SocketAddr>,
    pub timeout_s: u64,
    pub attempts: u8,
}

/// As many as glibc takes from the file.
const SERVERS_MAX: usize = 3;
/// The bounds that glibc sets.
const TIMEOUT_S_MAX: u64 = 30;
const ATTEMPTS_MAX: u8 = 5;
/// A crawler has other pages to fetch meanwhile, so a lost datagram is sent again sooner than by glibc, and once more.
const TIMEOUT_S: u64 = 2;
const ATTEMPTS: u8 = 3;

impl ResolvConf {
    /// The machine's own. Without the file, or without a server in it, it is the one on this machine.
    pub fn of_system() -> ResolvConf {
        let text = std::fs::read(Path::new("/etc/resolv.conf")).unwrap_or_default();
        ResolvConf::parse(&String::from_utf8_lossy(&text))
    }

    /// Lines that make no sense are passed over, as the system does.
    pub fn parse(text: &str) -> ResolvConf {
        let mut conf = ResolvConf { servers: Vec::new(), timeout_s: TIMEOUT_S, attempts: ATTEMPTS };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    // A link-local address with its interface cannot be written as an address alone.
                    let ip = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    if conf.servers.len() < SERVERS_MAX {
                        conf.servers.extend(ip.map(|ip| SocketAddr::new(ip, 53)));
                    }
                }
                Some("options") => words.for_each(|option| conf.take_option(option)),
                _ => {}
            }
        }
        if conf.servers.is_empty() {
            conf.servers.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)));
        }
        conf
    }

    /// These servers instead of those of the file; how to ask them stays.
    #[must_use]
    pub fn with_servers(mut self, servers: &[SocketAddr]) -> ResolvConf {
        if !servers.is_empty() {
            self.servers = servers.to_vec();
        }
        self
    }

    /// The resolver's settings, with the product's bounds.
    pub fn resolver_config(self) -> ResolverConfig {
        ResolverConfig {
            servers: self.servers,
            ipv6_first: has_ipv6(),
            timeout_us: self.timeout_s * 1_000_000,
            attempts: self.attempts,
            cache_max: NAMES_CACHED_MAX,
            lookups_max: LOOKUPS_MAX,
            sockets_max: NAME_SOCKETS_MAX,
        }
    }

    fn take_option(&mut self, option: &str) {
        match option.split_once(':') {
            Some(("timeout", n)) => {
                self.timeout_s = n.parse().map_or(self.timeout_s, |n: u64| n.clamp(1, TIMEOUT_S_MAX));
            }
            Some(("attempts", n)) => {
                self.attempts = n.parse().map_or(self.attempts, |n: u8| n.clamp(1, ATTEMPTS_MAX));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_options_are_read() {
        let conf = ResolvConf::parse(
            "# c\nsearch a b\nnameserver 192.0.2.1\n  nameserver\t2001:db8::1 \nnameserver fe80::1%eth0\n; x\n\
             nameserver bad\nnameserver 192.0.2.3\nnameserver 192.0.2.4\noptions ndots:2 timeout:7 rotate attempts:99\n",
        );
        let servers: Vec<String> = conf.servers.iter().map(SocketAddr::to_string).collect();
        assert_eq!(servers, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
        assert_eq!((conf.timeout_s, conf.attempts), (7, 5));
        let conf = ResolvConf::parse("options timeout:x attempts: timeout:0\n");
        assert_eq!((conf.timeout_s, conf.attempts), (1, 3));
        assert_eq!(conf.servers, ["127.0.0.1:53".parse().unwrap()], "as glibc does without any");
        let given = ["[::1]:5353".parse().unwrap()];
        assert_eq!(conf.clone().with_servers(&given).servers, given);
        assert_eq!(conf.clone().with_servers(&[]), conf);
    }
}
