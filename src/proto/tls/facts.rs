//! What a TLS connection tells of itself, and how it can fail.

use std::fmt;

/// What is wrong with a certificate or with the chain that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertFault {
    /// Its time is over, or has not come.
    Expired,
    /// No chain leads from it to a root that is trusted.
    UnknownIssuer,
    /// It was made for other names than the host asked for.
    WrongName,
    /// Anything else: bad encoding, an old form, no names at all, a CA's own certificate, a wrong purpose.
    Other,
}

impl fmt::Display for CertFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CertFault::Expired => "a certificate out of its time",
            CertFault::UnknownIssuer => "a certificate of an unknown issuer",
            CertFault::WrongName => "a certificate for another name",
            CertFault::Other => "a certificate that cannot be accepted",
        })
    }
}

/// Why a connection failed. It stays failed: ask [`TlsConn::take_output`](super::TlsConn::take_output) once more for
/// the alert that tells the server, then close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The certificate is wrong, or the server could not prove that it owns it.
    Certificate(CertFault),
    /// The server gave up and said so.
    Alert,
    /// Versions, ciphers or groups of the server and of ours do not meet.
    Incompatible,
    /// What came is not TLS, or not at this point.
    Protocol,
    /// The host is neither an address nor a name that a certificate could hold.
    BadName,
    /// Something on our side: no random bytes, no clock.
    Internal,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsError::Certificate(fault) => return fault.fmt(f),
            TlsError::Alert => "the server sent a TLS alert",
            TlsError::Incompatible => "no TLS version or cipher in common",
            TlsError::Protocol => "bytes that are not TLS or out of order",
            TlsError::BadName => "a host name that TLS cannot carry",
            TlsError::Internal => "TLS could not be set up here",
        })
    }
}

impl std::error::Error for TlsError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsVersion::Tls12 => "TLSv1.2",
            TlsVersion::Tls13 => "TLSv1.3",
        })
    }
}

/// What is known of a connection so far; all of it once the handshake is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    pub version: Option<TlsVersion>,
    /// Begun from a ticket or a session of an earlier connection to the same host.
    pub resumed: bool,
    /// What was overlooked because the settings say so.
    pub certificate: Option<CertFault>,
}

/// Why the roots of the settings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSetupError {
    /// The text is not PEM.
    NotPem,
    /// PEM, but without a certificate in it.
    NoCertificate,
    /// So many certificates were fine; the next one is not one.
    BadCertificate { after: usize },
    /// The cryptography behind TLS could not be set up.
    Internal,
}

impl fmt::Display for TlsSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsSetupError::NotPem => {
                f.write_str("not a PEM file: a BEGIN line without its END, or bad base64")
            }
            TlsSetupError::NoCertificate => {
                f.write_str("no certificate in it: expected -----BEGIN CERTIFICATE-----")
            }
            TlsSetupError::BadCertificate { after } => {
                write!(f, "certificate {} cannot be used as a root", after + 1)
            }
            TlsSetupError::Internal => f.write_str("TLS could not be set up"),
        }
    }
}

impl std::error::Error for TlsSetupError {}
