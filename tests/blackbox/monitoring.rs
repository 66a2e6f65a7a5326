//! The promise: what `/metrics` says is what Prometheus reads, its figures never fall while a process lives, whatever becomes
//! of its shards, and every name in the alerts and the dashboard is one of them.

use crate::restart::PanickyDriver;
use crate::support::*;
use nephila::admin::{Doors, Listener};
use nephila::config::{Config, Rate};
use nephila::driver::EpollDriver;
use nephila::engine::{CrawlStore, CrawlTask, HostsFile, Names, Node, NodeSetup, OpenIndex, Running as _};
use nephila::farm::SiteSpec;
use nephila::proto::url::CrawlUrl;
use nephila::store_server::DataDir;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning/monitoring")
}

fn file(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn promtool(args: &[&str]) -> Command {
    let mut command = Command::new("promtool");
    command.args(args).current_dir(folder()).stdin(Stdio::null());
    command
}

#[test]
fn alerts_fire_where_they_should_and_nowhere_else() {
    let run = Running::start(&mut promtool(&["check", "rules", "nephila.rules.yml"])).wait(PATIENCE).done();
    assert!(run.text().contains("14 rules found"), "{}", run.text());
    Running::start(&mut promtool(&["test", "rules", "nephila.test.yml"])).wait(PATIENCE).done();
    Running::start(&mut promtool(&["check", "config", "prometheus.yml"])).wait(PATIENCE).done();
    // Each is tested both ways, told in the table, and says what to do.
    let (rules, tests, readme) = (file("nephila.rules.yml"), file("nephila.test.yml"), file("README.md"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(
        alerts,
        [
            "Down",
            "PolitenessViolated",
            "Stalled",
            "WaitsForDisk",
            "DiskFullSoon",
            "ShardRestarts",
            "DnsFails",
            "ThrottledEverywhere",
            "CommitSlow",
            "IndexMemoryFull",
            "ReloadFailed",
            "TuneFails",
        ]
    );
    for alert in &alerts {
        for kind in ["fires", "stays silent"] {
            assert!(tests.contains(&format!("name: {alert} {kind}")), "{alert} {kind}");
        }
        let severity = if alerts[..4].contains(alert) { "page" } else { "ticket" };
        let row = readme.lines().find(|line| line.starts_with(&format!("| {alert} "))).expect("a row");
        assert!(row.contains(severity), "{row}");
        let rule =
            rules.split(&format!("- alert: {alert}\n")).nth(1).unwrap().split("- alert:").next().unwrap();
        for part in ["summary:", "description:", "Mend:", &format!("severity: {severity}")] {
            assert!(rule.contains(part), "{alert}: {part}");
        }
    }
}

/// The dashboard, and the queries in it with a name for each.
fn dashboard() -> (Value, Vec<(String, String)>) {
    let dashboard: Value = serde_json::from_str(&file("grafana.json")).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push((panel["title"].to_string(), target["expr"].as_str().unwrap().to_string()));
        }
    }
    for note in dashboard["annotations"]["list"].as_array().unwrap() {
        queries.push((note["name"].to_string(), note["expr"].as_str().unwrap().to_string()));
    }
    (dashboard, queries)
}

#[test]
fn the_dashboard_is_one_that_can_be_read() {
    let (dashboard, queries) = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows: Vec<&str> = panels
        .iter()
        .filter(|panel| panel["type"] == "row")
        .map(|row| row["title"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["Now", "Politeness", "Queues and index", "Store", "Machine"]);
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24 && at("h") > 2, "{panel}");
        assert!(panel["description"].as_str().is_some_and(|text| text.len() > 15), "{panel}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
        assert!(["timeseries", "stat"].contains(&panel["type"].as_str().unwrap()), "{panel}");
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
    }
    let variables: Vec<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert_eq!(variables, ["datasource", "job", "instance"]);
    assert!(queries.len() > 25, "{}", queries.len());
    for (title, query) in &queries {
        assert!(query.contains("job=~\"$job\", instance=~\"$instance\""), "{title}: {query}");
    }
}

/// Names of figures in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| word.starts_with("nephila_") || word.starts_with("process_"));
    words.map(str::to_string).collect()
}

/// A Prometheus of its own, on a free port.
struct Prometheus {
    process: Child,
    at: SocketAddr,
    _dir: TempDir,
}

impl Prometheus {
    fn start(targets: &[(&str, SocketAddr)]) -> Prometheus {
        let dir = TempDir::new();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let mut config =
            "global: { scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s }\n".to_string();
        config +=
            &format!("rule_files: [{}]\nscrape_configs:\n", folder().join("nephila.rules.yml").display());
        for (job, target) in targets {
            config += &format!("  - job_name: {job}\n    static_configs: [{{ targets: [\"{target}\"] }}]\n");
        }
        let config = dir.write("prometheus.yml", config);
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()))
            .arg(format!("--web.listen-address={at}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed");
        let prometheus = Prometheus { process, at, _dir: dir };
        wait_for("Prometheus", PATIENCE, || {
            String::from_utf8_lossy(&prometheus.get("/-/ready")).contains("Ready").then_some(())
        });
        prometheus
    }

    /// What is served under a path, or nothing. A request of the old kind is answered without chunks.
    fn get(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Ok(mut stream) = TcpStream::connect_timeout(&self.at, PATIENCE) {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let _ = write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.at);
            let _ = stream.read_to_end(&mut bytes);
        }
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        let is_good = bytes.starts_with(b"HTTP/1.0 2") || bytes.starts_with(b"HTTP/1.0 4");
        head.filter(|_| is_good).map_or(Vec::new(), |head| bytes.split_off(head))
    }

    /// The samples that a query finds, as labels and value; an error if it is no query.
    fn query(&self, query: &str) -> Result<Vec<(Value, f64)>, String> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = self.get(&format!("/api/v1/query?query={escaped}"));
        let answer: Value = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        let found = answer["data"]["result"].as_array().into_iter().flatten();
        Ok(found
            .map(|sample| {
                (sample["metric"].clone(), sample["value"][1].as_str().unwrap().parse().unwrap_or(f64::NAN))
            })
            .collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A crawl in this process, whose shard dies three times, and that stays when it is done.
fn restarting(farm: &Farm, dir: &TempDir) -> (Node, Listener, SocketAddr) {
    let data = dir.join("restarting");
    let mut config = Config { cores: vec![0], ..Config::default() };
    config.crawl.allow_net = vec!["127.0.0.0/8".parse().unwrap()];
    config.crawl.wait = true;
    config.store.data = data.clone();
    config.url_server.req_host_per_sec = Rate(4.0);
    config.spider.fetches_max = 256;
    config.admin.listen = Some("127.0.0.1:0".parse().unwrap());
    config.check().unwrap();
    let seeds = std::fs::read_to_string(farm.seeds_file()).unwrap();
    let seeds = seeds.lines().map(|seed| CrawlUrl::parse(seed).unwrap()).collect();
    let hosts = HostsFile::read(&farm.hosts_file()).unwrap();
    let started = Instant::now();
    let (completions, panic_at) = (Arc::new(AtomicU64::new(0)), Arc::new(BTreeSet::from([60, 400, 800])));
    let make_driver = move |_: usize| {
        let inner = EpollDriver::new(256, started)?;
        Ok(PanickyDriver { inner, completions: completions.clone(), panic_at: panic_at.clone() })
    };
    let directory = DataDir::open(&data).unwrap();
    let index = OpenIndex::open(&config, &directory, None, |_| {}).unwrap();
    let task = CrawlTask { seeds, feeds: Vec::new(), store: CrawlStore::Directory(directory), index };
    let doors = Doors::take(&config.admin, Some(&data)).unwrap();
    let at = doors.bound().unwrap();
    let names = move |_, _| Ok(Names::table(hosts));
    let node = Node::start(&NodeSetup::new(config), task, names, "panicky", make_driver, started).unwrap();
    let listener = Listener::start(doors, node.desk()).unwrap();
    (node, listener, at)
}

fn crawling(farm: &Farm, data: &Path, rate: &str) -> (Running, SocketAddr) {
    let mut command = crawl_command(data);
    command.arg("--seeds").arg(farm.seeds_file()).arg("--hosts-file").arg(farm.hosts_file()).args([
        "--req-host-per-sec",
        rate,
        "--wait",
        "--cores",
        "0",
        "--admin",
        "127.0.0.1:0",
    ]);
    let crawl = Running::start(&mut command);
    let at = wait_for("an address", PATIENCE, || {
        crawl.stderr().split("admin: http://").nth(1)?.split_once('/')?.0.parse().ok()
    });
    (crawl, at)
}

#[test]
fn a_real_prometheus_reads_what_a_crawl_says_and_no_counter_falls() {
    let farm = Farm::start(SiteSpec {
        hosts: 30,
        pages: 60,
        page_bytes: 3_000,
        latency_ms: 5,
        ..SiteSpec::default()
    });
    let dir = TempDir::new();
    let (polite_data, fast_data) = (dir.join("polite"), dir.join("fast"));
    let (polite, polite_at) = crawling(&farm, &polite_data, "2");
    // As fast as its hosts answer, which is not at once.
    let slow_farm = Farm::start(SiteSpec { hosts: 30, pages: 60, latency_ms: 300, ..SiteSpec::default() });
    let (fast, fast_at) = crawling(&slow_farm, &fast_data, "0");
    let (node, listener, restarting_at) = restarting(&farm, &dir);
    let targets =
        [("nephila-polite", polite_at), ("nephila-fast", fast_at), ("nephila-restarting", restarting_at)];
    let prometheus = Prometheus::start(&targets);
    let query = |query: &str| prometheus.query(query).unwrap_or_else(|e| panic!("{query}: {e}"));
    let data = polite_data.to_str().unwrap();
    std::thread::sleep(Duration::from_secs(8));
    run(["pause", "--data", data]).done();
    std::thread::sleep(Duration::from_secs(5));
    run(["resume", "--data", data]).done();
    wait_for("three restarts", 3 * PATIENCE, || {
        let found = query("sum(nephila_shard_restarts_total{job=\"nephila-restarting\"})");
        found.first().is_some_and(|(_, restarts)| *restarts >= 3.0).then_some(())
    });
    std::thread::sleep(Duration::from_secs(10));

    // Nothing failed, and the figures are few.
    let up = query("min_over_time(up[5m])");
    assert_eq!(up.len(), 3, "{up:?}");
    assert!(up.iter().all(|(_, up)| *up == 1.0), "{up:?}");
    let series = query("max(max_over_time(scrape_samples_scraped[5m]))");
    assert!((100.0..=350.0 + 14.0).contains(&series[0].1), "{series:?}");
    // No counter fell, nor any part of a histogram.
    let body = prometheus.get("/api/v1/label/__name__/values");
    let known: Value = serde_json::from_slice(&body).unwrap();
    let known: BTreeSet<String> =
        known["data"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect();
    let counts = |name: &&String| {
        ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end))
            && (name.starts_with("nephila_") || name.starts_with("process_"))
    };
    let mut counters = 0;
    for name in known.iter().filter(counts) {
        let fell: Vec<_> =
            query(&format!("resets({name}[5m])")).into_iter().filter(|(_, n)| *n > 0.0).collect();
        assert!(fell.is_empty(), "{name}: {fell:?}");
        counters += 1;
    }
    assert!(counters > 25, "{counters}");
    // The pause is seen, and so is what came after it.
    let paused = query("max_over_time(nephila_node_state{job=\"nephila-polite\",state=\"paused\"}[5m])");
    assert_eq!(paused[0].1, 1.0, "{paused:?}");
    let grew = query("min by (job) (sum by (job) (increase(nephila_documents_total[5m])))");
    assert!(grew.len() == 3 && grew.iter().all(|(_, more)| *more > 0.0), "{grew:?}");

    // Every name that alerts and dashboard use is there, and every query of the dashboard is one.
    let (_, queries) = dashboard();
    let used = names(&file("nephila.rules.yml")).into_iter();
    let used: BTreeSet<String> = used.chain(queries.iter().flat_map(|(_, query)| names(query))).collect();
    assert!(used.len() > 35, "{used:?}");
    let missing: Vec<&String> = used.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut answered = 0;
    for (title, text) in &queries {
        let text = text
            .replace("$__rate_interval", "20s")
            .replace("$job", "nephila-polite|nephila-fast")
            .replace("$instance", ".*");
        match prometheus.query(&text) {
            Ok(found) => answered += usize::from(!found.is_empty()),
            Err(error) => panic!("{title}: {text}: {error}"),
        }
    }
    assert!(answered * 3 > queries.len() * 2, "{answered} of {} show something", queries.len());
    // What is recorded is there, and nothing is wrong that pages somebody.
    assert_eq!(query("nephila:documents:rate5m").len(), 3);
    let firing = query("ALERTS{alertstate=\"firing\",severity=\"page\"}");
    assert!(firing.is_empty(), "{firing:?}");
    drop(prometheus);

    // A reader that judges for itself finds nothing wrong with the text, and no host in it.
    let text = run(["metrics", "--data", data]).done().text();
    assert!(!text.contains(".test") && !text.contains("127."), "{text}");
    let path = dir.write("metrics", &text);
    let mut check = Command::new("promtool");
    check.args(["check", "metrics"]).stdin(std::fs::File::open(path).unwrap());
    let checked = Running::start(&mut check).wait(PATIENCE);
    assert_eq!((checked.code(), checked.stderr.as_str()), (0, ""), "{}", checked.text());

    node.stop();
    for (crawl, data) in [(polite, &polite_data), (fast, &fast_data)] {
        run(["stop", "--data", data.to_str().unwrap()]).done();
        crawl.wait(PATIENCE).done();
    }
    wait_for("the end", PATIENCE, || node.is_finished().then_some(()));
    listener.end();
    node.finish().unwrap();
}
