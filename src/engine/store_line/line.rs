use super::sink::{Parcel, cost};
use crate::base::Now;
use std::collections::VecDeque;
use thiserror::Error;

/// One shard's records that are not done with, and what the present connection has of them.
///
/// ```text
///   done ────── sent ────── handed ────── done + parcels.len()      sequence numbers, each <= the next
///     counted │  with the kernel │ with the links thread │ to be sent
/// ```
///
/// A record is done with when the store server has counted it; or, with a store server that does not count, when it is
/// with the kernel. When the connection breaks, all that is not done is to be sent again.
#[derive(Default)]
pub(super) struct StoreLine {
    parcels: VecDeque<Parcel>,
    done: u64,
    /// Memory that was let go since it was last asked.
    freed: u64,
    standing: Option<Standing>,
}

/// A connection that stands.
struct Standing {
    /// `done` when it stood up: a count of n says that record `base + n` is safe.
    base: u64,
    /// The last record that was handed on whole, and the bytes of the next that were.
    handed: u64,
    handed_part: usize,
    /// The last record that is with the kernel whole, and the bytes of the next that are. Below zero when a record was
    /// counted before we were told that the kernel had it.
    sent: u64,
    sent_part: i64,
    /// Bytes handed on that are not known to be with the kernel.
    under_way: usize,
    first_sent: Option<Now>,
    counting: Counting,
    /// The first bytes of a count.
    count: [u8; 8],
    count_len: usize,
}

/// Whether the store server counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// It did not yet, and there is time.
    Unknown,
    Counts,
    /// It does not: what is with the kernel is done with.
    Silent,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("it counts {count} records where {sent} were sent")]
pub(super) struct BadCount {
    count: u64,
    sent: u64,
}

/// A store server that has not counted this long after it got its first record does not count.
pub(super) const SILENCE_US: u64 = 2_000_000;
/// Bytes handed on at a time, and at most before the kernel took them.
const PIECE_BYTES: usize = 256 * 1_024;
const UNDER_WAY_BYTES_MAX: usize = 4 << 20;

const _: () = assert!(UNDER_WAY_BYTES_MAX + PIECE_BYTES <= crate::limits::LINK_OUT_BYTES_MAX);

impl StoreLine {
    pub fn put(&mut self, parcel: Parcel) {
        self.parcels.push_back(parcel);
    }

    /// A connection stands: everything that is not done goes over it, from the start.
    pub fn up(&mut self) {
        self.standing = Some(Standing {
            base: self.done,
            handed: self.done,
            handed_part: 0,
            sent: self.done,
            sent_part: 0,
            under_way: 0,
            first_sent: None,
            counting: Counting::Unknown,
            count: [0; 8],
            count_len: 0,
        });
    }

    pub fn down(&mut self) {
        self.standing = None;
    }

    pub fn stands(&self) -> bool {
        self.standing.is_some()
    }

    /// Records that are not done with.
    pub fn uncounted(&self) -> usize {
        self.parcels.len()
    }

    /// Bytes of the first record that is not done with.
    pub fn first_bytes(&self) -> usize {
        self.parcels.front().map_or(0, Vec::len)
    }

    /// Sequence number of the last record that is done with.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Memory let go since the last time.
    pub fn take_freed(&mut self) -> u64 {
        std::mem::take(&mut self.freed)
    }

    /// The next bytes to be sent, unless enough are on their way.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let standing = self.standing.as_mut()?;
        if standing.under_way >= UNDER_WAY_BYTES_MAX {
            return None;
        }
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES {
            let Some(parcel) = self.parcels.get((standing.handed - self.done) as usize) else {
                break;
            };
            let rest = &parcel[standing.handed_part..];
            let part = &rest[..rest.len().min(PIECE_BYTES - piece.len())];
            piece.extend_from_slice(part);
            standing.handed_part += part.len();
            if standing.handed_part == parcel.len() {
                standing.handed += 1;
                standing.handed_part = 0;
            }
        }
        standing.under_way += piece.len();
        (!piece.is_empty()).then_some(piece)
    }

    /// So many bytes more are with the kernel.
    pub fn sent(&mut self, bytes: usize, now: Now) {
        let Some(standing) = self.standing.as_mut() else {
            return;
        };
        standing.under_way = standing.under_way.saturating_sub(bytes);
        standing.sent_part += bytes as i64;
        while let Some(parcel) = self.parcels.get((standing.sent - self.done) as usize)
            && standing.sent_part >= parcel.len() as i64
        {
            standing.sent_part -= parcel.len() as i64;
            standing.sent += 1;
            standing.first_sent.get_or_insert(now);
        }
        if standing.counting == Counting::Silent {
            let sent = standing.sent;
            self.done_to(sent);
        }
    }

    /// Counts came in. True if they are the first of this connection.
    pub fn counts(&mut self, bytes: &[u8]) -> Result<bool, BadCount> {
        let mut is_first = false;
        for &byte in bytes {
            let Some(standing) = self.standing.as_mut() else {
                return Ok(false);
            };
            standing.count[standing.count_len] = byte;
            standing.count_len += 1;
            if standing.count_len < standing.count.len() {
                continue;
            }
            standing.count_len = 0;
            let count = u64::from_be_bytes(standing.count);
            let sent = standing.handed - standing.base;
            if count > sent {
                return Err(BadCount { count, sent });
            }
            is_first |= standing.counting != Counting::Counts;
            standing.counting = Counting::Counts;
            let to = standing.base + count;
            self.done_to(to);
        }
        Ok(is_first)
    }

    /// Looks whether the store server has been silent for too long. True if it is found to be just now.
    pub fn judge(&mut self, now: Now) -> bool {
        if self.silent_at().is_none_or(|at| now < at) {
            return false;
        }
        let Some(standing) = self.standing.as_mut() else {
            return false;
        };
        standing.counting = Counting::Silent;
        let sent = standing.sent;
        self.done_to(sent);
        true
    }

    /// When it is to be judged.
    pub fn silent_at(&self) -> Option<Now> {
        let standing = self.standing.as_ref().filter(|standing| standing.counting == Counting::Unknown)?;
        Some(standing.first_sent?.plus_us(SILENCE_US))
    }

    /// Lets go of every record up to this one.
    fn done_to(&mut self, sequence: u64) {
        while self.done < sequence
            && let Some(parcel) = self.parcels.pop_front()
        {
            self.done += 1;
            self.freed += cost(parcel.len());
            if let Some(standing) = self.standing.as_mut().filter(|standing| standing.sent < self.done) {
                standing.sent = self.done;
                standing.sent_part -= parcel.len() as i64;
            }
        }
        debug_assert!(self.invariants());
    }

    fn invariants(&self) -> bool {
        self.standing.as_ref().is_none_or(|standing| {
            standing.base <= self.done
                && self.done <= standing.sent
                && standing.sent <= standing.handed
                && standing.handed <= self.done + self.parcels.len() as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Now = Now::ZERO;

    fn line(parcels: &[&str]) -> StoreLine {
        let mut line = StoreLine::default();
        parcels.iter().for_each(|parcel| line.put(parcel.as_bytes().to_vec()));
        line
    }

    fn pieces(line: &mut StoreLine) -> String {
        let mut all = Vec::new();
        while let Some(piece) = line.piece() {
            all.extend(piece);
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn what_is_not_counted_comes_again_in_order() {
        let mut line = line(&["one", "two", "three"]);
        assert_eq!(line.piece(), None, "nothing stands");
        line.up();
        assert_eq!(pieces(&mut line), "onetwothree");
        line.sent(8, START);
        assert_eq!(line.done(), 0, "with the kernel is not on disk");
        assert_eq!(line.counts(&1u64.to_be_bytes()), Ok(true));
        assert_eq!((line.done(), line.uncounted(), line.take_freed()), (1, 2, cost(3)));
        line.down();
        line.put(b"four".to_vec());
        line.up();
        assert_eq!(pieces(&mut line), "twothreefour");
        line.sent(12, START);
        // Counts begin anew with each connection.
        assert_eq!(line.counts(&2u64.to_be_bytes()), Ok(true));
        assert_eq!(line.done(), 3);
        assert_eq!(line.counts(&[3u64.to_be_bytes(), 3u64.to_be_bytes()].concat()), Ok(false));
        assert_eq!((line.done(), line.uncounted()), (4, 0));
    }

    #[test]
    fn counts_in_pieces_and_counts_that_lie() {
        let mut line = line(&["one", "two"]);
        line.up();
        pieces(&mut line);
        for byte in 1u64.to_be_bytes() {
            assert_eq!(line.done(), 0);
            line.counts(&[byte]).unwrap();
        }
        assert_eq!(line.done(), 1, "counted before we heard that it was sent");
        line.sent(6, START);
        assert_eq!(line.counts(&0u64.to_be_bytes()), Ok(false), "a lower count takes nothing back");
        assert_eq!(line.done(), 1);
        assert_eq!(line.counts(&3u64.to_be_bytes()), Err(BadCount { count: 3, sent: 2 }));
        assert_eq!((line.done(), line.uncounted()), (1, 1));
        // Half a count of the old connection is no part of the new one's.
        line.counts(&[0, 0, 0]).unwrap();
        line.down();
        line.up();
        pieces(&mut line);
        line.counts(&1u64.to_be_bytes()).unwrap();
        assert_eq!(line.done(), 2);
    }

    #[test]
    fn a_store_server_that_never_counts_is_taken_as_such_after_two_seconds() {
        let mut line = line(&["one", "two"]);
        line.up();
        pieces(&mut line);
        assert!(!line.judge(START.plus_us(99 * SILENCE_US)), "no record is whole with the kernel");
        line.sent(2, START);
        assert_eq!(line.silent_at(), None);
        line.sent(1, START);
        assert!(!line.judge(START.plus_us(SILENCE_US - 1)));
        assert!(line.judge(START.plus_us(SILENCE_US)));
        assert_eq!((line.done(), line.uncounted()), (1, 1), "the one that was sent");
        assert!(!line.judge(START.plus_us(9 * SILENCE_US)), "said once");
        line.sent(3, START);
        assert_eq!(line.done(), 2, "done follows the sending");
        // And then it counts after all.
        line.put(b"three".to_vec());
        pieces(&mut line);
        assert_eq!(line.counts(&2u64.to_be_bytes()), Ok(true));
        line.sent(5, START);
        assert_eq!(line.done(), 2, "back to counting");
        line.counts(&3u64.to_be_bytes()).unwrap();
        assert_eq!(line.done(), 3);
    }

    #[test]
    fn no_more_is_under_way_than_the_bound() {
        let mut line = StoreLine::default();
        let document = vec![b'd'; 3 * UNDER_WAY_BYTES_MAX];
        line.put(document.clone());
        line.up();
        let mut sent = 0;
        while line.done() == 0 {
            let mut under_way = 0;
            while let Some(piece) = line.piece() {
                assert!(piece.len() <= PIECE_BYTES);
                under_way += piece.len();
            }
            assert!((1..=UNDER_WAY_BYTES_MAX).contains(&under_way), "{under_way}");
            sent += under_way;
            line.sent(under_way, START);
            line.judge(START.plus_us(SILENCE_US));
        }
        assert_eq!(sent, document.len());
    }
}
