//! The promise: hosts that only fail, more URLs than queues, many names at one address, several addresses of one name
//! and a full disk cost nobody else anything, and no URL is lost.

use crate::support::*;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn text(path: PathBuf) -> String {
    path.to_str().unwrap().to_string()
}

/// A crawl with these settings, names and seeds.
fn command(dir: &TempDir, data: &Path, settings: &str, hosts: &str, seeds: &[String]) -> Command {
    let mut command = crawl_command(data);
    command.args(["--hosts-file", &text(dir.write("hosts", hosts))]);
    command.args(["--config", &text(dir.write("c.toml", settings))]);
    command.args(["--seeds", &text(dir.write("seeds", seeds.join("\n")))]);
    command
}

#[track_caller]
fn assert_proved(data: &Path) {
    let mut command = nephila();
    let run = Running::start(command.args(["audit", "--data"]).arg(data)).wait(PATIENCE);
    assert_eq!(run.code(), 0, "{}", run.text());
}

fn of<'a>(asked: &'a [Asked], name: &str) -> Vec<&'a Asked> {
    asked.iter().filter(|asked| asked.name() == name).collect()
}

// Hosts that only fail --------------------------------------------------------------------------------------

#[test]
fn a_host_that_only_fails_is_set_aside() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let data = dir.join("data");
        let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::new("404 Not Found", "Connection: close\r\n", ""),
            _ if asked.name() == "fails.test" => Reply::reset(),
            "/" => Reply::links(["/p1", "/p2"]),
            _ => Reply::text("x"),
        });
        let port = server.port();
        let mut seeds: Vec<String> = (0..12).map(|page| format!("http://fails.test:{port}/{page}")).collect();
        seeds.extend((1..5).map(|host| format!("http://good{host}.test:{port}/")));
        let hosts: String = (1..5).map(|host| format!("127.42.0.{host} good{host}.test\n")).collect();
        let hosts = hosts + "127.42.0.9 fails.test\n";
        let settings = "[url_server]\nreq_host_per_sec = 20\nhost_failures_max = 4\n";
        let run = Running::start(command(&dir, &data, settings, &hosts, &seeds).args(["--driver", driver]));
        let run = run.wait(PATIENCE).done();
        let report = run.json();
        check_report(&report);
        assert_eq!(result_count(&report, "reset"), 4, "{report}");
        assert_eq!(result_count(&report, "host_set_aside"), 8, "{report}");
        assert_eq!(result_count(&report, "ok"), 12, "the others are all had: {report}");

        let asked = server.asked();
        let fails = of(&asked, "fails.test");
        assert_eq!(fails.len(), 5, "robots.txt, then four failures: {fails:?}");
        let pause_ns = fails[4].at_ns - fails[3].at_ns;
        assert!(pause_ns >= 1_000_000_000, "backed off for {pause_ns} ns after the third");
        let others = asked.iter().filter(|asked| asked.name() != "fails.test").map(|asked| asked.at_ns).max();
        assert!(others < Some(fails[4].at_ns), "the others do not wait for it");
        let said = format!("http://fails.test:{port}: set aside for a day: it failed 4 times in a row");
        assert_eq!(run.stderr.matches(&said).count(), 1, "{}", run.stderr);
        assert!(!run.stderr.contains("//good"), "{}", run.stderr);
        let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
        let aside =
            log.lines().filter(|line| line.contains("//fails.test") && line.contains(",host_set_aside"));
        assert_eq!(aside.count(), 8, "{log}");
        assert_proved(&data);
    }
}

// Leftovers -------------------------------------------------------------------------------------------------

const QUEUES: &str =
    "[url_server]\nreq_host_per_sec = 0\nqueue_count = 4\nqueue_len = 2\nleftover_urls = 8\n";
const HOSTS: usize = 40;
const URLS: usize = 10;

/// Forty hosts with ten URLs each, that take a moment to answer.
struct Many {
    dir: TempDir,
    data: PathBuf,
    server: LogServer,
    hosts: String,
    seeds: Vec<String>,
}

impl Many {
    fn new() -> Many {
        let dir = TempDir::new();
        let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            _ => Reply::text("x").after_ms(10),
        });
        let port = server.port();
        let url = |host: usize, page: usize| format!("http://m{host}.test:{port}/u{page}");
        // Host by host for the one half, and in turns for the other.
        let half = URLS / 2;
        let by_host = (0..HOSTS).flat_map(|host| (0..half).map(move |page| (host, page)));
        let in_turns = (half..URLS).flat_map(|page| (0..HOSTS).map(move |host| (host, page)));
        let seeds = by_host.chain(in_turns).map(|(host, page)| url(host, page)).collect();
        let hosts = (0..HOSTS).map(|host| format!("127.43.0.{} m{host}.test\n", host + 1)).collect();
        Many { data: dir.join("data"), dir, server, hosts, seeds }
    }

    fn start(&self, settings: &str) -> Running {
        Running::start(&mut command(&self.dir, &self.data, settings, &self.hosts, &self.seeds))
    }

    fn leftovers(&self) -> usize {
        std::fs::read_dir(self.data.join("leftovers")).map_or(0, Iterator::count)
    }

    /// Runs to the end, and counts the most files that leftovers were in.
    #[track_caller]
    fn finish(&self, mut crawl: Running) -> usize {
        let mut most = 0;
        while !crawl.has_ended() {
            most = most.max(self.leftovers());
            std::thread::sleep(Duration::from_millis(1));
        }
        let report = crawl.wait(PATIENCE).done().json();
        check_report(&report);
        assert_eq!((&report["pages"], &report["pending"]), (&(HOSTS * URLS).into(), &0.into()), "{report}");
        assert_eq!(report["success"], HOSTS * URLS);
        assert_eq!(self.leftovers(), 0, "they are gone in the end");
        most
    }

    /// Each URL was asked for once after so many requests of an earlier run.
    #[track_caller]
    fn assert_once(&self, since: usize) {
        let pages = self.server.asked().split_off(since).into_iter();
        let pages: Vec<String> =
            pages.filter(|asked| asked.target != "/robots.txt").map(|asked| asked.place()).collect();
        let different: BTreeSet<&String> = pages.iter().collect();
        assert_eq!((pages.len(), different.len()), (HOSTS * URLS, HOSTS * URLS));
    }
}

#[test]
fn leftovers_go_to_disk_and_come_back() {
    for cores in ["0", "0,1"] {
        let many = Many::new();
        let settings = QUEUES;
        let mut command = command(&many.dir, &many.data, settings, &many.hosts, &many.seeds);
        let most = many.finish(Running::start(command.args(["--cores", cores])));
        assert!(most > 1, "{most} files of leftovers were seen");
        many.assert_once(0);
        let asked = many.server.asked();
        let robots = asked.iter().filter(|asked| asked.target == "/robots.txt").count();
        assert_eq!(robots, HOSTS, "rules outlive the row of their host");
        assert_proved(&many.data);
    }
}

#[test]
fn leftovers_in_ram_make_no_file() {
    let many = Many::new();
    let most = many.finish(many.start(&format!("{QUEUES}in_ram = true\n")));
    assert_eq!(most, 0, "files of leftovers");
    many.assert_once(0);
}

#[test]
fn leftovers_of_a_killed_process_are_in_nobodys_way() {
    let many = Many::new();
    let crawl = many.start(QUEUES);
    wait_for("it is in the middle", PATIENCE, || {
        (many.server.asked().len() > 100 && many.leftovers() > 0).then_some(())
    });
    crawl.signal(Signal::SIGKILL);
    crawl.wait(PATIENCE);
    let before = many.server.asked().len();
    assert!(before < HOSTS * URLS, "it was in the middle");
    // What the killed one had sent may still be on its way in.
    std::thread::sleep(Duration::from_millis(100));
    let before = many.server.asked().len().max(before);
    let mut command = command(&many.dir, &many.data, QUEUES, &many.hosts, &many.seeds);
    many.finish(Running::start(command.arg("--again")));
    many.assert_once(before);
    assert_proved(&many.data);
}

// Names and addresses ---------------------------------------------------------------------------------------

#[test]
fn a_crowded_address_holds_up_nobody_else() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        "/" => Reply::links(["/p1", "/p2"]),
        _ => Reply::text("x"),
    });
    let names: Vec<String> = (0..30)
        .map(|host| format!("crowd{host}.test"))
        .chain((0..10).map(|host| format!("other{host}.test")))
        .collect();
    let hosts: String = (names.iter().enumerate())
        .map(|(at, name)| format!("127.44.0.{} {name}\n", if at < 30 { 1 } else { at }))
        .collect();
    let seeds: Vec<String> = names.iter().map(|name| format!("http://{name}:{}/", server.port())).collect();
    let settings = "[url_server]\nreq_host_per_sec = 20\nhosts_per_ip_max = 5\n";
    let run = Running::start(&mut command(&dir, &data, settings, &hosts, &seeds)).wait(PATIENCE).done();
    let report = run.json();
    check_report(&report);
    assert_eq!((&report["success"], &report["pending"]), (&120.into(), &0.into()), "{report}");
    let asked = server.asked();
    let expected: BTreeSet<String> = (names.iter())
        .flat_map(|name| ["/", "/p1", "/p2", "/robots.txt"].map(|target| format!("{name}{target}")))
        .collect();
    let places: Vec<String> = asked.iter().map(Asked::place).collect();
    assert_eq!(places.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(places.len(), 160, "each once");
    let (crowd, others): (Vec<&Asked>, Vec<&Asked>) =
        asked.iter().partition(|asked| asked.name().starts_with("crowd"));
    let shortest = crowd.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).min().unwrap();
    assert!(shortest >= 50_000_000, "the address has its own rate: {shortest} ns");
    assert!(
        others.last().unwrap().at_ns < crowd[crowd.len() / 2].at_ns,
        "others are done before half of the crowd is"
    );
    assert_proved(&data);
}

/// A name with several addresses is one host, with one place for its connections and its pauses.
#[test]
fn a_host_stays_at_one_of_its_addresses() {
    for driver in DRIVERS {
        let dir = TempDir::new();
        let data = dir.join("data");
        let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            "/" => Reply::links((0..20).map(|page| format!("/p{page}"))),
            _ => Reply::links(["/again"]),
        });
        // So many that either shard owns some of them.
        let hosts: String = (1..=8).map(|at| format!("127.45.0.{at} many.test\n")).collect();
        let hosts = hosts + "127.45.0.2 one.test\n";
        let seeds = ["many", "one"].map(|name| format!("http://{name}.test:{}/", server.port()));
        let settings = "[url_server]\nreq_host_per_sec = 50\n";
        let mut command = command(&dir, &data, settings, &hosts, &seeds);
        let run = Running::start(command.args(["--driver", driver, "--cores", "0,1"])).wait(PATIENCE).done();
        assert_eq!(run.json()["success"], 44);
        let asked = server.asked();
        let many = of(&asked, "many.test");
        assert_eq!(many.len(), 23);
        let addresses: BTreeSet<_> = many.iter().map(|asked| asked.ip).collect();
        assert_eq!(addresses.len(), 1, "{addresses:?}");
        assert_proved(&data);
    }
}

// A full disk -----------------------------------------------------------------------------------------------

/// A small disk of its own; gone with the value.
pub struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// `None` where nothing may be mounted.
    pub fn mount(at: PathBuf) -> Option<SmallDisk> {
        std::fs::create_dir_all(&at).unwrap();
        let run = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(&at).output();
        run.is_ok_and(|run| run.status.success()).then_some(SmallDisk(at))
    }

    /// Leaves no byte free.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut filler = std::fs::File::create(&path).unwrap();
        for bytes in [64 * 1_024, 4_096, 1] {
            while std::io::Write::write(&mut filler, &vec![0; bytes]).is_ok_and(|written| written > 0) {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// The crawl says that it waits for room, and goes on where it was: no line and no page is missing.
#[test]
fn a_full_disk_is_waited_for() {
    let dir = TempDir::new();
    let Some(disk) = SmallDisk::mount(dir.join("disk")) else {
        println!("nothing can be mounted here, so no disk can be filled: skipped");
        return;
    };
    let data = disk.0.join("data");
    let server = LogServer::start_on(Ipv4Addr::UNSPECIFIED, |asked| match asked.target.as_str() {
        "/robots.txt" => Reply::status("404 Not Found"),
        _ => Reply::text("x").after_ms(5),
    });
    let port = server.port();
    let seeds: Vec<String> =
        (0..900).map(|page| format!("http://d{}.test:{port}/{page}", page % 3)).collect();
    let hosts = "127.46.0.1 d0.test\n127.46.0.2 d1.test\n127.46.0.3 d2.test\n";
    let settings = "[url_server]\nreq_host_per_sec = 0\n[spider]\nmax_doc_size = 65536\n\
                    [store]\nsegment_bytes = 1000000\n";
    let crawl = Running::start(command(&dir, &data, settings, hosts, &seeds).args(["--cores", "0"]));
    wait_for("it is in the middle", PATIENCE, || (server.asked().len() > 100).then_some(()));
    let filler = disk.fill();
    wait_for("it says that it waits", PATIENCE, || crawl.stderr().contains("crawl log").then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    std::fs::remove_file(filler).unwrap();
    let report = crawl.wait(PATIENCE).done().json();
    check_report(&report);
    assert_eq!((&report["success"], &report["pending"]), (&900.into(), &0.into()), "{report}");
    assert_eq!(stored(&data).len(), 900);
    let log = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    assert_eq!(
        log.lines().filter(|line| !line.starts_with('#')).count(),
        server.asked().len(),
        "a line each"
    );
    assert_proved(&data);
}
