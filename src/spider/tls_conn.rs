use super::buffers::Buffers;
use crate::base::{Key, NetAsk};
use crate::proto::tls::{self, CertFault, TlsError};

/// The TLS of a connection, and the bytes that wait to be sent under it: the kernel takes one send at a time.
pub(super) struct TlsConn {
    tls: tls::TlsConn,
    /// The send that the kernel has, if any.
    sending: Option<Load>,
    pending: Vec<u8>,
    pending_load: Load,
    /// Why the handshake failed, if a certificate was the reason.
    fault: Option<CertFault>,
}

/// What a send carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Bytes of TLS itself.
    Handshake,
    /// The request, to its last byte.
    Request,
}

impl TlsConn {
    pub fn new(tls: tls::TlsConn) -> TlsConn {
        TlsConn { tls, sending: None, pending: Vec::new(), pending_load: Load::Handshake, fault: None }
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Begun from an earlier session; known once it is not handshaking any more.
    pub fn is_resumed(&self) -> bool {
        self.tls.facts().resumed
    }

    /// The peer said that it will send no more.
    pub fn peer_closed(&self) -> bool {
        self.tls.peer_closed()
    }

    /// What is wrong with the server's certificate, whether it was accepted or not.
    pub fn cert_fault(&self) -> Option<CertFault> {
        self.fault.or_else(|| self.tls.facts().certificate)
    }

    /// Takes received bytes and appends what they decrypt to.
    pub fn receive(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let received = self.tls.receive(wire, plain);
        // An alert that says what was wrong goes out to the peer as well.
        self.tls.take_output(&mut self.pending);
        if let Err(TlsError::Certificate(fault)) = received {
            self.fault = Some(fault);
        }
        received
    }

    /// Queues a request.
    pub fn request(&mut self, request: &[u8]) {
        self.tls.send(request, &mut self.pending);
        self.pending_load = Load::Request;
    }

    /// The kernel has taken the last send. True if the request was in it.
    pub fn sent(&mut self) -> bool {
        self.sending.take() == Some(Load::Request)
    }

    /// The next send, if there is anything to send and the kernel has no send yet.
    pub fn next_send(&mut self, conn: Key, buffers: &mut Buffers) -> Option<NetAsk> {
        self.tls.take_output(&mut self.pending);
        if self.sending.is_some() || self.pending.is_empty() {
            return None;
        }
        let mut bytes = buffers.request();
        bytes.clear();
        std::mem::swap(&mut bytes, &mut self.pending);
        self.sending = Some(std::mem::replace(&mut self.pending_load, Load::Handshake));
        Some(NetAsk::Send { conn, bytes })
    }
}
