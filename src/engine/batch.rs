use super::names::Addresses;
use crate::base::fingerprint;
use crate::proto::lines::Candidate;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::{RapidHashMap, RapidHashSet};
use std::net::IpAddr;

/// The names of one batch of candidates: a forward map from domain to addresses, and from it a map from address to
/// hosts. Both are cleared with every new question to the doc index; how long an address holds beyond that is the
/// resolver's to know.
#[derive(Default)]
pub(super) struct Batch {
    forward: RapidHashMap<Box<str>, Resolution>,
    by_ip: RapidHashMap<IpAddr, Sharers>,
}

/// The hosts of one address in this batch.
#[derive(Default)]
struct Sharers {
    /// Fingerprints of their names.
    names: RapidHashSet<u64>,
    /// Fingerprints of their origins, as the reject list has them.
    origins: RapidHashSet<u64>,
}

pub(super) enum Resolution {
    Known(Addresses),
    Unknown,
    /// What waits for the answer.
    Asked(Vec<Waiter>),
}

/// Who wants to know an address.
pub(super) enum Waiter {
    Candidate(Candidate),
    /// Robots rules of `origin`, at a shard, that are at `url`.
    Errand {
        asker: usize,
        origin: Box<str>,
        url: CrawlUrl,
    },
}

impl Batch {
    /// Starts a new batch. The hosts of crowded addresses in the last one are to be left out of it.
    pub fn begin(&mut self, hosts_per_ip_max: usize) -> Vec<u64> {
        self.forward.retain(|_, resolution| matches!(resolution, Resolution::Asked(_)));
        let crowded = self.by_ip.drain().filter(|(_, sharers)| sharers.names.len() > hosts_per_ip_max);
        crowded.flat_map(|(_, sharers)| sharers.origins).collect()
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Resolution> {
        self.forward.get_mut(name)
    }

    /// Notes what a name resolved to, and gives those who waited for it.
    pub fn resolved(&mut self, name: Box<str>, addresses: Option<Addresses>) -> Vec<Waiter> {
        let resolution = addresses.map_or(Resolution::Unknown, Resolution::Known);
        match self.forward.insert(name, resolution) {
            Some(Resolution::Asked(waiters)) => waiters,
            _ => Vec::new(),
        }
    }

    pub fn asked(&mut self, name: &str, waiter: Waiter) {
        self.forward.insert(name.into(), Resolution::Asked(vec![waiter]));
    }

    /// Notes that a host of this batch lives at an address.
    pub fn shares(&mut self, ip: IpAddr, url: &CrawlUrl) {
        let sharers = self.by_ip.entry(ip).or_default();
        sharers.names.insert(fingerprint(url.host().as_bytes()));
        sharers.origins.insert(fingerprint(url.origin().as_bytes()));
    }

    /// Candidates that wait for an address.
    pub fn waiting(&self) -> usize {
        let waiting = |resolution: &Resolution| match resolution {
            Resolution::Asked(waiters) => waiters.len(),
            Resolution::Known(_) | Resolution::Unknown => 0,
        };
        self.forward.values().map(waiting).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_address_sits_out_one_question() {
        let mut batch = Batch::default();
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
