use super::AskedNode;
use crate::base::counted;
use crate::commands::shared::{DataArg, Failure, tell};
use crate::engine::ClusterView;
use clap::Args;
use serde_json::json;
use std::time::{Duration, Instant};

/// Wait until all is done everywhere
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila cluster wait --data ./n1\n  nephila cluster wait --nodes 3 --timeout 60 --data ./n1\n\nWhat was added before it was typed is done when it ends, at whichever node that was. Exit status 0: it is so; 1: the\ntime is over; 3: no node runs there."
)]
pub struct WaitArgs {
    #[command(flatten)]
    data: DataArg,
    /// Wait at most this many seconds
    #[arg(long, value_name = "S")]
    timeout: Option<u64>,
    /// Also until so many nodes are linked and have their share of the web
    #[arg(long, value_name = "N", default_value_t = 1)]
    nodes: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A node that was started a moment ago answers within this.
const START: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// Of the round in which it began to wait, some answers may be older; the two after it are not, and they must agree.
const ROUNDS: u64 = 3;

impl WaitArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (began, mut seen, mut last) = (Instant::now(), Instant::now(), None);
        let mut from_round = None;
        loop {
            let node = AskedNode::at(&self.data.path);
            match node.as_ref().ok().and_then(AskedNode::try_cluster) {
                Some(view) => {
                    let from = from_round.get_or_insert(view.round);
                    // A node that was started again counts anew.
                    *from = (*from).min(view.round);
                    let is_dealt = self.nodes == 1 || view.moving == 0;
                    let is_ready = view.ready && view.round >= *from + ROUNDS;
                    if is_ready && is_dealt && with_share(&view) >= self.nodes {
                        return self.told(&view, began.elapsed());
                    }
                    (seen, last) = (Instant::now(), Some(view));
                }
                None if seen.elapsed() >= START => {
                    return Err(node.map_or_else(|error| error, |node| node.is_silent()));
                }
                None => {}
            }
            if self.timeout.is_some_and(|s| began.elapsed() >= Duration::from_secs(s)) {
                return Err(Failure::No(self.not_yet(last.as_ref())));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn told(&self, view: &ClusterView, waited: Duration) -> Result<(), Failure> {
        let seconds = waited.as_secs_f64();
        let nodes = view.members().count() as u64;
        let pages: u64 = view.members().filter_map(|node| node.told.as_ref()).map(|told| told.pages).sum();
        let said = json!({ "ready": true, "nodes": nodes, "pages": pages, "seconds": seconds });
        tell(&said, self.json, |_| {
            format!("ready: {} at {} ({seconds:.1} s)\n", counted(pages, "page"), counted(nodes, "node"))
        })
    }

    /// What it would have waited for.
    fn not_yet(&self, view: Option<&ClusterView>) -> String {
        let after = format!("not ready after {} s", self.timeout.unwrap_or(0));
        let Some(view) = view else { return format!("{after}: no node answers") };
        let with_share = with_share(view);
        if with_share < self.nodes {
            return format!("{after}: {} of {} nodes are linked and have a share", with_share, self.nodes);
        }
        let told = || view.members().filter_map(|node| node.told.as_ref());
        let pending: u64 = told().map(|told| told.pending + told.open).sum();
        let outbox: u64 = told().map(|told| told.outbox).sum();
        let (pending, outbox) = (counted(pending, "URL"), counted(outbox, "URL"));
        format!("{after}: {pending} pending, {outbox} on the way (nephila cluster status tells more)")
    }
}

/// Nodes that are linked and own something.
fn with_share(view: &ClusterView) -> u64 {
    view.members().filter(|node| node.linked && node.partitions > 0).count() as u64
}
