use crate::base::Now;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// One connection, and what is to be sent over it.
pub(super) struct Link {
    pub peer: SocketAddr,
    /// Which of the dials made it.
    pub dial: Option<usize>,
    pub phase: Phase,
    /// What is to be sent after what the driver has.
    out: VecDeque<Vec<u8>>,
    out_bytes: usize,
    /// Bytes of the send that is open; the driver has one at a time.
    sending: usize,
    /// Sent, but the owner was not told yet.
    pub untold_bytes: usize,
    pub received: bool,
    /// The peer says nothing more, and hears still.
    pub has_ended: bool,
}

/// The life of a link.
#[derive(PartialEq, Eq)]
pub(super) enum Phase {
    /// Being made; given up at that time.
    Opening { by: Now },
    /// It stands, and the owner knows.
    Standing,
    /// The owner let it go, or the process ends: what was to be sent is sent, then goodbye is said (`finished`), and the
    /// peer is to hang up, until that time. A socket closed with bytes unread would take back what the peer has not read.
    Leaving { by: Now, finished: bool },
    /// The driver closes it. Then the owner hears why, if it ever stood.
    Closing { why: Option<String> },
}

/// Small pieces are put together up to this size.
const PIECE_BYTES: usize = 64 * 1_024;

impl Link {
    pub fn new(peer: SocketAddr, dial: Option<usize>, phase: Phase) -> Link {
        Link {
            peer,
            dial,
            phase,
            out: VecDeque::new(),
            out_bytes: 0,
            sending: 0,
            untold_bytes: 0,
            received: false,
            has_ended: false,
        }
    }

    /// Puts bytes behind those that wait.
    pub fn queue(&mut self, bytes: Vec<u8>) {
        self.out_bytes += bytes.len();
        match self.out.back_mut() {
            Some(last) if last.len() + bytes.len() <= PIECE_BYTES => last.extend_from_slice(&bytes),
            _ => self.out.push_back(bytes),
        }
    }

    /// What the driver is to send next, unless it has something to send already.
    pub fn next_piece(&mut self) -> Option<Vec<u8>> {
        if self.sending > 0 {
            return None;
        }
        let piece = self.out.pop_front()?;
        self.out_bytes -= piece.len();
        self.sending = piece.len();
        Some(piece)
    }

    /// The open send is through.
    pub fn sent(&mut self) {
        self.untold_bytes += std::mem::take(&mut self.sending);
    }

    /// Bytes that the kernel has not taken.
    pub fn waiting(&self) -> usize {
        self.out_bytes + self.sending
    }
}
