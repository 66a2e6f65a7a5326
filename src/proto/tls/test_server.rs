//! A TLS server in memory, an authority that signs for it, and the wire between it and a client of ours.

use super::{TlsClient, TlsConn, TlsError, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A chain and its key.
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Identity {
            chain: vec![cert.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    /// A client that trusts this authority.
    pub fn client(&self, change: impl FnOnce(&mut TlsSettings)) -> TlsClient {
        let mut settings = TlsSettings { roots_pem: Some(self.pem().into_bytes()), ..TlsSettings::default() };
        change(&mut settings);
        TlsClient::new(&settings).unwrap()
    }
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// Whether key and chain belong together is not looked at.
pub fn server_config(identity: &Identity, version: &'static SupportedProtocolVersion) -> ServerConfig {
    config_with(identity, version, ring::default_provider())
}

pub fn config_with(
    identity: &Identity,
    version: &'static SupportedProtocolVersion,
    provider: CryptoProvider,
) -> ServerConfig {
    let key = ring::sign::any_supported_type(&identity.key).unwrap();
    ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(CertifiedKey::new(identity.chain.clone(), key)))))
}

pub struct TestServer {
    pub tls: ServerConnection,
    /// Every plain byte the client sent.
    pub plain: Vec<u8>,
}

impl TestServer {
    pub fn new(config: &Arc<ServerConfig>) -> TestServer {
        TestServer { tls: ServerConnection::new(config.clone()).unwrap(), plain: Vec::new() }
    }

    pub fn receive(&mut self, mut wire: &[u8]) -> Result<(), rustls::Error> {
        while !wire.is_empty() {
            if self.tls.read_tls(&mut wire).unwrap() == 0 {
                break;
            }
            self.tls.process_new_packets()?;
            match self.tls.reader().read_to_end(&mut self.plain) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                _ => {}
            }
        }
        Ok(())
    }

    pub fn output(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut out).unwrap();
        }
        out
    }

    pub fn answer(&mut self, plain: &[u8]) -> Vec<u8> {
        self.tls.set_buffer_limit(None);
        self.tls.writer().write_all(plain).unwrap();
        self.output()
    }
}

pub fn output(conn: &mut TlsConn) -> Vec<u8> {
    let mut out = Vec::new();
    conn.take_output(&mut out);
    out
}

/// Lets both talk until neither has more to say; the server's bytes arrive in pieces of `piece` bytes. Gives the plain
/// bytes that the client got.
pub fn talk(conn: &mut TlsConn, server: &mut TestServer, piece: usize) -> Result<Vec<u8>, TlsError> {
    let mut plain = Vec::new();
    loop {
        let to_server = output(conn);
        // What a server does not like it tells by an alert.
        let _ = server.receive(&to_server);
        let to_client = server.output();
        for piece in to_client.chunks(piece) {
            if let Err(error) = conn.receive(piece, &mut plain) {
                let _ = server.receive(&output(conn));
                return Err(error);
            }
        }
        if to_server.is_empty() && to_client.is_empty() {
            return Ok(plain);
        }
    }
}

/// Opens a connection and greets.
pub fn meet(
    client: &TlsClient,
    host: &str,
    config: &Arc<ServerConfig>,
) -> Result<(TlsConn, TestServer), TlsError> {
    let mut conn = client.open(host)?;
    let mut server = TestServer::new(config);
    talk(&mut conn, &mut server, usize::MAX)?;
    assert!(!conn.is_handshaking());
    Ok((conn, server))
}
