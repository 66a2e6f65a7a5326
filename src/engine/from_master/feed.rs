use super::batch::{Batch, ENTRIES_AT_ONCE, Progress, Upto};
use super::closed::ClosedDomains;
use super::departures::{DepartureNews, Departures};
use super::position::MasterPosition;
use super::side::Side;
use crate::base::{Key, Now, Wall, shown};
use crate::engine::inspect::entries::{DomainMove, Entered};
use crate::engine::inspect::handed::Taken;
use crate::engine::inspect::master_line::{MasterLine, MasterReport};
use crate::engine::inspect::questions::Questions;
use crate::engine::inspect::reports::Reported;
use crate::engine::links::{LinkEvent, LinkPort};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, CounterTable, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::groups::Group;
use crate::engine::runtime::health::{Health, Part};
use crate::engine::runtime::journaling::Journaling;
use crate::engine::runtime::log_writer::LogWriterPort;
use crate::limits::MASTER_OVERLAP_S;
use crate::proto::lines::{LineBuffer, LineError, MasterWord, NodeWord, TakeFrom};
use crate::proto::reflog::Stamp;
use crate::rings::Doorbell;
use std::path::PathBuf;
use std::sync::Arc;

/// Takes the entries of this node's queue from one master at a time, and changes to another when that one is silent.
pub struct MasterFeed {
    server: u16,
    timeout_us: u64,
    sides: Vec<Side>,
    /// The one that is asked.
    used: usize,
    /// The answer that is open.
    batch: Option<Batch>,
    /// When the one that is asked last said something, or was begun with.
    heard_at: Now,
    /// When it last said something, if it ever did.
    answered_at: Option<Now>,
    position: MasterPosition,
    /// Where it is kept; a simulation has no place.
    directory: Option<PathBuf>,
    /// Domains that are with other servers, or on their way there.
    departures: Departures,
    /// Bytes on their way to the master that is used.
    unsent: usize,
    /// What pages and robots.txt tell of parameters, and how much of it was sent.
    reported: Option<Reported>,
    reports: u64,
    journal: Journaling,
    /// When the mark was last written.
    marked_at: Now,
    load_at: Now,
    port: LinkPort,
    questions: Arc<Questions>,
    /// Of the thread that turns this.
    bell: Arc<Doorbell>,
    table: CounterTable,
    counters: Arc<Counters>,
    health: Arc<Health>,
    report: MasterReport,
    wall: Wall,
    taken: Taken,
    entries: u64,
    /// The last answer brought nothing: this node has all that its master has.
    is_at_end: bool,
    changes: u64,
    bad_said: bool,
    trouble: Option<String>,
    /// The user was told which master is used.
    told: Option<usize>,
    is_ending: bool,
    now: Now,
}

/// What a feed is made of.
pub struct MasterParts {
    pub server: u16,
    /// `host:port`, in the order in which they are preferred and dialed.
    pub masters: Vec<String>,
    pub timeout_us: u64,
    pub position: MasterPosition,
    pub closed: ClosedDomains,
    pub log: LogWriterPort,
    pub reported: Option<Reported>,
    pub directory: Option<PathBuf>,
    pub port: LinkPort,
    pub questions: Arc<Questions>,
    pub bell: Arc<Doorbell>,
    pub table: CounterTable,
    pub counters: Arc<Counters>,
    pub health: Arc<Health>,
    pub report: MasterReport,
    pub wall: Wall,
}

/// A master is told how much is pending here this often.
const LOAD_US: u64 = 10_000_000;
/// A mark alone is written this often: an older one costs a little more overlap.
const MARK_US: u64 = 10_000_000;
/// Domains on their way to another server are looked at this often.
const DEPARTURES_US: u64 = 50_000;
/// A handover is sent while no more than this is on its way.
const UNSENT_MAX: usize = 1 << 20;
/// Reports that are sent at once.
const REPORTS_AT_ONCE: usize = 1_024;
/// Domains that a status names.
const LEAVING_SHOWN: usize = 20;
/// An answer that takes longer is none, however much of it keeps coming.
const ANSWER_US_MAX: u64 = 60_000_000;

impl MasterFeed {
    pub fn new(parts: MasterParts) -> MasterFeed {
        let sides: Vec<Side> = parts.masters.into_iter().map(Side::new).collect();
        let before = |side: &Side| parts.position.used.as_deref() == Some(&side.address);
        let used = sides.iter().position(before).unwrap_or(0);
        MasterFeed {
            server: parts.server,
            timeout_us: parts.timeout_us,
            sides,
            used,
            batch: None,
            heard_at: Now::ZERO,
            answered_at: None,
            position: MasterPosition { server: parts.server, ..parts.position },
            departures: Departures::new(parts.closed, parts.directory.clone()),
            directory: parts.directory,
            unsent: 0,
            reported: parts.reported,
            reports: 0,
            journal: Journaling::new(parts.log),
            marked_at: Now::ZERO,
            load_at: Now::ZERO,
            port: parts.port,
            questions: parts.questions,
            bell: parts.bell,
            table: parts.table,
            counters: parts.counters,
            health: parts.health,
            report: parts.report,
            wall: parts.wall,
            taken: Taken::default(),
            entries: 0,
            is_at_end: false,
            changes: 0,
            bad_said: false,
            trouble: None,
            told: None,
            is_ending: false,
            now: Now::ZERO,
        }
    }

    fn address(&self) -> &str {
        &self.sides[self.used].address
    }

    fn send(&mut self, link: Key, word: NodeWord<'_>) {
        let mut bytes = Vec::new();
        // A word that does not go into a line is not said.
        let _ = word.write(&mut bytes);
        self.send_bytes(link, bytes);
    }

    fn send_bytes(&mut self, link: Key, bytes: Vec<u8>) {
        if self.sides[self.used].link == Some(link) {
            self.unsent += bytes.len();
        }
        self.port.send(link, bytes);
    }

    /// Tells the master that is used how far all is done. No domain that is on its way to another server is passed.
    fn say_done(&mut self) {
        let seq = self.seq().min(self.departures.closed().done_max(self.address()));
        if let Some(link) = self.sides[self.used].link.filter(|_| seq > 0) {
            self.send(link, NodeWord::Done { server: self.server, seq });
        }
    }

    // From the links --------------------------------------------------------------------------------------

    /// Whether what comes can be taken: otherwise it waits in the ring, and then with the peer.
    fn has_room(&self) -> bool {
        self.batch.as_ref().is_none_or(Batch::has_room)
    }

    fn take_events(&mut self) -> bool {
        let mut busy = false;
        while self.has_room()
            && let Some(event) = self.port.next()
        {
            busy = true;
            match event {
                LinkEvent::Up { link, dial: Some(at), .. } => self.sides[at].up(link),
                LinkEvent::Up { .. } | LinkEvent::Ended { .. } => {}
                LinkEvent::Sent { link, bytes } => {
                    if self.side_of(link) == Some(self.used) {
                        self.unsent = self.unsent.saturating_sub(bytes);
                    }
                }
                LinkEvent::Bytes { link, bytes } => {
                    if let Some(at) = self.side_of(link) {
                        self.sides[at].lines.push(&bytes);
                        if at == self.used {
                            self.heard_at = self.now;
                            self.answered_at = Some(self.now);
                        }
                        self.read(at);
                    }
                }
                LinkEvent::Down { link, why } => {
                    if let Some(at) = self.side_of(link) {
                        self.down(at, &why);
                    }
                }
            }
        }
        busy
    }

    fn side_of(&self, link: Key) -> Option<usize> {
        self.sides.iter().position(|side| side.link == Some(link))
    }

    fn down(&mut self, at: usize, why: &str) {
        self.sides[at].link = None;
        if at == self.used {
            self.begin_handovers_anew();
            self.trouble = Some(format!("the link to {} is down: {why}", self.address()));
            // What has come whole may still become durable.
            let was_cut = self.batch.take_if(|batch| batch.upto.is_none()).is_some();
            if was_cut && self.sides[at].was_cut_again() {
                let text = format!("its answers are cut: {}", shown(why, 200));
                self.refused(at, Event::MasterBadAnswer, &text);
            }
        }
    }

    /// Reads what a master said, up to the end of an answer: what comes after it waits until that is durable.
    fn read(&mut self, at: usize) {
        let mut lines = std::mem::replace(&mut self.sides[at].lines, LineBuffer::of_lines(0));
        let read = loop {
            if self.batch.as_ref().is_some_and(|batch| at == self.used && batch.upto.is_some()) {
                break Ok(());
            }
            match lines.next_line() {
                Ok(None) => break Ok(()),
                Err(error) => break Err(said_of(&error)),
                Ok(Some(line)) => {
                    if let Err(wrong) = self.line(at, line) {
                        break Err(wrong);
                    }
                }
            }
        };
        self.sides[at].lines = lines;
        if let Err(Refusal { event, text }) = read {
            self.refused(at, event, &text);
        }
    }

    fn line(&mut self, at: usize, line: &[u8]) -> Result<(), Refusal> {
        let word = MasterWord::parse(line);
        if let Ok(MasterWord::Error(text)) = word {
            return Err(Refusal { event: Event::MasterRefuses, text: shown(text, 300) });
        }
        if let Ok(MasterWord::Fenced { domain }) = word {
            self.fenced(domain);
            return Ok(());
        }
        let Some(batch) = self.batch.as_mut().filter(|_| at == self.used) else {
            return Err(Refusal::bad("it sends what was not asked for"));
        };
        match word {
            Ok(MasterWord::Upto { seq, .. }) if !batch.agrees(seq) => {
                let entries = batch.entries;
                let asked = match batch.from {
                    TakeFrom::Seq(seq) => format!("from {seq}"),
                    TakeFrom::Since(stamp) => format!("since {}", digits(stamp)),
                };
                Err(Refusal::bad(&format!("UPTO {seq} after {entries} entries {asked}")))
            }
            Ok(MasterWord::Upto { seq, mark }) => {
                batch.end(Upto { seq, mark }, &self.questions, &self.bell);
                Ok(())
            }
            // One that cannot be read is counted where it is read: it must not stop the queue.
            _ => match batch.push(line, &self.questions, &self.bell) {
                true => Ok(()),
                false => Err(Refusal::bad("it sends more entries than were asked for")),
            },
        }
    }

    /// A master refuses, or makes no sense: it is left alone for a while, and another is asked.
    fn refused(&mut self, at: usize, event: Event, text: &str) {
        let side = &mut self.sides[at];
        side.lost_place |= event == Event::MasterRefuses;
        if side.rest(text, self.now) {
            let address = side.address.clone();
            let said = match event {
                Event::MasterRefuses => format!("master {address}: {text}; it is asked again in a while"),
                _ => {
                    format!("master {address}: {text}; the link is closed, and it is asked again in a while")
                }
            };
            let fields = vec![("master", (&address).into()), ("cause", text.into())];
            self.health.tell(event, fields, said);
        }
        if let Some(link) = side.link.take() {
            self.port.close(link);
        }
        if at == self.used {
            self.begin_handovers_anew();
            self.batch = None;
            self.trouble = Some(format!("{} refuses: {text}", self.address()));
            self.change();
        }
    }

    // What is durable -------------------------------------------------------------------------------------

    fn look_at_batch(&mut self) -> bool {
        let Some(batch) = &mut self.batch else { return false };
        let mut entered = Vec::new();
        let progress = batch.look(|piece| entered.push(piece));
        let is_news = !entered.is_empty();
        for piece in entered {
            self.count(*piece);
        }
        if !self.journal.is_written() {
            return is_news;
        }
        match progress {
            Progress::Waits => is_news,
            // Asked for again in a moment: the index has too much to do, or the crawl ends.
            Progress::Untaken => {
                self.batch = None;
                self.sides[self.used].rest("the doc index does not take what comes", self.now);
                false
            }
            Progress::Durable(upto) => self.durable(upto),
        }
    }

    fn count(&mut self, entered: Entered) {
        self.taken.add(&entered.taken);
        self.journal.add(&entered.nice);
        for moved in entered.moves {
            match moved {
                DomainMove::Closed { domain, fence } => self.close(&domain, fence),
                DomainMove::Opened { domain, fence } => self.open(&domain, fence),
            }
        }
        if let Some(bad) = entered.first_bad
            && !std::mem::replace(&mut self.bad_said, true)
        {
            let address = self.address();
            let text = format!("master {address}: an entry cannot be read: {bad}; others are counted");
            let fields = vec![("master", address.into()), ("cause", (&bad).into())];
            self.health.tell(Event::MasterBadEntry, fields, text);
        }
    }

    /// All of an answer is in the index and on disk: the position may follow, and then the master is told.
    fn durable(&mut self, upto: Upto) -> bool {
        let Some(batch) = &self.batch else { return false };
        let entries = batch.entries;
        let address = self.address().to_string();
        let mut position = self.position.clone();
        position.seqs.insert(address.clone(), upto.seq);
        let now_s = self.unix_s();
        position.mark = upto.mark.filter(|mark| mark.is_credible(now_s)).or(self.mark());
        position.used = Some(address);
        let moved = position.seqs != self.position.seqs || position.used != self.position.used;
        if !self.write_closed() {
            return false;
        }
        let marked = position.mark != self.position.mark && self.now.since_us(self.marked_at) >= MARK_US;
        if moved || marked {
            if let Some(directory) = &self.directory
                && let Err(cause) = position.write(directory)
            {
                let text = format!("taking from the master waits: master.position: {cause}");
                self.health.wait_for(Part::Master, Some(text));
                return false;
            }
            self.health.wait_for(Part::Master, None);
            self.marked_at = self.now;
        }
        self.position = position;
        self.entries += entries;
        self.is_at_end = entries == 0;
        self.batch = None;
        self.heard_at = self.now;
        self.sides[self.used].answered();
        self.trouble = None;
        self.tell_used(upto.seq.saturating_sub(entries));
        if moved && entries > 0 {
            self.say_done();
        }
        // What came behind the answer.
        self.read(self.used);
        true
    }

    fn tell_used(&mut self, first: u64) {
        if self.told != Some(self.used) {
            self.told = Some(self.used);
            let (address, server) = (self.address(), self.server);
            let text =
                format!("URLs come from the master {address}, for server {server}, from entry {first} on");
            let fields =
                vec![("master", address.into()), ("server", u64::from(server).into()), ("seq", first.into())];
            self.health.tell(Event::MasterUsed, fields, text);
        }
    }

    fn unix_s(&self) -> u32 {
        u32::try_from(self.wall.unix_ms(self.now) / 1_000).unwrap_or(u32::MAX)
    }

    /// The time up to which everything is durable here, unless it is from the future: one that a clock ahead made would
    /// pass over what another master has.
    fn mark(&self) -> Option<Stamp> {
        self.position.mark.filter(|mark| mark.is_credible(self.unix_s()))
    }

    fn seq(&self) -> u64 {
        self.position.seqs.get(self.address()).copied().unwrap_or(0)
    }

    // Domains that move -----------------------------------------------------------------------------------

    fn close(&mut self, domain: &str, fence: u32) {
        let (address, seq) = (self.address().to_string(), self.seq());
        if self.departures.close(domain, fence, (&address, seq)) {
            let text = format!("{domain} moves to another server: nothing more is asked of it here");
            self.health.tell(Event::DomainClosed, vec![("domain", domain.into())], text);
        }
    }

    fn open(&mut self, domain: &str, fence: u32) {
        self.departures.open(domain, fence);
        let text = format!("{domain} is with this server from now on");
        self.health.tell(Event::DomainOpened, vec![("domain", domain.into())], text);
    }

    /// A master has what a domain brings along.
    fn fenced(&mut self, domain: &str) {
        if !self.departures.fenced(domain) {
            return;
        }
        if self.write_closed() {
            self.say_done();
        }
        let text = format!("{domain} is handed over to another server");
        self.health.tell(Event::DomainHandedOver, vec![("domain", domain.into())], text);
    }

    /// Whether it is on disk which domains are closed.
    fn write_closed(&mut self) -> bool {
        let written = self.departures.write_closed();
        if let Err(cause) = &written {
            let text = format!("taking from the master waits: master.closed: {cause}");
            self.health.wait_for(Part::Master, Some(text));
        }
        written.is_ok()
    }

    fn begin_handovers_anew(&mut self) {
        self.departures.begin_anew();
        self.unsent = 0;
    }

    /// Goes on with domains that leave, and sends what they bring along.
    fn look_at_departures(&mut self) -> bool {
        let health = &self.health;
        let tell = |DepartureNews { event, domain, text }: DepartureNews| {
            health.tell(event, vec![("domain", (&*domain).into())], text);
        };
        self.departures.look(&self.questions, &self.bell, self.now, tell);
        let Some(link) = self.sides[self.used].link.filter(|_| self.batch.is_some()) else { return false };
        if self.unsent > UNSENT_MAX {
            return false;
        }
        match self.departures.piece(self.now) {
            Ok(bytes) if bytes.is_empty() => false,
            Ok(bytes) => {
                self.send_bytes(link, bytes);
                true
            }
            Err(news) => {
                tell(news);
                false
            }
        }
    }

    // What is asked ---------------------------------------------------------------------------------------

    fn ask(&mut self) -> bool {
        let side = &self.sides[self.used];
        let Some(link) = side.link.filter(|_| self.batch.is_none() && side.may_be_asked(self.now)) else {
            return false;
        };
        let (server, seq) = (self.server, self.seq());
        let goes_on = self.position.used.as_deref() == Some(self.address()) && !side.lost_place;
        let from = match self.mark() {
            Some(mark) if !goes_on => TakeFrom::Since(before(mark)),
            _ if side.lost_place => TakeFrom::Seq(0),
            _ => TakeFrom::Seq(seq),
        };
        let take = NodeWord::Take { server, from, max: ENTRIES_AT_ONCE, marked: true };
        let greets = goes_on && seq > 0 && !side.greeted;
        if greets {
            // A kill may have come between the position and its DONE.
            self.say_done();
        }
        self.sides[self.used].greeted = true;
        self.send(link, take);
        self.batch = Some(Batch::new(from, self.now));
        self.heard_at = self.now;
        true
    }

    /// Gives up a master that says nothing, or never comes to an end.
    fn look_at_time(&mut self) {
        if !self.has_room() || self.batch.as_ref().is_some_and(|batch| batch.upto.is_some()) {
            // It is our turn, not the master's.
            self.heard_at = self.now;
            return;
        }
        let is_slow =
            self.batch.as_ref().is_some_and(|batch| self.now.since_us(batch.since) >= ANSWER_US_MAX);
        if self.now.since_us(self.heard_at) < self.timeout_us && !is_slow {
            return;
        }
        if let Some(batch) = self.batch.take() {
            let cause = match is_slow {
                true => format!("an answer of {} entries so far does not end", batch.entries),
                false => format!("no answer for {} s", self.timeout_us as f64 / 1e6),
            };
            let address = self.address().to_string();
            self.trouble = Some(format!("{address}: {cause}"));
            if self.sides[self.used].is_news(&cause) {
                let fields = vec![("master", (&address).into()), ("cause", (&cause).into())];
                self.health.tell(Event::MasterSilent, fields, format!("master {address}: {cause}"));
            }
            if let Some(link) = self.sides[self.used].link.take() {
                self.port.close(link);
            }
        }
        self.change();
    }

    /// Uses the next master that a link stands to, if there is one.
    fn change(&mut self) {
        let count = self.sides.len();
        let others = (1..count).map(|step| (self.used + step) % count);
        let Some(next) = others.into_iter().find(|&at| self.sides[at].may_be_asked(self.now)) else {
            return;
        };
        self.used = next;
        self.begin_handovers_anew();
        self.batch = None;
        self.heard_at = self.now;
        // The first one that could be had is no change.
        self.changes += u64::from(self.position.used.is_some());
    }

    fn tell_load(&mut self) {
        if self.now < self.load_at {
            return;
        }
        self.load_at = self.now.plus_us(LOAD_US);
        let pending = self.table.sum(Counter::Pending);
        let links = self.sides.iter().enumerate().filter_map(|(at, side)| Some((at, side.link?)));
        // Both place new domains by it. One that is not used hears how far we are by no DONE, but by the time.
        for (at, link) in links.collect::<Vec<_>>() {
            let mark = self.mark().filter(|_| at != self.used && self.departures.is_empty());
            self.send(link, NodeWord::Load { server: self.server, pending, mark });
        }
    }

    /// Tells every master of pages and rules: each learns for itself.
    fn tell_reports(&mut self) -> bool {
        let links: Vec<Key> = self.sides.iter().filter_map(|side| side.link).collect();
        let Some(reported) =
            self.reported.as_ref().filter(|_| !links.is_empty() && self.unsent <= UNSENT_MAX)
        else {
            return false;
        };
        let (count, bytes) = reported.take(REPORTS_AT_ONCE);
        self.reports += count;
        if count > 0 {
            links.into_iter().for_each(|link| self.send_bytes(link, bytes.clone()));
        }
        count > 0
    }

    fn publish(&self) {
        let Taken { new, known, moved_up, due, refused, bad } = self.taken;
        self.counters.set_all(Group::FromMaster, &[new, known, moved_up, due, refused, bad]);
        let dropped = self.reported.as_ref().map_or(0, Reported::dropped);
        self.counters.set_all(Group::MasterReports, &[self.reports, dropped]);
        self.counters.set(Counter::MasterSeq, self.seq());
        self.counters.set(Counter::MasterChanges, self.changes);
        let unix_s = self.wall.unix_ms(self.now) / 1_000;
        let mark = self.position.mark;
        self.counters.set(Counter::MasterMark, mark.map_or(0, |mark| u64::from(mark.s())));
        let others =
            self.sides.iter().enumerate().filter(|(at, side)| *at != self.used && side.link.is_some());
        self.report.set(MasterLine {
            server: self.server,
            used: self.position.used.is_some().then(|| self.address().to_string()),
            seq: self.seq(),
            mark: mark.map(digits),
            lag_s: mark.map(|mark| match self.is_at_end {
                true => 0,
                false => unix_s.saturating_sub(u64::from(mark.s())),
            }),
            answered_s: self.answered_at.map(|at| self.now.since_us(at) / 1_000_000),
            taken: self.entries,
            bad,
            changes: self.changes,
            reports: self.reports,
            reports_dropped: dropped,
            linked: others.map(|(_, side)| side.address.clone()).collect(),
            trouble: self.trouble.clone(),
            closed_domains: self.departures.closed().count() as u64,
            leaving_domains: self
                .departures
                .closed()
                .leaving()
                .take(LEAVING_SHOWN)
                .map(str::to_string)
                .collect(),
        });
    }
}

/// Why a link is closed.
struct Refusal {
    event: Event,
    text: String,
}

impl Refusal {
    fn bad(text: &str) -> Refusal {
        Refusal { event: Event::MasterBadAnswer, text: text.to_string() }
    }
}

fn said_of(error: &LineError) -> Refusal {
    Refusal::bad(&shown(&error.to_string(), 300))
}

fn digits(stamp: Stamp) -> String {
    String::from_utf8_lossy(&stamp.digits()).into_owned()
}

/// A little earlier.
fn before(mark: Stamp) -> Stamp {
    Stamp::from_s(mark.s().saturating_sub(MASTER_OVERLAP_S))
}

impl Actor for MasterFeed {
    fn turn(&mut self, now: Now) -> Turned {
        if self.now == Now::ZERO {
            // Nobody could answer before the first turn.
            self.heard_at = now;
        }
        self.now = now;
        if self.is_ending {
            return Turned::Finished;
        }
        let mut busy = self.take_events();
        busy |= self.look_at_batch();
        busy |= self.look_at_departures();
        self.look_at_time();
        busy |= self.ask();
        self.tell_load();
        busy |= self.tell_reports();
        self.publish();
        Turned::busy_if(busy)
    }

    fn next_due(&self) -> Option<Now> {
        let rests = self.sides.iter().filter_map(|side| side.rests_until(self.now));
        let departs = (!self.departures.is_empty()).then(|| self.now.plus_us(DEPARTURES_US));
        // One that was silent for too long while no other can be had: a link that comes up wakes it.
        let gives_up = Some(self.heard_at.plus_us(self.timeout_us)).filter(|at| *at > self.now);
        rests.chain(departs).chain(gives_up).chain([self.load_at]).min()
    }

    fn has_messages(&self) -> bool {
        self.has_room() && !self.port.is_empty()
    }

    fn end(&mut self, _: Now) {
        self.is_ending = true;
    }
}
