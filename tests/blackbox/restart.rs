//! The promise: a shard that panics is restarted, what it had open is sent again, and in the end every page is
//! stored; the process lives on, and nothing that it counts falls.

use crate::support::{TempDir, records, sha1_hex};
use nephila::base::{Key, NetEvent, Now, Transport};
use nephila::config::{Config, Rate};
use nephila::driver::{Bell, Driver, EpollDriver, UringDriver};
use nephila::engine::{
    CrawlStore, CrawlTask, HostsFile, LinksConfig, Names, Node, NodeSetup, OpenIndex, Running as _,
    SpiderNode, StoreAt, Summary,
};
use nephila::farm::{Farm, FarmOptions, SiteSpec};
use nephila::proto::url::CrawlUrl;
use nephila::store_server::DataDir;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A driver whose `next` panics at some completions, counted over all shards and restarts.
pub struct PanickyDriver<D> {
    pub inner: D,
    pub completions: Arc<AtomicU64>,
    pub panic_at: Arc<BTreeSet<u64>>,
}

impl<D: Driver> Driver for PanickyDriver<D> {
    fn now(&self) -> Now {
        self.inner.now()
    }

    fn connect(&mut self, conn: Key, addr: SocketAddr, transport: Transport) {
        self.inner.connect(conn, addr, transport);
    }

    fn send(&mut self, conn: Key, bytes: Vec<u8>) {
        self.inner.send(conn, bytes);
    }

    fn close(&mut self, conn: Key) {
        self.inner.close(conn);
    }

    fn wait(&mut self, until: Option<Now>, busy: usize) -> io::Result<()> {
        self.inner.wait(until, busy)
    }

    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        let next = self.inner.next();
        if next.is_some() {
            let count = self.completions.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(!self.panic_at.contains(&count), "completion {count}: a panic that the test asked for");
        }
        next
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.inner.bell()
    }

    fn conns_max(&self) -> usize {
        self.inner.conns_max()
    }

    fn syscalls(&self) -> u64 {
        self.inner.syscalls()
    }
}

const HOSTS: u32 = 25;
const PAGES: u32 = 20;
const CONNS: usize = 256;

/// Crawls a farm with a driver that panics at these completions; checks that every page is stored.
#[track_caller]
fn crawl_with_panics<D: Driver + 'static>(
    panics: &[u64],
    cores: Vec<usize>,
    make: impl Fn(Instant) -> io::Result<D> + Send + Sync + 'static,
) -> Summary {
    let spec =
        SiteSpec { hosts: HOSTS, pages: PAGES, page_bytes: 4_000, latency_ms: 2, ..SiteSpec::default() };
    let farm = Farm::start(FarmOptions { spec, ..FarmOptions::default() }).unwrap();
    let dir = TempDir::new();
    let data = dir.join("data");
    let hosts_file = dir.join("hosts");
    farm.write_hosts_file(&hosts_file).unwrap();

    let mut config = Config { cores, ..Config::default() };
    config.crawl.allow_net = vec!["127.0.0.0/8".parse().unwrap()];
    config.store.data = data.clone();
    config.url_server.req_host_per_sec = Rate(0.0);
    config.spider.fetches_max = CONNS;
    config.check().unwrap();
    let seeds: Vec<CrawlUrl> = farm.seeds().map(|seed| CrawlUrl::parse(&seed).unwrap()).collect();
    let hosts = HostsFile::read(&hosts_file).unwrap();
    let started = Instant::now();
    let completions = Arc::new(AtomicU64::new(0));
    let panic_at = Arc::new(panics.iter().copied().collect());
    let make_driver = {
        let completions = completions.clone();
        move |_: usize| {
            Ok(PanickyDriver {
                inner: make(started)?,
                completions: completions.clone(),
                panic_at: Arc::clone(&panic_at),
            })
        }
    };
    let directory = DataDir::open(&data).unwrap();
    let index = OpenIndex::open(&config, &directory, None, |_| {}).unwrap();
    let task = CrawlTask { seeds, feeds: Vec::new(), store: CrawlStore::Directory(directory), index };
    let names = move |_, _| Ok(Names::table(hosts));
    let node =
        Node::start(&NodeSetup::new(config.clone()), task, names, "panicky", make_driver, started).unwrap();
    let mut counted = node.desk().readings().counted();
    while !node.is_finished() {
        assert!(started.elapsed() < Duration::from_secs(60), "still at it: {:?}", node.snapshot());
        let now = node.desk().readings().counted();
        assert!(counted.iter().zip(&now).all(|(before, now)| before <= now), "{counted:?} fell to {now:?}");
        counted = now;
        std::thread::sleep(Duration::from_millis(5));
    }
    let summary = node.finish().unwrap();
    assert!(
        completions.load(Ordering::Relaxed) > panics.iter().copied().max().unwrap_or(0),
        "the panics came"
    );

    // A page whose answer was lost with the shard is fetched again, and may be stored twice; never not at all.
    let mut stored: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records(&data) {
        assert_eq!((&*record.result, record.success), ("ok", true), "{record:?}");
        stored.entry(record.url).or_default().push(record.sha1);
    }
    for (host, page) in (0..HOSTS).flat_map(|host| (0..PAGES).map(move |page| (host, page))) {
        let url = farm.url(host, page);
        let sha1 = sha1_hex(&farm.site().document(host, page, farm.port()));
        let found = stored.get(&url).unwrap_or_else(|| panic!("lost: {url}"));
        assert!(found.iter().all(|found| *found == sha1), "{url}");
    }
    assert_eq!(stored.len(), (HOSTS * PAGES) as usize);
    assert_eq!(farm.stats().denied_requests, 0, "the robots rules are learnt again");
    assert_eq!(summary.pages, u64::from(HOSTS * PAGES), "each page counts once");
    assert_eq!((summary.success, summary.pending), (summary.pages, 0));
    summary
}

fn epoll(started: Instant) -> io::Result<EpollDriver> {
    EpollDriver::new(CONNS, started)
}

#[test]
fn one_panic_in_the_middle() {
    assert_eq!(crawl_with_panics(&[400], vec![0], epoll).restarts, 1);
}

#[test]
fn one_panic_at_the_very_first_completion() {
    assert_eq!(crawl_with_panics(&[1], vec![0], epoll).restarts, 1);
}

#[test]
fn several_panics_on_two_cores() {
    assert_eq!(crawl_with_panics(&[50, 51, 300, 700, 701], vec![0, 1], epoll).restarts, 5);
}

#[test]
fn one_panic_with_io_uring() {
    let uring = |started| UringDriver::new(CONNS, started);
    assert_eq!(crawl_with_panics(&[400], vec![0], uring).restarts, 1);
}

#[test]
fn no_panic_no_restart() {
    assert_eq!(crawl_with_panics(&[], vec![0, 1], epoll).restarts, 0);
}

/// The same of a spider process: every order is answered once, and its page is stored.
#[test]
fn a_spider_answers_for_what_its_shard_had_open() {
    let spec = SiteSpec { hosts: 1, pages: 300, page_bytes: 2_000, latency_ms: 2, ..SiteSpec::default() };
    let farm = Farm::start(FarmOptions { spec, ..FarmOptions::default() }).unwrap();
    let dir = TempDir::new();
    let mut config = Config { cores: vec![0], ..Config::default() };
    config.crawl.allow_net = vec!["127.0.0.0/8".parse().unwrap()];
    config.store.data = dir.join("data");
    config.spider.fetches_max = 32;
    let started = Instant::now();
    let completions = Arc::new(AtomicU64::new(0));
    let panic_at = Arc::new(BTreeSet::from([1, 100, 101, 400]));
    let make_driver = move |_: usize| {
        let (completions, panic_at) = (completions.clone(), Arc::clone(&panic_at));
        Ok(PanickyDriver { inner: EpollDriver::new(32, started)?, completions, panic_at })
    };
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let links = LinksConfig { listen, dial: Vec::new(), links_max: 4, answers_end: false };
    let store = StoreAt::Directory(DataDir::open(&config.store.data).unwrap());
    let node =
        SpiderNode::start(&NodeSetup::new(config.clone()), links, store, "panicky", make_driver, started)
            .unwrap();
    let mut link = TcpStream::connect(node.bound().unwrap()).unwrap();
    link.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let lines: String =
        (0..300).map(|page| format!("{page} {page} 127.16.0.0 {}\n", farm.url(0, page))).collect();
    link.write_all(lines.as_bytes()).unwrap();
    let mut done = BTreeSet::new();
    let mut words = BufReader::new(link).lines();
    while done.len() < 300 {
        assert!(started.elapsed() < Duration::from_secs(60), "{} are done", done.len());
        let word = words.next().expect("the link stands").unwrap();
        if let Some(id) = word.strip_suffix(" DONE") {
            assert!(done.insert(id.parse::<u32>().unwrap()), "{id} is answered once");
        }
    }
    node.stop();
    drop(words);
    let summary = node.finish().unwrap();
    assert_eq!((summary.pages, summary.success, summary.restarts), (300, 300, 4));
    let stored: BTreeSet<u32> = records(&config.store.data).iter().map(|record| record.doc_id).collect();
    assert_eq!(stored, done);
}
