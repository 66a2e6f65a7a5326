//! The gate of a cluster: nothing without a right and a loan, one promise a test.

use super::promises::{OK, config, fetch, job, nothing, robots};
use crate::base::Now;
use crate::proto::job::Job;
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
        [LoanWord::Idle { ip: given, .. }, LoanWord::Want { ip, want }] => {
            assert_eq!([ip.to_string(), given.to_string()], [address, address]);
            *want
        }
        other => panic!("{other:?}"),
    }
}

/// The number of the one Want that was said, of this address.
fn wanted(server: &mut UrlServer, address: &str) -> u64 {
    match server.take_loan_words().as_slice() {
        [LoanWord::Want { ip, want }] if ip.to_string() == address => *want,
        other => panic!("{other:?}"),
    }
}

fn lend(server: &mut UrlServer, address: &str, want: u64, (due, until): (u64, u64), now: Now) {
    let (due, until) = (at(due), at(until));
    server.lend(&Lent { ip: ip(address), want, due, until, line: "" }, now);
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
    let (ip, sent_ago_us) = (ip("1.1.1.1"), Some(4_102_000));
    assert_eq!(
        server.take_loan_words(),
        [LoanWord::Idle { ip, sent_ago_us, pause_us: penalty_us, line }],
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
    let lent = Lent { ip, want: again, due: at(31_500), until: at(90_000), line: &line };
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
    let [LoanWord::Want { ip: other, want }, LoanWord::Idle { ip: left, .. }] = words.as_slice() else {
        panic!("{words:?}");
    };
    assert_eq!((*other, *left), (ip("2.2.2.2"), ip("1.1.1.1")));
    lend(&mut server, "2.2.2.2", *want, (1_100, 60_000), at(1_100));
    assert_eq!(fetch(&mut server, at(1_100)).ip, ip("2.2.2.2"));
}
