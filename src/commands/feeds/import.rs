use super::add::added;
use super::desk::{Desk, NamedFeed, Told, Word};
use super::list::{Listed, listed};
use crate::base::shown;
use crate::commands::index::typed;
use crate::commands::shared::{DataArg, Failure, counted, hint, tell};
use clap::Args;
use serde::Serialize;
use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

/// Put the feeds of a file into the book: OPML, a list of URLs, or CSV
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila feeds import --data ./example subscriptions.opml\n  nephila feeds import --data ./example feeds.txt\n  printf 'url,source,title\\nhttp://example.org/rss,Example,News\\n' > feeds.csv; nephila feeds import feeds.csv\n\nFolders of OPML become sources; CSV has url, source and title. What is no URL of a feed is named and skipped,\nand a feed that is listed twice is one. Exit status 1 if there is no feed in it."
)]
pub struct ImportArgs {
    /// The file; - is stdin
    file: PathBuf,
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Imported {
    #[serde(flatten)]
    told: Told,
    skipped: u64,
    twice: u64,
}

/// Of a file of feeds.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Lines that are named one by one.
const NAMED_MAX: u64 = 20;

impl ImportArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (name, mut bytes) = (self.file.display(), Vec::new());
        let read = match self.file.as_os_str() == "-" {
            true => std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
            false => std::fs::File::open(&self.file)
                .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)),
        };
        read.map_err(|e| Failure::Usage(format!("cannot read {name}: {e} (name a file of feeds)")))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(Failure::Usage(format!(
                "{name} is longer than {} MiB: split it",
                FILE_BYTES_MAX >> 20
            )));
        }
        let is_csv = self.file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let (mut feeds, mut known, mut skipped, mut twice) = (Vec::new(), HashSet::new(), 0, 0);
        let damage = listed(&bytes, is_csv, |Listed { line, url, source, title }| {
            match typed(&url, &self.data.path) {
                Ok(url) if !known.insert(url.to_string()) => twice += 1,
                Ok(url) => feeds.push(NamedFeed { url: url.to_string(), source, title }),
                Err(failure) => {
                    skipped += 1;
                    if skipped <= NAMED_MAX {
                        let (Failure::Usage(why) | Failure::CannotRun(why) | Failure::No(why)) = failure;
                        hint(format_args!("{name}:{line}: skipped: {why}"));
                    }
                }
            }
        });
        let damage = damage.map_err(|why| Failure::Usage(format!("{name}: {why}")))?;
        if let Some(damage) = damage {
            hint(format_args!("{name}: {}: what came before is taken", shown(damage, 200)));
        }
        if skipped > NAMED_MAX {
            hint(format_args!("{name}: {} more skipped", skipped - NAMED_MAX));
        }
        if feeds.is_empty() {
            return Err(Failure::No(format!("there is no feed in {name}")));
        }
        let told = Desk::open(&self.data.path)?.give(Word::Add { feeds })?;
        tell(&Imported { told, skipped, twice }, self.json, |imported| {
            let skipped = match imported.skipped {
                0 => String::new(),
                count => format!("{} skipped; ", counted(count, "line")),
            };
            format!("{skipped}{}", added(&imported.told))
        })
    }
}
