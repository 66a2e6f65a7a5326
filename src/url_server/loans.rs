use super::host_table::Journal;
use super::niceness::Pace;
use super::server::UrlServer;
use crate::base::{Now, Wall};
use std::net::IpAddr;

/// What a node of a cluster may ask: nothing once its right is over, and an address only while that is lent to it. The table
/// is beside that of the addresses and has its slots, so that a crawl without a cluster has nothing of it.
///
/// ```text
///   not wanted ── a host may send, or may soon ──► wanted ── lend ──► lent until … ── nothing open, nobody waits, ──► not wanted
///              Want                                   ▲ lend again │                  linger over: Idle
///                                                     └────────────┘
/// ```
///
/// A loan is wanted and renewed until Idle. One that ended, as others wait for the address, is given back once nothing is open,
/// and wanted again at once if a host waits.
pub(super) struct Loans {
    right_until: Now,
    rows: Vec<Loan>,
    /// Wants so far, each of which is known by its number.
    wants: u64,
    words: Vec<LoanWord>,
    wall: Wall,
}

/// One address.
#[derive(Clone, Copy)]
struct Loan {
    /// The number of the Want that is not taken back; 0 if the address is not wanted.
    want: u64,
    /// It may be asked until then: `Now::ZERO` if nothing was lent for this Want.
    until: Now,
    /// Somebody may come before, so that it is not given back.
    keep_until: Now,
    /// The latest request since the Want.
    asked_at: Option<Now>,
    /// A timer looks whether it may be given back.
    watched: bool,
}

const UNWANTED: Loan =
    Loan { want: 0, until: Now::ZERO, keep_until: Now::ZERO, asked_at: None, watched: false };

/// What a URL server says of addresses. Of one address the two alternate, and begin with Want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoanWord {
    /// A host there may send, or may soon.
    Want { ip: IpAddr, want: u64 },
    /// Nothing is open there and nobody will send soon: what was lent ends.
    Idle {
        ip: IpAddr,
        /// How long ago the latest request was sent; `None` if none was since Want.
        sent_ago_us: Option<u64>,
        /// The pause between two requests to it.
        pause_us: u64,
        /// The line of the journal about it, in times of the calendar; empty if it is owed nothing.
        line: String,
    },
}

/// An address that may be asked from `due` until `until`.
#[derive(Clone, Debug)]
pub struct Lent<'a> {
    pub ip: IpAddr,
    /// The number of the Want that this answers. What answers an earlier one was given back since.
    pub want: u64,
    pub due: Now,
    pub until: Now,
    /// What another server wrote about the address last, if anything: in times of this server's calendar.
    pub line: &'a str,
}

/// What a loan is to a Want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first.
    First,
    /// The one before ended, and others may have asked since.
    Again,
    /// The one before holds.
    Renewed,
}

/// An address is given back so long after the last of its hosts had nothing more to send: the page that was just fetched
/// leads to others.
pub(super) const LINGER_US: u64 = 4_000_000;
/// A turn that is further away is not waited for: the shortest time for which an address is lent.
pub(super) const FAR_US: u64 = 10_000_000;
/// An address is wanted so long before its turn.
pub(super) const AHEAD_US: u64 = 3_000_000;
/// A timer is late by a tick.
pub(super) const SLACK_US: u64 = 2_000;

const _: () =
    assert!(AHEAD_US + SLACK_US < FAR_US && LINGER_US < FAR_US, "what is wanted is not given back at once");

impl Loans {
    /// Without a right, and with nothing lent.
    pub fn new(wall: Wall) -> Loans {
        Loans { right_until: Now::ZERO, rows: Vec::new(), wants: 0, words: Vec::new(), wall }
    }

    /// Sets the end of the right. True if it was over and is not.
    #[must_use]
    pub fn set_right(&mut self, until: Now, now: Now) -> bool {
        let was_over = now >= self.right_until;
        self.right_until = until;
        was_over && now < until
    }

    pub fn has_right(&self, now: Now) -> bool {
        now < self.right_until
    }

    /// Until when an address may be asked, by the right and by the loan.
    pub fn send_by(&self, address: u32) -> Now {
        self.row(address).until.min(self.right_until)
    }

    /// Whether an address may be asked, pauses aside.
    pub fn holds(&self, address: u32, now: Now) -> bool {
        now < self.send_by(address)
    }

    pub fn is_wanted(&self, address: u32) -> bool {
        self.row(address).want > 0
    }

    /// Says that an address is wanted, and keeps it until somebody may have come.
    pub fn want(&mut self, address: u32, ip: IpAddr, keep_until: Now) {
        debug_assert!(!self.is_wanted(address), "wanted once");
        self.wants += 1;
        let want = self.wants;
        if self.rows.len() <= address as usize {
            self.rows.resize(address as usize + 1, UNWANTED);
        }
        let row = &mut self.rows[address as usize];
        *row = Loan { want, keep_until, watched: row.watched, ..UNWANTED };
        self.words.push(LoanWord::Want { ip, want });
    }

    /// Takes a loan; `None` if it does not answer what is wanted.
    #[must_use]
    pub fn lend(&mut self, address: u32, want: u64, until: Now, now: Now) -> Option<Turn> {
        let row = self.rows.get_mut(address as usize).filter(|row| row.want == want && want > 0)?;
        let turn = match row.until {
            Now::ZERO => Turn::First,
            before if before <= now => Turn::Again,
            _ => Turn::Renewed,
        };
        row.until = row.until.max(until);
        Some(turn)
    }

    /// Notes a request.
    pub fn asked(&mut self, address: u32, now: Now) {
        if let Some(row) = self.rows.get_mut(address as usize) {
            row.asked_at = row.asked_at.max(Some(now));
        }
    }

    /// Does not give an address back before.
    pub fn keep(&mut self, address: u32, until: Now) {
        if let Some(row) = self.rows.get_mut(address as usize) {
            row.keep_until = row.keep_until.max(until);
        }
    }

    /// When to look whether an address may be given back; `None` if that is known already, or there is nothing to give.
    #[must_use]
    pub fn watch(&mut self, address: u32, now: Now) -> Option<Now> {
        let row = self.rows.get_mut(address as usize).filter(|row| row.want > 0 && !row.watched)?;
        row.watched = true;
        Some(row.keep_until.max(now))
    }

    /// Notes that the timer of an address has fired. True if nobody is expected there.
    pub fn watched(&mut self, address: u32, now: Now) -> bool {
        let Some(row) = self.rows.get_mut(address as usize) else {
            return false;
        };
        row.watched = false;
        row.want > 0 && row.keep_until <= now
    }

    /// Whether what was lent has ended and was not renewed.
    pub fn is_over(&self, address: u32, now: Now) -> bool {
        let until = self.row(address).until;
        until > Now::ZERO && until <= now
    }

    /// Gives an address back that is wanted still: others are before it.
    pub fn want_again(&mut self, address: u32, ip: IpAddr, pace: &Pace, pause_us: u64, now: Now) {
        let row = &mut self.rows[address as usize];
        let (keep_until, watched) = (row.keep_until, std::mem::take(&mut row.watched));
        self.idle(address, ip, pace, pause_us, now);
        self.rows[address as usize].watched = watched;
        self.want(address, ip, keep_until);
    }

    /// Gives an address back.
    pub fn idle(&mut self, address: u32, ip: IpAddr, pace: &Pace, pause_us: u64, now: Now) {
        let row = std::mem::replace(&mut self.rows[address as usize], UNWANTED);
        debug_assert!(row.want > 0 && !row.watched, "given back once");
        let mut journal = Journal::new(self.wall, "");
        if pace.due() > now || !pace.is_plain() {
            journal.address(ip, pace, now);
        }
        let sent_ago_us = row.asked_at.map(|at| now.since_us(at));
        let line = journal.take().unwrap_or_default();
        self.words.push(LoanWord::Idle { ip, sent_ago_us, pause_us, line });
    }

    pub fn take_words(&mut self) -> Vec<LoanWord> {
        std::mem::take(&mut self.words)
    }

    fn row(&self, address: u32) -> &Loan {
        self.rows.get(address as usize).unwrap_or(&UNWANTED)
    }

    /// Whether somebody looks after an address that is wanted.
    pub fn is_watched(&self, address: u32) -> bool {
        self.row(address).watched
    }
}

impl UrlServer {
    /// The server of a node of a cluster: it hands out nothing without a right, nor for an address that is not lent to it.
    #[must_use]
    pub fn with_loans(mut self) -> UrlServer {
        self.readiness.set_loans(Loans::new(self.config.wall));
        self
    }

    /// Sets the end of the right to ask. It may be moved on as often as wanted; what is on the wire at its end goes on.
    pub fn set_right(&mut self, until: Now, now: Now) {
        if self.readiness.loans_mut().is_some_and(|loans| loans.set_right(until, now)) {
            for address in 0..self.hosts.addresses().len() as u32 {
                self.readiness.wake_address(&mut self.hosts, address, now);
            }
        }
    }

    /// Takes an address that was wanted, or more time for it: its hosts go on from `due` until `until`.
    pub fn lend(&mut self, lent: &Lent<'_>, now: Now) {
        let Some(address) = self.hosts.find_address(lent.ip) else {
            return;
        };
        let told = self.hosts.read_address(lent.ip, lent.line, self.config.wall, now);
        self.readiness.lend(&mut self.hosts, address, lent, told, now);
    }

    /// What was said of addresses since the last call, in its order.
    pub fn take_loan_words(&mut self) -> Vec<LoanWord> {
        self.readiness.loans_mut().map(Loans::take_words).unwrap_or_default()
    }
}
