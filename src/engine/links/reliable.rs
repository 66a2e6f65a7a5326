use std::collections::VecDeque;
use thiserror::Error;

/// Messages for one peer, in order. Each is kept until the peer has counted it; after a connection has broken, all that
/// are not counted are sent again over the next one.
///
/// ```text
///   done ────── sent ────── handed ────── done + messages.len()      sequence numbers, each <= the next
///     counted │  with the kernel │ under way         │ to be sent
/// ```
///
/// It does no I/O: its owner connects, hands on what [`Reliable::piece`] gives, and reports what was sent and counted.
pub(in crate::engine) struct Reliable {
    messages: VecDeque<Vec<u8>>,
    /// Sequence number of the last message that is done with; the first message has number 1.
    done: u64,
    /// What all messages ever put, and all that are done with, cost in memory. `done_bytes <= put_bytes`
    put_bytes: u64,
    done_bytes: u64,
    bytes_max: u64,
    connection: Option<Connection>,
}

/// What the present connection has of the messages.
struct Connection {
    /// `done` when it began: a count of n says that message `base + n` is safe.
    base: u64,
    /// The last message that is with the kernel whole.
    sent: u64,
    /// The last message that was handed on whole, and the bytes of the next that were.
    handed: u64,
    handed_part: usize,
    /// Bytes of the last piece that are not known to be with the kernel.
    under_way: usize,
}

/// The peer has counted what it never got.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("it counts {count} records where {sent} were sent")]
pub(in crate::engine) struct BadCount {
    pub count: u64,
    pub sent: u64,
}

/// Bytes handed on at a time.
pub(in crate::engine) const PIECE_BYTES: usize = 256 * 1_024;

impl Reliable {
    pub fn new(bytes_max: u64) -> Reliable {
        Reliable {
            messages: VecDeque::new(),
            done: 0,
            put_bytes: 0,
            done_bytes: 0,
            bytes_max,
            connection: None,
        }
    }

    /// What a message costs in memory, its place in the queue included.
    pub fn cost(message_bytes: usize) -> u64 {
        message_bytes as u64 + 64
    }

    /// Whether another message is taken: the bound is not reached, or there is none.
    pub fn has_room(&self) -> bool {
        self.messages.is_empty() || self.held_bytes() < self.bytes_max
    }

    /// Takes a message and returns its sequence number.
    pub fn put(&mut self, message: Vec<u8>) -> u64 {
        debug_assert!(self.has_room());
        self.put_bytes += Reliable::cost(message.len());
        self.messages.push_back(message);
        self.done + self.messages.len() as u64
    }

    /// Messages that are not done with.
    pub fn waiting(&self) -> usize {
        self.messages.len()
    }

    pub fn held_bytes(&self) -> u64 {
        self.put_bytes - self.done_bytes
    }

    /// The first message that is not done with.
    pub fn first(&self) -> Option<&[u8]> {
        self.messages.front().map(Vec::as_slice)
    }

    /// Sequence number of the last message that is done with, and what all up to it cost.
    pub fn done(&self) -> (u64, u64) {
        (self.done, self.done_bytes)
    }

    /// A new connection stands: everything that is not done goes over it, from the start.
    pub fn resend(&mut self) {
        let done = self.done;
        self.connection =
            Some(Connection { base: done, sent: done, handed: done, handed_part: 0, under_way: 0 });
    }

    /// The connection is of no more use.
    pub fn disconnected(&mut self) {
        self.connection = None;
    }

    /// The next bytes to be sent, put into `buffer`. `None` while the last piece is under way.
    pub fn piece(&mut self, mut buffer: Vec<u8>) -> Option<Vec<u8>> {
        let connection = self.connection.as_mut().filter(|connection| connection.under_way == 0)?;
        buffer.clear();
        while let Some(message) = self.messages.get((connection.handed - self.done) as usize)
            && buffer.len() < PIECE_BYTES
        {
            let rest = &message[connection.handed_part..];
            let part = &rest[..rest.len().min(PIECE_BYTES - buffer.len())];
            buffer.extend_from_slice(part);
            connection.handed_part += part.len();
            if connection.handed_part == message.len() {
                connection.handed += 1;
                connection.handed_part = 0;
            }
        }
        connection.under_way = buffer.len();
        (!buffer.is_empty()).then_some(buffer)
    }

    /// This many more bytes are with the kernel. Returns how many messages of this connection are, whole.
    pub fn sent(&mut self, bytes: usize) -> u64 {
        let Some(connection) = self.connection.as_mut() else {
            return 0;
        };
        connection.under_way -= bytes;
        if connection.under_way == 0 {
            connection.sent = connection.handed;
        }
        debug_assert!(self.invariants());
        self.connection.as_ref().map_or(0, |connection| connection.sent - connection.base)
    }

    /// The peer has counted the first `count` messages of this connection; they are let go.
    pub fn counted(&mut self, count: u64) -> Result<(), BadCount> {
        let Some(connection) = self.connection.as_mut() else {
            return Ok(());
        };
        let sent = connection.handed - connection.base;
        if count > sent {
            return Err(BadCount { count, sent });
        }
        let sequence = connection.base + count;
        // A count may overtake the news that the kernel has the message.
        connection.sent = connection.sent.max(sequence);
        self.done_to(sequence);
        Ok(())
    }

    /// For a peer that does not count: what is with the kernel is done with.
    pub fn sent_is_done(&mut self) {
        if let Some(sent) = self.connection.as_ref().map(|connection| connection.sent) {
            self.done_to(sent);
        }
    }

    fn done_to(&mut self, sequence: u64) {
        while self.done < sequence
            && let Some(message) = self.messages.pop_front()
        {
            self.done += 1;
            self.done_bytes += Reliable::cost(message.len());
        }
        debug_assert!(self.invariants());
    }

    fn invariants(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| {
            connection.base <= self.done
                && self.done <= connection.sent
                && connection.sent <= connection.handed
                && connection.handed <= self.done + self.messages.len() as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    fn reliable(messages: &[&str]) -> Reliable {
        let mut reliable = Reliable::new(1 << 20);
        for message in messages {
            reliable.put(message.as_bytes().to_vec());
        }
        reliable
    }

    fn send_all(reliable: &mut Reliable) -> String {
        let mut all = Vec::new();
        while let Some(piece) = reliable.piece(Vec::new()) {
            reliable.sent(piece.len());
            all.extend(piece);
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn what_is_not_counted_comes_again_in_order() {
        let mut reliable = reliable(&["one", "two", "three"]);
        assert_eq!(reliable.piece(Vec::new()), None, "nothing stands");
        reliable.resend();
        assert_eq!(send_all(&mut reliable), "onetwothree");
        assert_eq!(reliable.done().0, 0, "with the kernel is not counted");
        reliable.counted(1).unwrap();
        assert_eq!((reliable.done(), reliable.waiting()), ((1, Reliable::cost(3)), 2));
        reliable.disconnected();
        assert_eq!(reliable.put(b"four".to_vec()), 4);
        reliable.resend();
        assert_eq!(send_all(&mut reliable), "twothreefour");
        // Counts begin anew with each connection.
        reliable.counted(2).unwrap();
        assert_eq!(reliable.done().0, 3);
        reliable.counted(3).unwrap();
        assert_eq!((reliable.done().0, reliable.waiting(), reliable.held_bytes()), (4, 0, 0));
    }

    #[test]
    fn counts_that_lie_and_counts_that_overtake() {
        let mut reliable = reliable(&["one", "two"]);
        reliable.resend();
        let piece = reliable.piece(Vec::new()).unwrap();
        assert_eq!(reliable.piece(Vec::new()), None, "one piece at a time");
        reliable.counted(1).unwrap();
        assert_eq!(reliable.done().0, 1, "counted before it was known to be sent");
        assert_eq!(reliable.sent(piece.len() - 1), 1);
        assert_eq!(reliable.sent(1), 2);
        reliable.counted(0).unwrap();
        assert_eq!(reliable.done().0, 1, "a lower count takes nothing back");
        assert_eq!(reliable.counted(3), Err(BadCount { count: 3, sent: 2 }));
        assert_eq!((reliable.done().0, reliable.waiting()), (1, 1));
    }

    #[test]
    fn a_message_larger_than_a_piece_goes_in_pieces() {
        let message: Vec<u8> = (0..3 * PIECE_BYTES + 7).map(|n| n as u8).collect();
        let mut reliable = Reliable::new(1);
        reliable.put(message.clone());
        assert!(!reliable.has_room(), "one is taken whatever its size, and no other beside it");
        reliable.resend();
        let (mut got, mut sent) = (Vec::new(), 0);
        while let Some(piece) = reliable.piece(Vec::new()) {
            assert!(piece.len() <= PIECE_BYTES && sent == 0);
            sent = reliable.sent(piece.len());
            got.extend(piece);
        }
        assert!(got == message && sent == 1);
        reliable.sent_is_done();
        assert!(reliable.has_room() && reliable.done().0 == 1);
    }

    /// A peer that reads, counts and breaks off as it likes has seen every message, in order; what it saw twice it had not
    /// counted, or its count was lost on the way.
    #[test]
    fn whatever_the_peer_does_every_message_arrives() {
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut reliable = Reliable::new(2_000);
            // Message n is n as four bytes, and up to 40 more.
            let message =
                |n: u64| [&(n as u32).to_be_bytes()[..], &vec![n as u8; n as usize * 7 % 41]].concat();
            let (mut put, mut under_way, mut stream) = (0, None::<Vec<u8>>, Vec::new());
            // What the peer has ever got, and of this connection: the first message and the number it has whole.
            let (mut got, mut first, mut whole) = (0, 0, 0);
            for step in 0..400 {
                let is_last = step >= 390;
                match rng.below(if is_last { 4 } else { 7 }) {
                    0 if reliable.connection.is_none() => {
                        reliable.resend();
                        first = reliable.done().0;
                        (whole, under_way) = (0, None);
                        stream.clear();
                    }
                    1 => under_way = under_way.or_else(|| reliable.piece(Vec::new())),
                    2 => {
                        if let Some(piece) = under_way.take().filter(|_| reliable.connection.is_some()) {
                            stream.extend_from_slice(&piece);
                            reliable.sent(piece.len());
                        }
                        while stream.starts_with(&message(first + whole + 1)) {
                            stream.drain(..message(first + whole + 1).len());
                            whole += 1;
                        }
                        assert!(stream.is_empty() || stream.len() < 60, "seed {seed}: out of order");
                        assert!(first <= got, "seed {seed}: a message was left out");
                        got = got.max(first + whole);
                    }
                    3 => {
                        let count = rng.below(whole + 1);
                        assert_eq!(reliable.counted(count), Ok(()), "seed {seed}");
                    }
                    4 | 5 if reliable.has_room() => {
                        put += 1;
                        assert_eq!(reliable.put(message(put)), put);
                    }
                    6 if rng.chance(100) => reliable.disconnected(),
                    _ => {}
                }
                let held: u64 = reliable.messages.iter().map(|message| Reliable::cost(message.len())).sum();
                assert!(reliable.invariants() && reliable.held_bytes() == held, "seed {seed}");
                assert!(reliable.done().0 <= got && got <= put, "seed {seed}: done before it arrived");
                assert_eq!(reliable.done().0 + reliable.waiting() as u64, put, "seed {seed}: one was lost");
            }
        }
    }
}
