use crate::base::Now;
use crate::limits::NAME_SERVERS_MAX;
use std::net::SocketAddr;

/// The name servers, in the order they were given, and how they have answered recently.
pub(super) struct Servers(Vec<Server>);

struct Server {
    addr: SocketAddr,
    /// Tries in a row that failed by its fault.
    misses: u8,
    /// Asked last until then.
    last_until: Now,
}

/// How often each server was asked one question.
pub(super) type AskedCounts = [u8; NAME_SERVERS_MAX];

/// After this many misses in a row a server is asked last for a while.
const MISSES_MAX: u8 = 3;
const LAST_FOR_MS: u64 = 30_000;

impl Servers {
    pub(super) fn new(addrs: &[SocketAddr]) -> Servers {
        assert!((1..=NAME_SERVERS_MAX).contains(&addrs.len()), "the configuration was checked");
        Servers(addrs.iter().map(|&addr| Server { addr, misses: 0, last_until: Now::ZERO }).collect())
    }

    pub(super) fn addr(&self, server: usize) -> SocketAddr {
        self.0[server].addr
    }

    /// The server to ask next: in every round each once, those that fail last. `None` after the last round.
    pub(super) fn choose(&self, asked: &AskedCounts, rounds: u8, now: Now) -> Option<usize> {
        (0..self.0.len())
            .filter(|&server| asked[server] < rounds)
            .min_by_key(|&server| (asked[server], self.0[server].last_until > now, server))
    }

    pub(super) fn answered(&mut self, server: usize) {
        self.0[server].misses = 0;
        self.0[server].last_until = Now::ZERO;
    }

    pub(super) fn missed(&mut self, server: usize, now: Now) {
        let server = &mut self.0[server];
        server.misses = server.misses.saturating_add(1);
        if server.misses >= MISSES_MAX {
            server.last_until = now.plus_ms(LAST_FOR_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_server_is_asked_last_for_a_while() {
        let addrs: Vec<SocketAddr> = (1..=3).map(|n| SocketAddr::from(([192, 0, 2, n], 53))).collect();
        let mut servers = Servers::new(&addrs);
        let order = |servers: &Servers, now| {
            let mut asked = AskedCounts::default();
            let mut order = Vec::new();
            while let Some(server) = servers.choose(&asked, 2, now) {
                asked[server] += 1;
                order.push(server);
            }
            order
        };
        let now = Now::ZERO;
        assert_eq!(order(&servers, now), [0, 1, 2, 0, 1, 2]);
        servers.missed(0, now);
        servers.missed(0, now);
        assert_eq!(order(&servers, now), [0, 1, 2, 0, 1, 2], "twice may happen");
        servers.missed(0, now);
        assert_eq!(order(&servers, now), [1, 2, 0, 1, 2, 0]);
        assert_eq!(order(&servers, now.plus_ms(30_000)), [0, 1, 2, 0, 1, 2], "another chance");
        servers.missed(0, now.plus_ms(30_000));
        assert_eq!(order(&servers, now.plus_ms(30_001)), [1, 2, 0, 1, 2, 0], "missed at once");
        servers.answered(0);
        assert_eq!(order(&servers, now.plus_ms(30_001)), [0, 1, 2, 0, 1, 2]);
    }
}
