use super::shared::{DataArg, Failure, RunningCrawl, tell};
use super::stop::not_running;
use crate::engine::NodeStatus;
use clap::Args;
use serde_json::{Value, json};

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
    if crawl.ask::<Value>(verb)?.is_none() {
        return Err(not_running(&data.path));
    }
    let Some(NodeStatus { pid, state, open, .. }) = crawl.ask("status")? else {
        return Err(not_running(&data.path));
    };
    let said = json!({ "state": state.name(), "pid": pid, "open": open });
    tell(&said, json, |_| match (verb, open) {
        ("pause", 1..) => format!("paused: {open} open requests may end (pid {pid})\n"),
        ("pause", _) => format!("paused: no request is open (pid {pid})\n"),
        _ => format!("resumed (pid {pid})\n"),
    })
}
