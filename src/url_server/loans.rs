use super::host_table::{Hosts, Journal, WaitsIn};
use super::niceness::Pace;
use super::server::UrlServer;
use crate::base::{Now, Wall};
use crate::proto::peer_wire::TicketKey;
use std::net::IpAddr;

/// What a node of a cluster may ask: nothing once its right is over, and an address only while that is lent to it. Where one host
/// may have URLs at many nodes, it is lent likewise, and before its address is. The tables are beside those of addresses and
/// hosts and have their slots, so that a crawl without a cluster has nothing of it.
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
    pub addresses: LoanTable,
    /// Of hosts, if they are lent.
    pub hosts: Option<LoanTable>,
    wants_from: u64,
    wall: Wall,
}

/// Addresses or hosts, by their slots.
#[derive(Default)]
pub(super) struct LoanTable {
    rows: Vec<Loan>,
    /// Wants so far, each of which is known by its number.
    wants: u64,
    words: Vec<LoanWord>,
}

/// One address, or one host.
#[derive(Clone, Copy)]
struct Loan {
    /// The number of the Want that is not taken back; 0 if it is not wanted.
    want: u64,
    /// It may be asked until then: `Now::ZERO` if nothing was lent for this Want.
    until: Now,
    /// Somebody may come before, so that it is not given back.
    keep_until: Now,
    /// The latest request since the Want.
    asked_at: Option<Now>,
    /// So many requests may be open, if others may have some open, too.
    part: Option<u8>,
    /// A timer looks whether it may be given back.
    watched: bool,
}

const UNWANTED: Loan =
    Loan { want: 0, until: Now::ZERO, keep_until: Now::ZERO, asked_at: None, part: None, watched: false };

/// What a URL server says of addresses and hosts. Of each the two alternate, and begin with Want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoanWord {
    /// A host there may send, or may soon.
    Want { key: TicketKey, want: u64 },
    /// Nothing is open there and nobody will send soon: what was lent ends.
    Idle {
        key: TicketKey,
        /// How long ago the latest request was sent; `None` if none was since Want.
        sent_ago_us: Option<u64>,
        /// The pause between two requests to it.
        pause_us: u64,
        /// The line of the journal about it, in times of the calendar; empty if it is owed nothing.
        line: String,
    },
}

/// An address or a host that may be asked from `due` until `until`.
#[derive(Clone, Debug)]
pub struct Lent<'a> {
    pub key: &'a TicketKey,
    /// The number of the Want that this answers. What answers an earlier one was given back since.
    pub want: u64,
    pub due: Now,
    pub until: Now,
    /// So many requests may be open, as others have a part of it, too.
    pub part: Option<u8>,
    /// What another server wrote about it last, if anything: in times of this server's calendar.
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
/// The same where hosts are lent: another node waits for the address as soon as it has the host.
pub(super) const SHORT_LINGER_US: u64 = 200_000;
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
        Loans { right_until: Now::ZERO, addresses: LoanTable::default(), hosts: None, wants_from: 0, wall }
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
    pub fn address_until(&self, address: u32) -> Now {
        self.addresses.row(address).until.min(self.right_until)
    }

    /// The same of a host, its address aside.
    pub fn host_until(&self, slot: u32) -> Now {
        self.hosts.as_ref().map_or(self.right_until, |hosts| hosts.row(slot).until.min(self.right_until))
    }

    /// Notes a request.
    pub fn asked(&mut self, slot: u32, address: u32, now: Now) {
        self.addresses.asked(address, now);
        if let Some(hosts) = &mut self.hosts {
            hosts.asked(slot, now);
        }
    }

    /// Gives an address back.
    pub fn give_address(&mut self, address: u32, ip: IpAddr, pace: &Pace, pause_us: u64, now: Now) {
        let line = self.line(pace, now, |journal| journal.address(ip, pace, now));
        self.addresses.idle(address, TicketKey::of_address(ip), (pause_us, line), now);
    }

    /// Gives a host back.
    pub fn give_host(&mut self, slot: u32, origin: &str, pace: &Pace, pause_us: u64, now: Now) {
        let line = self.line(pace, now, |journal| journal.pace(origin, pace, now));
        if let (Some(hosts), Some(key)) = (&mut self.hosts, TicketKey::of_host(origin)) {
            hosts.idle(slot, key, (pause_us, line), now);
        }
    }

    /// What the next one has to know, if it is owed more than a pause.
    fn line(&self, pace: &Pace, now: Now, write: impl FnOnce(&mut Journal)) -> String {
        let mut journal = Journal::new(self.wall, "");
        if pace.due() > now || !pace.is_plain() {
            write(&mut journal);
        }
        journal.take().unwrap_or_default()
    }

    fn take_words(&mut self) -> Vec<LoanWord> {
        let mut words = std::mem::take(&mut self.addresses.words);
        words.extend(self.hosts.iter_mut().flat_map(|hosts| hosts.words.drain(..)));
        words
    }
}

impl LoanTable {
    pub fn is_wanted(&self, slot: u32) -> bool {
        self.row(slot).want > 0
    }

    /// How many requests may be open, if others may have some open, too.
    pub fn part(&self, slot: u32) -> Option<u8> {
        self.row(slot).part
    }

    /// Says that something is wanted, and keeps it until somebody may have come.
    pub fn want(&mut self, slot: u32, key: TicketKey, keep_until: Now) {
        debug_assert!(!self.is_wanted(slot), "wanted once");
        self.wants += 1;
        let want = self.wants;
        if self.rows.len() <= slot as usize {
            self.rows.resize(slot as usize + 1, UNWANTED);
        }
        let row = &mut self.rows[slot as usize];
        *row = Loan { want, keep_until, watched: row.watched, ..UNWANTED };
        self.words.push(LoanWord::Want { key, want });
    }

    /// Takes a loan; `None` if it does not answer what is wanted.
    #[must_use]
    pub fn lend(&mut self, slot: u32, lent: &Lent<'_>, now: Now) -> Option<Turn> {
        let is_it = |row: &&mut Loan| row.want == lent.want && lent.want > 0;
        let row = self.rows.get_mut(slot as usize).filter(is_it)?;
        let turn = match row.until {
            Now::ZERO => Turn::First,
            before if before <= now => Turn::Again,
            _ => Turn::Renewed,
        };
        row.until = row.until.max(lent.until);
        row.part = lent.part;
        Some(turn)
    }

    /// Notes a request.
    fn asked(&mut self, slot: u32, now: Now) {
        if let Some(row) = self.rows.get_mut(slot as usize) {
            row.asked_at = row.asked_at.max(Some(now));
        }
    }

    /// Does not give it back before.
    pub fn keep(&mut self, slot: u32, until: Now) {
        if let Some(row) = self.rows.get_mut(slot as usize) {
            row.keep_until = row.keep_until.max(until);
        }
    }

    /// When to look whether it may be given back; `None` if that is known already, or there is nothing to give.
    #[must_use]
    pub fn watch(&mut self, slot: u32, now: Now) -> Option<Now> {
        let row = self.rows.get_mut(slot as usize).filter(|row| row.want > 0 && !row.watched)?;
        row.watched = true;
        Some(row.keep_until.max(now))
    }

    /// Notes that its timer has fired. True if nobody is expected there.
    pub fn watched(&mut self, slot: u32, now: Now) -> bool {
        let Some(row) = self.rows.get_mut(slot as usize) else {
            return false;
        };
        row.watched = false;
        row.want > 0 && row.keep_until <= now
    }

    /// Whether what was lent has ended and was not renewed.
    pub fn is_over(&self, slot: u32, now: Now) -> bool {
        let until = self.row(slot).until;
        until > Now::ZERO && until <= now
    }

    /// What is to be said again of something that is given back and wanted still: until when it is kept, and whether it is watched.
    pub fn begin_again(&mut self, slot: u32) -> (Now, bool) {
        let row = &mut self.rows[slot as usize];
        (row.keep_until, std::mem::take(&mut row.watched))
    }

    /// Says so: others are before it.
    pub fn want_again(&mut self, slot: u32, key: TicketKey, (keep_until, watched): (Now, bool)) {
        self.rows[slot as usize].watched = watched;
        self.want(slot, key, keep_until);
    }

    fn idle(&mut self, slot: u32, key: TicketKey, (pause_us, line): (u64, String), now: Now) {
        let row = std::mem::replace(&mut self.rows[slot as usize], UNWANTED);
        debug_assert!(row.want > 0 && !row.watched, "given back once");
        let sent_ago_us = row.asked_at.map(|at| now.since_us(at));
        self.words.push(LoanWord::Idle { key, sent_ago_us, pause_us, line });
    }

    fn row(&self, slot: u32) -> &Loan {
        self.rows.get(slot as usize).unwrap_or(&UNWANTED)
    }

    /// Whether somebody looks after something that is wanted.
    pub fn is_watched(&self, slot: u32) -> bool {
        self.row(slot).watched
    }
}

impl UrlServer {
    /// The server of a node of a cluster: it hands out nothing without a right, nor for an address that is not lent to it.
    #[must_use]
    pub fn with_loans(mut self) -> UrlServer {
        self.readiness.set_loans(Loans::new(self.config.wall));
        self
    }

    /// Wants are numbered from there on: none has the number of one that another process of this shard said.
    #[must_use]
    pub fn with_wants_from(mut self, number: u64) -> UrlServer {
        if let Some(loans) = self.readiness.loans_mut() {
            loans.wants_from = number;
            loans.addresses.wants = number;
        }
        self
    }

    /// From now on nothing is handed out for a host either that is not lent to it. Nothing may have been handed out before.
    pub fn lend_hosts(&mut self) {
        if let Some(loans) = self.readiness.loans_mut() {
            let wants = loans.wants_from;
            loans.hosts.get_or_insert_with(|| LoanTable { wants, ..LoanTable::default() });
        }
    }

    /// Sets the end of the right to ask. It may be moved on as often as wanted; what is on the wire at its end goes on.
    pub fn set_right(&mut self, until: Now, now: Now) {
        if self.readiness.loans_mut().is_some_and(|loans| loans.set_right(until, now)) {
            for address in 0..self.hosts.addresses().len() as u32 {
                self.readiness.wake_address(&mut self.hosts, address, now);
            }
            let waits = |hosts: &Hosts, slot: u32| hosts[slot].waits_in() == WaitsIn::Loan;
            for slot in
                (0..self.hosts.len() as u32).filter(|slot| waits(&self.hosts, *slot)).collect::<Vec<_>>()
            {
                self.wake_lent(slot, now);
            }
        }
    }

    /// Takes something that was wanted, or more time for it: it may be asked from `due` until `until`.
    pub fn lend(&mut self, lent: &Lent<'_>, now: Now) {
        if let Some(ip) = lent.key.address()
            && let Some(address) = self.hosts.find_address(ip)
        {
            let told = self.hosts.read_address(ip, lent.line, self.config.wall, now);
            self.readiness.lend(&mut self.hosts, address, lent, told, now);
        } else if let Some(slot) = lent.key.host().and_then(|origin| self.hosts.find(origin)) {
            let told = self.hosts.read_pace(slot, lent.line, self.config.wall, now);
            self.readiness.lend_host(&mut self.hosts, slot, lent, told, now);
            self.wake_lent(slot, now);
        }
    }

    /// A host looks again whether it is lent.
    pub(super) fn wake_lent(&mut self, slot: u32, now: Now) {
        if self.hosts[slot].waits_in() == WaitsIn::Loan {
            self.hosts[slot].leave(WaitsIn::Loan);
        }
        self.settle(slot, now);
    }

    /// What was said of addresses and hosts since the last call; of each in its order.
    pub fn take_loan_words(&mut self) -> Vec<LoanWord> {
        self.readiness.loans_mut().map(Loans::take_words).unwrap_or_default()
    }
}
