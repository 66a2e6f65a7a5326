use super::dialing::Dialing;
use super::introduction::Introduction;
use super::peer_event::{Peer, PeerEvent, PeerOwner};
use super::refusals::Refusals;
use super::wire::{Stage, Wire};
use crate::base::{Key, Now, SortedMap, shown};
use crate::engine::links::{LinkEvent, LinkPort};
use crate::limits::{LINK_OUT_BYTES_MAX, LINK_RING_WORDS, PEER_UNSENT_MAX, PEER_WHY_BYTES_MAX};
use crate::proto::peer_tls::NodeIdentity;
use crate::proto::peer_wire::{FrameBuffer, Hello, PeerWord};
use std::cmp::Ordering;
use std::net::SocketAddr;

/// The links of a node to the others of its cluster. It has no clock and no thread: its owner calls [`Wires::take`] when there
/// are messages or time has come, and [`Wires::flush`] when it has sent.
pub struct Wires {
    port: LinkPort,
    identity: Option<NodeIdentity>,
    me: Introduction,
    /// By the index of their keys.
    wires: Vec<Option<Box<Wire>>>,
    /// The link that stands with each node that has a number.
    nodes: SortedMap<u16, Key>,
    dialing: Dialing,
    refusals: Refusals,
    /// Links with something to send.
    dirty: Vec<Key>,
    /// Links that are given up between two calls of `take`, and why.
    lost: Vec<(Key, String)>,
    /// Who we are has changed: every link begins anew.
    is_new: bool,
    /// Memory for what is put next.
    spare: Vec<u8>,
    /// The time of the last `take`.
    now: Now,
    /// No wire has to be looked at before.
    due: Now,
}

/// How a wire ends.
enum End {
    /// The links thread says so.
    Down(String),
    /// It cannot go on.
    Fault(String),
    /// Its peer is told why.
    Refused(String),
    /// Its peer told us why.
    RefusedByPeer(String),
    /// A link with the same node stands.
    Spare,
    /// A newer link with the same node comes to stand.
    Replaced,
    /// The peer is this node.
    Ours,
    /// The owner wants it.
    LetGo,
}

/// A peer has this long for its HELLO, and again for its first word.
const GREETING_US: u64 = 10_000_000;
/// After this long something is said, whatever it is.
const QUIET_US: u64 = 15_000_000;
/// A peer of which nothing is heard is let go.
const SILENCE_US: u64 = 30_000_000;
/// An address is dialed again after its peer was refused, and after a link to it went otherwise.
const REFUSED_PAUSE_US: u64 = 10_000_000;
const GONE_PAUSE_US: u64 = 1_000_000;
/// A link that came to stand within this time was made while the peer dialed another. Later a peer dials us only if it has
/// lost the one that we have.
const AT_ONCE_US: u64 = 5_000_000;
/// An owner that comes later than this after the time it was told was held up.
const LATE_US: u64 = 2_000_000;
/// So much is encrypted at a time, at least where there is so much.
const FLUSH_BYTES: usize = 64 * 1_024;

impl Wires {
    /// Takes the links of a port that tells no `Ended`. Without an identity nothing is encrypted: for a simulated network.
    /// The texts of an introduction are within the bounds of a [`Hello`].
    pub fn new(port: LinkPort, identity: Option<NodeIdentity>, me: Introduction) -> Wires {
        Wires {
            port,
            identity,
            me,
            wires: Vec::new(),
            nodes: SortedMap::new(),
            dialing: Dialing::default(),
            refusals: Refusals::default(),
            dirty: Vec::new(),
            lost: Vec::new(),
            is_new: false,
            spare: Vec::new(),
            now: Now::ZERO,
            due: Now::NEVER,
        }
    }

    // What the owner asks for -----------------------------------------------------------------------------

    /// Looks for a node at `host:port`, until `undial`. Whether there is room for one more.
    pub fn dial(&mut self, address: &str) -> bool {
        self.dialing.add(address, &mut self.port)
    }

    /// Looks for no node there, and lets the link go that was made so.
    pub fn undial(&mut self, address: &str) {
        self.dialing.remove(address, &mut self.port);
    }

    /// Says from here on who this node is. With another number or generation, every link begins anew.
    pub fn introduce(&mut self, me: Introduction) {
        self.is_new |= (me.node, me.generation) != (self.me.node, self.me.generation);
        self.me = me;
    }

    /// The epoch of the table that is known here.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.me.epoch = epoch;
    }

    /// The node of that number, if a link with it stands.
    pub fn peer(&self, node: u16) -> Option<Peer> {
        self.nodes.get(&node).map(|&link| Peer { link, node })
    }

    /// Puts a word on its way; it goes with `flush`. Whether there is a link: if there is not, a `Down` was told or will be.
    pub fn send(&mut self, peer: Peer, word: &PeerWord<'_>) -> bool {
        self.put(peer, |wire, now| wire.put(word, now))
    }

    /// The same to several, made once.
    pub fn send_all(&mut self, peers: &[Peer], word: &PeerWord<'_>) {
        let mut frame = Vec::new();
        if !peers.is_empty() {
            word.write(&mut frame);
        }
        for peer in peers {
            self.put(*peer, |wire, now| wire.put_frame(&frame, now));
        }
    }

    fn put(&mut self, peer: Peer, put: impl FnOnce(&mut Wire, Now)) -> bool {
        let (now, mut spare) = (self.now, std::mem::take(&mut self.spare));
        if let Some(wire) = self.standing(peer.link) {
            wire.lend(&mut spare);
        }
        self.spare = spare;
        let Some(wire) = self.standing(peer.link) else { return false };
        put(wire, now);
        let (unsent, unflushed) = (wire.unsent(), wire.unflushed());
        if unsent > LINK_OUT_BYTES_MAX {
            wire.is_lost = true;
            self.lost.push((peer.link, format!("it does not read: {unsent} bytes wait")));
            return false;
        }
        if unflushed >= FLUSH_BYTES {
            self.flush_one(peer.link);
        } else if self.dirty.last() != Some(&peer.link) {
            self.dirty.push(peer.link);
        }
        true
    }

    /// Whether a peer is to be given more of what can wait.
    pub fn has_room(&self, peer: Peer) -> bool {
        let wire = self.get(peer.link).filter(|wire| wire.is_standing() && !wire.is_lost);
        wire.is_some_and(|wire| wire.unsent() < PEER_UNSENT_MAX)
    }

    /// Tells a peer why no link with it is wanted any more, and lets it go. Nothing more is told of it.
    pub fn refuse(&mut self, peer: Peer, why: &str) {
        if let Some(mut wire) = self.remove(peer.link) {
            wire.put(&PeerWord::Refused { why }, self.now);
            self.end(wire, End::LetGo, &mut Nobody);
        }
    }

    /// Hands everything that was sent to the links thread.
    pub fn flush(&mut self) {
        for key in std::mem::take(&mut self.dirty) {
            self.flush_one(key);
        }
    }

    /// When `take` must be called, if nothing happens before.
    pub fn next_due(&self) -> Option<Now> {
        let due = (self.due != Now::NEVER).then_some(self.due);
        let at_once = (self.is_new || !self.lost.is_empty()).then_some(self.now);
        due.into_iter().chain(at_once).chain(self.dialing.next_due()).min()
    }

    pub fn has_messages(&self) -> bool {
        !self.port.is_empty() || self.is_new || !self.lost.is_empty()
    }

    /// Tells what happened. As many events are looked at as the ring has room for, so that an owner gets to do other things.
    pub fn take(&mut self, now: Now, owner: &mut dyn PeerOwner) {
        self.forgive(now);
        self.now = now;
        if std::mem::take(&mut self.is_new) {
            self.begin_anew(owner);
        }
        for _ in 0..LINK_RING_WORDS {
            match self.port.next() {
                Some(event) => self.take_one(event, owner),
                None => break,
            }
        }
        for (key, why) in std::mem::take(&mut self.lost) {
            if let Some(wire) = self.remove(key) {
                self.end(wire, End::Fault(why), owner);
            }
        }
        if now >= self.due {
            self.look_at_all(owner);
        }
        self.dialing.dial(now, &mut self.port);
        self.flush();
    }

    // From the links --------------------------------------------------------------------------------------

    fn take_one(&mut self, event: LinkEvent, owner: &mut dyn PeerOwner) {
        match event {
            LinkEvent::Up { link, peer, dial } => self.up(link, peer, dial, owner),
            LinkEvent::Bytes { link, bytes } => {
                let Some(mut wire) = self.remove(link) else { return };
                match self.received(&mut wire, &bytes, owner) {
                    Ok(()) => {
                        self.insert(wire);
                        self.dirty.push(link);
                    }
                    Err(end) => self.end(wire, end, owner),
                }
            }
            LinkEvent::Sent { link, bytes } => {
                if let Some(wire) = self.get_mut(link) {
                    wire.sent(bytes);
                }
            }
            LinkEvent::Ended { link } => {
                if let Some(wire) = self.remove(link) {
                    self.end(wire, End::Down("closed by the peer".to_string()), owner);
                }
            }
            LinkEvent::Down { link, why } => {
                if let Some(wire) = self.remove(link) {
                    self.end(wire, End::Down(why), owner);
                }
            }
        }
    }

    fn up(&mut self, link: Key, peer: SocketAddr, dial: Option<usize>, owner: &mut dyn PeerOwner) {
        let by = self.now.plus_us(GREETING_US);
        match Wire::new(link, peer, dial, self.identity.as_ref(), (self.now, by)) {
            Ok(mut wire) => {
                wire.put(&PeerWord::Hello(self.me.hello()), self.now);
                self.insert(Box::new(wire));
                self.dirty.push(link);
                self.due = self.due.min(by);
            }
            Err(fault) => {
                let address = self.address_of(dial, None, peer);
                self.tell_refused(&address, &fault.to_string(), true, owner);
                self.port.close(link);
            }
        }
    }

    fn received(&mut self, wire: &mut Wire, bytes: &[u8], owner: &mut dyn PeerOwner) -> Result<(), End> {
        let pushed = wire.push(bytes, self.now);
        // So that words are borrowed from the frames while the wire changes.
        let mut frames = std::mem::take(&mut wire.frames);
        let read = self.read(wire, &mut frames, owner);
        wire.frames = frames;
        read?;
        pushed.map_err(|fault| End::Fault(fault.to_string()))
    }

    fn read(
        &mut self,
        wire: &mut Wire,
        frames: &mut FrameBuffer,
        owner: &mut dyn PeerOwner,
    ) -> Result<(), End> {
        while let Some(frame) = frames.next_frame().map_err(unreadable)? {
            match (&wire.stage, frame.word().map_err(unreadable)?) {
                (_, PeerWord::Refused { why }) => return Err(End::RefusedByPeer(why.to_string())),
                (Stage::Greeting { .. }, PeerWord::Hello(hello)) => self.met(wire, &hello, owner)?,
                (Stage::Greeting { .. }, word) => {
                    return Err(End::Fault(format!("it says {} before HELLO", word.kind())));
                }
                (_, PeerWord::Hello(_)) => return Err(End::Fault("it says HELLO twice".to_string())),
                (Stage::Met { .. }, word) => {
                    self.accepted(wire, owner)?;
                    owner.take(PeerEvent::Word { peer: wire.peer(), word });
                }
                (Stage::Standing { .. }, word) => owner.take(PeerEvent::Word { peer: wire.peer(), word }),
            }
        }
        Ok(())
    }

    /// The peer said who it is. If this node does not decide which link is kept, it speaks first.
    fn met(&mut self, wire: &mut Wire, hello: &Hello<'_>, owner: &mut dyn PeerOwner) -> Result<(), End> {
        let peer = Introduction::of(hello);
        let by = self.now.plus_us(GREETING_US);
        wire.stage = Stage::Met { by, peer: Box::new(peer.clone()) };
        if let Some(number) = wire.dial {
            self.dialing.met(number, peer.node);
        }
        if self.me.is(&peer) {
            return Err(End::Ours);
        }
        if let Some(difference) = self.me.difference(&peer) {
            return Err(End::Refused(difference));
        }
        owner.judge(hello).map_err(End::Refused)?;
        match self.standing_with(&peer) {
            Some((Ordering::Less, _)) => return Err(self.too_old(&peer)),
            // We looked for a node at one more of its addresses.
            Some((Ordering::Equal, _)) if wire.dial.is_some() => return Err(End::Spare),
            _ => {}
        }
        if !self.me.decides(&peer, wire.dial.is_some()) {
            wire.put(&PeerWord::TableAsk { epoch_known: self.me.epoch }, self.now);
        }
        Ok(())
    }

    /// The peer spoke behind its HELLO: it accepts ours and, if it decides, keeps this link.
    fn accepted(&mut self, wire: &mut Wire, owner: &mut dyn PeerOwner) -> Result<(), End> {
        let Some(peer) = wire.introduction().cloned() else { return Ok(()) };
        let decides = self.me.decides(&peer, wire.dial.is_some());
        match self.standing_with(&peer) {
            Some((Ordering::Less, _)) => return Err(self.too_old(&peer)),
            Some((Ordering::Equal, since)) if decides && self.now.since_us(since) < AT_ONCE_US => {
                return Err(End::Spare);
            }
            Some(_) => {
                let other = self.nodes.get(&peer.node).copied();
                if let Some(other) = other.and_then(|key| self.remove(key)) {
                    self.end(other, End::Replaced, owner);
                }
            }
            None => {}
        }
        if decides {
            wire.put(&PeerWord::TableAsk { epoch_known: self.me.epoch }, self.now);
        }
        if peer.node != 0 {
            self.nodes.insert(peer.node, wire.key);
        }
        self.dialing.stands(peer.node, &peer.listen, wire.dial, &mut self.port);
        for address in [
            self.address_of(wire.dial, None, wire.address),
            self.address_of(None, Some(&peer), wire.address),
            self.address_of(None, None, wire.address),
        ] {
            self.refusals.forget(&address);
        }
        let peer = Box::new(peer);
        wire.stage = Stage::Standing { since: self.now, peer: peer.clone() };
        self.due = self.due.min(self.now.plus_us(QUIET_US));
        owner.take(PeerEvent::Up { peer: wire.peer(), hello: peer.hello(), address: wire.address });
        Ok(())
    }

    /// Whether a link with that node stands: how the generation of the peer compares with it, and since when it stands.
    fn standing_with(&self, peer: &Introduction) -> Option<(Ordering, Now)> {
        match &self.get(*self.nodes.get(&peer.node)?)?.stage {
            Stage::Standing { since, peer: other } => Some((peer.generation.cmp(&other.generation), *since)),
            Stage::Greeting { .. } | Stage::Met { .. } => None,
        }
    }

    fn too_old(&self, peer: &Introduction) -> End {
        let Introduction { node, generation, .. } = peer;
        End::Refused(format!(
            "node {node} is linked in a later generation than {generation}: is it started twice?"
        ))
    }

    // The end of a wire -----------------------------------------------------------------------------------

    /// Ends a wire that was taken out.
    fn end(&mut self, mut wire: Box<Wire>, end: End, owner: &mut dyn PeerOwner) {
        if let End::Refused(why) = &end {
            wire.put(&PeerWord::Refused { why }, self.now);
        }
        self.port.send(wire.key, wire.close());
        self.port.close(wire.key);
        // Before the dial is forgotten.
        let address = self.address_of(wire.dial, wire.introduction(), wire.address);
        self.redial(&wire, &end);
        let (why, by_us) = match end {
            End::Down(why) => (why, None),
            End::Fault(why) | End::Refused(why) => (why, Some(true)),
            End::RefusedByPeer(why) => (why, Some(false)),
            End::Replaced => ("a newer link with it stands".to_string(), None),
            End::Spare | End::Ours | End::LetGo => (String::new(), None),
        };
        let why = shown(&why, PEER_WHY_BYTES_MAX);
        let peer = wire.peer();
        if wire.is_standing() {
            if self.nodes.get(&peer.node) == Some(&wire.key) {
                self.nodes.remove(&peer.node);
            }
            self.dialing.gone(peer.node, self.now.plus_us(GONE_PAUSE_US));
            match by_us {
                Some(false) => {
                    owner.take(PeerEvent::Down { peer, why: &format!("it refuses this node: {why}") })
                }
                _ => owner.take(PeerEvent::Down { peer, why: &why }),
            }
        } else if let Some(by_us) = by_us {
            self.tell_refused(&address, &why, by_us, owner);
        }
    }

    /// Says when the address is dialed again that led to a wire, where that is not what the port does by itself.
    fn redial(&mut self, wire: &Wire, end: &End) {
        let Some(number) = wire.dial else { return };
        let us = match end {
            End::Spare | End::Replaced => return self.dialing.cover(number, &mut self.port),
            End::Ours => return self.dialing.is_ours(number, &mut self.port),
            // It makes its pauses longer by itself.
            End::Down(_) if wire.is_standing() || !wire.has_heard => return,
            End::Down(_) => GONE_PAUSE_US,
            End::Fault(_) if wire.is_standing() => GONE_PAUSE_US,
            End::Fault(_) | End::Refused(_) | End::RefusedByPeer(_) | End::LetGo => REFUSED_PAUSE_US,
        };
        self.dialing.rest(number, self.now.plus_us(us), &mut self.port);
    }

    fn tell_refused(&mut self, address: &str, why: &str, by_us: bool, owner: &mut dyn PeerOwner) {
        if self.refusals.is_news(address, why, by_us) {
            owner.take(PeerEvent::Refused { address, why, by_us });
        }
    }

    /// How a peer is called that has no link: as dialed, as it says, or by where it comes from.
    fn address_of(&self, dial: Option<usize>, peer: Option<&Introduction>, from: SocketAddr) -> String {
        let dialed = dial.and_then(|number| self.dialing.address(number)).map(str::to_string);
        let said = || peer.map(|peer| shown(&peer.listen, PEER_WHY_BYTES_MAX));
        dialed.or_else(said).unwrap_or_else(|| from.ip().to_string())
    }

    // Time ------------------------------------------------------------------------------------------------

    /// Time in which the owner did not look is not counted as the peers' silence.
    fn forgive(&mut self, now: Now) {
        let late_us = now.since_us(self.due);
        if late_us > LATE_US {
            self.wires.iter_mut().flatten().for_each(|wire| wire.forgive(late_us));
        }
    }

    fn look_at_all(&mut self, owner: &mut dyn PeerOwner) {
        let mut due = Now::NEVER;
        for index in 0..self.wires.len() {
            let Some(mut wire) = self.wires[index].take() else { continue };
            match self.look_at(&mut wire) {
                Ok(wire_due) => {
                    due = due.min(wire_due);
                    self.insert(wire);
                }
                Err(why) => self.end(wire, End::Fault(why), owner),
            }
        }
        self.due = due;
    }

    /// When to look again, or why it is over.
    fn look_at(&mut self, wire: &mut Wire) -> Result<Now, String> {
        let now = self.now;
        match wire.stage {
            Stage::Greeting { by } if by <= now => {
                Err(format!("it says no HELLO within {} s", GREETING_US / 1_000_000))
            }
            Stage::Met { by, .. } if by <= now => {
                Err(format!("it says nothing within {} s after HELLO", GREETING_US / 1_000_000))
            }
            Stage::Greeting { by } | Stage::Met { by, .. } => Ok(by),
            Stage::Standing { .. } => {
                let silent_at = wire.heard_at.plus_us(SILENCE_US);
                if silent_at <= now {
                    return Err(format!("it is silent for {} s", SILENCE_US / 1_000_000));
                }
                if wire.said_at.plus_us(QUIET_US) <= now {
                    wire.put(&PeerWord::TableAsk { epoch_known: self.me.epoch }, now);
                    self.dirty.push(wire.key);
                }
                Ok(silent_at.min(wire.said_at.plus_us(QUIET_US)))
            }
        }
    }

    fn begin_anew(&mut self, owner: &mut dyn PeerOwner) {
        self.dialing.begin_anew(self.now);
        for index in 0..self.wires.len() {
            if let Some(wire) = self.wires[index].take() {
                self.end(wire, End::Down("this node introduces itself anew".to_string()), owner);
            }
        }
    }

    // Places ----------------------------------------------------------------------------------------------

    /// Links with the others, told or not.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.wires.iter().flatten().count()
    }

    fn flush_one(&mut self, key: Key) {
        let mut spare = std::mem::take(&mut self.spare);
        let flushed = self.get_mut(key).map(|wire| wire.flush(&mut spare));
        self.spare = spare;
        match flushed {
            Some(Ok(bytes)) => self.port.send(key, bytes),
            Some(Err(fault)) => {
                if let Some(wire) = self.get_mut(key) {
                    wire.is_lost = true;
                }
                self.lost.push((key, fault.to_string()));
            }
            None => {}
        }
    }

    fn insert(&mut self, wire: Box<Wire>) {
        let index = wire.key.index();
        if self.wires.len() <= index {
            self.wires.resize_with(index + 1, || None);
        }
        self.wires[index] = Some(wire);
    }

    fn remove(&mut self, key: Key) -> Option<Box<Wire>> {
        self.wires.get_mut(key.index())?.take_if(|wire| wire.key == key)
    }

    fn get(&self, key: Key) -> Option<&Wire> {
        self.wires.get(key.index())?.as_deref().filter(|wire| wire.key == key)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Wire> {
        self.wires.get_mut(key.index())?.as_deref_mut().filter(|wire| wire.key == key)
    }

    fn standing(&mut self, key: Key) -> Option<&mut Wire> {
        self.get_mut(key).filter(|wire| wire.is_standing() && !wire.is_lost)
    }
}

fn unreadable(error: impl std::fmt::Display) -> End {
    End::Fault(error.to_string())
}

/// Hears nothing.
struct Nobody;

impl PeerOwner for Nobody {
    fn judge(&mut self, _: &Hello<'_>) -> Result<(), String> {
        Ok(())
    }

    fn take(&mut self, _: PeerEvent<'_>) {}
}
