use crate::base::fingerprint;
use crate::engine::names::Addresses;
use crate::proto::lines::Candidate;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// The names of one batch of candidates: a forward map from domain to addresses, and from it a map from address to
/// hosts. Both are cleared with every new question to the doc index; how long an address holds beyond that is the
/// resolver's to know.
#[derive(Default)]
pub(crate) struct Resolution {
    forward: RapidHashMap<Box<str>, NameState>,
    /// In the order in which they were dealt. Few hosts share an address: a set for each would be five times
    /// the memory, for a question that is asked once.
    by_ip: Vec<Sharer>,
}

/// A host of this batch and its address. In order, hosts of one address and then of one name are neighbours.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
struct Sharer {
    /// As bits of version 6.
    ip: u128,
    /// Fingerprint of its name.
    name: u64,
    /// Fingerprint of its origin, as the reject list has it.
    origin: u64,
}

pub(crate) enum NameState {
    Known(Addresses),
    Unknown,
    /// What waits for the answer.
    Asked(Vec<Waiter>),
}

/// Who wants to know an address.
pub(crate) enum Waiter {
    Candidate(Candidate),
    /// Robots rules of `origin`, at a shard, that are at `url`.
    Errand {
        asker: usize,
        origin: Box<str>,
        url: CrawlUrl,
    },
}

impl Resolution {
    /// Starts a new batch. The hosts of crowded addresses in the last one are to be left out of it.
    pub fn begin(&mut self, hosts_per_ip_max: usize) -> Vec<u64> {
        self.forward.retain(|_, resolution| matches!(resolution, NameState::Asked(_)));
        self.by_ip.sort_unstable();
        self.by_ip.dedup();
        let names = |sharers: &[Sharer]| sharers.chunk_by(|a, b| a.name == b.name).count();
        let addresses = self.by_ip.chunk_by(|a, b| a.ip == b.ip);
        let crowded = addresses.filter(|sharers| names(sharers) > hosts_per_ip_max);
        let out = crowded.flatten().map(|sharer| sharer.origin).collect();
        self.by_ip.clear();
        out
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut NameState> {
        self.forward.get_mut(name)
    }

    /// Notes what a name resolved to, and gives those who waited for it.
    pub fn resolved(&mut self, name: Box<str>, addresses: Option<Addresses>) -> Vec<Waiter> {
        let resolution = addresses.map_or(NameState::Unknown, NameState::Known);
        match self.forward.insert(name, resolution) {
            Some(NameState::Asked(waiters)) => waiters,
            _ => Vec::new(),
        }
    }

    pub fn asked(&mut self, name: &str, waiter: Waiter) {
        self.forward.insert(name.into(), NameState::Asked(vec![waiter]));
    }

    /// Notes that a host of this batch lives at an address.
    pub fn shares(&mut self, ip: IpAddr, url: &CrawlUrl) {
        let ip = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let (name, origin) = (fingerprint(url.host().as_bytes()), fingerprint(url.origin().as_bytes()));
        self.by_ip.push(Sharer { ip: ip.to_bits(), name, origin });
    }

    /// Candidates that wait for an address.
    pub fn waiting(&self) -> usize {
        let waiting = |resolution: &NameState| match resolution {
            NameState::Asked(waiters) => waiters.len(),
            NameState::Known(_) | NameState::Unknown => 0,
        };
        self.forward.values().map(waiting).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_address_sits_out_one_question() {
        let mut batch = Resolution::default();
        let url = |host: u32| CrawlUrl::parse(&format!("http://h{host}.test/x")).unwrap();
        let (crowded, other): (IpAddr, IpAddr) = ("1.1.1.1".parse().unwrap(), "2.2.2.2".parse().unwrap());
        for host in 0..5 {
            batch.shares(crowded, &url(host));
            batch.shares(crowded, &url(host));
        }
        batch.shares(other, &url(9));
        let mut out = batch.begin(4);
        out.sort_unstable();
        let mut expected: Vec<u64> = (0..5).map(|host| fingerprint(url(host).origin().as_bytes())).collect();
        expected.sort_unstable();
        assert_eq!(out, expected);
        assert!(batch.begin(4).is_empty(), "only the next one");
        for host in 0..4 {
            batch.shares(crowded, &url(host));
        }
        assert!(batch.begin(4).is_empty(), "four are no crowd");
    }
}
