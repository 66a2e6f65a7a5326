use super::settings::{AdminFlags, Before, BlockFlags, DataFlags, SharedArgs, listen_address};
use super::shared::{
    ChosenDriver, Failure, Farewell, ProductDriver, Reload, Signals, SpiderReport, announce_links,
    announce_tuning, links_possible, listen, open_data, run_to_end, take_doors, tell_event, tell_summary,
};
use crate::base::shown;
use crate::config::Config;
use crate::driver::{EpollDriver, UringDriver};
use crate::engine::{
    Event, LinksConfig, NodeError, NodeSetup, SpiderNode, SpiderSetup, SpiderSummary, StoreAt,
};
use clap::Args;
use std::time::Instant;

/// Fetch for URL servers in other processes, and store the documents
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila spider --listen 0.0.0.0:7171 --data ./documents\n  nephila spider --urlserver urls.example.net:7170 --store store.example.net:7172\n\nA URL server sends lines of work. Each is answered with DONE when its document is on disk, here\nor at the store server; if a store server never counts what it has stored, when it was sent.\nHOST_IP must be a public address unless its network is allowed with --allow-net.\nStop it with Ctrl-C: open fetches end, everything is written, and the summary is printed.\nA second Ctrl-C stops at once."
)]
pub struct SpiderArgs {
    /// Accept URL servers at this address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", required_unless_present_any = ["urlserver", "config"], conflicts_with = "urlserver")]
    listen: Option<String>,
    /// Dial this URL server, until it answers (repeatable)
    #[arg(long, value_name = "ADDR")]
    urlserver: Vec<String>,
    #[command(flatten)]
    data: DataFlags,
    /// Send documents to a store server, again and again until it has them, and keep nothing here
    #[arg(long, value_name = "ADDR", conflicts_with = "data")]
    store: Option<String>,
    #[command(flatten)]
    blocks: BlockFlags,
    #[command(flatten)]
    shared: SharedArgs,
    #[command(flatten)]
    admin: AdminFlags,
    /// Print one JSON object at the end, and nothing else, on stdout
    #[arg(long)]
    json: bool,
}

const FAREWELL: Farewell =
    Farewell { stopping: "open fetches may end (5 s at most)", at_once: "; what was answered is stored" };

impl SpiderArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.shared.log.begin();
        let signals = Signals::of_service()?;
        let started = Instant::now();
        let config = self.shared.config(&[&self.data, &self.blocks, &self.admin])?;
        // What is typed takes the place of what the file says of links.
        let typed = self.listen.is_some() || !self.urlserver.is_empty();
        let told = &config.spider;
        let (listen, urlserver) = match typed {
            true => (self.listen.as_deref().map(listen_address).transpose()?, &self.urlserver),
            false => (told.listen, &told.urlserver),
        };
        let dial =
            urlserver.iter().map(|at| dial_address("--urlserver", at)).collect::<Result<Vec<_>, _>>()?;
        if listen.is_none() && dial.is_empty() {
            return Err(Failure::Usage(
                "no way to a URL server: give --listen or --urlserver, or set listen or urlserver under [spider] in the file of --config"
                    .into(),
            ));
        }
        let links = LinksConfig { listen, dial, links_max: links_possible(), answers_end: false };
        let store = self.store.as_deref().or(told.store.as_deref());
        let store = store.map(|text| dial_address("--store", text)).transpose()?;
        let read = || self.shared.layered(&[&self.data, &self.blocks, &self.admin], Before::IsNone);
        let reload = Reload::new(&config, false, read);
        let summary = spider(config, links, store, (signals, reload), started)?;
        tell_summary(&SpiderReport::new(&summary), self.json, SpiderReport::table)
    }
}

/// A name is looked up when it is dialed, and each time again; here it is only looked at.
fn dial_address(flag: &str, text: &str) -> Result<String, Failure> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_string())
        }
        _ => Err(Failure::Usage(format!(
            "{flag} {}: not a host and a port, like server.example.net:7170",
            shown(text, 200)
        ))),
    }
}

/// Runs a spider until it is told to stop.
fn spider(
    mut config: Config,
    links: LinksConfig,
    store: Option<String>,
    (signals, reload): (Signals, Reload<'_>),
    started: Instant,
) -> Result<SpiderSummary, Failure> {
    let shards = config.cores.len();
    let driver = ChosenDriver::of(&mut config, shards)?;
    let doors = take_doors(&config, store.is_none().then_some(&*config.store.data))?;
    let mut kit = SpiderSetup::with_files(&config).map_err(Failure::usage)?;
    driver.announce(&config.cores);
    let store = match store {
        Some(address) => {
            let text = format!("spider: documents go to the store server {address}");
            tell_event(Event::StoreServerUsed, vec![("store_server", (&address).into())], text);
            StoreAt::Server(address)
        }
        None => {
            let directory = open_data(&config.store.data, "process")?;
            kit.read_stored(&config.store.data)?;
            StoreAt::Directory(directory)
        }
    };
    let setup = NodeSetup { config, kit };
    let dials = links.dial.clone();
    let node = match driver.is_uring {
        true => start::<UringDriver>(&setup, links, store, started)?,
        false => start::<EpollDriver>(&setup, links, store, started)?,
    };
    let machine = announce_tuning(&setup.config.store.data, driver.refused);
    announce_links("spider", node.bound(), &dials);
    let listener = listen(doors, node.desk(), machine);
    run_to_end(node, listener, signals, &FAREWELL, Some(reload), |_| ())
}

fn start<D: ProductDriver>(
    setup: &NodeSetup,
    links: LinksConfig,
    store: StoreAt,
    started: Instant,
) -> Result<SpiderNode, NodeError> {
    let fetches_max = setup.config.spider.fetches_max;
    SpiderNode::start(setup, links, store, D::NAME, move |_| D::open(fetches_max, started), started)
}
