use super::crawl::admitted;
use super::shared::{DataArg, Failure, Intake, hint, parse_url, read_urls, tell};
use crate::doc_index::Import;
use crate::engine::{CrawlRules, Taken, index_folder};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Add URLs to a running crawl, or to a directory for its next one
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila add --data ./example http://example.org/news/\n  nephila add --data ./example --seeds more.txt\n\nThey count as seeds. A running crawl takes them up at once; they are on disk when this command ends."
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
        let given = urls.len();
        let rules = CrawlRules::read(&index_folder(&self.data.path))?.unwrap_or_default();
        let urls = admitted(urls, &rules.config())?;
        let denied = (given - urls.len()) as u64;
        let is_new = !self.data.path.exists();
        let mut intake = Intake::open(&self.data.path, true)?;
        if is_new {
            hint(format_args!("{} was not there, and was made", self.data.path.display()));
        }
        let running = intake.is_running();
        for url in urls {
            let line = url.to_string();
            intake.hand(&line, &Import::seed(url))?;
        }
        let mut taken = intake.close()?;
        taken.refused += denied;
        tell(&Added { running, taken }, self.json, Added::text)
    }
}

impl Added {
    fn text(&self) -> String {
        let Taken { new, known, due, refused, .. } = self.taken;
        let where_to = match self.running {
            true => "the running crawl has them",
            false => "the next crawl begins with them",
        };
        let known = known + due;
        format!("{new} new, {known} known, {refused} refused; {where_to}\n")
    }
}
