//! The promise: the figures of a crawl are those of its summary, its log and its store, and nothing that came from the network
//! stands in them.

use crate::stage::Stage;
use crate::support::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Samples by name and labels.
type Figures = BTreeMap<String, f64>;

/// What `nephila metrics` says; `None` if nothing runs there yet.
fn metrics(data: &Path) -> Option<String> {
    let run = Running::start(nephila().args(["metrics", "--data"]).arg(data)).wait(PATIENCE);
    (run.code() == 0).then(|| run.text())
}

fn figures(text: &str) -> Figures {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let parts = samples.map(|line| line.rsplit_once(' ').expect("a name and a value"));
    parts.map(|(name, value)| (name.to_string(), value.parse().expect("a number"))).collect()
}

/// The figures of a family by their one label, without those that are 0.
fn family(figures: &Figures, name: &str) -> BTreeMap<String, u64> {
    let of_name = figures.iter().filter_map(|(sample, &value)| {
        let label = sample.strip_prefix(name)?.strip_prefix('{')?.split('"').nth(1)?;
        (value != 0.0).then(|| (label.to_string(), value as u64))
    });
    of_name.collect()
}

/// Waits until everything is done that can be, and the figures say no more than before.
#[track_caller]
fn settled(data: &Path, documents: u64) -> (String, Figures) {
    let mut before = BTreeMap::new();
    wait_for("figures that stay", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(200));
        let text = metrics(data)?;
        let mut now = figures(&text);
        let counted = |name: &str| family(&now, name).values().sum::<u64>();
        let urls = family(&now, "nephila_index_urls");
        let is_done = counted("nephila_documents_total") >= documents
            && !urls.contains_key("pending")
            && !urls.contains_key("handed_out");
        now.retain(|name, _| {
            ![
                "process_",
                "nephila_thread",
                "nephila_syscalls",
                "nephila_stage",
                "nephila_admin",
                "nephila_disk_free",
            ]
            .iter()
            .any(|machine| name.starts_with(machine))
        });
        let stays = std::mem::replace(&mut before, now.clone()) == now;
        (is_done && stays).then_some((text, now))
    })
}

#[test]
fn figures_agree_with_the_summary_the_log_and_the_store() {
    let mut stage = Stage::with_robots(|asked| match (asked.name(), &*asked.target) {
        ("b.test", "/robots.txt") => Reply::status("503 Service Unavailable"),
        ("c.test", "/robots.txt") => Reply::redirect("/rules.txt"),
        (_, "/robots.txt") => Reply::text("User-agent: *\nDisallow: /never\n"),
        (_, "/rules.txt") => Reply::text("User-agent: *\nAllow: /\n"),
        (_, "/") => Reply::links([
            "/1",
            "/2",
            "/3",
            "/gone",
            "/gone2",
            "/fault",
            "/moved",
            "/odd",
            "/slow",
            "/cut",
            "/never",
            "/%22%7D%0Aevil_total%201",
            "/evil?x=\"}",
            "http://evil-elsewhere.test/",
        ]),
        (_, "/gone" | "/gone2") => Reply::status("404 Not Found"),
        (_, "/fault") => Reply::status("500 Internal Server Error"),
        (_, "/moved") => Reply::redirect("/landed"),
        (_, "/odd") => Reply::status("599 Evil"),
        (_, "/slow") => Reply::text("late").after_ms(300),
        (_, "/cut") => Reply::hang_up(),
        _ => Reply::html("the same everywhere"),
    });
    let seeds = [stage.url("a.test", "/"), stage.url("b.test", "/"), stage.url("c.test", "/1")];
    let args = seeds.iter().map(String::as_str).chain(["--wait"]);
    let crawl = Running::start(&mut stage.command(args));
    let (text, figures) = settled(&stage.data, 15);
    Running::start(nephila().args(["stop", "--data"]).arg(&stage.data)).wait(PATIENCE).done();
    let report = crawl.wait(PATIENCE).done().json();
    check_report(&report);

    let one = |name: &str| figures[name] as u64;
    let results = report["results"].as_object().unwrap();
    let summed: BTreeMap<String, u64> =
        results.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap())).collect();
    assert_eq!(family(&figures, "nephila_documents_total"), summed, "{report}");
    assert!(summed.len() >= 5, "the test is of nothing if all went well: {report}");
    assert_eq!(one("nephila_received_bytes_total"), report["bytes"].as_u64().unwrap());
    assert!(one("nephila_wire_received_bytes_total") >= one("nephila_received_bytes_total"));
    assert_eq!(one("nephila_store_written_bytes_total"), report["stored_bytes"].as_u64().unwrap());
    assert_eq!(one("nephila_fetch_duration_seconds_count"), report["pages"].as_u64().unwrap());
    assert_eq!(one("nephila_fetch_duration_seconds_bucket{le=\"+Inf\"}"), report["pages"].as_u64().unwrap());
    assert!(figures["nephila_fetch_duration_seconds_sum"] >= 0.3, "one took its time");

    let mut codes = BTreeMap::<String, u64>::new();
    let mut robots = BTreeMap::<String, u64>::new();
    let log = stage.log();
    for line in log.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields[1].parse::<i32>().unwrap() > 0 {
            let code = if fields[1] == "599" { "other" } else { fields[1] };
            *codes.entry(code.to_string()).or_default() += 1;
        }
        if fields[4] == "P" {
            let rules = ["known", "hop", "unreachable"]
                .into_iter()
                .find(|rules| line.contains(&format!("rules={rules}")));
            let outcome = rules.unwrap().replace("hop", "redirect");
            *robots.entry(outcome).or_default() += 1;
        }
    }
    assert_eq!(family(&figures, "nephila_responses_total"), codes, "{log}");
    assert_eq!(family(&figures, "nephila_robots_fetches_total"), robots, "{log}");
    assert_eq!(codes["404"], 2, "{log}");
    assert_eq!((robots["known"], robots["redirect"], robots["unreachable"]), (2, 1, 1), "{log}");

    let stored = family(&figures, "nephila_store_records_total");
    assert_eq!(stored.values().sum::<u64>() as usize, records(&stage.data).len());
    let links = family(&figures, "nephila_links_total");
    assert_eq!((links["out_of_scope"], links["new"] >= 13), (1, true), "{links:?}");
    let hosts = family(&figures, "nephila_hosts");
    assert_eq!(hosts.values().sum::<u64>(), 3, "{hosts:?}");
    let sent = figures["nephila_politeness_requests_total{of=\"host\"}"] as usize;
    assert_eq!(sent, stage.server.asked().len(), "every request was held against its pause");
    assert!(family(&figures, "nephila_politeness_violations_total").is_empty());
    assert_eq!(family(&figures, "nephila_host_backoffs_total").get("robots"), Some(&1));

    for hostile in ["evil", ".test", "127.", "http:", "robots.txt\"", "nephila/"] {
        let said =
            text.lines().filter(|line| !line.starts_with("# HELP")).find(|line| line.contains(hostile));
        assert_eq!(said, None, "{hostile}");
    }
    assert!(text.lines().filter(|line| !line.starts_with('#')).count() <= 350 + 14 * 64);
}

#[test]
fn a_state_and_what_hosts_wait_for_are_told_as_they_change() {
    let mut stage = Stage::new(|_| Reply::links((0..50).map(|n| format!("/{n}"))));
    let seed = stage.url("a.test", "/");
    let crawl = Running::start(&mut stage.command([&*seed, "--req-host-per-sec", "0.5"]));
    let data = &stage.data;
    let with = |what: &str, sample: &str| {
        wait_for(what, PATIENCE, || {
            let figures = figures(&metrics(data)?);
            (figures.get(sample) == Some(&1.0)).then_some(figures)
        })
    };
    with("the host waits for its rate", "nephila_hosts{state=\"rate\"}");
    let running = with("it runs", "nephila_node_state{state=\"running\"}");
    wait_for("the links of its first page", PATIENCE, || {
        let queued = family(&figures(&metrics(data)?), "nephila_queue_urls");
        (queued.values().sum::<u64>() >= 45).then_some(())
    });
    assert!(running["nephila_politeness_margin_seconds{of=\"host\"}"] >= 0.0);
    let say = |verb: &str| Running::start(nephila().args([verb, "--data"]).arg(data)).wait(PATIENCE).done();
    say("pause");
    let paused = with("it is paused", "nephila_node_state{state=\"paused\"}");
    assert_eq!(paused["nephila_node_state{state=\"running\"}"], 0.0);
    let counters = |figures: &Figures| {
        let names = figures.iter().filter(|(name, _)| name.split('{').next().unwrap().ends_with("_total"));
        names.map(|(name, value)| (name.clone(), *value)).collect::<Figures>()
    };
    for (name, before) in counters(&running) {
        assert!(paused[&name] >= before, "{name} fell from {before} to {}", paused[&name]);
    }
    say("resume");
    with("it goes on", "nephila_node_state{state=\"running\"}");
    say("stop");
    crawl.wait(PATIENCE).done();
}
