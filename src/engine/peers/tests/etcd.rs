//! The driver of an etcd, held against a register that a thread of the test keeps: what it says of a change is so, whatever
//! becomes of requests and answers.

use crate::base::{Now, Rng};
use crate::engine::peers::EtcdCouncil;
use crate::engine::peers::etcd_line::EtcdLine;
use crate::engine::peers::outside::{Decided, Outside, OutsideCouncil};
use crate::engine::runtime::health::Health;
use crate::peer::beat::Wish;
use crate::peer::register::{Change, Outcome, Register, Value};
use crate::proto::auth::{read_base64, write_base64};
use crate::rings::Doorbell;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The connection ends before anything is done.
    Lost,
    /// It is done, and the connection ends in the middle of the answer.
    Cut,
    /// It is done, and the answer is none.
    Garbage,
    /// Nothing is done, and an error says so.
    Refused,
    /// It is done, and the answer never ends.
    Huge,
    /// The answer is of another etcd.
    Stranger,
}

const FATES: [Fate; 7] =
    [Fate::Answered, Fate::Lost, Fate::Cut, Fate::Garbage, Fate::Refused, Fate::Huge, Fate::Stranger];

type Keys = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// An etcd as the test makes it.
struct FakeEtcd {
    address: String,
    /// What the next requests meet, the next one last; then they are answered.
    fates: Arc<Mutex<Vec<Fate>>>,
    done: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
}

impl FakeEtcd {
    fn start(keys: &Keys) -> FakeEtcd {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (fates, done, ends) = (Arc::default(), Arc::default(), Arc::default());
        let etcd = FakeEtcd { address, fates, done, ends };
        let (keys, fates) = (keys.clone(), etcd.fates.clone());
        let (done, ends) = (etcd.done.clone(), etcd.ends.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let fate = fates.lock().unwrap().pop().unwrap_or(Fate::Answered);
                let _ = answer(stream.unwrap(), fate, &keys, &done);
            }
        });
        etcd
    }

    fn meets(&self, fates: &[Fate]) {
        *self.fates.lock().unwrap() = fates.iter().rev().copied().collect();
    }
}

impl Drop for FakeEtcd {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        let _ = TcpStream::connect(&self.address);
    }
}

fn answer(mut stream: TcpStream, fate: Fate, keys: &Keys, done: &AtomicU64) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut bytes = Vec::new();
    let (path, body) = loop {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("Content-Length: ").nth(1).unwrap().parse::<usize>().unwrap();
        if body.len() >= length {
            break (head.split(' ').nth(1).unwrap().to_string(), body.to_string());
        }
    };
    if fate == Fate::Lost {
        return Ok(());
    }
    let mut told = match fate {
        Fate::Refused => return write(&mut stream, 503, "{\"error\":\"etcdserver: request timed out\"}"),
        _ => apply(&path, &serde_json::from_str(&body).unwrap(), &mut keys.lock().unwrap()),
    };
    done.fetch_add(1, Ordering::Relaxed);
    if fate == Fate::Stranger {
        told["header"]["cluster_id"] = json!("8");
    }
    let text = told.to_string();
    match fate {
        Fate::Cut => stream.write_all(&with_head(200, &text)[..20 + text.len() / 2]),
        Fate::Garbage => write(&mut stream, 200, "{\"header\":7}"),
        Fate::Huge => {
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n")?;
            // Until the other side has had enough.
            loop {
                stream.write_all(&[b' '; 64 << 10])?;
            }
        }
        _ => write(&mut stream, 200, &text),
    }
}

fn write(stream: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    stream.write_all(&with_head(status, body))
}

fn with_head(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.0 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn bytes_of(value: &Json) -> Vec<u8> {
    read_base64(value.as_str().unwrap().as_bytes()).unwrap()
}

fn text_of(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_base64(bytes, &mut out);
    String::from_utf8(out).unwrap()
}

/// What etcd would do.
fn apply(path: &str, body: &Json, keys: &mut BTreeMap<String, Vec<u8>>) -> Json {
    let header = json!({ "cluster_id": "7" });
    let range = |key: &Json, keys: &BTreeMap<String, Vec<u8>>| {
        let name = String::from_utf8(bytes_of(key)).unwrap();
        match keys.get(&name) {
            Some(value) => json!({ "kvs": [{ "key": key, "value": text_of(value) }], "count": "1" }),
            None => json!({}),
        }
    };
    if path == "/v3/kv/range" {
        let mut found = range(&body["key"], keys);
        found["header"] = header;
        return found;
    }
    assert_eq!(path, "/v3/kv/txn");
    let compare = &body["compare"][0];
    let held = keys.get(&String::from_utf8(bytes_of(&compare["key"])).unwrap());
    let is_equal = match compare["target"].as_str().unwrap() {
        "VALUE" => held == Some(&bytes_of(&compare["value"])),
        "CREATE" => held.is_none() && compare["createRevision"] == "0",
        other => panic!("{other}"),
    };
    if !is_equal {
        let failure = range(&body["failure"][0]["requestRange"]["key"], keys);
        return json!({ "header": header, "responses": [{ "response_range": failure }] });
    }
    let put = &body["success"][0]["requestPut"];
    keys.insert(String::from_utf8(bytes_of(&put["key"])).unwrap(), bytes_of(&put["value"]));
    json!({ "header": header, "succeeded": true, "responses": [{ "response_put": {} }] })
}

fn value(text: &str) -> Value {
    Some(Arc::from(text.as_bytes()))
}

fn wish(change: Change) -> Wish {
    Wish { register: Register::Table, change }
}

fn held(keys: &Keys) -> Value {
    keys.lock().unwrap().get("/t/table").map(|bytes| Arc::from(&bytes[..]))
}

/// Random changes, with random fates at two endpoints: an outcome that says something is true.
#[test]
fn what_is_said_of_a_change_is_so() {
    let keys = Keys::default();
    let etcds = [FakeEtcd::start(&keys), FakeEtcd::start(&keys)];
    let endpoints: Vec<String> = etcds.iter().map(|etcd| etcd.address.clone()).collect();
    let (mut rng, mut said) = (Rng::new(5), BTreeMap::<&str, u64>::new());
    let mut line = EtcdLine::new(&endpoints, "/t/".to_string());
    assert_eq!(line.change(&wish(Change::Read)).outcome, Outcome::Read(None));
    for round in 0..400 {
        for etcd in &etcds {
            let fates: Vec<Fate> = (0..rng.below(3)).map(|_| FATES[rng.below(7) as usize]).collect();
            etcd.meets(&fates);
        }
        let before = held(&keys);
        let new = value(&format!("{round}"));
        let change = match rng.below(3) {
            0 => Change::Read,
            1 => Change::Swap { expect: before.clone(), new: new.clone() },
            _ => Change::Swap { expect: value("never"), new: new.clone() },
        };
        let Decided { outcome, fault, .. } = line.change(&wish(change.clone()));
        let after = held(&keys);
        assert_eq!(fault.is_some(), matches!(outcome, Outcome::Unknown | Outcome::NotDone), "{fault:?}");
        let name = match (&change, outcome) {
            (Change::Read, Outcome::Read(read)) => {
                assert_eq!((&read, &after), (&before, &before));
                "read"
            }
            (Change::Swap { expect, .. }, Outcome::Swapped) => {
                assert_eq!((expect, &after), (&before, &new));
                "swapped"
            }
            (Change::Swap { expect, .. }, Outcome::Differs(read)) => {
                assert_eq!((&read, &after), (&before, &before));
                assert_ne!(*expect, before);
                "differs"
            }
            (_, Outcome::NotDone) => {
                assert_eq!(after, before);
                "not done"
            }
            (Change::Swap { .. }, Outcome::Unknown) => {
                assert!(after == before || after == new);
                "unknown"
            }
            (change, outcome) => panic!("{change:?}: {outcome:?}"),
        };
        *said.entry(name).or_default() += 1;
    }
    // A world in which nothing fails, or everything, would show nothing.
    assert!(["read", "swapped", "differs", "unknown"].iter().all(|name| said[name] > 20), "{said:?}");
    assert!(said["not done"] > 0, "{said:?}");
}

#[test]
fn a_swap_that_was_sent_is_sent_once_and_a_read_goes_on_to_the_next() {
    let keys = Keys::default();
    let etcds = [FakeEtcd::start(&keys), FakeEtcd::start(&keys)];
    let endpoints: Vec<String> = etcds.iter().map(|etcd| etcd.address.clone()).collect();
    let mut line = EtcdLine::new(&endpoints, "/t/".to_string());
    etcds[0].meets(&[Fate::Cut]);
    let swap = Change::Swap { expect: None, new: value("one") };
    let decided = line.change(&wish(swap));
    assert_eq!(decided.outcome, Outcome::Unknown, "it was made, and nobody knows");
    let fault = decided.fault.unwrap();
    assert_eq!(fault, format!("{}: the connection ended in the middle of an answer", endpoints[0]));
    assert_eq!(etcds[1].done.load(Ordering::Relaxed), 0);
    assert!(!line.is_away(), "the other was not asked");
    // The next question goes to the other one.
    assert_eq!(line.change(&wish(Change::Read)).outcome, Outcome::Read(value("one")));
    assert_eq!(etcds[1].done.load(Ordering::Relaxed), 1);
    etcds[1].meets(&[Fate::Refused]);
    assert_eq!(line.change(&wish(Change::Read)).outcome, Outcome::Read(value("one")));
    // An endpoint of another etcd is not believed.
    etcds[0].meets(&[Fate::Stranger]);
    etcds[1].meets(&[Fate::Stranger]);
    let decided = line.change(&wish(Change::Read));
    assert_eq!(decided.outcome, Outcome::NotDone);
    assert!(decided.fault.unwrap().contains("another etcd") && line.is_away());
}

#[test]
fn where_nobody_listens_the_next_is_asked_and_nothing_was_done() {
    let keys = Keys::default();
    let etcd = FakeEtcd::start(&keys);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut line = EtcdLine::new(&[nobody.clone(), etcd.address.clone()], "/t/".to_string());
    let swap = |expect, new| wish(Change::Swap { expect, new });
    assert_eq!(line.change(&swap(None, value("one"))).outcome, Outcome::Swapped);
    assert_eq!(line.change(&swap(None, value("two"))).outcome, Outcome::Differs(value("one")));
    let mut line = EtcdLine::new(&[nobody], "/t/".to_string());
    let decided = line.change(&swap(None, value("two")));
    assert_eq!(decided.outcome, Outcome::NotDone);
    assert!(decided.fault.unwrap().contains("refused") && line.is_away());
}

/// The thread answers each question once, and how it does is told once.
#[test]
fn its_thread_answers_and_rings() {
    let keys = Keys::default();
    let etcd = FakeEtcd::start(&keys);
    let health = Arc::new(Health::default());
    let rung = Arc::new(AtomicU64::new(0));
    let bell = Arc::new(Doorbell::new({
        let rung = rung.clone();
        move || rung.store(1, Ordering::Relaxed)
    }));
    let council = EtcdCouncil::new(vec![etcd.address.clone()], [7; 16]);
    assert_eq!((council.kind(), council.endpoints().len(), council.next_due()), ("etcd", 1, None));
    let mut outside = Outside::begin(Box::new(council), bell.clone(), &health).unwrap();
    let take = |outside: &mut Outside, now: Now| {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            bell.falling_asleep();
            match outside.take(now) {
                Some(taken) => return taken,
                None if Instant::now() > until => panic!("no answer"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    let now = Now::from_us(1_000_000);
    let swap = Change::Swap { expect: None, new: value("one") };
    outside.ask(Wish { register: Register::Beat(3), change: swap }, now);
    assert_eq!(take(&mut outside, now), (Register::Beat(3), Outcome::Swapped));
    assert!(rung.load(Ordering::Relaxed) > 0);
    let name = format!("/nephila/{}/beat/3", "07".repeat(16));
    assert_eq!(keys.lock().unwrap().keys().collect::<Vec<_>>(), [&name]);
    let view = outside.view(now.plus_us(400_000));
    assert_eq!((view.answered_ms, &*view.fault), (Some(400), ""));
    // It fails for a moment, and then for longer.
    let fails_at = |outside: &mut Outside, now: Now| {
        etcd.meets(&[Fate::Refused]);
        outside.ask(wish(Change::Read), now);
        assert_eq!(take(outside, now), (Register::Table, Outcome::NotDone));
        outside.tell(now, &health);
        outside.view(now).fault
    };
    assert_eq!(fails_at(&mut outside, now), "");
    let later = now.plus_us(4_000_000);
    let fault = fails_at(&mut outside, later);
    assert!(fault.ends_with(": status 503: etcdserver: request timed out"), "{fault}");
    fails_at(&mut outside, later.plus_us(1_000_000));
    outside.ask(wish(Change::Read), later);
    assert_eq!(take(&mut outside, later), (Register::Table, Outcome::Read(None)));
    outside.tell(later, &health);
    assert_eq!(outside.view(later).fault, "");
}
