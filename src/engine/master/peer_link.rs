use crate::base::{Key, Now};
use crate::limits::MASTER_LINE_BYTES_MAX;
use crate::proto::lines::{LineBuffer, MasterWord, NodeWord};

/// The link to the other master: it is asked now and then by what it deals domains.
pub(super) struct PeerLink {
    pub key: Key,
    lines: LineBuffer,
    /// An ask that is not answered was made then.
    asked_at: Option<Now>,
    ask_at: Now,
}

/// Between an answer and the next ask.
const ASK_US: u64 = 5_000_000;
/// A master that has not answered by then is gone.
const SILENT_US: u64 = 10_000_000;

impl PeerLink {
    pub fn new(key: Key, now: Now) -> PeerLink {
        PeerLink { key, lines: LineBuffer::of_lines(MASTER_LINE_BYTES_MAX), asked_at: None, ask_at: now }
    }

    /// What is to be sent by now; the error says that it has been silent for too long.
    pub fn ask(&mut self, terms: u64, now: Now) -> Result<Option<Vec<u8>>, String> {
        match self.asked_at {
            Some(at) if now.since_us(at) >= SILENT_US => {
                Err(format!("silent for {} s", SILENT_US / 1_000_000))
            }
            None if self.ask_at <= now => {
                let mut line = Vec::new();
                let fits = NodeWord::Peer { terms }.write(&mut line).is_ok();
                debug_assert!(fits, "it is a short line");
                self.asked_at = Some(now);
                Ok(Some(line))
            }
            _ => Ok(None),
        }
    }

    /// When it must be looked at again.
    pub fn due(&self) -> Now {
        self.asked_at.map_or(self.ask_at, |at| at.plus_us(SILENT_US))
    }

    /// Asks anew at once: what it would be told has changed.
    pub fn hurry(&mut self, now: Now) {
        self.ask_at = now;
    }

    /// Takes what came; the terms that it said last, if it said any.
    pub fn hear(&mut self, bytes: &[u8], now: Now) -> Result<Option<u64>, String> {
        self.lines.push(bytes);
        let mut heard = None;
        while let Some(line) = self.lines.next_line().map_err(|error| error.to_string())? {
            match MasterWord::parse(line).map_err(|error| error.to_string())? {
                MasterWord::Peer { terms } if self.asked_at.is_some() => {
                    heard = Some(terms);
                    (self.asked_at, self.ask_at) = (None, now.plus_us(ASK_US));
                }
                MasterWord::Error(text) => return Err(format!("it says: {text}")),
                _ => return Err("it says what a master does not say to another".to_string()),
            }
        }
        Ok(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Now {
        Now::from_us(s * 1_000_000)
    }

    #[test]
    fn a_peer_is_asked_again_after_its_answer_and_given_up_without_one() {
        let mut peer = PeerLink::new(Key::new(1, 1), at(1));
        assert_eq!(peer.ask(255, at(1)).unwrap().unwrap(), b"PEER 00000000000000ff\n");
        assert_eq!((peer.ask(255, at(9)), peer.due()), (Ok(None), at(11)));
        assert_eq!(peer.hear(b"PEER 0000000000000", at(10)), Ok(None));
        assert_eq!(peer.hear(b"0ff\r\n", at(10)), Ok(Some(255)));
        assert_eq!((peer.ask(255, at(14)), peer.due()), (Ok(None), at(15)));
        assert!(peer.ask(255, at(15)).unwrap().is_some());
        assert_eq!(peer.ask(255, at(25)), Err("silent for 10 s".to_string()));
    }

    #[test]
    fn what_is_no_answer_ends_the_link() {
        for line in [&b"PEER 00000000000000ff\n"[..], b"UPTO 1\n", b"1\n", b"PEER 1\n", &[b'x'; 10_000]] {
            assert!(
                PeerLink::new(Key::new(1, 1), at(1)).hear(line, at(1)).is_err(),
                "{}",
                line.escape_ascii()
            );
        }
        let said = PeerLink::new(Key::new(1, 1), at(1)).hear(b"ERROR away with you\n", at(1));
        assert_eq!(said, Err("it says: away with you".to_string()));
    }
}
