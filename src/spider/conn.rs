use super::wire::Secure;
use crate::base::{Key, Now, fingerprint};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A socket as the spider sees it. Its slot is kept until the driver has said its last word.
pub(super) struct Conn {
    pub state: ConnState,
    /// Which host and address it leads to.
    pub route: u64,
    /// The fetch on it is not the first: the server may have closed it meanwhile.
    pub reused: bool,
    /// The request has been handed to the kernel completely.
    pub sent: bool,
    /// In the pool's list of ages already; one entry is enough for all its rests.
    pub aged: bool,
    /// TLS, if the URL wants it.
    pub secure: Option<Box<Secure>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnState {
    /// Working for a fetch, from the attempt to connect to the last byte.
    Busy { fetch: Key },
    /// Kept for the next page of its host.
    Idle { until: Now },
    /// Let go; the kernel may still complete on it.
    Closing,
}

/// What a connection can be used for again: the same origin at the same address.
pub(super) fn route(origin: &str, addr: SocketAddr) -> u64 {
    let ip = match addr.ip() {
        std::net::IpAddr::V4(v4) => fingerprint(&v4.octets()),
        std::net::IpAddr::V6(v6) => fingerprint(&v6.octets()),
    };
    fingerprint(origin.as_bytes()) ^ ip.rotate_left(17) ^ u64::from(addr.port())
}

/// Idle connections by where they lead, and in the order they fell idle.
#[derive(Default)]
pub(super) struct IdlePool {
    by_route: RapidHashMap<u64, Vec<Key>>,
    /// One entry per connection that ever fell idle; it may be busy or closed since, so whoever pops one looks.
    oldest: VecDeque<(Now, Key)>,
}

impl IdlePool {
    pub fn put(&mut self, route: u64, key: Key) {
        self.by_route.entry(route).or_default().push(key);
    }

    pub fn leads_to(&self, route: u64) -> bool {
        self.by_route.contains_key(&route)
    }

    /// Remembers to look at a connection when its time may be up.
    pub fn age(&mut self, key: Key, until: Now) {
        self.oldest.push_back((until, key));
    }

    /// The connection that fell idle last: the one the server is least likely to have closed.
    pub fn take(&mut self, route: u64) -> Option<Key> {
        let keys = self.by_route.get_mut(&route)?;
        let key = keys.pop();
        if keys.is_empty() {
            self.by_route.remove(&route);
        }
        key
    }

    pub fn remove(&mut self, route: u64, key: Key) {
        let Some(keys) = self.by_route.get_mut(&route) else {
            return;
        };
        keys.retain(|other| *other != key);
        if keys.is_empty() {
            self.by_route.remove(&route);
        }
    }

    /// When the oldest one's time is up; the key may be stale.
    pub fn oldest(&self) -> Option<(Now, Key)> {
        self.oldest.front().copied()
    }

    pub fn pop_oldest(&mut self) -> Option<Key> {
        self.oldest.pop_front().map(|(_, key)| key)
    }
}
