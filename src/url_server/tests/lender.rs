//! The rest of the cluster in the model: who gives the right to ask and lends addresses, and what that forbids.

use super::addresses::address;
use super::model::{Host, Model};
use super::web::SECOND;
use crate::base::Now;
use crate::proto::peer_wire::TicketKey;
use crate::url_server::{Lent, LoanWord, UrlServer};
use std::net::IpAddr;

/// Whoever lends addresses to the server, as plain lists.
pub(super) struct Lender {
    pub right_until: u64,
    pub tickets: Vec<Ticket>,
    last_want: u64,
}

#[derive(Clone, Default)]
pub(super) struct Ticket {
    /// The number of the Want, and when it was said.
    want: Option<(u64, u64)>,
    due: u64,
    until: u64,
    /// What was said of the address last.
    line: String,
}

impl Lender {
    pub fn new(ip_count: usize) -> Lender {
        Lender { right_until: 0, tickets: vec![Ticket::default(); ip_count], last_want: 0 }
    }
}

impl Model {
    fn now_of(&self, us: u64) -> Now {
        Now::from_us(us.saturating_sub(self.base))
    }

    /// Hears what the server says of addresses: Want and Idle alternate, and Idle is true.
    pub(super) fn hear_loans(&mut self) {
        for word in self.server.take_loan_words() {
            let (now, at) =
                (self.now, |ip: IpAddr| self.ips.iter().enumerate().position(|(n, _)| address(n) == ip));
            let lender = self.lender.as_mut().expect("nothing is wanted without a cluster");
            match word {
                LoanWord::Want { key, want } => {
                    let ip = key.address().expect("no host is lent");
                    let ticket = &mut lender.tickets[at(ip).expect("an address of ours")];
                    assert!(ticket.want.is_none(), "{ip} is wanted twice");
                    assert!(want > lender.last_want, "each Want has its number");
                    lender.last_want = want;
                    let line = std::mem::take(&mut ticket.line);
                    *ticket = Ticket { want: Some((want, now)), line, ..Ticket::default() };
                }
                LoanWord::Idle { key, sent_ago_us, pause_us, line } => {
                    let ip = key.address().expect("no host is lent");
                    let n = at(ip).expect("an address of ours");
                    let is_open = |trans| self.server.asked_at(trans).is_some();
                    let open = self.open.iter().find(|open| open.ip == n && is_open(open.trans));
                    assert!(open.is_none(), "{ip} is given back while a request is open");
                    let (_, wanted) = lender.tickets[n].want.expect("given back once");
                    let manners = &self.ips[n];
                    if let Some(last) = manners.last.filter(|&last| last > wanted) {
                        assert!(sent_ago_us.is_some_and(|ago| now - ago >= last), "{ip}: {sent_ago_us:?}");
                    }
                    assert!(sent_ago_us.is_none_or(|ago| now - ago >= wanted));
                    if self.roomy && !self.restarted {
                        assert!(pause_us >= manners.gap(&self.config.ip), "{ip}: {pause_us} {manners:?}");
                    }
                    lender.tickets[n] = Ticket { line, ..Ticket::default() };
                }
            }
        }
    }

    /// Something happens in the rest of the cluster.
    pub(super) fn lender_step(&mut self) {
        self.hear_loans();
        let Some(lender) = &mut self.lender else {
            return;
        };
        let wanted = |ticket: &Ticket| ticket.want.is_some();
        let count = lender.tickets.iter().filter(|ticket| wanted(ticket)).count();
        match self.rng.below(10) {
            0..3 => {
                let for_us = [0, 5, 120, 3_600][self.rng.below(4) as usize] * SECOND;
                lender.right_until = self.now + for_us;
                let (until, at) = (self.now_of(self.now + for_us), self.at());
                self.server.set_right(until, at);
            }
            3..9 if count > 0 => {
                let nth = self.rng.below(count as u64) as usize;
                let mut all = lender.tickets.iter().enumerate().filter(|(_, ticket)| wanted(ticket));
                let (ip, _) = all.nth(nth).expect("there are so many");
                let due = self.now + self.rng.below(2) * self.rng.below(8 * SECOND);
                let until = self.now + [1, 10, 60][self.rng.below(3) as usize] * SECOND;
                let elsewhere = self.rng.chance(300);
                self.lend(ip, due, until, elsewhere);
            }
            // What answers a Want that was taken back means nothing.
            _ => {
                let ip = self.rng.below(lender.tickets.len() as u64) as usize;
                let last = lender.tickets[ip].want.map_or(lender.last_want + 1, |(want, _)| want);
                let (want, until) = (self.rng.below(last), Now::NEVER);
                let due = self.at().plus_us(5 * SECOND);
                let key = &TicketKey::of_address(address(ip));
                self.server.lend(&Lent { key, want, due, until, part: None, line: "" }, self.at());
            }
        }
    }

    /// Lends an address that is wanted; another node may have asked it before.
    fn lend(&mut self, ip: usize, due: u64, until: u64, elsewhere: bool) {
        let (now, zero_us) = (self.now, self.config.wall.unix_ms_at_zero * 1_000);
        let lender = self.lender.as_mut().expect("the caller has one");
        let ticket = &mut lender.tickets[ip];
        let (want, _) = ticket.want.expect("the caller looked");
        let (is_first, is_over) = (ticket.until == 0, ticket.until <= now);
        if elsewhere {
            let (penalty_us, for_us) = (self.rng.below(4) * 3 * SECOND, self.rng.below(5 * SECOND));
            let (due, at, ip) = (zero_us + now + for_us, zero_us + now, address(ip));
            ticket.line = format!(
                "address {ip} due={due} penalty_us={penalty_us} response_us=0 delay_ms=0 failures=0 at={at}\n"
            );
        }
        let field = |name: &str| {
            let mut words = ticket.line.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok())
        };
        let told = field("due=").map(|due| (due - zero_us, field("penalty_us="), field("response_us=")));
        (ticket.due, ticket.until) = (ticket.due.max(due), ticket.until.max(until));
        let line = ticket.line.clone();
        let (rules, manners) = (&self.config.ip, &mut self.ips[ip]);
        if let (Some((told_due, Some(penalty_us), Some(response_us))), true) = (told, is_over) {
            // What is open goes on; the pauses after the next requests may be longer.
            manners.promised = manners.allowed_at(rules);
            manners.last = None;
            // Others know better what an address wants that was given back; both are kept to if it was not.
            let of = |before: u64, told: u64| if is_first { told } else { before.max(told) };
            manners.penalty_us = of(manners.penalty_us, penalty_us);
            manners.response_us = of(manners.response_us, response_us);
            manners.promised = manners.promised.max(told_due);
        }
        manners.promised = manners.promised.max(due);
        manners.note(rules);
        let (due, until) = (self.now_of(due), self.now_of(until));
        let key = &TicketKey::of_address(address(ip));
        self.server.lend(&Lent { key, want, due, until, part: None, line: &line }, self.at());
    }

    /// Whether an address may be asked at this moment, and until when.
    pub(super) fn may_ask(&self, ip: usize, send_by: Now) {
        let Some(lender) = &self.lender else {
            return assert_eq!(send_by, Now::NEVER);
        };
        let Ticket { want, due, until, .. } = lender.tickets[ip];
        assert!(self.now < lender.right_until, "asked without a right since {}", lender.right_until);
        assert!(
            want.is_some() && self.now < until,
            "an address asked that is not lent: {want:?} until {until}"
        );
        assert!(self.now >= due, "an address asked {} us before its turn", due - self.now);
        assert_eq!(send_by, self.now_of(until.min(lender.right_until)));
    }

    /// Whether a host may send at `when` wherever it stands. If not for want of a loan, that is wanted.
    pub(super) fn is_lent(&self, host: &Host, when: u64, due: Option<Now>) -> bool {
        let Some(lender) = &self.lender else {
            return true;
        };
        let at = when.max(self.now);
        let mut tickets = host.ips.iter().map(|&ip| &lender.tickets[ip]);
        if at < lender.right_until && tickets.clone().all(|ticket| at < ticket.until) {
            return true;
        }
        if tickets.all(|ticket| ticket.want.is_none()) {
            let view = self.server.look(&host.url, 0, self.at());
            assert!(when > self.now, "{} waits for an address that nobody wants: {view:?}", host.url);
            let due = due.expect("somebody waits for a pause to end");
            assert!(due.us() + self.base <= when, "{}: {due:?} would be too late to want it", host.url);
        }
        false
    }

    /// The spider had a connection too late: nothing was sent, and the host was not asked.
    pub(super) fn come_too_late(&mut self, index: usize) {
        let open = self.open.remove(index);
        self.server.not_sent(open.trans, self.at());
        let manners = &mut self.hosts[open.host].manners;
        if manners.last == Some(open.at) {
            manners.last = open.before;
        }
        self.wait_again(open);
    }

    /// Another process of this node has nothing of what was lent to the one before.
    pub(super) fn restart_lender(&mut self) {
        let Some(lender) = &mut self.lender else {
            return;
        };
        *lender = Lender::new(lender.tickets.len());
        let server = std::mem::replace(&mut self.server, UrlServer::new(self.config.clone(), Now::ZERO));
        self.server = server.with_loans();
    }

    /// Everything that is wanted is lent.
    pub(super) fn lend_all(&mut self) {
        let Some(lender) = &mut self.lender else {
            return;
        };
        lender.right_until = self.now + 120 * SECOND;
        self.server.set_right(self.now_of(self.now + 120 * SECOND), self.at());
        // What was lent and is over may be wanted anew.
        self.hear_loans();
        let Some(lender) = &self.lender else {
            return;
        };
        let wanted = |ip: &usize| lender.tickets[*ip].want.is_some();
        let wanted: Vec<usize> = (0..lender.tickets.len()).filter(wanted).collect();
        for ip in wanted {
            self.lend(ip, self.now, self.now + 60 * SECOND, false);
        }
    }

    /// Whether something is wanted that is not lent.
    pub(super) fn has_wants(&mut self) -> bool {
        self.hear_loans();
        let wants = |ticket: &Ticket| ticket.want.is_some() && ticket.until <= self.now;
        self.lender.as_ref().is_some_and(|lender| lender.tickets.iter().any(wants))
    }

    /// With nothing to do, every address is given back.
    pub(super) fn all_given_back(&mut self) {
        while let Some(lender) = &self.lender
            && lender.tickets.iter().any(|ticket| ticket.want.is_some())
        {
            let due = self.server.next_due().expect("an address is given back");
            self.now += due.since_us(self.at());
            self.tick();
            self.check();
        }
    }
}
