use crate::base::fingerprint;
use crate::engine::crawl::robots_exchange::Asker;
use crate::engine::names::{Addresses, Lookup, Names};
use crate::proto::job::Candidate;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// The names of one batch of candidates: a forward map from domain to addresses, and from it a map from address to
/// hosts. Both are cleared with every new question to the doc index; how long an address holds beyond that is the
/// resolver's to know.
pub(crate) struct Resolution {
    names: Names,
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

enum NameState {
    Known(Addresses),
    Unknown,
    /// What waits for the answer.
    Asked(Vec<Waiter>),
}

/// Who wants to know an address.
pub(crate) enum Waiter {
    Candidate(Candidate),
    /// Robots rules that are at `url`.
    RemoteRobots {
        asker: Asker,
        url: CrawlUrl,
    },
}

/// What a look-up came to.
pub(crate) enum Resolved {
    /// At once; `None` for a name that has no address.
    Now(Waiter, Option<Addresses>),
    /// The answer will come.
    Asked,
    /// Too many questions are open.
    Later(Waiter),
}

impl Resolution {
    pub fn new(names: Names) -> Resolution {
        Resolution { names, forward: RapidHashMap::default(), by_ip: Vec::new() }
    }

    #[cfg(test)]
    pub fn set_names(&mut self, names: Names) {
        self.names = names;
    }

    pub fn look_up(&mut self, name: &str, waiter: Waiter) -> Resolved {
        match self.forward.get_mut(name) {
            Some(NameState::Known(addresses)) => return Resolved::Now(waiter, Some(addresses.clone())),
            Some(NameState::Unknown) => return Resolved::Now(waiter, None),
            Some(NameState::Asked(waiters)) => {
                waiters.push(waiter);
                return Resolved::Asked;
            }
            None => {}
        }
        let (state, addresses) = match self.names.lookup(name) {
            Lookup::Known(addresses) => (NameState::Known(addresses.clone()), Some(addresses)),
            Lookup::Unknown => (NameState::Unknown, None),
            Lookup::Asked => {
                self.forward.insert(name.into(), NameState::Asked(vec![waiter]));
                return Resolved::Asked;
            }
            Lookup::Later => return Resolved::Later(waiter),
        };
        self.forward.insert(name.into(), state);
        Resolved::Now(waiter, addresses)
    }

    /// The next answer to a question that was asked, and those who waited for it.
    pub fn answer(&mut self) -> Option<(Vec<Waiter>, Option<Addresses>)> {
        let (name, addresses) = self.names.answer()?;
        let state = addresses.clone().map_or(NameState::Unknown, NameState::Known);
        let waiters = match self.forward.insert(name, state) {
            Some(NameState::Asked(waiters)) => waiters,
            _ => Vec::new(),
        };
        Some((waiters, addresses))
    }

    /// Whether `answer` would give one.
    pub fn has_answers(&self) -> bool {
        self.names.has_answers()
    }

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
    use crate::engine::names::HostsFile;

    #[test]
    fn a_crowded_address_sits_out_one_question() {
        let mut batch = Resolution::new(Names::table(HostsFile::parse("")));
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
