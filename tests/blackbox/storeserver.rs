//! The promise: a store server takes records as the wire format tells them, from any number of spiders at once, and
//! counts to each of them what is safely on disk: a count survives kill -9. Nonsense closes the connection that it came
//! over; the whole records before it are kept, and nobody else notices.

use crate::support::*;
use nephila::proto::record::{HttpCode, ResultCode};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub fn command(data: &Path) -> Command {
    let mut command = nephila();
    command.args(["storeserver", "--json", "--data"]).arg(data);
    command
}

/// A store server that listens there, and where.
#[track_caller]
pub fn listening_on(command: &mut Command, listen: &str) -> (Running, SocketAddr) {
    let running = Running::start(command.args(["--listen", listen]));
    let addr = wait_for("it listens", PATIENCE, || {
        let stderr = running.stderr();
        let line = stderr.lines().find(|line| line.starts_with("storeserver: listening on "))?.to_string();
        line.rsplit(' ').next()?.parse().ok()
    });
    (running, addr)
}

#[track_caller]
fn listening(command: &mut Command) -> (Running, SocketAddr) {
    listening_on(command, "127.0.0.1:0")
}

#[track_caller]
pub fn stop(server: Running) -> Value {
    server.signal(Signal::SIGTERM);
    let report = server.wait(PATIENCE).done().json();
    for name in ["connections", "records", "bytes", "stored_bytes", "bad_connections"] {
        assert!(report[name].is_u64(), "{name} in {report}");
    }
    for name in ["seconds", "cpu_us_per_record"] {
        assert!(report[name].as_f64().is_some_and(|n| n.is_finite() && n >= 0.0), "{name} in {report}");
    }
    report
}

/// A record by the table of the format, and by nothing of ours.
pub struct Sent {
    pub doc_id: u32,
    pub success: u8,
    pub result: u8,
    pub http_code: u8,
    pub ms: u32,
    pub url: Vec<u8>,
    pub new_url: Vec<u8>,
    pub document: Vec<u8>,
}

impl Sent {
    pub fn page(doc_id: u32, url: &str, document: impl AsRef<[u8]>) -> Sent {
        Sent {
            doc_id,
            success: 1,
            result: ResultCode::Ok as u8,
            http_code: HttpCode::from_status(200).as_u8(),
            ms: 7,
            url: url.as_bytes().to_vec(),
            new_url: Vec::new(),
            document: document.as_ref().to_vec(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.doc_id.to_be_bytes().to_vec();
        bytes.extend([self.success, self.result, self.http_code, 0]);
        bytes.extend(self.ms.to_be_bytes());
        bytes.extend((self.url.len() as u16).to_be_bytes());
        bytes.extend((self.new_url.len() as u16).to_be_bytes());
        bytes.extend((self.document.len() as u32).to_be_bytes());
        bytes.extend([&self.url[..], &self.new_url, &self.document].concat());
        bytes
    }
}

fn page(n: u32) -> Sent {
    Sent::page(n, &format!("http://a.test/{n}"), format!("page {n} {}", filling(&n.to_string(), 500)))
}

/// A spider's end of a connection.
struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
    count: u64,
}

impl Client {
    fn dial(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, bytes: Vec::new(), count: 0 }
    }

    fn send(&mut self, record: &Sent) {
        self.stream.write_all(&record.bytes()).unwrap();
    }

    /// The next count; `None` at the end.
    #[track_caller]
    fn next_count(&mut self) -> Option<u64> {
        let mut buffer = [0; 64];
        while self.bytes.len() < 8 {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    assert!(self.bytes.is_empty(), "a count is eight bytes");
                    return None;
                }
                Ok(n) => self.bytes.extend(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("no count: {e}"),
            }
        }
        let count = u64::from_be_bytes(self.bytes.drain(..8).collect::<Vec<u8>>().try_into().unwrap());
        // A peer that was long told nothing is told the last one again.
        assert!(count >= self.count, "it was {}, and is {count}", self.count);
        self.count = count;
        Some(count)
    }

    #[track_caller]
    fn counted(&mut self, records: u64) {
        while self.count < records {
            self.next_count().expect("a count");
        }
        assert_eq!(self.count, records);
    }

    /// The last count before the server closed.
    #[track_caller]
    fn ended(&mut self) -> u64 {
        while self.next_count().is_some() {}
        self.count
    }
}

#[test]
fn records_in_odd_pieces_are_stored_and_counted() {
    let dir = TempDir::new();
    let (server, addr) = listening(&mut command(&dir.join("data")));
    let mut client = Client::dial(addr);
    let mut sent: Vec<Sent> = (0..300).map(page).collect();
    sent.push(Sent {
        result: ResultCode::Redirect as u8,
        success: 0,
        http_code: HttpCode::from_status(301).as_u8(),
        new_url: b"http://b.test/moved".to_vec(),
        document: Vec::new(),
        ..Sent::page(1_000, "http://a.test/old", "")
    });
    // Codes of another maker's spider, and the widest fields.
    sent.push(Sent {
        result: 200,
        http_code: 255,
        ms: u32::MAX,
        ..Sent::page(u32::MAX, "odd:\u{e9}", [0xff])
    });
    sent.push(Sent::page(1, &format!("http://long.test/{}", "u".repeat(65_518)), vec![b'd'; 16 << 20]));
    sent.push(Sent { http_code: 0, success: 0, result: 20, ..Sent::page(2, "http://slow.test/", "") });
    let stream: Vec<u8> = sent.iter().flat_map(Sent::bytes).collect();
    let mut rest = &stream[..];
    for size in [1, 2, 3, 5, 19, 20, 21, 400, 1_000, 1_460].into_iter().cycle().take(500) {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        client.stream.write_all(piece).unwrap();
        rest = after;
    }
    client.stream.write_all(rest).unwrap();
    client.counted(304);
    // Whoever is done says so, and gets no more than the end.
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.next_count(), None);
    let report = stop(server);
    assert_eq!((&report["records"], &report["connections"]), (&304.into(), &1.into()), "{report}");
    assert_eq!((&report["bytes"], &report["bad_connections"]), (&stream.len().into(), &0.into()), "{report}");

    let stored = stored(&dir.join("data"));
    assert_eq!(stored.len(), 304);
    for record in &sent {
        let url = str::from_utf8(&record.url).unwrap();
        let listed = &stored[url];
        assert_eq!((listed.doc_id, listed.ms), (record.doc_id, u64::from(record.ms)), "{listed:?}");
        assert_eq!(listed.success, record.success == 1);
        assert_eq!((listed.bytes, &listed.sha1), (record.document.len() as u64, &sha1_hex(&record.document)));
        assert_eq!(listed.new_url.as_deref().unwrap_or("").as_bytes(), record.new_url);
        assert_eq!((&*listed.ip, listed.flags.len()), ("0.0.0.0", 0));
    }
    let told = |url: &str| (stored[url].result.clone(), stored[url].http_status);
    assert_eq!(told("http://a.test/old"), ("redirect".to_string(), Some(301)));
    assert_eq!(told("odd:\u{e9}"), ("other".to_string(), None));
    assert_eq!(told("http://slow.test/"), ("read_timeout".to_string(), None));
    assert_eq!(cat(&dir.join("data"), "http://a.test/17"), sent[17].document);
}

#[test]
fn two_hundred_connections_at_once() {
    let dir = TempDir::new();
    let (server, addr) = listening(&mut command(&dir.join("data")));
    // These stay idle, in the middle of a record or before the first, for as long as it lasts.
    let mut idle: Vec<Client> = (0..20).map(|_| Client::dial(addr)).collect();
    idle.iter_mut().step_by(2).for_each(|client| client.stream.write_all(&page(1).bytes()[..30]).unwrap());
    let mut clients: Vec<Client> = (0..200).map(|_| Client::dial(addr)).collect();
    for round in 0..10 {
        for (n, client) in clients.iter_mut().enumerate() {
            client.send(&page(n as u32 * 10 + round));
        }
    }
    clients.iter_mut().for_each(|client| client.counted(10));
    for (n, client) in idle.iter_mut().enumerate() {
        let rest = if n % 2 == 0 { page(1).bytes()[30..].to_vec() } else { page(20_000 + n as u32).bytes() };
        client.stream.write_all(&rest).unwrap();
        client.counted(1);
    }
    let report = stop(server);
    assert_eq!((&report["records"], &report["connections"]), (&2_020.into(), &220.into()), "{report}");
    let urls: BTreeSet<String> = records(&dir.join("data")).into_iter().map(|record| record.url).collect();
    assert!((0..2_000).all(|n| urls.contains(&format!("http://a.test/{n}"))));
    assert_eq!(urls.len(), 2_010);
}

#[test]
fn nonsense_closes_its_own_connection_and_no_other() {
    let dir = TempDir::new();
    let (server, addr) = listening(command(&dir.join("data")).args(["--max-doc-size", "1000"]));
    let mut bystander = Client::dial(addr);
    bystander.send(&Sent::page(0, "http://by.test/0", "here"));
    let good = Sent::page(1, "http://good.test/", "good");
    let with = |change: fn(&mut Sent)| {
        let mut record = Sent::page(2, "http://bad.test/", "bad");
        change(&mut record);
        record.bytes()
    };
    let mut huge = good.bytes();
    huge[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("success", with(|record| record.success = 2), "success is 2"),
        ("success 255", with(|record| record.success = 255), "success is 255"),
        (
            "one byte too many",
            with(|record| record.document = vec![b'x'; 1_001]),
            "a document of 1001 bytes, over",
        ),
        ("a header that lies", huge[..20].to_vec(), "a document of 4294967295 bytes, over"),
        ("url", with(|record| record.url.push(0xff)), "a URL that is not UTF-8"),
        ("new url", with(|record| record.new_url = b"http://\xc3".to_vec()), "a new URL that is not UTF-8"),
        ("cut in the header", good.bytes()[..19].to_vec(), "ends inside a record"),
        ("cut in the document", good.bytes()[..good.bytes().len() - 1].to_vec(), "ends inside a record"),
    ];
    for (n, (name, nonsense, said)) in cases.iter().enumerate() {
        let mut client = Client::dial(addr);
        let before = [
            Sent::page(1, &format!("http://kept.test/{n}/1"), "kept").bytes(),
            Sent::page(2, &format!("http://kept.test/{n}/2"), vec![b'x'; 1_000]).bytes(),
        ];
        let peer = client.stream.local_addr().unwrap();
        client.stream.write_all(&[&before.concat()[..], nonsense].concat()).unwrap();
        if said.contains("inside") {
            client.stream.shutdown(Shutdown::Write).unwrap();
        } else {
            // It is not waited for: what comes after nonsense is thrown away.
            let _ = client.stream.write_all(&Sent::page(3, "http://after.test/", "after").bytes());
        }
        assert_eq!(client.ended(), 2, "{name}: what came before is counted");
        // The connection may be gone a moment before it is told why.
        let stderr = wait_for("it is told", PATIENCE, || {
            let stderr = server.stderr();
            stderr.contains(&peer.to_string()).then_some(stderr)
        });
        let lines: Vec<&str> = stderr.lines().filter(|line| line.contains(&peer.to_string())).collect();
        assert!(
            lines.len() == 1 && lines[0].contains(said) && lines[0].contains("2 whole"),
            "{name}: {lines:?}"
        );
        bystander.send(&Sent::page(n as u32, &format!("http://by.test/{}", n + 1), "still here"));
        bystander.counted(n as u64 + 2);
    }
    // The end between two records is no fault.
    let mut client = Client::dial(addr);
    client.send(&good);
    client.counted(1);
    drop(client);
    drop(Client::dial(addr));
    let report = stop(server);
    assert_eq!(report["bad_connections"], 8, "{report}");
    // The last one may have come too late to be let in.
    assert!([10, 11].contains(&report["connections"].as_u64().unwrap()), "{report}");
    let stored = stored(&dir.join("data"));
    for n in 0..cases.len() {
        assert_eq!(stored[&format!("http://kept.test/{n}/1")].bytes, 4);
        assert_eq!(stored[&format!("http://kept.test/{n}/2")].bytes, 1_000);
    }
    let others: BTreeSet<&str> = stored
        .keys()
        .map(String::as_str)
        .filter(|url| !url.contains("kept") && !url.contains("by."))
        .collect();
    assert_eq!(others, BTreeSet::from(["http://good.test/"]), "nothing partial, nothing after it");
}

/// Twenty times at a moment of chance: whatever was counted is there, byte for byte.
#[test]
fn a_count_survives_kill_9() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let mut counted = BTreeMap::new();
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..20u32 {
        let (server, addr) = listening(command(&data).args(["--cores", "0"]));
        let clients: Vec<_> = (0..3u32)
            .map(|n| {
                let mut client = Client::dial(addr);
                let mut sender = client.stream.try_clone().unwrap();
                let first = round * 100_000 + n * 30_000;
                let sending = std::thread::spawn(move || {
                    (first..first + 30_000).try_for_each(|id| sender.write_all(&page(id).bytes()))
                });
                let counting = std::thread::spawn(move || {
                    // Killed with bytes unread, its end may be a reset, and half a count may stand before it.
                    let mut buffer = [0; 4_096];
                    let mut bytes = Vec::new();
                    while let Ok(n @ 1..) = client.stream.read(&mut buffer) {
                        bytes.extend(&buffer[..n]);
                    }
                    let counts =
                        bytes.chunks_exact(8).map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
                    counts.max().unwrap_or(0) as u32
                });
                (first, sending, counting)
            })
            .collect();
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        std::thread::sleep(Duration::from_micros(20_000 + chance % 150_000));
        server.signal(Signal::SIGKILL);
        drop(server);
        for (first, sending, counting) in clients {
            let _ = sending.join().unwrap();
            for id in first..first + counting.join().unwrap() {
                counted.insert(format!("http://a.test/{id}"), id);
            }
        }
    }
    assert!(counted.len() > 200, "{} were counted", counted.len());
    let stored: BTreeMap<String, Listed> =
        records(&data).into_iter().map(|record| (record.url.clone(), record)).collect();
    for (url, id) in &counted {
        let record = stored.get(url).unwrap_or_else(|| panic!("{url} was counted and is not there"));
        assert_eq!(record.sha1, sha1_hex(&page(*id).document));
    }
}

#[test]
fn stopping_stores_and_counts_what_was_received() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let dir = TempDir::new();
        let config = dir.write("slow.toml", "[store]\ncommit_ms = 300\n");
        let (server, addr) = listening(command(&dir.join("data")).arg("--config").arg(config));
        let mut client = Client::dial(addr);
        let last = page(50).bytes();
        let mut stream: Vec<u8> = (0..50).flat_map(|n| page(n).bytes()).collect();
        stream.extend(&last[..last.len() - 1]);
        client.stream.write_all(&stream).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        server.signal(signal);
        assert_eq!(client.ended(), 50);
        drop(client);
        let report = server.wait(PATIENCE).done().json();
        assert_eq!(report["records"], 50, "{report}");
        assert!(TcpStream::connect(addr).is_err());
        assert_eq!(stored(&dir.join("data")).len(), 50);
        let segments = std::fs::read_dir(dir.join("data/segments")).unwrap();
        let names: Vec<_> = segments.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let is_sealed = |name: &String| name.ends_with(".seg") || name.ends_with(".idx");
        assert!(names.iter().all(is_sealed), "sealed and indexed: {names:?}");
    }
}

/// Whoever does not read its counts is served like others, and so are others.
#[test]
fn counts_need_not_be_read() {
    let dir = TempDir::new();
    let config = dir.write("fast.toml", "[store]\ncommit_ms = 1\n");
    let (server, addr) = listening(command(&dir.join("data")).arg("--config").arg(config));
    let mut deaf = Client::dial(addr);
    for n in 0..2_000 {
        deaf.send(&page(n));
    }
    let mut client = Client::dial(addr);
    client.send(&page(5_000));
    client.counted(1);
    drop(deaf);
    wait_for("all of it is stored", PATIENCE, || (records(&dir.join("data")).len() == 2_001).then_some(()));
    assert_eq!(stop(server)["bad_connections"], 0);
}

#[test]
fn every_failure_has_its_status_and_one_line() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let (server, addr) = listening(&mut command(&data));
    let here = addr.to_string();
    let (data, other) = (data.to_str().unwrap(), dir.join("other"));
    let other = other.to_str().unwrap();
    for (args, code, said) in [
        (vec!["--data", other], 2, "--listen"),
        (vec!["--listen", "nowhere", "--data", other], 2, "--listen nowhere"),
        (vec!["--listen", "127.0.0.1:0", "--data", other, "--cores", "x"], 2, "--cores"),
        (vec!["--listen", "127.0.0.1:0", "--data", other, "--max-doc-size", "99999999"], 2, "segment_bytes"),
        (vec!["--listen", &here, "--data", other], 3, "cannot listen on"),
        (vec!["--listen", "127.0.0.1:0", "--data", data], 3, "in use"),
        (vec!["--listen", "127.0.0.1:0", "--data", "/proc/none"], 3, "data directory"),
    ] {
        let ended = run(["storeserver"].iter().chain(&args));
        assert_eq!((ended.code(), ended.text()), (code, String::new()), "{args:?}: {}", ended.stderr);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].contains(said), "{args:?}: {lines:?}");
    }
    stop(server);
    let help = run(["storeserver", "--help"]).done().text();
    assert!(help.contains("nephila storeserver --listen"), "{help}");
    // Plain text, without --json.
    let mut command = nephila();
    command.args(["storeserver", "--listen", "127.0.0.1:0", "--data", data]);
    let server = Running::start(&mut command);
    wait_for("it listens", PATIENCE, || server.stderr().contains("listening").then_some(()));
    server.signal(Signal::SIGINT);
    let ended = server.wait(PATIENCE).done();
    assert!(ended.text().contains("records") && !ended.text().contains('{'), "{}", ended.text());
}
