//! Connections between URL servers and spiders, and to store servers: bytes in and out, for either side.
//!
//! ```text
//!   owner:  LinkPort::send, close, dial, undial ──► command ring ──► Links over a driver: listen, dial, reconnect
//!           LinkPort::next ◄── event ring ◄── Up · Bytes · Sent · Down ──┘
//! ```
//!
//! | file       | holds                                                                  |
//! |------------|------------------------------------------------------------------------|
//! | `port`     | the owner's end, and what is said over it                              |
//! | `dial`     | when to try a peer again that does not answer                          |
//! | `dials`    | all peers that are dialed, by number                                   |
//! | `link`     | one connection and what is to be sent over it                          |
//! | `links`    | all of them, as one value that a thread or the simulation turns        |
//! | `reliable` | messages that are kept until the peer has counted them, and sent again |
//! | `thread`   | the thread that turns it, over a driver of the kind the process chose  |
//!
//! It knows nothing of lines. While the event ring is full no connection is received from, so that a slow owner holds its
//! peers back; what is to be sent waits in a queue per link, and a peer that lets it grow too large is let go.

mod dial;
mod dials;
mod link;
#[expect(clippy::module_inception, reason = "the folder's one value, in the file of its name")]
mod links;
mod port;
mod reliable;
#[cfg(test)]
mod tests;
mod thread;

pub use links::{Links, LinksConfig};
pub use port::{LinkEvent, LinkPort};
pub(in crate::engine) use reliable::{BadCount, Reliable};
pub use thread::LinksThread;
