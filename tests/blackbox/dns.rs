//! The promise: names are resolved by the servers of `--dns`, whatever the network does to questions and answers;
//! nobody but the server asked is believed, and no address is connected to that was not checked.

use crate::name_server::*;
use crate::support::*;
use serde_json::Value;
use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

/// A web server that answers every host with a page, on every address of the machine.
fn web() -> LogServer {
    LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("found\n"),
    })
}

#[track_caller]
fn crawl_names(driver: &str, data: &Path, servers: &[String], hosts: &[&str], port: u16) -> Value {
    let mut flags: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    flags.extend(["--driver", driver, "--req-host-per-sec", "0"].map(str::to_string));
    flags.extend(servers.iter().flat_map(|server| ["--dns".to_string(), server.clone()]));
    crawl(data, flags).0
}

/// Crawls one page of a name with both drivers; the address it came from each time, and how long it took at most.
#[track_caller]
fn fetched_from(script: fn(&Question) -> Said, check: impl Fn(&ScriptedServer)) -> (String, Duration) {
    let mut found = HashSet::new();
    let mut slowest = Duration::ZERO;
    for driver in DRIVERS {
        let (dir, web, server) = (TempDir::new(), web(), ScriptedServer::start(script));
        let from = Instant::now();
        let data = dir.join("data");
        let report = crawl_names(driver, &data, &[server.flag()], &["www.dns.test"], web.port());
        slowest = slowest.max(from.elapsed());
        assert_eq!(report["success"], 1, "{driver}: {report}");
        check(&server);
        found.extend(stored(&data).into_values().map(|record| record.ip));
    }
    assert_eq!(found.len(), 1, "both drivers agree: {found:?}");
    (found.into_iter().next().unwrap(), slowest)
}

/// Crawls one name with both drivers; nothing is fetched, for this reason.
#[track_caller]
fn not_fetched(result: &str, script: fn(&Question) -> Said) {
    for driver in DRIVERS {
        let (dir, web, server) = (TempDir::new(), web(), ScriptedServer::start(script));
        let report = crawl_names(driver, &dir.join("data"), &[server.flag()], &["www.dns.test"], web.port());
        assert_eq!(result_count(&report, result), 1, "{driver}: {report}");
        assert_eq!(report["pages"], 0);
        assert_eq!(web.connections(), 0, "nobody was connected to");
    }
}

const WEB: [&str; 1] = ["127.0.0.1"];
/// Where a forged answer leads.
const ELSEWHERE: [&str; 1] = ["127.66.66.66"];

#[test]
fn a_real_server_is_understood() {
    let mut records = "local=/dns.test/\n\
        host-record=one.dns.test,127.0.0.1\n\
        cname=alias.dns.test,other.dns.test\ncname=other.dns.test,one.dns.test\n\
        host-record=two.dns.test,10.9.8.7\nhost-record=two.dns.test,127.0.0.1\n\
        host-record=six.dns.test,fd00::1\n\
        txt-record=text.dns.test,hello\n"
        .to_string();
    // Far more than fits in 1,232 bytes.
    for n in 0..250 {
        records += &format!("host-record=big.dns.test,127.0.1.{n}\n");
    }
    let dnsmasq = Dnsmasq::start(&records);
    for driver in DRIVERS {
        let (dir, web) = (TempDir::new(), web());
        let hosts =
            ["one", "alias", "two", "big", "six", "text", "nowhere"].map(|host| format!("{host}.dns.test"));
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let data = dir.join("data");
        let report = crawl_names(driver, &data, &[dnsmasq.addr.to_string()], &hosts, web.port());
        let places = ["alias", "big", "one", "two"].map(|host| format!("{host}.dns.test/"));
        assert_eq!(web.places(), places, "{driver}: {report}");
        for (url, record) in stored(&data) {
            let net = if url.contains("big") { "127.0.1." } else { "127.0.0.1" };
            assert!(record.ip.starts_with(net), "{url} from {}", record.ip);
        }
        assert_eq!(result_count(&report, "dns_failed"), 2, "no address, no such name: {report}");
        assert_eq!(result_count(&report, "blocked_address"), 1, "an IPv6 address was found: {report}");
    }
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    let script = |asked: &Question| match asked.nth {
        0 => Vec::new(),
        _ => at_once(asked.addresses(&WEB)),
    };
    let (ip, _) = fetched_from(script, |server| assert_eq!(server.tries(), [false, false]));
    assert_eq!(ip, "127.0.0.1");
}

#[test]
fn a_late_answer_is_an_answer() {
    // After the question was sent again, and before that is answered.
    let script = |asked: &Question| match asked.nth {
        0 => vec![(Duration::from_millis(2_600), asked.addresses(&WEB))],
        _ => Vec::new(),
    };
    let (_, took) = fetched_from(script, |server| assert_eq!(server.tries(), [false, false]));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_forged_answer_is_not_believed() {
    let script = |asked: &Question| {
        let mut other_id = asked.addresses(&ELSEWHERE);
        other_id[1] ^= 1;
        let mut other_name = asked.addresses(&ELSEWHERE);
        other_name[13] ^= 1;
        let no_answer = asked.addresses(&ELSEWHERE)[..20].to_vec();
        let mut said: Said =
            [other_id, other_name, no_answer, Vec::new()].map(|bytes| (Duration::ZERO, bytes)).into();
        said.push((Duration::from_millis(300), asked.addresses(&WEB)));
        said
    };
    let (ip, _) = fetched_from(script, |server| assert_eq!(server.tries(), [false], "the wait went on"));
    assert_eq!(ip, "127.0.0.1");
}

/// Somebody else than the server knows port, id and spelling, and is not heard all the same.
#[test]
fn only_the_server_asked_is_heard() {
    let script = |asked: &Question| {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&asked.addresses(&ELSEWHERE), asked.from).unwrap();
        vec![(Duration::from_millis(200), asked.addresses(&WEB))]
    };
    assert_eq!(fetched_from(script, |_| ()).0, "127.0.0.1");
}

/// Whoever guesses the id but not the case of the letters brings about a question over TCP, and no more.
#[test]
fn an_answer_in_other_letters_is_asked_for_over_tcp() {
    let script = |asked: &Question| {
        let mut answer = asked.addresses(if asked.tcp { &WEB } else { &ELSEWHERE });
        for letter in answer[12..].iter_mut().take(16).filter(|byte| byte.is_ascii_alphabetic()) {
            *letter ^= 0x20;
        }
        at_once(answer)
    };
    let (ip, _) = fetched_from(script, |server| assert_eq!(server.tries(), [false, true]));
    assert_eq!(ip, "127.0.0.1");
}

#[test]
fn a_truncated_answer_is_asked_for_over_tcp() {
    let script = |asked: &Question| {
        if !asked.tcp {
            return at_once(asked.truncated());
        }
        let many: Vec<String> = (0..1_500).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
        at_once(asked.addresses(&[&["127.0.0.1".to_string()][..], &many].concat()))
    };
    let (ip, _) = fetched_from(script, |server| assert_eq!(server.tries(), [false, true]));
    assert_eq!(ip, "127.0.0.1");
}

/// A datagram larger than we asked for, and than the buffer that takes it.
#[test]
fn an_oversized_answer_is_asked_for_over_tcp() {
    let script = |asked: &Question| {
        if asked.tcp {
            return at_once(asked.addresses(&WEB));
        }
        let many: Vec<String> = (0..2_000).map(|n| format!("127.66.{}.{}", n / 250, n % 250)).collect();
        at_once(if asked.wants_v6 { asked.addresses(&WEB) } else { asked.addresses(&many) })
    };
    let (ip, _) = fetched_from(script, |server| assert_eq!(server.tries(), [false, true]));
    assert_eq!(ip, "127.0.0.1");
}

#[test]
fn where_no_server_listens_the_next_is_asked() {
    for driver in DRIVERS {
        let (dir, web) = (TempDir::new(), web());
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let server = ScriptedServer::start(|asked| at_once(asked.addresses(&WEB)));
        let took = |name: &str, servers: &[String]| {
            let from = Instant::now();
            let report = crawl_names(driver, &dir.join(name), servers, &["www.dns.test"], web.port());
            assert_eq!(report["success"], 1, "{driver}: {report}");
            from.elapsed()
        };
        // What a crawl takes on this machine, and no name server is asked in vain.
        let usual = took("usual", &[server.flag()]);
        let refused = took("refused", &[nobody, server.flag()]);
        let waited_out = Duration::from_millis(1_900);
        assert!(refused < usual + waited_out, "the refusal is not waited out: {refused:?}, {usual:?}");
    }
}

#[test]
fn a_server_that_cannot_say_is_followed_by_the_next() {
    for (driver, rcode) in [("uring", 2), ("epoll", 2), ("uring", 5), ("epoll", 5)] {
        let (dir, web) = (TempDir::new(), web());
        let first = ScriptedServer::start(move |asked| at_once(asked.code(rcode)));
        let second = ScriptedServer::start(|asked| at_once(asked.addresses(&WEB)));
        let servers = [first.flag(), second.flag()];
        let report = crawl_names(driver, &dir.join("data"), &servers, &["www.dns.test"], web.port());
        assert_eq!(report["success"], 1, "{driver}: {report}");
        assert_eq!((first.tries().len(), second.tries().len()), (1, 1));
    }
}

#[test]
fn a_private_address_is_not_connected_to() {
    not_fetched("blocked_address", |asked| at_once(asked.addresses(&["10.0.0.1", "192.168.1.1", "fd00::1"])));
    // Nor is loopback, unless it is allowed.
    for driver in DRIVERS {
        let (dir, web) = (TempDir::new(), web());
        let server = ScriptedServer::start(|asked| at_once(asked.addresses(&WEB)));
        let mut command = nephila();
        command.args(["crawl", "--json", "--driver", driver, "--dns", &server.flag(), "--data"]);
        command.arg(dir.join("data")).arg(format!("http://www.dns.test:{}/", web.port()));
        let report = Running::start(&mut command).wait(PATIENCE).ended().json();
        assert_eq!(result_count(&report, "blocked_address"), 1, "{driver}: {report}");
        assert_eq!(web.connections(), 0);
    }
}

#[test]
fn the_first_address_that_is_allowed_is_taken() {
    let script =
        |asked: &Question| at_once(asked.addresses(&["10.0.0.1", "127.0.0.1", "127.66.66.66", "::1"]));
    assert_eq!(fetched_from(script, |_| ()).0, "127.0.0.1");
}

#[test]
fn a_name_without_an_address_fails() {
    not_fetched("dns_failed", |asked| at_once(asked.code(0)));
    not_fetched("dns_failed", |asked| at_once(asked.code(3)));
}

/// IPv6 questions get no answer: that costs a moment, not a time-out, and no page.
#[test]
fn silence_about_ipv6_holds_nothing_up() {
    let script = |asked: &Question| match asked.wants_v6 {
        true => Vec::new(),
        false => at_once(asked.addresses(&WEB)),
    };
    let (_, took) = fetched_from(script, |server| assert_eq!(server.tries(), [false]));
    assert!(took < Duration::from_millis(1_900), "{took:?}");
}

#[test]
fn a_name_is_asked_for_once_and_no_two_questions_are_alike() {
    for driver in DRIVERS {
        let (dir, web) = (TempDir::new(), web());
        let server = ScriptedServer::start(|asked| at_once(asked.addresses(&WEB)));
        let hosts: Vec<String> = (0..40).map(|n| format!("h{}.dns.test", n % 20)).collect();
        let seeds: String = (0..40).map(|n| format!("http://{}:{}/{n}\n", hosts[n], web.port())).collect();
        let seeds = dir.write("seeds", seeds);
        let flags = ["--driver", driver, "--dns", &server.flag(), "--req-host-per-sec", "0", "--seeds"];
        let flags = flags.into_iter().chain([seeds.to_str().unwrap()]);
        let (report, _) = crawl(&dir.join("data"), flags);
        assert_eq!(report["success"], 40, "{driver}: {report}");
        let asked = server.asked();
        assert_eq!(asked.len(), 2 * 20, "A and AAAA of every host, once");
        let ports: HashSet<u16> = asked.iter().map(|asked| asked.from.port()).collect();
        let ids: HashSet<u16> = asked.iter().map(|asked| asked.id).collect();
        assert!(ports.len() == 40 && ids.len() >= 38, "{} ports, {} ids", ports.len(), ids.len());
    }
}

#[test]
fn files_come_before_servers() {
    for driver in DRIVERS {
        let (dir, web) = (TempDir::new(), web());
        let server = ScriptedServer::start(|asked| at_once(asked.addresses(&ELSEWHERE)));
        // The first address of the file that is allowed is the second one.
        let hosts = dir.write("hosts", "10.0.0.1 www.dns.test\n127.0.0.1 www.dns.test\n");
        let port = web.port();
        let seeds = [format!("http://www.dns.test:{port}/"), format!("http://localhost:{port}/")];
        let flags = ["--driver", driver, "--dns", &server.flag(), "--hosts-file", hosts.to_str().unwrap()];
        let (report, _) = crawl(&dir.join("data"), seeds.iter().map(String::as_str).chain(flags));
        assert_eq!(report["success"], 2, "{driver}: {report}");
        assert!(server.asked().is_empty(), "{:?}", server.asked());
    }
}

#[test]
fn a_server_that_is_no_address_is_a_usage_error() {
    for bad in ["example.org", "1.2.3", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "[::1", ""] {
        let run = run(["crawl", "http://127.0.0.1:9/", &format!("--dns={bad}")]);
        assert_eq!(run.code(), 2, "{bad}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{bad}: {}", run.stderr);
        assert!(run.stderr.contains("--dns") && run.stderr.contains("ADDR[:PORT]"), "{}", run.stderr);
    }
}

/// A crawl that is stopped while names are open does not wait for them.
#[test]
fn stopping_does_not_wait_for_names() {
    for driver in DRIVERS {
        let (dir, server) = (TempDir::new(), ScriptedServer::start(|_| Vec::new()));
        let mut command = crawl_command(&dir.join("data"));
        command.args(["http://www.dns.test/", "--driver", driver, "--dns", &server.flag()]);
        let running = Running::start(&mut command);
        wait_for("a question", PATIENCE, || (!server.asked().is_empty()).then_some(()));
        let from = Instant::now();
        running.signal(nix::sys::signal::Signal::SIGINT);
        let report = running.wait(PATIENCE).done().json();
        assert!(from.elapsed() < Duration::from_secs(4), "{driver}: {:?}", from.elapsed());
        assert_eq!((report["pages"].as_u64(), report["pending"].as_u64()), (Some(0), Some(1)), "{report}");
    }
}
