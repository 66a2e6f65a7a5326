//! Who has tickets.

use super::{ALL_SLOTS, Back, Grant, TICKET_US, Wait, Want};
use crate::base::Now;
use crate::limits::TICKETS_KEPT_MAX;
use std::collections::BTreeMap;

/// An answer that has not come for so long is asked for again.
const AGAIN_US: u64 = 2_000_000;

#[derive(Clone, Debug)]
struct Ticket {
    /// The ask that is not answered yet, and when it was sent.
    asked: Option<(u64, Now)>,
    /// Not asked again before.
    ask_at: Now,
    /// May be used from `due` to `until`.
    due: Now,
    until: Now,
    /// For how long it was lent the last time.
    for_us: u64,
    slots: u16,
    sent: Option<Now>,
    /// What was told with it.
    pause_us: u64,
    line: Box<[u8]>,
}

/// The tickets that a node has and wants.
#[derive(Clone, Debug)]
pub struct Tickets<K> {
    last_ask: u64,
    held: BTreeMap<K, Ticket>,
}

impl<K: Clone + Ord> Tickets<K> {
    /// Asks are numbered from `first_ask` on, which is above all that this node ever used: its generation in the upper half.
    pub fn new(first_ask: u64) -> Tickets<K> {
        Tickets { last_ask: first_ask, held: BTreeMap::new() }
    }

    /// WANT for a key, if one is to be sent: it is not held for half of its time yet, not asked for already, and not to be
    /// waited for.
    pub fn want(&mut self, key: &K, now: Now) -> Option<Want<K>> {
        let unheld = Ticket {
            asked: None,
            ask_at: Now::ZERO,
            due: Now::ZERO,
            until: Now::ZERO,
            for_us: TICKET_US,
            slots: ALL_SLOTS,
            sent: None,
            pause_us: 0,
            line: Box::default(),
        };
        if self.held.len() >= TICKETS_KEPT_MAX && !self.held.contains_key(key) {
            return None;
        }
        let ticket = self.held.entry(key.clone()).or_insert(unheld);
        let asked = ticket.asked.is_some_and(|(_, sent)| now.since_us(sent) < AGAIN_US);
        if asked || now < ticket.ask_at || ticket.until.since_us(now) > ticket.for_us / 2 {
            return None;
        }
        self.last_ask += 1;
        ticket.asked = Some((self.last_ask, now));
        Some(Want { key: key.clone(), ask: self.last_ask, renews: now < ticket.until })
    }

    /// Takes a ticket. One that was not asked for, or that was given back since, is given back at once; as the BACK before may be
    /// lost, which told when the last request was sent, this one says: just now.
    pub fn granted(&mut self, grant: &Grant<K>, now: Now) -> Option<Back<K>> {
        let Some(ticket) = self.held.get_mut(&grant.key) else {
            let key = grant.key.clone();
            let line = grant.line.clone();
            return Some(Back {
                key,
                ask: self.last_ask,
                sent_ago_us: Some(0),
                pause_us: grant.pause_us,
                line,
            });
        };
        let (_, sent) = ticket.asked.filter(|(ask, _)| *ask == grant.ask)?;
        ticket.asked = None;
        if now >= ticket.until {
            ticket.due = now.plus_us(grant.due_in_us);
        }
        ticket.for_us = grant.for_us.min(TICKET_US);
        ticket.slots = grant.slots;
        ticket.until = ticket.until.max(sent.plus_us(ticket.for_us));
        ticket.pause_us = grant.pause_us;
        ticket.line.clone_from(&grant.line);
        None
    }

    pub fn waits(&mut self, wait: &Wait<K>, now: Now) {
        if let Some(ticket) = self.held.get_mut(&wait.key)
            && ticket.asked.is_some_and(|(ask, _)| ask == wait.ask)
        {
            ticket.asked = None;
            ticket.ask_at = now.plus_us(wait.wait_us.min(TICKET_US));
        }
    }

    /// From when to when a key may be asked, if it may at all.
    pub fn window(&self, key: &K, now: Now) -> Option<(Now, Now)> {
        let ticket = self.held.get(key).filter(|ticket| now < ticket.until)?;
        Some((ticket.due, ticket.until))
    }

    /// How many requests may be open, if others have a part of the ticket, too.
    pub fn part(&self, key: &K) -> Option<u16> {
        self.held.get(key).map(|ticket| ticket.slots).filter(|slots| *slots != ALL_SLOTS)
    }

    /// What is held, or was, and the end of its time.
    pub fn held(&self) -> impl Iterator<Item = (&K, Now)> {
        self.held.iter().map(|(key, ticket)| (key, ticket.until))
    }

    /// Whether a request may be sent: the one compare of a gate.
    pub fn may_send(&self, key: &K, now: Now) -> bool {
        self.window(key, now).is_some_and(|(due, _)| now >= due)
    }

    /// Notes that a request was sent.
    pub fn sent(&mut self, key: &K, now: Now) {
        if let Some(ticket) = self.held.get_mut(key) {
            ticket.sent = Some(now);
        }
    }

    /// Gives a ticket back, or does not want it any more. Nothing may be open. `owed` is the pause between two requests and what
    /// is owed besides; what was told with the ticket, if that is not known.
    pub fn back(&mut self, key: &K, owed: Option<(u64, Box<[u8]>)>, now: Now) -> Option<Back<K>> {
        let ticket = self.held.remove(key)?;
        // Without a grant it ends whatever was lent before, of which it does not know when it was used last.
        let before = (ticket.until == Now::ZERO).then_some(0);
        let sent_ago_us = ticket.sent.map(|sent| now.since_us(sent)).or(before);
        let (pause_us, line) = owed.unwrap_or((ticket.pause_us, ticket.line));
        Some(Back { key: key.clone(), ask: self.last_ask, sent_ago_us, pause_us, line })
    }

    /// Keys whose ticket has less than half of its time left, for whoever still needs them.
    pub fn ending(&self, now: Now) -> impl Iterator<Item = &K> {
        let ends =
            move |ticket: &Ticket| ticket.until > now && ticket.until.since_us(now) <= ticket.for_us / 2;
        self.held.iter().filter(move |(_, ticket)| ends(ticket)).map(|(key, _)| key)
    }
}
