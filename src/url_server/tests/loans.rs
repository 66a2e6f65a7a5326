//! The gate of a cluster: nothing without a right and a loan, one promise a test.

use super::promises::{OK, config, fetch, job, nothing, robots};
use crate::base::Now;
use crate::proto::job::Job;
use crate::proto::peer_wire::TicketKey;
use crate::url_server::*;
use std::net::IpAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(ms: u64) -> Now {
    Now::ZERO.plus_ms(ms)
}

/// A server with a right for an hour.
fn server() -> UrlServer {
    let mut server = UrlServer::new(config(), Now::ZERO).with_loans();
    server.set_right(at(3_600_000), Now::ZERO);
    server
}

/// The number of the Want of an address that was given back at the end of its loan.
fn wanted_again(server: &mut UrlServer, address: &str) -> u64 {
    match server.take_loan_words().as_slice() {
        [LoanWord::Idle { key: given, .. }, LoanWord::Want { key: ip, want }] => {
            assert_eq!([ip.to_string(), given.to_string()], [address, address]);
            *want
        }
        other => panic!("{other:?}"),
    }
}

/// The number of the one Want that was said, of this address.
fn wanted(server: &mut UrlServer, address: &str) -> u64 {
    match server.take_loan_words().as_slice() {
        [LoanWord::Want { key, want }] if key.to_string() == address => *want,
        other => panic!("{other:?}"),
    }
}

fn lend(server: &mut UrlServer, address: &str, want: u64, (due, until): (u64, u64), now: Now) {
    let (due, until) = (at(due), at(until));
    let key = &TicketKey::of_address(ip(address));
    server.lend(&Lent { key, want, due, until, part: None, line: "" }, now);
}

fn waits_for(server: &UrlServer, order: &Job, now: Now) -> Option<WaitsFor> {
    server.look(&order.candidate.url, order.candidate.doc_id, now).unwrap().waits_for
}

#[test]
fn nothing_is_asked_without_a_right_and_a_loan() {
    let mut server = UrlServer::new(config(), Now::ZERO).with_loans();
    let page = job(1, "http://a/1", "1.1.1.1");
    server.admit(page.clone(), Now::ZERO);
    server.admit(job(2, "http://b/1", "1.1.1.1"), Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    nothing(&mut server, at(10));
    assert_eq!(waits_for(&server, &page, at(10)), Some(WaitsFor::Right));
    assert_eq!(server.next_due(), None, "it does not look again and again");
    lend(&mut server, "1.1.1.1", want, (0, 60_000), at(10));
    nothing(&mut server, at(20));
    server.set_right(at(5_000), at(30));
    let order = fetch(&mut server, at(30));
    assert_eq!((order.kind, order.send_by), (OrderKind::Robots, at(5_000)), "the right ends before the loan");
    assert_eq!(server.release(order.trans, &OK, at(30)), None);
    assert_eq!(server.take_loan_words(), []);

    let mut server = self::server();
    server.admit(page.clone(), Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    nothing(&mut server, at(10));
    assert_eq!((waits_for(&server, &page, at(10)), server.next_due()), (Some(WaitsFor::Ticket), None));
    assert_eq!(server.rest(0, at(10)), None, "a ticket may come at any moment");
    lend(&mut server, "1.1.1.1", want, (500, 9_000), at(10));
    nothing(&mut server, at(499));
    let order = fetch(&mut server, at(500));
    assert_eq!(order.send_by, at(9_000));
}

#[test]
fn without_a_cluster_there_is_no_gate() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.set_right(Now::ZERO, Now::ZERO);
    lend(&mut server, "1.1.1.1", 1, (5_000, 9_000), Now::ZERO);
    assert_eq!(fetch(&mut server, Now::ZERO).send_by, Now::NEVER);
    assert_eq!(server.take_loan_words(), []);
}

#[test]
fn a_loan_that_ends_is_given_back_when_nothing_is_open_and_wanted_again() {
    let mut server = server();
    for n in 1..5 {
        server.admit(job(n, &format!("http://a/{n}"), "1.1.1.1"), Now::ZERO);
    }
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 2_500), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    let order = fetch(&mut server, at(1_000));
    server.sent(order.trans, at(1_000));
    server.release(order.trans, &OK, at(1_100)).unwrap();
    let order = fetch(&mut server, at(2_000));
    server.sent(order.trans, at(2_400));
    // The loan is over while a request is open, which goes on; and nothing is said of the address.
    nothing(&mut server, at(20_000));
    assert_eq!(server.take_loan_words(), [], "a request is open");
    server.release(order.trans, &OK, at(20_000)).unwrap();
    nothing(&mut server, at(22_000));
    let again = wanted_again(&mut server, "1.1.1.1");
    assert!(again > want);
    assert_eq!(server.next_due(), None, "and it waits for a loan");
    lend(&mut server, "1.1.1.1", want, (20_250, 30_000), at(22_000));
    nothing(&mut server, at(22_000));
    let want = again;
    lend(&mut server, "1.1.1.1", want, (22_250, 30_000), at(22_000));
    lend(&mut server, "1.1.1.1", want, (0, 25_000), at(22_000));
    nothing(&mut server, at(22_240));
    let order = fetch(&mut server, at(22_250));
    assert_eq!(order.send_by, at(30_000), "a later loan does not shorten it");
    // A right that ends holds back likewise.
    server.release(order.trans, &OK, at(22_300)).unwrap();
    server.set_right(at(23_000), at(22_400));
    nothing(&mut server, at(24_000));
    server.set_right(at(99_000), at(25_000));
    assert_eq!(fetch(&mut server, at(25_000)).send_by, at(30_000));
}

#[test]
fn an_address_is_given_back_when_nobody_needs_it() {
    let mut server = server();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://a/2", "1.1.1.1"), Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 60_000), Now::ZERO);
    // A host that wants to be asked every eight seconds.
    robots(&mut server, Now::ZERO, 200, b"User-agent: *\nCrawl-delay: 8");
    for turn in 1..=2 {
        let due = turn * 8_000;
        for ms in (due - 8_000..due).step_by(500) {
            nothing(&mut server, at(ms));
        }
        assert_eq!(server.take_loan_words(), [], "it is not given back between two pages");
        let order = fetch(&mut server, at(due));
        server.sent(order.trans, at(due));
        let busy = Report { status: 503, ..OK };
        server.release(order.trans, if turn == 2 { &busy } else { &OK }, at(due + 100)).unwrap();
    }
    nothing(&mut server, at(20_099));
    assert_eq!(server.take_loan_words(), [], "the page may lead to others");
    nothing(&mut server, at(20_102));
    let (wall, penalty_us) = (config().wall.unix_ms_at_zero * 1_000, 2_000_000);
    let due = wall + 16_100_000 + penalty_us + 999;
    let line = format!(
        "address 1.1.1.1 due={due} penalty_us={penalty_us} response_us=0 delay_ms=0 failures=0 at={}\n",
        wall + 20_102_000
    );
    let (key, sent_ago_us) = (TicketKey::of_address(ip("1.1.1.1")), Some(4_102_000));
    assert_eq!(
        server.take_loan_words(),
        [LoanWord::Idle { key: key.clone(), sent_ago_us, pause_us: penalty_us, line }],
        "and is wanted by nobody"
    );
    assert_eq!(server.next_due(), None);
    // It comes again, with what another node knows of it; what answers the first Want means nothing.
    server.admit(job(3, "http://a/3", "1.1.1.1"), at(30_000));
    let again = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 60_000), at(30_000));
    nothing(&mut server, at(31_000));
    let due = wall + 33_000_000;
    let line = format!("address 1.1.1.1 due={due} penalty_us=5000000 response_us=0 delay_ms=0 failures=0");
    let lent = Lent { key: &key, want: again, due: at(31_500), until: at(90_000), part: None, line: &line };
    server.lend(&lent, at(31_000));
    nothing(&mut server, at(32_999));
    let order = fetch(&mut server, at(33_000));
    server.admit(job(4, "http://b/4", "1.1.1.1"), at(33_000));
    server.sent(order.trans, at(33_000));
    server.release(order.trans, &OK, at(33_100)).unwrap();
    nothing(&mut server, at(37_999));
    assert_eq!(fetch(&mut server, at(38_000)).url.host(), "b", "others were told to leave it alone");
}

#[test]
fn an_address_with_a_distant_turn_is_given_back_and_wanted_ahead() {
    let mut server = server();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 60_000), Now::ZERO);
    robots(&mut server, Now::ZERO, 200, b"User-agent: *\nCrawl-delay: 60");
    nothing(&mut server, at(5));
    assert!(matches!(server.take_loan_words().as_slice(), [LoanWord::Idle { .. }]), "nobody is due soon");
    nothing(&mut server, at(56_999));
    assert_eq!(server.take_loan_words(), []);
    nothing(&mut server, at(57_002));
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (57_300, 117_000), at(57_300));
    let order = fetch(&mut server, at(60_000));
    assert_eq!(order.doc_id, 1);
    // Likewise if the address itself is to be left alone for long, and somebody waits there.
    server.admit(job(2, "http://b/2", "2.2.2.2"), at(60_000));
    let want = wanted(&mut server, "2.2.2.2");
    lend(&mut server, "2.2.2.2", want, (90_000, 120_000), at(60_000));
    nothing(&mut server, at(60_005));
    assert!(matches!(server.take_loan_words().as_slice(), [LoanWord::Idle { sent_ago_us: None, .. }]));
    nothing(&mut server, at(86_999));
    assert_eq!(server.take_loan_words(), []);
    nothing(&mut server, at(87_002));
    let want = wanted(&mut server, "2.2.2.2");
    lend(&mut server, "2.2.2.2", want, (90_000, 147_000), at(87_100));
    nothing(&mut server, at(89_999));
    assert_eq!(fetch(&mut server, at(90_000)).url.host(), "b");
    assert_eq!(server.take_loan_words(), []);
}

#[test]
fn what_comes_too_late_is_asked_again_without_a_fault() {
    let mut server = server();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 1_500), Now::ZERO);
    let order = fetch(&mut server, Now::ZERO);
    server.not_sent(order.trans, at(1_500));
    nothing(&mut server, at(2_000));
    let want = wanted_again(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (2_000, 90_000), at(2_000));
    robots(&mut server, at(2_000), 404, b"");
    let order = fetch(&mut server, at(3_000));
    server.not_sent(order.trans, at(3_100));
    assert_eq!((server.open(), server.is_empty()), (0, false));
    nothing(&mut server, at(3_999));
    let order = fetch(&mut server, at(4_000));
    assert_eq!(order.doc_id, 1, "its host was not asked, and its address keeps its pause");
    let view = server.look(&order.url, 1, at(4_000)).unwrap();
    assert_eq!((view.pause.failures, server.stats().back_offs), (0, BackOffs::default()));
}

#[test]
fn the_robots_rules_of_others_pass_the_same_gate() {
    let mut server = server();
    let url = crate::proto::url::CrawlUrl::parse("http://a/robots.txt").unwrap();
    let request = RemoteRobots { id: 7, url, ip: ip("1.1.1.1"), others: None };
    assert!(server.admit_remote_robots(request, Now::ZERO));
    let want = wanted(&mut server, "1.1.1.1");
    nothing(&mut server, at(10));
    lend(&mut server, "1.1.1.1", want, (10, 60_000), at(10));
    let order = fetch(&mut server, at(10));
    assert_eq!(order.kind, OrderKind::RemoteRobots(7));
    nothing(&mut server, at(50_000));
    assert_eq!(server.take_loan_words(), [], "a request is open");
    assert_eq!(server.release_remote_robots(order.trans, &OK, at(50_000)), Some(7));
    nothing(&mut server, at(54_002));
    assert!(matches!(server.take_loan_words().as_slice(), [LoanWord::Idle { .. }]));
}

#[test]
fn a_host_that_moves_on_wants_its_other_address() {
    let mut server = server();
    let several = Job { others: Some([ip("2.2.2.2")].into()), ..job(1, "http://a/1", "1.1.1.1") };
    server.admit(several, Now::ZERO);
    let want = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", want, (0, 60_000), Now::ZERO);
    let order = fetch(&mut server, Now::ZERO);
    let refused = crate::proto::record::ResultCode::ConnectRefused;
    assert!(server.unreachable(order.trans, refused, at(100)));
    nothing(&mut server, at(100));
    let words = server.take_loan_words();
    let [LoanWord::Want { key: other, want }, LoanWord::Idle { key: left, .. }] = words.as_slice() else {
        panic!("{words:?}");
    };
    assert_eq!((other.address(), left.address()), (Some(ip("2.2.2.2")), Some(ip("1.1.1.1"))));
    lend(&mut server, "2.2.2.2", *want, (1_100, 60_000), at(1_100));
    assert_eq!(fetch(&mut server, at(1_100)).ip, ip("2.2.2.2"));
}

/// A server that gets hosts lent, too.
fn server_of_many() -> UrlServer {
    let mut server = UrlServer::new(config(), Now::ZERO).with_loans();
    server.lend_hosts();
    server.set_right(at(3_600_000), Now::ZERO);
    server
}

/// One that keeps no pause, with four pages of a host, and the number of its Want.
fn server_without_pauses() -> (UrlServer, u64) {
    let free = Niceness::from_rate(0.0, 8, 0.0);
    let mut server =
        UrlServer::new(UrlServerConfig { host: free, ip: free, ..config() }, Now::ZERO).with_loans();
    server.lend_hosts();
    server.set_right(at(3_600_000), Now::ZERO);
    for doc in 1..5 {
        server.admit(job(doc, &format!("http://a/{doc}"), "1.1.1.1"), Now::ZERO);
    }
    let want = wanted(&mut server, "http://a");
    (server, want)
}

fn lend_host(server: &mut UrlServer, origin: &str, lent: (u64, u64, Option<u8>), now: Now) {
    let (want, until, part) = lent;
    let key = &TicketKey::of_host(origin).unwrap();
    server.lend(&Lent { key, want, due: Now::ZERO, until: at(until), part, line: "" }, now);
}

#[test]
fn a_host_is_lent_before_its_address_and_given_back_when_nothing_is_left() {
    let mut server = server_of_many();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    let page = job(1, "http://a/1", "1.1.1.1");
    let want = wanted(&mut server, "http://a");
    nothing(&mut server, at(10));
    assert_eq!(waits_for(&server, &page, at(10)), Some(WaitsFor::Ticket));
    lend_host(&mut server, "http://a", (want, 60_000, None), at(20));
    let address = wanted(&mut server, "1.1.1.1");
    nothing(&mut server, at(20));
    lend(&mut server, "1.1.1.1", address, (0, 30_000), at(30));
    robots(&mut server, at(30), 404, b"");
    let order = fetch(&mut server, at(1_030));
    assert_eq!(order.send_by, at(30_000), "the earlier of the two ends");
    server.sent(order.trans, at(1_030));
    server.release(order.trans, &OK, at(1_040)).unwrap();
    match server.take_loan_words().as_slice() {
        [LoanWord::Idle { key, sent_ago_us, pause_us, .. }] => {
            let said = (key.to_string(), *sent_ago_us, *pause_us);
            assert_eq!(said, ("http://a".to_string(), Some(10_000), 1_000_000));
        }
        other => panic!("{other:?}"),
    }
    nothing(&mut server, at(2_000));
    // The address follows, as others wait for it with the host.
    assert!(
        matches!(server.take_loan_words().as_slice(), [LoanWord::Idle { key, .. }] if key.address().is_some())
    );
}

#[test]
fn a_host_whose_loan_has_ended_lets_others_go_first() {
    let mut server = server_of_many();
    for doc in 1..4 {
        server.admit(job(doc, &format!("http://a/{doc}"), "1.1.1.1"), Now::ZERO);
    }
    let want = wanted(&mut server, "http://a");
    lend_host(&mut server, "http://a", (want, 1_500, None), at(0));
    let address = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", address, (0, 60_000), at(0));
    robots(&mut server, at(0), 404, b"");
    let order = fetch(&mut server, at(1_000));
    server.sent(order.trans, at(1_000));
    // What is open at the end is waited for.
    nothing(&mut server, at(2_500));
    assert!(server.take_loan_words().is_empty());
    server.release(order.trans, &OK, at(2_600)).unwrap();
    let again = match server.take_loan_words().as_slice() {
        [LoanWord::Idle { key: given, .. }, LoanWord::Want { key, want }] if key == given => *want,
        other => panic!("{other:?}"),
    };
    nothing(&mut server, at(3_000));
    assert!(matches!(server.take_loan_words().as_slice(), [LoanWord::Idle { .. }]), "the address goes, too");
    lend_host(&mut server, "http://a", (again, 60_000, None), at(3_001));
    let address = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", address, (0, 60_000), at(3_001));
    assert_eq!(fetch(&mut server, at(3_001)).url.as_str(), "http://a/2");
}

#[test]
fn of_a_part_no_more_is_open_and_a_pause_wants_the_whole() {
    let (mut server, want) = server_without_pauses();
    lend_host(&mut server, "http://a", (want, 60_000, Some(2)), at(0));
    let address = wanted(&mut server, "1.1.1.1");
    let key = &TicketKey::of_address(ip("1.1.1.1"));
    let (due, until) = (Now::ZERO, at(60_000));
    server.lend(&Lent { key, want: address, due, until, part: Some(3), line: "" }, at(0));
    robots(&mut server, at(0), 404, b"");
    let orders = [fetch(&mut server, at(1)), fetch(&mut server, at(1))];
    nothing(&mut server, at(1));
    orders.iter().for_each(|order| server.sent(order.trans, at(1)));
    server.release(orders[0].trans, &OK, at(2)).unwrap();
    let third = fetch(&mut server, at(2));
    server.sent(third.trans, at(2));
    nothing(&mut server, at(2));
    // It is asked to be slower. What it has a part of, others may ask meanwhile.
    let busy = Report { status: 503, ..OK };
    server.release(third.trans, &busy, at(3)).unwrap();
    nothing(&mut server, at(1_500));
    server.release(orders[1].trans, &OK, at(1_600)).unwrap();
    nothing(&mut server, at(9_000));
    let words = server.take_loan_words();
    let given: Vec<bool> = words.iter().map(|word| matches!(word, LoanWord::Idle { .. })).collect();
    assert!(given.contains(&true), "{words:?}");
    let host = |word: &LoanWord| match word {
        LoanWord::Idle { key, line, .. } if key.host().is_some() => Some(line.clone()),
        _ => None,
    };
    assert!(words.iter().find_map(host).is_some_and(|line| line.starts_with("pace http://a ")), "{words:?}");
}

#[test]
fn a_host_that_wants_to_be_left_alone_is_given_back_when_the_last_answer_is_there() {
    let (mut server, want) = server_without_pauses();
    lend_host(&mut server, "http://a", (want, 60_000, None), at(0));
    let address = wanted(&mut server, "1.1.1.1");
    lend(&mut server, "1.1.1.1", address, (0, 60_000), at(0));
    robots(&mut server, at(0), 404, b"");
    let orders = [fetch(&mut server, at(1)), fetch(&mut server, at(1))];
    orders.iter().for_each(|order| server.sent(order.trans, at(1)));
    let leave = Report { status: 429, retry_after_s: Some(3_600), ..OK };
    server.release(orders[0].trans, &leave, at(2)).unwrap();
    nothing(&mut server, at(2));
    assert!(server.take_loan_words().is_empty(), "something is open");
    server.release(orders[1].trans, &OK, at(3)).unwrap();
    let is_host = |word: &&LoanWord| matches!(word, LoanWord::Idle { key, .. } if key.host().is_some());
    let words = server.take_loan_words();
    assert_eq!(words.iter().filter(is_host).count(), 1, "{words:?}");
    assert!(server.invariants());
}

#[test]
fn a_host_that_nobody_asks_is_given_back_at_the_end_of_its_loan() {
    let mut server = server_of_many();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    let want = wanted(&mut server, "http://a");
    lend_host(&mut server, "http://a", (want, 10_000, None), at(0));
    wanted(&mut server, "1.1.1.1");
    // It waits for its address, which another node has.
    server.tick(at(10_002));
    let words = server.take_loan_words();
    assert!(matches!(words.as_slice(), [LoanWord::Idle { key, .. }] if key.host().is_some()), "{words:?}");
    assert!(server.invariants());
}
