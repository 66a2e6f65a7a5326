use super::introduction::Introduction;
use super::peer_event::Peer;
use crate::base::{Key, Now};
use crate::proto::peer_tls::{NodeIdentity, PeerTlsError, SecureLink};
use crate::proto::peer_wire::{FrameBuffer, PeerWord};
use std::net::SocketAddr;

/// One link to a peer: its TLS, its frames, and how far the two have come.
pub(super) struct Wire {
    pub key: Key,
    pub address: SocketAddr,
    /// The number under which it was dialed; otherwise the peer did.
    pub dial: Option<usize>,
    pub stage: Stage,
    pub frames: FrameBuffer,
    /// When bytes of the peer came last, or the link came up.
    pub heard_at: Now,
    pub has_heard: bool,
    /// When something was put for it last.
    pub said_at: Now,
    /// It is given up, and the owner will hear why.
    pub is_lost: bool,
    secure: SecureLink,
    /// Words that TLS has not got.
    out: Vec<u8>,
    /// Bytes that were handed on and are not with the kernel.
    under_way: usize,
}

/// The life of a wire.
pub(super) enum Stage {
    /// We said HELLO, and are to hear one until then.
    Greeting { by: Now },
    /// Its HELLO was good, and until then its first word is to come, by which it accepts ours.
    Met { by: Now, peer: Box<Introduction> },
    /// The owner knows of it.
    Standing { since: Now, peer: Box<Introduction> },
}

/// Of one word with pages.
const SPARE_BYTES_MAX: usize = 256 << 10;

impl Wire {
    /// Without an identity it is plain.
    pub fn new(
        key: Key,
        address: SocketAddr,
        dial: Option<usize>,
        identity: Option<&NodeIdentity>,
        (now, by): (Now, Now),
    ) -> Result<Wire, PeerTlsError> {
        let secure = match (identity, dial) {
            (None, _) => SecureLink::plain(),
            (Some(identity), Some(_)) => SecureLink::client(identity)?,
            (Some(identity), None) => SecureLink::server(identity)?,
        };
        Ok(Wire {
            key,
            address,
            dial,
            stage: Stage::Greeting { by },
            frames: FrameBuffer::default(),
            heard_at: now,
            has_heard: false,
            said_at: now,
            is_lost: false,
            secure,
            out: Vec::new(),
            under_way: 0,
        })
    }

    /// Takes bytes of the peer; what is whole in them is in `frames`, before an error too.
    pub fn push(&mut self, bytes: &[u8], now: Now) -> Result<(), PeerTlsError> {
        (self.heard_at, self.has_heard) = (now, true);
        let secure = &mut self.secure;
        self.frames.push_with(bytes.len(), |plain| secure.push_wire(bytes, plain))
    }

    /// Memory for what is put next, if it has none.
    pub fn lend(&mut self, spare: &mut Vec<u8>) {
        if self.out.capacity() == 0 {
            self.out = std::mem::take(spare);
        }
    }

    pub fn put(&mut self, word: &PeerWord<'_>, now: Now) {
        word.write(&mut self.out);
        self.said_at = now;
    }

    /// A word as it goes out.
    pub fn put_frame(&mut self, frame: &[u8], now: Now) {
        self.out.extend_from_slice(frame);
        self.said_at = now;
    }

    /// What goes out next. The memory of what was put is lent to whoever puts next: a batch is large, and there may be a thousand
    /// wires.
    pub fn flush(&mut self, spare: &mut Vec<u8>) -> Result<Vec<u8>, PeerTlsError> {
        let sent = if self.out.is_empty() { Ok(()) } else { self.secure.send(&self.out) };
        let mut out = std::mem::take(&mut self.out);
        if out.capacity() > spare.capacity() && out.capacity() <= SPARE_BYTES_MAX {
            out.clear();
            *spare = out;
        }
        let bytes = self.secure.take_wire();
        self.under_way += bytes.len();
        sent.map(|()| bytes)
    }

    /// The last bytes: what was put and, over TLS, that nothing follows.
    pub fn close(&mut self) -> Vec<u8> {
        // If it failed, there is an alert to take, and nothing else.
        let _ = self.secure.send(&self.out);
        self.out = Vec::new();
        self.secure.close();
        self.secure.take_wire()
    }

    /// So many bytes are with the kernel.
    pub fn sent(&mut self, bytes: usize) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// Bytes that were put and not flushed.
    pub fn unflushed(&self) -> usize {
        self.out.len()
    }

    /// Bytes that are not with the kernel.
    pub fn unsent(&self) -> usize {
        self.out.len() + self.under_way
    }

    pub fn peer(&self) -> Peer {
        Peer { link: self.key, node: self.introduction().map_or(0, |peer| peer.node) }
    }

    pub fn introduction(&self) -> Option<&Introduction> {
        match &self.stage {
            Stage::Greeting { .. } => None,
            Stage::Met { peer, .. } | Stage::Standing { peer, .. } => Some(peer),
        }
    }

    pub fn is_standing(&self) -> bool {
        matches!(self.stage, Stage::Standing { .. })
    }

    /// Time in which nobody listened is not the peer's.
    pub fn forgive(&mut self, us: u64) {
        self.heard_at = self.heard_at.plus_us(us);
        if let Stage::Greeting { by } | Stage::Met { by, .. } = &mut self.stage {
            *by = by.plus_us(us);
        }
    }
}
