use crate::limits::ADDRESSES_PER_HOST_MAX;
use std::net::IpAddr;

/// The addresses of one host, and how far it has come with them. The host stands at one of them at a time, and what
/// it sends counts there.
///
/// ```text
///   round:   stands at ──► no connection ──► the next one not tried ──► … ──► those that were cut short, once more
///               ▲               connection made: it stays there                    │ none left: the host has failed
///               └──────────────── at the one that worked last, else the first ◄────┘
/// ```
pub(super) struct Fallback {
    /// In the order to try them; at least two.
    all: Box<[IpAddr]>,
    /// Where the host is to stand.
    at: u8,
    /// Bits of those that could not be connected to in this round.
    tried: u8,
    /// Bits of those among them that were given a short time only, and have not been given more since.
    cut_short: u8,
    /// The last one that a connection was made to. It is given the full time, so that a host does not alternate between
    /// two slow addresses.
    worked: Option<u8>,
}

const _: () = assert!(ADDRESSES_PER_HOST_MAX >= 2 && ADDRESSES_PER_HOST_MAX <= 8, "a bit for each");

impl Fallback {
    /// `None` if there is only one.
    pub fn new(ip: IpAddr, others: &[IpAddr]) -> Option<Fallback> {
        let mut all = vec![ip];
        for &other in others {
            if all.len() < ADDRESSES_PER_HOST_MAX && !all.contains(&other) {
                all.push(other);
            }
        }
        (all.len() > 1).then(|| Fallback { all: all.into(), at: 0, tried: 0, cut_short: 0, worked: None })
    }

    fn index(&self, ip: IpAddr) -> Option<u8> {
        self.all.iter().position(|&other| other == ip).map(|index| index as u8)
    }

    pub fn ip(&self) -> IpAddr {
        self.all[usize::from(self.at)]
    }

    /// Whether the same addresses are there, in any order: name servers rotate them.
    pub fn same_as(&self, ip: IpAddr, others: &[IpAddr]) -> bool {
        self.all.len() == others.len() + 1
            && self.index(ip).is_some()
            && others.iter().all(|&other| self.index(other).is_some())
    }

    /// Whether a connection to where the host stands should not be waited for long.
    pub fn has_more(&self) -> bool {
        let here = 1 << self.at;
        let untried = !self.tried & ((1 << self.all.len()) - 1) as u8;
        untried & here != 0 && untried != here && self.worked != Some(self.at)
    }

    /// Notes that no connection could be made to `ip`. False if that was the last hope of this round.
    pub fn failed(&mut self, ip: IpAddr, cut_short: bool) -> bool {
        let Some(index) = self.index(ip) else {
            return false;
        };
        self.tried |= 1 << index;
        self.cut_short &= !(1 << index);
        self.cut_short |= u8::from(cut_short) << index;
        if self.at != index {
            // Another request failed there before, and the host has moved on.
            return true;
        }
        let untried = (0..self.all.len() as u8).find(|index| self.tried & 1 << index == 0);
        if let Some(next) = untried {
            self.at = next;
            return true;
        }
        if self.cut_short != 0 {
            self.at = self.cut_short.trailing_zeros() as u8;
            self.cut_short &= !(1 << self.at);
            return true;
        }
        (self.tried, self.at) = (0, self.worked.unwrap_or(0));
        false
    }

    /// Takes over from the addresses the host had before: the one that worked last goes on working, and a host that
    /// stands at one of these stays there.
    pub fn follow(&mut self, before: Option<Fallback>, stands_at: IpAddr) {
        let worked = before.and_then(|before| Some(before.all[usize::from(before.worked?)]));
        self.worked = worked.and_then(|ip| self.index(ip));
        self.at = self.worked.or(self.index(stands_at)).unwrap_or(0);
    }

    /// Notes that a connection was made to `ip`.
    pub fn reached(&mut self, ip: IpAddr) {
        if self.index(ip) == Some(self.at) {
            (self.tried, self.cut_short, self.worked) = (0, 0, Some(self.at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn each_is_tried_once_and_the_next_round_begins_at_the_one_that_worked() {
        let mut fallback = Fallback::new(ip(1), &[ip(2), ip(1), ip(3)]).unwrap();
        assert_eq!((&*fallback.all, fallback.ip()), (&[ip(1), ip(2), ip(3)][..], ip(1)));
        assert!(fallback.has_more() && fallback.failed(ip(1), false));
        assert!(fallback.ip() == ip(2) && fallback.has_more());
        fallback.reached(ip(2));
        assert!(!fallback.has_more(), "it has all the time there is");
        assert!(fallback.failed(ip(2), false));
        assert!(fallback.ip() == ip(1) && fallback.has_more() && fallback.failed(ip(1), false));
        assert!(fallback.ip() == ip(3) && !fallback.has_more(), "the last one");
        assert!(!fallback.failed(ip(3), false));
        assert_eq!(fallback.ip(), ip(2));
        assert!(Fallback::new(ip(1), &[ip(1)]).is_none());
        let many: Vec<IpAddr> = (0..99).map(ip).collect();
        assert_eq!(Fallback::new(ip(1), &many).unwrap().all.len(), ADDRESSES_PER_HOST_MAX);
    }

    #[test]
    fn one_that_was_cut_short_has_all_the_time_before_the_host_has_failed() {
        let mut fallback = Fallback::new(ip(1), &[ip(2)]).unwrap();
        assert!(fallback.failed(ip(1), true) && fallback.ip() == ip(2));
        assert!(fallback.failed(ip(2), false) && fallback.ip() == ip(1));
        assert!(!fallback.has_more());
        // A straggler of the first try changes nothing.
        assert!(fallback.failed(ip(2), false) && fallback.ip() == ip(1));
        assert!(!fallback.failed(ip(1), false));
        assert!(fallback.has_more(), "a new round");
    }
}
