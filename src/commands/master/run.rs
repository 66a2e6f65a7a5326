use super::report::MasterReport;
use crate::commands::settings::{
    AdminFlags, Before, DATABASE_PASSWORD, Overlay, layered, listen_address, master_faults,
};
use crate::commands::shared::{
    Failure, Farewell, LogArgs, Reload, Signals, WithParent, announce_links, free_data, listen, raise_nofile,
    run_to_end, take_doors, tell_summary,
};
use crate::config::{Config, ConfigError, Layered, Seconds};
use crate::engine::MasterNode;
use crate::storage::make_data_directory;
use crate::tune::Tally;
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Take URL logs as they come, and hold the queue of every node ready
///
/// Files are renamed into the spool, or lines are sent over TCP; nodes dial in and take their queues.
#[derive(Args)]
#[command(
    after_help = "Example:\n  printf '[master]\\nlisten = \"127.0.0.1:7190\"\\n[[server]]\\nid = 1\\n' > master.toml\n  nephila master run --config master.toml --data ./nephila-master\n  mv hour.reflog ./nephila-master/spool/\n  nephila crawl --master 127.0.0.1:7190 --server 1\n\nA file counts when it is renamed in, or closed by whoever wrote it; those that are taken move to done/ beside it. SIGHUP reads the file of --config again. Stop it with Ctrl-C: the epoch that is being made is finished. A second Ctrl-C stops at once; the epoch is made again at the next start, from the same files."
)]
pub struct RunArgs {
    /// Settings in TOML: those of [master], and a [[server]] for each node
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The master's data directory [default: data of [master]]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where files are renamed in [default: spool of [master], or the folder spool of the data directory]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Accept nodes at this address; port 0 takes a free one [default: listen of [master]]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Take files that were not renamed in when they have not changed for this long
    #[arg(long, value_name = "SECONDS")]
    settle: Option<Seconds>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    admin: AdminFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    parent: WithParent,
}

const FAREWELL: Farewell = Farewell {
    stopping: "the epoch that is being made is finished",
    at_once: "; the epoch is made again from the same files",
};

impl RunArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.log.begin();
        let signals = Signals::of_service()?;
        self.parent.heed(&signals)?;
        let started = Instant::now();
        let listen_at = self.listen.as_deref().map(listen_address).transpose()?;
        let read = || -> Result<Layered, Failure> {
            let mut layered = layered(Some(&self.config), &[&self.admin, &self], Before::IsNone)?;
            layered.config.master.listen = listen_at.or(layered.config.master.listen);
            match master_faults(&layered.config) {
                faults if faults.is_empty() => Ok(layered),
                faults => Err(Failure::usage(ConfigError::Wrong(
                    faults.into_iter().map(|fault| fault.cause).collect(),
                ))),
            }
        };
        let config = read()?.config;
        let reload = Reload::new(&config, false, read);
        let data = &config.master.data;
        let database =
            config.master.database_access(std::env::var(DATABASE_PASSWORD).ok()).map_err(Failure::Usage)?;
        raise_nofile();
        free_data(data)?;
        make_data_directory(data).map_err(|cause| {
            Failure::CannotRun(format!("cannot make {}: {cause} (choose another --data)", data.display()))
        })?;
        let doors = take_doors(&config, Some(data))?;
        let node = MasterNode::start(&config, database.as_ref(), started)?;
        announce_links("master", node.bound(), config.master.peer.as_slice());
        announce_links("master: intake", node.intake_bound(), &[]);
        let listener = listen(doors, node.desk(), Tally::default());
        let summary = run_to_end(node, listener, signals, &FAREWELL, Some(reload), |_| ())?;
        tell_summary(&MasterReport::new(&summary), self.json, MasterReport::table)
    }
}

impl Overlay for RunArgs {
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
        let master = &mut config.master;
        if let Some(data) = &self.data {
            master.data.clone_from(data);
            told.push("master.data".to_string());
        }
        if self.spool.is_some() {
            master.spool.clone_from(&self.spool);
            told.push("master.spool".to_string());
        }
        if self.settle.is_some() {
            master.settle = self.settle;
            told.push("master.settle".to_string());
        }
    }
}
