//! The promise: with `--store` a spider keeps a record until its store server has counted it, says DONE only then, and
//! sends it again when the connection breaks: nothing is lost, whatever becomes of the store server. One that never
//! counts is found out after two seconds.

use crate::crowds::SmallDisk;
use crate::link::Link;
use crate::storeserver;
use crate::support::*;
use crate::urlserver;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn spider_command(store: SocketAddr) -> Command {
    let mut command = nephila();
    command.args(["spider", "--json", "--allow-net", "127.0.0.0/8", "--cores", "0", "--fetches-max", "8"]);
    command.arg("--store").arg(store.to_string());
    command
}

/// A spider that listens, and a link to it.
#[track_caller]
fn linked(store: SocketAddr) -> (Running, Link) {
    let spider = Running::start(spider_command(store).args(["--listen", "127.0.0.1:0"]));
    let addr: SocketAddr = wait_for("it listens", PATIENCE, || {
        let stderr = spider.stderr();
        let line = stderr.lines().find(|line| line.starts_with("spider: listening on "))?.to_string();
        line.rsplit(' ').next()?.parse().ok()
    });
    let link = Link::dial(addr);
    (spider, link)
}

/// In push, so that nothing but answers comes after the first GET.
fn work(id: u32, server: &LogServer) -> String {
    format!("{id} {id} 127.0.0.1 {}", server.url(&format!("/{id}")))
}

fn web() -> LogServer {
    LogServer::start(|asked| Reply::text(&format!("page {}", asked.target)))
}

/// A store server of ten lines.
struct FakeStore {
    stream: TcpStream,
    bytes: Vec<u8>,
    records: u64,
}

impl FakeStore {
    #[track_caller]
    fn accept(listener: &TcpListener) -> FakeStore {
        let stream = Link::accept(listener).stream;
        FakeStore { stream, bytes: Vec::new(), records: 0 }
    }

    /// Document id, URL and document of the next record.
    #[track_caller]
    fn record(&mut self) -> (u32, String, Vec<u8>) {
        let header = self.take(20);
        let number = |at: usize, len: usize| {
            header[at..at + len].iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte))
        };
        let url = String::from_utf8(self.take(number(12, 2))).unwrap();
        self.take(number(14, 2));
        let document = self.take(number(16, 4));
        assert_eq!((header[4], header[5], header[7]), (1, 1, 0), "{url}");
        self.records += 1;
        (number(0, 4) as u32, url, document)
    }

    #[track_caller]
    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut buffer = [0; 4_096];
        while self.bytes.len() < count {
            let n = self.stream.read(&mut buffer).expect("more of a record");
            assert!(n > 0, "it goes on");
            self.bytes.extend(&buffer[..n]);
        }
        self.bytes.drain(..count).collect()
    }

    fn count(&mut self, count: u64) {
        self.stream.write_all(&count.to_be_bytes()).unwrap();
    }
}

fn fake() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// The newest record of every URL.
#[track_caller]
fn newest(data: &Path) -> BTreeMap<String, Listed> {
    let mut command = nephila();
    command.args(["store", "ls", "--json", "--data"]).arg(data);
    let run = Running::start(&mut command).wait(PATIENCE).done();
    let mut by_url = BTreeMap::new();
    for line in run.json_lines() {
        let listed: Listed = serde_json::from_value(line).unwrap();
        if let Some(twice) = by_url.insert(listed.url.clone(), listed) {
            panic!("listed twice: {twice:?}");
        }
    }
    by_url
}

#[test]
fn done_waits_for_the_count() {
    let (server, (listener, store)) = (web(), fake());
    let (spider, mut link) = linked(store);
    let mut fake = FakeStore::accept(&listener);
    for id in 1..=3 {
        link.send(&work(id, &server));
    }
    let mut got = BTreeMap::new();
    for _ in 0..3 {
        let (doc_id, url, document) = fake.record();
        got.insert(doc_id, (url, document));
    }
    for id in 1..=3u32 {
        let expected = (server.url(&format!("/{id}")), format!("page /{id}").into_bytes());
        assert_eq!(got[&id], expected);
    }
    let doc_ids: Vec<u32> = got.keys().copied().collect();
    assert_eq!(doc_ids, [1, 2, 3]);
    assert!(link.line().unwrap().starts_with("GET "));
    link.says_nothing_for(Duration::from_millis(300));
    fake.count(2);
    assert_eq!(link.words(2).len(), 2);
    // It counts, so that it is believed to count for good: two seconds are not the end of patience.
    link.says_nothing_for(Duration::from_millis(2_500));
    fake.count(3);
    assert_eq!(link.words(1).len(), 1);
    spider.signal(Signal::SIGTERM);
    let report = spider.wait(PATIENCE).done();
    assert!(
        report.stderr.contains("the connection stands") && !report.stderr.contains("counts no"),
        "{}",
        report.stderr
    );
    assert_eq!(report.json()["success"], 3);
}

#[test]
fn a_store_server_that_never_counts_is_found_out() {
    let (server, (listener, store)) = (web(), fake());
    let (spider, mut link) = linked(store);
    let mut fake = FakeStore::accept(&listener);
    link.send(&work(1, &server));
    fake.record();
    let sent = Instant::now();
    assert_eq!(link.word(), "1 DONE");
    let waited = sent.elapsed();
    assert!(waited.as_millis() >= 1_900, "{waited:?}");
    // From here on DONE follows the sending, and nothing is counted.
    for id in 2..=20 {
        link.send(&work(id, &server));
    }
    assert_eq!(link.words(19).len(), 19);
    (0..19).for_each(|_| drop(fake.record()));
    // And back again when it counts after all.
    fake.count(20);
    wait_for("it says so", PATIENCE, || spider.stderr().contains("after all").then_some(()));
    link.send(&work(21, &server));
    fake.record();
    link.says_nothing_for(Duration::from_millis(300));
    fake.count(21);
    assert_eq!(link.word(), "21 DONE");
    assert_eq!(spider.stderr().matches("it counts no records").count(), 1, "{}", spider.stderr());
    spider.signal(Signal::SIGTERM);
    spider.wait(PATIENCE).done();
}

#[test]
fn what_was_not_counted_comes_again() {
    let (server, (listener, store)) = (web(), fake());
    let (spider, mut link) = linked(store);
    let mut fake = FakeStore::accept(&listener);
    for id in 1..=6 {
        link.send(&work(id, &server));
    }
    let first: Vec<_> = (0..4).map(|_| fake.record()).collect();
    fake.count(2);
    assert_eq!(link.words(2).len(), 2);
    // Broken in the middle of the fifth.
    fake.take(7);
    drop(fake);
    let mut fake = FakeStore::accept(&listener);
    let again: Vec<_> = (0..4).map(|_| fake.record()).collect();
    assert_eq!(again[..2], first[2..], "in the same order");
    // It has counted before, so that its silence is no sign.
    link.says_nothing_for(Duration::from_millis(2_500));
    // A count that cannot be is not believed: the connection is made anew.
    fake.count(5);
    let mut fake = FakeStore::accept(&listener);
    let third: Vec<_> = (0..4).map(|_| fake.record()).collect();
    assert_eq!(third, again);
    fake.count(4);
    assert_eq!(link.words(4).len(), 4);
    let stderr = spider.stderr();
    assert!(
        stderr.contains("the connection broke") && stderr.contains("it counts 5 records where 4"),
        "{stderr}"
    );
    spider.signal(Signal::SIGTERM);
    assert_eq!(spider.wait(PATIENCE).done().json()["success"], 6);
}

#[test]
fn a_store_server_that_is_away_is_waited_for() {
    let dir = TempDir::new();
    let server = web();
    let store = fake().1;
    let (spider, mut link) = linked(store);
    wait_for("it says so", PATIENCE, || spider.stderr().contains("trying until it stands").then_some(()));
    link.send(&work(1, &server));
    assert!(link.line().unwrap().starts_with("GET "));
    link.says_nothing_for(Duration::from_millis(500));
    let (running, _) =
        storeserver::listening_on(&mut storeserver::command(&dir.join("data")), &store.to_string());
    assert_eq!(link.word(), "1 DONE");
    assert_eq!(stored(&dir.join("data"))[&server.url("/1")].doc_id, 1);
    storeserver::stop(running);

    // Told to stop while it is away, it gives up at last, with a status that says so.
    link.send(&work(2, &server));
    wait_for("it is fetched", PATIENCE, || (server.asked().len() == 2).then_some(()));
    let told = Instant::now();
    spider.signal(Signal::SIGTERM);
    let ended = spider.wait(PATIENCE);
    assert_eq!(ended.code(), 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 record could not be delivered"), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 record waits to be counted"), "{}", ended.stderr);
    assert!(told.elapsed().as_secs() >= 9, "{:?}", told.elapsed());
    assert_eq!(link.line(), None, "no DONE for what was not stored");
}

#[test]
fn one_place_for_documents() {
    let listen = ["spider", "--listen", "127.0.0.1:0"];
    for (args, said) in [
        (vec!["--store", "127.0.0.1:1", "--data", "x"], "--data"),
        (vec!["--store", "nowhere"], "--store nowhere"),
        (vec!["--store", "host:0"], "--store host:0"),
    ] {
        let ended = run(listen.iter().chain(&args));
        assert_eq!(ended.code(), 2, "{}", ended.stderr);
        assert!(ended.stderr.lines().count() == 1 && ended.stderr.contains(said), "{}", ended.stderr);
    }
}

/// More than a line holds, while the store server takes nothing: fetching waits, and nothing is lost.
#[test]
fn a_store_server_that_does_not_read_holds_the_spider_back() {
    let body = filling("large", 4 << 20);
    let page = body.clone();
    let server = LogServer::start(move |_| Reply::text(&page));
    let (listener, store) = fake();
    let (spider, mut link) = linked(store);
    let mut fake = FakeStore::accept(&listener);
    for id in 1..=40 {
        link.send(&work(id, &server));
    }
    // 64 MiB hold fifteen of them; eight more are open or wait to be handed over.
    let mut asked = 0;
    wait_for("it comes to rest", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(700));
        let before = std::mem::replace(&mut asked, server.asked().len());
        (asked > 0 && asked == before).then_some(())
    });
    assert!((15..=25).contains(&asked), "{asked} fetched");
    let mut done = BTreeSet::new();
    for n in 1..=40 {
        let (_, _, document) = fake.record();
        assert!(document == body.as_bytes());
        fake.count(n);
        done.insert(link.word());
    }
    assert_eq!(done.len(), 40);
    spider.signal(Signal::SIGTERM);
    assert_eq!(spider.wait(PATIENCE).done().json()["success"], 40);
}

fn farm_urls(farm: &Farm, hosts: u32, pages: u32) -> Vec<String> {
    (0..hosts)
        .flat_map(|host| (0..pages).map(move |page| (host, page)))
        .map(|(h, p)| farm.url(h, p))
        .collect()
}

/// The three roles in processes of their own.
#[test]
fn a_farm_is_stored_by_way_of_all_three() {
    let spec = SiteSpec { hosts: 12, pages: 25, page_bytes: 3_000, ..SiteSpec::default() };
    let (farm, dir) = (Farm::start(spec), TempDir::new());
    let urls = farm_urls(&farm, 12, 25);
    let mut command = urlserver::command(&dir, urlserver::LISTEN, &urls);
    std::fs::copy(farm.hosts_file(), dir.join("hosts")).unwrap();
    let (store, store_addr) =
        storeserver::listening_on(&mut storeserver::command(&dir.join("documents")), "127.0.0.1:0");
    let (running, addr) = urlserver::listening(&mut command);
    let spiders: Vec<Running> = DRIVERS
        .iter()
        .map(|driver| {
            let mut command = spider_command(store_addr);
            command.current_dir(dir.path()).args(["--driver", driver]);
            Running::start(command.arg("--urlserver").arg(addr.to_string()))
        })
        .collect();
    let report = urlserver::ended(running);
    assert_eq!((&report["known"], &report["pending"]), (&300.into(), &0.into()), "{report}");
    for spider in spiders {
        spider.signal(Signal::SIGTERM);
        spider.wait(PATIENCE).done();
    }
    let report = storeserver::stop(store);
    assert_eq!((&report["records"], &report["bad_connections"]), (&300.into(), &0.into()), "{report}");
    let stored = stored(&dir.join("documents"));
    assert_eq!(stored.keys().cloned().collect::<BTreeSet<_>>(), urls.iter().cloned().collect());
    for (host, page) in (0..12).flat_map(|host| (0..25).map(move |page| (host, page))) {
        let record = &stored[&farm.url(host, page)];
        assert_eq!(record.sha1, sha1_hex(&farm.site.document(host, page, farm.port)), "{record:?}");
        assert!(record.success);
    }
    // A spider without a data directory leaves none behind.
    assert!(!dir.join("nephila-data").exists());
}

#[test]
fn a_store_server_killed_again_and_again_loses_nothing() {
    let server = LogServer::start(|asked| {
        Reply::text(&format!("page {} {}", asked.target, filling(&asked.target, 2_000)))
    });
    let dir = TempDir::new();
    let data = dir.join("documents");
    let (mut store, addr) = storeserver::listening_on(&mut storeserver::command(&data), "127.0.0.1:0");
    let (spider, mut link) = linked(addr);
    let (total, mut next, mut open) = (3_000u32, 1u32, 0);
    let mut done = BTreeSet::new();
    let mut kills = 0;
    while done.len() < total as usize {
        while open < 8 && next <= total {
            link.send(&work(next, &server));
            next += 1;
            open += 1;
        }
        let word = link.word();
        let id: u32 = word.strip_suffix(" DONE").unwrap_or_else(|| panic!("{word:?}")).parse().unwrap();
        assert!(done.insert(id), "{id} is answered once");
        open -= 1;
        if done.len() % 500 == 250 {
            store.signal(Signal::SIGKILL);
            drop(store);
            kills += 1;
            // Every one that was answered for is there, whatever else is.
            let here = newest(&data);
            for id in &done {
                assert!(here.contains_key(&server.url(&format!("/{id}"))), "{id} was DONE and is not there");
            }
            store = storeserver::listening_on(&mut storeserver::command(&data), &addr.to_string()).0;
        }
    }
    assert_eq!(kills, 6);
    spider.signal(Signal::SIGTERM);
    let ended = spider.wait(PATIENCE).done();
    assert_eq!(ended.json()["success"], total);
    assert!(ended.stderr.contains("the connection broke"), "{}", ended.stderr);
    storeserver::stop(store);
    let here = newest(&data);
    assert_eq!(here.len(), total as usize);
    for id in 1..=total {
        let target = format!("/{id}");
        let expected = sha1_hex(format!("page {target} {}", filling(&target, 2_000)).as_bytes());
        assert_eq!(here[&server.url(&target)].sha1, expected);
    }
}

/// A store server without room takes nothing and counts nothing, and no DONE is said; with room it goes on.
#[test]
fn a_full_disk_holds_everybody_back() {
    let dir = TempDir::new();
    let Some(disk) = SmallDisk::mount(dir.join("disk")) else {
        println!("nothing can be mounted here, so no disk can be filled: skipped");
        return;
    };
    let server = LogServer::start(|asked| Reply::text(&filling(&asked.target, 60_000)));
    let settings = "[spider]\nmax_doc_size = 65536\n[store]\nsegment_bytes = 1000000\n";
    let data = disk.0.join("data");
    let mut command = storeserver::command(&data);
    command.args(["--cores", "0", "--config"]).arg(dir.write("store.toml", settings));
    let (store, addr) = storeserver::listening_on(&mut command, "127.0.0.1:0");
    let filler = disk.fill();
    let (spider, mut link) = linked(addr);
    for id in 1..=60 {
        link.send(&work(id, &server));
    }
    wait_for("it says that it waits", PATIENCE, || {
        store.stderr().contains("receiving waits for disk space").then_some(())
    });
    std::thread::sleep(Duration::from_secs(3));
    let here = records(&data).len();
    assert!(here < 20, "one segment holds {here}");
    std::fs::remove_file(filler).unwrap();
    assert_eq!(link.words(60).len(), 60, "each once");
    assert!(!spider.stderr().contains("counts no records"), "{}", spider.stderr());
    spider.signal(Signal::SIGTERM);
    spider.wait(PATIENCE).done();
    let report = storeserver::stop(store);
    assert_eq!((&report["records"], &report["connections"]), (&60.into(), &1.into()), "{report}");
    assert_eq!(stored(&data).len(), 60);
}
