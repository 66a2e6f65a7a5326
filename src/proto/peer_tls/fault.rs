use crate::limits::PEER_EARLY_BYTES_MAX;
use rustls::{AlertDescription, CertificateError, Error};
use thiserror::Error as ThisError;

/// Why a key file makes no identity of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum IdentityError {
    #[error("the private key in the key file cannot be read: copy it again from the first node")]
    PrivateKey,
    #[error("the certificate in the key file cannot be read: copy it again from the first node")]
    Certificate,
    #[error(
        "certificate and private key in the key file do not belong together: copy it again from the first node"
    )]
    Pair,
    #[error(
        "certificates cannot be made here: the system gives no random bytes, or no keys can be made of them"
    )]
    Internal,
}

/// Why a link to a peer failed: one line about the peer, whose address the caller puts in front. A link that failed stays
/// failed; [`SecureLink::take_wire`](super::SecureLink::take_wire) has the alert that tells the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum PeerTlsError {
    #[error("it has the certificate of another cluster: give every node the key file of this one")]
    OtherCluster,
    #[error("it refuses our certificate: give every node the key file of one cluster")]
    Refused,
    #[error("it shows no certificate: is it a node of a cluster?")]
    NoCertificate,
    #[error("its certificate is none of a node: is it a node of a cluster, and of the same version?")]
    BadCertificate,
    #[error("it does not speak TLS: is it a node of a cluster?")]
    NotTls,
    #[error("it speaks TLS, but not as nodes do: is it a node of a cluster, and of the same version?")]
    OtherTls,
    #[error("it ended the connection with a TLS alert")]
    Alert,
    #[error("what it sent was changed on the way, or is no TLS: look at what stands between the nodes")]
    Broken,
    #[error("more than {PEER_EARLY_BYTES_MAX} bytes wait for the end of its handshake")]
    Full,
    #[error("the link to it is closed")]
    Closed,
    #[error("TLS cannot be spoken here: the system gives no random bytes")]
    Internal,
}

impl PeerTlsError {
    /// What the library means. `met` says that the hello of the peer was understood.
    pub(super) fn of(error: &Error, met: bool) -> PeerTlsError {
        match error {
            Error::InvalidCertificate(fault) => match fault {
                // An authority of the same name and another key signs wrongly.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    PeerTlsError::OtherCluster
                }
                _ => PeerTlsError::BadCertificate,
            },
            Error::NoCertificatesPresented => PeerTlsError::NoCertificate,
            Error::AlertReceived(alert) => PeerTlsError::told(*alert),
            Error::InvalidMessage(_) if !met => PeerTlsError::NotTls,
            Error::PeerIncompatible(_)
            | Error::PeerMisbehaved(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::NoApplicationProtocol => PeerTlsError::OtherTls,
            Error::FailedToGetRandomBytes | Error::FailedToGetCurrentTime | Error::General(_) => {
                PeerTlsError::Internal
            }
            _ => PeerTlsError::Broken,
        }
    }

    fn told(alert: AlertDescription) -> PeerTlsError {
        use AlertDescription::*;
        match alert {
            // The last is what an authority of the same name and another key makes of our certificate.
            UnknownCA
            | BadCertificate
            | UnsupportedCertificate
            | CertificateExpired
            | CertificateUnknown
            | CertificateRevoked
            | CertificateRequired
            | AccessDenied
            | DecryptError => PeerTlsError::Refused,
            HandshakeFailure
            | ProtocolVersion
            | InsufficientSecurity
            | MissingExtension
            | UnrecognisedName
            | UnsupportedExtension
            | NoApplicationProtocol => PeerTlsError::OtherTls,
            BadRecordMac => PeerTlsError::Broken,
            _ => PeerTlsError::Alert,
        }
    }
}
