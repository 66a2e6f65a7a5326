use super::settings::{
    AdminFlags, Before, BlockFlags, DataFlags, Overlay, StoreFlags, layered, listen_address,
};
use super::shared::{
    Failure, Farewell, LogArgs, Reload, Signals, StoreReport, announce_links, announce_tuning, listen,
    open_data, raise_nofile, run_to_end, take_doors, tell_summary,
};
use crate::config::{Config, flag_help};
use crate::engine::StoreNode;
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Store what spiders in other processes send
///
/// A connection is a stream of records. The server writes back how many of them are on disk, as a big-endian u64, whenever
/// that number has grown.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila storeserver --listen 127.0.0.1:7172 --data ./documents\n  nephila spider --listen 127.0.0.1:7171 --store 127.0.0.1:7172\n  nephila store ls --data ./documents\n\nA stream that is malformed, or that ends inside a record, is closed with one line on stderr; the\nwhole records before that are kept. Stop it with Ctrl-C: what was received is stored and counted,\nand the summary is printed. A second Ctrl-C stops at once."
)]
pub struct StoreServerArgs {
    /// Accept spiders at this address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", required_unless_present = "config")]
    listen: Option<String>,
    #[command(flatten)]
    data: DataFlags,
    /// Settings in TOML: those of [store], and max_doc_size of [spider], are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[arg(long, value_name = "LIST", help = flag_help("crawl", "cores"))]
    cores: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    blocks: BlockFlags,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    admin: AdminFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long)]
    json: bool,
}

const FAREWELL: Farewell =
    Farewell { stopping: "what was received is stored and counted", at_once: "; what was counted is stored" };

impl StoreServerArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.log.begin();
        let signals = Signals::of_service()?;
        let started = Instant::now();
        let read = || {
            layered(self.config.as_deref(), &[&self.data, &self.blocks, &self.admin, &self], Before::IsNone)
        };
        let config = read()?.config;
        let reload = Reload::new(&config, false, read);
        let address = self.listen.as_deref().map(listen_address).transpose()?.or(config.store.listen);
        let address = address.ok_or_else(|| {
            let mend = "give --listen, or set listen under [store] in the file of --config";
            Failure::Usage(format!("no spider could dial in: {mend}"))
        })?;
        raise_nofile();
        let doors = take_doors(&config, Some(&config.store.data))?;
        let directory = open_data(&config.store.data, "process")?;
        let node = StoreNode::start(&config, address, directory, started)?;
        let machine = announce_tuning(&config.store.data, None);
        announce_links("storeserver", Some(node.bound()), &[]);
        let listener = listen(doors, node.desk(), machine);
        let summary = run_to_end(node, listener, signals, &FAREWELL, Some(reload), |_| ())?;
        tell_summary(&StoreReport::new(&summary), self.json, StoreReport::table)
    }
}

impl Overlay for StoreServerArgs {
    fn lay_over(&self, config: &mut Config, told: &mut Vec<String>) {
        self.store.lay_over(config, told);
        if self.cores.is_some() {
            config.crawl.cores.clone_from(&self.cores);
        }
        // Memory for documents that are fetched is none of its settings.
        let spider = &mut config.spider;
        spider.body_memory.0 = spider.body_memory.0.max(spider.max_doc_size.0);
    }
}
