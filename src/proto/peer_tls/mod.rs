//! TLS 1.3 between the nodes of one cluster, without I/O: bytes of the wire come in, plain bytes come out, and the other
//! way round.
//!
//! ```text
//!    ClusterKey ── signs ──► NodeIdentity ──► SecureLink::client, ::server
//!    (one authority)         (a certificate in memory, made at each start)
//!
//!              wire                      SecureLink                        plain
//!   ──── push_wire(bytes) ──►  ┌──────────────────────────────┐  ──── frames of peer_wire ──►
//!                              │ handshake · records · alerts │
//!   ◄─── take_wire() ────────  └──────────────────────────────┘  ◄─── send(bytes) ───────────
//! ```
//!
//! 1. [`new_cluster_key`] makes the cluster's own authority, once; its key file is carried to every node.
//! 2. [`NodeIdentity::new`] signs a certificate for this node. It is never written down.
//! 3. [`SecureLink`] is one connection. Both sides show a certificate, and the authority of the key file is the only one that
//!    either believes: who has the key file is a node, and nobody else is. After every call whatever
//!    [`SecureLink::take_wire`] gives goes out.
//!
//! No clock is read: certificates are judged as of a fixed day within their century, so that a node whose clock is wrong is
//! still let in. What ends a node's right is another key file.

mod authority;
mod fault;
mod identity;
mod link;
#[cfg(test)]
mod tests;

pub use authority::new_cluster_key;
pub use fault::{IdentityError, PeerTlsError};
pub use identity::NodeIdentity;
pub use link::SecureLink;
