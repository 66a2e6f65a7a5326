use super::super::ServerId;
use super::loads::Loads;
use super::servers::{Server, ServerState};
use crate::base::named_enum;
use xxhash_rust::xxh3::xxh3_64_with_seed;

named_enum! {
    /// Who gets a domain that no server has.
    pub enum Assign {
        /// The server with the smallest load for its capacity. One writer says it: a table that masters share, or one
        /// master alone.
        LeastLoaded = "least_loaded",
        /// The domain's hash says it, the same at every master.
        Rendezvous = "rendezvous",
    }
}

/// A domain that is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDomain<'a> {
    pub domain: &'a str,
    /// URLs of it that are to be sent.
    pub urls: u32,
}

/// Loads as they are while domains are placed.
pub struct Placing {
    servers: Vec<(Server, f64)>,
    assign: Assign,
}

impl Placing {
    /// `pending` is what nodes say that they have still to fetch.
    pub fn new(
        servers: &[Server],
        assign: Assign,
        loads: &Loads,
        pending: impl Fn(ServerId) -> u64,
        now_s: u32,
    ) -> Placing {
        let takes = |server: &&Server| server.state == ServerState::Active && server.capacity > 0.0;
        let load = |server: &Server| loads.per_hour(server.id, now_s) + pending(server.id) as f64;
        let servers = servers.iter().filter(takes).map(|server| (*server, load(server))).collect();
        Placing { servers, assign }
    }

    /// A server for each domain, in the order of `new`: the largest domain chooses first. `None` where no server takes
    /// any.
    pub fn place(&mut self, new: &[NewDomain<'_>]) -> Option<Vec<ServerId>> {
        let mut order: Vec<usize> = (0..new.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            new[b].urls.cmp(&new[a].urls).then_with(|| new[a].domain.cmp(new[b].domain))
        });
        let mut placed = vec![ServerId(0); new.len()];
        for at in order {
            placed[at] = self.next(new[at])?;
        }
        Some(placed)
    }

    fn next(&mut self, new: NewDomain<'_>) -> Option<ServerId> {
        if self.assign == Assign::Rendezvous {
            return rendezvous(self.servers.iter().map(|(server, _)| server), new.domain);
        }
        let relative = |(server, load): &(Server, f64)| load / server.capacity;
        let mut best: Option<usize> = None;
        for (at, seat) in self.servers.iter().enumerate() {
            let is_better = best.is_none_or(|known| {
                let (one, other) = (relative(seat), relative(&self.servers[known]));
                one < other
                    || (one == other
                        && score(&seat.0, new.domain) > score(&self.servers[known].0, new.domain))
            });
            if is_better {
                best = Some(at);
            }
        }
        let seat = &mut self.servers[best?];
        seat.1 += Loads::of_urls(new.urls.max(1));
        Some(seat.0.id)
    }
}

/// The server that a domain's hash says, each as often as its capacity has it. A server that comes or goes changes only
/// domains of its own.
pub fn rendezvous<'a>(servers: impl Iterator<Item = &'a Server>, domain: &str) -> Option<ServerId> {
    let best = servers.map(|server| (score(server, domain), server.id)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, id)| id)
}

fn score(server: &Server, domain: &str) -> f64 {
    let hash = xxh3_64_with_seed(domain.as_bytes(), u64::from(server.id.0));
    // 53 bits, never 0 or 1.
    let uniform = ((hash >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    server.capacity / -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn zipf(count: usize) -> Vec<(String, u32)> {
        (1..=count)
            .map(|rank| (format!("d{rank}.example"), (100_000.0 / (rank as f64).powf(0.83)) as u32 + 1))
            .collect()
    }

    fn placed(names: &[(String, u32)], servers: &[Server], assign: Assign) -> BTreeMap<u16, u64> {
        let new: Vec<NewDomain<'_>> =
            names.iter().map(|(domain, urls)| NewDomain { domain, urls: *urls }).collect();
        let mut placing = Placing::new(servers, assign, &Loads::default(), |_| 0, 0);
        let mut sums: BTreeMap<u16, u64> = servers.iter().map(|server| (server.id.0, 0)).collect();
        for (at, server) in placing.place(&new).unwrap().into_iter().enumerate() {
            *sums.get_mut(&server.0).unwrap() += u64::from(new[at].urls);
        }
        sums
    }

    #[test]
    fn ten_thousand_domains_lie_evenly_on_sixteen_servers() {
        let names = zipf(10_000);
        let servers: Vec<Server> = (0..16).map(Server::new).collect();
        let sums = placed(&names, &servers, Assign::LeastLoaded);
        let mean = sums.values().sum::<u64>() as f64 / 16.0;
        let largest = f64::from(names[0].1);
        let max = *sums.values().max().unwrap() as f64;
        assert!(max <= largest.max(1.05 * mean), "{max} of {mean}");
    }

    #[test]
    fn a_server_gets_as_much_as_its_capacity_says() {
        let names = zipf(10_000);
        let mut servers: Vec<Server> = (0..4).map(Server::new).collect();
        servers[3].capacity = 3.0;
        for (assign, slack) in [(Assign::LeastLoaded, 0.05), (Assign::Rendezvous, 0.5)] {
            let sums = placed(&names, &servers, assign);
            let share = sums[&3] as f64 / sums.values().sum::<u64>() as f64;
            assert!((share - 0.5).abs() < slack, "{assign:?}: {share}");
        }
    }

    #[test]
    fn no_new_domain_goes_where_none_may_go_or_much_waits() {
        let mut servers: Vec<Server> = (0..4).map(Server::new).collect();
        servers[0].state = ServerState::Draining;
        servers[1].state = ServerState::Down;
        let new = [NewDomain { domain: "a.example", urls: 1 }, NewDomain { domain: "b.example", urls: 1 }];
        let pending = |server: ServerId| if server.0 == 2 { 1_000 } else { 0 };
        let mut placing = Placing::new(&servers, Assign::LeastLoaded, &Loads::default(), pending, 0);
        assert_eq!(placing.place(&new), Some(vec![ServerId(3); 2]));
        let mut none = Placing::new(&servers[..2], Assign::LeastLoaded, &Loads::default(), |_| 0, 0);
        assert_eq!(none.place(&new), None);
    }

    #[test]
    fn rendezvous_moves_only_what_a_lost_server_had() {
        let servers: Vec<Server> = (0..5).map(Server::new).collect();
        for n in 0..500 {
            let domain = format!("{n}.example");
            let all = rendezvous(servers.iter(), &domain).unwrap();
            let without = rendezvous(servers[..4].iter(), &domain).unwrap();
            assert!(all == without || all == ServerId(4));
        }
    }
}
