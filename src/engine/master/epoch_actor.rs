use super::messages::{NodeReport, Said, ToNodes};
use super::spool::{Spool, Whole};
use crate::base::Now;
use crate::config::{self, Config};
use crate::engine::runtime::actor::{Actor, Turned};
use crate::engine::runtime::counters::{Counter, Counters};
use crate::engine::runtime::events::Event;
use crate::engine::runtime::health::{Health, NodeError, Part};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::master_status::{MasterBoard, Neighbour, ServerStatus};
use crate::master::args::Args;
use crate::master::epoch::{DomainBy, JoinRules, Workers};
use crate::master::keeping::{Committed, Kept, Master, MasterRules, Told};
use crate::master::map::{Assign, Server, ServerState};
use crate::master::{PartnerDomain, ServerId};
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
    /// Rows or lines that time changes: an epoch without files lets them go.
    has_waiting: bool,
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

/// After a failure.
const RETRY_US: u64 = 1_000_000;

/// How a master is told its settings.
pub(crate) fn master_rules(config: &Config) -> MasterRules {
    let server = |server: &config::Server| Server {
        id: ServerId(server.id),
        capacity: server.capacity,
        state: match server.state {
            config::ServerState::Active => ServerState::Active,
            config::ServerState::Draining => ServerState::Draining,
            config::ServerState::Down => ServerState::Down,
        },
    };
    MasterRules {
        servers: config.servers.iter().map(server).collect(),
        assign: match config.master.assign {
            config::Assign::LeastLoaded => Assign::LeastLoaded,
            config::Assign::Rendezvous => Assign::Rendezvous,
        },
        queue_bytes_max: config.master.queue_bytes_max.0,
        keep_s: config.master.keep_repeats.0 as u32,
        moves_inputs: true,
        ..MasterRules::default()
    }
}

fn join_rules(config: &Config) -> JoinRules {
    let master = &config.master;
    JoinRules {
        resend_after_s: master.resend_after.0 as u32,
        keep_repeats_s: master.keep_repeats.0 as u32,
        by: match master.by {
            config::DomainBy::Domain => DomainBy::Registrable,
            config::DomainBy::Host => DomainBy::Host,
        },
        memory_bytes: usize::try_from(master.memory.0).unwrap_or(usize::MAX),
    }
}

impl EpochActor {
    /// `told` is what its directory said when it was opened.
    pub fn new((master, told): (Master, Vec<Told>), spool: Spool, parts: EpochParts) -> EpochActor {
        let config = parts.config.get();
        let is_begun = told.iter().any(|told| matches!(told, Told::EpochAgain { .. }));
        let has_waiting = master.epoch().0 > 0;
        let mut actor = EpochActor {
            master,
            spool,
            parts,
            config,
            retry_at: None,
            ended_at: None,
            is_begun,
            has_waiting,
            turned_at: Now::ZERO,
        };
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
        self.send(ToNodes::Servers(readers));
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
        match self.master.configure(master_rules(&self.config)) {
            Ok(told) => self.tell(&told),
            Err(cause) => self.fails(&cause, self.turned_at),
        }
        self.seat_servers();
        self.show(self.turned_at);
    }

    /// What nodes said beside what is about their queues.
    fn take_reports(&mut self) {
        while let Some(NodeReport { said, .. }) = self.parts.reports.pop() {
            match said {
                Said::Page { status, digest, canonical, url } => {
                    self.parts.args.saw_page(&url, status, digest, canonical.as_deref());
                }
                Said::Clean { origin, rule } => {
                    self.parts.args.clean_param(&origin, &rule);
                }
                Said::Handed { .. } | Said::Closed { .. } => {}
            }
        }
    }

    /// Rows that others have written.
    fn take_rows(&mut self, now_s: u32) -> io::Result<()> {
        let Some(table) = &mut self.parts.table else { return Ok(()) };
        let (found, cause) = match table.changes() {
            Ok(rows) => (Some(rows), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let mut board = self.parts.board.lock();
        let database = board.database.get_or_insert_with(Neighbour::default);
        let was_there = database.is_there;
        database.note(cause.is_none(), cause.clone(), u64::from(now_s));
        drop(board);
        if let Some(cause) = cause.filter(|_| was_there || self.ended_at.is_none()) {
            let text = format!("{cause}; known domains go on, new ones wait");
            self.parts.health.tell(Event::DatabaseAway, vec![("cause", cause.into())], text);
        } else if found.is_some() && !was_there && self.ended_at.is_some() {
            self.parts.health.tell(Event::DatabaseBack, Vec::new(), "the database answers again");
        }
        let changed = |row: &crate::master::MapRow| self.master.map().get(&row.domain).as_ref() != Some(row);
        let rows: Vec<_> = found.into_iter().flatten().filter(changed).collect();
        match rows.is_empty() {
            true => Ok(()),
            false => self.master.keep(&Kept { rows, ..Kept::default() }, now_s),
        }
    }

    fn is_due(&self, now: Now) -> bool {
        let every = self.config.master.epoch_max.0 * 1_000_000;
        self.is_begun || self.has_waiting && self.ended_at.is_none_or(|ended| now.since_us(ended) >= every)
    }

    /// Takes what is in the spool, if anything is, or if it is time.
    fn step(&mut self, now: Now) -> io::Result<bool> {
        let files = self.spool.look(now)?;
        if files.is_empty() && !self.is_due(now) {
            return Ok(false);
        }
        self.spool.taken();
        let waited = files.iter().map(|file| file.waited.as_secs_f64()).fold(0.0, f64::max);
        {
            let mut board = self.parts.board.lock();
            (board.files_waiting, board.lag_s) = (files.len() as u64, waited);
        }
        self.epoch(&files, now)?;
        Ok(true)
    }

    fn epoch(&mut self, files: &[Whole], now: Now) -> io::Result<()> {
        let began = std::time::Instant::now();
        let now_s = u32::try_from((self.parts.clock)(now)).unwrap_or(u32::MAX);
        self.take_rows(now_s)?;
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
        self.has_waiting = counts.kept > 0 || committed.held.is_some();
        self.parts.counters.add(Counter::Lines, counts.lines);
        {
            let mut board = self.parts.board.lock();
            (board.epoch, board.epoch_at_s) = (committed.epoch, u64::from(committed.now_s));
            board.epoch_ms = took.as_millis() as u64;
            (board.files_waiting, board.lag_s) = (0, 0.0);
            board.epochs += 1;
            board.files += files;
            board.lines += counts.lines;
            board.rejected += counts.rejected;
            board.sent += counts.sent;
            board.hits_in += counts.hits_in;
            board.hits_sent += counts.hits_sent;
            board.expired_hits += counts.hits_expired;
            (board.rows, board.hits_waiting, board.held) = (counts.kept, counts.hits_waiting, counts.held);
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
        let text = format!("the epoch waits: {cause}{}", mend(cause));
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
        self.retry_at.or_else(|| self.spool.next_look())
    }

    fn has_messages(&self) -> bool {
        !self.parts.reports.is_empty()
    }
}
