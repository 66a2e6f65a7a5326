//! The promise: a process that a service manager has started tells it the truth. It is ready when it is, alive as long as
//! every thread turns, and asks for time only while it gets on; and the units that come with it let it do all that it must
//! and little else.

use crate::disks::Disk;
use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The end of `NOTIFY_SOCKET` that a service manager has.
struct Manager {
    path: PathBuf,
    heard: Arc<Mutex<Vec<(Instant, String)>>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl Manager {
    fn new() -> Manager {
        let dir = TempDir::new();
        let path = dir.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let thread = std::thread::spawn({
            let heard = heard.clone();
            move || {
                let mut buffer = [0; 4_096];
                while let Ok(length @ 1..) = socket.recv(&mut buffer) {
                    let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
                    let now = Instant::now();
                    heard.lock().unwrap().extend(text.lines().map(|line| (now, line.to_string())));
                }
            }
        });
        Manager { path, heard, thread: Some(thread), _dir: dir }
    }

    /// A command whose manager this is.
    fn told_by<'a>(&self, command: &'a mut Command, watchdog_ms: u64) -> &'a mut Command {
        let watchdog_us = (watchdog_ms * 1_000).to_string();
        command.env("NOTIFY_SOCKET", &self.path).env("WATCHDOG_USEC", watchdog_us)
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.heard().iter().filter(|heard| heard.starts_with(line)).count()
    }

    #[track_caller]
    fn wait_for(&self, line: &str) {
        wait_for(line, PATIENCE, || (self.count(line) > 0).then_some(()));
    }

    /// Waits for so many more lines like this.
    #[track_caller]
    fn wait_for_more(&self, line: &str, more: usize) {
        let before = self.count(line);
        let what = format!("{more} more {line}, was {before}");
        wait_for(&what, PATIENCE, || (self.count(line) >= before + more).then_some(()));
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // An empty message ends the thread.
        let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"", &self.path));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

const EXTEND: &str = "EXTEND_TIMEOUT_USEC=";
const WATCHDOG: &str = "WATCHDOG=1";

/// Hosts with pages enough to be busy for long at ten a second.
fn farm(hosts: u32) -> Farm {
    Farm::start(SiteSpec { hosts, pages: 400, page_bytes: 2_000, ..SiteSpec::default() })
}

/// A whole crawl in a file, as a service has it.
fn settings(dir: &TempDir, farm: &Farm, more: &str) -> PathBuf {
    let (seeds, hosts) = (farm.seeds_file(), farm.hosts_file());
    dir.write(
        "test.toml",
        format!(
            "[crawl]\nseeds_file = {seeds:?}\nhosts_file = {hosts:?}\nallow_net = [\"127.0.0.0/8\"]\n{more}"
        ),
    )
}

fn crawl_of(dir: &TempDir, config: &Path) -> Command {
    let mut command = nephila();
    command.arg("crawl").arg("--config").arg(config).arg("--data").arg(dir.join("data"));
    command
}

#[test]
fn a_crawl_says_what_holds_it_back_and_when_it_ends() {
    let (dir, manager, farm) = (TempDir::new(), Manager::new(), farm(10));
    // So slow that even a busy machine has all of them wait.
    let config = settings(&dir, &farm, "req_host_per_sec = 1\n");
    let crawl = Running::start(manager.told_by(&mut crawl_of(&dir, &config), 400));
    let held = " pages/s. Held back by politeness: 10 of 10 hosts wait for their rate.";
    let says_so = |line: &String| line.starts_with("STATUS=") && line.contains(held);
    wait_for(held, PATIENCE, || manager.heard().iter().any(says_so).then_some(()));
    manager.wait_for_more(WATCHDOG, 5);
    crawl.signal(Signal::SIGTERM);
    let run = crawl.wait(PATIENCE).done();
    let heard = manager.heard();
    let at = |line: &str| heard.iter().position(|heard| heard.starts_with(line));
    assert_eq!(heard[0], "STATUS=Starting: opening the data directory.");
    assert_eq!(heard[1], "EXTEND_TIMEOUT_USEC=60000000");
    let (ready, watchdog, stopping) = (at("READY=1"), at(WATCHDOG), at("STOPPING=1"));
    assert!(ready < watchdog && watchdog < stopping && ready.is_some(), "{heard:#?}");
    let last_extend = heard[..ready.unwrap()].iter().filter(|line| line.starts_with(EXTEND)).count();
    assert!(last_extend >= 1 && manager.count("READY=1") == 1 && manager.count("STOPPING=1") == 1);
    assert!(heard[stopping.unwrap()..].iter().any(|line| line.starts_with(EXTEND)), "{heard:#?}");
    assert_eq!(heard.last().unwrap(), "STATUS=Stopping: writing everything to disk.");
    // How far it is stands in its status; the journal is for what happens.
    assert!(!run.stderr.contains("pages  "), "{}", run.stderr);

    // The same unit again goes on where it was, and what is done stays down.
    let config = settings(&dir, &farm, "req_host_per_sec = 0\n");
    let again = Running::start(manager.told_by(&mut crawl_of(&dir, &config), 400)).wait(PATIENCE).done();
    assert!(again.stderr.contains("url_server.req_host_per_sec = 0.0 by "), "{}", again.stderr);
    let done = Running::start(manager.told_by(&mut crawl_of(&dir, &config), 400)).wait(PATIENCE).done();
    assert!(done.text().contains("nothing is left to fetch"), "{}", done.text());
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (3, 3));
}

#[test]
fn every_role_is_ready_when_it_is_and_is_described_by_a_file() {
    let (dir, farm) = (TempDir::new(), Farm::start(SiteSpec { hosts: 5, pages: 4, ..SiteSpec::default() }));
    let managers = [Manager::new(), Manager::new(), Manager::new(), Manager::new()];
    let start = |manager: &Manager, role: &str, settings: String| {
        let config = dir.write(&format!("{role}.toml"), settings);
        let mut command = nephila();
        command.args(role.split(' ')).arg("--config").arg(config).arg("--data").arg(dir.join(role));
        let running = Running::start(manager.told_by(&mut command, 400));
        manager.wait_for("READY=1");
        running
    };
    let port = |running: &Running| {
        let said = running.stderr();
        let line = said.lines().find(|line| line.contains("listening on")).expect("said before it is ready");
        line.rsplit(' ').next().unwrap().to_string()
    };
    let store = start(&managers[0], "storeserver", "[store]\nlisten = \"127.0.0.1:0\"\n".to_string());
    let (hosts, seeds) = (farm.hosts_file(), farm.seeds_file());
    let urls = format!(
        "[crawl]\nallow_net = [\"127.0.0.0/8\"]\nhosts_file = {hosts:?}\nreq_host_per_sec = 0\nwait = true\n[url_server]\nlisten = \"127.0.0.1:0\"\nurls = {seeds:?}\n"
    );
    let urls = start(&managers[1], "urlserver", urls);
    let spider = format!(
        "[crawl]\nallow_net = [\"127.0.0.0/8\"]\n[spider]\nurlserver = [\"{}\"]\nstore = \"{}\"\n",
        port(&urls),
        port(&store)
    );
    let spider = start(&managers[2], "spider", spider);
    let master = "[master]\nlisten = \"127.0.0.1:0\"\n[[server]]\nid = 1\n".to_string();
    let master = start(&managers[3], "master run", master);
    for (manager, noun) in managers.iter().zip(["records", "URLs", "pages", "lines"]) {
        wait_for(noun, PATIENCE, || {
            manager
                .heard()
                .iter()
                .any(|line| line.starts_with("STATUS=") && line.contains(noun))
                .then_some(())
        });
        manager.wait_for_more(WATCHDOG, 3);
    }
    wait_for("the seeds are stored", PATIENCE, || {
        (records(&dir.join("storeserver")).len() >= 5).then_some(())
    });
    for (running, manager) in [master, spider, urls, store].into_iter().zip(managers.iter().rev()) {
        running.signal(Signal::SIGTERM);
        running.wait(PATIENCE).done();
        let heard = manager.heard();
        let at =
            |line: &str| heard.iter().position(|heard| heard == line).unwrap_or_else(|| panic!("{line}"));
        assert!(at("READY=1") < at(WATCHDOG) && at(WATCHDOG) < at("STOPPING=1"), "{heard:#?}");
    }
}

#[test]
fn a_signal_during_the_start_stops_it_in_good_order() {
    let (dir, farm) = (TempDir::new(), farm(1));
    let path = dir.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = settings(&dir, &farm, "");
    let crawl = Running::start(crawl_of(&dir, &config).env("NOTIFY_SOCKET", &path));
    // As soon as there is anything to be heard of it.
    socket.recv(&mut [0; 4_096]).unwrap();
    crawl.signal(Signal::SIGTERM);
    let run = crawl.wait(PATIENCE).done();
    assert!(run.stderr.contains("stopping"), "{}", run.stderr);
}

#[test]
fn a_manager_may_have_a_name_that_is_no_path() {
    let (dir, farm) = (TempDir::new(), farm(1));
    let name = format!("nephila-services-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = settings(&dir, &farm, "");
    let crawl = Running::start(crawl_of(&dir, &config).env("NOTIFY_SOCKET", format!("@{name}")));
    let mut buffer = [0; 4_096];
    loop {
        let length = socket.recv(&mut buffer).expect("it says that it is ready");
        if buffer[..length].starts_with(b"READY=1\n") {
            break;
        }
    }
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).done();
}

/// The thread of a process with this name.
fn thread_of(pid: u32, name: &str) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let is_it =
        |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let task = tasks.map(|task| task.unwrap().path()).find(|task| is_it(task)).expect(name);
    task.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Holds a thread in its next system call.
fn hold(pid: u32, name: &str) -> Running {
    let calls = "futex,io_uring_enter,epoll_wait,clock_nanosleep,write,fdatasync,fsync,msync";
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e"]);
    command
        .arg(format!("inject={calls}:delay_enter=600000000"))
        .arg("-p")
        .arg(thread_of(pid, name).to_string());
    Running::start(&mut command)
}

fn can_trace() -> bool {
    let can =
        Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status().is_ok_and(|s| s.success());
    if !can {
        println!("strace cannot trace here: skipped");
    }
    can
}

#[test]
fn a_thread_that_hangs_stops_the_watchdog() {
    if !can_trace() {
        return;
    }
    let (dir, farm) = (TempDir::new(), farm(10));
    for (driver, threads) in
        [("uring", &["shard-0", "scheduler", "index"][..]), ("epoll", &["shard-0", "keeper"])]
    {
        let manager = Manager::new();
        let config = settings(&dir, &farm, "req_host_per_sec = 5\ncores = \"0\"\n");
        let mut command = crawl_of(&dir, &config);
        let crawl = Running::start(manager.told_by(command.args(["--driver", driver]), 1_000));
        manager.wait_for_more(WATCHDOG, 3);
        for name in threads {
            let held = hold(crawl.pid(), name);
            let late = format!("watchdog: no turn of {name} for ");
            wait_for(&late, PATIENCE, || crawl.stderr().contains(&late).then_some(()));
            // It was said after half of the time; from there on nothing feeds the watchdog.
            let before = manager.count(WATCHDOG);
            std::thread::sleep(Duration::from_millis(1_500));
            assert_eq!(manager.count(WATCHDOG), before, "{driver}: {name} hangs, and the watchdog is fed");
            held.signal(Signal::SIGTERM);
            manager.wait_for_more(WATCHDOG, 3);
        }
        crawl.signal(Signal::SIGTERM);
        crawl.wait(PATIENCE).done();
    }
}

#[test]
fn who_is_paused_or_has_nothing_to_do_is_alive() {
    let (dir, manager, farm) = (TempDir::new(), Manager::new(), farm(4));
    let config = settings(&dir, &farm, "req_host_per_sec = 20\n");
    let crawl = Running::start(manager.told_by(&mut crawl_of(&dir, &config), 300));
    manager.wait_for(WATCHDOG);
    let verb = |verb: &str| run([verb, "--data", dir.join("data").to_str().unwrap()]).done();
    verb("pause");
    manager.wait_for("STATUS=Paused");
    manager.wait_for_more(WATCHDOG, 10);
    verb("resume");
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).done();

    // Everything is fetched, and it stays for what may come.
    let manager = Manager::new();
    let small = Farm::start(SiteSpec { hosts: 1, pages: 2, ..SiteSpec::default() });
    let dir = TempDir::new();
    let config = settings(&dir, &small, "req_host_per_sec = 0\nwait = true\n");
    let crawl = Running::start(manager.told_by(&mut crawl_of(&dir, &config), 300));
    wait_for("it says so", PATIENCE, || {
        manager.heard().iter().any(|line| line.ends_with(" pages/s. Nothing is pending.")).then_some(())
    });
    manager.wait_for_more(WATCHDOG, 10);
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).done();
}

#[test]
fn who_waits_for_its_disk_is_alive_and_says_so() {
    let (dir, manager, farm) = (TempDir::new(), Manager::new(), farm(10));
    let Some(disk) = Disk::tmpfs(160) else { return };
    let config =
        settings(&dir, &farm, "req_host_per_sec = 5\ncores = \"0\"\n[store]\nfree_bytes_min = \"8MiB\"\n");
    let mut command = nephila();
    command.arg("crawl").arg("--config").arg(config).arg("--data").arg(disk.path().join("data"));
    let crawl = Running::start(manager.told_by(&mut command, 300));
    manager.wait_for(WATCHDOG);
    let ballast = disk.fill(1 << 20);
    wait_for("it says what it waits for", PATIENCE, || {
        let heard = manager.heard();
        heard.iter().any(|line| line.starts_with("STATUS=") && line.contains(" Held back: ")).then_some(())
    });
    manager.wait_for_more(WATCHDOG, 10);
    std::fs::remove_file(ballast).unwrap();
    crawl.signal(Signal::SIGTERM);
    crawl.wait(PATIENCE).done();
}

/// Lets a process run for a moment only, again and again, until something is so.
fn slowed(running: &mut Running, until: impl Fn() -> bool) {
    let pid = Pid::from_raw(running.pid() as i32);
    while !until() && !running.has_ended() {
        let _ = kill(pid, Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(97));
        let _ = kill(pid, Signal::SIGCONT);
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn a_slow_start_asks_for_time_as_long_as_it_gets_on() {
    let (dir, manager) = (TempDir::new(), Manager::new());
    let urls: String = (0..500_000).map(|n| format!("http://h{}.test/{n}\n", n % 100)).collect();
    let list = dir.write("list", urls);
    let data = dir.join("data");
    let (list, data) = (list.to_str().unwrap(), data.to_str().unwrap());
    run(["index", "import", "--data", data, list]).done();
    let config = dir.write("test.toml", "[url_server]\nlisten = \"127.0.0.1:0\"\n");
    let mut command = nephila();
    command.args(["urlserver", "--data", data, "--config"]).arg(config);
    let mut server = Running::start(manager.told_by(&mut command, 60_000));
    // On a slow machine it would take minutes: what is asked for twice is enough.
    slowed(&mut server, || manager.count(EXTEND) >= 2 || manager.count("READY=1") > 0);
    manager.wait_for("READY=1");
    let heard = manager.heard();
    let ready = heard.iter().position(|line| line == "READY=1").expect("it came up");
    let asked = heard[..ready].iter().filter(|line| line.starts_with(EXTEND)).count();
    assert!(asked >= 2, "{heard:#?}");
    server.signal(Signal::SIGTERM);
    server.wait(PATIENCE).done();
}

/// A start that waits for something for good is given up by its manager.
#[test]
fn a_start_that_hangs_asks_for_no_more_time() {
    let (dir, manager) = (TempDir::new(), Manager::new());
    let seeds = dir.join("seeds");
    nix::unistd::mkfifo(&seeds, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = nephila();
    command.arg("crawl").arg("--seeds").arg(seeds).arg("--data").arg(dir.join("data"));
    let mut crawl = Running::start(manager.told_by(&mut command, 60_000));
    manager.wait_for(EXTEND);
    std::thread::sleep(Duration::from_secs(4));
    // It may have got on in the first second.
    assert!(manager.count(EXTEND) <= 2 && manager.count("READY=1") == 0, "{:#?}", manager.heard());
    assert!(!crawl.has_ended(), "{}", crawl.stderr());
}

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

fn services() -> Vec<String> {
    let names = std::fs::read_dir(units()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".service"));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn units_are_clean_and_let_little_through() {
    assert_eq!(services().len(), 5);
    for (name, exposure_max) in services().iter().map(|name| (name, 1.5)) {
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--offline=true", "--no-pager"]).arg(units().join(name));
        let said = command.output().expect("systemd-analyze is there");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let exposure = said.lines().find_map(|line| line.split("exposure level for ").nth(1)).expect(&said);
        let exposure: f64 = exposure.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(exposure <= exposure_max, "{name}: {said}");
    }
    // With the program where it is; the rest is as it will be installed.
    let dir = TempDir::new();
    let drop_in = std::fs::read(units().join("private-networks.conf")).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]);
    for name in services().iter().map(String::as_str).chain(["nephila.slice"]) {
        let text = std::fs::read_to_string(units().join(name)).unwrap();
        let text = text.replace("=/usr/bin/nephila ", concat!("=", env!("CARGO_BIN_EXE_nephila"), " "));
        command.arg(dir.write(name, text));
        if name.ends_with(".service") {
            dir.write(&format!("{name}.d/private-networks.conf"), &drop_in);
        }
    }
    let said = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success() && text.is_empty(), "{text}");
}

/// What the manual shows to be typed, for the farm in place of the web.
fn session_of_the_manual() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/manual/services.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks = page.split("<!-- systemd -->\n").skip(1);
    let typed = blocks.flat_map(|block| block.lines().skip(1).map_while(|line| line.strip_prefix("    ")));
    let typed: Vec<&str> = typed.collect();
    assert!(typed.len() > 12, "{typed:?}");
    let contact = r#"contact = "you@example.net"\n"#;
    let here = format!(r#"{contact}allow_net = ["127.0.0.0/8"]\nhosts_file = "/run/hosts"\n"#);
    let typed = typed.join(" >/dev/null\n") + " >/dev/null\n";
    assert!(typed.contains(contact));
    let typed = typed.replace(contact, &here).replace("https://example.org/", "http://h0.farm.test:7080/");
    typed.replace(".toml >/dev/null\nnephila config", ".toml\nnephila config")
}

/// The units on a systemd of their own: a crawl under all restrictions, watchdog, restarts, the roles together.
#[test]
fn a_crawl_runs_and_ends_under_systemd_as_its_units_say() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blackbox/scripts");
    let dir = TempDir::new();
    let inside = std::fs::read_to_string(scripts.join("services_inside")).unwrap();
    let inside = dir.write("inside", inside.replace(": SESSION\n", &session_of_the_manual()));
    let mut command = Command::new(scripts.join("under_systemd"));
    command.arg(env!("CARGO_BIN_EXE_nephila")).arg(units()).arg(inside);
    let run = Running::start(&mut command).wait(3 * PATIENCE);
    let said = format!("{}{}", run.text(), run.stderr);
    if run.code() == 77 {
        return println!("{said}: skipped");
    }
    assert_eq!(run.code(), 0, "{said}");
    assert_eq!(said.matches("ok: ").count(), 10, "{said}");
}
