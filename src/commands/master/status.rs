use super::command::MasterData;
use crate::base::shown;
use crate::commands::shared::{Failure, tell};
use crate::store_server::Holder;
use clap::Args;
use serde::Serialize;

/// Say how a master is doing, or how the last one left its directory
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila master status --data ./nephila-master\n  nephila master status --data ./nephila-master --json\n\nExit status 0: a master runs there; 1: none does, and its files are read."
)]
pub struct StatusArgs {
    #[command(flatten)]
    data: MasterData,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    running: bool,
    data: String,
    pid: Option<u32>,
}

impl StatusArgs {
    pub fn run(self) -> Result<(), Failure> {
        let path = &self.data.path;
        if !path.is_dir() {
            let (path, mend) = (path.display(), "name the data directory of a master with --data");
            return Err(Failure::CannotRun(format!("{path} is no directory ({mend})")));
        }
        let holder = Holder::of(path)?;
        let found = Found {
            running: holder.is_some(),
            data: path.display().to_string(),
            pid: holder.as_ref().and_then(|holder| holder.pid),
        };
        tell(&found, self.json, Found::text)?;
        if found.running { Ok(()) } else { Err(Failure::No(String::new())) }
    }
}

impl Found {
    fn text(&self) -> String {
        let state = match (self.running, self.pid) {
            (false, _) => "not running".to_string(),
            (true, None) => "in use by another nephila process".to_string(),
            (true, Some(pid)) => format!("in use by pid {pid}"),
        };
        format!("data       {}\nstate      {state}\n", shown(&self.data, 2_000))
    }
}
