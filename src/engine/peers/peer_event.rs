use crate::base::Key;
use crate::proto::peer_wire::{Hello, PeerWord};
use std::net::SocketAddr;

/// Who is at the other end of a link. Nodes that have no number yet are told apart by their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    pub link: Key,
    /// 0 if it has none.
    pub node: u16,
}

/// What happens between nodes. Of each [`Peer`]: `Up`, then words in any number, then `Down`, once; and of a node that has a
/// number one at a time.
#[derive(Debug)]
pub enum PeerEvent<'a> {
    /// Both have accepted each other.
    Up {
        peer: Peer,
        hello: Hello<'a>,
        /// Where its connection comes from or goes to.
        address: SocketAddr,
    },
    Word {
        peer: Peer,
        word: PeerWord<'a>,
    },
    /// Words sent to it may not have arrived.
    Down {
        peer: Peer,
        why: &'a str,
    },
    /// No link came to stand, for a cause that will last. Each cause is told once for an address, until there is another or
    /// the link stands.
    Refused {
        /// As dialed, as the peer says that it is reached, or where it came from.
        address: &'a str,
        why: &'a str,
        /// We refuse it; otherwise it refuses us.
        by_us: bool,
    },
}

/// Whoever the links are for.
pub trait PeerOwner {
    /// Whether a node of the same cluster, version and rules may be linked with; if not, the line that it is told.
    fn judge(&mut self, hello: &Hello<'_>) -> Result<(), String>;

    fn take(&mut self, event: PeerEvent<'_>);
}
