use super::host_queue::{HostQueue, QueueStore};
use super::host_queues::HostQueues;
use super::host_table::HostTable;
use super::queued_doc::QueuedDoc;
use crate::base::SortedMap;
use crate::doc_index::Origin;
use crate::storage::Spill;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Pending documents, in queues per host, and the hosts in turn by the rank of their first: one host can never clog an
/// answer. Within its memory: what does not fit is on disk until its turn comes.
pub(crate) struct Frontier {
    hosts: Vec<Host>,
    /// Places in `hosts`, by the fingerprint of their origin.
    by_fingerprint: HostTable,
    /// Of the fingerprints.
    seed: u64,
    /// Hosts with something pending, the lowest rank first, in the order of their turns.
    turns: SortedMap<u16, VecDeque<Turn>>,
    /// Turns that count no more: their hosts are queued by a lower rank.
    stale: usize,
    len: u64,
    /// Scheme and authority of all hosts, one after the other.
    origins: String,
    /// Places in queues that are passed over: their documents moved up, or are done with. They are not counted.
    moved: u64,
    store: QueueStore,
}

/// A host, as the doc index knows it.
struct Host {
    /// Scheme and authority, among those of all.
    origin_at: u32,
    origin_len: u16,
    counts: HostCounts,
    queues: HostQueues,
    /// The rank it is queued by, and its place among the turns: with another ticket it has moved on.
    queued: Option<u16>,
    ticket: u32,
}

/// A host's place in a queue.
#[derive(Clone, Copy)]
struct Turn {
    host: u32,
    ticket: u32,
}

impl Host {
    /// Whether a turn in the queue of a rank counts.
    fn has_turn(&self, turn: &Turn, rank: u16) -> bool {
        self.ticket == turn.ticket && self.queued == Some(rank)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounts {
    /// URLs taken in.
    pub known: u32,
    pub pending: u32,
    /// To be fetched as soon as their host may be asked; most of them wait for that.
    pub handed_out: u32,
    pub success: u32,
    pub errors: u32,
    /// URLs that were over the budget of the host or its domain, or one variant of a query too many.
    pub refused: u32,
}

/// The most hosts that are brought near at once.
pub(crate) const NEAR_MAX: usize = 64;
/// Documents of one host in one turn.
const PER_TURN: usize = 8;
/// Turns that count no more are left where they are, up to this many or as many as there are hosts.
const STALE_MIN: usize = 64;
/// Queues with less than this are left in memory at first, when memory is short. One that is shorter than the last
/// takes less there than it takes to know where it is on disk.
const SPILL_BYTES: [usize; 3] = [4_096, 512, 128];

impl Frontier {
    pub fn new(spill: Spill, seed: u64) -> Frontier {
        Frontier {
            hosts: Vec::new(),
            by_fingerprint: HostTable::default(),
            seed,
            turns: SortedMap::new(),
            stale: 0,
            len: 0,
            origins: String::new(),
            moved: 0,
            store: QueueStore::new(spill),
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Hosts that are known.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// What pending documents and due times have on disk.
    pub fn spill(&self) -> &Spill {
        self.store.spill()
    }

    pub fn spill_mut(&mut self) -> &mut Spill {
        self.store.spill_mut()
    }

    /// What the queues take of memory.
    pub fn used_bytes(&self) -> usize {
        self.store.arena().used_bytes()
    }

    pub fn ram_bytes(&self) -> usize {
        self.store.arena().ram_bytes() + self.table_bytes()
    }

    /// Memory that every host takes, whatever it has pending.
    pub fn table_bytes(&self) -> usize {
        let turns = self.turns.values().map(VecDeque::len).sum::<usize>() * size_of::<HostQueue>();
        turns
            + self.store.front_bytes()
            + self.origins.capacity()
            + self.hosts.capacity() * size_of::<Host>()
            + self.by_fingerprint.ram_bytes()
    }

    /// What an origin is found by.
    pub fn fingerprint(&self, origin: &str) -> u64 {
        xxh3_64_with_seed(origin.as_bytes(), self.seed)
    }

    /// The counts of a host, by its origin.
    pub fn counts_of(&self, origin: &str) -> Option<HostCounts> {
        let host = self.by_fingerprint.find(self.fingerprint(origin))?;
        Some(self.hosts[host as usize].counts)
    }

    /// The origins of all hosts.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| origin_of(&self.origins, host))
    }

    /// The number of a host, which is made if there is none.
    pub fn host(&mut self, origin: &str) -> u32 {
        self.host_of(self.fingerprint(origin), origin)
    }

    pub fn host_of(&mut self, fingerprint: u64, origin: &str) -> u32 {
        if let Some(host) = self.by_fingerprint.find(fingerprint) {
            return host;
        }
        let host = self.hosts.len() as u32;
        self.hosts.push(Host {
            origin_at: self.origins.len() as u32,
            origin_len: origin.len() as u16,
            counts: HostCounts::default(),
            queues: HostQueues::default(),
            queued: None,
            ticket: 0,
        });
        self.origins.push_str(origin);
        self.by_fingerprint.insert(fingerprint, host);
        host
    }

    /// Loads what a push to each of these hosts will need. No load of a step waits for another of the same step, so
    /// that memory works on all of them at once.
    pub fn bring_near(&mut self, fingerprints: impl Iterator<Item = u64> + Clone) {
        let mut near =
            fingerprints.clone().fold(0, |near, fingerprint| near ^ self.by_fingerprint.touch(fingerprint));
        let mut hosts = [u32::MAX; NEAR_MAX];
        for (host, fingerprint) in hosts.iter_mut().zip(fingerprints) {
            *host = self.by_fingerprint.find(fingerprint).unwrap_or(u32::MAX);
        }
        let known = || hosts.iter().filter_map(|&host| self.hosts.get(host as usize));
        near ^= known().fold(0, |near, host| near ^ u64::from(host.ticket));
        near ^=
            known().fold(0, |near, host| near ^ host.queues.last().map_or(0, |queue| u64::from(queue.rank)));
        near ^= known().fold(0, |near, host| {
            near ^ host.queues.last().map_or(0, |queue| u64::from(queue.touch(&self.store)))
        });
        std::hint::black_box(near);
    }

    /// The origin of a host.
    pub fn origin(&self, host: u32) -> &str {
        origin_of(&self.origins, &self.hosts[host as usize])
    }

    pub fn counts(&mut self, host: u32) -> &mut HostCounts {
        &mut self.hosts[host as usize].counts
    }

    /// Queues a document by its URL, and returns the number of its host. `None` of what is no URL.
    pub fn push_url(&mut self, url: &str, doc_id: u32, origin: Origin) -> Option<u32> {
        let (host, path) = split(url)?;
        let host = self.host(host);
        self.push_back(host, &QueuedDoc { doc_id, origin, path, via: "" });
        Some(host)
    }

    pub fn push_back(&mut self, host: u32, doc: &QueuedDoc<'_>) {
        self.push(host, doc, HostQueue::push_back);
    }

    /// Makes a document the next of its host.
    pub fn push_front(&mut self, host: u32, doc: &QueuedDoc<'_>) {
        self.push(host, doc, HostQueue::push_front);
    }

    /// Passes over one document of a host that stands in a queue, when its turn comes.
    pub fn pass_over(&mut self, host: u32) {
        self.len -= 1;
        self.moved += 1;
        self.hosts[host as usize].counts.pending -= 1;
    }

    fn push(
        &mut self,
        number: u32,
        doc: &QueuedDoc<'_>,
        push: impl FnOnce(&mut HostQueue, &QueuedDoc<'_>, &mut QueueStore),
    ) {
        let host = &mut self.hosts[number as usize];
        let rank = doc.origin.rank();
        push(host.queues.of(rank), doc, &mut self.store);
        self.len += 1;
        host.counts.pending += 1;
        if host.queued.is_none_or(|queued| rank < queued) {
            self.stale += usize::from(host.queued.is_some());
            host.queued = Some(rank);
            host.ticket = host.ticket.wrapping_add(1);
            let turn = Turn { host: number, ticket: host.ticket };
            self.turns.entry(rank).or_default().push_back(turn);
            if self.stale > self.hosts.len().max(STALE_MIN) {
                self.drop_stale();
            }
        }
    }

    /// Takes turns out of the queues that count no more. Where low ranks come again and again, the queues of the high
    /// ones are never reached, and what is left behind there would grow without an end.
    fn drop_stale(&mut self) {
        let hosts = &self.hosts;
        self.turns.retain(|&rank, turns| {
            turns.retain(|turn| hosts[turn.host as usize].has_turn(turn, rank));
            !turns.is_empty()
        });
        self.stale = 0;
    }

    /// Takes up to `want` documents, a few from each host in turn, none from hosts that `rejected` names by their
    /// origin.
    pub fn take(
        &mut self,
        want: usize,
        rejected: impl Fn(&str) -> bool,
        mut give: impl FnMut(u32, &str, QueuedDoc<'_>) -> bool,
    ) -> io::Result<()> {
        let mut left = want;
        let mut next = Some(0);
        while left > 0
            && let Some(from) = next
            && let Some((&rank, _)) = self.turns.range(from..).next()
        {
            next = rank.checked_add(1);
            let mut passed_over = 0;
            while left > 0
                && let Some(turns) = self.turns.get_mut(&rank)
                && passed_over < turns.len()
                && let Some(place) = turns.pop_front()
            {
                // What the next hosts need of memory is on its way while this one has its turn.
                let ahead = |by: usize| turns.get(by).map(|turn| &self.hosts[turn.host as usize]);
                let near = ahead(8).map_or(0, |host| host.ticket)
                    ^ ahead(5).map_or(0, |host| host.queues.first().map_or(0, |queue| u32::from(queue.rank)))
                    ^ ahead(2).map_or(0, |host| {
                        host.queues.first().map_or(0, |queue| queue.touch_first(&self.store))
                    });
                std::hint::black_box(near);
                let number = place.host;
                let host = &mut self.hosts[number as usize];
                if !host.has_turn(&place, rank) {
                    self.stale = self.stale.saturating_sub(1);
                    continue;
                }
                let origin = origin_of(&self.origins, host);
                if rejected(origin) {
                    turns.push_back(place);
                    passed_over += 1;
                    continue;
                }
                passed_over = 0;
                let mut turn = PER_TURN.min(left);
                while turn > 0
                    && let Some(queue) = host.queues.first_mut().filter(|queue| queue.rank == rank)
                {
                    let mut given = false;
                    let popped = queue.pop(&mut self.store, |doc| given = give(number, origin, doc));
                    let popped = popped.inspect_err(|_| turns.push_front(place))?;
                    debug_assert!(popped, "a queue without documents is not kept");
                    if given || self.moved == 0 {
                        self.len -= 1;
                        host.counts.pending -= 1;
                    } else {
                        self.moved -= 1;
                    }
                    (turn, left) = if given { (turn - 1, left - 1) } else { (turn, left) };
                    if queue.is_empty() || !popped {
                        host.queues.remove_first();
                    }
                }
                host.queued = host.queues.first().map(|queue| queue.rank);
                match host.queued {
                    Some(next) if next == rank => turns.push_back(place),
                    Some(next) => self.turns.entry(next).or_default().push_back(place),
                    None => {}
                }
            }
            if self.turns.get(&rank).is_some_and(VecDeque::is_empty) {
                self.turns.remove(&rank);
            }
        }
        Ok(())
    }

    /// Writes to disk what does not fit into `ram_max` bytes of memory.
    pub fn make_room(&mut self, ram_max: usize) -> io::Result<()> {
        if self.used_bytes() <= ram_max {
            return Ok(());
        }
        for bytes_min in SPILL_BYTES {
            for queue in self.hosts.iter_mut().flat_map(|host| host.queues.iter_mut()) {
                queue.spill(bytes_min, &mut self.store)?;
            }
            if self.used_bytes() <= ram_max / 2 {
                break;
            }
        }
        Ok(())
    }
}

fn origin_of<'a>(origins: &'a str, host: &Host) -> &'a str {
    let at = host.origin_at as usize;
    &origins[at..at + usize::from(host.origin_len)]
}

/// The parts of a URL in normal form that a queue and its host keep.
pub(crate) fn split(url: &str) -> Option<(&str, &str)> {
    let scheme = memchr::memchr(b':', url.as_bytes())?;
    let rest = url[scheme..].strip_prefix("://")?;
    let path = memchr::memchr(b'/', rest.as_bytes()).filter(|&path| path > 0)?;
    Some(url.split_at(url.len() - rest.len() + path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frontier() -> Frontier {
        Frontier::new(Spill::in_memory(), 7)
    }

    fn push(frontier: &mut Frontier, doc_id: u32, url: &str, origin: Origin) {
        frontier.push_url(url, doc_id, origin).unwrap();
    }

    fn take(frontier: &mut Frontier, want: usize, rejected: &[&str]) -> Vec<(u32, String)> {
        let mut found = Vec::new();
        let give = |_, origin: &str, doc: QueuedDoc<'_>| {
            found.push((doc.doc_id, format!("{origin}{}", doc.path)));
            true
        };
        frontier.take(want, |origin| rejected.contains(&origin), give).unwrap();
        found
    }

    #[test]
    fn hosts_take_turns_and_rejected_ones_wait() {
        let mut frontier = frontier();
        for page in 0..20 {
            for host in ["a", "b", "c"] {
                push(&mut frontier, page, &format!("http://{host}/{page}"), Origin::SEED);
            }
        }
        let found = take(&mut frontier, 24, &["http://b"]);
        let of =
            |host: &str| found.iter().filter(|(_, url)| url.starts_with(&format!("http://{host}/"))).count();
        assert_eq!((of("a"), of("b"), of("c")), (16, 0, 8), "eight a turn");
        assert_eq!(found[0], (0, "http://a/0".to_string()));
        assert_eq!(take(&mut frontier, 100, &[]).len(), 36);
        assert!(frontier.len() == 0 && frontier.hosts.iter().all(|host| host.queued.is_none()));
    }

    #[test]
    fn the_urgent_and_the_near_come_first_over_all_hosts() {
        let mut frontier = frontier();
        let origin = |priority, depth, hits| Origin { priority, hits, ..Origin::link(0, depth) };
        push(&mut frontier, 1, "http://a/deep", origin(5, 3, 0));
        push(&mut frontier, 2, "http://a/near", origin(5, 1, 0));
        push(&mut frontier, 3, "http://b/deep", origin(5, 3, 0));
        push(&mut frontier, 4, "http://b/urgent", origin(9, 7, 0));
        push(&mut frontier, 5, "http://c/near", origin(5, 1, 100));
        let order: Vec<u32> = take(&mut frontier, 9, &[]).into_iter().map(|(doc_id, _)| doc_id).collect();
        assert_eq!(order, [4, 5, 2, 3, 1]);
        assert!(frontier.turns.is_empty(), "no turn is left over");
    }

    #[test]
    fn turns_left_behind_do_not_pile_up() {
        let (mut frontier, mut rng) = (frontier(), crate::base::Rng::new(3));
        let (hosts, mut doc_id, mut pushed) = (100, 0, 0);
        let mut taken = 0;
        for round in 0..2_000 {
            for _ in 0..rng.below(40) {
                doc_id += 1;
                let origin = Origin::link(1, rng.below(6) as u16);
                push(&mut frontier, doc_id, &format!("http://h{}/{doc_id}", rng.below(hosts)), origin);
                pushed += 1;
            }
            // The deep ones are hardly ever come to.
            taken += take(&mut frontier, rng.below(20) as usize, &[]).len();
            let turns: usize = frontier.turns.values().map(VecDeque::len).sum();
            assert!(turns <= 2 * hosts as usize + 1, "{turns} turns in round {round}");
        }
        assert_eq!(pushed - taken, frontier.len() as usize);
        assert_eq!(take(&mut frontier, usize::MAX, &[]).len(), pushed - taken, "and no host is forgotten");
        assert!(frontier.turns.is_empty() && frontier.stale == 0);
    }

    #[test]
    fn what_memory_has_no_room_for_comes_back_in_order() {
        let (mut small, mut large) = (frontier(), frontier());
        let mut rng = crate::base::Rng::new(7);
        let (mut doc_id, mut spilled) = (0, false);
        for _ in 0..2_000 {
            for _ in 0..rng.below(6) {
                doc_id += 1;
                let url = format!("http://h{}/{}", rng.below(20), "x".repeat(rng.below(60) as usize));
                let origin = Origin::link(1, rng.below(4) as u16);
                push(&mut small, doc_id, &url, origin);
                push(&mut large, doc_id, &url, origin);
            }
            small.make_room(20_000).unwrap();
            spilled |= small.store.spill().pieces() > 0;
            assert!(small.used_bytes() <= 20_000);
            let want = rng.below(5) as usize;
            assert_eq!(take(&mut small, want, &["http://h3"]), take(&mut large, want, &["http://h3"]));
        }
        assert_eq!(take(&mut small, usize::MAX, &[]), take(&mut large, usize::MAX, &[]));
        assert_eq!((small.len(), large.len()), (0, 0));
        assert!(spilled, "the test is of nothing if all fits");
    }

    #[test]
    fn urls_are_cut_where_the_path_begins() {
        assert_eq!(split("http://a:80/b/c?d"), Some(("http://a:80", "/b/c?d")));
        assert_eq!(split("http://a"), None);
        assert_eq!(split("http:///b"), None);
        assert_eq!(split("nonsense"), None);
    }
}
