use super::crawl::CrawlArgs;
use super::settings::Overlay;
use super::shared::{Failure, KEY_FILE, key_path, read_key, tell_event};
use crate::base::random_u64;
use crate::config::{Config, CouncilPlace, PeerAddress, Takeover, cluster_rules};
use crate::engine::{Boot, ClusterTold, EtcdCouncil, Event, OutsideCouncil};
use crate::proto::cluster_key::ClusterKey;
use crate::proto::partition::Spread;
use crate::proto::peer_tls::{NodeIdentity, new_cluster_key};
use crate::storage::{make_data_directory, replace_secret};
use clap::Args;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crawl as one node of a cluster: many machines, one crawl
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila node --data ./n1 --listen 10.0.0.1:7174\n\nThe first node makes the cluster, and prints the line for the others. The others join it, with a copy of its key file:\n  nephila node --data ./n2 --listen 10.0.0.2:7174 --join 10.0.0.1:7174 --key cluster.key\nURLs may be given to any of them. A node waits for work until it is stopped, and continues by the same --data:\n  nephila node --data ./n1"
)]
pub struct NodeArgs {
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    crawl: CrawlArgs,
}

/// Which cluster a node is of, and where.
#[derive(Args)]
pub struct ClusterFlags {
    /// Where other nodes reach this one
    #[arg(long, value_name = "ADDR:PORT", help_heading = CLUSTER)]
    listen: Option<SocketAddr>,
    /// The address that others are told, if it is not the one that it listens on
    #[arg(long, value_name = "HOST:PORT", help_heading = CLUSTER)]
    advertise: Option<PeerAddress>,
    /// Nodes of the cluster to join; without, this is the first
    #[arg(long, value_name = "HOST:PORT[,HOST:PORT]", value_delimiter = ',', help_heading = CLUSTER)]
    join: Vec<PeerAddress>,
    /// The key file of the cluster: whoever has it may join [default: cluster.key in the data directory]
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    key: Option<PathBuf>,
    /// What keeps URLs together on one node: domain, host, or url for one site on all nodes; the first node decides [default: domain]
    #[arg(long, value_name = "WHAT", help_heading = CLUSTER)]
    spread: Option<Spread>,
    /// This node's share of the web, in relation to the weights of the others [default: 100]
    #[arg(long, value_name = "N", help_heading = CLUSTER)]
    weight: Option<u16>,
    /// A node that was silent for so long is taken over by another: a time, or never [default: 5min]
    #[arg(long, value_name = "TIME", help_heading = CLUSTER)]
    takeover: Option<Takeover>,
    /// Other nodes that keep a copy of what this one knows of URLs: 0 or 1 [default: 1]
    #[arg(long, value_name = "N", help_heading = CLUSTER)]
    copies: Option<u8>,
    /// Who keeps the table and the rights: peers, or an etcd, like etcd://10.0.0.7:2379,10.0.0.8:2379 [default: peers]
    #[arg(long, value_name = "PLACE", help_heading = CLUSTER)]
    council: Option<CouncilPlace>,
}

const CLUSTER: &str = "Cluster";

impl NodeArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.crawl.run_among(Some(&self.cluster))
    }
}

impl Overlay for ClusterFlags {
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
        let cluster = &mut config.cluster;
        let mut tell = |name: &str| told.push(format!("cluster.{name}"));
        if self.listen.is_some() {
            cluster.listen = self.listen;
            tell("listen");
        }
        if self.advertise.is_some() {
            cluster.advertise.clone_from(&self.advertise);
            tell("advertise");
        }
        if !self.join.is_empty() {
            cluster.join.clone_from(&self.join);
            tell("join");
        }
        if self.key.is_some() {
            cluster.key.clone_from(&self.key);
            tell("key");
        }
        if let Some(spread) = self.spread {
            cluster.spread = Some(spread);
            tell("spread");
        }
        if let Some(weight) = self.weight {
            cluster.weight = weight;
            tell("weight");
        }
        if let Some(takeover) = self.takeover {
            cluster.takeover = takeover;
            tell("takeover");
        }
        if let Some(copies) = self.copies {
            cluster.copies = copies;
            tell("copies");
        }
        if let Some(council) = &self.council {
            cluster.council.clone_from(council);
            tell("council");
        }
    }
}

/// What a node is told of its cluster. Its settings are those of a crawl that waits, on half of the cores unless they say more.
pub(super) fn cluster_of(config: &mut Config, names_feeds: bool) -> Result<ClusterTold, Failure> {
    if names_feeds || config.crawl.feeds_file.is_some() || config.crawl.has_master() {
        let what = if config.crawl.has_master() { "take URLs from a master" } else { "poll feeds" };
        return Err(Failure::Usage(format!(
            "a node of a cluster does not {what}: run nephila crawl for that"
        )));
    }
    if config.cluster.council != CouncilPlace::Peers && config.cluster.takeover == Takeover::Never {
        let text = "with --takeover never nobody is taken over, so that there is nothing to ask an etcd for: give a time, or leave --council away";
        return Err(Failure::Usage(text.to_string()));
    }
    be_node(config);
    let cluster = &config.cluster;
    let Some(listen) = cluster.listen else {
        let text = "no address for other nodes: give one with --listen ADDR:PORT, like 10.0.0.1:7174";
        return Err(Failure::Usage(text.to_string()));
    };
    if listen.port() == 0 {
        let text = "a node keeps its port, as others find it there: give one with --listen ADDR:PORT";
        return Err(Failure::Usage(text.to_string()));
    }
    let address = match &cluster.advertise {
        Some(address) => address.0.clone(),
        None if listen.ip().is_unspecified() => {
            return Err(Failure::Usage(format!(
                "{listen} is every address of this machine: say by --advertise HOST:PORT where other nodes reach it"
            )));
        }
        None => listen.to_string(),
    };
    let data = &config.store.data;
    let path = key_path(config, data);
    let join: Vec<String> = cluster.join.iter().map(|address| address.0.clone()).collect();
    let key = match read_key(&path).map_err(Failure::Usage)? {
        Some(key) => key,
        None if !join.is_empty() => {
            return Err(Failure::Usage(format!(
                "{}: there is no key file: copy {KEY_FILE} from the data directory of the first node, and name it with --key",
                path.display()
            )));
        }
        None => make_key(&path, data, &address)?,
    };
    let identity = NodeIdentity::new(&key).map_err(|cause| {
        Failure::CannotRun(format!("{}: no certificate could be made of it: {cause}", path.display()))
    })?;
    let etcd =
        |endpoints| -> Box<dyn OutsideCouncil> { Box::new(EtcdCouncil::new(endpoints, key.cluster())) };
    Ok(ClusterTold {
        cluster: key.cluster(),
        partition_seed: key.partition_seed(),
        identity: Some(identity),
        listen,
        address,
        join,
        weight: cluster.weight,
        spread: cluster.spread,
        takeover_us: cluster.takeover.us(),
        request_us: 1_000 * config.spider.timeout_req.0,
        copies: cluster.copies > 0,
        reserve_bytes: reserve_bytes(config),
        council: cluster.council.etcd().map(etcd),
        boot: Boot::Machine,
        rules: cluster_rules(config),
        random: random_u64(),
    })
}

/// What a crawl does that is a node: it waits for work, on half of the cores unless it is told how many.
pub(super) fn be_node(config: &mut Config) {
    config.crawl.wait = true;
    if config.crawl.cores.is_none() {
        config.cores.truncate(config.cores.len().div_ceil(2));
    }
}

/// What the segments of this node need: pages of others do not take the disk from its own.
fn reserve_bytes(config: &Config) -> u64 {
    let segments = 2 * config.cores.len().max(1) as u64;
    let free = config.store.free_bytes_min.as_ref().map_or(0, |bytes| bytes.0);
    config.store.segment_bytes.0.saturating_mul(segments).saturating_add(free)
}

/// A cluster begins.
fn make_key(path: &Path, data: &Path, address: &str) -> Result<ClusterKey, Failure> {
    let failed = |cause: &dyn std::fmt::Display| Failure::CannotRun(format!("{}: {cause}", path.display()));
    let key = new_cluster_key().map_err(|cause| failed(&cause))?;
    make_data_directory(data).map_err(|cause| failed(&cause))?;
    replace_secret(path, key.text().as_bytes()).map_err(|cause| failed(&cause))?;
    let text = format!(
        "a new cluster, {}: its key is in {path}. Copy that file to the other nodes, and start them with\n  nephila node --listen ADDR:PORT --join {address} --key {KEY_FILE}",
        key.cluster_hex(),
        path = path.display(),
    );
    tell_event(Event::ClusterMade, vec![("path", path.display().to_string().into())], text);
    Ok(key)
}

/// The same process begins anew, with the arguments that it was started with. Returns only if that fails.
pub(super) fn begin_anew() -> Failure {
    let program = std::env::current_exe();
    let failed = match program {
        Ok(program) => Command::new(program).args(std::env::args_os().skip(1)).exec(),
        Err(cause) => cause,
    };
    Failure::CannotRun(format!("the node could not begin anew: {failed} (start it again)"))
}
