use crate::proto::record::BadRecord;
use crate::store_server::{Fed, Intake, ShardStore, Stored};
use mio::net::TcpStream;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// One spider's connection.
pub(super) struct Conn {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    intake: Intake,
    counts: CountWriter,
    pub phase: Phase,
    /// It is on its worker's list of connections that may have something to read.
    pub on_readable: bool,
    /// Since when it is owed a count and got none.
    owed_since: Option<Instant>,
    /// What its worker's counters know of already.
    noted: Stored,
}

/// The life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Records come.
    Open,
    /// A record waits for a segment; nothing is read meanwhile.
    Stuck,
    /// No more is read. It is let go when the last count is written, or at that time.
    Counting {
        hang_up: HangUp,
        by: Instant,
    },
    /// All is said. What the peer still sends is thrown away until it hangs up: a socket closed with bytes unread would
    /// take back the counts that the peer has not read yet.
    Shutdown {
        by: Instant,
    },
    Gone,
}

/// Who ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HangUp {
    /// The peer has.
    Theirs,
    /// We do, while the peer may still send.
    Ours,
}

/// What a look at a connection came to.
#[derive(Debug)]
pub(super) enum Seen {
    /// There may be more to read at once.
    More,
    /// Nothing until the kernel says so.
    Nothing,
    /// No segment.
    Stuck,
    Ended(End),
}

/// Why no more comes over a connection.
#[derive(Debug)]
pub(super) enum End {
    Closed,
    Cut,
    Bad(BadRecord),
    TooMuch { held: usize },
    Broken(io::Error),
}

impl End {
    /// The peer did something wrong.
    pub fn is_bad(&self) -> bool {
        !matches!(self, End::Closed)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => f.write_str("closed"),
            End::Cut => f.write_str("the stream ends inside a record"),
            End::Bad(bad) => bad.fmt(f),
            End::TooMuch { held } => write!(f, "{held} bytes of unfinished records are held already"),
            End::Broken(cause) => write!(f, "the stream broke inside a record: {cause}"),
        }
    }
}

/// Time for the last counts, and for the peer to hang up after them.
const COUNT_TIME: Duration = Duration::from_secs(10);
const PART_TIME: Duration = Duration::from_secs(1);
/// A peer that is owed a count for so long is told the last one again, so that it does not take us for one that does
/// not count.
const REPEAT_TIME: Duration = Duration::from_secs(1);
/// Buffers thrown away in one step.
const DISCARDS_PER_STEP: usize = 16;

impl Conn {
    pub fn new(stream: TcpStream, peer: SocketAddr, doc_bytes_max: u64) -> Conn {
        Conn {
            stream,
            peer,
            intake: Intake::new(doc_bytes_max),
            counts: CountWriter::default(),
            phase: Phase::Open,
            on_readable: false,
            owed_since: None,
            noted: Stored::default(),
        }
    }

    /// Reads one buffer and stores the whole records.
    pub fn read(&mut self, buffer: &mut [u8], store: &mut ShardStore, unix_ms: u64) -> Seen {
        match self.stream.read(buffer) {
            Ok(0) if self.intake.is_between_records() => Seen::Ended(End::Closed),
            Ok(0) => Seen::Ended(End::Cut),
            Ok(n) => self.feed(&buffer[..n], store, unix_ms),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Seen::Nothing,
            Err(e) if e.kind() == ErrorKind::Interrupted => Seen::More,
            Err(_) if self.intake.is_between_records() => Seen::Ended(End::Closed),
            Err(e) => Seen::Ended(End::Broken(e)),
        }
    }

    /// Stores what waits, with what came.
    pub fn feed(&mut self, bytes: &[u8], store: &mut ShardStore, unix_ms: u64) -> Seen {
        match self.intake.feed(bytes, store, unix_ms) {
            Fed::All => Seen::More,
            Fed::NoSegment => Seen::Stuck,
            Fed::Bad(bad) => Seen::Ended(End::Bad(bad)),
        }
    }

    /// No more is read.
    pub fn end(&mut self, end: &End, now: Instant) {
        self.intake.close();
        let hang_up = match end {
            // Nobody is there to be told.
            End::Broken(_) => {
                self.phase = Phase::Gone;
                return;
            }
            End::Closed | End::Cut => HangUp::Theirs,
            End::Bad(_) | End::TooMuch { .. } => HangUp::Ours,
        };
        self.phase = Phase::Counting { hang_up, by: now + COUNT_TIME };
    }

    /// The node stops: what is stored is counted, and then it ends.
    pub fn wind_up(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Open | Phase::Stuck) {
            self.phase = Phase::Counting { hang_up: HangUp::Ours, by: now + COUNT_TIME };
        }
    }

    /// Tells the peer how many of its records the shard's durable point has reached.
    pub fn count(&mut self, durable: u64, now: Instant) {
        let owes = self.phase == Phase::Stuck || !self.intake.is_counted();
        if let Some(count) = self.intake.count(durable) {
            self.counts.set(count);
            self.owed_since = (self.phase == Phase::Stuck || !self.intake.is_counted()).then_some(now);
        } else if !owes {
            self.owed_since = None;
        } else if now.duration_since(*self.owed_since.get_or_insert(now)) >= REPEAT_TIME {
            self.counts.set(self.intake.told());
            self.owed_since = Some(now);
        }
        self.write();
    }

    /// Writes what is to be written, as far as the kernel takes it.
    pub fn write(&mut self) {
        if self.counts.write(&mut self.stream).is_err() {
            // Whoever does not listen may have said much before it left: that is read to its end.
            self.counts.give_up();
            if !matches!(self.phase, Phase::Open | Phase::Stuck) {
                self.phase = Phase::Gone;
            }
        }
    }

    /// One step towards the end of a connection that has no more to store.
    pub fn step(&mut self, buffer: &mut [u8], now: Instant) {
        match self.phase {
            Phase::Open | Phase::Stuck | Phase::Gone => {}
            Phase::Counting { by, .. } if by <= now => self.phase = Phase::Gone,
            Phase::Counting { hang_up, .. } => {
                if self.intake.is_counted() && self.counts.is_empty() {
                    let _ = self.stream.shutdown(Shutdown::Write);
                    self.phase = match hang_up {
                        HangUp::Theirs => Phase::Gone,
                        HangUp::Ours => Phase::Shutdown { by: now + PART_TIME },
                    };
                }
            }
            Phase::Shutdown { by } if by <= now => self.phase = Phase::Gone,
            Phase::Shutdown { .. } => {
                for _ in 0..DISCARDS_PER_STEP {
                    match self.stream.read(buffer) {
                        Ok(1..) => {}
                        Err(e) if e.kind() == ErrorKind::Interrupted => {}
                        Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                        Ok(0) | Err(_) => {
                            self.phase = Phase::Gone;
                            return;
                        }
                    }
                }
            }
        }
    }

    /// It waits for something that nobody rings for.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Counting { .. } | Phase::Shutdown { .. })
    }

    /// Bytes that came and are not stored.
    pub fn held(&self) -> usize {
        self.intake.held()
    }

    pub fn records(&self) -> u64 {
        self.intake.stored().records
    }

    /// What was stored since it was last asked.
    pub fn stored_since(&mut self) -> Stored {
        let (now, before) = (self.intake.stored(), self.noted);
        self.noted = now;
        Stored {
            records: now.records - before.records,
            wire_bytes: now.wire_bytes - before.wire_bytes,
            segment_bytes: now.segment_bytes - before.segment_bytes,
        }
    }
}

/// Counts on their way out. Only the latest matters: one that was not begun is replaced by the next, so that a peer that
/// does not read costs sixteen bytes.
struct CountWriter {
    /// `bytes[written..]` still to go.
    bytes: [u8; 8],
    written: usize,
    next: Option<u64>,
    /// Nobody takes them.
    given_up: bool,
}

impl Default for CountWriter {
    fn default() -> CountWriter {
        CountWriter { bytes: [0; 8], written: 8, next: None, given_up: false }
    }
}

impl CountWriter {
    fn set(&mut self, count: u64) {
        self.next = Some(count).filter(|_| !self.given_up);
    }

    fn give_up(&mut self) {
        *self = CountWriter { given_up: true, ..CountWriter::default() };
    }

    fn is_empty(&self) -> bool {
        self.written == self.bytes.len() && self.next.is_none()
    }

    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        loop {
            if self.written == self.bytes.len() {
                match self.next.take() {
                    Some(count) => (self.bytes, self.written) = (count.to_be_bytes(), 0),
                    None => return Ok(()),
                }
            }
            match out.write(&self.bytes[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => self.written += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes at a time, then none for once.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.room -= n;
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_count_that_was_begun_is_ended_and_the_latest_follows() {
        let mut counts = CountWriter::default();
        let mut peer = Narrow { taken: Vec::new(), room: 3 };
        assert!(counts.is_empty());
        for count in 1..=5 {
            counts.set(count);
            counts.write(&mut peer).unwrap();
        }
        assert!(!counts.is_empty() && peer.taken.len() == 3);
        peer.room = 100;
        counts.write(&mut peer).unwrap();
        assert!(counts.is_empty());
        assert_eq!(
            peer.taken,
            [1u64.to_be_bytes(), 5u64.to_be_bytes()].concat(),
            "those between are left out"
        );
    }
}
