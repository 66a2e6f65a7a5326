//! TLS without I/O: bytes of the wire come in, plain bytes come out, and the other way round.
//!
//! ```text
//!              wire                       TlsConn                        plain
//!   ──── receive(wire) ────►  ┌──────────────────────────────┐  ──── document bytes ────►
//!                             │ handshake · records · alerts │
//!   ◄─── take_output(out) ──  └───────┬──────────────┬───────┘  ◄─── send(request) ──────
//!                                     │              │
//!                            chain of certificates   tickets
//!                                     ▼              ▼
//!                                 CertFault       Sessions, by host name, one store per core
//! ```
//!
//! The life of a connection:
//!
//! 1. [`TlsClient::open`] makes it for a host; [`TlsConn::take_output`] gives the ClientHello.
//! 2. Whatever arrives goes to [`TlsConn::receive`], and after each of them whatever [`TlsConn::take_output`] gives
//!    goes out. Half a record is normal.
//! 3. When [`TlsConn::is_handshaking`] turns false the request goes through [`TlsConn::send`]; it may leave in the
//!    same write as the last handshake bytes.
//! 4. [`TlsConn::facts`] tells version, resumption and what was wrong with the certificate. A wrong certificate ends
//!    the handshake with [`TlsError::Certificate`], unless the settings say to note it and go on.
//! 5. When the socket ends, [`TlsConn::peer_closed`] tells a document that the server ended from one that was cut.
//!
//! One file, `client.rs`, knows the TLS library. The library reads the clock of the system for the validity of
//! certificates and the age of tickets; nothing here does.

mod client;
mod facts;
mod sessions;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

pub use client::{TlsClient, TlsConn, TlsSettings};
pub use facts::{CertFault, TlsError, TlsSetupError, TlsVersion};
