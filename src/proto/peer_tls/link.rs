use super::fault::PeerTlsError;
use super::identity::NodeIdentity;
use crate::limits::PEER_EARLY_BYTES_MAX;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::fmt;
use std::io::{BufRead, Write};
use std::mem::take;

/// One connection between two nodes, from the first hello to close_notify.
pub struct SecureLink {
    way: Way,
    /// Plain bytes that wait for the end of the handshake.
    early_bytes: usize,
    failed: Option<PeerTlsError>,
    closed: bool,
    peer_closed: bool,
}

/// How bytes get on the wire.
enum Way {
    Tls(Box<Connection>),
    /// As they are; `out` is what goes out next.
    Plain {
        out: Vec<u8>,
    },
}

impl SecureLink {
    /// The side that connects. Its hello is the first thing to take.
    pub fn client(identity: &NodeIdentity) -> Result<SecureLink, PeerTlsError> {
        ClientConnection::new(identity.client.clone(), identity.name.clone())
            .map(|tls| SecureLink::tls(tls.into()))
            .map_err(|error| PeerTlsError::of(&error, false))
    }

    /// The side that was connected to.
    pub fn server(identity: &NodeIdentity) -> Result<SecureLink, PeerTlsError> {
        ServerConnection::new(identity.server.clone())
            .map(|tls| SecureLink::tls(tls.into()))
            .map_err(|error| PeerTlsError::of(&error, false))
    }

    /// A link that passes bytes through as they are, for a simulated network.
    pub fn plain() -> SecureLink {
        SecureLink::new(Way::Plain { out: Vec::new() })
    }

    fn tls(mut tls: Connection) -> SecureLink {
        // Bytes before the end of the handshake are counted here; those behind it are the caller's to take at once.
        tls.set_buffer_limit(None);
        SecureLink::new(Way::Tls(Box::new(tls)))
    }

    fn new(way: Way) -> SecureLink {
        SecureLink { way, early_bytes: 0, failed: None, closed: false, peer_closed: false }
    }

    /// Takes bytes of the peer, however cut, and appends the plain bytes in them: never more in all than came in. What was
    /// whole before an error is appended too. Bytes behind the peer's close_notify are dropped.
    pub fn push_wire(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), PeerTlsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let tls = match &mut self.way {
            Way::Tls(tls) => tls,
            Way::Plain { .. } => {
                plain.extend_from_slice(wire);
                return Ok(());
            }
        };
        while !wire.is_empty() && !self.peer_closed {
            // The library refuses more bytes when what it holds makes no message.
            let taken = tls.read_tls(&mut wire).map_err(|_| PeerTlsError::Broken);
            let processed = taken.and_then(|_| {
                let processed = tls.process_new_packets();
                processed.map_err(|error| PeerTlsError::of(&error, tls.protocol_version().is_some()))
            });
            drain(tls, plain);
            match processed {
                Ok(state) => self.peer_closed = state.peer_has_closed(),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Encrypts bytes for the peer. Before the handshake is over they are kept, up to a bound, and go out behind it.
    pub fn send(&mut self, plain: &[u8]) -> Result<(), PeerTlsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.closed {
            return Err(PeerTlsError::Closed);
        }
        match &mut self.way {
            Way::Tls(tls) => {
                if tls.is_handshaking() {
                    if plain.len() > PEER_EARLY_BYTES_MAX - self.early_bytes {
                        return Err(PeerTlsError::Full);
                    }
                    self.early_bytes += plain.len();
                }
                // It goes to memory.
                tls.writer().write_all(plain).map_err(|_| PeerTlsError::Internal)
            }
            Way::Plain { out } => {
                out.extend_from_slice(plain);
                Ok(())
            }
        }
    }

    /// What must go out to the peer next; empty if nothing must.
    pub fn take_wire(&mut self) -> Vec<u8> {
        match &mut self.way {
            Way::Tls(tls) => {
                let mut wire = Vec::new();
                // Memory takes all that it is given.
                while tls.wants_write() && tls.write_tls(&mut wire).is_ok() {}
                wire
            }
            Way::Plain { out } => take(out),
        }
    }

    /// The handshake is over and the peer has a certificate of the cluster. A server is sure by then that both are of it; a
    /// client hears with the next bytes of a server if that refused it.
    pub fn is_ready(&self) -> bool {
        let greeted = match &self.way {
            Way::Tls(tls) => !tls.is_handshaking(),
            Way::Plain { .. } => true,
        };
        greeted && self.failed.is_none()
    }

    /// Says that nothing more will be sent. Bytes that still wait for the handshake are lost.
    pub fn close(&mut self) {
        if let Way::Tls(tls) = &mut self.way
            && !self.closed
            && self.failed.is_none()
        {
            tls.send_close_notify();
        }
        self.closed = true;
    }

    /// The peer said that it sends nothing more: a connection that ends without it was cut. A plain link cannot tell.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }
}

/// Moves what was decrypted; the library has nothing more when it says that it would wait, or that the peer is done.
fn drain(tls: &mut Connection, plain: &mut Vec<u8>) {
    let mut reader = tls.reader();
    while let Ok(bytes) = reader.fill_buf()
        && !bytes.is_empty()
    {
        let count = bytes.len();
        plain.extend_from_slice(bytes);
        reader.consume(count);
    }
}

impl fmt::Debug for SecureLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureLink")
            .field("ready", &self.is_ready())
            .field("failed", &self.failed)
            .field("closed", &self.closed)
            .field("peer_closed", &self.peer_closed)
            .finish_non_exhaustive()
    }
}
