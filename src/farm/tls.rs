//! TLS for the farm: an authority of its own, one certificate for all hosts, and the server's side of a connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use thiserror::Error;

use super::site_spec::host_addr;

/// Hosts whose address is in the certificate beside all names: a certificate with a thousand of them would be
/// none that the web has.
const ADDRESSES_MAX: u32 = 16;

/// What the farm shows its clients, and what they must trust to believe it.
pub(super) struct Identity {
    pub(super) config: Arc<ServerConfig>,
    pub(super) ca_pem: String,
}

impl Identity {
    /// Makes an authority and a certificate for every name of the farm and the first addresses. Nothing of it is
    /// kept: each farm has its own.
    pub(super) fn new(hosts: u32) -> Result<Identity, IdentityError> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name.push(DnType::CommonName, "Nephila farm authority");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let mut leaf = CertificateParams::new(vec!["*.farm.test".to_owned(), "farm.test".to_owned()])?;
        leaf.distinguished_name.push(DnType::CommonName, "farm.test");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let addresses = (0..hosts.min(ADDRESSES_MAX)).map(host_addr).chain([Ipv4Addr::LOCALHOST]);
        leaf.subject_alt_names.extend(addresses.map(|addr| SanType::IpAddress(IpAddr::V4(addr))));
        let key = KeyPair::generate()?;
        let leaf = leaf.signed_by(&key, &ca)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| IdentityError::Key)?;

        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Tickets hold the session, so that threads need not share a table of them.
        config.ticketer = ring::Ticketer::new()?;
        Ok(Identity { config: Arc::new(config), ca_pem: ca.pem() })
    }
}

/// Why there is no certificate to show.
#[derive(Debug, Error)]
pub enum IdentityError {
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("a key that cannot be used")]
    Key,
}

/// The server's side of one connection: between the socket and plain bytes.
pub(super) struct TlsSide(ServerConnection);

/// The result of a read.
pub(super) struct Opened {
    /// Plain bytes; 0 is the end.
    pub(super) bytes: usize,
    /// There may be more, in the socket or here.
    pub(super) more: bool,
}

impl TlsSide {
    pub(super) fn new(config: &Arc<ServerConfig>) -> io::Result<TlsSide> {
        let mut tls = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        // An answer is sealed whole, as large as it is.
        tls.set_buffer_limit(None);
        Ok(TlsSide(tls))
    }

    /// Reads plain bytes, and talks through the handshake on the way. Handshake bytes are few: a peer whose window
    /// has no room for them is given up.
    pub(super) fn read(&mut self, stream: &mut (impl Read + Write), room: &mut [u8]) -> io::Result<Opened> {
        let mut wire = Wire { stream, drained: false };
        loop {
            match self.0.reader().read(room) {
                Ok(bytes) => {
                    return Ok(Opened { bytes, more: !wire.drained || bytes == room.len() });
                }
                // The peer closed without a notification.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(Opened { bytes: 0, more: false });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if wire.drained {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.0.read_tls(&mut wire)?;
            let processed = self.0.process_new_packets();
            while self.0.wants_write() {
                if let Err(error) = self.0.write_tls(wire.stream) {
                    return Err(match error.kind() {
                        ErrorKind::WouldBlock => ErrorKind::WriteZero.into(),
                        _ => error,
                    });
                }
            }
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }

    /// Turns an answer into what goes over the wire. `last` says that nothing follows.
    pub(super) fn seal(&mut self, answer: &mut Vec<u8>, last: bool) {
        // Both go to memory, which does not fail.
        let _ = self.0.writer().write_all(answer);
        if last {
            self.0.send_close_notify();
        }
        answer.clear();
        while self.0.wants_write() {
            let _ = self.0.write_tls(answer);
        }
    }
}

/// A socket that remembers when it gave less than was asked for: there is no more in it until the next event.
struct Wire<'a, S> {
    stream: &'a mut S,
    drained: bool,
}

impl<S: Read> Read for Wire<'_, S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(room)?;
        self.drained = bytes > 0 && bytes < room.len();
        Ok(bytes)
    }
}
