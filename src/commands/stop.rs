use super::shared::{DataArg, Failure, RunningCrawl, tell};
use crate::master::keeping::MasterView;
use crate::store_server::Holder;
use clap::Args;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Stop a running crawl or master in good order, and wait until it has ended
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila stop --data ./example\n\nOpen fetches may end, everything is written, and the crawl prints its summary where it runs. A master finishes the epoch that it makes. Exit status 0: it has ended; 1: nothing runs there."
)]
pub struct StopArgs {
    #[command(flatten)]
    data: DataArg,
    /// Wait at most this many seconds for the end
    #[arg(long, value_name = "N", default_value_t = 60)]
    timeout: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const PAUSE: Duration = Duration::from_millis(20);

impl StopArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (data, started) = (&self.data.path, Instant::now());
        let until = started + Duration::from_secs(self.timeout);
        let Some(first) = Holder::of(data)? else { return Err(not_running(data)) };
        let mut is_asked = false;
        // A crawl that starts does not listen yet; one that ends does not listen any more.
        while let Some(holder) = Holder::of(data)?.filter(|holder| holder.pid == first.pid) {
            if !is_asked && let Some(mut crawl) = RunningCrawl::at(data)? {
                crawl.tell::<Value>("/api/v1/stop")?;
                is_asked = true;
            }
            if Instant::now() >= until {
                return Err(Failure::CannotRun(match is_asked {
                    true => {
                        format!("{holder} is still ending after {} s: it was asked to stop", self.timeout)
                    }
                    false => format!(
                        "{} is in use by {holder}, which does not answer: if it is no crawl, stop it by SIGTERM",
                        data.display()
                    ),
                }));
            }
            std::thread::sleep(PAUSE);
        }
        let seconds = started.elapsed().as_secs_f64();
        let said = json!({ "stopped": true, "pid": first.pid, "seconds": seconds });
        tell(&said, self.json, |_| format!("stopped: {first} has ended ({seconds:.1} s)\n"))
    }
}

pub(super) fn not_running(data: &Path) -> Failure {
    let what = if MasterView::is_at(data) { "no master" } else { "no crawl" };
    Failure::No(format!("{what} runs in {} (name its data directory with --data)", data.display()))
}
