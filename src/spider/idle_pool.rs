use crate::base::{Key, Now, fingerprint};
use rapidhash::fast::RapidHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Idle connections by route, and in the order in which they fell idle.
#[derive(Default)]
pub(super) struct IdlePool {
    /// The one of each route that fell idle last.
    by_route: RapidHashMap<u64, Key>,
    /// By a connection's slot: the one of its route that fell idle before it.
    before: Vec<Option<Key>>,
    /// One entry per connection that ever fell idle; the connection may be busy or closed since.
    by_age: VecDeque<(Now, Key)>,
}

/// What a connection can be used for again: the same origin at the same address.
pub(super) fn route(origin: &str, addr: SocketAddr) -> u64 {
    let ip = match addr.ip() {
        IpAddr::V4(v4) => fingerprint(&v4.octets()),
        IpAddr::V6(v6) => fingerprint(&v6.octets()),
    };
    fingerprint(origin.as_bytes()) ^ ip.rotate_left(17) ^ u64::from(addr.port())
}

impl IdlePool {
    pub fn put(&mut self, route: u64, key: Key) {
        let before = self.by_route.insert(route, key);
        if self.before.len() <= key.index() {
            self.before.resize(key.index() + 1, None);
        }
        self.before[key.index()] = before;
    }

    pub fn leads_to(&self, route: u64) -> bool {
        self.by_route.contains_key(&route)
    }

    /// Schedules a look at a connection for when its time may be up.
    pub fn age(&mut self, key: Key, until: Now) {
        self.by_age.push_back((until, key));
    }

    /// Takes the connection that fell idle last: the one that the server is least likely to have closed.
    pub fn take(&mut self, route: u64) -> Option<Key> {
        let last = self.by_route.get_mut(&route)?;
        let key = *last;
        match self.before[key.index()].take() {
            Some(before) => *last = before,
            None => {
                self.by_route.remove(&route);
            }
        }
        Some(key)
    }

    pub fn remove(&mut self, route: u64, key: Key) {
        let Some(&last) = self.by_route.get(&route) else { return };
        if last == key {
            self.take(route);
            return;
        }
        let mut after = last;
        while let Some(other) = self.before[after.index()] {
            if other == key {
                self.before[after.index()] = self.before[key.index()].take();
                return;
            }
            after = other;
        }
    }

    /// When the time of the oldest may be up.
    pub fn next_due(&self) -> Option<Now> {
        self.by_age.front().map(|(until, _)| *until)
    }

    /// Takes the oldest entry; its connection may be busy or closed.
    pub fn pop_oldest(&mut self) -> Option<Key> {
        self.by_age.pop_front().map(|(_, key)| key)
    }
}
