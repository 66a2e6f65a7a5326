use super::shared::{DataArg, Failure, RunningCrawl, tell};
use super::stop::not_running;
use clap::Args;
use serde::{Deserialize, Serialize};

/// Pause a running crawl: no new requests go out, and those that are open may end
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila pause --data ./example\n  nephila resume --data ./example\n\nA paused crawl does not end by itself, but for --max-seconds; nephila stop and signals end it. The next\nrun is not paused. Pauses that hosts asked for keep counting.\nExit status 1: no crawl runs there."
)]
pub struct PauseArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Go on with a crawl that was paused
#[derive(Args)]
#[command(after_help = "Example:\n  nephila resume --data ./example\n\nExit status 1: no crawl runs there.")]
pub struct ResumeArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What the crawl answers.
#[derive(Serialize, Deserialize)]
struct Said {
    state: String,
    pid: u32,
    open: u64,
}

impl PauseArgs {
    pub fn run(self) -> Result<(), Failure> {
        ask(&self.data, "pause", self.json)
    }
}

impl ResumeArgs {
    pub fn run(self) -> Result<(), Failure> {
        ask(&self.data, "resume", self.json)
    }
}

fn ask(data: &DataArg, verb: &str, json: bool) -> Result<(), Failure> {
    let Some(mut crawl) = RunningCrawl::at(&data.path)? else { return Err(not_running(&data.path)) };
    let Some(said) = crawl.tell::<Said>(&format!("/api/v1/{verb}"))? else {
        return Err(not_running(&data.path));
    };
    tell(&said, json, |Said { pid, open, .. }| match (verb, open) {
        ("pause", 1..) => format!("paused: {open} open requests may end (pid {pid})\n"),
        ("pause", _) => format!("paused: no request is open (pid {pid})\n"),
        _ => format!("resumed (pid {pid})\n"),
    })
}
