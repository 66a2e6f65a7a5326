//! A master as plain values and rings, without a thread.

use super::epoch_actor::{EpochActor, EpochParts, master_rules};
use super::intake_actor::IntakeActor;
use super::queue_server::{QueueServer, QueueServerParts};
use super::spool::Spool;
use crate::base::{Now, Wall, Workers};
use crate::config::Config;
use crate::engine::links::LinkPort;
use crate::engine::runtime::actor::{ActorBell, Seated};
use crate::engine::runtime::counters::CounterTable;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::live_config::LiveConfig;
use crate::engine::runtime::master_status::{MasterBoard, Neighbour};
use crate::limits::{MASTER_NEWS_WORDS, MASTER_REPORT_WORDS};
use crate::master::PartnerDomain;
use crate::master::args::Args;
use crate::master::keeping::Master;
use crate::rings::{Doorbell, Fill, ring};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A master before it has threads; `L` is what turns links.
pub(crate) struct MasterCore<L> {
    pub epochs: Seated<EpochActor>,
    pub nodes: Seated<QueueServer>,
    pub intake: Option<Seated<IntakeActor>>,
    /// To nodes and the other master; and to those who send lines, if there may be any.
    pub links: L,
    pub intake_links: Option<L>,
    pub bound: Option<SocketAddr>,
    pub intake_bound: Option<SocketAddr>,
    pub live: LiveConfig,
    pub board: MasterBoard,
    pub table: CounterTable,
    pub stop: Arc<AtomicBool>,
    pub rings: Vec<(&'static str, Fill)>,
    pub health: Arc<Health>,
}

/// What a master is given from outside.
pub(crate) struct MasterMeans {
    /// `partner_domain`, and where it is, if two masters share it.
    pub table: Option<(Box<dyn PartnerDomain + Send>, String)>,
    pub workers: Box<dyn Workers + Send>,
    /// Seconds since 1970.
    pub clock: Box<dyn Fn(Now) -> u64 + Send>,
    pub wall: Wall,
}

/// Which links are to be made.
pub(crate) enum LinksFor {
    Nodes,
    Intake,
}

/// The owner's port, what turns the links, and where they listen.
pub(crate) type MadeLinks<L> = Result<(LinkPort, L, Option<SocketAddr>), NodeError>;

/// Opens the directory of a master, makes its parts and joins them. `links` is given the bell of their owner.
pub(crate) fn assemble_master<L>(
    config: &Config,
    means: MasterMeans,
    mut links: impl FnMut(LinksFor, Arc<Doorbell>, &Health) -> MadeLinks<L>,
) -> Result<MasterCore<L>, NodeError> {
    let settings = &config.master;
    let (health, mut table) = (Arc::<Health>::default(), CounterTable::default());
    let (stop, live, board) = (Arc::<AtomicBool>::default(), LiveConfig::new(config), MasterBoard::default());
    let opened =
        Master::open(&settings.data, master_rules(config)).map_err(|e| NodeError::Dealing(e.to_string()))?;
    let args = Args::open(&settings.data, config.doc_index.canon())
        .map_err(|e| NodeError::Dealing(format!("{}: {e}", settings.data.display())))?;
    let path = settings.spool();
    let settle = settings.settle.map(|settle| Duration::from_secs(settle.0));
    let spool = Spool::open(&path, settle, health.notices().clone())
        .map_err(|cause| NodeError::Spool { path: path.clone(), cause })?;
    let (epochs_bell, nodes_bell, intake_bell) =
        (ActorBell::default(), ActorBell::default(), ActorBell::default());
    let (news, news_in) = ring(MASTER_NEWS_WORDS);
    let (reports, reports_in) = ring(MASTER_REPORT_WORDS);
    let rings = vec![("reports", reports.fill())];
    let (port, nodes_links, bound) = links(LinksFor::Nodes, nodes_bell.door.clone(), &health)?;
    let (database, database_at) = means.table.unzip();
    {
        let mut board = board.lock();
        let neighbour = |address: String| Neighbour { address, ..Neighbour::default() };
        board.peer = settings.peer.clone().map(neighbour);
        board.database = database_at.map(neighbour);
    }
    let intake = match settings.intake {
        None => None,
        Some(_) => {
            let (port, links, bound) = links(LinksFor::Intake, intake_bell.door.clone(), &health)?;
            let taker = epochs_bell.door.clone();
            let notices = health.notices().clone();
            let actor = IntakeActor::new(port, path, taker, board.clone(), notices, means.wall);
            Some((Seated { actor, bell: intake_bell }, links, bound))
        }
    };
    let nodes = QueueServer::new(QueueServerParts {
        port,
        news: news_in,
        reports,
        owner: epochs_bell.door.clone(),
        config: live.clone(),
        board: board.clone(),
        notices: health.notices().clone(),
        counters: table.thread(),
        wall: means.wall,
    });
    let epochs = EpochActor::new(
        opened,
        spool,
        EpochParts {
            config: live.clone(),
            table: database,
            args,
            workers: means.workers,
            news,
            nodes: nodes_bell.door.clone(),
            reports: reports_in,
            board: board.clone(),
            counters: table.thread(),
            health: health.clone(),
            stop: stop.clone(),
            clock: means.clock,
        },
    );
    let (intake, intake_links, intake_bound) = match intake {
        Some((seated, links, bound)) => (Some(seated), Some(links), bound),
        None => (None, None, None),
    };
    Ok(MasterCore {
        epochs: Seated { actor: epochs, bell: epochs_bell },
        nodes: Seated { actor: nodes, bell: nodes_bell },
        intake,
        links: nodes_links,
        intake_links,
        bound,
        intake_bound,
        live,
        board,
        table,
        stop,
        rings,
        health,
    })
}
