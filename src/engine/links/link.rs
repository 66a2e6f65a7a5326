use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Instant;

/// One socket, and what is to be written to it and told of it.
pub(super) struct Link {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    /// Which of the dials made it.
    pub dial: Option<usize>,
    pub phase: Phase,
    /// `out[written..]` still to go.
    out: Vec<u8>,
    written: usize,
    /// Written, but not told yet.
    pub untold_bytes: usize,
    pub received: bool,
    pub on_readable: bool,
    pub on_telling: bool,
    /// We have said goodbye.
    shut: bool,
}

/// The life of a link.
pub(super) enum Phase {
    /// Being made; given up at that time.
    Opening { by: Instant },
    /// It stands. The owner knows once `told`.
    Standing { told: bool },
    /// No more of it but to tell the owner, if it was told before.
    Gone { told: bool, why: String },
}

/// Buffers read off a link in one step towards its end.
const READS_PER_STEP: usize = 16;

impl Link {
    pub fn new(stream: TcpStream, peer: SocketAddr, dial: Option<usize>, phase: Phase) -> Link {
        Link {
            stream,
            peer,
            dial,
            phase,
            out: Vec::new(),
            written: 0,
            untold_bytes: 0,
            received: false,
            on_readable: false,
            on_telling: false,
            shut: false,
        }
    }

    /// Puts bytes behind those that wait.
    pub fn queue(&mut self, bytes: Vec<u8>) {
        if self.out.is_empty() {
            self.out = bytes;
        } else {
            self.out.extend_from_slice(&bytes);
        }
    }

    /// Bytes still to be written.
    pub fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    pub fn stands(&self) -> bool {
        matches!(self.phase, Phase::Standing { .. })
    }

    /// Hands the kernel what it takes.
    pub fn write_out(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(n) => {
                    self.written += n;
                    self.untold_bytes += n;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    // What is gone is let go of once it is most of it, so that a byte is moved once on average.
                    if self.written > self.out.len() / 2 {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    return Ok(());
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// One step towards the end; false when it is reached.
    pub fn wind_up(&mut self, buffer: &mut [u8]) -> bool {
        if self.write_out().is_err() {
            return false;
        }
        // Once: each time would be an event of its own to poll for.
        if self.out.is_empty() && !std::mem::replace(&mut self.shut, true) {
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        // A peer that never stops does not keep the others waiting.
        for _ in 0..READS_PER_STEP {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }
}
