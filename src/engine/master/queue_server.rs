use super::messages::{NodeReport, Said, ToNodes};
use super::node_link::{NodeLink, Take};
use super::peer_link::PeerLink;
use crate::base::{Key, Now, SortedMap, Wall, shown};
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::master_status::{MasterBoard, Neighbour};
use crate::engine::runtime::notices::Notices;
use crate::limits::{HANDED_BYTES_MAX, LINK_UNSENT_MAX, MASTER_LINE_BYTES_MAX, TAKE_ENTRIES_MAX};
use crate::master::queue::{QueueError, QueueReader};
use crate::proto::lines::{Handed, LineBuffer, MasterWord, NodeWord, TakeFrom};
use crate::rings::{Doorbell, Receiver, Sender};
use std::sync::Arc;

/// Speaks with nodes: gives each the entries of its queue, and hears what it has and what waits with it.
pub(crate) struct QueueServer {
    parts: QueueServerParts,
    /// By [`Key::pack`], so that they are served in one order each time.
    links: SortedMap<u64, NodeLink>,
    seats: SortedMap<u16, Seat>,
    /// The link to the other master, while it stands.
    peer: Option<PeerLink>,
    /// By what this master deals domains.
    terms: u64,
    turned_at: Now,
    /// The board was written at this time.
    shown_at: Option<Now>,
    ends: bool,
}

pub(crate) struct QueueServerParts {
    pub port: LinkPort,
    pub news: Receiver<ToNodes>,
    pub reports: Sender<NodeReport>,
    /// Of whoever takes the reports.
    pub owner: Arc<Doorbell>,
    pub config: LiveConfig,
    pub board: MasterBoard,
    pub notices: Notices,
    pub counters: Arc<Counters>,
    pub wall: Wall,
}

/// The queue of a server, and who takes from it.
struct Seat {
    reader: QueueReader,
    /// The link that speaks for it, by its packed key.
    holder: Option<u64>,
    pending: Option<u64>,
}

/// A TAKE at the end of a queue is answered after this long, whether something came or not.
const WAIT_US: u64 = 1_000_000;
/// Bytes that are read from a queue at once.
const PIECE_BYTES: usize = 256 << 10;
/// Asks of one link that wait for their turn.
const ASKS_MAX: usize = 16;
const EVENTS_PER_TURN: usize = 512;
/// The board is written this often.
const SHOW_US: u64 = 500_000;

/// Why a link is let go.
struct Refused(String);

impl QueueServer {
    pub fn new(parts: QueueServerParts) -> QueueServer {
        QueueServer {
            parts,
            links: SortedMap::new(),
            seats: SortedMap::new(),
            peer: None,
            terms: 0,
            turned_at: Now::ZERO,
            shown_at: None,
            ends: false,
        }
    }

    // From the epochs --------------------------------------------------------------------------------------

    fn take_news(&mut self) {
        while let Some(news) = self.parts.news.pop() {
            match news {
                // Whoever waits is looked at in any case.
                ToNodes::Committed => {}
                ToNodes::Servers { readers, terms } => {
                    self.seat(readers);
                    self.terms = terms;
                    self.peer.iter_mut().for_each(|peer| peer.hurry(self.turned_at));
                }
                ToNodes::Fenced { server, domain } => {
                    let holder = self.seats.get(&server).and_then(|seat| seat.holder);
                    if let Some(link) = holder.and_then(|holder| self.links.get(&holder)) {
                        let mut line = Vec::new();
                        let fits = MasterWord::Fenced { domain: &domain }.write(&mut line).is_ok();
                        debug_assert!(fits, "a domain goes into a line");
                        self.parts.port.send(link.key, line);
                    }
                }
            }
        }
    }

    fn seat(&mut self, readers: Vec<QueueReader>) {
        let before = std::mem::take(&mut self.seats);
        for reader in readers {
            let id = reader.server().0;
            let was = before.get(&id);
            let (holder, pending) = (was.and_then(|seat| seat.holder), was.and_then(|seat| seat.pending));
            self.seats.insert(id, Seat { reader, holder, pending });
        }
        for (id, seat) in before {
            if !self.seats.contains_key(&id)
                && let Some(link) = seat.holder.and_then(|holder| self.links.get(&holder))
            {
                let key = link.key;
                self.refuse(key, format!("server {id} is not configured any more"));
            }
        }
    }

    // From nodes -------------------------------------------------------------------------------------------

    fn take_event(&mut self, event: LinkEvent, now: Now) {
        match event {
            LinkEvent::Up { link, peer, dial: Some(_) } => {
                self.peer = Some(PeerLink::new(link, now));
                self.peer_is(true, None, now, peer.to_string());
            }
            LinkEvent::Up { link, peer, dial: None } => {
                self.links.insert(link.pack(0), NodeLink::new(link, peer, now));
            }
            LinkEvent::Bytes { link, bytes } if self.peer.as_ref().is_some_and(|peer| peer.key == link) => {
                match self.peer.as_mut().map(|peer| peer.hear(&bytes, now)) {
                    Some(Ok(Some(terms))) => self.peer_goes_by(terms),
                    Some(Err(cause)) => self.leave_peer(cause, now),
                    _ => {}
                }
            }
            LinkEvent::Bytes { link, bytes } => {
                let Some(found) = self.links.get_mut(&link.pack(0)) else { return };
                found.heard_at = now;
                found.lines.push(&bytes);
                // Out of the link while its lines are read: a line may end the link.
                let mut lines =
                    std::mem::replace(&mut found.lines, LineBuffer::of_lines(MASTER_LINE_BYTES_MAX));
                let read = self.read_lines(link, &mut lines, now);
                if let Some(found) = self.links.get_mut(&link.pack(0)) {
                    found.lines = lines;
                }
                if let Err(Refused(cause)) = read {
                    self.refuse(link, cause);
                }
            }
            LinkEvent::Sent { link, bytes } => {
                if let Some(found) = self.links.get_mut(&link.pack(0)) {
                    found.unsent = found.unsent.saturating_sub(bytes);
                }
            }
            LinkEvent::Ended { .. } => {}
            LinkEvent::Down { link, why } => {
                if self.peer.take_if(|peer| peer.key == link).is_some() {
                    self.peer_is(false, Some(why), now, String::new());
                } else {
                    self.leave(link, &why);
                }
            }
        }
    }

    fn peer_goes_by(&mut self, terms: u64) {
        if let Some(peer) = &mut self.parts.board.lock().peer {
            peer.agrees = Some(terms == self.terms);
        }
    }

    /// Lets go a master that does not speak as one; it is dialed again.
    fn leave_peer(&mut self, cause: String, now: Now) {
        if let Some(peer) = self.peer.take() {
            self.parts.port.close(peer.key);
            self.peer_is(false, Some(shown(&cause, 500)), now, String::new());
        }
    }

    /// Asks the other master by what it deals domains, if it is time.
    fn ask_peer(&mut self, now: Now) {
        let Some(peer) = &mut self.peer else { return };
        match peer.ask(self.terms, now) {
            Ok(Some(line)) => self.parts.port.send(peer.key, line),
            Ok(None) => {}
            Err(cause) => self.leave_peer(cause, now),
        }
    }

    fn peer_is(&mut self, is_there: bool, cause: Option<String>, now: Now, address: String) {
        let now_s = self.parts.wall.unix_ms(now) / 1_000;
        let mut board = self.parts.board.lock();
        let peer = board.peer.get_or_insert_with(|| Neighbour { address, ..Neighbour::default() });
        peer.note(is_there, cause, now_s);
    }

    fn read_lines(&mut self, link: Key, lines: &mut LineBuffer, now: Now) -> Result<(), Refused> {
        // Lines of one handover come in a row, and are handed on together.
        let mut handed: Option<(String, Vec<u8>)> = None;
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => return Err(self.bad_line(link, &error.to_string())),
            };
            let word = match NodeWord::parse(line) {
                Ok(word) => word,
                Err(error) => return Err(self.bad_line(link, &error.to_string())),
            };
            if let NodeWord::Hand { domain, handed: said } = word {
                self.count_handed(link, line.len())?;
                let (_, gathered) = match &mut handed {
                    Some(handed) if handed.0 == domain => handed,
                    slot => {
                        if let Some((domain, lines)) = slot.take() {
                            self.report(link, Said::Handed { domain, lines })?;
                        }
                        slot.insert((domain.to_string(), Vec::new()))
                    }
                };
                let (kind, line) = match said {
                    Handed::Url(line) => (&b"URL "[..], line),
                    Handed::Nice(line) => (&b"NICE "[..], line),
                };
                [kind, line, b"\n"].into_iter().for_each(|part| gathered.extend_from_slice(part));
                continue;
            }
            if let Some((domain, lines)) = handed.take() {
                self.report(link, Said::Handed { domain, lines })?;
            }
            self.take_word(link, word, now)?;
        }
        match handed {
            Some((domain, lines)) => self.report(link, Said::Handed { domain, lines }),
            None => Ok(()),
        }
    }

    /// A node that hands over more at once than there is memory for is refused before any of it is left out: it begins anew.
    fn count_handed(&mut self, link: Key, bytes: usize) -> Result<(), Refused> {
        let Some(found) = self.links.get_mut(&link.pack(0)) else { return Ok(()) };
        found.handed += bytes + 1;
        match found.handed > HANDED_BYTES_MAX {
            true => Err(Refused(format!(
                "a domain is handed over in parts of {HANDED_BYTES_MAX} bytes, each with its CLOSED"
            ))),
            false => Ok(()),
        }
    }

    fn take_word(&mut self, link: Key, word: NodeWord<'_>, now: Now) -> Result<(), Refused> {
        match word {
            NodeWord::Take { server, from, max, marked } => {
                let now_s = self.unix_s(now);
                let seat = self.hold(link, server, now)?;
                let next = match from {
                    TakeFrom::Seq(seq) => seq,
                    TakeFrom::Since(stamp) if stamp.is_credible(now_s) => seat.reader.seq_since(stamp),
                    // By a clock that was ahead: whatever is there may be missing.
                    TakeFrom::Since(_) => seat.reader.first_seq(),
                };
                let end = seat.reader.next_seq();
                if next > end {
                    let beyond = QueueError::Beyond { asked: next, next: end };
                    return Err(Refused(format!("the queue of server {server}: {beyond}")));
                }
                let left = u64::from(max.min(TAKE_ENTRIES_MAX));
                let take = Take { server, next, left, marked, gave: false, by: now.plus_us(WAIT_US) };
                let Some(found) = self.links.get_mut(&link.pack(0)) else { return Ok(()) };
                if found.asks.len() == ASKS_MAX {
                    return Err(Refused(format!("{ASKS_MAX} TAKEs wait for their answers already")));
                }
                found.asks.push_back(take);
                found.upto = Some(found.upto.unwrap_or(0).max(next));
            }
            NodeWord::Done { server, seq } => {
                let upto = self.links.get(&link.pack(0)).and_then(|link| link.upto);
                let seat = self.hold(link, server, now)?;
                if let Some(upto) = upto.filter(|upto| seq > *upto) {
                    return Err(Refused(format!(
                        "DONE {server} {seq}: entries were given up to {upto} only"
                    )));
                }
                let heard = seat.reader.done(seq);
                self.keeps_position(server, seq, heard)?;
            }
            NodeWord::Load { server, pending, mark } => {
                let now_s = self.unix_s(now);
                let seat = self.hold(link, server, now)?;
                seat.pending = Some(pending);
                if let Some(mark) = mark.filter(|mark| mark.is_credible(now_s)) {
                    let seq = seat.reader.had_elsewhere(mark);
                    let heard = seat.reader.done(seq);
                    self.keeps_position(server, seq, heard)?;
                }
            }
            NodeWord::Closed { domain } => {
                self.links.get_mut(&link.pack(0)).into_iter().for_each(|found| found.handed = 0);
                self.report(link, Said::Closed { domain: domain.to_string() })?;
            }
            NodeWord::Page { status, digest, canonical, url } => {
                let (canonical, url) = (canonical.map(str::to_string), url.to_string());
                self.report(link, Said::Page { status, digest, canonical, url })?;
            }
            NodeWord::Clean { origin, rule } => {
                let (origin, rule) = (origin.to_string(), rule.to_string());
                self.report(link, Said::Clean { origin, rule })?;
            }
            NodeWord::Peer { .. } => {
                let mut line = Vec::new();
                let fits = MasterWord::Peer { terms: self.terms }.write(&mut line).is_ok();
                debug_assert!(fits, "it is a short line");
                if let Some(found) = self.links.get_mut(&link.pack(0)) {
                    found.unsent += line.len();
                    if found.unsent > LINK_UNSENT_MAX {
                        return Err(Refused("it asks, and does not read the answers".to_string()));
                    }
                    self.parts.port.send(link, line);
                }
            }
            NodeWord::Hand { .. } => unreachable!("it is gathered"),
        }
        Ok(())
    }

    fn unix_s(&self, now: Now) -> u32 {
        u32::try_from(self.parts.wall.unix_ms(now) / 1_000).unwrap_or(u32::MAX)
    }

    /// Whether a node's position could be kept. What the disk refused is said again with the next one, and more is kept
    /// until then.
    fn keeps_position(&self, server: u16, seq: u64, heard: Result<bool, QueueError>) -> Result<(), Refused> {
        match heard {
            Ok(_) => {}
            Err(error @ QueueError::Io(_)) => {
                let fields = vec![("server", u32::from(server).into()), ("cause", error.to_string().into())];
                let text = format!("the position of server {server} cannot be kept: {error}");
                self.parts.notices.tell(Event::QueueFails, fields, text);
            }
            Err(error) => return Err(Refused(format!("DONE {server} {seq}: {error}"))),
        }
        Ok(())
    }

    /// The seat of a server, if the link may speak for it: nobody else does, or has been silent for too long.
    fn hold(&mut self, link: Key, server: u16, now: Now) -> Result<&mut Seat, Refused> {
        let me = link.pack(0);
        let timeout = self.parts.config.get().master.timeout_node.0 * 1_000_000;
        let Some(seat) = self.seats.get(&server) else {
            return Err(Refused(format!(
                "server {server} is not configured (write a [[server]] with id = {server})"
            )));
        };
        let holder = seat.holder.filter(|holder| *holder != me).and_then(|holder| self.links.get(&holder));
        if let Some(holder) = holder {
            let silent_us = now.since_us(holder.heard_at);
            let (key, peer) = (holder.key, holder.peer);
            if silent_us < timeout {
                let seconds = silent_us as f64 / 1e6;
                return Err(Refused(format!(
                    "server {server} is {peer} already, which was heard {seconds:.1} s ago (give each node its own number)"
                )));
            }
            self.refuse(
                key,
                format!("silent for {} s, and another node is server {server} now", silent_us / 1_000_000),
            );
        }
        if let Some(found) = self.links.get_mut(&me)
            && found.servers.insert(server)
        {
            let fields = vec![("server", u32::from(server).into()), ("peer", found.peer.into())];
            let text = format!("server {server} is {}", found.peer);
            self.parts.notices.tell(Event::NodeJoined, fields, text);
        }
        let seat = self.seats.get_mut(&server).expect("it was found above");
        seat.holder = Some(me);
        Ok(seat)
    }

    /// Hands on what is for whoever makes epochs. A node that says more than can be taken says it again on a new link.
    fn report(&mut self, link: Key, said: Said) -> Result<(), Refused> {
        let Some(found) = self.links.get(&link.pack(0)) else { return Ok(()) };
        let Some(&server) = found.servers.first() else {
            return Err(Refused("say which server you are first, by TAKE, DONE or LOAD".to_string()));
        };
        // A page that is not looked at costs some evidence, a handover costs all of it again.
        let may_go = matches!(said, Said::Page { .. } | Said::Clean { .. });
        let pushed = self.parts.reports.push(NodeReport { server, link: link.pack(0), said });
        self.parts.owner.ring_if_asleep();
        match pushed {
            Err(_) if !may_go => Err(Refused("more comes than can be taken: send it again".to_string())),
            _ => Ok(()),
        }
    }

    fn bad_line(&mut self, link: Key, cause: &str) -> Refused {
        self.parts.counters.add(Counter::BadLines, 1);
        if let Some(found) = self.links.get_mut(&link.pack(0)) {
            found.is_told = true;
            let fields = vec![("peer", found.peer.into()), ("cause", cause.into())];
            let text = format!("{} is turned away: {cause}", found.peer);
            self.parts.notices.tell(Event::BadLine, fields, text);
        }
        Refused(cause.to_string())
    }

    /// Says why, and lets the link go.
    fn refuse(&mut self, link: Key, cause: String) {
        let Some(found) = self.links.get(&link.pack(0)) else { return };
        let mut line = Vec::new();
        if MasterWord::Error(&shown(&cause, 500)).write(&mut line).is_ok() {
            self.parts.port.send(link, line);
        }
        self.parts.port.close(link);
        if !found.is_told {
            let fields = vec![("peer", found.peer.into()), ("cause", (&cause).into())];
            let text = format!("{} is turned away: {cause}", found.peer);
            self.parts.notices.tell(Event::NodeRefused, fields, text);
        }
        self.leave(link, &cause);
    }

    /// A link is no more; its servers are free.
    fn leave(&mut self, link: Key, why: &str) {
        let me = link.pack(0);
        let Some(found) = self.links.remove(&me) else { return };
        if let Some(&server) = found.servers.first() {
            // Not heard, it costs the memory of a handover until that comes again.
            let _ = self.parts.reports.push(NodeReport { server, link: me, said: Said::Gone });
            self.parts.owner.ring_if_asleep();
        }
        for server in found.servers {
            if let Some(seat) = self.seats.get_mut(&server).filter(|seat| seat.holder == Some(me)) {
                seat.holder = None;
                let fields = vec![
                    ("server", u32::from(server).into()),
                    ("peer", found.peer.into()),
                    ("cause", why.into()),
                ];
                let text = format!("server {server} is gone ({}: {why}); its queue waits", found.peer);
                self.parts.notices.tell(Event::NodeGone, fields, text);
            }
        }
    }

    // To nodes ---------------------------------------------------------------------------------------------

    /// Answers whoever can be answered.
    fn serve_all(&mut self, now: Now) {
        let waiting: Vec<u64> =
            self.links.iter().filter(|(_, link)| !link.asks.is_empty()).map(|(link, _)| *link).collect();
        for me in waiting {
            let Some(link) = self.links.get_mut(&me) else { continue };
            let key = link.key;
            if let Err(Refused(cause)) = serve(link, &mut self.seats, &self.parts, now) {
                self.refuse(key, cause);
            }
        }
    }

    fn show(&mut self, now: Now) {
        if self.shown_at.is_some_and(|at| now.since_us(at) < SHOW_US) {
            return;
        }
        self.shown_at = Some(now);
        let mut board = self.parts.board.lock();
        for status in &mut board.servers {
            let Some(seat) = self.seats.get(&status.id) else { continue };
            let holder = seat.holder.and_then(|holder| self.links.get(&holder));
            (status.pending, status.position, status.next) =
                (seat.pending, seat.reader.position(), seat.reader.next_seq());
            status.queue = status.next.saturating_sub(status.position);
            status.queue_bytes = seat.reader.bytes().1;
            status.node = holder.map(|link| link.peer.to_string());
            status.silent_s = holder.map(|link| now.since_us(link.heard_at) as f64 / 1e6);
        }
    }
}

/// Answers the asks of a link, one after the other, as far as it reads and there is something.
fn serve(
    link: &mut NodeLink,
    seats: &mut SortedMap<u16, Seat>,
    parts: &QueueServerParts,
    now: Now,
) -> Result<(), Refused> {
    while let Some(take) = link.asks.front_mut() {
        let Some(seat) = seats.get_mut(&take.server) else { return Ok(()) };
        while take.left > 0 && link.unsent < LINK_UNSENT_MAX {
            let mut lines = Vec::new();
            let next = match seat.reader.copy(take.next, take.left, PIECE_BYTES, &mut lines) {
                Ok(next) => next,
                Err(error @ QueueError::Io(_)) => {
                    let fields =
                        vec![("server", u32::from(take.server).into()), ("cause", error.to_string().into())];
                    let text = format!("the queue of server {}: {error}", take.server);
                    parts.notices.tell(Event::QueueFails, fields, text.clone());
                    return Err(Refused(text));
                }
                Err(error) => return Err(Refused(format!("the queue of server {}: {error}", take.server))),
            };
            if next == take.next {
                break;
            }
            parts.counters.add(Counter::Sent, next - take.next);
            (take.left, take.next, take.gave) = (take.left - (next - take.next), next, true);
            link.unsent += lines.len();
            parts.port.send(link.key, lines);
        }
        link.upto = Some(link.upto.unwrap_or(0).max(take.next));
        if link.unsent >= LINK_UNSENT_MAX {
            return Ok(());
        }
        let is_over = take.left == 0 || take.gave || take.by <= now;
        if !is_over {
            return Ok(());
        }
        let now_s = u32::try_from(parts.wall.unix_ms(now) / 1_000).unwrap_or(u32::MAX);
        let mark = take.marked.then(|| seat.reader.believed_mark(take.next, now_s));
        let mut line = Vec::new();
        let _ = MasterWord::Upto { seq: take.next, mark }.write(&mut line);
        link.unsent += line.len();
        parts.port.send(link.key, line);
        link.asks.pop_front();
        if let Some(next) = link.asks.front_mut() {
            // Its wait begins when it is its turn.
            next.by = now.plus_us(WAIT_US);
        }
    }
    Ok(())
}

impl Actor for QueueServer {
    fn turn(&mut self, now: Now) -> Turned {
        self.turned_at = now;
        self.take_news();
        let mut left = EVENTS_PER_TURN;
        while left > 0
            && let Some(event) = self.parts.port.next()
        {
            self.take_event(event, now);
            left -= 1;
        }
        if self.ends {
            self.parts.port.close_all();
            return Turned::Finished;
        }
        self.ask_peer(now);
        self.serve_all(now);
        self.show(now);
        Turned::busy_if(left == 0)
    }

    fn next_due(&self) -> Option<Now> {
        let takes = self.links.values().filter_map(|link| link.asks.front()).map(|take| take.by);
        takes.chain(self.peer.as_ref().map(PeerLink::due)).min()
    }

    fn has_messages(&self) -> bool {
        !self.parts.port.is_empty() || !self.parts.news.is_empty()
    }

    fn end(&mut self, _: Now) {
        self.ends = true;
    }
}
