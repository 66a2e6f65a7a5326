use super::config::DriverChoice;
use super::section::{Value, settings};
use super::units::{Millis, Seconds};
use crate::base::shown;
use crate::handler::ScopeKind;
use crate::proto::url::CrawlUrl;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

settings! {
    /// A crawl: where it starts, how far it goes, what it may connect to and runs on. Every other setting that has a flag may
    /// stand here, too, instead of in its own section. `spider` and `urlserver` use what they have flags for.
    "[crawl]" CrawlSettings {
        /// URLs to start from, like ["https://example.org/"], besides those of the command line.
        seeds: Vec<Seed> = Vec::new(), told once;
        /// A file of URLs to start from, one a line, as `--seeds` takes it.
        seeds_file: Option<PathBuf> = None, told once;
        /// A list of feeds to poll, as `--feeds` takes it: one URL a line, CSV or OPML.
        feeds_file: Option<PathBuf> = None, told once;
        /// How far to go from the seeds: "host" their hosts, "domain" their domains, "prefix" below their directories, or "any".
        scope: ScopeKind = ScopeKind::default(), flag "SCOPE";
        /// How many links to follow from a seed; unset, any number.
        depth: Option<u16> = None, flag "N";
        /// Stop after this many pages; unset, no limit.
        max_pages: Option<u64> = None, flag "N", told once, live now;
        /// Stop after this time, in seconds if it has no unit; unset, no limit.
        max_seconds: Option<Seconds> = None, flag "N", told once, live now;
        /// Stay when nothing is due, and continue when something is.
        wait: bool = false, flag "", told once, live now;
        /// Ask again for everything that was ever fetched, by conditional requests.
        again: bool = false, flag "", told once;
        /// Ask only whether the URLs given are there and have changed, without their documents.
        head: bool = false, flag "", told once;
        /// The cores to use, one shard or worker on each, like "0-3,6"; unset, all.
        cores: Option<String> = None, flag "LIST";
        /// The kernel interface for the network: "uring", "epoll", or "auto": io_uring, and epoll where it is switched off.
        driver: DriverChoice = DriverChoice::default(), flag "DRIVER";
        /// A network that is not public and may be connected to, like 127.0.0.0/8, or one address; may be repeated.
        allow_net: Vec<Net> = Vec::new(), flag "CIDR";
        /// Names and addresses that need no name server, in the format of /etc/hosts; unset, /etc/hosts.
        hosts_file: Option<PathBuf> = None, flag "FILE";
        /// Masters to take URLs from, like ["10.0.0.1:7190", "10.0.0.2:7190"]: the first that answers is used, and the next when it is silent. The crawl then waits for work and does not end by itself.
        master: Vec<MasterAddress> = Vec::new(), flag "HOST:PORT[,HOST:PORT]";
        /// The number that the masters know this node by.
        server: Option<u16> = None, flag "N";
        /// A master that says nothing for so long is gone, and the other is asked, in milliseconds if it has no unit.
        timeout_master: Millis = Millis(3_000), in 100 to 600_000;
        /// Name servers, on port 53 unless a port is given; unset, those of /etc/resolv.conf.
        dns: Vec<NameServer> = Vec::new(), flag "ADDR[:PORT]";
    }
}

impl CrawlSettings {
    /// Links followed from a seed.
    pub fn depth_max(&self) -> u16 {
        self.depth.unwrap_or(u16::MAX)
    }

    /// Networks that are allowed by name.
    pub fn allowed(&self) -> Vec<IpNet> {
        self.allow_net.iter().map(|net| net.0).collect()
    }

    /// Whether it takes URLs from a master.
    pub fn has_master(&self) -> bool {
        !self.master.is_empty()
    }

    /// It stays when nothing is due.
    pub fn stays(&self) -> bool {
        self.wait || self.has_master()
    }

    pub fn name_servers(&self) -> Vec<SocketAddr> {
        self.dns.iter().map(|server| server.0).collect()
    }
}

/// Types that stand as text in files and flags alike.
macro_rules! texts {
    ($($Type:ty)+) => {
        $(
            impl Value for $Type {}

            impl TryFrom<String> for $Type {
                type Error = String;

                fn try_from(text: String) -> Result<$Type, String> {
                    text.parse()
                }
            }

            impl From<$Type> for String {
                fn from(value: $Type) -> String {
                    value.to_string()
                }
            }

            impl fmt::Display for $Type {
                fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )+
    };
}
texts!(Net NameServer Seed MasterAddress);

/// A network, or one address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Net(pub IpNet);

impl FromStr for Net {
    type Err = String;

    fn from_str(text: &str) -> Result<Net, String> {
        let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        net.map(|net| Net(net.trunc())).ok_or_else(|| {
            format!(
                "must be a network or an address, like 127.0.0.0/8, 10.0.0.7 or fd00::/8, not \"{}\"",
                shown(text, 100)
            )
        })
    }
}

/// A name server: an address, with a port or on port 53.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameServer(pub SocketAddr);

impl FromStr for NameServer {
    type Err = String;

    fn from_str(text: &str) -> Result<NameServer, String> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let server = match (text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
            (Ok(addr), _) => Some(addr),
            (_, Ok(ip)) => Some(SocketAddr::new(ip, 53)),
            _ => None,
        };
        server.filter(|addr| addr.port() != 0).map(NameServer).ok_or_else(|| {
            format!(
                "must be ADDR[:PORT], like 9.9.9.9, 127.0.0.1:5353 or [::1]:53, not \"{}\"",
                shown(text, 100)
            )
        })
    }
}

/// Where a master listens: `host:port`. A name is looked up when it is dialed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MasterAddress(pub String);

impl FromStr for MasterAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MasterAddress, String> {
        let is_good = text.rsplit_once(':').is_some_and(|(host, port)| {
            let is_host =
                !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
            is_host && port.parse::<u16>().is_ok_and(|port| port > 0) && text.len() <= 300
        });
        match is_good {
            true => Ok(MasterAddress(text.to_string())),
            false => Err(format!(
                "must be HOST:PORT, like 10.0.0.1:7190 or master.example.org:7190, not \"{}\"",
                shown(text, 100)
            )),
        }
    }
}

/// A URL to start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Seed(pub CrawlUrl);

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Seed, String> {
        CrawlUrl::parse(text).map(Seed).map_err(|cause| {
            let hint = match text.contains("://") {
                false => CrawlUrl::parse(&format!("https://{text}"))
                    .map_or(String::new(), |url| format!("; did you mean {}?", shown(url.as_str(), 200))),
                true => String::new(),
            };
            // What has an @ may be a password.
            let typed =
                if text.contains('@') { String::new() } else { format!(", not \"{}\"", shown(text, 200)) };
            format!("must be a URL{typed} ({cause}{hint})")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_is_a_network_of_one() {
        for (text, net) in [
            ("127.0.0.1", "127.0.0.1/32"),
            ("::1", "::1/128"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("fd00::/8", "fd00::/8"),
        ] {
            assert_eq!(text.parse::<Net>().unwrap().to_string(), net);
        }
        for text in ["", "here", "127.0.0.1/33", "127.0.0", "[::1]", "127.0.0.1:80"] {
            assert!(text.parse::<Net>().unwrap_err().contains("127.0.0.0/8"), "{text}");
        }
    }

    #[test]
    fn a_name_server_has_a_port_or_gets_one() {
        for (text, server) in [
            ("9.9.9.9", "9.9.9.9:53"),
            ("::1", "[::1]:53"),
            ("[::1]", "[::1]:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
        ] {
            assert_eq!(text.parse::<NameServer>().unwrap().to_string(), server);
        }
        assert!("9.9.9.9:0".parse::<NameServer>().is_err() && "dns.test".parse::<NameServer>().is_err());
    }

    #[test]
    fn a_seed_without_a_scheme_is_asked_about() {
        let said = "example.org/x".parse::<Seed>().unwrap_err();
        assert!(said.ends_with("did you mean https://example.org/x?)"), "{said}");
        assert!(!"ftp://a".parse::<Seed>().unwrap_err().contains("did you mean"));
    }
}
