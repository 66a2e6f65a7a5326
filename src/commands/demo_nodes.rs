use super::bench::FarmProcess;
use super::cluster::AskedNode;
use super::demo_master::{Player, free_address};
use super::shared::{Failure, Interrupt, Signals, Ticker, counted, print};
use crate::base::{SortedMap, SortedSet};
use crate::engine::{ClusterView, NodeTold};
use crate::store_server::Reader;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A farm and the nodes of a cluster on loopback: URLs go in at one of them, another is killed on the way and comes back.
pub(super) struct NodesDemo<'a> {
    pub dir: &'a Path,
    pub nodes: u16,
    pub hosts: u32,
    pub pages: u32,
    pub req_host_per_sec: f64,
}

/// A cluster that has not come together for so long, or has not gone on, will not.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of the pages, the part after which a node is killed.
const KILLED_AFTER: u64 = 4;
/// As of `cluster wait`: rounds that begin after something was told know of it.
const ROUNDS: u64 = 3;

/// The nodes, and what each said last of its cluster.
struct Cast<'a> {
    demo: &'a NodesDemo<'a>,
    cores: &'a [usize],
    farm: FarmProcess,
    addresses: Vec<String>,
    players: Vec<Player>,
    views: Vec<Option<ClusterView>>,
    moved_at: Instant,
    signals: Signals,
    ticker: Ticker,
}

/// Why the demo ends before its end.
enum Cut {
    Stopped,
    Failed(Failure),
}

impl From<Failure> for Cut {
    fn from(failure: Failure) -> Cut {
        Cut::Failed(failure)
    }
}

impl NodesDemo<'_> {
    pub fn run(&self, cores: &[usize], farm_cores: &[usize], signals: Signals) -> Result<(), Failure> {
        let figures = [("--hosts", self.hosts), ("--pages", self.pages)];
        let farm = FarmProcess::start(&figures, &[], farm_cores, self.dir)?;
        print(&format!(
            "a farm of {} hosts x {} pages is up on 127.16.0.0 and following, port {}\n",
            self.hosts, self.pages, farm.port
        ))?;
        let addresses = (0..self.nodes).map(|_| free_address()).collect::<Result<Vec<_>, Failure>>()?;
        let mut cast = Cast {
            demo: self,
            cores,
            farm,
            addresses,
            players: Vec::new(),
            views: Vec::new(),
            moved_at: Instant::now(),
            signals,
            ticker: Ticker::with_plain(Some(Duration::from_secs(2))),
        };
        let began = Instant::now();
        let played = cast.play();
        cast.ticker.end();
        let seconds = began.elapsed().as_secs_f64();
        cast.players.iter_mut().for_each(Player::stop);
        match played {
            Ok(()) => cast.end(seconds),
            Err(Cut::Failed(failure)) => Err(failure),
            Err(Cut::Stopped) => print(&format!(
                "stopped: the nodes and the farm have ended; what they made is in {}, and goes with the next demo\n",
                self.dir.display()
            )),
        }
    }

    fn name(number: u16) -> String {
        format!("node{number}")
    }

    fn all_pages(&self) -> u64 {
        u64::from(self.hosts) * u64::from(self.pages)
    }
}

impl Cast<'_> {
    fn play(&mut self) -> Result<(), Cut> {
        let (nodes, dir) = (self.demo.nodes, self.demo.dir.display());
        for number in 1..=nodes {
            self.start(number)?;
            // The first makes the key that the others join by.
            self.wait(|cast| cast.views[usize::from(number) - 1].is_some())?;
        }
        print(&format!(
            "{nodes} nodes at {}, one core each, with {} to each host; all of it is in {dir}\n",
            self.addresses.join(", "),
            rate(self.demo.req_host_per_sec),
        ))?;
        let has_shares = |cast: &Cast<'_>| {
            cast.views.iter().flatten().all(|view| {
                let with_share = view.members().filter(|node| node.linked && node.partitions > 0);
                with_share.count() == usize::from(nodes)
            })
        };
        self.wait(has_shares)?;
        let shares = self.views.iter().flatten().next().map_or(String::new(), shares_text);
        print(&format!("each has its share of the web: {shares}\n\n"))?;
        self.add_seeds()?;
        let all = self.demo.all_pages();
        self.wait(|cast| cast.pages() >= all / KILLED_AFTER)?;
        self.kill_and_start_again(nodes)?;
        let from = self.views[0].as_ref().map_or(0, |view| view.round);
        let is_ready = |cast: &Cast<'_>| {
            cast.views.iter().all(Option::is_some)
                && cast.views[0].as_ref().is_some_and(|view| view.ready && view.round >= from + ROUNDS)
        };
        self.wait(is_ready)?;
        self.ticker.end();
        Ok(print("\nready: all is done everywhere, and all that was sent is counted\n")?)
    }

    /// Starts a node, or starts it again on what it has.
    fn start(&mut self, number: u16) -> Result<(), Failure> {
        let (demo, at) = (self.demo, usize::from(number) - 1);
        let name = NodesDemo::name(number);
        let [data, hosts, rate, core, key] = [
            demo.dir.join(&name).display().to_string(),
            self.farm.hosts_file.display().to_string(),
            demo.req_host_per_sec.to_string(),
            self.cores[at % self.cores.len()].to_string(),
            demo.dir.join(NodesDemo::name(1)).join("cluster.key").display().to_string(),
        ];
        let who = ["node", "--data", &data, "--listen", &self.addresses[at], "--cores", &core];
        // Requests are short, so that a node that was started again lends addresses soon.
        let short = ["--timeout-req", "5s"];
        let how = ["--hosts-file", &hosts, "--allow-net", "127.0.0.0/8", "--req-host-per-sec", &rate];
        let how = [&how[..], &short].concat();
        let (first, joins) =
            (["--scope", "any", "--spread", "host"], ["--scope", "any", "--join", &self.addresses[0]]);
        let args = match number {
            1 => [&who[..], &how, &first].concat(),
            // Names of a farm share one registrable domain: its hosts are what is shared out.
            _ => [&who[..], &how, &joins, &["--key", &key]].concat(),
        };
        let player = Player::start(&name, demo.dir, &args)?;
        match at < self.players.len() {
            true => self.players[at] = player,
            false => self.players.push(player),
        }
        self.views.resize(self.players.len(), None);
        Ok(())
    }

    /// Gives all seeds to one node, as a user would.
    fn add_seeds(&self) -> Result<(), Failure> {
        let [seeds, data] =
            [&self.farm.seeds_file, &self.players[1].data].map(|path| path.display().to_string());
        self.play_command(&["cluster", "add-seeds", &seeds, "--data", &data])
    }

    fn play_command(&self, args: &[&str]) -> Result<(), Failure> {
        print(&format!("$ nephila {}\n", args.join(" ")))?;
        let ended = Command::new(std::env::current_exe()?).args(args).status()?;
        let said = || Failure::No(format!("nephila {} ended with {ended}", args[0]));
        if ended.success() { Ok(()) } else { Err(said()) }
    }

    fn kill_and_start_again(&mut self, number: u16) -> Result<(), Cut> {
        let at = usize::from(number) - 1;
        self.ticker.end();
        print(&format!(
            "\nnode {number} is killed (SIGKILL) after {} of all nodes\n",
            counted(self.pages(), "page")
        ))?;
        self.players[at].kill();
        self.views[at] = None;
        let is_missed = move |cast: &Cast<'_>| {
            let others = cast.views.iter().flatten().flat_map(|view| &view.nodes);
            others.filter(|node| node.number == number).all(|node| !node.linked)
        };
        self.wait_without(Some(at), is_missed)?;
        self.ticker.end();
        print(&format!(
            "the others go on with theirs; node {number} is started again on what its disk has\n\n"
        ))?;
        self.start(number)?;
        let is_back = move |cast: &Cast<'_>| {
            let views = || cast.views.iter().flatten();
            let is_linked =
                |view: &ClusterView| view.nodes.iter().any(|node| node.number == number && node.linked);
            views().count() == cast.players.len() && views().all(is_linked)
        };
        self.wait(is_back)
    }

    fn wait(&mut self, is_so: impl Fn(&Cast<'_>) -> bool) -> Result<(), Cut> {
        self.wait_without(None, is_so)
    }

    /// Waits until something is so, and shows how far it is. One of the nodes may be dead.
    fn wait_without(&mut self, dead: Option<usize>, is_so: impl Fn(&Cast<'_>) -> bool) -> Result<(), Cut> {
        self.moved_at = Instant::now();
        loop {
            if matches!(self.signals.wait(), Interrupt::Stop | Interrupt::AtOnce) {
                return Err(Cut::Stopped);
            }
            let before = self.pages();
            for (at, player) in self.players.iter_mut().enumerate().filter(|(at, _)| Some(*at) != dead) {
                player.ask()?;
                let asked = AskedNode::at(&player.data).ok();
                if let Some(view) = asked.and_then(|node| node.try_cluster()) {
                    self.views[at] = Some(view);
                }
            }
            if is_so(self) {
                return Ok(());
            }
            if self.pages() != before {
                self.moved_at = Instant::now();
            }
            if self.moved_at.elapsed() >= PATIENCE {
                let (seconds, dir) = (PATIENCE.as_secs(), self.demo.dir.display());
                return Err(Cut::Failed(Failure::CannotRun(format!(
                    "nothing has gone on for {seconds} s: see what the nodes say in {dir}/node1.log and its like"
                ))));
            }
            let said = self.line();
            self.ticker.show(|_| Some(said));
        }
    }

    /// What each node told of itself last.
    fn told(&self) -> impl Iterator<Item = (u16, Option<&NodeTold>)> {
        self.views.iter().zip(1..).map(|(view, number)| {
            let view = view.as_ref();
            let here = view.and_then(|view| view.nodes.iter().find(|node| node.number == view.node));
            (number, here.and_then(|node| node.told.as_ref()))
        })
    }

    fn pages(&self) -> u64 {
        self.told().filter_map(|(_, told)| told).map(|told| told.pages).sum()
    }

    fn line(&self) -> String {
        let said = self.told().map(|(number, told)| match told {
            Some(NodeTold { pages, pending, open, .. }) => {
                format!("node {number}: {pages} pages, {} pending", pending + open)
            }
            None => format!("node {number}: not there"),
        });
        said.collect::<Vec<_>>().join(" | ")
    }

    fn end(&self, seconds: f64) -> Result<(), Failure> {
        let (dir, all) = (self.demo.dir.display(), self.demo.all_pages());
        let (mut stored, mut text): (SortedMap<String, u64>, _) = (SortedMap::new(), String::new());
        for (number, told) in self.told() {
            let (mut pages, mut hosts) = (0_u64, SortedSet::new());
            Reader::open(&self.players[usize::from(number) - 1].data)?.each(|located, _| {
                let record = located.record;
                hosts.insert(record.url.split('/').nth(2).unwrap_or_default().to_string());
                pages += u64::from(record.success);
                *stored.entry(record.url).or_default() += u64::from(record.success);
            })?;
            let had = told.map_or(0, |told| told.counted);
            let view = self.views[usize::from(number) - 1].as_ref();
            let (came, new) = view.map_or((0, 0), |view| (view.received, view.received_new));
            text += &format!(
                "node {number}  {} of {}; since its start {} told to others, {came} came from them, {new} of those new\n",
                counted(pages, "page"),
                counted(hosts.len() as u64, "host"),
                counted(had, "URL"),
            );
        }
        let had = stored.values().filter(|times| **times > 0).count() as u64;
        let twice = stored.values().filter(|times| **times > 1).count() as u64;
        text += &format!(
            "{had} of {all} pages of the farm are stored, {twice} of them more than once, by {} nodes in {seconds:.1} s\n\n",
            self.players.len()
        );
        print(&text)?;
        if (had, twice) != (all, 0) {
            return Err(Failure::No("not every page of the farm is stored exactly once".to_string()));
        }
        let data: Vec<String> = self.players.iter().map(|player| player.data.display().to_string()).collect();
        let args: Vec<&str> =
            ["audit"].into_iter().chain(data.iter().flat_map(|data| ["--data", data])).collect();
        self.play_command(&args)?;
        let program = std::env::current_exe()?;
        let program = program.display();
        print(&format!(
            "\nwhat one of them has:\n  {program} store ls --data {dir}/node2 --limit 10\n\
             and set up a cluster of your own: {program} help cluster\n"
        ))
    }
}

fn shares_text(view: &ClusterView) -> String {
    let shares: Vec<String> = view
        .members()
        .map(|node| format!("node {} has {}", node.number, counted(node.partitions, "partition")))
        .collect();
    shares.join(", ")
}

fn rate(per_sec: f64) -> String {
    match per_sec {
        0.0 => "requests as fast as it answers".to_string(),
        _ => format!("at most {per_sec} requests a second"),
    }
}
