//! Connections between URL servers and spiders: bytes in and out of sockets, on one thread, for either side.
//!
//! ```text
//!   owner:  LinkPort::send, close ──► command ring ──► links thread ──► sockets (listen, dial, reconnect)
//!           LinkPort::next ◄── event ring ◄── Up · Bytes · Sent · Down ──┘
//! ```
//!
//! | file        | holds                                                               |
//! |-------------|---------------------------------------------------------------------|
//! | `port`      | the owner's end, and what is said over it                           |
//! | `dial`      | when to try a peer again that does not answer                       |
//! | `link`      | one socket and its buffer                                           |
//! | `reliable`  | messages that are kept until they are counted, and sent again         |
//! | `transport` | the thread: one poll over every socket                              |
//!
//! It knows nothing of lines. While the event ring is full no socket is read, so that a slow owner holds its peers
//! back; what is to be sent waits in a buffer per link, and a peer that lets it grow too large is let go.

mod dial;
mod link;
mod port;
mod reliable;
#[cfg(test)]
mod tests;
mod transport;

pub use port::{LinkEvent, LinkPort};
pub(in crate::engine) use reliable::{BadCount, Reliable};
pub use transport::{Links, LinksConfig, LinksThread};
