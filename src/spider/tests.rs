//! Fetches step by step: one answer each, connections kept, deadlines held.

use super::*;
use crate::base::{AddressGuard, Key, NetAsk, NetError, NetEvent, Now, Wall};
use crate::proto::http1::{BodyLimits, Flags, HeadLimits, Validators};
use crate::proto::job::TransId;
use crate::proto::record::ResultCode;
use crate::proto::tls::TlsSettings;
use crate::proto::url::CrawlUrl;
use std::sync::Arc;

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn config(conns_max: usize) -> SpiderConfig {
    SpiderConfig {
        user_agent: "nephila".to_string(),
        limits: FetchLimits {
            working_us: 20_000_000,
            total_us: 60_000_000,
            connect_us: 10_000_000,
            fallback_us: 300_000,
            read_us: 30_000_000,
            idle_us: 5_000_000,
            body: BodyLimits { doc_bytes_max: 1_000, ..BodyLimits::default() },
            body_memory: 1 << 30,
            guard: AddressGuard::new(vec!["127.0.0.0/8".parse().unwrap()]),
            first_byte_us: 30_000_000,
            rate_bytes_per_s: 0,
        },
        head: HeadLimits::default(),
        conns_max,
        tls: Arc::new(TlsSettings { roots_pem: None, insecure: false, sessions_max: 8 }),
        sites: Arc::default(),
        cookies: false,
        budget: BodyBudget::new(1 << 30),
        wall: Wall { unix_ms_at_zero: 0 },
    }
}

fn spider(conns_max: usize) -> Spider {
    Spider::new(config(conns_max), Now::ZERO)
}

fn order(n: u32) -> FetchOrder {
    let url = CrawlUrl::parse("http://h.test:81/x").unwrap();
    FetchOrder::new(TransId::new(n, 0, 1), url, "127.0.0.1:81".parse().unwrap())
}

/// Takes the actions and splits them into asks and finished fetches.
fn acted(out: &mut Vec<Action>) -> (Vec<NetAsk>, Vec<Fetched>) {
    let (mut asks, mut finished) = (Vec::new(), Vec::new());
    for action in out.drain(..) {
        match action {
            Action::Net(ask) => asks.push(ask),
            Action::Finished(fetched) => finished.push(*fetched),
            Action::Sent(_) | Action::Working(_) => {}
        }
    }
    (asks, finished)
}

/// Starts a fetch on a new connection and brings it to where the answer is awaited.
fn started(spider: &mut Spider, n: u32, now: Now, out: &mut Vec<Action>) -> Key {
    assert!(spider.has_room(out));
    spider.take(order(n), now, out);
    let conn = match acted(out).0.as_slice() {
        [NetAsk::Connect { conn, .. }] => *conn,
        other => panic!("{other:?}"),
    };
    spider.step(conn, NetEvent::Connected, now, out);
    assert!(matches!(acted(out).0.as_slice(), [NetAsk::Send { .. }]));
    spider.step(conn, NetEvent::Sent(Vec::new()), now, out);
    out.clear();
    conn
}

#[test]
fn an_answer_in_any_pieces_is_the_same_answer() {
    for cut in 0..PAGE.len() {
        let (mut spider, mut out) = (spider(4), Vec::new());
        let conn = started(&mut spider, 1, Now::ZERO, &mut out);
        for piece in [&PAGE[..cut], &PAGE[cut..]] {
            if !piece.is_empty() {
                spider.step(conn, NetEvent::Received(piece), Now::from_us(7), &mut out);
            }
        }
        let (asks, finished) = acted(&mut out);
        assert!(asks.is_empty(), "the connection is kept: {asks:?}");
        assert_eq!(finished.len(), 1);
        assert_eq!((finished[0].result, finished[0].status()), (ResultCode::Ok, 200));
        assert_eq!((finished[0].document(), finished[0].took_us), (&b"hello"[..], 7));
        assert_eq!(finished[0].head_bytes(), &PAGE[..PAGE.len() - 5]);
        // The next fetch of the host goes out on it at once.
        spider.take(order(2), Now::from_us(8), &mut out);
        assert!(matches!(acted(&mut out).0.as_slice(), [NetAsk::Send { conn: same, .. }] if *same == conn));
    }
}

#[test]
fn a_kept_connection_that_died_is_nobodys_fault() {
    for died in [NetEvent::Ended, NetEvent::Failed(NetError::Reset)] {
        let (mut spider, mut out) = (spider(4), Vec::new());
        let conn = started(&mut spider, 1, Now::ZERO, &mut out);
        spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
        spider.take(order(2), Now::ZERO, &mut out);
        acted(&mut out);
        spider.step(conn, died, Now::ZERO, &mut out);
        let (asks, finished) = acted(&mut out);
        assert_eq!(finished[0].retry, Some(Retry::StaleConnection));
        assert_eq!(asks, [NetAsk::Close { conn }]);
    }
    // On a fresh connection it is the server's.
    let (mut spider, mut out) = (spider(4), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Ended, Now::ZERO, &mut out);
    let (_, finished) = acted(&mut out);
    assert_eq!((finished[0].retry, finished[0].result), (None, ResultCode::Empty));
}

/// A machine without a free port, descriptor or memory says nothing of a server. An address of version 6 may have no
/// counterpart here.
#[test]
fn a_connection_that_this_machine_has_no_room_for_is_to_be_made_again() {
    for (error, retry) in [
        (NetError::Exhausted, Some(Retry::NoSocket)),
        (NetError::NoAddress, Some(Retry::NoSocket)),
        (NetError::Unreachable, Some(Retry::NoWay)),
        (NetError::Refused, None),
    ] {
        let (mut spider, mut out) = (spider(4), Vec::new());
        spider.take(order(1), Now::ZERO, &mut out);
        let conn = match acted(&mut out).0.as_slice() {
            [NetAsk::Connect { conn, .. }] => *conn,
            asks => panic!("{asks:?}"),
        };
        spider.step(conn, NetEvent::Failed(error), Now::ZERO, &mut out);
        assert_eq!(acted(&mut out).1[0].retry, retry, "{error}");
    }
}

/// Its server was not asked, and nothing is said of it.
#[test]
fn nothing_is_sent_past_its_time() {
    let by = |n: u32, us: u64| FetchOrder { send_by: Now::from_us(us), ..order(n) };
    let (mut spider, mut out) = (spider(4), Vec::new());
    // The time is over before there is a connection, and while it is made.
    spider.take(by(1, 10), Now::from_us(10), &mut out);
    let (asks, finished) = acted(&mut out);
    assert_eq!((asks.len(), finished[0].retry, spider.open()), (0, Some(Retry::TooLate), 0));
    spider.take(by(2, 10), Now::from_us(9), &mut out);
    let conn = match acted(&mut out).0.as_slice() {
        [NetAsk::Connect { conn, .. }] => *conn,
        asks => panic!("{asks:?}"),
    };
    spider.step(conn, NetEvent::Connected, Now::from_us(10), &mut out);
    let (asks, finished) = acted(&mut out);
    assert_eq!((asks, finished[0].retry), (vec![NetAsk::Close { conn }], Some(Retry::TooLate)));
    assert_eq!((finished[0].trans, finished[0].status(), spider.open()), (order(2).trans, 0, 0));
    spider.step(conn, NetEvent::Closed, Now::from_us(10), &mut out);
    // A kept connection is used in time, and kept on when it is too late.
    let conn = started(&mut spider, 3, Now::from_us(20), &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::from_us(29), &mut out);
    assert!(acted(&mut out).0.is_empty());
    spider.take(by(4, 30), Now::from_us(30), &mut out);
    let (asks, finished) = acted(&mut out);
    assert_eq!((asks.len(), finished[0].retry), (0, Some(Retry::TooLate)));
    spider.take(by(5, 31), Now::from_us(30), &mut out);
    assert!(matches!(acted(&mut out).0.as_slice(), [NetAsk::Send { conn: same, .. }] if *same == conn));
}

/// What a server sends beyond its response may come when the next request is out already.
#[test]
fn the_rest_of_one_answer_is_not_the_next_one() {
    let (mut spider, mut out) = (spider(4), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    spider.take(order(2), Now::ZERO, &mut out);
    acted(&mut out);
    spider.step(conn, NetEvent::Received(b"more of it"), Now::ZERO, &mut out);
    let (asks, finished) = acted(&mut out);
    assert_eq!(finished[0].retry, Some(Retry::StaleConnection));
    assert_eq!(asks, [NetAsk::Close { conn }]);
    // On a fresh connection it is the server's answer.
    let conn = started(&mut spider, 2, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(b"more of it"), Now::ZERO, &mut out);
    let (_, finished) = acted(&mut out);
    assert_eq!((finished[0].retry, finished[0].result), (None, ResultCode::Malformed));
}

#[test]
fn a_slot_is_free_only_after_the_last_word() {
    let (mut spider, mut out) = (spider(1), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Failed(NetError::Reset), Now::ZERO, &mut out);
    acted(&mut out);
    assert!(!spider.has_room(&mut out), "the kernel may still complete on it");
    spider.step(conn, NetEvent::Received(b"late"), Now::ZERO, &mut out);
    assert!(out.is_empty());
    spider.step(conn, NetEvent::Closed, Now::ZERO, &mut out);
    assert!(spider.has_room(&mut out));
    let next = started(&mut spider, 2, Now::ZERO, &mut out);
    assert_eq!(conn.index(), next.index());
    assert_ne!(conn, next);
}

#[test]
fn an_idle_connection_is_room_for_its_own_host() {
    let (mut spider, mut out) = (spider(1), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    assert!(!spider.has_room_for(&order(2).url, order(2).addr, &mut out), "it is busy");
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    acted(&mut out);
    assert!(spider.has_room_for(&order(2).url, order(2).addr, &mut out));
    assert!(out.is_empty(), "nothing is closed");
    spider.take(order(2), Now::ZERO, &mut out);
    assert!(matches!(acted(&mut out).0.as_slice(), [NetAsk::Send { conn: same, .. }] if *same == conn));
}

/// A search for room while all are busy must not forget connections that will be idle again.
#[test]
fn a_connection_that_was_busy_makes_room_later() {
    let (mut spider, mut out) = (spider(1), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    spider.take(order(2), Now::ZERO, &mut out);
    assert!(!spider.has_room(&mut out));
    spider.step(conn, NetEvent::Sent(Vec::new()), Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    acted(&mut out);
    assert!(!spider.has_room(&mut out));
    assert_eq!(acted(&mut out).0, [NetAsk::Close { conn }]);
}

#[test]
fn an_idle_connection_makes_room_and_grows_old() {
    let (mut spider, mut out) = (spider(1), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    acted(&mut out);
    assert!(!spider.has_room(&mut out));
    assert_eq!(acted(&mut out).0, [NetAsk::Close { conn }]);
    spider.step(conn, NetEvent::Closed, Now::ZERO, &mut out);
    let conn = started(&mut spider, 2, Now::ZERO, &mut out);
    spider.step(conn, NetEvent::Received(PAGE), Now::ZERO, &mut out);
    acted(&mut out);
    spider.tick(Now::from_us(4_999_000), &mut out);
    assert!(out.is_empty());
    spider.tick(Now::from_us(5_001_000), &mut out);
    assert_eq!(acted(&mut out).0, [NetAsk::Close { conn }]);
}

/// What the network does to a fetch in each second.
type Events = dyn Fn(&mut Spider, Key, &mut Vec<Action>, u64);

#[test]
fn deadlines_end_a_fetch_and_working_is_said_until_then() {
    let results = |events: &Events| {
        let (mut spider, mut out) = (spider(4), Vec::new());
        spider.take(order(1), Now::ZERO, &mut out);
        let [NetAsk::Connect { conn, .. }] = acted(&mut out).0[..] else { panic!() };
        let (mut working, mut ended) = (0, None);
        for second in 1..=120u64 {
            if ended.is_none() {
                events(&mut spider, conn, &mut out, second);
            }
            spider.tick(Now::from_us(second * 1_000_000 + 1_000), &mut out);
            for action in out.drain(..) {
                match action {
                    Action::Working(_) => working += 1,
                    Action::Finished(fetched) => {
                        assert!(ended.replace((fetched.result, second)).is_none(), "one answer");
                    }
                    _ => {}
                }
            }
        }
        (ended.unwrap(), working)
    };
    assert_eq!(results(&|_, _, _, _| ()), ((ResultCode::ConnectTimeout, 10), 0));
    let connected = |spider: &mut Spider, conn, out: &mut Vec<Action>, second| {
        if second == 1 {
            spider.step(conn, NetEvent::Connected, Now::from_us(1_000_000), out);
        }
    };
    assert_eq!(results(&connected), ((ResultCode::ReadTimeout, 31), 1));
    let dripping = |spider: &mut Spider, conn, out: &mut Vec<Action>, second: u64| match second {
        1 => spider.step(conn, NetEvent::Connected, Now::from_us(1_000_000), out),
        2 => spider.step(conn, NetEvent::Received(b"HTTP/1.1 200 OK\r\n\r\n"), Now::from_us(2_000_000), out),
        _ => spider.step(conn, NetEvent::Received(b"."), Now::from_us(second * 1_000_000), out),
    };
    assert_eq!(results(&dripping), ((ResultCode::TotalTimeout, 60), 2));
}

/// A process that stood still learns nothing of its servers by that.
#[test]
fn a_deadline_that_nobody_looked_at_is_no_fault_of_the_server() {
    let ended = |looked_us: u64| {
        let (mut spider, mut out) = (spider(4), Vec::new());
        let conn = started(&mut spider, 1, Now::ZERO, &mut out);
        spider.tick(Now::from_us(29_000_000), &mut out);
        acted(&mut out);
        spider.tick(Now::from_us(looked_us), &mut out);
        let (asks, finished) = acted(&mut out);
        assert_eq!(asks, [NetAsk::Close { conn }]);
        (finished[0].result, finished[0].retry)
    };
    assert_eq!(ended(30_900_000), (ResultCode::ReadTimeout, None));
    assert_eq!(ended(31_100_000), (ResultCode::ReadTimeout, Some(Retry::Stalled)));
    assert_eq!(ended(99_000_000), (ResultCode::TotalTimeout, Some(Retry::Stalled)));
}

#[test]
fn what_a_response_comes_to() {
    let result = |response: &[u8], end: Option<NetEvent<'_>>| {
        let (mut spider, mut out) = (spider(4), Vec::new());
        let conn = started(&mut spider, 1, Now::ZERO, &mut out);
        spider.step(conn, NetEvent::Received(response), Now::ZERO, &mut out);
        if let Some(end) = end {
            spider.step(conn, end, Now::ZERO, &mut out);
        }
        let fetched = acted(&mut out).1.pop().expect("finished");
        (fetched.result, fetched.document().len())
    };
    let ended = || Some(NetEvent::Ended);
    assert_eq!(result(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", None), (ResultCode::HttpError, 0));
    assert_eq!(
        result(b"HTTP/1.1 301 M\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", None),
        (ResultCode::Redirect, 0)
    );
    assert_eq!(result(b"HTTP/1.1 304 N\r\n\r\n", None), (ResultCode::NotModified, 0));
    assert_eq!(result(b"HTTP/1.1 204 N\r\n\r\n", None), (ResultCode::Ok, 0));
    assert_eq!(result(b"HTTP/1.0 200 OK\r\n\r\nabc", ended()), (ResultCode::Ok, 3));
    assert_eq!(
        result(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ended()),
        (ResultCode::Truncated, 3)
    );
    let reset = Some(NetEvent::Failed(NetError::Reset));
    assert_eq!(result(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", reset), (ResultCode::Truncated, 3));
    assert_eq!(result(b"SSH-2.0-x\r\n", None), (ResultCode::Malformed, 0));
    assert_eq!(result(b"HTTP/1.1 200 OK\r\nConte", ended()), (ResultCode::Malformed, 0));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    assert_eq!(result(chunked, None), (ResultCode::Malformed, 3));
    let large = [&b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n"[..], &[b'x'; 1_500]].concat();
    assert_eq!(result(&large, None), (ResultCode::TooLarge, 1_000));
}

#[test]
fn an_address_that_is_not_allowed_is_never_connected_to() {
    let (mut spider, mut out) = (spider(4), Vec::new());
    let mut order = order(1);
    order.addr = "10.0.0.1:80".parse().unwrap();
    spider.take(order, Now::ZERO, &mut out);
    let (asks, finished) = acted(&mut out);
    assert!(asks.is_empty());
    assert_eq!(finished[0].result, ResultCode::BlockedAddress);
}

/// The result of one fetch of `order` that the server answers with `response`.
fn answered(
    spider: &mut Spider,
    order: FetchOrder,
    response: &[u8],
    out: &mut Vec<Action>,
) -> (String, Fetched) {
    spider.take(order, Now::ZERO, out);
    let (mut asks, _) = acted(out);
    if let [NetAsk::Connect { conn, .. }] = asks[..] {
        spider.step(conn, NetEvent::Connected, Now::ZERO, out);
        asks = acted(out).0;
    }
    let NetAsk::Send { conn, bytes } = asks.pop().expect("a request") else { panic!("no request") };
    let request = String::from_utf8(bytes.clone()).unwrap();
    spider.step(conn, NetEvent::Sent(bytes), Now::ZERO, out);
    spider.step(conn, NetEvent::Received(response), Now::ZERO, out);
    let mut fetched = acted(out).1;
    if fetched.is_empty() {
        spider.step(conn, NetEvent::Ended, Now::ZERO, out);
        fetched = acted(out).1;
    }
    (request, fetched.pop().expect("it ends"))
}

/// No fetch waits for the last of many timers.
#[test]
fn ten_thousand_that_stall_end_within_a_tick_of_their_deadline() {
    let (mut spider, mut out) = (spider(10_000), Vec::new());
    for n in 0..10_000 {
        let now = Now::from_us(u64::from(n) * 7);
        spider.take(order(n), now, &mut out);
        let [NetAsk::Connect { conn, .. }] = acted(&mut out).0[..] else { panic!("connects") };
        spider.step(conn, NetEvent::Connected, now, &mut out);
        spider.step(conn, NetEvent::Received(b"HTTP/1.1 200 OK\r\n"), now, &mut out);
        out.clear();
    }
    let tick_us = 1_000;
    let (first_us, last_us) = (30_000_000, 30_000_000 + 9_999 * 7);
    spider.tick(Now::from_us(first_us - 1), &mut out);
    assert!(!out.iter().any(|action| matches!(action, Action::Finished(_))), "none before its time");
    let mut ended = 0;
    for at in (first_us..=last_us + 2 * tick_us).step_by(tick_us as usize) {
        spider.tick(Now::from_us(at), &mut out);
        for fetched in acted(&mut out).1 {
            ended += 1;
            let late_us = at - (u64::from(fetched.trans.host_slot()) * 7 + 30_000_000);
            assert_eq!(fetched.result, ResultCode::ReadTimeout);
            assert!(late_us <= 2 * tick_us, "{late_us}");
        }
    }
    assert_eq!((ended, spider.open()), (10_000, 0));
}

#[test]
fn a_server_that_drips_is_given_up_before_its_time() {
    let ended = |bytes_per_s: usize| {
        let mut config = config(1);
        config.limits.rate_bytes_per_s = 100;
        let (mut spider, mut out) = (Spider::new(config, Now::ZERO), Vec::new());
        let conn = started(&mut spider, 1, Now::ZERO, &mut out);
        spider.step(conn, NetEvent::Received(b"HTTP/1.1 200 OK\r\n\r\n"), Now::ZERO, &mut out);
        for second in 1..=70 {
            let now = Now::from_us(second * 1_000_000);
            if spider.open() > 0 {
                spider.step(conn, NetEvent::Received(&vec![b'.'; bytes_per_s]), now, &mut out);
            }
            spider.tick(now.plus_us(2_000), &mut out);
            if let Some(fetched) = acted(&mut out).1.pop() {
                return (fetched.result, second);
            }
        }
        panic!("it never ended")
    };
    assert_eq!(ended(1), (ResultCode::TooSlow, 10));
    assert_eq!(ended(101).0, ResultCode::TooLarge);
}

#[test]
fn a_server_that_thinks_after_its_head_is_waited_for() {
    let mut config = config(1);
    config.limits.rate_bytes_per_s = 100;
    let (mut spider, mut out) = (Spider::new(config, Now::ZERO), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    spider.step(conn, NetEvent::Received(head), Now::ZERO, &mut out);
    for second in 1..=25 {
        spider.tick(Now::from_us(second * 1_000_000), &mut out);
    }
    spider.step(conn, NetEvent::Received(b"hello"), Now::from_us(25_000_000), &mut out);
    assert_eq!(acted(&mut out).1.pop().map(|fetched| fetched.result), Some(ResultCode::Ok));
}

#[test]
fn heads_are_asked_for_and_by_get_where_head_is_refused() {
    let (mut spider, mut out) = (spider(4), Vec::new());
    let head = || FetchOrder { head_only: true, ..order(1) };
    let (request, fetched) =
        answered(&mut spider, head(), b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", &mut out);
    assert!(request.starts_with("HEAD /x HTTP/1.1\r\n"));
    assert_eq!((fetched.result, fetched.document(), fetched.retry), (ResultCode::Ok, &b""[..], None));
    assert_eq!(fetched.flags, Flags::HEAD_ONLY);
    let refused = b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n";
    let (_, fetched) = answered(&mut spider, head(), refused, &mut out);
    assert_eq!(fetched.retry, Some(Retry::NewRequest));
    let (request, fetched) = answered(&mut spider, head(), b"HTTP/1.1 200 OK\r\n\r\nall of it", &mut out);
    assert!(request.starts_with("GET /x HTTP/1.1\r\n") && request.contains("\r\nRange: bytes=0-0\r\n"));
    assert_eq!(
        (fetched.result, fetched.document(), fetched.flags),
        (ResultCode::Ok, &b""[..], Flags::HEAD_BY_GET)
    );
    // Asked for whole, it comes whole.
    let (request, fetched) = answered(&mut spider, order(2), PAGE, &mut out);
    assert!(request.starts_with("GET") && !request.contains("Range"));
    assert_eq!((fetched.document(), fetched.flags), (&b"hello"[..], Flags::NONE));
}

#[test]
fn without_memory_for_documents_nothing_new_is_taken() {
    let config = SpiderConfig { budget: BodyBudget::new(600), ..config(4) };
    let (mut spider, mut out) = (Spider::new(config, Now::ZERO), Vec::new());
    let conn = started(&mut spider, 1, Now::ZERO, &mut out);
    spider.step(
        conn,
        NetEvent::Received(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"),
        Now::ZERO,
        &mut out,
    );
    assert!(spider.has_room(&mut out));
    spider.step(conn, NetEvent::Received(&[b'.'; 600]), Now::ZERO, &mut out);
    assert!(!spider.has_room(&mut out) && spider.is_out_of_memory());
    spider.step(conn, NetEvent::Received(&[b'.'; 300]), Now::ZERO, &mut out);
    let fetched = acted(&mut out).1.pop().unwrap();
    assert_eq!(fetched.result, ResultCode::Ok, "what is open goes on");
    assert!(!spider.has_room(&mut out), "until it is stored");
    spider.recycle(Box::new(fetched));
    assert!(spider.has_room(&mut out));
}

#[test]
fn what_is_stored_is_asked_about() {
    let (mut spider, mut out) = (spider(4), Vec::new());
    let validators = Validators { etag: b"\"v1\""[..].into(), last_modified: b"yesterday"[..].into() };
    let order = FetchOrder { validators: Some(Box::new(validators)), ..order(1) };
    let (request, fetched) = answered(&mut spider, order, b"HTTP/1.1 304 Same\r\n\r\n", &mut out);
    assert!(request.contains("\r\nIf-None-Match: \"v1\"\r\nIf-Modified-Since: yesterday\r\n"));
    assert_eq!((fetched.result, fetched.retry), (ResultCode::NotModified, None));
}

#[test]
fn where_there_is_another_address_a_connection_is_waited_for_only_a_moment() {
    for (more, ms) in [(false, 10_000), (true, 300)] {
        let (mut spider, mut out) = (spider(1), Vec::new());
        spider.take(FetchOrder { more, ..order(1) }, Now::ZERO, &mut out);
        spider.tick(Now::ZERO.plus_ms(ms - 5), &mut out);
        assert!(acted(&mut out).1.is_empty(), "{ms}");
        spider.tick(Now::ZERO.plus_ms(ms + 5), &mut out);
        let [fetched] = &acted(&mut out).1[..] else { panic!("{ms}") };
        assert_eq!(fetched.result, ResultCode::ConnectTimeout);
    }
}
