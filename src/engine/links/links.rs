use super::dial::{Dial, DialState};
use super::dials::Dials;
use super::link::{Link, Phase};
use super::port::{Command, LinkEvent, LinkPort};
use crate::base::{Accepted, Key, NetError, NetEvent, Now, Rng, Slots, Transport};
use crate::driver::ServerDriver;
use crate::engine::runtime::actor::{Actor, Networked, Turned};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::notices::Notices;
use crate::limits::{LINK_NAMES_MAX, LINK_OUT_BYTES_MAX, LINK_RING_WORDS};
use crate::rings::{Doorbell, Receiver, Sender, ring};
use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc;

/// Who may be linked with.
pub struct LinksConfig {
    /// Where peers may dial in; port 0 takes a free one.
    pub listen: Option<SocketAddr>,
    /// `host:port` of peers to dial, until they are undialed. More may be added.
    pub dial: Vec<String>,
    pub links_max: usize,
    /// A peer that has said all of it hears answers: its end is told, and the owner closes the link.
    pub answers_end: bool,
}

/// Every link of a process, over a driver, and the rings to their owner.
pub struct Links<D: ServerDriver> {
    driver: D,
    listens: bool,
    answers_end: bool,
    /// When the next connection is asked for; none while it is.
    accept_at: Option<Now>,
    dials: Dials,
    /// Names that are being looked up, forgotten ones among them.
    names_open: usize,
    resolved: mpsc::Receiver<Resolved>,
    resolver: mpsc::Sender<Resolved>,
    links: Slots<Link>,
    /// Links that may take too long to be made, or to go.
    timed: Vec<Key>,
    /// What the owner has no room for.
    untold: VecDeque<LinkEvent>,
    /// Links of which the owner does not know yet how much was sent.
    sent: VecDeque<Key>,
    /// Nothing is received, because the owner has no room.
    paused: bool,
    events: Sender<LinkEvent>,
    commands: Receiver<Command>,
    owner: Arc<Doorbell>,
    notices: Notices,
    rng: Rng,
    /// The time of the last turn.
    now: Now,
    /// The process ends; then at the latest.
    end_by: Option<Now>,
    said_full: bool,
}

type Resolved = (usize, io::Result<Vec<SocketAddr>>);

const LISTENER: Key = Key::new(0, 0);

/// A connection attempt may take this long.
const CONNECT_US: u64 = 5_000_000;
/// A link that is let go, and at the end all of them, have this long for what is still to be sent.
const END_US: u64 = 1_000_000;
/// A name waits this long while too many are being looked up.
const NAME_US: u64 = 100_000;
/// With a full event ring, or without descriptors, it looks again after this: nobody rings for those.
const STUCK_US: u64 = 2_000;
/// An owner that had no room is to have this much before it hears more from peers.
const ROOM_AGAIN: usize = LINK_RING_WORDS / 2;

impl<D: ServerDriver> Links<D> {
    /// Listens, and dials at its first turn. `bell` is rung when there are commands, `owner` when there are events; the
    /// address is that of the listener.
    pub fn new(
        mut driver: D,
        config: LinksConfig,
        (bell, owner): (Arc<Doorbell>, Arc<Doorbell>),
        notices: Notices,
        seed: u64,
    ) -> io::Result<(Links<D>, LinkPort, Option<SocketAddr>)> {
        let bound = config.listen.map(|addr| driver.listen(LISTENER, addr)).transpose()?;
        let (events, events_in) = ring(LINK_RING_WORDS);
        let (commands_out, commands) = ring(LINK_RING_WORDS);
        let (resolver, resolved) = mpsc::channel();
        let now = driver.now();
        let port = LinkPort::new(events_in, commands_out, bell, config.dial.len());
        let links = Links {
            listens: bound.is_some(),
            answers_end: config.answers_end,
            accept_at: bound.map(|_| now),
            dials: Dials::new(config.dial, now),
            names_open: 0,
            resolved,
            resolver,
            links: Slots::new(config.links_max.min(driver.conns_max())),
            timed: Vec::new(),
            untold: VecDeque::new(),
            sent: VecDeque::new(),
            paused: false,
            events,
            commands,
            owner,
            notices,
            rng: Rng::new(seed),
            now,
            end_by: None,
            said_full: false,
            driver,
        };
        Ok((links, port, bound))
    }

    // From the owner --------------------------------------------------------------------------------------

    fn take_commands(&mut self) {
        while let Some(command) = self.commands.pop() {
            match command {
                Command::Send { link, bytes } => self.send(link, bytes),
                Command::Close { link } => self.leave(link),
                Command::Dial { number, address } => self.dials.add(number, address, self.now),
                Command::Undial { number } => self.undial(number),
            }
        }
    }

    fn send(&mut self, key: Key, bytes: Vec<u8>) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.phase == Phase::Standing) else {
            return;
        };
        link.queue(bytes);
        let waiting = link.waiting();
        if waiting > LINK_OUT_BYTES_MAX {
            self.lose(key, format!("it does not read: {waiting} bytes wait"));
        } else {
            self.send_on(key);
        }
    }

    /// Hands the driver what is next. A link that is let go says goodbye when there is nothing more to send.
    fn send_on(&mut self, key: Key) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        if let Some(piece) = link.next_piece() {
            return self.driver.send(key, piece);
        }
        if link.waiting() > 0 {
            return;
        }
        if let Phase::Leaving { finished: finished @ false, .. } = &mut link.phase {
            *finished = true;
            match link.has_ended {
                // Both have said all of it.
                true => self.lose(key, "closed".to_string()),
                false => self.driver.finish(key),
            }
        }
    }

    fn leave(&mut self, key: Key) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.phase == Phase::Standing) else {
            return;
        };
        link.phase = Phase::Leaving { by: self.now.plus_us(END_US), finished: false };
        self.timed.push(key);
        if self.paused {
            // What the peer still says is read, and dropped.
            self.driver.resume(key);
        }
        self.send_on(key);
    }

    /// What is being made for that peer, or stands, goes; a look-up of its name is of no interest any more.
    fn undial(&mut self, number: usize) {
        self.dials.remove(number);
        let of_it = self.links.iter().filter(|(_, link)| link.dial == Some(number)).map(|(key, _)| key);
        for key in of_it.collect::<Vec<_>>() {
            match self.links.get(key).map(|link| &link.phase) {
                Some(Phase::Opening { .. }) => self.close(key, None),
                _ => self.leave(key),
            }
        }
    }

    // From the driver -------------------------------------------------------------------------------------

    fn take_completions(&mut self) {
        while let Some((key, event)) = self.driver.next() {
            if let NetEvent::Accepted(accepted) = event {
                self.accepted(accepted);
                continue;
            }
            let link = self.links.get_mut(key).expect("the driver speaks of links that were asked for");
            match (&mut link.phase, event) {
                (Phase::Closing { why }, NetEvent::Closed) => {
                    let why = why.take();
                    self.closed(key, why);
                }
                // What comes after we let go is of no interest.
                (Phase::Closing { .. }, _) => {}
                (Phase::Opening { .. }, NetEvent::Connected) => {
                    let peer = link.peer;
                    let dial = link.dial;
                    let line = dial.and_then(|dial| self.dials.change(dial, |dial| dial.stands(peer)));
                    if let Some(line) = line.flatten() {
                        self.notices.tell(Event::LinkStands, vec![("peer", peer.into())], line);
                    }
                    self.stand(key, peer, dial);
                }
                (Phase::Opening { .. }, NetEvent::Failed(error)) => self.attempt_failed(key, &error),
                (Phase::Opening { .. }, NetEvent::Ended) => self.attempt_failed(key, &NetError::Reset),
                (Phase::Standing, NetEvent::Received(bytes)) => {
                    link.received = true;
                    let bytes = bytes.to_vec();
                    self.tell(LinkEvent::Bytes { link: key, bytes });
                }
                (_, NetEvent::Sent(_)) => {
                    if link.untold_bytes == 0 {
                        self.sent.push_back(key);
                    }
                    link.sent();
                    self.send_on(key);
                }
                (Phase::Standing, NetEvent::Ended) if self.answers_end => {
                    if !std::mem::replace(&mut link.has_ended, true) {
                        self.tell(LinkEvent::Ended { link: key });
                    }
                }
                (_, NetEvent::Ended) => self.lose(key, "closed by the peer".to_string()),
                (_, NetEvent::Failed(error)) => self.lose(key, error.to_string()),
                // What a peer says that was let go.
                (_, NetEvent::Received(_)) => {}
                (_, NetEvent::Connected | NetEvent::Closed | NetEvent::Accepted(_)) => {
                    unreachable!("the driver reports in order")
                }
            }
        }
    }

    fn accepted(&mut self, accepted: Result<Box<Accepted>, NetError>) {
        // Without descriptors or memory it is tried again in a while.
        self.accept_at = Some(if accepted.is_ok() { self.now } else { self.now.plus_us(STUCK_US) });
        let Ok(Accepted { socket, peer }) = accepted.map(|accepted| *accepted) else {
            return;
        };
        match self.links.insert(Link::new(peer, None, Phase::Standing)) {
            Some(key) => {
                self.driver.adopt(key, socket);
                self.stand(key, peer, None);
            }
            None => {
                self.driver.refuse(socket);
                if !std::mem::replace(&mut self.said_full, true) {
                    let count = self.links.len();
                    let text = format!("all {count} links are in use: {peer} and others are turned away");
                    let fields = vec![("peer", peer.into()), ("links", count.into())];
                    self.notices.tell(Event::LinksFull, fields, text);
                }
            }
        }
        self.accept();
    }

    /// Asks for the next connection, if the owner has room to hear of it.
    fn accept(&mut self) {
        if !self.paused && self.accept_at.take_if(|at| *at <= self.now).is_some() {
            self.driver.accept(LISTENER);
        }
    }

    fn stand(&mut self, key: Key, peer: SocketAddr, dial: Option<usize>) {
        if let Some(link) = self.links.get_mut(key) {
            link.phase = Phase::Standing;
        }
        if self.paused {
            self.driver.pause(key);
        }
        self.tell(LinkEvent::Up { link: key, peer, dial });
    }

    /// A link is of no more use. Of one that was let go that is the reason, however it ends.
    fn lose(&mut self, key: Key, why: String) {
        let is_left = self.links.get(key).is_some_and(|link| matches!(link.phase, Phase::Leaving { .. }));
        self.close(key, Some(if is_left { "closed".to_string() } else { why }));
    }

    fn close(&mut self, key: Key, why: Option<String>) {
        if let Some(link) = self.links.get_mut(key) {
            link.phase = Phase::Closing { why };
            self.driver.close(key);
        }
    }

    fn closed(&mut self, key: Key, why: Option<String>) {
        let link = self.links.remove(key).expect("it was open until now");
        if let Some(why) = why {
            if link.untold_bytes > 0 {
                self.tell(LinkEvent::Sent { link: key, bytes: link.untold_bytes });
            }
            self.tell(LinkEvent::Down { link: key, why });
            // Not before, so that the owner hears of one link at a time.
            if let Some(number) = link.dial {
                self.dials.change(number, |dial| dial.lost(link.received, self.now, &mut self.rng));
            }
        }
    }

    // Dialing ---------------------------------------------------------------------------------------------

    /// Dials whoever is due.
    fn dial(&mut self) {
        for number in self.dials.due(self.now) {
            self.resolve(number);
        }
    }

    /// Gives up what takes too long.
    fn give_up_overdue(&mut self) {
        for key in std::mem::take(&mut self.timed) {
            match self.links.get(key).map(|link| &link.phase) {
                Some(Phase::Opening { by } | Phase::Leaving { by, .. }) if *by > self.now => {
                    self.timed.push(key)
                }
                Some(Phase::Opening { .. }) => self.attempt_failed(key, &NetError::TimedOut),
                Some(Phase::Leaving { .. }) => self.lose(key, "closed".to_string()),
                _ => {}
            }
        }
    }

    /// An address is dialed at once; a name is looked up where waiting for it holds nobody up.
    fn resolve(&mut self, number: usize) {
        let Some(address) = self.dials.get(number).map(|dial| dial.address.clone()) else { return };
        if let Ok(addr) = address.parse() {
            return self.connect(number, addr);
        }
        if self.names_open >= LINK_NAMES_MAX {
            let until = self.now.plus_us(NAME_US);
            self.dials.change(number, |dial| dial.state = DialState::Resting { until });
            return;
        }
        self.dials.change(number, |dial| dial.state = DialState::Resolving);
        let (answers, bell) = (self.resolver.clone(), self.driver.bell());
        let spawned = std::thread::Builder::new().name("links-name".to_string()).spawn(move || {
            let found = address.to_socket_addrs().map(Iterator::collect);
            let _ = answers.send((number, found));
            bell.ring();
        });
        match spawned {
            Ok(_) => self.names_open += 1,
            Err(e) => self.dial_failed(number, &e),
        }
    }

    fn take_resolved(&mut self) {
        while let Ok((number, found)) = self.resolved.try_recv() {
            self.names_open -= 1;
            let Some(attempts) = self.dials.get(number).map(|dial| dial.attempts) else { continue };
            match found {
                Ok(addrs) if !addrs.is_empty() => {
                    let addr = addrs[attempts % addrs.len()];
                    self.connect(number, addr);
                }
                Ok(_) => self.dial_failed(number, &"the name has no address"),
                Err(e) => self.dial_failed(number, &e),
            }
        }
    }

    fn connect(&mut self, number: usize, addr: SocketAddr) {
        if self.dials.change(number, |dial| dial.attempts += 1).is_none() {
            return;
        }
        let phase = Phase::Opening { by: self.now.plus_us(CONNECT_US) };
        match self.links.insert(Link::new(addr, Some(number), phase)) {
            Some(link) => {
                self.dials.change(number, |dial| dial.state = DialState::Linked);
                self.timed.push(link);
                self.driver.connect(link, addr, Transport::Link);
            }
            None => self.dial_failed(number, &"too many links stand already"),
        }
    }

    fn attempt_failed(&mut self, key: Key, cause: &dyn Display) {
        if let Some(number) = self.links.get(key).and_then(|link| link.dial) {
            self.dial_failed(number, cause);
        }
        self.close(key, None);
    }

    fn dial_failed(&mut self, number: usize, cause: &dyn Display) {
        let failed =
            |dial: &mut Dial| Some((dial.failed(cause, self.now, &mut self.rng)?, dial.address.clone()));
        if let Some((line, address)) = self.dials.change(number, failed).flatten() {
            let fields = vec![("peer", address.into()), ("cause", cause.to_string().into())];
            self.notices.tell(Event::LinkFails, fields, line);
        }
    }

    // To the owner ----------------------------------------------------------------------------------------

    /// Tells the owner, now or when it has room. Until it has, nothing more is received.
    fn tell(&mut self, event: LinkEvent) {
        if self.untold.is_empty() {
            match self.events.push(event) {
                Ok(()) => return,
                Err(event) => self.untold.push_back(event),
            }
        } else {
            self.untold.push_back(event);
        }
        if !std::mem::replace(&mut self.paused, true) {
            self.standing().into_iter().for_each(|key| self.driver.pause(key));
        }
    }

    /// Tells what is untold, as far as there is room.
    fn tell_on(&mut self) {
        while let Some(event) = self.untold.pop_front() {
            if let Err(event) = self.events.push(event) {
                return self.untold.push_front(event);
            }
        }
        while self.events.room() > 0
            && let Some(key) = self.sent.pop_front()
        {
            if let Some(link) = self.links.get_mut(key) {
                let bytes = std::mem::take(&mut link.untold_bytes);
                if bytes > 0 {
                    self.tell(LinkEvent::Sent { link: key, bytes });
                }
            }
        }
        if self.paused && self.events.room() >= ROOM_AGAIN {
            self.paused = false;
            self.standing().into_iter().for_each(|key| self.driver.resume(key));
        }
    }

    fn standing(&self) -> Vec<Key> {
        let standing = self.links.iter().filter(|(_, link)| link.phase == Phase::Standing);
        standing.map(|(key, _)| key).collect()
    }
}

impl<D: ServerDriver> Actor for Links<D> {
    fn turn(&mut self, now: Now) -> Turned {
        self.now = now;
        self.take_commands();
        self.take_completions();
        self.give_up_overdue();
        self.tell_on();
        if self.end_by.is_none() && !self.paused {
            self.take_resolved();
            self.dial();
            self.accept();
        }
        self.owner.ring_if_asleep();
        Turned::finished_if(self.end_by.is_some_and(|by| self.links.is_empty() || by <= now))
    }

    fn next_due(&self) -> Option<Now> {
        let links = self.timed.iter().filter_map(|&key| match self.links.get(key)?.phase {
            Phase::Opening { by } | Phase::Leaving { by, .. } => Some(by),
            Phase::Standing | Phase::Closing { .. } => None,
        });
        let is_stuck = self.paused || !self.sent.is_empty();
        let due = links.chain(self.end_by).chain(is_stuck.then(|| self.now.plus_us(STUCK_US))).min();
        if is_stuck || self.end_by.is_some() {
            return due;
        }
        self.dials.next_due().into_iter().chain(self.accept_at).chain(due).min()
    }

    fn has_messages(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Hands out what is still to be sent, says goodbye and waits for the peers to hang up.
    fn end(&mut self, now: Now) {
        self.now = now;
        self.take_commands();
        self.end_by = Some(now.plus_us(END_US));
        if self.listens {
            self.accept_at = None;
            self.driver.unlisten(LISTENER);
        }
        for key in self.links.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            match self.links.get(key).map(|link| &link.phase) {
                Some(Phase::Opening { .. }) => self.close(key, None),
                _ => self.leave(key),
            }
        }
    }
}

impl<D: ServerDriver> Networked for Links<D> {
    type Net = D;

    fn driver(&mut self) -> &mut D {
        &mut self.driver
    }
}
