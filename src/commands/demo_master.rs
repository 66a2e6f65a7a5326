use super::bench::FarmProcess;
use super::shared::{Failure, Interrupt, RunningCrawl, Signals, Ticker, counted, print};
use crate::engine::{MasterStatus, NodeStatus, ServerStatus};
use crate::storage::make_data_directory;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A farm, a master and two nodes on loopback: lines of a log go in, pages come out.
pub(super) struct MasterDemo<'a> {
    pub dir: &'a Path,
    pub hosts: u32,
    pub pages: u32,
    /// Of the log.
    pub lines: u32,
    pub req_host_per_sec: f64,
}

const NODES: [u16; 2] = [1, 2];
/// A process that has not answered for so long after its start will not.
const START: Duration = Duration::from_secs(30);

/// A process of a demo or a bench: what it says goes to a file, and it ends with us.
pub(super) struct Player {
    name: String,
    child: Child,
    pub data: PathBuf,
    log: PathBuf,
}

impl Player {
    pub fn start(name: &str, dir: &Path, args: &[&str]) -> Result<Player, Failure> {
        let (data, log) = (dir.join(name), dir.join(format!("{name}.log")));
        let mut command = Command::new(std::env::current_exe()?);
        // Ctrl-C is for us: it is stopped in its turn. Its stdin closes with us, whatever ends us.
        command.args(args).arg("--until-stdin-closes").stdin(Stdio::piped()).process_group(0);
        let said = File::create(&log)?;
        command.stdout(said.try_clone()?).stderr(said);
        let child =
            command.spawn().map_err(|e| Failure::CannotRun(format!("cannot start the {name}: {e}")))?;
        Ok(Player { name: name.to_string(), child, data, log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it says of itself; nothing before it listens.
    pub fn ask(&mut self) -> Result<NodeStatus, Failure> {
        if let Some(status) = self.child.try_wait()? {
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            let last = said.lines().last().map_or(String::new(), |line| format!(": {line}"));
            return Err(Failure::CannotRun(format!("the {} ended with {status}{last}", self.name)));
        }
        let Some(mut running) = RunningCrawl::at(&self.data)? else { return Ok(NodeStatus::default()) };
        Ok(running.get("/api/v1/status").ok().flatten().unwrap_or_default())
    }

    /// Ends it as power loss would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and waits.
    pub fn stop(&mut self) {
        if let Ok(Some(mut running)) = RunningCrawl::at(&self.data) {
            let _ = running.tell::<serde_json::Value>("/api/v1/stop");
        }
        let _ = self.child.wait();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How far it is.
#[derive(Default)]
struct Scene {
    master: MasterStatus,
    nodes: Vec<NodeStatus>,
}

impl Scene {
    /// Every URL that was sent is at a node, and no node has anything left to fetch.
    fn is_over(&self) -> bool {
        let has_all = |server: &ServerStatus| server.position == server.next;
        let is_idle = |node: &NodeStatus| node.open == 0 && node.pending == node.waiting && node.pages > 0;
        self.master.sent > 0
            && self.master.files_waiting == 0
            && self.master.servers.iter().all(has_all)
            && self.nodes.iter().all(is_idle)
    }

    fn line(&self) -> String {
        let MasterStatus { lines, sent, hits_waiting, .. } = self.master;
        let mut line = format!("{lines} lines in, {sent} URLs sent, {hits_waiting} hits wait");
        for (number, node) in NODES.iter().zip(&self.nodes) {
            let pending = node.pending.unwrap_or(0);
            line += &format!(" | node {number}: {} pages, {pending} pending", node.pages);
        }
        line
    }
}

impl MasterDemo<'_> {
    pub fn run(&self, cores: &[usize], mut signals: Signals) -> Result<(), Failure> {
        let (farm, log) = self.farm(cores)?;
        let spool = self.dir.join("spool");
        make_data_directory(&spool)?;
        let listen = free_address()?;
        let config = self.dir.join("master.toml");
        fs::write(&config, self.settings(&listen, &spool))?;
        let config = config.display().to_string();
        let mut master = Player::start("master", self.dir, &["master", "run", "--config", &config])?;
        let mut nodes = Vec::new();
        for number in NODES {
            nodes.push(self.node(number, &listen, &farm)?);
        }
        let (dir, lines) = (self.dir.display(), self.lines);
        print(&format!(
            "a farm of {} hosts x {} pages is up on 127.16.0.0 and following, port {}\n\
             a master listens on {listen}; nodes 1 and 2 take from it; all of it is in {dir}\n\
             a log of {lines} lines goes into the spool\n",
            self.hosts, self.pages, farm.port
        ))?;
        fs::rename(&log, spool.join("demo.reflog"))?;
        let mut ticker = Ticker::with_plain(Some(Duration::from_secs(2)));
        let (began, mut scene, mut is_stopped) = (Instant::now(), Scene::default(), false);
        while !scene.is_over() {
            is_stopped = matches!(signals.wait(), Interrupt::Stop | Interrupt::AtOnce);
            if is_stopped {
                break;
            }
            scene = look(&mut master, &mut nodes)?;
            if began.elapsed() > START && scene.master.lines == 0 {
                return Err(Failure::CannotRun(format!(
                    "the master takes no lines: see {}",
                    master.log.display()
                )));
            }
            ticker.show(|_| Some(scene.line()));
        }
        ticker.end();
        let seconds = began.elapsed().as_secs_f64();
        nodes.iter_mut().for_each(Player::stop);
        master.stop();
        if is_stopped {
            drop(farm);
            return print(&format!(
                "stopped: nodes 1 and 2, the master and the farm have ended; what they made is in {dir}, and goes with the next demo\n"
            ));
        }
        self.end(&scene, farm.port, seconds)
    }

    /// The farm, and the log over its URLs that it wrote.
    fn farm(&self, cores: &[usize]) -> Result<(FarmProcess, PathBuf), Failure> {
        let log = self.dir.join("demo.reflog.tmp");
        let figures = [("--hosts", self.hosts), ("--pages", self.pages), ("--reflog", self.lines)];
        let name = log.display().to_string();
        let farm = FarmProcess::start(&figures, &["--reflog-file", &name], cores, self.dir)?;
        Ok((farm, log))
    }

    fn settings(&self, listen: &str, spool: &Path) -> String {
        // A string of JSON is one of TOML.
        let quoted = |path: &Path| serde_json::Value::from(path.display().to_string()).to_string();
        let (data, spool) = (quoted(&self.dir.join("master")), quoted(spool));
        let servers: String = NODES.iter().map(|id| format!("\n[[server]]\nid = {id}\n")).collect();
        // Names of a farm share one registrable domain: its hosts are what is dealt.
        format!("[master]\nlisten = \"{listen}\"\ndata = {data}\nspool = {spool}\nby = \"host\"\n{servers}")
    }

    fn node(&self, number: u16, master: &str, farm: &FarmProcess) -> Result<Player, Failure> {
        let name = format!("node{number}");
        let [data, hosts, rate, number] = [
            self.dir.join(&name).display().to_string(),
            farm.hosts_file.display().to_string(),
            self.req_host_per_sec.to_string(),
            number.to_string(),
        ];
        let from = ["crawl", "--master", master, "--server", &number, "--depth", "0", "--data", &data];
        let how = ["--hosts-file", &hosts, "--allow-net", "127.0.0.0/8", "--req-host-per-sec", &rate];
        Player::start(&name, self.dir, &[&from[..], &how[..]].concat())
    }

    fn end(&self, scene: &Scene, port: u16, seconds: f64) -> Result<(), Failure> {
        let program = std::env::current_exe()?;
        let (program, dir) = (program.display(), self.dir.display());
        let MasterStatus { lines, sent, rejected, .. } = scene.master;
        let pages: u64 = scene.nodes.iter().map(|node| node.pages).sum();
        print(&format!(
            "\n{lines} lines in, {rejected} rejected, {} sent, {} fetched by two nodes in {seconds:.1} s\n\n",
            counted(sent, "URL"),
            counted(pages, "page")
        ))?;
        let nodes = NODES.map(|number| format!("{dir}/node{number}"));
        let master = format!("{dir}/master");
        for args in [
            vec!["master", "audit", "--data", &master],
            vec!["audit", "--data", &nodes[0], "--data", &nodes[1]],
        ] {
            print(&format!("$ nephila {}\n", args.join(" ")))?;
            let ended = Command::new(std::env::current_exe()?).args(&args).status()?;
            if !ended.success() {
                return Err(Failure::No(format!("{} is not clean", args[..2].join(" "))));
            }
        }
        print(&format!(
            "\nsee which node has a host, and why:\n  {program} master explain --data {master} http://h0.farm.test:{port}/\n\
             what waits for a node:\n  {program} master queue ls --data {master}\n\
             and set up a master of your own: {program} help master\n"
        ))
    }
}

fn look(master: &mut Player, nodes: &mut [Player]) -> Result<Scene, Failure> {
    let dealing = master.ask()?.dealing.map_or_else(MasterStatus::default, |dealing| *dealing);
    let nodes = nodes.iter_mut().map(Player::ask).collect::<Result<_, Failure>>()?;
    Ok(Scene { master: dealing, nodes })
}

/// An address of loopback that nobody listens on.
pub(super) fn free_address() -> Result<String, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found
        .map(|addr| addr.to_string())
        .map_err(|e| Failure::CannotRun(format!("no free port on loopback: {e}")))
}
