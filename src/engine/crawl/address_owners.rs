use crate::base::fingerprint;
use crate::limits::ADDRESSES_PER_HOST_MAX;
use rapidhash::fast::RapidHashMap;
use std::net::IpAddr;

/// Which shard owns an address: its pauses and its connections are there, and what is asked of it is asked from there.
///
/// By itself an address belongs where its hash says. The addresses of one host must be together, so those that
/// nobody was ever sent to go where the first of them is at home. Whoever was dealt is noted for good: an address
/// never changes hands. When there is no room for more notes the hash decides again, for all that have none.
pub(crate) struct AddressOwners {
    noted: RapidHashMap<IpAddr, u16>,
    noted_max: usize,
    shards: usize,
}

impl AddressOwners {
    pub fn new(shards: usize, noted_max: usize) -> AddressOwners {
        AddressOwners { noted: RapidHashMap::default(), noted_max, shards }
    }

    pub fn shard_of(&self, ip: IpAddr) -> usize {
        self.noted.get(&ip).map_or_else(|| shard_of(ip, self.shards), |&shard| usize::from(shard))
    }

    /// The shard for a host with these addresses: that of the first which has been dealt before, else of the first.
    fn choose(&self, addresses: &[IpAddr]) -> usize {
        let known = addresses.iter().find_map(|ip| self.noted.get(ip));
        match (known, addresses.first()) {
            (Some(&shard), _) => usize::from(shard),
            (None, Some(&first)) => shard_of(first, self.shards),
            (None, None) => 0,
        }
    }

    /// The address at which a host begins that has these, at least one, and lives nowhere yet.
    pub fn settle_first(&mut self, addresses: &[IpAddr]) -> IpAddr {
        let first = &addresses[..addresses.len().min(ADDRESSES_PER_HOST_MAX)];
        let shard = self.choose(first);
        let own = first.iter().copied().find(|&ip| self.settle(ip, shard));
        own.expect("the shard was chosen for one of them")
    }

    /// Whether an address is a shard's own. One that was never dealt is from then on.
    pub fn settle(&mut self, ip: IpAddr, shard: usize) -> bool {
        if self.shards == 1 {
            return true;
        }
        if !self.noted.contains_key(&ip) && self.noted.len() < self.noted_max {
            self.noted.insert(ip, shard as u16);
        }
        self.shard_of(ip) == shard
    }
}

/// Where an address belongs by itself.
pub(crate) fn shard_of(ip: IpAddr, shards: usize) -> usize {
    let octets = match ip {
        IpAddr::V4(v4) => fingerprint(&v4.octets()),
        IpAddr::V6(v6) => fingerprint(&v6.octets()),
    };
    (octets % shards as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn an_address_never_changes_hands_whatever_room_there_is() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let shards = 1 + rng.below(4) as usize;
            let mut owners = AddressOwners::new(shards, rng.below(30) as usize);
            let mut dealt: RapidHashMap<IpAddr, usize> = RapidHashMap::default();
            for _ in 0..300 {
                let ips: Vec<IpAddr> =
                    (0..=rng.below(4)).map(|_| IpAddr::from([10, 0, 0, rng.below(60) as u8])).collect();
                let shard = owners.choose(&ips);
                let mut kept = 0;
                for &ip in &ips {
                    if owners.settle(ip, shard) {
                        kept += 1;
                        assert_eq!(owners.shard_of(ip), shard);
                        assert_eq!(*dealt.entry(ip).or_insert(shard), shard, "seed {seed}: {ip}");
                    }
                }
                assert!(kept > 0, "seed {seed}: a host has an address left");
            }
            assert!(owners.noted.len() <= owners.noted_max);
        }
    }

    #[test]
    fn addresses_of_one_host_come_together() {
        let of = |shard: usize| {
            (1..=255u8).map(|n| IpAddr::from([8, 8, 8, n])).filter(move |ip| shard_of(*ip, 2) == shard)
        };
        let (a, b) = (of(0).next().unwrap(), of(1).next().unwrap());
        let mut owners = AddressOwners::new(2, 9);
        assert_eq!(owners.choose(&[a, b]), 0);
        assert!(owners.settle(a, 0) && owners.settle(b, 0));
        let c = of(1).nth(1).unwrap();
        assert_eq!(owners.choose(&[c, b]), 0, "with the one that is known");
        assert!(owners.settle(c, 0));
        let d = of(1).nth(2).unwrap();
        assert!(owners.settle(d, 1) && !owners.settle(d, 0), "what is at home elsewhere stays there");
    }
}
