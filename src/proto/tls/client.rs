//! TLS to hosts of the web by rustls. Beside it only `peer_tls` knows the library, for links between nodes.
//!
//! The library's unbuffered form is used: the only buffers of a connection are ours, and they are freed whenever they
//! are empty, which is nearly always.

use super::facts::{CertFault, TlsError, TlsFacts, TlsSetupError, TlsVersion};
use super::sessions::Sessions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientConnectionData, ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
    UnbufferedClientConnection, WebPkiServerVerifier,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, WriteTraffic,
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, HandshakeKind, NamedGroup, ProtocolVersion,
    RootCertStore, SignatureScheme,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that may wait for the rest of a record, or of a handshake message over several records. The library refuses
/// larger ones itself; this bound does not depend on it.
const PENDING_BYTES_MAX: usize = 80 << 10;

/// A host whose chain and tickets took more than this on the wire is greeted anew each time: a session holds them
/// all, and there may be a hundred thousand sessions.
const SESSION_BYTES_MAX: u64 = 12 << 10;

/// Ciphertext over plaintext of one record, at most; and what a record holds.
const RECORD_OVERHEAD_BYTES: usize = 40;
const RECORD_PLAIN_BYTES: usize = 16 << 10;

/// How this process speaks TLS.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// PEM text of roots that are trusted beside the built-in ones of the web.
    pub roots_pem: Option<Vec<u8>>,
    /// Go on with a server whose certificate is wrong, and tell so in the facts. The server must still prove that it
    /// owns the certificate it shows.
    pub insecure: bool,
    /// Hosts whose last session is remembered. Each takes 0.6 KB and its chain of certificates: 2 to 5 KB on the web.
    pub sessions_max: usize,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings { roots_pem: None, insecure: false, sessions_max: 100_000 }
    }
}

/// Opens TLS connections and remembers their sessions. One per core: its lock is never waited for.
#[derive(Clone)]
pub struct TlsClient(Arc<Shared>);

struct Shared {
    config: Arc<ClientConfig>,
    chain: Arc<Chain>,
    store: Arc<Store>,
}

impl TlsClient {
    pub fn new(settings: &TlsSettings) -> Result<TlsClient, TlsSetupError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(pem) = &settings.roots_pem {
            add_roots(&mut roots, pem)?;
        }
        let provider = Arc::new(default_provider());
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|_| TlsSetupError::Internal)?;
        let chain = Arc::new(Chain { webpki, overlook: settings.insecure });
        let store = Arc::new(Store(Mutex::new(Sessions::new(settings.sessions_max))));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| TlsSetupError::Internal)?
            .dangerous()
            .with_custom_certificate_verifier(chain.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::store(store.clone());
        Ok(TlsClient(Arc::new(Shared { config: Arc::new(config), chain, store })))
    }

    /// A connection to a host as a URL names it: a name, or an address without brackets. Only names are told to the
    /// server (SNI).
    pub fn open(&self, host: &str) -> Result<TlsConn, TlsError> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let name = ServerName::try_from(host).map_err(|_| TlsError::BadName)?.to_owned();
        let tls = UnbufferedClientConnection::new(self.0.config.clone(), name.clone())
            .map_err(|error| failure(&error))?;
        let mut conn = TlsConn {
            tls,
            shared: self.0.clone(),
            name,
            pending: Vec::new(),
            outgoing: Vec::new(),
            overhead: 0,
            stage: Stage::Handshake,
            fault: None,
            peer_closed: false,
        };
        conn.turn(&mut Vec::new(), |_, _| {})?;
        Ok(conn)
    }

    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.0.store.lock().len()
    }
}

fn add_roots(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), TlsSetupError> {
    let mut count = 0;
    for der in CertificateDer::pem_slice_iter(pem) {
        let der = der.map_err(|error| match error {
            PemError::NoItemsFound => TlsSetupError::NoCertificate,
            _ => TlsSetupError::NotPem,
        })?;
        roots.add(der).map_err(|_| TlsSetupError::BadCertificate { after: count })?;
        count += 1;
    }
    if count == 0 { Err(TlsSetupError::NoCertificate) } else { Ok(()) }
}

/// One connection, from ClientHello to close_notify.
pub struct TlsConn {
    tls: UnbufferedClientConnection,
    shared: Arc<Shared>,
    name: ServerName<'static>,
    /// Bytes of the wire that are not a whole record yet, or not a whole handshake message.
    pending: Vec<u8>,
    /// What goes out next.
    outgoing: Vec<u8>,
    /// Bytes received less plain bytes given: the handshake, tickets and the covers of records.
    overhead: u64,
    stage: Stage,
    fault: Option<CertFault>,
    peer_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Keys are being agreed.
    Handshake,
    /// Plain bytes may go both ways.
    Open,
    /// It broke; nothing but the alert goes out.
    Failed(TlsError),
}

impl TlsConn {
    /// Appends what must go out next to `out`: the ClientHello first, then answers to what was received, alerts and
    /// close_notify.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.outgoing);
        self.outgoing = Vec::new();
    }

    /// Takes bytes of the wire, however cut, and appends what they hold to `plain`. Once it failed it stays failed.
    /// Bytes after the server's close_notify are dropped.
    pub fn receive(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        if let Stage::Failed(error) = self.stage {
            return Err(error);
        }
        if self.peer_closed {
            return Ok(());
        }
        let before = plain.len();
        self.pending.extend_from_slice(wire);
        self.turn(plain, |_, _| {})?;
        if self.pending.len() > PENDING_BYTES_MAX {
            return Err(self.fail(TlsError::Protocol));
        }
        self.overhead = (self.overhead + wire.len() as u64).saturating_sub((plain.len() - before) as u64);
        if self.overhead > SESSION_BYTES_MAX {
            self.shared.store.lock().remove(&self.name.to_str());
        }
        if self.stage == Stage::Handshake && !self.tls.is_handshaking() {
            self.stage = Stage::Open;
            self.fault = self.overlooked();
        }
        Ok(())
    }

    /// Encrypts into `out`, after what else must go out. Only when the handshake is over; on a connection that failed
    /// nothing is appended.
    pub fn send(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        assert!(self.stage != Stage::Handshake, "plain bytes before the handshake is over");
        let records = plain.len().div_ceil(RECORD_PLAIN_BYTES);
        self.write(plain.len() + records * RECORD_OVERHEAD_BYTES, |traffic, room| {
            traffic.encrypt(plain, room)
        });
        self.take_output(out);
    }

    pub fn is_handshaking(&self) -> bool {
        self.stage == Stage::Handshake
    }

    /// The server said close_notify: what came is all there is.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    pub fn facts(&self) -> TlsFacts {
        TlsFacts {
            version: match self.tls.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => Some(TlsVersion::Tls13),
                Some(_) => Some(TlsVersion::Tls12),
                None => None,
            },
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            certificate: self.fault,
        }
    }

    fn write(
        &mut self,
        bytes_max: usize,
        encrypt: impl Fn(&mut WriteTraffic<'_, ClientConnectionData>, &mut [u8]) -> Result<usize, EncryptError>,
    ) {
        if self.stage != Stage::Open {
            return;
        }
        let written = self.turn(&mut Vec::new(), |traffic, out| {
            append(out, bytes_max, |room| {
                encrypt(traffic, room).map_err(|error| match error {
                    EncryptError::InsufficientSize(size) => Some(size),
                    EncryptError::EncryptExhausted => None,
                })
            });
        });
        debug_assert!(written.is_ok(), "no new bytes came, so nothing new can be wrong");
    }

    /// Lets the library work on what is pending until it wants more; if by then plain bytes may go out, `write` does it.
    fn turn(
        &mut self,
        plain: &mut Vec<u8>,
        write: impl FnOnce(&mut WriteTraffic<'_, ClientConnectionData>, &mut Vec<u8>),
    ) -> Result<(), TlsError> {
        let mut used = 0;
        let failed = loop {
            let status = self.tls.process_tls_records(&mut self.pending[used..]);
            used += status.discard;
            match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        plain.extend_from_slice(record.payload);
                        used += record.discard;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, &mut self.outgoing),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => {
                    self.peer_closed = true;
                    used = self.pending.len();
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    write(&mut traffic, &mut self.outgoing);
                    break None;
                }
                Ok(_) => break None,
                Err(error) => break Some(failure(&error)),
            }
        };
        if let Some(error) = failed {
            // The next word of the library is the alert that tells the server, if there is one.
            let status = self.tls.process_tls_records(&mut self.pending[used..]);
            if let Ok(ConnectionState::EncodeTlsData(data)) = status.state {
                encode(data, &mut self.outgoing);
            }
            return Err(self.fail(error));
        }
        self.pending.drain(..used);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        Ok(())
    }

    fn fail(&mut self, error: TlsError) -> TlsError {
        self.stage = Stage::Failed(error);
        self.pending = Vec::new();
        error
    }

    /// What the settings told to overlook. It is found from the chain that the session holds, so that a session which
    /// began with a wrong certificate tells of it each time it is resumed.
    fn overlooked(&self) -> Option<CertFault> {
        let (leaf, rest) = self.tls.peer_certificates()?.split_first()?;
        let now = self.shared.config.time_provider.current_time()?;
        self.shared.chain.overlooked(leaf, rest, &self.name, now)
    }
}

fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, out: &mut Vec<u8>) {
    append(out, 0, |room| {
        data.encode(room).map_err(|error| match error {
            EncodeError::InsufficientSize(size) => Some(size),
            EncodeError::AlreadyEncoded => None,
        })
    });
}

/// Appends what `fill` writes. It is asked again with more room when it says how much it needs; when it cannot write
/// at all nothing is appended.
fn append(
    out: &mut Vec<u8>,
    bytes_max: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) {
    let start = out.len();
    out.resize(start + bytes_max, 0);
    let written = fill(&mut out[start..]).or_else(|size| match size {
        Some(InsufficientSizeError { required_size }) => {
            out.resize(start + required_size, 0);
            fill(&mut out[start..])
        }
        None => Err(None),
    });
    out.truncate(start + written.unwrap_or(0));
}

fn failure(error: &Error) -> TlsError {
    match error {
        Error::InvalidCertificate(error) => TlsError::Certificate(fault(error)),
        Error::NoCertificatesPresented => TlsError::Certificate(CertFault::Other),
        Error::AlertReceived(_) => TlsError::Alert,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => TlsError::Incompatible,
        Error::UnsupportedNameType => TlsError::BadName,
        Error::FailedToGetCurrentTime | Error::FailedToGetRandomBytes | Error::General(_) => {
            TlsError::Internal
        }
        _ => TlsError::Protocol,
    }
}

fn fault(error: &CertificateError) -> CertFault {
    use CertificateError::*;
    match error {
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => CertFault::Expired,
        UnknownIssuer => CertFault::UnknownIssuer,
        NotValidForName | NotValidForNameContext { .. } => CertFault::WrongName,
        _ => CertFault::Other,
    }
}

/// Judges chains of certificates, or lets them all pass for [`TlsConn::facts`] to tell. The proof that a server owns
/// its certificate is asked for either way.
#[derive(Debug)]
struct Chain {
    webpki: Arc<WebPkiServerVerifier>,
    overlook: bool,
}

impl Chain {
    fn overlooked(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Option<CertFault> {
        if !self.overlook {
            return None;
        }
        match self.webpki.verify_server_cert(leaf, rest, name, &[], now) {
            Ok(_) => None,
            Err(Error::InvalidCertificate(error)) => Some(fault(&error)),
            Err(_) => Some(CertFault::Other),
        }
    }
}

impl ServerCertVerifier for Chain {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.overlook {
            return Ok(ServerCertVerified::assertion());
        }
        self.webpki.verify_server_cert(leaf, rest, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        proof: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, cert, proof)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        proof: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, cert, proof)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// What is remembered of a host.
struct Memory {
    /// The group it chose, if not the one we would offer anyway.
    group: Option<NamedGroup>,
    session: Option<Box<Session>>,
}

/// One session per host is enough: each connection brings the next one, and a host is rarely asked by two at once.
enum Session {
    /// Good for any number of connections.
    Tls12(Tls12ClientSessionValue),
    /// A ticket, good for one.
    Tls13(Tls13ClientSessionValue),
}

/// The sessions of one core. The library asks for a store that threads could share; here none do.
struct Store(Mutex<Sessions<Memory>>);

/// Offered first, so a host that takes it needs no note.
const FIRST_GROUP: NamedGroup = NamedGroup::X25519;

impl Store {
    fn lock(&self) -> MutexGuard<'_, Sessions<Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, name: &ServerName<'_>, session: Session) {
        let name = name.to_str();
        let mut sessions = self.lock();
        let group = sessions.get(&name).and_then(|memory| memory.group);
        sessions.put(&name, Memory { group, session: Some(Box::new(session)) });
    }

    fn forget(&self, name: &ServerName<'_>, which: impl Fn(&Session) -> bool) -> Option<Box<Session>> {
        let name = name.to_str();
        let mut sessions = self.lock();
        let memory = sessions.get_mut(&name)?;
        if !memory.session.as_deref().is_some_and(which) {
            return None;
        }
        let session = memory.session.take();
        if memory.group.is_none() {
            sessions.remove(&name);
        }
        session
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        let name = name.to_str();
        let group = (group != FIRST_GROUP).then_some(group);
        let mut sessions = self.lock();
        match sessions.get_mut(&name) {
            Some(memory) => memory.group = group,
            None if group.is_some() => sessions.put(&name, Memory { group, session: None }),
            None => {}
        }
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().get(&name.to_str())?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.keep(&name, Session::Tls12(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        match self.lock().get(&name.to_str())?.session.as_deref()? {
            Session::Tls12(session) => Some(session.clone()),
            Session::Tls13(_) => None,
        }
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.forget(name, |session| matches!(session, Session::Tls12(_)));
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.keep(&name, Session::Tls13(ticket));
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        match *self.forget(name, |session| matches!(session, Session::Tls13(_)))? {
            Session::Tls13(ticket) => Some(ticket),
            Session::Tls12(_) => None,
        }
    }
}
