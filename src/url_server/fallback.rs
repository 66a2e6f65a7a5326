//! Hosts that have several addresses, and how they go from one to the next.

use super::host::{MULTI_ADDRESS, WaitsIn};
use super::release::Ending;
use super::server::UrlServer;
use crate::base::Now;
use crate::limits::ADDRESSES_PER_HOST_MAX;
use crate::proto::lines::TransId;
use crate::proto::record::ResultCode;
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
    /// Bits of those among them that had little time, and have not had more since.
    cut_short: u8,
    /// The last one that a connection was made to. It is given all the time there is, so that two slow addresses do not
    /// send a host to and fro.
    worked: Option<u8>,
}

const _: () = assert!(ADDRESSES_PER_HOST_MAX >= 2 && ADDRESSES_PER_HOST_MAX <= 8, "a bit for each");

impl Fallback {
    /// `None` if there is only one.
    fn new(ip: IpAddr, others: &[IpAddr]) -> Option<Fallback> {
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

    fn ip(&self) -> IpAddr {
        self.all[usize::from(self.at)]
    }

    /// Whether the same addresses are there, in whatever order: name servers like to turn them round.
    fn same_as(&self, ip: IpAddr, others: &[IpAddr]) -> bool {
        self.all.len() == others.len() + 1
            && self.index(ip).is_some()
            && others.iter().all(|&other| self.index(other).is_some())
    }

    /// Whether a connection to where the host stands should not be waited for long.
    fn has_more(&self) -> bool {
        let here = 1 << self.at;
        let untried = !self.tried & ((1 << self.all.len()) - 1) as u8;
        untried & here != 0 && untried != here && self.worked != Some(self.at)
    }

    /// No connection could be made to `ip`. False if that was the last hope of this round.
    fn failed(&mut self, ip: IpAddr, cut_short: bool) -> bool {
        let Some(index) = self.index(ip) else {
            return false;
        };
        self.tried |= 1 << index;
        self.cut_short &= !(1 << index);
        self.cut_short |= u8::from(cut_short) << index;
        if self.at != index {
            // Another request failed there before, and the host has gone on.
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

    /// A connection was made to `ip`.
    fn reached(&mut self, ip: IpAddr) {
        if self.index(ip) == Some(self.at) {
            (self.tried, self.cut_short, self.worked) = (0, 0, Some(self.at));
        }
    }
}

impl UrlServer {
    /// A request could not be sent because no connection was made, for this reason. If the host has another address to
    /// try, it moves there, the request is put back and true is returned: nobody was asked, and nothing has failed yet.
    /// Otherwise it failed, and is to be released as such.
    pub fn unreachable(&mut self, trans: TransId, result: ResultCode, now: Now) -> bool {
        let slot = trans.host_slot();
        let Some(active) = self.active(trans).filter(|active| !active.sent) else {
            return false;
        };
        let ip = self.addresses.get(active.ip).ip;
        let cut_short = active.more && result == ResultCode::ConnectTimeout;
        let Some(fallback) = self.fallbacks.get_mut(&slot) else {
            return false;
        };
        let goes_on = fallback.failed(ip, cut_short);
        if goes_on {
            self.stats.moved_on += 1;
            self.back(trans, Ending::NotSent, now);
        } else {
            // What it has open is still answered for where it was sent.
            self.stand(slot, now);
        }
        goes_on
    }

    /// A connection of a host was made.
    pub(super) fn reached(&mut self, slot: u32, ip: IpAddr) {
        if let Some(fallback) = self.fallbacks.get_mut(&slot) {
            fallback.reached(ip);
        }
    }

    /// Whether there are other addresses to try soon if the next connection of a host takes long.
    pub(super) fn has_more(&self, slot: u32) -> bool {
        self.table.rows[slot as usize].is(MULTI_ADDRESS)
            && self.fallbacks.get(&slot).is_some_and(Fallback::has_more)
    }

    /// Moves a host to the address that it is to stand at. One that waits at its old address moves when its turn comes
    /// there. True if it has moved.
    pub(super) fn stand(&mut self, slot: u32, now: Now) -> bool {
        let host = &self.table.rows[slot as usize];
        if !host.is(MULTI_ADDRESS) || matches!(host.waits_in, WaitsIn::Address | WaitsIn::Ready) {
            return false;
        }
        let before = host.ip;
        let Some(ip) = self.fallbacks.get(&slot).map(Fallback::ip) else {
            return false;
        };
        if self.addresses.get(before).ip == ip {
            return false;
        }
        self.table.rows[slot as usize].ip = self.join_address(ip);
        self.wake_address(before, now);
        self.leave_address(before, now);
        true
    }

    /// Notes the addresses of a host that got a row, which stands at the first.
    pub(super) fn note_fallback(&mut self, slot: u32, ip: IpAddr, others: Option<&[IpAddr]>) {
        if let Some(fallback) = others.and_then(|others| Fallback::new(ip, others)) {
            self.table.rows[slot as usize].set(MULTI_ADDRESS, true);
            self.fallbacks.insert(slot, fallback);
        }
    }

    /// A host that has nothing to do may have moved, or have other addresses than it had.
    pub(super) fn follow(&mut self, slot: u32, ip: IpAddr, others: Option<&[IpAddr]>, now: Now) {
        let host = &mut self.table.rows[slot as usize];
        let before = host.ip;
        let stands_at = self.addresses.get(before).ip;
        let several = host.is(MULTI_ADDRESS);
        if (stands_at == ip && !several && others.is_none())
            || !host.is_empty()
            || host.waits_in != WaitsIn::Rest
        {
            return;
        }
        let others = others.unwrap_or_default();
        if self.fallbacks.get(&slot).is_some_and(|fallback| several && fallback.same_as(ip, others)) {
            return;
        }
        host.set(MULTI_ADDRESS, false);
        let worked = self
            .fallbacks
            .remove(&slot)
            .and_then(|fallback| Some(fallback.all[usize::from(fallback.worked?)]));
        self.note_fallback(slot, ip, Some(others));
        let mut target = ip;
        if let Some(fallback) = self.fallbacks.get_mut(&slot) {
            // Where it is known it stays.
            fallback.worked = worked.and_then(|ip| fallback.index(ip));
            fallback.at = fallback.worked.or(fallback.index(stands_at)).unwrap_or(0);
            target = fallback.ip();
        }
        if target != stands_at {
            self.table.rows[slot as usize].ip = self.join_address(target);
            self.leave_address(before, now);
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
