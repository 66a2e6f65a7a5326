use super::cluster::AskedNode;
use super::crawl::admitted;
use super::shared::{DataArg, Failure, Intake, hint, parse_url, read_urls, tell};
use crate::doc_index::Import;
use crate::engine::{CrawlRules, NodeFiles, Taken, index_folder};
use crate::proto::url::CrawlUrl;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Add URLs to a running crawl, or to a directory for its next one
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila add --data ./example http://example.org/news/\n  nephila add --data ./example --seeds more.txt\n\nThey count as seeds. A running crawl takes them up at once; they are on disk when this command ends. A\nnode of a cluster has them on two disks then; if that takes longer than 10 s a line says that they are on one."
)]
pub struct AddArgs {
    /// URLs to add
    urls: Vec<String>,
    /// A file of URLs to add, one a line; blank lines and # comments are skipped
    #[arg(long, value_name = "FILE")]
    seeds: Option<PathBuf>,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Added {
    running: bool,
    #[serde(skip)]
    is_node: bool,
    #[serde(flatten)]
    taken: Taken,
}

impl AddArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut urls = self.urls.iter().map(|url| parse_url(url)).collect::<Result<Vec<_>, Failure>>()?;
        if let Some(path) = &self.seeds {
            read_urls(path, "--seeds", &mut urls)?;
        }
        if urls.is_empty() {
            return Err(Failure::Usage("nothing to add: give a URL, or a file of them with --seeds".into()));
        }
        add(urls, &self.data.path, self.json)
    }
}

/// So long it is waited for that what was added to a node is on two disks.
const COPIED: Duration = Duration::from_secs(10);

/// Adds URLs as seeds, and tells what became of them.
pub(super) fn add(urls: Vec<CrawlUrl>, data: &Path, json: bool) -> Result<(), Failure> {
    let given = urls.len();
    let rules = CrawlRules::read(&index_folder(data))?.unwrap_or_default();
    let urls = admitted(urls, &rules.config())?;
    let denied = (given - urls.len()) as u64;
    let is_new = !data.exists();
    let mut intake = Intake::open(data, true)?;
    if is_new {
        hint(format_args!("{} was not there, and was made", data.display()));
    }
    let running = intake.is_running();
    for url in urls {
        let line = url.to_string();
        intake.hand(&line, &Import::seed(url))?;
    }
    let mut taken = intake.close()?;
    taken.refused += denied;
    let is_node = NodeFiles::are_in(data);
    if running && is_node {
        let alone = AskedNode::at(data)?.wait_until_safe(COPIED);
        if let Some(why) = alone {
            hint(format_args!(
                "they are on the disk of this node alone: {why} (nephila cluster status tells how far its copy is)"
            ));
        }
    }
    tell(&Added { running, is_node, taken }, json, Added::text)
}

impl Added {
    fn text(&self) -> String {
        let Taken { new, known, due, refused, .. } = self.taken;
        let where_to = match (self.running, self.is_node) {
            (true, false) => "the running crawl has them",
            (false, false) => "the next crawl begins with them",
            (true, true) => "the running node has them, and tells others of theirs",
            (false, true) => "the node begins with them when it is started, and tells others of theirs",
        };
        let known = known + due;
        format!("{new} new, {known} known, {refused} refused; {where_to}\n")
    }
}
