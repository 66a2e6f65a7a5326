use super::AskedNode;
use crate::commands::add::add;
use crate::commands::shared::{DataArg, Failure, read_urls};
use clap::Args;
use std::path::PathBuf;

/// Add URLs to the crawl of a cluster, through any of its nodes
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila cluster add-seeds seeds.txt --data ./n2\n\nThey count as seeds. They are on the disk of that node when this command ends, and in its copy on that of the next one on\nthe ring; if that is away for 10 s, a line says that they are on one disk alone. Each goes on to the node that it\nbelongs to. A node that does not run takes them up with its next start."
)]
pub struct AddSeedsArgs {
    /// A file of URLs, one a line; blank lines and # comments are skipped
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl AddSeedsArgs {
    pub fn run(self) -> Result<(), Failure> {
        AskedNode::at(&self.data.path)?;
        let mut urls = Vec::new();
        read_urls(&self.file, "FILE", &mut urls)?;
        if urls.is_empty() {
            return Err(Failure::Usage(format!("nothing to add: no URL in {}", self.file.display())));
        }
        add(urls, &self.data.path, self.json)
    }
}
