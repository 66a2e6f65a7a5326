use super::AskedNode;
use crate::base::{counted, shown};
use crate::commands::shared::{DataArg, Failure, parse_url, tell};
use crate::engine::{ClusterView, OwnerView};
use crate::limits::{PARTITIONS, URL_BYTES_MAX};
use clap::Args;
use serde::Serialize;

/// Say which node a URL belongs to, or how many partitions each node has
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila cluster table --data ./n1\n  nephila cluster table http://example.org/ --data ./n1\n\nExit status 1: the URL is nobody's at this moment."
)]
pub struct TableArgs {
    /// The URL; without, the nodes with their partitions are listed
    url: Option<String>,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shares {
    epoch: u64,
    spread: String,
    nodes: Vec<ShareOf>,
    /// Partitions without an owner.
    nobody: u64,
}

#[derive(Serialize)]
struct ShareOf {
    node: u16,
    address: String,
    weight: u16,
    partitions: u64,
}

impl TableArgs {
    pub fn run(self) -> Result<(), Failure> {
        let node = AskedNode::at(&self.data.path)?;
        let Some(url) = &self.url else {
            return tell(&Shares::of(&node.cluster()?), self.json, Shares::text);
        };
        let owner = node.owner(&parse_url(url)?)?;
        tell(&owner, self.json, owner_text)?;
        if owner.node == 0 { Err(Failure::No(String::new())) } else { Ok(()) }
    }
}

fn owner_text(owner: &OwnerView) -> String {
    let OwnerView { partition, node, epoch, .. } = owner;
    let whose = match node {
        0 => "nobody's: it waits until somebody owns its partition".to_string(),
        node if owner.here => {
            format!("node {node} at {}, the one that was asked", shown(&owner.address, 200))
        }
        node => format!("node {node} at {}", shown(&owner.address, 200)),
    };
    let url = shown(&owner.url, URL_BYTES_MAX);
    format!("url        {url}\nowner      {whose}\npartition  {partition}\nepoch      {epoch}\n")
}

impl Shares {
    fn of(view: &ClusterView) -> Shares {
        let nodes: Vec<ShareOf> = view
            .members()
            .map(|node| ShareOf {
                node: node.number,
                address: node.address.clone(),
                weight: node.weight,
                partitions: node.partitions,
            })
            .collect();
        let owned: u64 = nodes.iter().map(|node| node.partitions).sum();
        let nobody = (PARTITIONS as u64).saturating_sub(owned);
        Shares { epoch: view.epoch, spread: view.spread.clone(), nodes, nobody }
    }

    fn text(&self) -> String {
        if self.epoch == 0 {
            return "no table yet: this node is not taken in by a cluster\n".to_string();
        }
        let share = |partitions: u64| partitions as f64 * 100.0 / PARTITIONS as f64;
        let mut text = format!("epoch {}, spread by {}\n", self.epoch, self.spread);
        for ShareOf { node, address, weight, partitions } in &self.nodes {
            text += &format!(
                "node {node:<5} {:<22} {partitions:>4} partitions, {:.1} %, weight {weight}\n",
                shown(address, 200),
                share(*partitions)
            );
        }
        if self.nobody > 0 {
            text +=
                &format!("nobody     {}, {:.1} %\n", counted(self.nobody, "partition"), share(self.nobody));
        }
        text
    }
}
