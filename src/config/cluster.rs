use super::config::Config;
use super::kept::texts;
use super::section::{Value, settings};
use super::units::Seconds;
use crate::base::shown;
use crate::limits::{COUNCIL_ENDPOINTS_MAX, PEER_LISTEN_BYTES_MAX};
use crate::proto::partition::Spread;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64;

settings! {
    /// A node of a cluster (`nephila node`): where it listens, whom it joins, and what keeps URLs together on one node.
    "[cluster]" ClusterSettings {
        /// Where other nodes reach this one, as `--listen` says, like "10.0.0.1:7174".
        listen: Option<SocketAddr> = None;
        /// The address that others are told, if it is not the one that it listens on, as `--advertise` says.
        advertise: Option<PeerAddress> = None;
        /// Nodes of the cluster that are looked for, as `--join` says, like ["10.0.0.1:7174"]; unset, this is the first one.
        join: Vec<PeerAddress> = Vec::new();
        /// The key file of the cluster, as `--key` says: whoever has it may join. Unset, `cluster.key` in the data directory.
        key: Option<PathBuf> = None;
        /// What keeps URLs together on one node, as `--spread` says: "domain", "host" or "url". The first node decides, by domain unless it is told; one that joins may say the same.
        spread: Option<Spread> = None;
        /// This node's share of the web, in relation to the weights of the others, as `--weight` says.
        weight: u16 = 100, in 1 to 10_000;
        /// A node that was silent for so long is taken over by another, as `--takeover` says: a time, or "never". The same on all nodes.
        takeover: Takeover = Takeover::default();
        /// How many other nodes keep a copy of what this one knows of URLs, as `--copies` says: who takes it over goes on from that.
        copies: u8 = 1, in 0 to 1;
        /// Who keeps the table and the rights, as `--council` says: "peers", or an etcd, like "etcd://10.0.0.7:2379,10.0.0.8:2379".
        council: CouncilPlace = CouncilPlace::default();
    }
}

/// What every node of a cluster has to have alike: how hosts are asked, what is in scope, and what others count on who lend
/// addresses or take over. In the order of their names.
pub const CLUSTER_RULES: [&str; 12] = [
    "cluster.takeover",
    "crawl.depth",
    "crawl.scope",
    "doc_index.allow",
    "doc_index.deny",
    "spider.timeout_req",
    "spider.user_agent",
    "url_server.delay_factor",
    "url_server.req_host_concurrent",
    "url_server.req_host_per_sec",
    "url_server.req_ip_concurrent",
    "url_server.req_ip_per_sec",
];

/// A digest of [`CLUSTER_RULES`] as these settings have them.
pub fn cluster_rules(config: &Config) -> u64 {
    let texts = texts(config);
    let rules = CLUSTER_RULES.map(|key| (key, texts.get(key)));
    xxh3_64(format!("{rules:?}").as_bytes())
}

impl Value for Spread {}
impl Value for PeerAddress {}
impl Value for Takeover {}
impl Value for CouncilPlace {}

/// Who keeps the table of a cluster, and the rights of its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CouncilPlace {
    /// The nodes: one of them at first, three later.
    #[default]
    Peers,
    /// An etcd, by the endpoints of its clients.
    Etcd(Vec<PeerAddress>),
}

impl CouncilPlace {
    /// The endpoints of an etcd.
    pub fn etcd(&self) -> Option<Vec<String>> {
        match self {
            CouncilPlace::Peers => None,
            CouncilPlace::Etcd(endpoints) => {
                Some(endpoints.iter().map(|endpoint| endpoint.0.clone()).collect())
            }
        }
    }
}

impl FromStr for CouncilPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<CouncilPlace, String> {
        if text == "peers" {
            return Ok(CouncilPlace::Peers);
        }
        let parsed = |list: &str| list.split(',').map(str::parse).collect::<Result<Vec<_>, _>>();
        match text.strip_prefix("etcd://").map(parsed) {
            Some(Ok(endpoints)) if has_each_once(&endpoints) => Ok(CouncilPlace::Etcd(endpoints)),
            _ => Err(format!(
                "must be peers or etcd://HOST:PORT,HOST:PORT with each of at most {COUNCIL_ENDPOINTS_MAX} endpoints once, not \"{}\"",
                shown(text, 100)
            )),
        }
    }
}

fn has_each_once(endpoints: &[PeerAddress]) -> bool {
    let is_new = |at: usize| !endpoints[..at].contains(&endpoints[at]);
    endpoints.len() <= COUNCIL_ENDPOINTS_MAX && (0..endpoints.len()).all(is_new)
}

impl TryFrom<String> for CouncilPlace {
    type Error = String;

    fn try_from(text: String) -> Result<CouncilPlace, String> {
        text.parse()
    }
}

impl From<CouncilPlace> for String {
    fn from(council: CouncilPlace) -> String {
        council.to_string()
    }
}

impl fmt::Display for CouncilPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.etcd() {
            None => f.write_str("peers"),
            Some(endpoints) => write!(f, "etcd://{}", endpoints.join(",")),
        }
    }
}

/// When a node that is silent is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Takeover {
    Never,
    After(Seconds),
}

/// Below this there is no room for a right, and the requests that it leaves open.
const TAKEOVER_S_MIN: u64 = 30;
const TAKEOVER_S_MAX: u64 = 86_400;

impl Takeover {
    pub fn us(self) -> Option<u64> {
        match self {
            Takeover::Never => None,
            Takeover::After(Seconds(seconds)) => Some(1_000_000 * seconds),
        }
    }
}

/// The specification's five minutes.
impl Default for Takeover {
    fn default() -> Takeover {
        Takeover::After(Seconds(300))
    }
}

impl FromStr for Takeover {
    type Err = String;

    fn from_str(text: &str) -> Result<Takeover, String> {
        match text.parse::<Seconds>() {
            _ if text == "never" => Ok(Takeover::Never),
            Ok(time) if (TAKEOVER_S_MIN..=TAKEOVER_S_MAX).contains(&time.0) => Ok(Takeover::After(time)),
            _ => Err(format!(
                "must be a time of 30s to 1d, like 300s or 5min, or never, not \"{}\"",
                shown(text, 100)
            )),
        }
    }
}

impl TryFrom<String> for Takeover {
    type Error = String;

    fn try_from(text: String) -> Result<Takeover, String> {
        text.parse()
    }
}

impl From<Takeover> for String {
    fn from(takeover: Takeover) -> String {
        takeover.to_string()
    }
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takeover::Never => f.write_str("never"),
            Takeover::After(time) => time.fmt(f),
        }
    }
}

/// Where a node is reached: an address or a name, with its port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PeerAddress(pub String);

impl FromStr for PeerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerAddress, String> {
        let port = text.rsplit_once(':').and_then(|(host, port)| {
            let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
            is_host.then(|| port.parse::<u16>().ok())?
        });
        match port {
            Some(1..) if text.len() <= PEER_LISTEN_BYTES_MAX => Ok(PeerAddress(text.to_string())),
            _ => Err(format!(
                "must be HOST:PORT, like 10.0.0.1:7174 or node1.internal:7174, not \"{}\"",
                shown(text, 100)
            )),
        }
    }
}

impl TryFrom<String> for PeerAddress {
    type Error = String;

    fn try_from(text: String) -> Result<PeerAddress, String> {
        text.parse()
    }
}

impl From<PeerAddress> for String {
    fn from(address: PeerAddress) -> String {
        address.0
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Each of them is a setting, and in the digest; what may differ is not.
    #[test]
    fn rules_of_a_cluster_are_those_that_others_count_on() {
        let config = |text: &str| Config::parse(text, Path::new("c.toml")).unwrap();
        let same = cluster_rules(&config(""));
        let others = [
            "[cluster]\ntakeover = \"40s\"\n",
            "[crawl]\ndepth = 3\n",
            "[crawl]\nscope = \"any\"\n",
            "[doc_index]\nallow = [\"/a\"]\n",
            "[doc_index]\ndeny = [\"/a\"]\n",
            "[spider]\ntimeout_req = \"61s\"\n",
            "[spider]\nuser_agent = \"a/1\"\n",
            "[url_server]\ndelay_factor = 2\n",
            "[url_server]\nreq_host_concurrent = 2\n",
            "[url_server]\nreq_host_per_sec = 2\n",
            "[url_server]\nreq_ip_concurrent = 2\n",
            "[url_server]\nreq_ip_per_sec = 2\n",
        ];
        let named = |other: &str| {
            let (section, rest) = other.trim_start_matches('[').split_once("]\n").unwrap();
            format!("{section}.{}", rest.split(' ').next().unwrap())
        };
        assert_eq!(others.map(named), CLUSTER_RULES);
        for other in others {
            assert_ne!(cluster_rules(&config(other)), same, "{other}");
        }
        assert_eq!(cluster_rules(&config("[spider]\nkeep_alive = \"1s\"\ntimeout_req = \"60s\"\n")), same);
    }

    #[test]
    fn a_takeover_is_a_time_or_never() {
        for (text, us) in [("never", None), ("30s", Some(30_000_000)), ("5min", Some(300_000_000))] {
            assert_eq!(text.parse::<Takeover>().map(Takeover::us), Ok(us));
        }
        assert_eq!(Takeover::default().to_string(), "5min");
        for bad in ["", "29s", "2d", "soon", "Never", "-1", "\u{7}"] {
            let said = bad.parse::<Takeover>().unwrap_err();
            assert!(said.starts_with("must be a time of 30s to 1d") && !said.contains('\u{7}'), "{said}");
        }
    }

    #[test]
    fn a_council_is_peers_or_an_etcd() {
        assert_eq!("peers".parse(), Ok(CouncilPlace::default()));
        for good in ["etcd://10.0.0.7:2379", "etcd://a:1,b:2,[::1]:2379"] {
            let council: CouncilPlace = good.parse().unwrap();
            assert_eq!((council.to_string(), council.etcd().is_some()), (good.to_string(), true));
        }
        let many = format!("etcd://{}", ["a:1"; 33].join(","));
        for bad in [
            "",
            "etcd",
            "etcd://",
            "etcd://a",
            "etcd://a:1,",
            "etcd://a:1,a:1",
            "http://a:1",
            "Peers",
            "\u{7}",
            &many,
        ] {
            let said = bad.parse::<CouncilPlace>().unwrap_err();
            assert!(said.starts_with("must be peers or etcd://") && !said.contains('\u{7}'), "{said}");
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for good in ["10.0.0.1:7174", "[::1]:7174", "node1.internal:1"] {
            assert_eq!(good.parse(), Ok(PeerAddress(good.to_string())));
        }
        for bad in ["", "10.0.0.1", ":7174", "a:0", "a:70000", "a b:1", "a:\u{7}1"] {
            let said = bad.parse::<PeerAddress>().unwrap_err();
            assert!(said.starts_with("must be HOST:PORT") && !said.contains('\u{7}'), "{said}");
        }
    }
}
