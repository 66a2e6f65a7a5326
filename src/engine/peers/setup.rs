use super::arriving::Arriving;
use super::calendar::Calendar;
use super::copies::Copies;
use super::copy_desk::{CopyDesk, CopyParts};
use super::copying::Copying;
use super::council_desk::{CouncilDesk, CouncilParts};
use super::index_asks::IndexAsks;
use super::journal_tail::JournalTail;
use super::node_files::{NodeFiles, NodeFilesError, NodeId};
use super::outside::{Outside, OutsideCouncil};
use super::page_folders::PageFolders;
use super::pages_out::PagesOut;
use super::peer_actor::PeerActor;
use super::peer_desk::{DeskParts, post_of};
use super::share_keeping::ShareKeeping;
use super::summing::Summing;
use super::taking_over::TakingOver;
use super::ticket_desk::TicketDesk;
use super::ticket_file::{Boot, TicketFile};
use super::verify_desk::VerifyDesk;
use super::{Introduction, Wires};
use crate::base::{SortedSet, Wall};
use crate::engine::inspect::cluster_view::ClusterReport;
use crate::engine::inspect::loan_desk::LoanDesk;
use crate::engine::inspect::questions::Questions;
use crate::engine::links::{LinkPort, LinksConfig};
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::journaling::Journaling;
use crate::engine::runtime::log_writer::{JOURNAL, LogWriterPort};
use crate::limits::{PARTITIONS, PEER_NODES_MAX};
use crate::peer::beat::Timing;
use crate::peer::ticket::Lending;
use crate::peer::{NOBODY, NodeState, Table, TableNode};
use crate::proto::partition::{Partition, Partitioner, Share, Spread};
use crate::proto::peer_tls::NodeIdentity;
use crate::rings::Doorbell;
use crate::url_server::{Niceness, NicenessRules};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a node is told of its cluster, and what its disk knows of it.
pub struct PeersSetup {
    told: ClusterTold,
    files: NodeFiles,
    id: NodeId,
    table: Option<Table>,
    /// Partitions that it gave away, or was to, and to whom.
    stopped: Vec<(Partition, u16)>,
    /// Partitions of nodes that are gone, of which the index may not know everything.
    taken: SortedSet<Partition>,
    /// Where it is all kept.
    directory: PathBuf,
}

/// What a node is told of its cluster.
pub struct ClusterTold {
    pub cluster: [u8; 16],
    /// Of the hash that places URLs.
    pub partition_seed: u64,
    /// By which nodes know each other; a simulated network has none.
    pub identity: Option<NodeIdentity>,
    pub listen: SocketAddr,
    /// What others are told: they reach it there.
    pub address: String,
    pub join: Vec<String>,
    pub weight: u16,
    /// What it is to be spread by. The first node decides, and nobody who joins it or comes back may say something else.
    pub spread: Option<Spread>,
    /// A node that is silent for so long is taken over; `None` for never.
    pub takeover_us: Option<u64>,
    /// What a request may take.
    pub request_us: u64,
    /// Whether another node is to have a copy of what this one knows.
    pub copies: bool,
    /// Who keeps the table and the beats; `None` for the nodes themselves.
    pub council: Option<Box<dyn OutsideCouncil>>,
    /// So much of the disk stays free of what others have copied here.
    pub reserve_bytes: u64,
    /// A digest of the rules that every node has to have.
    pub rules: u64,
    /// The clock that it has in common with the process before it.
    pub boot: Boot,
    /// Drawn for this start: what is random comes from it.
    pub random: u64,
}

/// In the folder of the cluster.
const TICKETS: &str = "tickets";
/// Links beyond one for each node: those that come, and one that goes while its successor stands.
const LINKS_BESIDE: usize = 64;
/// With nobody to be taken over, all times are those of a takeover after this.
const TAKEOVER_US: u64 = 3_600_000_000;

impl ClusterTold {
    /// A cluster is made with its council, and keeps it.
    fn suits(&self, table: &Table) -> Result<(), NodeError> {
        let text = match (table.is_outside(), self.council.is_some()) {
            (false, true) => {
                "the nodes of this cluster vote among themselves, and a cluster that is made does not change to etcd (say --council peers; for a council in etcd make a new cluster in another --data)"
            }
            (true, false) => {
                "the table of this cluster is in an etcd, and a cluster that is made does not change to voters (name it with --council etcd://HOST:PORT)"
            }
            _ => return self.suits_spread(table),
        };
        Err(NodeError::Cluster(text.to_string()))
    }

    /// And with its spread: where every URL is depends on it.
    fn suits_spread(&self, table: &Table) -> Result<(), NodeError> {
        match (self.spread, table.spread()) {
            (Some(told), made) if told != made => Err(NodeError::Cluster(format!(
                "this cluster is spread by {made}, and one that is made does not change to {told} (say --spread {made}; for {told} make a new cluster in another --data)"
            ))),
            _ => Ok(()),
        }
    }

    fn timing(&self) -> Result<Timing, NodeError> {
        let timing = Timing::for_takeover(self.takeover_us.unwrap_or(TAKEOVER_US), self.request_us);
        timing.map_err(|error| NodeError::Cluster(error.to_string()))
    }
}

impl PeersSetup {
    /// Reads what the data directory knows of the cluster, and counts this start. Nobody else has the directory.
    pub fn open(told: ClusterTold, directory: &Path) -> Result<PeersSetup, NodeError> {
        let failed = |error: NodeFilesError| NodeError::Cluster(error.to_string());
        told.timing()?;
        let files = NodeFiles::open(directory).map_err(failed)?;
        let known = files.id().map_err(failed)?;
        let cluster = told.cluster;
        if known.as_ref().is_some_and(|known| known.cluster != cluster) {
            return Err(NodeError::Cluster(format!(
                "{} is a node of another cluster than the key file's (give the key file of its cluster with --key, or another directory with --data)",
                directory.display()
            )));
        }
        let mut id = known.unwrap_or_else(|| {
            let number = if told.join.is_empty() { 1 } else { 0 };
            NodeId { cluster, id: told.random, number, starts: 0 }
        });
        id.starts += 1;
        let kept = files.keep_id(&id);
        kept.map_err(|cause| NodeError::Cluster(format!("cluster/id: {cause}")))?;
        let table = files.table().map_err(failed)?;
        table.as_ref().map_or(Ok(()), |table| told.suits(table))?;
        let stopped = files.stopped().map_err(failed)?;
        let taken = Copies::open(directory).taken();
        let taken = taken.map_err(|cause| NodeError::Cluster(format!("{}: {cause}", Copies::FOLDER)))?;
        Ok(PeersSetup { told, files, id, table, stopped, taken, directory: directory.to_path_buf() })
    }

    /// The share that the index is opened with: by the table that was last known, or nothing. What the index does not know yet of
    /// nodes that were taken over is not in it.
    pub fn share(&self) -> Arc<Share> {
        let mut owners =
            self.table.as_ref().map_or(vec![NOBODY; PARTITIONS], |table| table.owners().to_vec());
        let stopped = self.stopped.iter().map(|(partition, _)| *partition);
        for partition in stopped.chain(self.taken.iter().copied()) {
            let owner = &mut owners[partition.index()];
            *owner = if *owner == self.id.number { NOBODY } else { *owner };
        }
        let epoch = self.table.as_ref().map_or(0, Table::epoch);
        let spread = self.table.as_ref().map_or(self.told.spread.unwrap_or_default(), Table::spread);
        let partitioner = Partitioner::new(spread, self.told.partition_seed);
        Arc::new(Share::new(partitioner, self.id.number, epoch, &owners))
    }

    /// Whom its links are with.
    pub(crate) fn links(&self) -> LinksConfig {
        let links_max = PEER_NODES_MAX + LINKS_BESIDE;
        LinksConfig { listen: Some(self.told.listen), dial: Vec::new(), links_max, answers_end: false }
    }

    /// The first table, if this node is to make it.
    fn founding(&self) -> Result<Option<Table>, NodeError> {
        if self.id.number != 1 || self.table.is_some() || !self.told.join.is_empty() {
            return Ok(None);
        }
        let me = TableNode {
            number: 1,
            id: self.id.id,
            generation: 0,
            address: self.told.address.clone(),
            weight: self.told.weight,
            state: NodeState::Member,
        };
        let voters = if self.told.council.is_some() { Vec::new() } else { vec![1] };
        let first = Table::first(vec![me], voters, self.told.spread.unwrap_or_default(), self.told.rules);
        first.map(Some).map_err(|error| NodeError::Cluster(error.to_string()))
    }

    /// The node among its peers, over these links.
    pub(crate) fn actor(mut self, parts: ActorParts) -> Result<PeerActor, NodeError> {
        let ActorParts { port, questions, bell, ledger_end, health, wall, log, report, loans, paces } = parts;
        loans.rings(bell.clone());
        let request_us = self.told.request_us;
        let lending = |rules: Niceness| {
            let (slots, pause_us) = (u16::from(rules.concurrent.max(1)), rules.gap_us);
            let in_parts = pause_us == 0 && rules.delay_factor == 0.0;
            Lending { slots, pause_us, request_us, in_parts }
        };
        let lending = (lending(paces.ip), lending(paces.host));
        let file = TicketFile::new(self.directory.join(NodeFiles::FOLDER).join(TICKETS), self.told.boot);
        let tickets = TicketDesk::new(loans, self.id.starts, lending, Calendar::new(wall), file);
        let taking_over = TakingOver::new(Journaling::new(log.clone()));
        let arriving = Arriving::new(Journaling::new(log));
        let journal = JournalTail::new(self.directory.join(JOURNAL));
        let copying = Copying::new(self.told.copies, self.id.starts, journal);
        let folders = PageFolders::new(&self.directory);
        let pages_out = PagesOut::new(self.told.copies, self.id.starts, folders.clone());
        let (copies, health) = (Copies::open(&self.directory), health.clone());
        let (reserve_bytes, told) = (self.told.reserve_bytes, health.clone());
        let summing = match self.told.boot {
            Boot::Machine => Summing::new(bell.clone()),
            Boot::Simulated => Summing::at_once(bell.clone()),
        };
        let verify = VerifyDesk::new(report.verify().clone(), summing, self.id.starts);
        let parts = CopyParts {
            copying,
            copies,
            pages_out,
            folders,
            reserve_bytes,
            taking_over,
            verify,
            health: told,
        };
        let copies = CopyDesk::new(parts);
        let (founding, share, me) = (self.founding()?, self.share(), self.id.number);
        let keeping = ShareKeeping::new(self.told.partition_seed, me, Some(share), self.stopped.clone());
        let epoch = self.table.as_ref().map_or(0, Table::epoch);
        let gives = |(partition, _): &(Partition, u16)| {
            self.table.as_ref().is_some_and(|table| table.owner(*partition) == me)
        };
        // Whoever was to get what is stopped may not have heard all of it.
        let cursors = match self.stopped.iter().any(gives) {
            true => Vec::new(),
            false => self.files.cursors(epoch).map_err(|error| NodeError::Cluster(error.to_string()))?,
        };
        let begin = |council| Outside::begin(council, bell.clone(), &health);
        let outside = self.told.council.take().map(begin).transpose()?;
        let post = post_of(IndexAsks::new(questions, bell), cursors, ledger_end);
        let timing = self.told.timing()?;
        let takes_over = self.told.takeover_us.is_some();
        let made = self.table.as_ref().or(founding.as_ref()).map(Table::spread);
        let PeersSetup { told, files, id, table, .. } = self;
        let on_disk = files.table().map_err(|error| NodeError::Cluster(error.to_string()))?;
        let is_outside = outside.is_some();
        let council = CouncilDesk::new(CouncilParts {
            timing,
            takes_over,
            outside,
            told: on_disk,
            founding,
            health: health.clone(),
            seed: !told.random,
        });
        let me = Introduction {
            cluster: id.cluster,
            id: id.id,
            node: id.number,
            generation: id.starts,
            epoch: table.as_ref().map_or(0, Table::epoch),
            version: env!("CARGO_PKG_VERSION").to_string(),
            rules: told.rules,
            listen: told.address,
            weight: told.weight,
            joining: id.number == 0,
            outside: is_outside,
            spread: made.map_or(told.spread, Some),
        };
        let wires = Wires::new(port, told.identity, me.clone());
        let parts = DeskParts {
            id,
            files,
            me,
            council,
            post,
            share: keeping,
            tickets,
            arriving,
            copies,
            health,
            wall,
        };
        PeerActor::new(wires, parts, &told.join, report)
    }
}

/// What a node among its peers is joined to.
pub(crate) struct ActorParts {
    pub port: LinkPort,
    pub questions: Arc<Questions>,
    /// Of the thread that turns it.
    pub bell: Arc<Doorbell>,
    /// Where the ledger of the index ends.
    pub ledger_end: u64,
    pub health: Arc<Health>,
    pub wall: Wall,
    /// Of the journal of hosts.
    pub log: LogWriterPort,
    pub report: ClusterReport,
    /// Where shards want addresses.
    pub loans: Arc<LoanDesk>,
    /// How hosts and addresses are asked.
    pub paces: NicenessRules,
}
