use super::assembly::{LinksFor, MasterCore, MasterMeans, assemble_master};
use super::database::Postgres;
use super::epoch_actor::EpochActor;
use super::epoch_actor::keep_pair_terms;
use super::intake_actor::IntakeActor;
use super::queue_server::QueueServer;
use crate::config::{Config, DatabaseAccess};
use crate::engine::inspect::desk::Desk;
use crate::engine::links::{LinksConfig, LinksThread};
use crate::engine::runtime::actor::ActorThread;
use crate::engine::runtime::counters::{Counter, CounterTable, Snapshot, cpu_us};
use crate::engine::runtime::database_url::DatabaseUrl;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::log_writer::tell_no_log;
use crate::engine::runtime::master_status::{MasterBoard, MasterStatus};
use crate::engine::runtime::readings::{MeterParts, Role};
use crate::engine::runtime::running::{Running, StopSwitch};
use crate::engine::runtime::settings_news::SettingsNews;
use crate::engine::runtime::threads::Threads;
use crate::engine::runtime::wiring::wall_at;
use crate::limits::{INTAKE_LINKS_MAX, LINKS_MAX};
use crate::master::PartnerDomain;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A master as a process: a thread for every actor of a [`MasterCore`].
pub(crate) struct MasterNode {
    started: Instant,
    bound: Option<SocketAddr>,
    intake_bound: Option<SocketAddr>,
    stop: StopSwitch,
    epochs: ActorThread<EpochActor>,
    nodes: ActorThread<QueueServer>,
    intake: Option<ActorThread<IntakeActor>>,
    links: Vec<LinksThread>,
    live: LiveConfig,
    board: MasterBoard,
    table: CounterTable,
    health: Arc<Health>,
    desk: Arc<Desk>,
}

/// What a master came to.
#[derive(Clone, Debug)]
pub struct MasterSummary {
    pub status: MasterStatus,
    pub seconds: f64,
    pub cpu_us: u64,
}

impl MasterNode {
    /// Starts every thread.
    pub fn start(
        config: &Config,
        database: Option<&DatabaseAccess>,
        started: Instant,
    ) -> Result<MasterNode, NodeError> {
        let table = match database {
            None => None,
            Some(DatabaseAccess(text)) => {
                let url = DatabaseUrl::parse(text).map_err(NodeError::Dealing)?;
                let shown = url.to_string();
                let table = Postgres::start(url).map_err(NodeError::Thread)?;
                Some((Box::new(table) as Box<dyn PartnerDomain + Send>, shown))
            }
        };
        keep_pair_terms(config, table.is_some()).map_err(NodeError::Dealing)?;
        let settings = &config.master;
        let workers = settings.workers.unwrap_or(config.cores.len()).max(1);
        let means = MasterMeans {
            table,
            workers: Box::new(Threads(workers)),
            clock: Box::new(|_| {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |unix| unix.as_secs())
            }),
            wall: wall_at(started),
        };
        let core = assemble_master(config, means, |which, owner, health| {
            let links = match which {
                LinksFor::Nodes => LinksConfig {
                    listen: settings.listen,
                    dial: settings.peer.iter().cloned().collect(),
                    links_max: LINKS_MAX,
                    answers_end: false,
                },
                LinksFor::Intake => LinksConfig {
                    listen: settings.intake,
                    dial: Vec::new(),
                    links_max: INTAKE_LINKS_MAX,
                    answers_end: true,
                },
            };
            LinksThread::start(links, "epoll", started, owner, health)
        })?;
        let MasterCore { epochs, nodes, intake, links, intake_links, mut table, stop, health, .. } = core;
        table.thread().set(Counter::Started, 1);
        let parts = MeterParts {
            role: Role::Master,
            driver: "epoll",
            table: table.clone(),
            shards: Vec::new(),
            health: health.clone(),
            stop,
            started,
            budget: None,
            store: None,
            rings: core.rings,
        };
        let bells = vec![epochs.bell.door.clone()];
        let desk = Desk::new(parts, bells).with_news(core.live.news.clone()).with_board(core.board.clone());
        let desk = Arc::new(desk);
        Ok(MasterNode {
            started,
            bound: core.bound,
            intake_bound: core.intake_bound,
            stop: desk.stop_switch().clone(),
            nodes: ActorThread::start("nodes", nodes, started, &health)?,
            intake: intake
                .map(|intake| ActorThread::start("intake", intake, started, &health))
                .transpose()?,
            // An epoch takes as long as it takes.
            epochs: ActorThread::start_unwatched("epochs", epochs, started, &health)?,
            links: std::iter::once(links).chain(intake_links).collect(),
            live: core.live,
            board: core.board,
            table,
            health,
            desk,
        })
    }

    /// Where it is asked and told things.
    pub fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// Where nodes may dial in.
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// Where lines are taken.
    pub fn intake_bound(&self) -> Option<SocketAddr> {
        self.intake_bound
    }
}

impl Running for MasterNode {
    type Summary = MasterSummary;

    const ROLE: Role = Role::Master;

    fn health(&self) -> &Health {
        &self.health
    }

    fn stop_switch(&self) -> &StopSwitch {
        &self.stop
    }

    fn is_finished(&self) -> bool {
        self.epochs.is_finished() || self.health.is_fatal()
    }

    fn counted(&self) -> Snapshot {
        Snapshot { pages: self.table.sum(Counter::Lines), ..Snapshot::default() }
    }

    fn rotate_log(&self) {
        tell_no_log(&self.health);
    }

    fn settings(&self) -> Option<Arc<Config>> {
        Some(self.live.get())
    }

    fn takes(&self, setting: &str) -> bool {
        setting.starts_with("master.") || setting == "server"
    }

    fn set(&self, config: Arc<Config>) -> bool {
        self.live.set(config);
        !self.stop.is_stopped()
    }

    fn settings_news(&self) -> Option<&SettingsNews> {
        Some(&self.live.news)
    }

    fn finish(self) -> Result<MasterSummary, NodeError> {
        self.stop();
        self.intake.into_iter().for_each(|intake| drop(intake.end()));
        self.epochs.join();
        self.nodes.end();
        self.links.into_iter().for_each(LinksThread::end);
        self.health.take()?;
        Ok(MasterSummary {
            status: self.board.read(),
            seconds: self.started.elapsed().as_secs_f64(),
            cpu_us: cpu_us(),
        })
    }
}
