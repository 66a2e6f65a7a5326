use super::health::{Health, Part};
use crate::base::Now;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whose fault it is that addresses cannot be reached: theirs, or that of this machine's own network, by which no URL is
/// judged. Each shard has one of these.
///
/// An address that there is a way to fails by itself. Where the kernel has no way to it:
///
/// | other addresses of its kind                   | the fault is                                    |
/// |-----------------------------------------------|-------------------------------------------------|
/// | there is a way to the internet, or to most of | the address's own                               |
/// | those that were reached                       |                                                 |
/// | there is none, and some were reached before   | ours: the network is down                       |
/// | there is none, and none was ever reached      | ours, unless addresses of another kind are      |
/// |                                               | reached: the machine has no addresses like that |
///
/// The kinds are IPv4, IPv6, and this machine itself. While the network is down nothing is started; a way that is there
/// again ends that.
pub(crate) struct Network {
    health: Arc<Health>,
    /// Shards that wait.
    waiting: Arc<AtomicUsize>,
    /// Addresses that were reached last, by kind.
    reached: [VecDeque<IpAddr>; KINDS],
    last: Option<IpAddr>,
    /// What cannot be reached, and when it is looked for next.
    down: Option<(IpAddr, Now)>,
}

const KINDS: usize = 3;
/// Addresses of a kind that are remembered.
const REACHED_MAX: usize = 16;
/// How often a way is looked for.
const LOOK_MS: u64 = 500;
/// Any addresses that are not ours and not set apart for something else.
const ANYWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(8, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1))];

fn kind(ip: IpAddr) -> usize {
    match ip.to_canonical() {
        ip if ip.is_loopback() => 2,
        IpAddr::V4(_) => 0,
        IpAddr::V6(_) => 1,
    }
}

impl Network {
    pub fn new(health: Arc<Health>, waiting: Arc<AtomicUsize>) -> Network {
        Network { health, waiting, reached: Default::default(), last: None, down: None }
    }

    /// Somebody answered there.
    pub fn reached(&mut self, ip: IpAddr) {
        if self.last == Some(ip) {
            return;
        }
        self.last = Some(ip);
        let reached = &mut self.reached[kind(ip)];
        if !reached.contains(&ip) {
            reached.truncate(REACHED_MAX - 1);
            reached.push_front(ip);
        }
    }

    /// A connection could not be made, or broke. Says whether our own network is why; then nothing may be started for a
    /// while. `has_way` asks the kernel, which sends nothing for it.
    pub fn failed(&mut self, ip: IpAddr, now: Now, has_way: impl Fn(IpAddr) -> bool) -> bool {
        if !self.is_down(ip, &has_way) {
            return false;
        }
        if self.down.is_none() && self.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            let text = format!(
                "fetching waits: this machine has no way to {ip}, nor to anywhere else: its network is down; no URL is judged by it"
            );
            self.health.wait_for(Part::Network, Some(text));
        }
        self.down = Some((ip, now.plus_ms(LOOK_MS)));
        true
    }

    fn is_down(&self, ip: IpAddr, has_way: &impl Fn(IpAddr) -> bool) -> bool {
        if has_way(ip) {
            return false;
        }
        let own = kind(ip);
        let works = |kind: usize| {
            let reached = &self.reached[kind];
            let still = reached.iter().filter(|ip| has_way(**ip)).count();
            ANYWHERE.get(kind).is_some_and(|ip| has_way(*ip)) || still * 2 > reached.len()
        };
        if works(own) {
            return false;
        }
        !self.reached[own].is_empty() || !(0..KINDS).any(works)
    }

    /// Whether something may be started; looks for a way while there is none.
    pub fn may_start(&mut self, now: Now, has_way: impl Fn(IpAddr) -> bool) -> bool {
        let Some((ip, look_at)) = self.down else { return true };
        if now < look_at {
            return false;
        }
        if self.is_down(ip, &has_way) {
            self.down = Some((ip, now.plus_ms(LOOK_MS)));
            return false;
        }
        self.is_back();
        true
    }

    fn is_back(&mut self) {
        if self.down.take().is_some() && self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.health.wait_for(Part::Network, None);
        }
    }

    /// When it is looked again; `None` while all is well.
    pub fn next_look(&self) -> Option<Now> {
        self.down.map(|(_, look_at)| look_at)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.is_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
    const C: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 1));
    const SIX: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 9));
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn network(reached: &[IpAddr]) -> Network {
        let mut network = Network::new(Arc::default(), Arc::default());
        reached.iter().for_each(|ip| network.reached(*ip));
        network
    }

    /// Whether it is our fault that an address cannot be reached, with ways to these alone.
    fn is_ours(reached: &[IpAddr], failed: IpAddr, ways: &[IpAddr]) -> bool {
        network(reached).failed(failed, Now::ZERO, |ip| ways.contains(&ip))
    }

    #[test]
    fn what_cannot_be_reached_is_judged_by_what_else_can() {
        assert!(!is_ours(&[A], A, &[A]), "there is a way: its own fault");
        assert!(!is_ours(&[A], B, &[ANYWHERE[0]]), "the network is there");
        assert!(!is_ours(&[A], B, &[A]), "a network without the rest of the world");
        assert!(is_ours(&[A], A, &[]), "the way is gone");
        assert!(is_ours(&[A, B, C], A, &[B]), "for nearly all");
        assert!(is_ours(&[], A, &[]), "it was never there");
        assert!(is_ours(&[A, HERE], A, &[HERE]), "this machine itself is no network");
        assert!(!is_ours(&[HERE], A, &[HERE]), "a crawl of this machine alone");
        assert!(!is_ours(&[A], SIX, &[A, ANYWHERE[0]]), "a machine without such addresses");
        assert!(is_ours(&[SIX], SIX, &[ANYWHERE[0]]), "one that had them");
    }

    #[test]
    fn one_line_tells_of_all_shards_until_the_way_is_there_again() {
        let (health, waiting) = (Arc::<Health>::default(), Arc::default());
        let mut shards = [0, 1].map(|_| Network::new(health.clone(), Arc::clone(&waiting)));
        let later = Now::ZERO.plus_ms(LOOK_MS);
        for shard in &mut shards {
            shard.reached(A);
            assert!(shard.may_start(Now::ZERO, |_| false), "nothing has failed");
            assert!(shard.failed(A, Now::ZERO, |_| false));
            assert!(!shard.may_start(Now::ZERO, |_| true), "not yet looked for");
            assert!(!shard.may_start(later, |_| false));
        }
        assert!(matches!(health.waiting(), Some((Part::Network, _))));
        let much_later = later.plus_ms(LOOK_MS);
        assert!(shards[0].may_start(much_later, |_| true) && health.waiting().is_some());
        assert!(shards[1].may_start(much_later, |_| true) && health.waiting().is_none());
    }
}
