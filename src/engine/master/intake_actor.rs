use super::piece::{Carried, Piece, free_name};
use crate::base::{Key, Now, Wall};
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::master_status::MasterBoard;
use crate::engine::runtime::notices::Notices;
use crate::rings::Doorbell;
use rapidhash::fast::RapidHashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The TCP line: streams of reflog lines, gathered into files of the spool. A sender hears `TAKEN <lines> <bytes>`, counted
/// from the beginning of its connection, when they are durable. Its last line needs no line feed if it ends the stream in
/// good order; of a connection that breaks it is none.
pub(crate) struct IntakeActor {
    port: LinkPort,
    spool: PathBuf,
    /// How the files of this process are called.
    stem: String,
    number: u64,
    senders: RapidHashMap<Key, Sender>,
    /// Rung when there is a file.
    taker: Arc<Doorbell>,
    board: MasterBoard,
    notices: Notices,
    turned_at: Now,
    ends: bool,
}

struct Sender {
    peer: SocketAddr,
    piece: Piece,
    /// Since when something is in the piece, and when something came last.
    since: Option<Now>,
    heard_at: Now,
    lines: u64,
    bytes: u64,
}

/// A piece is finished after this long.
const PIECE_US: u64 = 1_000_000;
/// A record that may go on is waited for.
const CARRY_US: u64 = 5_000_000;
/// Between two looks at the clock while there are pieces.
const TICK_US: u64 = 100_000;
const EVENTS_PER_TURN: usize = 256;

impl IntakeActor {
    pub fn new(
        port: LinkPort,
        spool: PathBuf,
        taker: Arc<Doorbell>,
        board: MasterBoard,
        notices: Notices,
        wall: Wall,
    ) -> IntakeActor {
        IntakeActor {
            port,
            spool,
            // Names in the order of time, as far as clocks go; free_name finds one that is free.
            stem: format!("intake-{:013}", wall.unix_ms(Now::ZERO)),
            number: 0,
            senders: RapidHashMap::default(),
            taker,
            board,
            notices,
            turned_at: Now::ZERO,
            ends: false,
        }
    }

    fn take(&mut self, event: LinkEvent, now: Now) {
        match event {
            LinkEvent::Up { link, peer, .. } => {
                let piece = Piece::default();
                self.senders
                    .insert(link, Sender { peer, piece, since: None, heard_at: now, lines: 0, bytes: 0 });
                self.board.lock().intake_links = self.senders.len() as u64;
            }
            LinkEvent::Bytes { link, bytes } => {
                let Some(sender) = self.senders.get_mut(&link) else { return };
                sender.heard_at = now;
                sender.since.get_or_insert(now);
                let (spool, stem, number) = (&self.spool, &self.stem, &mut self.number);
                let added = sender.piece.add(&bytes, || free_name(spool, stem, number));
                let is_full = sender.piece.is_full();
                match added {
                    Ok(()) if is_full => self.finish(link, Carried::Stays),
                    Ok(()) => {}
                    Err(cause) => self.refuse(link, &cause),
                }
            }
            LinkEvent::Sent { .. } => {}
            // A sender that has sent all of it hears what was taken.
            LinkEvent::Ended { link } => {
                self.finish(link, Carried::All);
                self.port.close(link);
            }
            LinkEvent::Down { link, .. } => {
                self.finish(link, Carried::Lines);
                self.senders.remove(&link);
                self.board.lock().intake_links = self.senders.len() as u64;
            }
        }
    }

    /// Gives the piece of a sender to the spool.
    fn finish(&mut self, link: Key, carried: Carried) {
        let Some(sender) = self.senders.get_mut(&link) else { return };
        let (spool, stem, number) = (&self.spool, &self.stem, &mut self.number);
        sender.since = None;
        match sender.piece.finish(carried, || free_name(spool, stem, number)) {
            Ok(None) => {}
            Ok(Some((lines, bytes))) => {
                (sender.lines, sender.bytes) = (sender.lines + lines, sender.bytes + bytes);
                let taken = format!("TAKEN {} {}\n", sender.lines, sender.bytes);
                self.port.send(link, taken.into_bytes());
                self.board.lock().intake_lines += lines;
                self.taker.ring_if_asleep();
            }
            Err(cause) => self.refuse(link, &cause),
        }
        if let Some(sender) = self.senders.get_mut(&link).filter(|sender| !sender.piece.is_empty()) {
            sender.since.get_or_insert(self.turned_at);
        }
    }

    /// What was not told as taken is the sender's to send again.
    fn refuse(&mut self, link: Key, cause: &io::Error) {
        let Some(sender) = self.senders.get_mut(&link) else { return };
        sender.piece = Piece::default();
        let taken = sender.lines;
        let text = format!("ERROR cannot be kept: {cause}; {taken} lines are taken, send the others again\n");
        self.port.send(link, text.into_bytes());
        self.port.close(link);
        let fields = vec![("peer", sender.peer.into()), ("cause", cause.to_string().into())];
        let text =
            format!("intake: lines of {} cannot be kept: {cause}; it has to send them again", sender.peer);
        self.notices.tell(Event::IntakeRefused, fields, text);
    }

    fn finish_due(&mut self, now: Now) {
        let is_due = |sender: &Sender| sender.since.is_some_and(|since| now.since_us(since) >= PIECE_US);
        let mut due: Vec<(Key, Carried)> = self
            .senders
            .iter()
            .filter(|(_, sender)| is_due(sender))
            .map(|(link, sender)| match now.since_us(sender.heard_at) >= CARRY_US {
                true => (*link, Carried::Lines),
                false => (*link, Carried::Stays),
            })
            .collect();
        // In one order each time, so that a simulation replays.
        due.sort_unstable_by_key(|(link, _)| link.pack(0));
        due.into_iter().for_each(|(link, carried)| self.finish(link, carried));
    }
}

impl Actor for IntakeActor {
    fn turn(&mut self, now: Now) -> Turned {
        self.turned_at = now;
        let mut left = EVENTS_PER_TURN;
        while left > 0
            && let Some(event) = self.port.next()
        {
            self.take(event, now);
            left -= 1;
        }
        self.finish_due(now);
        if self.ends {
            let links: Vec<Key> = self.senders.keys().copied().collect();
            links.into_iter().for_each(|link| self.finish(link, Carried::Lines));
            self.port.close_all();
            return Turned::finished_if(self.senders.is_empty() || left > 0 && self.port.is_empty());
        }
        Turned::busy_if(left == 0)
    }

    fn next_due(&self) -> Option<Now> {
        let is_open = |sender: &Sender| sender.since.is_some();
        self.senders.values().any(is_open).then(|| self.turned_at.plus_us(TICK_US))
    }

    fn has_messages(&self) -> bool {
        !self.port.is_empty()
    }

    fn end(&mut self, _: Now) {
        self.ends = true;
    }
}
