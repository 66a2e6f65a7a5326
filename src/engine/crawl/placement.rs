use crate::base::fingerprint;
use crate::doc_index::RejectList;
use crate::engine::crawl::address_owners::AddressOwners;
use crate::limits::{ADDRESSES_PER_HOST_MAX, HOMES_MAX, OWNED_ADDRESSES_MAX};
use crate::proto::job::Candidate;
use crate::proto::url::CrawlUrl;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Which shard a host lives on, at which address, and how full its queue is there.
pub(crate) struct Placement {
    homes: RapidHashMap<u64, HostHome>,
    owners: AddressOwners,
    /// Hosts whose queue is full.
    reject: Arc<RejectList>,
    queue_len: usize,
}

/// Where a host lives. It stays there for as long as its name resolves to that address among others: its pauses, its
/// robots rules and its connections are on that shard.
struct HostHome {
    ip: IpAddr,
    /// Further addresses that are of the same shard, as they were last dealt.
    others: Option<Arc<[IpAddr]>>,
    /// Documents at the shard.
    load: u32,
    /// It moves: these wait until its new shard knows how to treat it.
    moving: Option<Box<Moving>>,
}

struct Moving {
    from: usize,
    /// What its name resolved to.
    addresses: Vec<IpAddr>,
    waiting: Vec<Candidate>,
}

/// Where a host is asked: a shard, its address there, and others of that shard.
pub(crate) struct Place {
    pub shard: usize,
    pub ip: IpAddr,
    pub others: Option<Arc<[IpAddr]>>,
}

/// What becomes of a candidate whose name has resolved.
pub(crate) enum Placed {
    At(Place, Candidate),
    /// Its host moves to another shard; it waits for that.
    Waits,
    /// Its host begins to move: the shard it leaves must say what is known of it.
    Leaves {
        from: usize,
        origin: Box<str>,
    },
}

/// A host has arrived: what waited for it, and what its name resolved to.
pub(crate) struct Arrived {
    pub shard: usize,
    pub addresses: Vec<IpAddr>,
    pub waiting: Vec<Candidate>,
}

/// A host as the doc index and the reject list call it.
pub(crate) fn host_key(url: &CrawlUrl) -> u64 {
    fingerprint(url.origin().as_bytes())
}

impl Placement {
    pub fn new(shards: usize, queue_len: usize) -> Placement {
        Placement {
            homes: RapidHashMap::default(),
            owners: AddressOwners::new(shards, OWNED_ADDRESSES_MAX),
            reject: Arc::default(),
            queue_len,
        }
    }

    /// Hosts whose queue is full, for the doc index to leave out.
    pub fn reject_list(&self) -> Arc<RejectList> {
        self.reject.clone()
    }

    /// Finds the shard that owns an address of a candidate. `allowed` has at least one address.
    pub fn place(&mut self, candidate: Candidate, allowed: Vec<IpAddr>) -> Placed {
        let host = host_key(&candidate.url);
        let queue_len = self.queue_len;
        let (owners, home) = self.home(host, &allowed);
        if let Some(moving) = &mut home.moving {
            moving.waiting.push(candidate);
            return Placed::Waits;
        }
        if home.load == 0 && !allowed.contains(&home.ip) {
            let from = owners.shard_of(home.ip);
            home.ip = owners.settle_first(&allowed);
            if from != owners.shard_of(home.ip) {
                let origin = candidate.url.origin().into();
                home.moving = Some(Box::new(Moving { from, addresses: allowed, waiting: vec![candidate] }));
                return Placed::Leaves { from, origin };
            }
        }
        home.load += 1;
        let is_full = home.load as usize >= queue_len;
        let place = home.place(owners, &allowed);
        if is_full {
            Arc::make_mut(&mut self.reject).insert(host);
        }
        Placed::At(place, candidate)
    }

    /// Where a host is asked for something else than a document: where it lives, since its pauses are known there. One
    /// that lives nowhere has a home from then on.
    pub fn ask_at(&mut self, url: &CrawlUrl, allowed: &[IpAddr]) -> Place {
        let (owners, home) = self.home(host_key(url), allowed);
        home.place(owners, allowed)
    }

    /// The shard that a host lives on, by its origin.
    pub fn shard_of(&mut self, origin: &str) -> Option<usize> {
        let home = self.homes.get(&fingerprint(origin.as_bytes()))?;
        Some(self.owners.shard_of(home.ip))
    }

    /// Where a host lives. One that lives nowhere yet comes to the shard of one of its addresses.
    fn home(&mut self, host: u64, allowed: &[IpAddr]) -> (&mut AddressOwners, &mut HostHome) {
        if self.homes.len() >= HOMES_MAX && !self.homes.contains_key(&host) {
            self.homes.retain(|_, home| home.load > 0 || home.moving.is_some());
        }
        let owners = &mut self.owners;
        let home = self.homes.entry(host).or_insert_with(|| {
            let ip = owners.settle_first(allowed);
            HostHome { ip, others: None, load: 0, moving: None }
        });
        (owners, home)
    }

    /// The shard that a host left has said what is known of it.
    pub fn arrived(&mut self, origin: &str) -> Option<Arrived> {
        let home = self.homes.get_mut(&fingerprint(origin.as_bytes()))?;
        let Moving { addresses, waiting, .. } = *home.moving.take()?;
        Some(Arrived { shard: self.owners.shard_of(home.ip), addresses, waiting })
    }

    /// A shard died: what was known of hosts that were about to leave it is gone, and they move without it.
    pub fn stranded(&mut self, shard: usize) -> Vec<Arrived> {
        let leaves = |home: &HostHome| home.moving.as_ref().is_some_and(|moving| moving.from == shard);
        let mut stranded: Vec<u64> =
            self.homes.iter().filter(|(_, home)| leaves(home)).map(|(&host, _)| host).collect();
        // Not in the order of a hash map: a simulated death can be replayed.
        stranded.sort_unstable();
        let take = |host| {
            let home = self.homes.get_mut(&host)?;
            let Moving { addresses, waiting, .. } = *home.moving.take()?;
            Some(Arrived { shard: self.owners.shard_of(home.ip), addresses, waiting })
        };
        stranded.into_iter().filter_map(take).collect()
    }

    /// Candidates that wait for their host to move.
    pub fn waiting(&self) -> u64 {
        let moving = self.homes.values().filter_map(|home| home.moving.as_ref());
        moving.map(|moving| moving.waiting.len() as u64).sum()
    }

    /// A host's queue has one document fewer; at half it is taken off the reject list. True if it was.
    pub fn unload(&mut self, host: u64) -> bool {
        let Some(home) = self.homes.get_mut(&host) else { return false };
        home.load = home.load.saturating_sub(1);
        let has_room = (home.load as usize) <= self.queue_len / 2 && self.reject.contains(&host);
        if has_room {
            Arc::make_mut(&mut self.reject).remove(&host);
        }
        has_room
    }
}

impl HostHome {
    fn place(&mut self, owners: &mut AddressOwners, allowed: &[IpAddr]) -> Place {
        Place { shard: owners.shard_of(self.ip), ip: self.ip, others: self.beside(owners, allowed) }
    }

    /// The further addresses of a host that may be tried from where it lives.
    fn beside(&mut self, owners: &mut AddressOwners, allowed: &[IpAddr]) -> Option<Arc<[IpAddr]>> {
        if allowed == [self.ip] {
            self.others = None;
            return None;
        }
        let shard = owners.shard_of(self.ip);
        let others = allowed.iter().copied().filter(|&ip| ip != self.ip).take(ADDRESSES_PER_HOST_MAX - 1);
        let others: Vec<IpAddr> = others.filter(|&ip| owners.settle(ip, shard)).collect();
        if self.others.as_deref().unwrap_or_default() != others {
            self.others = (!others.is_empty()).then(|| others.into());
        }
        self.others.clone()
    }
}
