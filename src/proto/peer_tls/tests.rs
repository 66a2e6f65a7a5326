use super::authority::Leaf;
use super::identity::Judge;
use super::{IdentityError, NodeIdentity, PeerTlsError, SecureLink, new_cluster_key};
use crate::base::Rng;
use crate::limits::{PEER_EARLY_BYTES_MAX, PEER_FRAME_BYTES_MAX};
use crate::proto::cluster_key::ClusterKey;
use proptest::prelude::*;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};
use std::sync::{Arc, LazyLock};

static KEY: LazyLock<ClusterKey> = LazyLock::new(|| new_cluster_key().unwrap());
static OTHER_KEY: LazyLock<ClusterKey> = LazyLock::new(|| new_cluster_key().unwrap());
static NODE: LazyLock<NodeIdentity> = LazyLock::new(|| NodeIdentity::new(&KEY).unwrap());

/// One end of a connection and all that came out of it.
struct End {
    link: SecureLink,
    plain: Vec<u8>,
    /// All that it put on the wire.
    sent: Vec<u8>,
    error: Option<PeerTlsError>,
}

impl End {
    fn new(link: SecureLink) -> End {
        End { link, plain: Vec::new(), sent: Vec::new(), error: None }
    }

    fn client(identity: &NodeIdentity) -> End {
        End::new(SecureLink::client(identity).unwrap())
    }

    fn server(identity: &NodeIdentity) -> End {
        End::new(SecureLink::server(identity).unwrap())
    }

    fn push(&mut self, wire: &[u8]) {
        match self.link.push_wire(wire, &mut self.plain) {
            Ok(()) => assert_eq!(self.error, None),
            Err(error) => assert_eq!(*self.error.get_or_insert(error), error, "it stays failed"),
        }
    }

    /// Carries what it has to the other end in pieces of `cut` bytes. Whether there was anything.
    fn flow(&mut self, to: &mut End, cut: &mut impl FnMut() -> usize) -> bool {
        let wire = self.link.take_wire();
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(cut().clamp(1, rest.len()));
            to.push(piece);
            rest = behind;
        }
        self.sent.extend_from_slice(&wire);
        assert!(to.plain.len() <= self.sent.len(), "no more plain bytes than came in");
        !wire.is_empty()
    }
}

/// Carries bytes both ways until there are none.
fn talk(a: &mut End, b: &mut End, mut cut: impl FnMut() -> usize) {
    for _ in 0..100 {
        if !(a.flow(b, &mut cut) | b.flow(a, &mut cut)) {
            return;
        }
    }
    panic!("they do not come to an end");
}

fn whole() -> usize {
    usize::MAX
}

/// A node that shows a certificate of one cluster and believes another.
fn split_identity(shows: &ClusterKey, believes: &ClusterKey) -> NodeIdentity {
    NodeIdentity::of(Leaf::new(shows).unwrap(), Judge::new(believes).unwrap()).unwrap()
}

#[test]
fn two_nodes_talk() {
    // Each node makes a certificate of its own, from the key file as it was carried over.
    let carried = NodeIdentity::new(&ClusterKey::parse(&KEY.text()).unwrap()).unwrap();
    let (mut client, mut server) = (End::client(&NODE), End::server(&carried));
    assert!(!client.link.is_ready() && !server.link.is_ready());
    client.link.send(b"hello before the handshake").unwrap();
    server.link.send(b"so am I").unwrap();
    talk(&mut client, &mut server, whole);
    assert!(client.link.is_ready() && server.link.is_ready());
    assert_eq!((&client.plain[..], &server.plain[..]), (&b"so am I"[..], &b"hello before the handshake"[..]));
    client.link.send(b", and after").unwrap();
    talk(&mut client, &mut server, whole);
    assert_eq!(server.plain, b"hello before the handshake, and after");

    client.link.close();
    client.link.close();
    assert_eq!(client.link.send(b"x"), Err(PeerTlsError::Closed));
    talk(&mut client, &mut server, whole);
    assert!(server.link.peer_closed() && !client.link.peer_closed());
    // The other way is still open.
    server.link.send(b" still").unwrap();
    server.link.close();
    talk(&mut client, &mut server, whole);
    assert_eq!(client.plain, b"so am I still");
    assert!(client.link.peer_closed());
    server.push(b"bytes behind the end");
    assert_eq!((client.error, server.error), (None, None));
    assert!(client.link.take_wire().is_empty() && server.link.take_wire().is_empty());
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let mut rng = Rng::new(5);
    for round in 0..12 {
        let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
        let words: Vec<u8> = (0..40_000u32).map(|at| at as u8).collect();
        client.link.send(&words).unwrap();
        talk(&mut client, &mut server, || match round {
            0 => 1,
            _ => 1 + rng.below(1 << round) as usize,
        });
        server.link.send(&words[..1000]).unwrap();
        talk(&mut client, &mut server, || 1);
        assert_eq!((&server.plain, &client.plain[..]), (&words, &words[..1000]), "round {round}");
    }
}

#[test]
fn a_mebibyte_passes_each_way() {
    let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
    let words: Vec<u8> = (0..1u32 << 20).map(|at| (at ^ at >> 8) as u8).collect();
    client.link.send(&words).unwrap();
    talk(&mut client, &mut server, whole);
    server.link.send(&words).unwrap();
    talk(&mut client, &mut server, || 64 << 10);
    assert!(client.plain == words && server.plain == words);
}

#[test]
fn plain_text_is_never_on_the_wire() {
    let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
    let word = b"https://a-url-that-nobody-may-read.example/";
    client.link.send(word).unwrap();
    talk(&mut client, &mut server, whole);
    client.link.send(word).unwrap();
    server.link.send(word).unwrap();
    talk(&mut client, &mut server, whole);
    assert_eq!((server.plain.len(), client.plain.len()), (2 * word.len(), word.len()));
    // Certificates and names are under cover as well.
    for wire in [&client.sent, &server.sent] {
        for secret in [&word[..], b"nobody-may", b"nephila", KEY.cluster_hex().as_bytes()] {
            assert!(!wire.windows(secret.len()).any(|bytes| bytes == secret));
        }
    }
}

#[test]
fn a_node_of_another_cluster_is_refused_on_both_sides() {
    let other = NodeIdentity::new(&OTHER_KEY).unwrap();
    // A cluster of the same id whose authority has another key, as after a key file was made anew.
    let twin = ClusterKey::new(KEY.cluster(), [1; 32], &twin_pem().0, &twin_pem().1).unwrap();
    let twin = NodeIdentity::new(&twin).unwrap();
    for stranger in [&other, &twin] {
        for (mut client, mut server) in
            [(End::client(&NODE), End::server(stranger)), (End::client(stranger), End::server(&NODE))]
        {
            client.link.send(b"secret").unwrap();
            server.link.send(b"secret").unwrap();
            talk(&mut client, &mut server, whole);
            assert_eq!(client.error, Some(PeerTlsError::OtherCluster));
            assert_eq!(server.error, Some(PeerTlsError::Refused));
            assert!(!client.link.is_ready() && !server.link.is_ready());
            assert_eq!(client.link.send(b"more"), Err(PeerTlsError::OtherCluster));
            assert!(client.plain.is_empty() && server.plain.is_empty());
        }
    }
    // The client believes our authority, and is none of ours.
    let (mut client, mut server) = (End::client(&split_identity(&OTHER_KEY, &KEY)), End::server(&NODE));
    client.link.send(b"let me in").unwrap();
    server.link.send(b"secret").unwrap();
    talk(&mut client, &mut server, whole);
    assert_eq!(server.error, Some(PeerTlsError::OtherCluster));
    assert_eq!(client.error, Some(PeerTlsError::Refused));
    assert!(client.plain.is_empty() && server.plain.is_empty());
}

/// Certificate and key of an authority with the name of `KEY`'s.
fn twin_pem() -> &'static (String, String) {
    static PEM: LazyLock<(String, String)> = LazyLock::new(|| {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, format!("nephila cluster {}", KEY.cluster_hex()));
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    });
    &PEM
}

/// What a node makes of a client that speaks one version of TLS and has no certificate.
fn strange_client(version: &'static SupportedProtocolVersion) -> Option<PeerTlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(KEY.certificate_pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), NODE.name.clone()).unwrap();
    let mut server = End::server(&NODE);
    while client.wants_write() && server.error.is_none() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.push(&wire);
        client.read_tls(&mut &server.link.take_wire()[..]).unwrap();
        let _ = client.process_new_packets();
    }
    assert!(!server.link.is_ready());
    server.error
}

#[test]
fn who_has_no_certificate_is_refused() {
    assert_eq!(strange_client(&TLS13), Some(PeerTlsError::NoCertificate));
    assert_eq!(strange_client(&TLS12), Some(PeerTlsError::OtherTls));
}

#[test]
fn garbage_is_one_error() {
    let http = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let hello = SecureLink::client(&NODE).unwrap().take_wire();
    for (garbage, error) in [
        (&http[..], PeerTlsError::NotTls),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", PeerTlsError::NotTls),
        (b"SSH-2.0-OpenSSH_10.0\r\n", PeerTlsError::NotTls),
        (&[0; 64], PeerTlsError::NotTls),
        (&[0x16, 3, 1, 0xff, 0xff, 1, 2, 3], PeerTlsError::NotTls),
        (&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 7], PeerTlsError::NotTls),
        // An alert of a server that wants no handshake like ours.
        (&[0x15, 3, 3, 0, 2, 2, 40], PeerTlsError::OtherTls),
        (&[0x15, 3, 3, 0, 2, 2, 80], PeerTlsError::Alert),
    ] {
        for mut end in [End::client(&NODE), End::server(&NODE)] {
            end.push(garbage);
            assert_eq!(end.error, Some(error), "{garbage:?}");
            end.push(garbage);
            assert!(!end.link.is_ready() && end.plain.is_empty());
            end.link.close();
            assert_eq!(end.link.send(b"x"), Err(error));
        }
    }
    // Two nodes that both connect.
    let mut client = End::client(&NODE);
    client.push(&hello);
    assert_eq!(client.error, Some(PeerTlsError::OtherTls));
    // A peer that is a hello and then something else.
    let mut server = End::server(&NODE);
    server.push(&hello);
    server.push(http);
    assert_eq!(server.error, Some(PeerTlsError::Broken));
}

#[test]
fn a_changed_byte_is_found() {
    let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
    talk(&mut client, &mut server, whole);
    client.link.send(b"before").unwrap();
    talk(&mut client, &mut server, whole);
    client.link.send(b"a frame").unwrap();
    let mut wire = client.link.take_wire();
    let last = wire.len() - 1;
    wire[last] ^= 1;
    server.push(&wire);
    assert_eq!((server.error, &server.plain[..]), (Some(PeerTlsError::Broken), &b"before"[..]));
    let alert = server.link.take_wire();
    client.push(&alert);
    assert_eq!(client.error, Some(PeerTlsError::Broken));
}

#[test]
fn what_waits_for_a_handshake_has_a_bound() {
    let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
    let frame = vec![7; PEER_FRAME_BYTES_MAX];
    for _ in 0..PEER_EARLY_BYTES_MAX / frame.len() {
        client.link.send(&frame).unwrap();
    }
    assert_eq!(client.link.send(b"x"), Err(PeerTlsError::Full));
    // What was taken still goes.
    talk(&mut client, &mut server, whole);
    assert_eq!(server.plain.len(), PEER_EARLY_BYTES_MAX);
    client.link.send(&frame).unwrap();
    client.link.send(&frame).unwrap();
    talk(&mut client, &mut server, whole);
    assert_eq!(server.plain.len(), PEER_EARLY_BYTES_MAX + 2 * frame.len());
}

#[test]
fn a_plain_link_passes_bytes_through() {
    let (mut a, mut b) = (End::new(SecureLink::plain()), End::new(SecureLink::plain()));
    assert!(a.link.is_ready() && a.link.take_wire().is_empty());
    a.link.send(b"one ").unwrap();
    a.link.send(b"two").unwrap();
    talk(&mut a, &mut b, || 2);
    assert_eq!((&b.plain[..], &a.sent[..]), (&b"one two"[..], &b"one two"[..]));
    a.link.close();
    assert_eq!(a.link.send(b"x"), Err(PeerTlsError::Closed));
    assert!(a.link.take_wire().is_empty() && !b.link.peer_closed());
}

#[test]
fn clusters_are_all_different() {
    assert_ne!(KEY.cluster(), OTHER_KEY.cluster());
    assert_ne!(KEY.datagram_key(), OTHER_KEY.datagram_key());
    assert_ne!(KEY.private_key_pem(), OTHER_KEY.private_key_pem());
    assert_eq!(ClusterKey::parse(&KEY.text()), Ok(KEY.clone()));
}

#[test]
fn a_key_file_that_does_not_hold_together_is_told() {
    let made = |certificate: &str, private_key: &str| {
        let key = ClusterKey::new(KEY.cluster(), [1; 32], certificate, private_key).unwrap();
        NodeIdentity::new(&key).err()
    };
    let junk = |label: &str| format!("-----BEGIN {label}-----\nQUJD\n-----END {label}-----\n");
    let (certificate, private_key) = (KEY.certificate_pem(), KEY.private_key_pem());
    assert_eq!(made(certificate, private_key), None);
    assert_eq!(made(&junk("CERTIFICATE"), private_key), Some(IdentityError::Certificate));
    assert_eq!(made(certificate, &junk("PRIVATE KEY")), Some(IdentityError::PrivateKey));
    assert_eq!(made(certificate, OTHER_KEY.private_key_pem()), Some(IdentityError::Pair));
    assert_eq!(made(OTHER_KEY.certificate_pem(), private_key), Some(IdentityError::Pair));
}

#[test]
fn errors_are_one_line_and_secrets_are_not_shown() {
    use IdentityError as Identity;
    use PeerTlsError as Peer;
    let peer = [
        Peer::OtherCluster,
        Peer::Refused,
        Peer::NoCertificate,
        Peer::BadCertificate,
        Peer::NotTls,
        Peer::OtherTls,
        Peer::Alert,
        Peer::Broken,
        Peer::Full,
        Peer::Closed,
        Peer::Internal,
    ];
    let identity = [Identity::PrivateKey, Identity::Certificate, Identity::Pair, Identity::Internal];
    let lines = peer.iter().map(PeerTlsError::to_string).chain(identity.iter().map(IdentityError::to_string));
    for line in lines {
        assert!(!line.contains('\n') && line.len() < 120, "{line}");
    }
    let shown = format!("{:?} {:?}", *NODE, SecureLink::client(&NODE).unwrap());
    assert!(shown.len() < 200, "{shown}");
}

proptest! {
    #[test]
    fn any_bytes_at_any_point_do_no_harm(
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        begins_as_tls: bool,
        flights in 0..4usize,
        at_client: bool,
    ) {
        let (mut client, mut server) = (End::client(&NODE), End::server(&NODE));
        for flight in 0..flights {
            match flight % 2 {
                0 => client.flow(&mut server, &mut whole),
                _ => server.flow(&mut client, &mut whole),
            };
        }
        let mut wire = if begins_as_tls { vec![0x16, 3, 3, 0, garbage.len() as u8] } else { Vec::new() };
        wire.extend_from_slice(&garbage);
        let end = if at_client { &mut client } else { &mut server };
        end.push(&wire);
        end.push(&wire);
        prop_assert!(end.plain.is_empty());
    }
}
