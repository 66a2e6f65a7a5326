use crate::base::{NetError, Now};
use crate::proto::record::BadRecord;
use crate::store_server::{Fed, RecordIntake, ShardStore, Stored};
use std::fmt;
use std::net::SocketAddr;

/// One spider's connection: bytes in, counts out, how it ends.
pub(super) struct Conn {
    pub peer: SocketAddr,
    intake: RecordIntake,
    counts: Counts,
    pub phase: Phase,
    input: Input,
    /// Since when it is owed a count and got none.
    owed_since: Option<Now>,
    /// What its worker's counters know of already.
    noted: Stored,
}

/// The life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Records come.
    Open,
    /// A record waits for a segment; the connection is paused meanwhile.
    Stuck,
    /// No more is stored. It is let go when the last count is sent, or at that time.
    Counting { by: Now },
    /// All is said. What the peer still sends is thrown away until it hangs up: a socket closed with bytes unread would
    /// take back the counts that the peer has not read yet.
    Parting { by: Now },
    /// The driver is to close it.
    Over,
    /// The driver closes it.
    Closing,
}

/// What the peer's side of the stream has come to.
#[derive(Clone, Copy)]
enum Input {
    Open,
    Ended,
    Failed(NetError),
}

/// Why no more comes over a connection.
#[derive(Debug)]
pub(super) enum End {
    Closed,
    Cut,
    Bad(BadRecord),
    TooMuch { held: usize },
    Broken(NetError),
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
const COUNT_US: u64 = 10_000_000;
const PART_US: u64 = 1_000_000;
/// A peer that is owed a count for this long is told the last one again, and one that was never told any is told 0, so
/// that it does not take us for a store server that does not count.
const REPEAT_US: u64 = 1_000_000;
/// After counts could not be sent, what the peer sent before it left has this long to arrive.
const LEFTOVER_US: u64 = 1_000_000;

impl Conn {
    pub fn new(peer: SocketAddr, doc_bytes_max: u64) -> Conn {
        Conn {
            peer,
            intake: RecordIntake::new(doc_bytes_max),
            counts: Counts::default(),
            phase: Phase::Open,
            input: Input::Open,
            owed_since: None,
            noted: Stored::default(),
        }
    }

    /// Stores what waits, with what came. Nothing is stored once the connection is on its way out.
    pub fn feed(&mut self, bytes: &[u8], store: &mut ShardStore, unix_ms: u64) -> Fed {
        match self.phase {
            Phase::Open | Phase::Stuck => self.intake.feed(bytes, store, unix_ms),
            _ => Fed::All,
        }
    }

    /// The peer will send no more.
    pub fn ended(&mut self) {
        self.input = Input::Ended;
        if let Phase::Parting { .. } = self.phase {
            self.phase = Phase::Over;
        }
    }

    /// Sending or receiving failed. A peer that does not listen may have sent much before it left: that is read to its end.
    pub fn failed(&mut self, error: NetError, now: Now) {
        if self.counts.under_way && matches!(self.phase, Phase::Open | Phase::Stuck) {
            self.counts = Counts { given_up: Some(now), ..Counts::default() };
            return;
        }
        self.input = Input::Failed(error);
        if !matches!(self.phase, Phase::Open | Phase::Stuck | Phase::Closing) {
            self.phase = Phase::Over;
        }
    }

    /// Why no more comes, once everything that came is stored.
    pub fn end_of_input(&self, now: Now) -> Option<End> {
        if self.phase != Phase::Open {
            return None;
        }
        let is_whole = self.intake.is_between_records();
        match self.input {
            Input::Ended | Input::Failed(_) if is_whole => Some(End::Closed),
            Input::Ended => Some(End::Cut),
            Input::Failed(error) => Some(End::Broken(error)),
            Input::Open => {
                let is_late = self.counts.given_up.is_some_and(|at| now.since_us(at) >= LEFTOVER_US);
                is_late.then_some(if is_whole { End::Closed } else { End::Cut })
            }
        }
    }

    /// No more is stored. The last counts follow, if there is a peer to be told.
    pub fn end(&mut self, now: Now) {
        self.intake.close();
        let is_heard = !matches!(self.input, Input::Failed(_)) && self.counts.given_up.is_none();
        self.phase = if is_heard { Phase::Counting { by: now.plus_us(COUNT_US) } } else { Phase::Over };
    }

    /// The node stops: what is stored is counted, and then it ends.
    pub fn drain(&mut self, now: Now) {
        if matches!(self.phase, Phase::Open | Phase::Stuck) {
            self.phase = Phase::Counting { by: now.plus_us(COUNT_US) };
        }
    }

    /// Notes how many of the peer's records the shard's durable point has reached.
    pub fn count(&mut self, durable: u64, now: Now) {
        let counted = self.intake.count(durable);
        self.counts.next = counted.or(self.counts.next);
        let is_owed = self.phase == Phase::Stuck || !self.intake.is_counted() || !self.counts.begun;
        if !is_owed {
            self.owed_since = None;
        } else if counted.is_some() {
            self.owed_since = Some(now);
        } else if now.since_us(*self.owed_since.get_or_insert(now)) >= REPEAT_US {
            self.counts.next = Some(self.intake.told());
            self.owed_since = Some(now);
        }
    }

    /// The count to be sent, if the last one is with the kernel.
    pub fn next_count(&mut self) -> Option<Vec<u8>> {
        let may_send = matches!(self.phase, Phase::Open | Phase::Stuck | Phase::Counting { .. });
        if may_send { self.counts.take() } else { None }
    }

    pub fn count_sent(&mut self) {
        self.counts.under_way = false;
    }

    /// One step towards the end of a connection that has no more to store. True if our side of the stream is to end.
    pub fn step(&mut self, now: Now) -> bool {
        match self.phase {
            Phase::Counting { by } | Phase::Parting { by } if by <= now => self.phase = Phase::Over,
            Phase::Counting { .. } if self.intake.is_counted() && self.counts.is_empty() => {
                let peer_may_send = matches!(self.input, Input::Open);
                self.phase =
                    if peer_may_send { Phase::Parting { by: now.plus_us(PART_US) } } else { Phase::Over };
                return peer_may_send;
            }
            _ => {}
        }
        false
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

/// Counts on their way out, one at a time. Only the latest matters: one that waits is replaced by the next, so that a peer
/// that does not read costs sixteen bytes.
#[derive(Default)]
struct Counts {
    /// The peer was told one.
    begun: bool,
    next: Option<u64>,
    under_way: bool,
    /// Since when the peer takes none.
    given_up: Option<Now>,
}

impl Counts {
    fn take(&mut self) -> Option<Vec<u8>> {
        if self.under_way || self.given_up.is_some() {
            return None;
        }
        let count = self.next.take()?;
        (self.begun, self.under_way) = (true, true);
        Some(count.to_be_bytes().to_vec())
    }

    fn is_empty(&self) -> bool {
        !self.under_way && (self.next.is_none() || self.given_up.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_was_begun_is_ended_and_the_latest_follows() {
        let mut counts = Counts::default();
        assert!(counts.is_empty());
        let mut sent = Vec::new();
        for count in 1..=5 {
            counts.next = Some(count);
            sent.extend(counts.take());
        }
        assert!(!counts.is_empty());
        counts.under_way = false;
        sent.extend(counts.take());
        counts.under_way = false;
        assert!(counts.is_empty());
        assert_eq!(sent, [1u64.to_be_bytes(), 5u64.to_be_bytes()], "those between are left out");
    }
}
