//! Two masters, three nodes and a table that fails: whatever the order of things, no domain is open at two nodes at once,
//! and no URL is lost.

use super::super::epoch::DomainBy;
use super::super::{By, DatabaseError, Fault, MapRow, MemoryTable, PartnerDomain, ServerId};
use super::*;
use crate::base::Rng;
use crate::proto::lines::{Handed, MasterWord};
use crate::proto::reflog::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

const DOMAINS: usize = 3;
const SERVERS: u16 = 3;
/// Seconds from one URL to the next: longer than the overlap, so that nothing is saved by it.
const PACE_S: u32 = 200;

/// A URL's number says its domain and its time.
fn domain_of(url: usize) -> String {
    format!("d{}.ru", url % DOMAINS)
}

fn time_of(url: usize) -> u32 {
    1_000_000 + url as u32 * PACE_S
}

fn line_of(url: usize) -> Vec<u8> {
    format!("1\t5\t20110727200841\t7\thttp://www.{}/{url}\t1\t", domain_of(url)).into_bytes()
}

fn url_of(line: &[u8]) -> usize {
    let url = std::str::from_utf8(line).unwrap().split('\t').nth(4).unwrap();
    url.rsplit('/').next().unwrap().parse().unwrap()
}

#[derive(Default)]
struct Desk {
    rows: BTreeMap<Box<str>, MapRow>,
    /// Lines with the time by which `SINCE` finds them.
    queues: BTreeMap<ServerId, Vec<(Vec<u8>, u32)>>,
    done: BTreeMap<ServerId, usize>,
    held: Vec<usize>,
    /// URLs that it was given, in their order.
    given: usize,
    /// The time of what it had been given when it last heard of the table: later lines may lie with the wrong server.
    sure_s: u32,
    fails: bool,
}

impl Desk {
    fn mark_at(&self, server: ServerId, seq: usize) -> u32 {
        let latest = self.given.checked_sub(1).map_or(0, time_of);
        let is_line = |(line, _): &&(Vec<u8>, u32)| line[0].is_ascii_digit();
        let behind = self.queues.get(&server).into_iter().flat_map(|queue| &queue[seq.min(queue.len())..]);
        let behind = behind.filter(is_line).map(|(line, _)| time_of(url_of(line)) - 1);
        let held = self.held.iter().map(|url| time_of(*url) - 1);
        behind.chain(held).fold(latest.min(self.sure_s), u32::min)
    }

    /// Where a node goes on that comes from the other master: by its time, or at the first word to it that it has not
    /// taken from this one.
    fn since(&self, server: ServerId, from_s: u32) -> usize {
        let queue = self.queues.get(&server).map_or(&[][..], Vec::as_slice);
        let done = self.done.get(&server).copied().unwrap_or(0);
        let by_time = queue.iter().position(|(_, at)| *at >= from_s).unwrap_or(queue.len());
        let word = queue.iter().skip(done).position(|(line, _)| !line[0].is_ascii_digit());
        word.map_or(by_time, |word| by_time.min(done + word))
    }

    fn now(&self) -> u32 {
        time_of(self.given)
    }

    fn append(&mut self, server: ServerId, line: Vec<u8>, at: u32) {
        self.queues.entry(server).or_default().push((line, at));
    }
}

impl MoveDesk for Desk {
    fn row(&self, domain: &str) -> Option<MapRow> {
        self.rows.get(domain).cloned()
    }

    fn fenced(&self, told: &mut dyn FnMut(MapRow)) {
        self.rows.values().filter(|row| row.moving_to.is_some()).cloned().for_each(told);
    }

    fn domains_of(&self, server: ServerId, max: usize) -> Vec<Box<str>> {
        let free = self.rows.values().filter(|row| row.server == server && row.moving_to.is_none());
        free.map(|row| row.domain.clone()).take(max).collect()
    }

    fn knows(&self, server: ServerId) -> bool {
        server.0 < SERVERS
    }

    fn by(&self) -> DomainBy {
        DomainBy::Registrable
    }

    fn now_s(&self) -> u32 {
        self.now()
    }

    fn drains(&self, _: ServerId) -> bool {
        false
    }

    fn place(&mut self, _: &str, not: &dyn Fn(ServerId) -> bool) -> Option<ServerId> {
        (0..SERVERS).map(ServerId).find(|server| !not(*server))
    }

    fn mark(&self, server: ServerId) -> Stamp {
        Stamp::from_s(self.mark_at(server, self.done.get(&server).copied().unwrap_or(0)))
    }

    fn lines_of(
        &self,
        server: ServerId,
        domain: &str,
        since: Option<Stamp>,
        told: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let from = match since {
            Some(stamp) => self.since(server, stamp.s()),
            None => self.done.get(&server).copied().unwrap_or(0),
        };
        for (line, _) in self.queues.get(&server).into_iter().flatten().skip(from) {
            if line[0].is_ascii_digit() && domain_of(url_of(line)) == domain {
                told(line);
            }
        }
        Ok(())
    }

    fn commit(&mut self, commit: &MoveCommit) -> io::Result<()> {
        if self.fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        for QueueEntry { server, line } in &commit.entries {
            self.append(*server, line.clone(), self.now());
        }
        for row in &commit.rows {
            self.rows.insert(row.domain.clone(), row.clone());
        }
        Ok(())
    }
}

struct Master {
    desk: Desk,
    moves: Moves,
    table: MemoryTable,
    is_up: bool,
}

impl Master {
    /// An epoch: what was held and what is new goes to its server, or is held.
    fn epoch(&mut self, up_to: usize, rng: &mut Rng) {
        let new = self.desk.given..up_to;
        self.desk.given = up_to.max(self.desk.given);
        let urls: Vec<usize> = std::mem::take(&mut self.desk.held).into_iter().chain(new).collect();
        for url in urls {
            let domain = domain_of(url);
            if !self.desk.rows.contains_key(&*domain) {
                let server = ServerId(rng.below(u64::from(SERVERS)) as u16);
                let row = MapRow {
                    domain: domain.as_str().into(),
                    server,
                    moving_to: None,
                    page: 0,
                    since_s: 0,
                    by: By::Rule,
                    fence: 0,
                };
                if let Ok(settled) = self.table.settle(&[row]) {
                    // A domain that has a past is the business of the moves.
                    if settled[0].fence == 0 {
                        self.desk.rows.insert(domain.as_str().into(), settled[0].clone());
                    }
                }
            }
            match self.desk.rows.get(&*domain).filter(|row| row.moving_to.is_none()) {
                Some(row) => self.desk.append(row.server, line_of(url), time_of(url)),
                None => self.desk.held.push(url),
            }
        }
    }
}

struct Node {
    server: ServerId,
    master: usize,
    link: u64,
    /// Where it goes on at its master, and by which time at the other.
    seq: usize,
    mark_s: u32,
    closed: BTreeSet<String>,
    /// The last fence of a domain that was closed or opened here.
    fences: BTreeMap<String, u32>,
    /// Closed and not answered; they are said once on a link.
    handing: BTreeMap<String, bool>,
    pending: BTreeMap<String, BTreeSet<usize>>,
}

impl Node {
    fn rises(&mut self, domain: &str, fence: u32) -> bool {
        let is_new = self.fences.get(domain).is_none_or(|last| fence > *last);
        if is_new {
            self.fences.insert(domain.to_string(), fence);
        }
        is_new
    }
}

struct World {
    rng: Rng,
    masters: Vec<Master>,
    nodes: Vec<Node>,
    urls: usize,
    fetched: BTreeSet<usize>,
    links: u64,
    table: MemoryTable,
}

impl World {
    fn new(seed: u64) -> World {
        let table = MemoryTable::default();
        let master =
            || Master { desk: Desk::default(), moves: Moves::default(), table: table.view(), is_up: true };
        let masters = vec![master(), master()];
        let node = |server: u16| Node {
            server: ServerId(server),
            master: usize::from(server) % 2,
            link: u64::from(server),
            seq: 0,
            mark_s: 0,
            closed: BTreeSet::new(),
            fences: BTreeMap::new(),
            handing: BTreeMap::new(),
            pending: BTreeMap::new(),
        };
        let nodes = (0..SERVERS).map(node).collect();
        let links = u64::from(SERVERS);
        World { rng: Rng::new(seed), masters, nodes, urls: 0, fetched: BTreeSet::new(), links, table }
    }

    fn act(&mut self) {
        let which = self.rng.below(2) as usize;
        let node = self.rng.below(u64::from(SERVERS)) as usize;
        match self.rng.below(100) {
            0..15 => self.urls += 1,
            15..30 if self.masters[which].is_up => {
                // Files come to one master later than to the other.
                let lag = self.rng.below(3) as usize;
                let (master, rng) = (&mut self.masters[which], &mut self.rng);
                master.epoch(self.urls.saturating_sub(lag), rng);
            }
            30..50 => self.step(which),
            50..75 => self.take(node),
            75..80 => self.fetch(node),
            80..84 => self.order(which),
            84..88 => self.dial(node, which),
            88..92 => self.kill_or_start(which),
            92..95 => {
                let faults = [Fault::None, Fault::Away, Fault::HalfWay, Fault::Slow];
                let fault = faults[self.rng.below(4) as usize];
                self.table.fail(self.masters[which].table.number(), fault);
            }
            95..97 => self.masters[which].desk.fails = self.rng.chance(300),
            _ => {}
        }
    }

    fn step(&mut self, which: usize) {
        let master = &mut self.masters[which];
        if !master.is_up {
            return;
        }
        let stepped = master.moves.step(&mut master.desk, Some(&mut master.table));
        assert!(!matches!(stepped, Err(MoveError::Refused(_))));
        if stepped.is_ok() {
            master.desk.sure_s = master.desk.given.checked_sub(1).map_or(0, time_of);
        }
        for news in master.moves.news() {
            match news {
                MoveNews::Fenced { link, domain, .. } => {
                    let node = self.nodes.iter_mut().find(|node| node.link == link && node.master == which);
                    // A FENCED on a link that is gone is lost.
                    if let Some(node) = node
                        && node.handing.remove(&*domain).is_some()
                    {
                        node.pending.remove(&*domain);
                    }
                }
                MoveNews::Held { domain, why } => panic!("{domain}: {why}"),
                _ => {}
            }
        }
    }

    fn order(&mut self, which: usize) {
        let domain = domain_of(self.rng.below(DOMAINS as u64) as usize);
        let to = ServerId(self.rng.below(u64::from(SERVERS)) as u16);
        let master = &mut self.masters[which];
        if master.is_up {
            let order = MoveOrder { domain: &domain, to, force: false };
            let _ = master.moves.order(order, &mut master.desk, Some(&mut master.table));
        }
    }

    /// A node dials a master, the same one again or the other.
    fn dial(&mut self, at: usize, which: usize) {
        if !self.masters[which].is_up {
            return;
        }
        self.links += 1;
        let node = &mut self.nodes[at];
        self.masters[node.master].moves.link_gone(node.link);
        if node.master != which {
            node.seq = self.masters[which].desk.since(node.server, node.mark_s);
        }
        (node.master, node.link) = (which, self.links);
        node.handing.values_mut().for_each(|is_said| *is_said = false);
    }

    fn kill_or_start(&mut self, which: usize) {
        let other_is_up = self.masters[1 - which].is_up;
        let master = &mut self.masters[which];
        if master.is_up && other_is_up {
            master.is_up = false;
            for node in self.nodes.iter_mut().filter(|node| node.master == which) {
                // Nothing that it says is heard on this link.
                self.links += 1;
                node.link = self.links;
            }
        } else if !master.is_up {
            master.is_up = true;
            master.table = self.table.view();
            master.moves = Moves::new(&master.desk);
            for node in self.nodes.iter_mut() {
                node.handing.values_mut().for_each(|is_said| *is_said = false);
            }
        }
    }

    fn take(&mut self, at: usize) {
        let max = 1 + self.rng.below(4);
        let node = &mut self.nodes[at];
        let master = &mut self.masters[node.master];
        if !master.is_up {
            return;
        }
        for (domain, is_said) in &mut node.handing {
            if !std::mem::replace(is_said, true) {
                for url in node.pending.get(domain).into_iter().flatten() {
                    master.moves.hand(node.link, domain, Handed::Url(&line_of(*url)));
                }
                master.moves.closed(Closed {
                    link: node.link,
                    server: node.server,
                    domain: domain.as_str().into(),
                });
            }
        }
        for _ in 0..max {
            if !node.handing.is_empty() {
                break;
            }
            let queue = master.desk.queues.get(&node.server).map_or(&[][..], Vec::as_slice);
            let Some((line, _)) = queue.get(node.seq) else { break };
            match MasterWord::parse(line).unwrap() {
                MasterWord::Line(line) => {
                    let domain = domain_of(url_of(line));
                    // What comes for a closed domain is left out.
                    if !node.closed.contains(&domain) && !self.fetched.contains(&url_of(line)) {
                        node.pending.entry(domain).or_default().insert(url_of(line));
                    }
                }
                MasterWord::Close { domain, fence } => {
                    if node.rises(domain, fence) {
                        node.closed.insert(domain.to_string());
                        node.handing.insert(domain.to_string(), false);
                    }
                }
                MasterWord::Open { domain, fence } => {
                    if node.rises(domain, fence) {
                        node.closed.remove(domain);
                    }
                }
                other => panic!("{other:?}"),
            }
            node.seq += 1;
        }
        // Up to a domain that is closed and not answered.
        if node.handing.is_empty() {
            master.desk.done.insert(node.server, node.seq);
            node.mark_s = master.desk.mark_at(node.server, node.seq);
        }
    }

    fn fetch(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let open = node.pending.iter_mut().filter(|(domain, _)| !node.closed.contains(*domain));
        for (_, urls) in open {
            self.fetched.extend(urls.pop_first());
        }
    }

    fn check(&self, seed: u64) {
        for domain in (0..DOMAINS).map(domain_of) {
            let asks = |node: &&Node| {
                !node.closed.contains(&domain)
                    && node.pending.get(&domain).is_some_and(|urls| !urls.is_empty())
            };
            let open: Vec<ServerId> = self.nodes.iter().filter(asks).map(|node| node.server).collect();
            assert!(open.len() <= 1, "seed {seed}: {domain} is open at {open:?}");
        }
    }

    /// All is well again: everything comes to rest, and every URL is where its domain is, or was fetched.
    fn settle(&mut self, seed: u64) {
        for which in 0..2 {
            self.masters[which].desk.fails = false;
            if !self.masters[which].is_up {
                self.kill_or_start(which);
            }
            self.table.fail(self.masters[which].table.number(), Fault::None);
        }
        for at in 0..self.nodes.len() {
            let which = self.rng.below(2) as usize;
            self.dial(at, which);
        }
        for _ in 0..60 {
            for which in 0..2 {
                self.step(which);
                let (master, rng) = (&mut self.masters[which], &mut self.rng);
                master.epoch(self.urls, rng);
            }
            for at in 0..self.nodes.len() {
                (0..8).for_each(|_| self.take(at));
                self.check(seed);
            }
        }
        for master in &self.masters {
            assert_eq!(master.moves.closing().count(), 0, "seed {seed}: a move does not end");
            assert!(master.desk.held.is_empty(), "seed {seed}: rows are held");
        }
        assert_eq!(self.masters[0].desk.rows, self.masters[1].desk.rows, "seed {seed}");
        let lost: Vec<usize> = (0..self.urls)
            .filter(|url| {
                let domain = domain_of(*url);
                let at = self.masters[0].desk.rows[&*domain].server;
                let node = &self.nodes[usize::from(at.0)];
                let is_there = node.pending.get(&domain).is_some_and(|urls| urls.contains(url));
                (!is_there || node.closed.contains(&domain)) && !self.fetched.contains(url)
            })
            .collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
    }
}

#[test]
fn no_domain_is_open_at_two_nodes_and_no_url_is_lost() {
    let seeds = std::env::var("NEPHILA_MOVE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    let mut moved = 0;
    for seed in 0..seeds {
        let mut world = World::new(seed);
        for _ in 0..600 {
            world.act();
            world.check(seed);
        }
        world.settle(seed);
        moved += world.table.rows().iter().map(|row| row.fence / 2).sum::<u32>();
    }
    assert!(u64::from(moved) > seeds, "only {moved} moves in {seeds} worlds");
}

/// One master without a table.
fn alone() -> (Desk, Moves) {
    let mut desk = Desk::default();
    let row = MapRow {
        domain: "d0.ru".into(),
        server: ServerId(0),
        moving_to: None,
        page: 0,
        since_s: 0,
        by: By::Rule,
        fence: 0,
    };
    desk.rows.insert("d0.ru".into(), row);
    let moves = Moves::new(&desk);
    (desk, moves)
}

/// Words as they are, and lines by the numbers of their URLs.
fn queue(desk: &Desk, server: u16) -> Vec<String> {
    let entries = desk.queues.get(&ServerId(server)).into_iter().flatten();
    let shown = |line: &[u8]| match line[0].is_ascii_digit() {
        true => url_of(line).to_string(),
        false => String::from_utf8_lossy(line).into_owned(),
    };
    entries.map(|(line, _)| shown(line)).collect()
}

fn order(domain: &str, to: u16, force: bool) -> MoveOrder<'_> {
    MoveOrder { domain, to: ServerId(to), force }
}

#[test]
fn without_a_table_a_move_is_two_commits() {
    let (mut desk, mut moves) = alone();
    moves.order(order("d0.ru", 1, false), &mut desk, None).unwrap();
    moves.order(order("d0.ru", 1, false), &mut desk, None).unwrap();
    assert_eq!((queue(&desk, 0), desk.rows["d0.ru"].fence), (vec!["CLOSE d0.ru 1".to_string()], 1));
    let refused = moves.order(order("d0.ru", 2, false), &mut desk, None).unwrap_err().to_string();
    assert!(refused.contains("waits for server 0 to close it"), "{refused}");

    // Killed, and started again.
    let mut moves = Moves::new(&desk);
    assert_eq!(moves.closing().collect::<Vec<_>>(), ["d0.ru"]);
    let closed = Closed { link: 7, server: ServerId(0), domain: "d0.ru".into() };
    moves.hand(7, "d0.ru", Handed::Nice(b"{}"));
    moves.hand(7, "d0.ru", Handed::Url(&line_of(3)));
    moves.closed(closed.clone());
    desk.fails = true;
    assert!(moves.step(&mut desk, None).is_err());
    assert_eq!(moves.news(), [], "what is not durable is not answered");
    desk.fails = false;
    moves.step(&mut desk, None).unwrap();
    let fenced = MoveNews::Fenced { link: 7, server: ServerId(0), domain: "d0.ru".into() };
    assert_eq!(moves.news(), [MoveNews::Moved { domain: "d0.ru".into(), to: ServerId(1) }, fenced.clone()]);
    assert_eq!(queue(&desk, 1), ["NICE d0.ru {}", "OPEN d0.ru 2", "3"]);
    assert_eq!((desk.rows["d0.ru"].server, desk.rows["d0.ru"].fence), (ServerId(1), 2));

    // The answer was lost: it is said again, and taken again.
    moves.hand(7, "d0.ru", Handed::Url(&line_of(3)));
    moves.closed(closed);
    moves.step(&mut desk, None).unwrap();
    assert_eq!(moves.news(), [fenced]);
    assert_eq!(queue(&desk, 1), ["NICE d0.ru {}", "OPEN d0.ru 2", "3", "OPEN d0.ru 2", "3"]);
    assert_eq!(queue(&desk, 0), ["CLOSE d0.ru 1"]);
}

#[test]
fn a_handover_counts_when_it_is_whole_and_is_its_own_links() {
    for is_told_of_the_link in [false, true] {
        let (mut desk, mut moves) = alone();
        moves.order(order("d0.ru", 1, false), &mut desk, None).unwrap();
        moves.news();
        let closed = |link, server| Closed { link, server: ServerId(server), domain: "d0.ru".into() };
        moves.hand(7, "d0.ru", Handed::Nice(b"{}"));
        moves.hand(7, "d0.ru", Handed::Url(&line_of(3)));
        moves.closed(closed(7, 0));
        desk.fails = true;
        assert!(moves.step(&mut desk, None).is_err());
        // The link breaks, and the disk is in order again before all of it has come a second time. Meanwhile a node
        // that had the domain long ago has something of it, too.
        if is_told_of_the_link {
            moves.link_gone(7);
        }
        moves.hand(8, "d0.ru", Handed::Nice(b"{}"));
        moves.hand(9, "d0.ru", Handed::Url(&line_of(6)));
        desk.fails = false;
        moves.step(&mut desk, None).unwrap();
        let whole = ["NICE d0.ru {}", "OPEN d0.ru 2", "3"];
        assert_eq!(queue(&desk, 1), &whole[..if is_told_of_the_link { 0 } else { 3 }]);
        moves.hand(8, "d0.ru", Handed::Url(&line_of(3)));
        moves.closed(closed(8, 0));
        moves.closed(closed(9, 2));
        moves.step(&mut desk, None).unwrap();
        let entries = queue(&desk, 1);
        assert!(
            entries.starts_with(&whole.map(String::from)) && entries.contains(&"6".to_string()),
            "{entries:?}"
        );
    }
}

#[test]
fn by_force_nobody_is_waited_for_and_what_was_not_taken_moves_along() {
    let (mut desk, mut moves) = alone();
    desk.append(ServerId(0), line_of(0), time_of(0));
    desk.append(ServerId(0), line_of(1), time_of(1));
    desk.append(ServerId(0), line_of(3), time_of(3));
    desk.done.insert(ServerId(0), 1);
    moves.order(order("d0.ru", 2, true), &mut desk, None).unwrap();
    assert_eq!(queue(&desk, 2), ["OPEN d0.ru 2", "3"]);
    assert_eq!(queue(&desk, 0), ["0", "1", "3", "CLOSE d0.ru 1"], "should it come back, it lets go");
    assert_eq!((desk.rows["d0.ru"].server, desk.rows["d0.ru"].moving_to), (ServerId(2), None));
    for (bad, why) in
        [(order("d1.ru", 0, false), "in no row"), (order("d0.ru", 9, true), "server 9 is not configured")]
    {
        let refused = moves.order(bad, &mut desk, None).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_server_is_drained_a_few_domains_at_a_time() {
    let (mut desk, mut moves) = alone();
    let row = desk.rows["d0.ru"].clone();
    for n in 0..600 {
        let domain: Box<str> = format!("x{n}.ru").into();
        desk.rows.insert(domain.clone(), MapRow { domain, ..row.clone() });
    }
    moves.drain(ServerId(0));
    let mut rounds = 0;
    while desk.rows.values().any(|row| row.server == ServerId(0)) {
        moves.step(&mut desk, None).unwrap();
        let closing: Vec<Box<str>> = moves.closing().map(Into::into).collect();
        assert!(closing.len() <= 256);
        for domain in closing {
            moves.closed(Closed { link: 1, server: ServerId(0), domain });
        }
        rounds += 1;
    }
    assert!(rounds >= 3 && desk.rows.values().all(|row| row.server == ServerId(1)));
    for force in [false, true] {
        let refused = moves.order(order("d0.ru", 0, force), &mut desk, None).unwrap_err().to_string();
        assert!(refused.contains("server 0 is drained, and takes no domains"), "{refused}");
    }
    moves.may_drain(ServerId(2), &mut desk).unwrap();
    moves.drain(ServerId(2));
    moves.may_drain(ServerId(2), &mut desk).unwrap();
    let refused = moves.may_drain(ServerId(1), &mut desk).unwrap_err().to_string();
    assert!(refused.contains("server 1 is the last that takes domains"), "{refused}");
}

#[test]
fn rows_that_cannot_be_are_held_and_told_once_and_are_gone_by_when_mended() {
    let table = MemoryTable::default();
    let (mut view, mut hand) = (table.view(), table.view());
    let (mut desk, mut moves) = alone();
    let row = desk.rows["d0.ru"].clone();
    let other = MapRow { domain: "d1.ru".into(), server: ServerId(9), ..row.clone() };
    view.settle(&[row.clone(), other.clone()]).unwrap();
    let mut step = |desk: &mut Desk, moves: &mut Moves| -> Result<Vec<MoveNews>, DatabaseError> {
        match moves.step(desk, Some(&mut view)) {
            Ok(()) => Ok(moves.news()),
            Err(error) => panic!("{error}"),
        }
    };
    let held = |domain: &str, why| MoveNews::Held { domain: domain.into(), why };
    let news = step(&mut desk, &mut moves).unwrap();
    assert_eq!(news, [held("d1.ru", Trouble::NoServer(ServerId(9)))]);
    assert_eq!(desk.rows["d1.ru"].moving_to, Some(ServerId(9)), "nothing of it is sent");

    // Somebody wrote to the table by hand.
    assert!(hand.change(&MapRow { server: ServerId(2), fence: 1, ..row.clone() }, 0).unwrap());
    let news = step(&mut desk, &mut moves).unwrap();
    assert_eq!(news, [held("d0.ru", Trouble::NoHandover(ServerId(2)))]);
    assert_eq!((desk.rows["d0.ru"].server, desk.rows["d0.ru"].moving_to), (ServerId(0), Some(ServerId(0))));
    assert_eq!(step(&mut desk, &mut moves).unwrap(), [], "told once");
    assert_eq!(moves.troubles().count(), 2);
    let refused = moves.order(order("d0.ru", 1, false), &mut desk, Some(&mut hand)).unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");

    moves.order(order("d0.ru", 2, true), &mut desk, Some(&mut hand)).unwrap();
    assert_eq!(queue(&desk, 2), ["OPEN d0.ru 3"]);
    assert_eq!(queue(&desk, 0), ["CLOSE d0.ru 2"]);
    assert!(hand.change(&MapRow { server: ServerId(1), ..other }, 0).unwrap());
    step(&mut desk, &mut moves).unwrap();
    assert_eq!((desk.rows["d1.ru"].server, desk.rows["d1.ru"].moving_to), (ServerId(1), None));
    assert_eq!(moves.troubles().count(), 0);
}
