//! Queues, windows, pauses and robots, one promise a test. The simulation tries them all at once.

use crate::base::{Now, Wall};
use crate::proto::job::{Candidate, Job};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use crate::url_server::view::{RobotsWord, WaitsFor};
use crate::url_server::*;

pub(super) const OK: Report = Report { result: ResultCode::Ok, status: 200, took_us: 0, retry_after_s: None };

pub(super) fn config() -> UrlServerConfig {
    UrlServerConfig {
        queue_count: 8,
        queue_len: 4,
        host: Niceness::from_rate(1.0, 1, 0.0),
        ip: Niceness::from_rate(1.0, 1, 0.0),
        spider_silence_us: 60_000_000,
        product_token: "nephila".to_string(),
        leftover_urls: usize::MAX,
        host_failures_max: 5,
        wall: Wall { unix_ms_at_zero: 1_000_000_000_000 },
        seed: 7,
    }
}

pub(super) fn job(doc_id: u32, url: &str, ip: &str) -> Job {
    let url = CrawlUrl::parse(url).unwrap();
    Job::at(ip.parse().unwrap(), Candidate::seed(doc_id, url))
}

pub(super) fn fetch(server: &mut UrlServer, now: Now) -> Order {
    server.tick(now);
    match server.acquire(now) {
        Acquired::Fetch(order) => order,
        other => panic!("{other:?}"),
    }
}

pub(super) fn nothing(server: &mut UrlServer, now: Now) {
    server.tick(now);
    assert_eq!(server.acquire(now), Acquired::Nothing);
    assert!(server.invariants());
}

/// Sends robots.txt of the next host and answers it.
pub(super) fn robots(server: &mut UrlServer, now: Now, status: u16, body: &[u8]) {
    let order = fetch(server, now);
    assert_eq!((order.kind, order.url.path_and_query()), (OrderKind::Robots, "/robots.txt"));
    server.sent(order.trans, now);
    let answer = Robotstxt::Answer { status, body, target: None };
    server.robots(order.trans, &answer, &Report { status, ..OK }, now);
}

#[test]
fn a_request_on_its_way_is_held_to_the_pause_it_was_decided_by() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    let at = |ms| Now::ZERO.plus_ms(ms);
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    let order = fetch(&mut server, at(1_000));
    // Its connection is being made.
    let slow = Niceness::from_rate(0.1, 1, 0.0);
    server.set_rules(NicenessRules { host: slow, ip: slow, host_failures_max: 5 }, at(1_010));
    server.sent(order.trans, at(1_020));
    let margin = &server.stats().host_margin;
    assert_eq!((margin.requests, margin.violations, margin.smallest_us), (2, 0, 0), "it asked when it might");
    assert_eq!(server.stats().address_margin.violations, 0);
}

#[test]
fn nothing_is_asked_before_robots_and_then_one_at_a_time() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://a/2", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 200, b"User-agent: *\nDisallow: /no");
    nothing(&mut server, Now::ZERO.plus_ms(999));
    let at = Now::ZERO.plus_ms(1_000);
    let first = fetch(&mut server, at);
    assert_eq!(first.doc_id, 1);
    nothing(&mut server, at.plus_ms(60));
    // The request went out late, so the pause starts late.
    server.sent(first.trans, at.plus_ms(500));
    nothing(&mut server, at.plus_ms(1_400));
    assert_eq!(server.release(first.trans, &OK, at.plus_ms(1_400)).unwrap().candidate.doc_id, 1);
    nothing(&mut server, at.plus_ms(1_499));
    assert_eq!(fetch(&mut server, at.plus_ms(1_500)).doc_id, 2);
    assert_eq!(server.release(first.trans, &OK, at.plus_ms(1_600)), None, "a late DONE is ignored");
    assert_eq!(server.stats().late, 1);
}

#[test]
fn hosts_of_one_address_share_its_pace() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://b/", "1.1.1.1"), Now::ZERO);
    server.admit(job(3, "http://c/", "2.2.2.2"), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    robots(&mut server, Now::ZERO, 404, b"");
    nothing(&mut server, Now::ZERO.plus_ms(999));
    let at = Now::ZERO.plus_ms(1_000);
    let mut hosts =
        [fetch(&mut server, at).url.host().to_string(), fetch(&mut server, at).url.host().to_string()];
    hosts.sort();
    assert_eq!(hosts[1], "c", "the other address has a pace of its own");
    nothing(&mut server, at.plus_ms(10));
}

#[test]
fn what_robots_forbid_is_denied_and_so_is_everything_while_they_are_unknown() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/no/1", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 200, b"User-agent: *\nDisallow: /no");
    let at = Now::ZERO.plus_ms(1_000);
    server.tick(at);
    assert!(matches!(server.acquire(at), Acquired::Refused(job, _) if job.candidate.doc_id == 1));
    server.admit(job(2, "http://b/", "2.2.2.2"), at);
    robots(&mut server, at, 503, b"");
    assert!(matches!(server.acquire(at), Acquired::Refused(job, _) if job.candidate.doc_id == 2));
    nothing(&mut server, at);
    assert!(server.is_empty());
}

#[test]
fn robots_redirects_are_followed_on_the_host_within_bounds() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/", "1.1.1.1"), Now::ZERO);
    let mut now = Now::ZERO;
    let target = CrawlUrl::parse("http://a/hop").unwrap();
    let mut hops = 0;
    loop {
        let order = fetch(&mut server, now);
        if order.kind == OrderKind::Page {
            break;
        }
        hops += 1;
        let answer = Robotstxt::Answer { status: 301, body: b"", target: Some(&target) };
        server.robots(order.trans, &answer, &Report { status: 301, ..OK }, now);
        now = now.plus_ms(1_000);
    }
    assert_eq!(hops, 6, "the file and five hops, then as if there were none");
}

#[test]
fn leftovers_come_in_order_and_slots_change_hosts_only_after_their_pause() {
    let mut small = config();
    small.queue_count = 1;
    small.queue_len = 2;
    let mut server = UrlServer::new(small, Now::ZERO);
    for page in 0..5 {
        server.admit(job(page + 1, &format!("http://a/{page}"), "1.1.1.1"), Now::ZERO);
    }
    server.admit(job(9, "http://b/", "2.2.2.2"), Now::ZERO);
    assert_eq!((server.pages, server.leftover.len()), (6, 4));
    robots(&mut server, Now::ZERO, 404, b"");
    let mut now = Now::ZERO;
    for doc_id in 1..=5 {
        now = now.plus_ms(1_000);
        let order = fetch(&mut server, now);
        assert_eq!(order.doc_id, doc_id, "in the order they came");
        server.sent(order.trans, now);
        server.release(order.trans, &OK, now).unwrap();
        assert!(server.invariants());
    }
    // The slot is free, but its host was asked just now: forgetting it would forget the pause.
    nothing(&mut server, now.plus_ms(500));
    assert_eq!(server.stats().slots_reused, 0);
    now = now.plus_ms(1_001);
    robots(&mut server, now, 404, b"");
    assert_eq!(server.stats().slots_reused, 1);
    assert_eq!(fetch(&mut server, now.plus_ms(1_000)).doc_id, 9);
}

#[test]
fn a_silent_spider_loses_its_url_to_another_try() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    let at = Now::ZERO.plus_ms(1_000);
    let first = fetch(&mut server, at);
    server.working(first.trans, at.plus_ms(50_000));
    nothing(&mut server, at.plus_ms(70_000));
    server.tick(at.plus_ms(126_000));
    let second = fetch(&mut server, at.plus_ms(127_000));
    assert_eq!(second.doc_id, 1);
    assert_ne!(first.trans, second.trans);
    assert_eq!((server.stats().resent, server.release(first.trans, &OK, at.plus_ms(127_000))), (1, None));
}

/// When the spider made the request is not known, but that it was by now.
#[test]
fn the_pause_after_a_page_that_is_given_up_counts_from_then() {
    let begin = || {
        let mut server = UrlServer::new(config(), Now::ZERO).with_spiders_behind_links(Now::ZERO);
        let spider = server.join(false);
        server.admit(job(1, "http://a/", "1.1.1.1"), Now::ZERO);
        robots(&mut server, Now::ZERO, 404, b"");
        let at = Now::ZERO.plus_ms(1_000);
        let order = fetch(&mut server, at);
        server.sent(order.trans, at);
        // Another host of the address.
        server.admit(job(2, "http://b/", "1.1.1.1"), at);
        server.join(false);
        (server, spider, at)
    };
    let (mut server, spider, at) = begin();
    let left = at.plus_ms(5_000);
    server.leave(spider, left);
    nothing(&mut server, left.plus_ms(999));
    fetch(&mut server, left.plus_ms(1_000));

    let (mut server, _, at) = begin();
    let silent = at.plus_ms(75_000);
    server.tick(silent);
    assert_eq!(server.stats().resent, 1);
    nothing(&mut server, silent.plus_ms(999));
    fetch(&mut server, silent.plus_ms(1_000));
}

/// A spider may have made its request just before the URL server was killed, long after the line was sent.
#[test]
fn a_crawl_delay_counts_from_the_start_of_the_next_url_server() {
    let mut server = UrlServer::new(config(), Now::ZERO).with_spiders_behind_links(Now::ZERO);
    server.join(false);
    server.admit(job(1, "http://a/", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 200, b"User-agent: *\nCrawl-delay: 10");
    let sent = Now::ZERO.plus_ms(10_000);
    let order = fetch(&mut server, sent);
    server.sent(order.trans, sent);
    let journal = server.take_journal().unwrap();

    let start = sent.plus_ms(8_000);
    let mut memory = HostMemory::new(8);
    let clock = Clock { wall: config().wall, now: start };
    assert_eq!(memory.read(journal.as_bytes(), clock, &config().product_token), 0);
    let next = UrlServer::new(config(), start).after(start.plus_ms(1_000), memory);
    let mut next = next.with_spiders_behind_links(start);
    next.join(false);
    next.admit(job(1, "http://a/", "1.1.1.1"), start);
    nothing(&mut next, start.plus_ms(9_999));
    assert_eq!(fetch(&mut next, start.plus_ms(10_000)).kind, OrderKind::Page);
}

#[test]
fn a_url_put_back_is_the_next_one_after_the_pause() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://a/2", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    let at = Now::ZERO.plus_ms(1_000);
    let order = fetch(&mut server, at);
    server.sent(order.trans, at);
    server.put_back(order.trans, at);
    nothing(&mut server, at.plus_ms(999));
    assert_eq!(fetch(&mut server, at.plus_ms(1_000)).doc_id, 1);
}

#[test]
fn a_request_that_is_not_out_yet_holds_the_next_one_back() {
    let mut two = config();
    two.host = Niceness::from_rate(1.0, 2, 0.0);
    two.ip = Niceness::from_rate(0.0, 9, 0.0);
    let mut server = UrlServer::new(two, Now::ZERO);
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://a/2", "1.1.1.1"), Now::ZERO);
    robots(&mut server, Now::ZERO, 404, b"");
    let at = Now::ZERO.plus_ms(1_000);
    let first = fetch(&mut server, at);
    // Its connection takes three seconds to be made. A second one could be quicker, and the two would meet.
    nothing(&mut server, at.plus_ms(2_900));
    server.sent(first.trans, at.plus_ms(3_000));
    nothing(&mut server, at.plus_ms(3_999));
    assert_eq!(fetch(&mut server, at.plus_ms(4_000)).doc_id, 2);
}

/// A job of a host that has these addresses.
fn job_of(doc_id: u32, url: &str, ips: &[&str]) -> Job {
    let others = ips[1..].iter().map(|ip| ip.parse().unwrap()).collect();
    Job { others: Some(others), ..job(doc_id, url, ips[0]) }
}

#[test]
fn a_host_that_cannot_be_connected_to_is_asked_at_its_next_address_at_once() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    server.admit(job_of(1, "http://a/", &["1.1.1.1", "2.2.2.2", "3.3.3.3"]), Now::ZERO);
    let at = |ms| Now::ZERO.plus_ms(ms);
    let first = fetch(&mut server, at(0));
    assert!(first.more && first.ip.to_string() == "1.1.1.1");
    assert!(server.unreachable(first.trans, ResultCode::ConnectRefused, at(300)));
    assert!(!server.unreachable(first.trans, ResultCode::ConnectRefused, at(300)), "once");
    // No host was asked, so no pause runs but that of the address that did not answer.
    let second = fetch(&mut server, at(300));
    assert!(second.more && second.ip.to_string() == "2.2.2.2" && second.kind == OrderKind::Robots);
    server.sent(second.trans, at(310));
    assert!(!server.unreachable(second.trans, ResultCode::ConnectRefused, at(310)), "it was connected");
    let answer = Robotstxt::Answer { status: 404, body: b"", target: None };
    server.robots(second.trans, &answer, &Report { status: 404, ..OK }, at(320));
    // Another host of the first address waits as long as if that had been asked.
    server.admit(job(2, "http://b/", "1.1.1.1"), at(330));
    nothing(&mut server, at(999));
    assert_eq!(fetch(&mut server, at(1_000)).ip.to_string(), "1.1.1.1");
    nothing(&mut server, at(1_309));
    let page = fetch(&mut server, at(1_310));
    assert_eq!((page.doc_id, page.ip.to_string().as_str(), page.more), (1, "2.2.2.2", false));
    server.sent(page.trans, at(1_310));
    assert_eq!(server.release(page.trans, &OK, at(1_320)).unwrap().ip.to_string(), "2.2.2.2");
    assert!(server.invariants() && server.stats().moved_on == 1);
}

#[test]
fn a_host_that_can_be_had_nowhere_has_failed_once() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    let ips = ["1.1.1.1", "2.2.2.2"];
    server.admit(job_of(1, "http://a/", &ips), Now::ZERO);
    let mut tried = Vec::new();
    for (ms, goes_on) in [(0, true), (300, false)] {
        let now = Now::ZERO.plus_ms(ms);
        let order = fetch(&mut server, now);
        tried.push(order.ip.to_string());
        let result = ResultCode::ConnectRefused;
        assert_eq!(server.unreachable(order.trans, result, now), goes_on);
        if !goes_on {
            let report = Report { result, status: 0, ..OK };
            let step = server.robots(order.trans, &Robotstxt::Failed, &report, now);
            assert_eq!(step, RobotsStep::Unreachable);
        }
        assert!(server.invariants());
    }
    assert_eq!(tried, ips);
    let now = Now::ZERO.plus_ms(300);
    assert!(matches!(server.acquire(now), Acquired::Refused(job, _) if job.candidate.doc_id == 1));
    nothing(&mut server, now);
}

#[test]
fn requests_that_are_open_at_the_old_address_still_count_there() {
    let mut two = config();
    two.host = Niceness::from_rate(0.0, 2, 0.0);
    two.ip = Niceness::from_rate(0.0, 2, 0.0);
    let mut server = UrlServer::new(two, Now::ZERO);
    for doc_id in 1..=4 {
        server.admit(job_of(doc_id, &format!("http://a/{doc_id}"), &["1.1.1.1", "2.2.2.2"]), Now::ZERO);
    }
    robots(&mut server, Now::ZERO, 404, b"");
    let now = Now::ZERO.plus_ms(1);
    let (first, second) = (fetch(&mut server, now), fetch(&mut server, now));
    server.sent(first.trans, now);
    assert!(server.unreachable(second.trans, ResultCode::ConnectTimeout, now));
    assert!(server.invariants());
    let again = fetch(&mut server, now);
    assert_eq!((again.doc_id, again.ip.to_string().as_str()), (2, "2.2.2.2"));
    assert_eq!(server.release(first.trans, &OK, now).unwrap().ip.to_string(), "1.1.1.1");
    assert!(server.invariants());
    server.sent(again.trans, now);
    server.release(again.trans, &OK, now);
    assert_eq!(fetch(&mut server, now).ip.to_string(), "2.2.2.2", "it stays where it was had");
    assert!(server.invariants());
}

#[test]
fn a_look_says_where_a_url_is_and_what_its_host_waits_for() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    let url = |text: &str| CrawlUrl::parse(text).unwrap();
    server.admit(job(1, "http://a/1", "1.1.1.1"), Now::ZERO);
    server.admit(job(2, "http://a/2", "1.1.1.1"), Now::ZERO);
    let look = |server: &UrlServer, doc_id: u32, at: Now| {
        server.look(&url(&format!("http://a/{doc_id}")), doc_id, at).unwrap()
    };
    let first = look(&server, 2, Now::ZERO);
    assert_eq!((first.place, first.robots), (DocPlace::Queued { before: 1 }, RobotsView::Unknown));
    assert_eq!((first.waits_for, first.queued), (None, 2));
    let order = fetch(&mut server, Now::ZERO);
    assert_eq!(look(&server, 1, Now::ZERO).waits_for, Some(WaitsFor::Robots));
    server.sent(order.trans, Now::ZERO);
    let body = b"User-agent: *\nCrawl-delay: 2\nDisallow: /no";
    server.robots(order.trans, &Robotstxt::Answer { status: 200, body, target: None }, &OK, Now::ZERO);
    let delayed = look(&server, 1, Now::ZERO.plus_ms(10));
    assert_eq!(
        (delayed.waits_for, delayed.due),
        (Some(WaitsFor::CrawlDelay), Some(Now::ZERO.plus_ms(2_000)))
    );
    assert!(matches!(
        delayed.robots,
        RobotsView::Known { word: RobotsWord { allowed: true, rule: None }, .. }
    ));
    assert_eq!(server.robots_line(&url("http://a/no/x")).as_deref(), Some("Disallow: /no"));
    assert_eq!(server.robots_line(&url("http://a/1")), None);

    let at = Now::ZERO.plus_ms(2_000);
    let order = fetch(&mut server, at);
    server.sent(order.trans, at.plus_ms(5));
    let open = look(&server, 1, at.plus_ms(9_000));
    assert_eq!(open.place, DocPlace::Open { since: at.plus_ms(5), sent: true });
    assert_eq!((open.waits_for, open.open), (Some(WaitsFor::Concurrent), 1));
    let later = at.plus_ms(9_000);
    let busy = Report { status: 429, retry_after_s: Some(60), ..OK };
    server.release(order.trans, &busy, later).unwrap();
    let asked_to = look(&server, 2, later);
    assert_eq!(
        (asked_to.place, asked_to.waits_for),
        (DocPlace::Queued { before: 0 }, Some(WaitsFor::RetryAfter))
    );
    assert_eq!(asked_to.due, Some(later.plus_ms(60_000)));
    assert_eq!(look(&server, 1, later).place, DocPlace::Elsewhere, "it is done");

    server.admit(job(3, "http://b/3", "1.1.1.1"), later);
    let neighbour = server.look(&url("http://b/3"), 3, later).unwrap();
    assert_eq!(neighbour.waits_for, Some(WaitsFor::Address));
    assert_eq!(server.look(&url("http://c/"), 4, later), None);
}

#[test]
fn a_server_rests_while_nothing_may_go_out_and_names_the_hosts_with_the_most_urls() {
    let mut server = UrlServer::new(config(), Now::ZERO);
    assert_eq!(server.rest(0, Now::ZERO).map(|rest| rest.until), Some(Now::NEVER), "nothing to do at all");
    for doc_id in 1..=6 {
        server.admit(job(doc_id, &format!("http://a/{doc_id}"), "1.1.1.1"), Now::ZERO);
    }
    // A neighbour, which shares the pace of the address but not what the other asked for.
    server.admit(job(7, "http://b/1", "1.1.1.1"), Now::ZERO);
    assert_eq!(server.rest(0, Now::ZERO), None, "it may be asked");
    let order = fetch(&mut server, Now::ZERO);
    assert_eq!(server.rest(0, Now::ZERO), None, "a request is open");
    server.sent(order.trans, Now::ZERO);
    let answer = Robotstxt::Answer { status: 404, body: b"", target: None };
    let busy = Report { status: 404, retry_after_s: Some(3_600), ..OK };
    server.robots(order.trans, &answer, &busy, Now::ZERO);
    let (asked, neighbour) = (Now::ZERO.plus_ms(3_600_000), Now::ZERO.plus_ms(1_000));
    let host = |origin: &str, urls, waits_for, until| RestingHost {
        origin: origin.into(),
        urls,
        waits_for,
        until: Some(until),
    };
    let rest = server.rest(0, Now::ZERO).unwrap();
    assert_eq!(rest.until, neighbour);
    assert_eq!(rest.hosts[0].urls, 6, "four in its queue, two left over");
    assert_eq!((rest.hosts.len(), rest.more), (2, 0));
    assert_eq!(rest.hosts[1], host("http://b", 1, WaitsFor::Address, neighbour));
    assert_eq!(server.rest(1_000_000, Now::ZERO).unwrap().hosts, [], "too short to be spoken of");
    robots(&mut server, neighbour, 503, b"");
    // Its neighbour was refused: its rules could not be had.
    assert!(matches!(server.acquire(neighbour), Acquired::Refused(..)));
    let rest = server.rest(0, neighbour).unwrap();
    assert_eq!((rest.until, rest.hosts.len()), (asked, 1));
}
