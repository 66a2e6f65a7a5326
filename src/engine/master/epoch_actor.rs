use super::messages::{NodeReport, Said, ToNodes};
use super::orders::{OrderOf, Orders};
use super::spool::{Spool, Whole};
use crate::base::{Now, Workers, shown};
use crate::config::{self, Bytes, Config};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::master_status::{MasterBoard, Neighbour, ServerStatus};
use crate::limits::{MASTER_AHEAD_S, MASTER_REPORT_WORDS};
use crate::master::args::Args;
use crate::master::epoch::{AHEAD_S, JoinRules};
use crate::master::keeping::{Committed, Kept, Master, MasterRules, Told};
use crate::master::map::{Server, ServerState};
use crate::master::moves::{Closed, MasterDesk, MoveError, MoveNews, MoveOrder, Moves};
use crate::master::{DatabaseError, PairTerms, PartnerDomain, ServerId};
use crate::rings::{Doorbell, Receiver, Sender};
use crate::storage::mend;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Makes epochs: takes the files of the spool as they come, and keeps what comes of them.
pub(crate) struct EpochActor {
    master: Master,
    spool: Spool,
    parts: EpochParts,
    /// The settings that it goes by.
    config: Arc<Config>,
    /// What failed is tried again then.
    retry_at: Option<Now>,
    /// When the last epoch ended; `None` before the first of this process.
    ended_at: Option<Now>,
    /// An epoch that was begun by a process that was killed.
    is_begun: bool,
    /// Lines that could not be sent, and whether what they waited for may be there.
    has_held: bool,
    held_may_go: bool,
    moves: Moves,
    orders: Orders,
    /// When moves were last gone on with.
    moved_at: Option<Now>,
    /// The table has been asked once.
    asked: bool,
    /// By what domains are dealt here.
    terms: u64,
    /// When it was last said that new domains wait, or that the other master goes by other terms.
    warned_at: Option<Now>,
    /// When it was last said that too much is held.
    held_said_at: Option<Now>,
    turned_at: Now,
}

pub(crate) struct EpochParts {
    pub config: LiveConfig,
    pub table: Option<Box<dyn PartnerDomain + Send>>,
    /// Which parameters of URLs say nothing.
    pub args: Args,
    pub workers: Box<dyn Workers + Send>,
    pub news: Sender<ToNodes>,
    pub nodes: Arc<Doorbell>,
    pub reports: Receiver<NodeReport>,
    pub board: MasterBoard,
    pub counters: Arc<Counters>,
    pub health: Arc<Health>,
    pub stop: Arc<AtomicBool>,
    /// Seconds since 1970.
    pub clock: Box<dyn Fn(Now) -> u64 + Send>,
}

/// Notes of servers that are drained begin so.
const DRAIN_NOTE: &str = "drain.";
/// The note of a master that shares its map.
pub(crate) const TABLE_NOTE: &str = "table";
/// How often the table is asked, and domains that move are gone on with.
const MOVES_US: u64 = 1_000_000;
/// What goes on being wrong is said this often.
const WARN_US: u64 = 60_000_000;
/// After a failure.
const RETRY_US: u64 = 1_000_000;

/// How a master is told its settings.
pub(crate) fn master_rules(config: &Config) -> MasterRules {
    let server = |server: &config::Server| Server {
        id: ServerId(server.id),
        capacity: server.capacity,
        state: server.state,
    };
    MasterRules {
        servers: config.servers.iter().map(server).collect(),
        assign: config.master.assign,
        queue_bytes_max: config.master.queue_bytes_max.0,
        keep_s: config.master.keep_repeats.0 as u32,
        moves_inputs: true,
        ..MasterRules::default()
    }
}

/// That servers are drained, as it outlives the process.
pub(crate) fn drained(servers: &[ServerId]) -> Kept {
    let note = |server: &ServerId| (format!("{DRAIN_NOTE}{}", server.0), Some("1".to_string()));
    Kept {
        notes: servers.iter().map(note).collect(),
        states: servers.iter().map(|server| (*server, ServerState::Draining)).collect(),
        ..Kept::default()
    }
}

/// Two masters without a database go by a hash over the same servers, for as long as their directories last.
pub(crate) fn keep_pair_terms(config: &Config, has_table: bool) -> Result<(), String> {
    let master = &config.master;
    if has_table || master.peer.is_none() {
        return Ok(());
    }
    pair_terms(config)
        .keep(&master.data)
        .unwrap_or_else(|cause| Err(format!("{}: {cause}", master.data.display())))
}

/// By what domains are dealt.
fn pair_terms(config: &Config) -> PairTerms {
    let master = &config.master;
    let server = |server: &config::Server| {
        format!("{} capacity {} {}", server.id, server.capacity, server.state.name())
    };
    PairTerms {
        assign: master.assign.name().to_string(),
        by: master.by.name().to_string(),
        servers: config.servers.iter().map(server).collect(),
    }
}

/// The clocks of two masters may be so far apart. A node that goes from one to the other goes by the times of lines: one
/// whose clock is behind leaves them as they are.
const APART_S: u32 = 600;
/// A file may be on its way for so long.
const LATE_S: u32 = 600;
const _: () = assert!(MASTER_AHEAD_S == APART_S + AHEAD_S);

/// How its epochs are told them.
pub(crate) fn join_rules(config: &Config) -> JoinRules {
    let master = &config.master;
    JoinRules {
        resend_after_s: master.resend_after.0 as u32,
        late_s: APART_S + LATE_S,
        ahead_s: MASTER_AHEAD_S,
        keep_repeats_s: master.keep_repeats.0 as u32,
        by: master.by,
        memory_bytes: usize::try_from(master.memory.0).unwrap_or(usize::MAX),
    }
}

impl EpochActor {
    /// `told` is what its directory said when it was opened.
    pub fn new((mut master, told): (Master, Vec<Told>), spool: Spool, parts: EpochParts) -> EpochActor {
        let config = parts.config.get();
        let orders = Orders::of(&config.master.data);
        if parts.table.is_some() {
            master.heard_table();
        }
        let mut moves = Moves::new(&MasterDesk { master: &mut master, by: join_rules(&config).by, now_s: 0 });
        for (name, _) in master.notes() {
            if let Some(server) = name.strip_prefix(DRAIN_NOTE).and_then(|server| server.parse().ok()) {
                moves.drain(ServerId(server));
            }
        }
        let is_begun = told.iter().any(|told| matches!(told, Told::EpochAgain { .. }));
        let has_held = master.held().is_some();
        let mut actor = EpochActor {
            master,
            spool,
            parts,
            config,
            retry_at: None,
            ended_at: None,
            is_begun,
            has_held,
            held_may_go: has_held,
            moves,
            orders,
            moved_at: None,
            asked: false,
            terms: 0,
            warned_at: None,
            held_said_at: None,
            turned_at: Now::ZERO,
        };
        actor.terms = pair_terms(&actor.config).signature();
        actor.tell(&told);
        actor.seat_servers();
        actor.show(Now::ZERO);
        actor
    }

    fn tell(&mut self, told: &[Told]) {
        for told in told {
            if let Told::UnreadableFile { path, .. } = told {
                self.spool.leave(path);
            }
            self.parts.health.tell(Event::MasterNotice, vec![("what", told.name().into())], told.to_string());
        }
    }

    /// Says who may ask for which queue.
    fn seat_servers(&mut self) {
        let servers = self.master.servers();
        let readers = servers.iter().filter_map(|server| self.master.reader(server.id)).collect();
        self.send(ToNodes::Servers { readers, terms: self.terms });
    }

    fn send(&self, news: ToNodes) {
        // Whoever serves nodes takes its news at every turn.
        let mut news = news;
        while let Err(back) = self.parts.news.push(news) {
            if self.parts.health.is_fatal() || self.parts.stop.load(Ordering::Acquire) {
                return;
            }
            news = back;
            self.parts.nodes.ring_if_asleep();
            std::thread::sleep(Duration::from_millis(1));
        }
        self.parts.nodes.ring_if_asleep();
    }

    /// Goes by settings that have changed.
    fn take_settings(&mut self) {
        let config = self.parts.config.get();
        if Arc::ptr_eq(&config, &self.config) {
            return;
        }
        self.spool.set_settle(config.master.settle.map(|settle| Duration::from_secs(settle.0)));
        self.config = config;
        if let Err(why) = keep_pair_terms(&self.config, self.parts.table.is_some()) {
            return self.parts.health.tell(Event::MasterNotice, vec![("what", "pair".into())], why);
        }
        self.terms = pair_terms(&self.config).signature();
        match self.master.configure(master_rules(&self.config)) {
            Ok(told) => self.tell(&told),
            Err(cause) => self.fails(&cause, self.turned_at),
        }
        self.seat_servers();
        self.held_may_go = true;
        self.show(self.turned_at);
    }

    /// What nodes said beside what is about their queues.
    fn take_reports(&mut self) {
        // Nodes that never stop talking do not keep epochs from being made.
        for _ in 0..MASTER_REPORT_WORDS {
            let Some(NodeReport { server, link, said }) = self.parts.reports.pop() else { return };
            match said {
                Said::Handed { domain, lines } => self.moves.hand_lines(link, &domain, &lines),
                Said::Closed { domain } => {
                    self.moves.closed(Closed { link, server: ServerId(server), domain: domain.into() });
                    self.moved_at = None;
                }
                Said::Gone => self.moves.link_gone(link),
                Said::Page { status, digest, canonical, url } => {
                    self.parts.args.saw_page(&url, status, digest, canonical.as_deref());
                }
                Said::Clean { origin, rule } => {
                    self.parts.args.clean_param(&origin, &rule);
                }
            }
        }
    }

    /// Takes the rows of the table, does what an operator asked for, and goes on with domains that move.
    fn go_on_with_moves(&mut self, now: Now) -> io::Result<()> {
        self.moved_at = Some(now);
        let now_s = u32::try_from((self.parts.clock)(now)).unwrap_or(u32::MAX);
        let by = join_rules(&self.config).by;
        let mut desk = MasterDesk { master: &mut self.master, by, now_s };
        let mut table: Option<&mut (dyn PartnerDomain + 'static)> = match &mut self.parts.table {
            Some(table) => Some(&mut **table),
            None => None,
        };
        let mut drained = Vec::new();
        if table.is_some() && desk.master.note(TABLE_NOTE).is_none() {
            let notes = vec![(TABLE_NOTE.to_string(), Some("1".to_string()))];
            desk.master.keep(&Kept { notes, ..Kept::default() }, now_s)?;
        }
        for order in self.orders.take() {
            let done = match &order.what {
                _ if table.is_none() && self.config.master.peer.is_some() => {
                    Err("two masters can move a domain only over a database that both share: set database"
                        .to_string())
                }
                OrderOf::Move { domain, to, force } => {
                    let order = MoveOrder { domain, to: *to, force: *force };
                    self.moves
                        .order(order, &mut desk, table.as_deref_mut())
                        .map_err(|error| error.to_string())
                }
                OrderOf::Drain(server) => match self.moves.may_drain(*server, &mut desk) {
                    Ok(()) => {
                        drained.push(*server);
                        self.moves.drain(*server);
                        Ok(())
                    }
                    Err(error) => Err(error.to_string()),
                },
            };
            self.orders.answer(&order, done);
        }
        if !drained.is_empty() {
            desk.master.keep(&self::drained(&drained), now_s)?;
        }
        let is_drained = !drained.is_empty();
        let troubles = self.moves.troubles().count();
        let stepped = self.moves.step(&mut desk, table);
        self.held_may_go |= self.moves.troubles().count() < troubles;
        let news = self.moves.news();
        let has_news = !news.is_empty();
        news.into_iter().for_each(|news| self.tell_move(news));
        let away = match stepped {
            Ok(()) => None,
            Err(MoveError::Database(error)) => Some(error.to_string()),
            Err(MoveError::Disk(error)) => return Err(error),
            Err(MoveError::Refused(why)) => return Err(io::Error::other(why)),
        };
        if self.parts.table.is_some() {
            if away.is_none() {
                self.master.heard_table();
            }
            self.note_database(away, now_s);
        }
        if has_news {
            self.send(ToNodes::Committed);
        }
        if has_news || is_drained {
            self.show(now);
        }
        Ok(())
    }

    fn tell_move(&mut self, news: MoveNews) {
        let (what, text) = match news {
            MoveNews::Fenced { server, domain, .. } => {
                return self.send(ToNodes::Fenced { server: server.0, domain: domain.into() });
            }
            MoveNews::Closing { domain, at, to } => {
                ("closing", format!("{domain} moves from server {} to server {}", at.0, to.0))
            }
            MoveNews::Moved { domain, to } => {
                self.held_may_go = true;
                ("moved", format!("{domain} is with server {}", to.0))
            }
            MoveNews::Held { domain, why } => ("held", format!("nothing of {domain} is sent: {why}")),
            MoveNews::LeftOut { domain, lines } => {
                ("left_out", format!("{domain}: {lines} lines were more than a handover takes"))
            }
        };
        self.parts.health.tell(Event::MasterNotice, vec![("what", what.into())], shown(&text, 1_000));
    }

    fn note_database(&mut self, cause: Option<String>, now_s: u32) {
        let mut board = self.parts.board.lock();
        let database = board.database.get_or_insert_with(Neighbour::default);
        let (was_there, was_asked) = (database.is_there, self.asked);
        database.note(cause.is_none(), cause.clone(), u64::from(now_s));
        drop(board);
        self.asked = true;
        match cause {
            Some(cause) if was_there || !was_asked => {
                let text = format!("{cause}; known domains go on, new ones wait");
                self.parts.health.tell(Event::DatabaseAway, vec![("cause", cause.into())], text);
            }
            None if !was_there && was_asked => {
                self.held_may_go = true;
                self.parts.health.tell(Event::DatabaseBack, Vec::new(), "the database answers again");
            }
            _ => {}
        }
    }

    /// Two masters that nothing but a hash keeps together must deal by the same terms: otherwise both could give a domain
    /// to a node, and it is held instead.
    fn heed_peer(&mut self, now: Now) {
        let board = self.parts.board.lock();
        let differs = board.peer.as_ref().filter(|peer| peer.agrees == Some(false));
        let has_table = self.parts.table.is_some();
        let why = differs.map(|peer| {
            let then = if has_table { "" } else { "; new domains wait" };
            format!(
                "the other master, {}, deals domains by another assign, by or list of servers{then} (give both the same)",
                peer.address
            )
        });
        self.master.hold_new_domains(why.clone().filter(|_| !has_table));
        let why = why.or_else(|| {
            board
                .new_domains_wait
                .clone()
                .filter(|_| !has_table)
                .map(|why| format!("new domains wait: {why}"))
        });
        drop(board);
        match why {
            None => self.warned_at = None,
            Some(_) if self.warned_at.is_some_and(|at| now.since_us(at) < WARN_US) => {}
            Some(why) => {
                self.warned_at = Some(now);
                self.parts.health.tell(Event::MasterNotice, vec![("what", "pair".into())], why);
            }
        }
    }

    /// Whether so much cannot be sent that no more is taken. What is held is tried again all the same.
    fn is_held_full(&mut self, now: Now) -> bool {
        let (held, most) =
            (self.master.held().map_or(0, |held| held.bytes), self.config.master.held_bytes_max);
        if held <= most.0 {
            return false;
        }
        if self.held_said_at.is_none_or(|at| now.since_us(at) >= WARN_US) {
            self.held_said_at = Some(now);
            let text = format!(
                "files wait in the spool: {} of lines cannot be sent, and held_bytes_max is {most} (see master status for what they wait for)",
                Bytes(held)
            );
            self.parts.health.tell(Event::MasterNotice, vec![("what", "held_full".into())], text);
        }
        true
    }

    /// Whether an epoch without files is of use: rows leave as logs go on, and so only lines that are held may have to go.
    fn is_due(&self, now: Now) -> bool {
        let every = self.config.master.epoch_max.0 * 1_000_000;
        self.is_begun
            || self.has_held
                && (self.held_may_go || self.ended_at.is_none_or(|ended| now.since_us(ended) >= every))
    }

    /// Takes what is in the spool, if anything is, or if it is time.
    fn step(&mut self, now: Now) -> io::Result<bool> {
        if self.moved_at.is_none_or(|at| now.since_us(at) >= MOVES_US) {
            self.heed_peer(now);
            self.go_on_with_moves(now)?;
        }
        let mut files = self.spool.look(now)?;
        if let Some(first) = files.iter().map(|file| file.waited).max() {
            self.parts.board.lock().files_wait(files.len() as u64, first);
        }
        if !files.is_empty() && self.is_held_full(now) {
            files.clear();
        }
        if files.is_empty() && !self.is_due(now) {
            return Ok(false);
        }
        self.spool.taken();
        self.epoch(&files, now)?;
        Ok(true)
    }

    fn epoch(&mut self, files: &[Whole], now: Now) -> io::Result<()> {
        let began = std::time::Instant::now();
        let now_s = u32::try_from((self.parts.clock)(now)).unwrap_or(u32::MAX);
        self.go_on_with_moves(now)?;
        // An epoch that is made again finds what it went by.
        self.parts.args.flush()?;
        let loads: Vec<(ServerId, u64)> = {
            let board = self.parts.board.lock();
            board.servers.iter().filter_map(|server| Some((ServerId(server.id), server.pending?))).collect()
        };
        let inputs: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let mut epoch = self.master.begin(&inputs, now_s, &loads)?;
        self.tell(epoch.told());
        self.is_begun = true;
        let joined = epoch.join(join_rules(&self.config), &self.parts.args, &*self.parts.workers)?;
        let taken = epoch.inputs().len() as u64;
        let table = self.parts.table.as_mut().map(|table| &mut **table as &mut dyn PartnerDomain);
        let committed = self.master.commit(epoch, joined, table)?;
        self.is_begun = false;
        self.committed(&committed, taken, began.elapsed(), now);
        Ok(())
    }

    fn committed(&mut self, committed: &Committed, files: u64, took: Duration, now: Now) {
        self.tell(&committed.told);
        self.ended_at = Some(now);
        let counts = &committed.counts;
        (self.has_held, self.held_may_go) = (committed.held.is_some(), false);
        self.parts.counters.add(Counter::Lines, counts.lines);
        {
            let mut board = self.parts.board.lock();
            (board.epoch, board.epoch_at_s) = (committed.epoch, u64::from(committed.now_s));
            board.epoch_ms = took.as_millis() as u64;
            board.files_wait(0, Duration::ZERO);
            board.epochs += 1;
            board.files += files;
            board.lines += counts.lines;
            board.rejected += counts.rejected;
            board.sent += counts.sent;
            board.hits_in += counts.hits_in;
            board.hits_sent += counts.hits_sent;
            board.expired_hits += counts.hits_expired;
            (board.rows, board.hits_waiting, board.held) = (counts.kept, counts.hits_waiting, counts.held);
            board.new_domains_wait = committed.unplaced.as_ref().map(|(cause, _)| match cause {
                DatabaseError::Away(cause) => cause.clone(),
                schema => schema.to_string(),
            });
        }
        if counts.lines > 0 {
            let fields = vec![
                ("epoch", committed.epoch.into()),
                ("lines", counts.lines.into()),
                ("sent", counts.sent.into()),
                ("rejected", counts.rejected.into()),
            ];
            let text = format!(
                "epoch {}: {} lines, {} sent, {} rejected, {} held ({} ms)",
                committed.epoch,
                counts.lines,
                counts.sent,
                counts.rejected,
                counts.held,
                took.as_millis()
            );
            self.parts.health.tell(Event::EpochCommitted, fields, text);
        }
        self.send(ToNodes::Committed);
        self.show(now);
    }

    /// Writes down how the servers are. What their nodes say is written by who hears it.
    fn show(&self, now: Now) {
        let now_s = u32::try_from((self.parts.clock)(now)).unwrap_or(u32::MAX);
        let mut board = self.parts.board.lock();
        board.life = self.master.totals();
        let before = std::mem::take(&mut board.servers);
        let status = |server: &Server| {
            let known = before.iter().find(|before| before.id == server.id.0).cloned().unwrap_or_default();
            let reader = self.master.reader(server.id);
            let (position, next) = reader.as_ref().map_or((0, 0), |it| (it.position(), it.next_seq()));
            ServerStatus {
                id: server.id.0,
                state: server.state.name().to_string(),
                capacity: server.capacity,
                load: self.master.map().loads().per_hour(server.id, now_s),
                queue: next.saturating_sub(position),
                queue_bytes: reader.map_or(0, |reader| reader.bytes().1),
                position,
                next,
                ..known
            }
        };
        board.servers = self.master.servers().iter().map(status).collect();
    }

    /// One line, and another try in a while. What no waiting mends ends the process.
    fn fails(&mut self, cause: &io::Error, now: Now) {
        if cause.kind() == io::ErrorKind::InvalidData || self.master.broken().is_some() {
            return self.parts.health.fatal(NodeError::Dealing(cause.to_string()));
        }
        // Most causes have been told with their mend where they arose.
        let (cause, mend) = (cause.to_string(), mend(cause));
        let mend = if cause.ends_with(mend) { "" } else { mend };
        let text = format!("the epoch waits: {cause}{mend}");
        self.parts.health.wait_for(Part::Epoch, Some(text));
        self.retry_at = Some(now.plus_us(RETRY_US));
    }
}

impl Actor for EpochActor {
    fn turn(&mut self, now: Now) -> Turned {
        self.turned_at = now;
        if self.parts.stop.load(Ordering::Acquire) || self.parts.health.is_fatal() {
            return Turned::Finished;
        }
        self.take_settings();
        self.take_reports();
        if self.retry_at.is_some_and(|at| now < at) {
            return Turned::IDLE;
        }
        match self.step(now) {
            Ok(is_busy) => {
                if self.retry_at.take().is_some() {
                    self.parts.health.wait_for(Part::Epoch, None);
                }
                Turned::busy_if(is_busy)
            }
            Err(cause) => {
                self.fails(&cause, now);
                Turned::IDLE
            }
        }
    }

    fn next_due(&self) -> Option<Now> {
        let moves = self.moved_at.map(|at| at.plus_us(MOVES_US));
        self.retry_at.or_else(|| self.spool.next_look().into_iter().chain(moves).min())
    }

    fn has_messages(&self) -> bool {
        !self.parts.reports.is_empty()
    }
}
