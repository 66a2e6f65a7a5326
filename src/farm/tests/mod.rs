//! What a farm promises its clients: the bytes on the wire are those of the site, kept or broken as drawn.

mod tls;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;

use crate::base::Transport;
use crate::proto::dns::{HostName, Question, RecordKind, Reply};

use super::{Breakage, Farm, FarmError, FarmOptions, PageKind, SiteSpec, host_addr};

fn farm(spec: SiteSpec) -> Farm {
    Farm::start(FarmOptions { spec, ..FarmOptions::default() }).unwrap()
}

struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Client {
    fn at(addr: Ipv4Addr, port: u16) -> Client {
        let stream = TcpStream::connect((addr, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn new(farm: &Farm, host: u32) -> Client {
        Client::at(host_addr(host), farm.port())
    }

    fn write(&mut self, bytes: &str) {
        self.stream.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    fn get(&mut self, target: &str) -> Response {
        self.write(&format!("GET {target} HTTP/1.1\r\nHost: farm\r\n\r\n"));
        self.response(false)
    }

    fn get_page(&mut self, page: u32) -> Response {
        self.get(&path(page))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line
    }

    fn response(&mut self, head_only: bool) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = self.line();
            assert!(!line.is_empty(), "closed within {head:?}");
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        if head_only {
        } else if head.contains("Transfer-Encoding: chunked") {
            loop {
                let size = usize::from_str_radix(self.line().trim_end(), 16).unwrap();
                let start = body.len();
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..]).unwrap();
                assert_eq!(self.line(), "\r\n");
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length(&head), 0);
            self.stream.read_exact(&mut body).unwrap();
        }
        Response { status, head, body }
    }

    /// Everything up to the end of the connection, orderly or not.
    fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        let mut bytes = Vec::new();
        let end = self.stream.read_to_end(&mut bytes).map(|_| ());
        (bytes, end)
    }
}

fn path(page: u32) -> String {
    if page == 0 { "/".to_owned() } else { format!("/p/{page}.html") }
}

fn length(head: &str) -> usize {
    head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap()
}

fn find(farm: &Farm, wanted: impl Fn(PageKind) -> bool) -> (u32, u32) {
    let SiteSpec { hosts, pages, .. } = *farm.site().spec();
    (0..hosts)
        .flat_map(|host| (0..pages).map(move |page| (host, page)))
        .find(|&(host, page)| wanted(farm.site().kind(host, page)))
        .expect("shares this large make one of each kind")
}

#[test]
fn pages_are_those_of_the_site_on_every_thread() {
    let options = FarmOptions { threads: 3, cores: Some(vec![0]), ..FarmOptions::default() };
    let farm = Farm::start(options).unwrap();
    for host in (0..1000).step_by(37) {
        let mut client = Client::new(&farm, host);
        for page in [0, 1, 19] {
            let response = client.get_page(page);
            assert_eq!(response.status, 200);
            assert_eq!(response.body, farm.site().document(host, page, farm.port()));
        }
        assert!(client.get("/robots.txt").body.starts_with(b"User-agent: *\nDisallow: /private/\n"));
    }
    let stats = farm.stop();
    assert_eq!((stats.requests, stats.connections, stats.denied_requests), (28 * 4, 28, 0));
    assert!(stats.bytes > 28 * 3 * 10_000);
}

#[test]
fn pipelined_and_dribbled_requests_are_answered_in_order() {
    let farm = farm(SiteSpec { latency_ms: 2, ..SiteSpec::default() });
    let requests: String = (0..20).map(|page| format!("GET {} HTTP/1.1\r\n\r\n", path(page))).collect();
    let mut client = Client::new(&farm, 3);
    client.write(&requests);
    for page in 0..20 {
        assert_eq!(client.response(false).body, farm.site().document(3, page, farm.port()));
    }
    client.stream.get_ref().set_nodelay(true).unwrap();
    for byte in requests[..120].chars() {
        client.write(&byte.to_string());
    }
    for page in 0..4 {
        assert_eq!(client.response(false).body, farm.site().document(3, page, farm.port()));
    }
}

#[test]
fn a_long_pipeline_outlasts_full_windows() {
    let farm = farm(SiteSpec { page_bytes: 100_000, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 0);
    let mut writer = client.stream.get_ref().try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let requests =
            "GET /p/1.html HTTP/1.1\r\nX-Padding: to fill the buffers of both sides\r\n\r\n".repeat(1000);
        writer.write_all(requests.as_bytes()).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    std::thread::sleep(Duration::from_millis(50));
    let document = farm.site().document(0, 1, farm.port());
    for _ in 0..1000 {
        assert_eq!(client.response(false).body, document);
    }
    let (rest, end) = client.rest();
    assert!(rest.is_empty() && end.is_ok());
    writing.join().unwrap();
}

#[test]
fn a_request_and_a_half_close_is_answered_and_closed() {
    let farm = farm(SiteSpec::default());
    let mut client = Client::new(&farm, 0);
    client.write("GET / HTTP/1.1\r\n\r\n");
    client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.response(false).status, 200);
    assert_eq!(client.rest().0, b"");
}

#[test]
fn a_large_page_arrives_whole_at_a_slow_reader() {
    let farm = farm(SiteSpec { page_bytes: 20_000_000, hosts: 1, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 0);
    client.write("GET / HTTP/1.1\r\n\r\nGET /robots.txt HTTP/1.1\r\n\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.response(false).body, farm.site().document(0, 0, farm.port()));
    assert_eq!(client.response(false).status, 200);
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let farm = farm(SiteSpec { chunked: 0.5, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 1);
    for page in 0..20 {
        client.write(&format!("HEAD {} HTTP/1.1\r\n\r\n", path(page)));
        let head = client.response(true);
        assert_eq!(head.head, client.get_page(page).head);
    }
}

#[test]
fn chunked_documents_decode_to_the_same_bytes() {
    let farm = farm(SiteSpec { chunked: 1.0, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 1);
    for page in 0..20 {
        let response = client.get_page(page);
        assert!(response.head.contains("Transfer-Encoding: chunked"));
        assert_eq!(response.body, farm.site().document(1, page, farm.port()));
    }
}

#[test]
fn gzip_goes_to_whom_takes_it() {
    let farm = farm(SiteSpec { gzip: 0.5, chunked: 0.5, page_sigma: 1.0, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 1);
    let mut packed_pages = 0;
    for page in 0..20 {
        let document = farm.site().document(1, page, farm.port());
        for (accepted, takes) in [("", false), ("Accept-Encoding: br, gzip\r\n", true)] {
            client.write(&format!("GET {} HTTP/1.1\r\n{accepted}\r\n", path(page)));
            let response = client.response(false);
            let is_packed = takes && farm.site().is_gzip(1, page);
            assert_eq!(response.head.contains("Content-Encoding: gzip\r\n"), is_packed, "{}", response.head);
            let mut plain = Vec::new();
            match is_packed {
                true => drop(GzDecoder::new(&response.body[..]).read_to_end(&mut plain).unwrap()),
                false => plain = response.body,
            }
            assert_eq!(plain, document);
            packed_pages += u32::from(is_packed);
        }
    }
    assert!((5..16).contains(&packed_pages), "{packed_pages}");
}

#[test]
fn a_host_holds_every_answer_back_as_long_as_the_others_do_not() {
    let farm = farm(SiteSpec { latency_ms: 40, latency_sigma: 1.5, ..SiteSpec::default() });
    let slowest = (0..1000).max_by_key(|&host| farm.site().latency_ms(host)).unwrap();
    let quickest = (0..1000).min_by_key(|&host| farm.site().latency_ms(host)).unwrap();
    let ms = farm.site().latency_ms(slowest);
    assert!(ms > 400 && farm.site().latency_ms(quickest) < 5, "{ms}");
    let took = |host| {
        let (mut client, start) = (Client::new(&farm, host), Instant::now());
        assert_eq!(client.get("/robots.txt").status, 200);
        start.elapsed()
    };
    assert!(took(quickest) < Duration::from_millis(400));
    assert!(took(slowest) >= Duration::from_millis(u64::from(ms)));
}

#[test]
fn names_are_told_and_counted_until_the_farm_stops() {
    let spec = SiteSpec { hosts: 300, slow_hosts: 9, ..SiteSpec::default() };
    let farm = Farm::start(FarmOptions { spec, dns_port: Some(0), ..FarmOptions::default() }).unwrap();
    let addr = farm.name_server().unwrap();
    assert!(addr.ip().is_loopback() && addr.port() > 0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for (name, expected) in [("h308.farm.test", true), ("h309.farm.test", false)] {
        let question = Question::new(&HostName::parse(name).unwrap(), RecordKind::A, 5, 3);
        socket.send_to(&question.datagram(true), addr).unwrap();
        let mut answer = [0; 2_000];
        let length = socket.recv(&mut answer).unwrap();
        let addresses = vec![host_addr(308).into()];
        let reply = question.read(&answer[..length], Transport::Udp);
        assert_eq!(reply == Reply::Addresses { addresses, ttl_s: 3_600 }, expected, "{reply:?}");
    }
    assert_eq!(farm.stop().names_asked, 2);
    assert!(UdpSocket::bind(addr).is_ok(), "the port is free again");
    assert_eq!(self::farm(SiteSpec::default()).name_server(), None);
}

#[test]
fn redirects_and_errors_keep_the_connection() {
    let farm = farm(SiteSpec { redirects: 0.4, errors: 0.4, ..SiteSpec::default() });
    let (mut redirects, mut errors) = (0, 0);
    for host in 0..10 {
        let mut client = Client::new(&farm, host);
        for page in 0..20 {
            let response = client.get_page(page);
            match farm.site().kind(host, page) {
                PageKind::Redirect { to } => {
                    assert!(matches!(response.status, 301 | 302 | 307 | 308));
                    assert!(response.head.contains(&format!("{}\r\n", path(to))));
                    redirects += 1;
                }
                PageKind::Error { status } => {
                    assert_eq!(response.status, status);
                    errors += 1;
                }
                _ => assert_eq!(response.status, 200),
            }
        }
    }
    assert!(redirects > 50 && errors > 50, "{redirects} redirects, {errors} errors");
}

#[test]
fn broken_pages_break_their_connection() {
    let farm = farm(SiteSpec { broken: 0.8, ..SiteSpec::default() });
    let broken = |breakage| {
        let (host, page) = find(&farm, |kind| kind == PageKind::Broken(breakage));
        let mut client = Client::new(&farm, host);
        client.write(&format!("GET {} HTTP/1.1\r\n\r\n", path(page)));
        let (bytes, end) = client.rest();
        (String::from_utf8(bytes).unwrap(), end)
    };
    let (bytes, end) = broken(Breakage::Reset);
    assert_eq!(bytes, "");
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let (bytes, end) = broken(Breakage::Truncated);
    let (head, body) = bytes.split_once("\r\n\r\n").unwrap();
    assert!(body.len() < length(head) && end.is_ok());
    let (bytes, end) = broken(Breakage::BadStatusLine);
    assert!(bytes.starts_with("HTTP/1.1 2x0") && end.is_ok());
    let (bytes, end) = broken(Breakage::BadChunk);
    assert!(bytes.contains("\r\nzz\r\n") && end.is_ok());
}

#[test]
fn denied_pages_are_served_and_counted() {
    let farm = farm(SiteSpec { denied: 2, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 9);
    let mut private = Vec::new();
    farm.site().push_private_document(9, 1, &mut private);
    assert_eq!(client.get("/private/1.html").body, private);
    assert_eq!(client.get("/private/2.html").status, 404);
    assert_eq!(client.get("/").status, 200);
    let stats = farm.stats();
    assert_eq!((stats.requests, stats.denied_requests, stats.connections), (3, 2, 1));
    // The bytes of an answer are counted once it has left, which a client may be quicker than.
    let wanted = |connections: u32| {
        let counts = "\"robots_requests\":0,\"denied_requests\":2";
        format!("{{\"requests\":3,\"connections\":{connections},{counts},\"bytes\":").into_bytes()
    };
    let response = client.get("/farm-stats");
    assert!(response.head.contains("Content-Type: application/json\r\n"));
    assert!(response.body.starts_with(&wanted(1)), "{}", String::from_utf8_lossy(&response.body));
    let elsewhere = Client::at(Ipv4Addr::LOCALHOST, farm.port()).get("/farm-stats").body;
    assert!(elsewhere.starts_with(&wanted(2)), "{}", String::from_utf8_lossy(&elsewhere));
}

#[test]
fn many_answers_wait_at_once() {
    let farm = farm(SiteSpec { latency_ms: 100, slow: 1.0, slow_ms: 300, ..SiteSpec::default() });
    let start = Instant::now();
    let mut clients: Vec<Client> = (0..300).map(|host| Client::new(&farm, host)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.write(&format!("GET {} HTTP/1.1\r\n\r\n", path(index as u32 % 2)));
    }
    let (mut quick, slow): (Vec<_>, Vec<_>) =
        clients.iter_mut().enumerate().partition(|(index, _)| index % 2 == 0);
    for (_, client) in &mut quick {
        assert_eq!(client.response(false).status, 200);
    }
    assert!(start.elapsed() >= Duration::from_millis(100));
    for (_, client) in slow {
        assert_eq!(client.response(false).status, 200);
    }
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(400) && elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[test]
fn what_is_no_page_request_is_refused_and_closed() {
    let farm = farm(SiteSpec { hosts: 2, ..SiteSpec::default() });
    let refused = |addr, request: &str| {
        let mut client = Client::at(addr, farm.port());
        client.write(request);
        let response = client.response(false);
        assert!(response.head.contains("Connection: close\r\n"));
        client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
        let (rest, end) = client.rest();
        assert!(rest.is_empty() && end.is_ok(), "{end:?}");
        response.status
    };
    let host = host_addr(0);
    let body = "x".repeat(100_000);
    assert_eq!(refused(host, &format!("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{body}")), 405);
    assert_eq!(refused(host, &format!("GET / HTTP/1.1\r\nX: {body}\r\n\r\n")), 400);
    assert_eq!(refused(host, "nonsense\r\n\r\n"), 400);
    assert_eq!(refused(host_addr(2), "GET / HTTP/1.1\r\n\r\n"), 421);
    assert_eq!(refused(Ipv4Addr::LOCALHOST, "GET / HTTP/1.1\r\n\r\n"), 421);
}

#[test]
fn closes_when_the_spec_or_the_client_says_so() {
    let farm = farm(SiteSpec { close: true, ..SiteSpec::default() });
    let mut client = Client::new(&farm, 0);
    assert!(client.get("/").head.contains("Connection: close\r\n"));
    assert_eq!(client.rest().0, b"");
    let farm = self::farm(SiteSpec::default());
    let mut client = Client::new(&farm, 0);
    client.write("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response(false).status, 200);
    assert_eq!(client.rest().0, b"");
}

#[test]
fn stopping_closes_connections() {
    let farm = farm(SiteSpec::default());
    let mut client = Client::new(&farm, 0);
    client.get("/");
    farm.stop();
    assert_eq!(client.rest().0, b"");
}

#[test]
fn a_taken_port_and_a_missing_core_are_named() {
    let first = Farm::start(FarmOptions { threads: 2, ..FarmOptions::default() }).unwrap();
    for threads in [1, 2] {
        let options = FarmOptions { port: first.port(), threads, ..FarmOptions::default() };
        assert!(matches!(Farm::start(options), Err(FarmError::AddressInUse { .. })));
    }
    let options = FarmOptions { cores: Some(vec![0, 1023]), threads: 2, ..FarmOptions::default() };
    assert!(matches!(Farm::start(options), Err(FarmError::Pin { core: 1023, .. })));
    let options = FarmOptions { threads: 0, ..FarmOptions::default() };
    assert!(matches!(Farm::start(options), Err(FarmError::Threads(0))));
}

#[test]
fn seeds_and_hosts_file_name_every_host() {
    let farm = farm(SiteSpec { hosts: 300, ..SiteSpec::default() });
    let seeds: Vec<String> = farm.seeds().collect();
    assert_eq!(seeds.len(), 300);
    assert_eq!(farm.url(7, 3), format!("http://h7.farm.test:{}/p/3.html", farm.port()));
    assert_eq!(seeds[299], format!("http://h299.farm.test:{}/", farm.port()));
    let path = std::env::temp_dir().join(format!("farm-hosts-{}", std::process::id()));
    farm.write_hosts_file(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.lines().next(), Some("127.16.0.0 h0.farm.test"));
    assert_eq!(text.lines().last(), Some("127.16.1.43 h299.farm.test"));
}
