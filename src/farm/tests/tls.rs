//! What a farm promises over TLS: the same bytes, a certificate that its authority vouches for, sessions to resume.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::super::{Farm, FarmOptions, SiteSpec, host_addr, host_name};
use crate::proto::tls::{TlsClient, TlsConn, TlsError, TlsSettings};

fn farm(spec: SiteSpec) -> (Farm, TlsClient) {
    let farm =
        Farm::start(FarmOptions { spec: SiteSpec { tls: true, ..spec }, ..FarmOptions::default() }).unwrap();
    let roots_pem = Some(farm.ca_pem().unwrap().as_bytes().to_vec());
    let client = TlsClient::new(&TlsSettings { roots_pem, ..TlsSettings::default() }).unwrap();
    (farm, client)
}

struct Visit {
    stream: TcpStream,
    tls: TlsConn,
    plain: Vec<u8>,
}

impl Visit {
    fn new(farm: &Farm, client: &TlsClient, addr: Ipv4Addr, host: &str) -> Result<Visit, TlsError> {
        let stream = TcpStream::connect((addr, farm.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut visit = Visit { stream, tls: client.open(host)?, plain: Vec::new() };
        while visit.tls.is_handshaking() {
            visit.flush();
            visit.receive()?;
        }
        visit.flush();
        Ok(visit)
    }

    fn flush(&mut self) {
        let mut out = Vec::new();
        self.tls.take_output(&mut out);
        self.stream.write_all(&out).unwrap();
    }

    /// False at the end of the connection.
    fn receive(&mut self) -> Result<bool, TlsError> {
        let mut wire = [0; 5_000];
        let bytes = self.stream.read(&mut wire).unwrap();
        self.tls.receive(&wire[..bytes], &mut self.plain).map(|()| bytes > 0)
    }

    fn ask(&mut self, requests: &str) {
        let mut out = Vec::new();
        self.tls.send(requests.as_bytes(), &mut out);
        self.stream.write_all(&out).unwrap();
    }

    /// Takes the next body that a Content-Length tells of.
    fn body(&mut self) -> Vec<u8> {
        loop {
            if let Some(head) = self.plain.windows(4).position(|end| end == b"\r\n\r\n") {
                let text = std::str::from_utf8(&self.plain[..head]).unwrap();
                let length = text.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap();
                let end = head + 4 + length.parse::<usize>().unwrap();
                if self.plain.len() >= end {
                    let body = self.plain[head + 4..end].to_vec();
                    self.plain.drain(..end);
                    return body;
                }
            }
            assert!(self.receive().unwrap(), "closed within an answer");
        }
    }
}

#[test]
fn pages_over_tls_are_those_of_the_site() {
    let (farm, client) = farm(SiteSpec::default());
    assert!(farm.url(7, 3).starts_with("https://h7.farm.test:"));
    for host in [0, 3, 999] {
        let mut visit = Visit::new(&farm, &client, host_addr(host), &host_name(host)).unwrap();
        for page in 1..20 {
            visit.ask(&format!("GET /p/{page}.html HTTP/1.1\r\n\r\n"));
            assert_eq!(visit.body(), farm.site().document(host, page, farm.port()));
        }
        // Two in one record, and one over many.
        visit.ask("GET /p/1.html HTTP/1.1\r\n\r\nGET /p/2.html HTTP/1.1\r\n\r\n");
        for byte in "GET /p/3.html HTTP/1.1\r\n\r\n".chars() {
            visit.ask(&byte.to_string());
        }
        for page in 1..4 {
            assert_eq!(visit.body(), farm.site().document(host, page, farm.port()));
        }
    }
    assert_eq!(farm.stop().connections, 3);
}

#[test]
fn names_and_the_first_addresses_are_in_the_certificate() {
    let (farm, client) = farm(SiteSpec::default());
    for (addr, host) in [(host_addr(999), "h999.farm.test"), (host_addr(15), "127.16.0.15")] {
        assert!(Visit::new(&farm, &client, addr, host).is_ok(), "{host}");
    }
    for host in ["127.16.0.16", "example.org"] {
        let met = Visit::new(&farm, &client, host_addr(16), host).map(|_| ());
        assert!(matches!(met, Err(TlsError::Certificate(_))), "{host}");
    }
    let stranger = TlsClient::new(&TlsSettings::default()).unwrap();
    assert!(Visit::new(&farm, &stranger, host_addr(0), "h0.farm.test").is_err());
}

#[test]
fn a_second_visit_resumes_the_session() {
    let (farm, client) = farm(SiteSpec::default());
    for round in 0..3 {
        let mut visit = Visit::new(&farm, &client, host_addr(3), "h3.farm.test").unwrap();
        assert_eq!(visit.tls.facts().resumed, round > 0);
        visit.ask("GET / HTTP/1.1\r\n\r\n");
        assert_eq!(visit.body(), farm.site().document(3, 0, farm.port()));
    }
}

#[test]
fn a_page_larger_than_any_window_arrives_whole_and_its_end_is_told() {
    let (farm, client) = farm(SiteSpec { page_bytes: 12 << 20, close: true, ..SiteSpec::default() });
    let mut visit = Visit::new(&farm, &client, host_addr(3), "h3.farm.test").unwrap();
    visit.ask("GET /p/1.html HTTP/1.1\r\n\r\n");
    // Windows fill up before anything is read.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(visit.body(), farm.site().document(3, 1, farm.port()));
    while visit.receive().unwrap() {}
    assert!(visit.tls.peer_closed() && visit.plain.is_empty());
}

#[test]
fn what_is_not_tls_is_hung_up_on() {
    let (farm, client) = farm(SiteSpec::default());
    let mut stream = TcpStream::connect((host_addr(3), farm.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP/"), "{said:?}");
    // One that leaves within the handshake, and the farm goes on.
    let mut hello = Vec::new();
    client.open("h3.farm.test").unwrap().take_output(&mut hello);
    let mut stream = TcpStream::connect((host_addr(3), farm.port())).unwrap();
    stream.write_all(&hello[..40]).unwrap();
    drop(stream);
    assert!(Visit::new(&farm, &client, host_addr(3), "h3.farm.test").is_ok());
}
