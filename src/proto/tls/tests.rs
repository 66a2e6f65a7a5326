use super::facts::TlsFacts;
use super::test_server::{Authority, Identity, TestServer, config_with, meet, output, server_config, talk};
use super::*;
use crate::base::Rng;
use rcgen::date_time_ymd;
use rustls::crypto::ring;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;

const HOST: &str = "example.org";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
const VERSIONS: [(&SupportedProtocolVersion, TlsVersion); 2] =
    [(&TLS12, TlsVersion::Tls12), (&TLS13, TlsVersion::Tls13)];

fn document(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// A client that trusts, and a server with a good certificate for [`HOST`].
fn good(version: &'static SupportedProtocolVersion) -> (TlsClient, Arc<ServerConfig>) {
    let authority = Authority::new("test root");
    let server = server_config(&authority.sign(&[HOST], |_| {}), version);
    (authority.client(|_| {}), Arc::new(server))
}

fn page(conn: &mut TlsConn, server: &mut TestServer, document: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    conn.send(REQUEST, &mut out);
    server.receive(&out).unwrap();
    assert_eq!(server.plain, REQUEST);
    server.plain.clear();
    let wire = server.answer(document);
    let mut plain = Vec::new();
    for piece in wire.chunks(piece) {
        conn.receive(piece, &mut plain).unwrap();
    }
    plain
}

#[test]
fn a_page_comes_over_both_versions() {
    for (version, told) in VERSIONS {
        let (client, config) = good(version);
        let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
        assert_eq!(
            conn.facts(),
            TlsFacts { version: Some(told), resumed: false, certificate: None },
            "{told}"
        );
        assert_eq!(server.tls.server_name(), Some(HOST));
        for bytes in [0, 1, 10_000, 16_384, 16_385, 100_000] {
            let document = document(bytes);
            for piece in [usize::MAX, 16_384, 1_000, 1] {
                assert_eq!(page(&mut conn, &mut server, &document, piece), document, "{bytes} by {piece}");
            }
        }
    }
}

#[test]
fn a_large_request_arrives_whole() {
    let (client, config) = good(&TLS13);
    let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
    for bytes in [16_384, 16_385, 100_000] {
        let mut out = vec![b'x'; 3];
        conn.send(&document(bytes), &mut out);
        server.receive(&out[3..]).unwrap();
        assert_eq!(server.plain, document(bytes));
        server.plain.clear();
    }
}

#[test]
fn a_handshake_may_be_cut_at_every_byte() {
    let authority = Authority::new("test root");
    let identity = authority.sign(&[HOST], |_| {});
    for (version, told) in VERSIONS {
        for resumed in [false, true] {
            let client = authority.client(|settings| settings.sessions_max = usize::from(resumed));
            let config = Arc::new(server_config(&identity, version));
            meet(&client, HOST, &config).unwrap();
            let mut cut = 0;
            loop {
                let mut conn = client.open(HOST).unwrap();
                let mut server = TestServer::new(&config);
                server.receive(&output(&mut conn)).unwrap();
                let flight = server.output();
                let mut plain = Vec::new();
                let cut_here = cut.min(flight.len());
                conn.receive(&flight[..cut_here], &mut plain).unwrap();
                conn.receive(&flight[cut_here..], &mut plain).unwrap();
                talk(&mut conn, &mut server, 1).unwrap();
                assert!(!conn.is_handshaking(), "{told} cut at {cut}");
                assert_eq!(
                    (conn.facts().resumed, plain.as_slice()),
                    (resumed, &b""[..]),
                    "{told} cut at {cut}"
                );
                cut += 1;
                if cut > flight.len() {
                    break;
                }
            }
            assert!(cut > if resumed { 90 } else { 400 }, "{told} {cut}");
        }
    }
}

#[test]
fn a_full_handshake_may_come_byte_by_byte() {
    for (version, told) in VERSIONS {
        let (client, config) = good(version);
        let mut conn = client.open(HOST).unwrap();
        let mut server = TestServer::new(&config);
        talk(&mut conn, &mut server, 1).unwrap();
        assert!(!conn.is_handshaking() && !conn.facts().resumed, "{told}");
        assert_eq!(page(&mut conn, &mut server, b"hello", 1), b"hello");
    }
}

#[test]
fn the_second_connection_to_a_host_is_resumed() {
    for (version, told) in VERSIONS {
        let (client, config) = good(version);
        for round in 0..4 {
            let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
            assert_eq!(conn.facts().resumed, round > 0, "{told} round {round}");
            assert_eq!(server.tls.handshake_kind() == Some(HandshakeKind::Resumed), round > 0);
            assert_eq!(page(&mut conn, &mut server, b"hello", usize::MAX), b"hello");
        }
        assert_eq!(client.sessions(), 1);
    }
}

#[test]
fn a_ticket_is_used_once() {
    let (client, config) = good(&TLS13);
    meet(&client, HOST, &config).unwrap();
    assert_eq!(client.sessions(), 1);
    let _used = client.open(HOST).unwrap();
    assert_eq!(client.sessions(), 0);
    let mut second = client.open(HOST).unwrap();
    talk(&mut second, &mut TestServer::new(&config), usize::MAX).unwrap();
    assert!(!second.facts().resumed);
}

#[test]
fn a_session_is_not_resumed_for_another_name() {
    for (version, told) in VERSIONS {
        let authority = Authority::new("test root");
        let identity = authority.sign(&[HOST, "www.example.org", "127.0.0.1"], |_| {});
        let config = Arc::new(server_config(&identity, version));
        let client = authority.client(|_| {});
        for host in [HOST, "www.example.org", "127.0.0.1"] {
            let (conn, _) = meet(&client, host, &config).unwrap();
            assert!(!conn.facts().resumed, "{told} {host}");
        }
        assert_eq!(client.sessions(), 3);
        for host in [HOST, "www.example.org", "127.0.0.1"] {
            assert!(meet(&client, host, &config).unwrap().0.facts().resumed, "{told} {host}");
        }
    }
}

#[test]
fn the_store_of_sessions_has_a_bound() {
    let authority = Authority::new("test root");
    let identity = authority.sign(&["*.example.org"], |_| {});
    for (version, told) in VERSIONS {
        let client = authority.client(|settings| settings.sessions_max = 3);
        let config = Arc::new(server_config(&identity, version));
        for host in 0..5 {
            meet(&client, &format!("{host}.example.org"), &config).unwrap();
            assert_eq!(client.sessions(), 3.min(host + 1), "{told}");
        }
        assert!(meet(&client, "4.example.org", &config).unwrap().0.facts().resumed, "{told}");
        assert!(!meet(&client, "1.example.org", &config).unwrap().0.facts().resumed, "{told}");
    }
}

#[test]
fn a_host_with_a_huge_chain_is_not_remembered() {
    let authority = Authority::new("test root");
    let names: Vec<String> = (0..400).map(|at| format!("a-rather-long-name-{at}.example.net")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push(HOST);
    for (version, told) in VERSIONS {
        let client = authority.client(|_| {});
        let config = Arc::new(server_config(&authority.sign(&names, |_| {}), version));
        meet(&client, HOST, &config).unwrap();
        assert_eq!(client.sessions(), 0, "{told}");
    }
}

#[test]
fn a_group_that_a_host_insists_on_is_offered_at_once_the_next_time() {
    let authority = Authority::new("test root");
    let mut provider = ring::default_provider();
    provider.kx_groups = vec![ring::kx_group::SECP256R1];
    let mut config = config_with(&authority.sign(&[HOST], |_| {}), &TLS13, provider);
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let client = authority.client(|_| {});
    let (_, first) = meet(&client, HOST, &config).unwrap();
    assert_eq!(first.tls.handshake_kind(), Some(HandshakeKind::FullWithHelloRetryRequest));
    let (_, second) = meet(&client, HOST, &config).unwrap();
    assert_eq!(second.tls.handshake_kind(), Some(HandshakeKind::Full));
}

/// Each wrong certificate, and what is wrong with it.
fn wrong(authority: &Authority) -> Vec<(CertFault, Identity)> {
    let stranger = Authority::new("a stranger");
    let expired = authority.sign(&[HOST], |params| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    });
    let not_yet = authority.sign(&[HOST], |params| params.not_before = date_time_ymd(2900, 1, 1));
    let ca = authority.sign(&[HOST], |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    vec![
        (CertFault::Expired, expired),
        (CertFault::Expired, not_yet),
        (CertFault::UnknownIssuer, stranger.sign(&[HOST], |_| {})),
        (CertFault::WrongName, authority.sign(&["example.net"], |_| {})),
        (CertFault::WrongName, authority.sign(&["*.example.org"], |_| {})),
        (CertFault::Other, ca),
    ]
}

#[test]
fn a_wrong_certificate_ends_the_handshake() {
    let authority = Authority::new("test root");
    for (version, told) in VERSIONS {
        for (fault, identity) in wrong(&authority) {
            let config = Arc::new(server_config(&identity, version));
            let client = authority.client(|_| {});
            let mut conn = client.open(HOST).unwrap();
            let mut server = TestServer::new(&config);
            assert_eq!(talk(&mut conn, &mut server, usize::MAX), Err(TlsError::Certificate(fault)), "{told}");
            assert_eq!(client.sessions(), 0);
            // The server was told, and the connection stays failed.
            assert!(matches!(server.tls.process_new_packets(), Err(rustls::Error::AlertReceived(_))));
            let mut plain = Vec::new();
            assert_eq!(conn.receive(b"more", &mut plain), Err(TlsError::Certificate(fault)));
            conn.send(REQUEST, &mut plain);
            assert_eq!((plain, output(&mut conn)), (Vec::new(), Vec::new()));
        }
    }
}

#[test]
fn a_wrong_certificate_that_is_overlooked_is_told_also_when_resumed() {
    let authority = Authority::new("test root");
    for (version, told) in VERSIONS {
        for (fault, identity) in wrong(&authority) {
            let config = Arc::new(server_config(&identity, version));
            let client = authority.client(|settings| settings.insecure = true);
            for round in 0..3 {
                let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
                assert_eq!(conn.facts().certificate, Some(fault), "{told} round {round}");
                assert_eq!(conn.facts().resumed, round > 0, "{told} round {round}");
                assert_eq!(page(&mut conn, &mut server, b"hello", usize::MAX), b"hello");
            }
        }
    }
}

#[test]
fn a_good_certificate_has_no_fault_where_wrong_ones_are_overlooked() {
    let authority = Authority::new("test root");
    let client = authority.client(|settings| settings.insecure = true);
    let config = Arc::new(server_config(&authority.sign(&[HOST], |_| {}), &TLS13));
    for _ in 0..2 {
        assert_eq!(meet(&client, HOST, &config).unwrap().0.facts().certificate, None);
    }
}

#[test]
fn a_server_must_own_its_certificate_whatever_is_overlooked() {
    let authority = Authority::new("test root");
    let mut stolen = authority.sign(&[HOST], |_| {});
    stolen.key = authority.sign(&[HOST], |_| {}).key;
    for (version, told) in VERSIONS {
        for insecure in [false, true] {
            let client = authority.client(|settings| settings.insecure = insecure);
            let config = Arc::new(server_config(&stolen, version));
            let met = meet(&client, HOST, &config).map(|_| ());
            assert_eq!(met, Err(TlsError::Certificate(CertFault::Other)), "{told} {insecure}");
        }
    }
}

#[test]
fn addresses_are_not_told_to_the_server_and_match_by_address() {
    let authority = Authority::new("test root");
    let config = Arc::new(server_config(&authority.sign(&["127.0.0.1", "::1"], |_| {}), &TLS13));
    let client = authority.client(|_| {});
    for host in ["127.0.0.1", "::1"] {
        let (_, server) = meet(&client, host, &config).unwrap();
        assert_eq!(server.tls.server_name(), None, "{host}");
    }
    let met = meet(&client, "127.0.0.2", &config).map(|_| ());
    assert_eq!(met, Err(TlsError::Certificate(CertFault::WrongName)));
}

#[test]
fn a_dot_at_the_end_of_a_name_does_not_matter() {
    let (client, config) = good(&TLS13);
    let (_, server) = meet(&client, "example.org.", &config).unwrap();
    assert_eq!(server.tls.server_name(), Some(HOST));
    assert!(meet(&client, HOST, &config).unwrap().0.facts().resumed);
}

#[test]
fn some_hosts_cannot_be_asked_by_tls() {
    let (client, _) = good(&TLS13);
    let long = "a".repeat(64) + ".org";
    for host in ["", ".", "..", "a b", "-a.org", "exa\0mple.org", "[::1]", "1.2.3", "é.org", &long] {
        assert_eq!(client.open(host).map(|_| ()), Err(TlsError::BadName), "{host:?}");
    }
}

#[test]
fn only_http_1_1_is_offered() {
    let authority = Authority::new("test root");
    let identity = authority.sign(&[HOST], |_| {});
    let client = authority.client(|_| {});
    for (version, _) in VERSIONS {
        let with = |protocols: &[&str]| {
            let mut config = server_config(&identity, version);
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            meet(&client, HOST, &Arc::new(config)).map(|(_, server)| {
                server.tls.alpn_protocol().map(|name| String::from_utf8(name.to_vec()).unwrap())
            })
        };
        assert_eq!(with(&["h2", "http/1.1"]), Ok(Some("http/1.1".to_string())));
        assert_eq!(with(&[]), Ok(None));
        assert_eq!(with(&["h2"]), Err(TlsError::Alert));
    }
}

#[test]
fn the_end_that_a_server_tells_is_seen() {
    for (version, told) in VERSIONS {
        let (client, config) = good(version);
        let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
        assert_eq!(page(&mut conn, &mut server, b"hello", usize::MAX), b"hello");
        assert!(!conn.peer_closed(), "{told}");
        server.tls.send_close_notify();
        let mut wire = server.output();
        wire.extend_from_slice(b"more bytes that are nobody's");
        let mut plain = Vec::new();
        for byte in wire.chunks(1) {
            conn.receive(byte, &mut plain).unwrap();
        }
        conn.receive(&[23, 3, 3, 255, 255], &mut plain).unwrap();
        assert!(conn.peer_closed() && plain.is_empty(), "{told}");
    }
}

#[test]
fn the_last_document_and_its_close_may_come_together() {
    let (client, config) = good(&TLS13);
    let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
    let mut wire = server.answer(&document(40_000));
    server.tls.send_close_notify();
    wire.extend(server.output());
    wire.extend([0; 100]);
    let mut plain = Vec::new();
    conn.receive(&wire, &mut plain).unwrap();
    assert_eq!(plain, document(40_000));
    assert!(conn.peer_closed());
}

#[test]
fn a_document_that_is_cut_gives_its_whole_records_and_no_end() {
    let (client, config) = good(&TLS13);
    let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
    let wire = server.answer(&document(40_000));
    let mut plain = Vec::new();
    conn.receive(&wire[..wire.len() - 1], &mut plain).unwrap();
    assert_eq!(plain, document(32_768));
    assert!(!conn.peer_closed());
}

#[test]
fn a_record_that_was_changed_is_refused_and_the_server_told() {
    for (version, told) in VERSIONS {
        let (client, config) = good(version);
        let (mut conn, mut server) = meet(&client, HOST, &config).unwrap();
        let mut wire = server.answer(&document(1_000));
        let last = wire.len() - 1;
        wire[last] ^= 1;
        let mut plain = Vec::new();
        assert_eq!(conn.receive(&wire, &mut plain), Err(TlsError::Protocol), "{told}");
        assert_eq!(plain, b"");
        let alert = output(&mut conn);
        assert!(matches!(server.receive(&alert), Err(rustls::Error::AlertReceived(_))), "{told}");
        assert_eq!(conn.receive(&wire, &mut plain), Err(TlsError::Protocol));
    }
}

#[test]
fn what_is_not_tls_is_refused() {
    let (client, _) = good(&TLS13);
    let cases: [&[u8]; 6] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP on a TLS port",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        &[0; 64],
        // A record larger than any may be.
        &[22, 3, 3, 0x48, 0x01],
        // A handshake message of 16 MB.
        &[22, 3, 3, 0, 4, 2, 255, 255, 255],
        // Plain data before any key.
        &[23, 3, 3, 0, 5, b'h', b'e', b'l', b'l', b'o'],
    ];
    for case in cases {
        let mut conn = client.open(HOST).unwrap();
        let mut plain = Vec::new();
        assert_eq!(conn.receive(case, &mut plain), Err(TlsError::Protocol), "{case:?}");
        assert!(plain.is_empty());
    }
    let mut conn = client.open(HOST).unwrap();
    // A fatal alert: handshake failure.
    assert_eq!(conn.receive(&[21, 3, 3, 0, 2, 2, 40], &mut Vec::new()), Err(TlsError::Alert));
}

#[test]
fn a_handshake_that_never_ends_is_given_up() {
    let (client, _) = good(&TLS13);
    let mut conn = client.open(HOST).unwrap();
    let mut plain = Vec::new();
    // A certificate-like message of 65,535 bytes in records of one byte, and then the next.
    let mut fed = 0;
    let result = loop {
        let body: &[u8] = if fed == 0 { &[22, 3, 3, 0, 4, 2, 0, 255, 255] } else { &[22, 3, 3, 0, 1, 0] };
        fed += body.len();
        if let Err(error) = conn.receive(body, &mut plain) {
            break error;
        }
        assert!(fed < 10 << 20, "{fed} bytes were taken");
    };
    assert_eq!(result, TlsError::Protocol);
    assert!(plain.is_empty());
}

#[test]
fn bytes_that_were_changed_give_no_document_and_never_a_panic() {
    let mut rng = Rng::new(5);
    for (version, _) in VERSIONS {
        let (client, config) = good(version);
        for round in 0..300 {
            let mut conn = client.open(HOST).unwrap();
            let mut server = TestServer::new(&config);
            server.receive(&output(&mut conn)).unwrap();
            let mut flight = server.output();
            // One to four bytes of a true flight become others, or the flight is thrown away.
            if round % 3 == 0 {
                flight.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
            } else {
                for _ in 0..=rng.below(4) {
                    let at = rng.below(flight.len() as u64) as usize;
                    flight[at] ^= 1 + rng.below(255) as u8;
                }
            }
            let mut plain = Vec::new();
            let mut failed = false;
            for piece in flight.chunks(1 + rng.below(400) as usize) {
                failed |= conn.receive(piece, &mut plain).is_err();
            }
            failed |= server.receive(&output(&mut conn)).is_err() || conn.is_handshaking();
            failed |= talk(&mut conn, &mut server, usize::MAX).is_err() || conn.is_handshaking();
            // A few bytes of a record's cover mean nothing, so a change may go unseen; noise does not.
            assert!(plain.is_empty() && (failed || round % 3 != 0), "round {round}");
        }
    }
}

#[test]
fn roots_that_cannot_be_used_are_told_in_one_line() {
    let good = Authority::new("test root").pem();
    let told = |pem: &str| {
        let settings = TlsSettings { roots_pem: Some(pem.as_bytes().to_vec()), ..TlsSettings::default() };
        TlsClient::new(&settings).map(|_| ()).map_err(|error| error.to_string())
    };
    let cut = &good[..good.len() / 2];
    let not_a_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(told(&good), Ok(()));
    assert_eq!(told(&format!("a comment\n{good}\n{good}")), Ok(()));
    for (pem, expected) in [
        ("", "no certificate in it: expected -----BEGIN CERTIFICATE-----"),
        ("hello", "no certificate in it: expected -----BEGIN CERTIFICATE-----"),
        (cut, "not a PEM file: a BEGIN line without its END, or bad base64"),
        (not_a_certificate, "certificate 1 cannot be used as a root"),
        (&format!("{good}{not_a_certificate}"), "certificate 2 cannot be used as a root"),
    ] {
        assert_eq!(told(pem), Err(expected.to_string()));
    }
}
