use super::AskedNode;
use crate::base::{counted, shown};
use crate::commands::shared::{DataArg, Failure, mb, tell};
use crate::engine::{VerifiedNode, VerifyView};
use clap::Args;
use std::time::{Duration, Instant};

/// Have every node compare what it has with the copy of it; exit 1 if something is short of its promise
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila cluster verify --data ./n1\n  nephila cluster verify --data ./n1 --json\n\nAll nodes go by the same table, and every partition has an owner that answers. Of every segment the node and its copy\nhave the same bytes, and the copy knows what it was told. Segments of nodes that are gone can be read. Everything is\nread once, with pauses, so that it takes as long as the disks need; a crawl goes on meanwhile.\n\nExit status 0: all is as promised; 1: not so, and a line each says what and how it is mended; 3: no node runs there."
)]
pub struct VerifyArgs {
    #[command(flatten)]
    data: DataArg,
    /// Wait at most this many seconds; the nodes go on all the same
    #[arg(long, value_name = "S")]
    timeout: Option<u64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const PAUSE: Duration = Duration::from_millis(200);
/// A node that does not answer for so long does not run any more.
const SILENT: Duration = Duration::from_secs(30);

impl VerifyArgs {
    pub fn run(self) -> Result<(), Failure> {
        let node = AskedNode::at(&self.data.path)?;
        let cluster = node.cluster()?;
        if cluster.epoch == 0 || cluster.node == 0 {
            let text = "this node is not taken in by a cluster yet (the nodes named by --join must run)";
            return Err(Failure::No(text.to_string()));
        }
        let id = node.verify()?;
        let view = self.wait(&node, id)?;
        tell(&view, self.json, text)?;
        match view.short.len() {
            0 => Ok(()),
            short => {
                let are = if short == 1 { "is" } else { "are" };
                Err(Failure::No(format!(
                    "{} {are} short of what was promised",
                    counted(short as u64, "thing")
                )))
            }
        }
    }

    /// Waits until all have told what they found.
    fn wait(&self, node: &AskedNode<'_>, id: u64) -> Result<VerifyView, Failure> {
        let (began, mut seen) = (Instant::now(), Instant::now());
        loop {
            match node.try_verified() {
                Some(view) if view.id >= id && view.done => return Ok(view),
                Some(_) => seen = Instant::now(),
                None if seen.elapsed() >= SILENT => return Err(node.is_silent()),
                None => {}
            }
            if self.timeout.is_some_and(|s| began.elapsed() >= Duration::from_secs(s)) {
                let s = began.elapsed().as_secs();
                let text =
                    format!("not all is compared after {s} s; the nodes go on: ask again to wait for it");
                return Err(Failure::No(text));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn text(view: &VerifyView) -> String {
    let nodes = counted(view.nodes.len() as u64, "node");
    let mut text = format!("{nodes} by table {}, as node {} asked them\n", view.epoch, view.node);
    for node in view.nodes.iter().filter(|node| node.answered) {
        text += &format!("node {} at {}: {}\n", node.node, shown(&node.address, 200), found(node));
    }
    match view.short.is_empty() {
        true => text + "all is as promised\n",
        false => text + &view.short.iter().map(|short| short.line() + "\n").collect::<String>(),
    }
}

fn found(node: &VerifiedNode) -> String {
    let copy = match node.follower {
        0 => "no copy".to_string(),
        follower => format!(
            "{} ({:.1} MB) and {} are the same at node {follower}",
            counted(node.segments, "segment"),
            mb(node.bytes),
            counted(node.documents, "document")
        ),
    };
    match node.kept {
        0 => copy,
        kept => format!("{copy}; {} of nodes that are gone can be read", counted(kept, "segment")),
    }
}
