//! The promise: two masters on one PostgreSQL, either of which is killed at any time: no URL is lost, no domain is with two
//! nodes, and a domain that is moved meanwhile brings along everything and is never open at both.

use crate::master_process::{config, line, start};
use crate::postgres_server::PostgresServer;
use crate::support::*;
use nephila::base::Rng;
use nephila::proto::lines::MasterWord;
use nephila::proto::reflog::Stamp;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SERVERS: &str = "[[server]]\nid = 1\n[[server]]\nid = 2\n";
const DOMAINS: usize = 40;

/// Where the masters listen; each process has a port of its own.
type Addresses = Arc<Mutex<[Option<SocketAddr>; 2]>>;

struct Master {
    dir: TempDir,
    settings: String,
    running: Option<Running>,
}

impl Master {
    fn new(server: &PostgresServer) -> Master {
        let socket = server.socket().display().to_string().replace('/', "%2F");
        let settings = format!("database = \"postgres://nephila@{socket}/postgres\"\n");
        let dir = TempDir::new();
        std::fs::create_dir_all(dir.join("data/spool")).unwrap();
        Master { dir, settings, running: None }
    }

    fn start(&mut self) -> SocketAddr {
        let config = config(&self.dir, &self.settings, SERVERS);
        let running = start(&self.dir, &config);
        let text = "master: listening on ";
        let address = wait_for("the master listens", PATIENCE, || {
            let stderr = running.stderr();
            stderr.split_once(text)?.1.split_once('\n')?.0.parse().ok()
        });
        self.running = Some(running);
        address
    }

    fn kill(&mut self) {
        let running = self.running.take().unwrap();
        running.signal(Signal::SIGKILL);
        running.wait(PATIENCE);
    }

    fn give(&self, name: &str, bytes: &str) {
        let path = self.dir.write(&format!("out/{name}"), bytes);
        std::fs::rename(path, self.dir.join("data/spool").join(name)).unwrap();
    }
}

/// A node as the lines describe it, without a crawl behind it.
#[derive(Default)]
struct Seen {
    /// URLs by domain, and when the first came.
    urls: BTreeMap<String, BTreeSet<String>>,
    closed: BTreeMap<String, Instant>,
    opened: BTreeMap<String, Instant>,
    niceness: BTreeSet<String>,
    fences: BTreeMap<String, u32>,
    /// Lines of closed domains until they are fenced.
    handing: BTreeMap<String, Vec<String>>,
    kept: BTreeMap<String, Vec<String>>,
}

fn domain_of(line: &str) -> String {
    line.split('\t').nth(4).unwrap().split('/').nth(2).unwrap().to_string()
}

impl Seen {
    fn take(&mut self, entry: &str) {
        let rises = |fences: &mut BTreeMap<String, u32>, domain: &str, fence: u32| {
            let is_new = fences.get(domain).is_none_or(|last| *last < fence);
            fences.insert(domain.to_string(), fences.get(domain).copied().unwrap_or(0).max(fence));
            is_new
        };
        match MasterWord::parse(entry.as_bytes()).unwrap() {
            MasterWord::Line(_) => {
                let domain = domain_of(entry);
                if !self.closed.contains_key(&domain) {
                    let url = entry.split('\t').nth(4).unwrap().to_string();
                    if self.urls.entry(domain.clone()).or_default().insert(url) {
                        self.kept.entry(domain.clone()).or_default().push(entry.to_string());
                    }
                    self.opened.entry(domain).or_insert_with(Instant::now);
                }
            }
            MasterWord::Close { domain, fence } => {
                if rises(&mut self.fences, domain, fence) {
                    self.closed.insert(domain.to_string(), Instant::now());
                    let mut lines: Vec<String> = self.kept.remove(domain).unwrap_or_default();
                    lines.iter_mut().for_each(|line| line.insert_str(0, "URL "));
                    lines.push(format!("NICE {{\"host\":\"{domain}\",\"retry_after\":1}}"));
                    self.handing.insert(domain.to_string(), lines);
                    self.urls.remove(domain);
                }
            }
            MasterWord::Open { domain, fence } => {
                if rises(&mut self.fences, domain, fence) {
                    self.closed.remove(domain);
                }
            }
            MasterWord::Nice { domain, .. } => {
                self.niceness.insert(domain.to_string());
            }
            other => panic!("{other:?}"),
        }
    }
}

struct Node {
    seen: Arc<Mutex<Seen>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    fn start(server: u16, addresses: Addresses) -> Node {
        let (seen, ends) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let thread = std::thread::spawn({
            let (seen, ends) = (seen.clone(), ends.clone());
            move || {
                let (mut which, mut mark) = (usize::from(server) % 2, Stamp::from_s(0));
                // Where it goes on with the master that it last took from.
                let mut position: Option<(usize, u64)> = None;
                while !ends.load(Ordering::Relaxed) {
                    let from = position.filter(|(at, _)| *at == which).map(|(_, seq)| seq);
                    let address = addresses.lock().unwrap()[which];
                    if let Some(address) = address {
                        let mut seq = from;
                        let _ = take_from(address, server, &mut seq, &mut mark, &seen, &ends);
                        position = seq.map(|seq| (which, seq)).or(position);
                    }
                    which = 1 - which;
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        Node { seen, ends, thread: Some(thread) }
    }

    fn has(&self, domain: &str) -> BTreeSet<String> {
        self.seen.lock().unwrap().urls.get(domain).cloned().unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes from a master until the link ends.
fn take_from(
    address: SocketAddr,
    server: u16,
    position: &mut Option<u64>,
    mark: &mut Stamp,
    seen: &Mutex<Seen>,
    ends: &AtomicBool,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(3))?;
    stream.set_read_timeout(Some(Duration::from_secs(3)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut said = BTreeSet::new();
    while !ends.load(Ordering::Relaxed) {
        let ask = match position {
            Some(seq) => format!("TAKE {server} {seq} 50 MARKED\n"),
            None => {
                let since = Stamp::from_s(mark.s().saturating_sub(120)).digits();
                format!("TAKE {server} SINCE {} 50 MARKED\n", String::from_utf8_lossy(&since))
            }
        };
        stream.write_all(ask.as_bytes())?;
        let mut entries = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Ok(());
            }
            let line = line.trim_end();
            match MasterWord::parse(line.as_bytes()).unwrap() {
                MasterWord::Upto { seq, mark: new } => {
                    let mut seen = seen.lock().unwrap();
                    entries.iter().for_each(|entry: &String| seen.take(entry));
                    (*position, *mark) = (Some(seq), new.unwrap());
                    break;
                }
                MasterWord::Fenced { domain } => {
                    seen.lock().unwrap().handing.remove(domain);
                }
                MasterWord::Error(_) => return Ok(()),
                _ => entries.push(line.to_string()),
            }
        }
        let mut words = String::new();
        let seen = seen.lock().unwrap();
        for (domain, lines) in &seen.handing {
            if said.insert(domain.clone()) {
                lines.iter().for_each(|line| words += &format!("HAND {domain} {line}\n"));
                words += &format!("CLOSED {domain}\n");
            }
        }
        if seen.handing.is_empty() {
            words += &format!("DONE {server} {}\n", position.unwrap());
        }
        drop(seen);
        stream.write_all(words.as_bytes())?;
    }
    Ok(())
}

#[test]
fn either_master_is_killed_twenty_times_and_nothing_is_lost_or_doubled_also_while_domains_move() {
    let kills = std::env::var("NEPHILA_MASTER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let server = PostgresServer::start();
    let mut masters = [Master::new(&server), Master::new(&server)];
    let addresses = Addresses::default();
    for (at, master) in masters.iter_mut().enumerate() {
        addresses.lock().unwrap()[at] = Some(master.start());
    }
    let nodes = [Node::start(1, addresses.clone()), Node::start(2, addresses.clone())];
    let mut rng = Rng::new(15);
    let mut urls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut number = 0;
    let mut give = |masters: &[Master; 2], count: usize| {
        let mut text = String::new();
        for _ in 0..count {
            let domain = format!("h{}.test", number % DOMAINS);
            let url = format!("http://{domain}/p{number}");
            text += &line(&url);
            urls.entry(domain).or_default().insert(url);
            number += 1;
        }
        masters.iter().for_each(|master| master.give(&format!("f{number}.reflog"), &text));
        urls.clone()
    };
    let mut moved = BTreeMap::new();
    for kill in 0..kills {
        give(&masters, 60);
        std::thread::sleep(Duration::from_millis(rng.below(250)));
        if kill % 4 == 3 {
            // Somebody moves a domain at the master that is about to die.
            let domain = format!("h{}.test", kill % DOMAINS);
            let has = |at: usize| !nodes[at].has(&domain).is_empty();
            let to = match (has(0), has(1)) {
                (true, false) => 2,
                (false, true) => 1,
                _ => continue,
            };
            let data = masters[kill % 2].dir.join("data");
            let args = ["master", "map", "move", &domain, &to.to_string(), "--data", data.to_str().unwrap()];
            run(args).done();
            moved.insert(domain, to);
        }
        let at = rng.below(2) as usize;
        addresses.lock().unwrap()[at] = None;
        masters[at].kill();
        std::thread::sleep(Duration::from_millis(rng.below(150)));
        let address = masters[at].start();
        addresses.lock().unwrap()[at] = Some(address);
    }
    let all = give(&masters, 60);
    wait_for("every URL is with one node", PATIENCE, || {
        all.iter()
            .all(|(domain, urls)| nodes.iter().any(|node| node.has(domain).is_superset(urls)))
            .then_some(())
    });
    for domain in all.keys() {
        let with = nodes.iter().filter(|node| !node.has(domain).is_empty()).count();
        assert_eq!(with, 1, "{domain} is with {with} nodes");
    }
    assert!(kills < 20 || moved.len() >= 3, "only {} domains were moved", moved.len());
    for (domain, to) in &moved {
        let [old, new] = if *to == 2 { [&nodes[0], &nodes[1]] } else { [&nodes[1], &nodes[0]] };
        let (old, new) = (old.seen.lock().unwrap(), new.seen.lock().unwrap());
        let (closed, opened) = (old.closed[domain], new.opened[domain]);
        assert!(closed < opened, "{domain} was open at two nodes");
        assert!(new.niceness.contains(domain), "{domain} came without what its hosts asked for");
        assert!(new.urls[domain].is_superset(&all[domain]), "{domain} lost URLs");
    }
    for master in &mut masters {
        let audit = run(["master", "audit", "--data", master.dir.join("data").to_str().unwrap()]);
        assert_eq!(audit.code(), 0, "{}{}", audit.text(), audit.stderr);
        master.kill();
    }
}
