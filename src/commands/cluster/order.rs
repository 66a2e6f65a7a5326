use super::AskedNode;
use crate::base::counted;
use crate::commands::shared::{DataArg, Failure, hint, tell};
use crate::engine::{ClusterOrder, ClusterView, NodeView};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// Let a node hand over all that it has, so that it can be stopped for good
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila cluster drain 3 --data ./n1\n\nIt ends when the node has no partition any more, and all that it had, its pages too, is on the disks of two others; with\n--copies 0 its pages stay in its directory. Where there is one other node, one disk is enough. Who does not answer for\nten minutes is not waited for: the node says so when it leaves. A node that votes keeps its vote, and has to go on\nrunning; any other one leaves the cluster, and can be stopped. Exit status 1: it cannot be done, or the time is over."
)]
pub struct DrainArgs {
    /// Its number, as nephila cluster status tells it
    #[arg(value_name = "NODE")]
    node: u16,
    #[command(flatten)]
    data: DataArg,
    /// Wait at most this many seconds; the node goes on all the same
    #[arg(long, value_name = "S")]
    timeout: Option<u64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Say that a node will not come again: what it had goes to others
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila cluster forget 2 --data ./n1\n\nFor a cluster without a council (one or two nodes, or --takeover never), where nobody is taken over; and for\na node that was lost just when a council began, before it renewed its right for the first time. This is your word\nthat the node is gone: if it still runs somewhere, out of reach, its hosts are asked by two nodes. The next node on the\nring goes on from its copy of what that one knew; if others get hosts of it, they hear the URLs, and fetch them again."
)]
pub struct ForgetArgs {
    /// Its number, as nephila cluster status tells it
    #[arg(value_name = "NODE")]
    node: u16,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Keep everything where it is, for maintenance: nobody is taken over
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila cluster freeze --data ./n1\n\nUntil nephila cluster thaw a silent node keeps its partitions, however long it is away, and a node that joins gets none."
)]
pub struct FreezeArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Undo a freeze
#[derive(Args)]
#[command(after_help = "Example:\n  nephila cluster thaw --data ./n1")]
pub struct ThawArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const PAUSE: Duration = Duration::from_millis(200);
/// A change of the table takes no longer, while there are voters.
const CHANGE: Duration = Duration::from_secs(60);

impl DrainArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (number, began) = (self.node, Instant::now());
        let of = |view: &ClusterView| view.nodes.iter().find(|node| node.number == number).cloned();
        let before = AskedNode::at(&self.data.path)?.cluster()?;
        let had = of(&before).map_or(0, |node| node.partitions);
        let is_at_it = of(&before).is_some_and(|node| node.membership == "draining");
        if !is_at_it {
            AskedNode::at(&self.data.path)?.order(ClusterOrder::Drain { node: number })?;
        }
        let is_done = |node: &NodeView, view: &ClusterView| {
            let votes = view.voters.contains(&number);
            node.partitions == 0 && (node.membership == "left" || votes && node.membership == "draining")
        };
        let limit = self.timeout.map(Duration::from_secs);
        let mut waiting = Waiting::default();
        let view = wait(&self.data.path, limit, |view| {
            let node = of(view);
            waiting.look(node.as_ref().filter(|node| node.is_about_to_leave(&view.voters)));
            node.is_some_and(|node| is_done(&node, view))
        });
        let Some(view) = view else {
            let still = match waiting.since {
                Some(_) => "has handed over everything, and waits until that is on two other disks,",
                None => "still has something",
            };
            return Err(Failure::No(format!(
                "node {number} {still} after {} s; it goes on (nephila cluster status tells how far it is)",
                began.elapsed().as_secs()
            )));
        };
        let votes = view.voters.contains(&number);
        let others = view.members().filter(|node| node.membership == "member").count();
        let said = json!({ "node": number, "partitions": had, "votes": votes, "seconds": began.elapsed().as_secs_f64() });
        let partitions = counted(had, "partition");
        tell(&said, self.json, |_| match votes {
            true => format!(
                "node {number} has handed over {partitions}; it is a voter: leave it running, with nothing to do\n"
            ),
            false => format!(
                "node {number} has handed over {partitions} and left: stop it with nephila stop; {}\n",
                match others {
                    1 => "what it had is with the one other node; its pages, too, unless --copies is 0",
                    _ if waiting.was_long() => "its last line says who did not answer: keep its directory",
                    _ if view.copy.is_none() => "its pages stay in its directory",
                    _ => "what it had is on two other disks",
                }
            ),
        })
    }
}

/// A node that has handed over everything, and waits until that is on two other disks.
#[derive(Default)]
struct Waiting {
    since: Option<Instant>,
    is_told: bool,
}

/// It is said that a node waits if it does so for longer.
const TOLD: Duration = Duration::from_secs(10);
/// A node does not wait for longer.
const PATIENCE: Duration = Duration::from_secs(600);

impl Waiting {
    fn look(&mut self, node: Option<&NodeView>) {
        let Some(node) = node else { return };
        let since = *self.since.get_or_insert_with(Instant::now);
        if !self.is_told && since.elapsed() >= TOLD {
            self.is_told = true;
            hint(format_args!(
                "node {} has handed over everything, and waits until that is on two other disks (nephila cluster status there names whom it waits for)",
                node.number
            ));
        }
    }

    fn was_long(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= PATIENCE)
    }
}

impl ForgetArgs {
    pub fn run(self) -> Result<(), Failure> {
        let number = self.node;
        let has_left = |view: &ClusterView| {
            view.nodes.iter().any(|node| node.number == number && node.membership == "left")
        };
        change(&self.data.path, ClusterOrder::Forget { node: number }, has_left)?;
        tell(&json!({ "node": number, "forgotten": true }), self.json, |_| {
            format!("node {number} is forgotten: what it had is with others\n")
        })
    }
}

impl FreezeArgs {
    pub fn run(self) -> Result<(), Failure> {
        change(&self.data.path, ClusterOrder::Freeze, |view| view.frozen)?;
        tell(&json!({ "frozen": true }), self.json, |_| {
            "frozen: nobody is taken over until nephila cluster thaw\n".to_string()
        })
    }
}

impl ThawArgs {
    pub fn run(self) -> Result<(), Failure> {
        change(&self.data.path, ClusterOrder::Thaw, |view| !view.frozen)?;
        tell(&json!({ "frozen": false }), self.json, |_| "thawed\n".to_string())
    }
}

/// Orders a change of the table, and waits until it is there.
fn change(data: &Path, order: ClusterOrder, is_done: impl Fn(&ClusterView) -> bool) -> Result<(), Failure> {
    AskedNode::at(data)?.order(order)?;
    match wait(data, Some(CHANGE), is_done) {
        Some(_) => Ok(()),
        None => Err(Failure::No(format!(
            "not done after {} s: the table is changed once its voters answer (nephila cluster status names them)",
            CHANGE.as_secs()
        ))),
    }
}

/// Looks again and again; `None` if the time is over.
fn wait(
    data: &Path,
    limit: Option<Duration>,
    mut is_done: impl FnMut(&ClusterView) -> bool,
) -> Option<ClusterView> {
    let began = Instant::now();
    loop {
        let view = AskedNode::at(data).ok().and_then(|node| node.try_cluster());
        if let Some(view) = view.filter(&mut is_done) {
            return Some(view);
        }
        if limit.is_some_and(|limit| began.elapsed() >= limit) {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}
