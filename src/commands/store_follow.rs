use super::settings::{Before, read_layers};
use super::shared::{Failure, counted, hint, open_data, print, stream, tell_event, write_json};
use crate::engine::{Copied, FollowersSetup, Notice};
use crate::store_server::{Holder, Reader};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Copy what is not copied yet into PostgreSQL and S3, as [content] of the settings says
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila store follow --data ./example --config job.toml\n  nephila store follow --data ./example --json\n\nA crawl with [content] does this by itself, for every segment that it has sealed; here it is done at rest, until all is\nthere. It may also run while another process writes the store, for what that has sealed. Without --config it goes by what\nthe data directory was told. Exit status 3 if the other side cannot be reached; 1 if it refused documents, or if segments\nwent before they were copied."
)]
pub(super) struct FollowArgs {
    /// The data directory of a crawl [default: the file's, if it says one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A file of settings in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// JSON Lines: an object for each follower
    #[arg(long)]
    json: bool,
}

/// One line of `--json`.
#[derive(Serialize)]
struct CopiedJson<'a> {
    follower: &'a str,
    place: &'a str,
    documents: u64,
    refused: u64,
    segments_gone: u64,
    segments_waiting: u64,
    failed: Option<&'a str>,
}

impl FollowArgs {
    pub fn run(self) -> Result<(), Failure> {
        let layers = read_layers(self.config.as_deref(), self.data.as_deref(), Before::Holds)?;
        let config = layers.layered.config;
        let data = &config.store.data;
        let setup = FollowersSetup::of(&config).map_err(Failure::Usage)?;
        if setup.is_empty() {
            return Err(Failure::Usage(
                "nowhere to copy to: set postgres or s3 under [content] in a file for --config".to_string(),
            ));
        }
        Reader::open(data)?;
        match Holder::of(data)? {
            // Seals what a process that was killed left open.
            None => drop(open_data(data, "process")?),
            Some(by) => hint(format!("{} is written by {by}: what it has sealed is copied", data.display())),
        }
        let all = setup.catch_up(data, |Notice { event, fields, text }| tell_event(event, fields, text));
        if self.json {
            stream(|out| all.iter().try_for_each(|copied| write_json(out, &CopiedJson::of(copied))))?;
        } else {
            print(&all.iter().map(line).collect::<String>())?;
        }
        let failed: Vec<String> = all
            .iter()
            .filter_map(|copied| Some(format!("{}: {}", copied.follower, copied.failed.as_ref()?)))
            .collect();
        if !failed.is_empty() {
            return Err(Failure::CannotRun(failed.join("\n")));
        }
        match all.iter().any(|copied| copied.refused + copied.gone + copied.waiting > 0) {
            true => Err(Failure::No("not everything could be copied".to_string())),
            false => Ok(()),
        }
    }
}

impl CopiedJson<'_> {
    fn of(copied: &Copied) -> CopiedJson<'_> {
        let Copied { follower, place, documents, refused, gone, waiting, failed } = copied;
        CopiedJson {
            follower,
            place,
            documents: *documents,
            refused: *refused,
            segments_gone: *gone,
            segments_waiting: *waiting,
            failed: failed.as_deref(),
        }
    }
}

fn line(copied: &Copied) -> String {
    let Copied { follower, place, documents, refused, gone, waiting, .. } = copied;
    let mut line = format!("{follower:<9} {} copied to {place}", counted(*documents, "document"));
    for (count, what, said) in [
        (*refused, "document", "refused"),
        (*gone, "segment", "gone before they were copied"),
        (*waiting, "segment", "waiting"),
    ] {
        if count > 0 {
            line += &format!("; {} {said}", counted(count, what));
        }
    }
    line + "\n"
}
