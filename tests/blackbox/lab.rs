//! The promise: a bench leaves a page that a browser shows with all its plots, and a record that another can be compared with;
//! peers are measured where they are installed. No time is judged here.

use crate::support::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Enough pages for plots, few enough for a test.
const SMALL: [&str; 8] = ["bench", "--rounds", "1", "--hosts", "4", "--pages", "60", "--wrk-seconds=1"];
const LONG: Duration = Duration::from_secs(120);

/// Put behind a page: measures what was drawn, and leaves it as the page's only text.
const MEASURE: &str = r#"<script>
const box = element => { const {width, height} = element.getBoundingClientRect(); return [width, height]; };
const plots = [...document.querySelectorAll("section")].map(section => {
  const svg = section.querySelector("svg"), curve = svg.querySelector("polyline");
  return {
    heading: section.querySelector("h2").textContent,
    size: box(svg),
    bars: [...svg.querySelectorAll("rect")].map(bar => box(bar)[0]),
    curve: curve ? [...curve.points].length : 0,
    curve_size: curve ? box(curve) : [0, 0],
    texts: [...svg.querySelectorAll("text")].map(text => text.textContent),
    outside: [...svg.querySelectorAll("text")].filter(text => {
      const own = text.getBoundingClientRect(), all = svg.getBoundingClientRect();
      return own.left < all.left - 1 || own.right > all.right + 1;
    }).map(text => text.textContent),
  };
});
const fetched = performance.getEntriesByType("resource").length;
document.body.innerHTML = "<pre></pre>";
document.querySelector("pre").textContent = "DRAWN" + JSON.stringify({plots, fetched}) + "END";
</script>"#;

/// What a browser makes of a page.
fn drawn(page: &str, dir: &TempDir) -> Value {
    let path = dir.write("measured.html", page.replace("</body>", &format!("{MEASURE}</body>")));
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,2000", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", dir.join("browser").display()));
    chromium.arg(format!("file://{}", path.display())).stdin(Stdio::null());
    let run = Running::start(&mut chromium).wait(LONG);
    let dom = run.text();
    let json = dom.split("DRAWN").nth(1).and_then(|rest| rest.split("END").next());
    let json = json.unwrap_or_else(|| panic!("the page was not drawn: {dom}"));
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&json).expect("what was measured")
}

/// A bench prints its report over several lines, as it is kept.
fn report(run: Run) -> Value {
    serde_json::from_str(&run.text()).expect("a report")
}

#[track_caller]
fn check_page(path: &Path, dir: &TempDir) {
    let page = fs::read_to_string(path).expect("the page");
    let drawn = drawn(&page, dir);
    assert_eq!(drawn["fetched"], 0, "it needs nothing else");
    let plots = drawn["plots"].as_array().expect("plots");
    let headings: Vec<&str> = plots.iter().filter_map(|plot| plot["heading"].as_str()).collect();
    assert_eq!(headings, ["CPU beside others", "Pages per second", "Fetch times", "CPU by stage", "Density"]);
    for plot in plots {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        assert!(number(&plot["size"][0]) > 500.0 && number(&plot["size"][1]) > 80.0, "{plot}");
        assert_eq!(plot["outside"], Value::Array(Vec::new()), "all names are within the plot: {plot}");
        let bars = plot["bars"].as_array().expect("bars");
        let has_bars = bars.len() >= 2 && bars.iter().any(|bar| number(bar) > 300.0);
        let has_curve = number(&plot["curve"]) >= 3.0 && number(&plot["curve_size"][0]) > 300.0;
        assert!(has_bars != has_curve, "{plot}");
    }
    assert!(page.contains("<code>nephila bench"), "what was typed");
}

#[test]
fn a_run_leaves_a_page_of_plots_percentiles_and_a_record() {
    let dir = TempDir::new();
    let [page, hgrm, before, after] =
        ["page.html", "fetches.hgrm", "a.json", "b.json"].map(|name| dir.join(name));
    let mut first = nephila();
    first.args(SMALL).arg("--report").arg(&page).arg("--hgrm").arg(&hgrm).arg("--record").arg(&before);
    let run = Running::start(&mut first).wait(LONG).done();
    assert!(run.text().contains("CPU µs per page"), "{}", run.text());
    check_page(&page, &dir);
    let hgrm = fs::read_to_string(hgrm).expect("percentiles");
    assert!(hgrm.lines().any(|line| line.contains("Total count    =          240]")), "{hgrm}");
    Running::start(nephila().args(SMALL).arg("--record").arg(&after)).wait(LONG).done();
    let diff =
        Running::start(nephila().args(["bench", "diff"]).arg(&before).arg(&after)).wait(PATIENCE).done();
    for figure in ["cpu_us_per_page", "wrk.cpu_us_per_request", "every_round.crawl", "command  before:"] {
        assert!(diff.text().contains(figure), "{}", diff.text());
    }
    let json =
        Running::start(nephila().args(["bench", "diff", "--json"]).arg(&before).arg(&before)).wait(PATIENCE);
    let figures = json.done().json()["figures"].as_array().expect("figures").clone();
    assert!(!figures.is_empty() && figures.iter().all(|figure| figure["before"] == figure["after"]));
}

#[test]
fn what_cannot_be_compared_or_written_is_said_before_anything_is_measured() {
    let dir = TempDir::new();
    let text = dir.write("text", "no run");
    for (args, said) in [
        (vec!["bench", "diff", text.to_str().unwrap(), text.to_str().unwrap()], "is no recorded run"),
        (vec!["bench", "diff", "nowhere.json", "nowhere.json"], "cannot be read"),
        (vec!["bench", "--report", "/nowhere/page.html"], "cannot write /nowhere/page.html"),
        (vec!["bench", "--hgrm", "/nowhere/x"], "cannot write /nowhere/x"),
        (vec!["bench", "--peers", "x"], "--compare"),
    ] {
        let run = Running::start(nephila().args(args)).wait(PATIENCE);
        assert!(run.code() != 0 && run.stderr.contains(said), "{}", run.stderr);
    }
}

#[test]
fn peers_crawl_the_same_site_and_those_that_are_away_are_named() {
    let dir = TempDir::new();
    let page = dir.join("page.html");
    let mut command = nephila();
    command.args(["bench", "--compare", "--rounds", "1", "--pages", "80", "--wrk-seconds", "1", "--json"]);
    command.arg("--peers").arg(dir.path()).arg("--report").arg(&page);
    let report = report(Running::start(&mut command).wait(LONG).done());
    assert_eq!(report["pages"], 80, "{report}");
    let peers = report["peers"].as_array().expect("peers");
    let names: Vec<&str> = peers.iter().filter_map(|peer| peer["name"].as_str()).collect();
    assert_eq!(names, ["wrk", "wget2"], "{report}");
    assert_eq!(peers[1]["pages"]["only_its"], 0, "{report}");
    assert_eq!(report["missing"], serde_json::json!(["hyper", "spider", "scrapy"]));
    check_page(&page, &dir);
}

/// A program that prints the pages that it brought is a peer, wherever it comes from.
#[test]
fn a_program_of_setup_is_a_peer() {
    let dir = TempDir::new();
    let peer = dir.write(
        "hyper-crawler/target/release/hyper-crawler",
        "#!/bin/sh\necho index.html\necho /p/1.html\necho other\n",
    );
    fs::set_permissions(&peer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = nephila();
    command.args(["bench", "--compare", "--rounds", "1", "--pages", "10", "--wrk-seconds", "1", "--json"]);
    command.arg("--peers").arg(dir.path());
    let report = report(Running::start(&mut command).wait(LONG).done());
    let peers = report["peers"].as_array().expect("peers");
    let hyper = peers.iter().find(|peer| peer["name"] == "hyper").expect("it is here");
    assert_eq!(hyper["pages"], serde_json::json!({"its": 2, "only_ours": 8, "only_its": 0}), "{report}");
}

/// Every way brings all pages: a crawl that loses one ends the bench.
#[test]
fn a_page_is_fetched_in_every_way_and_its_cost_is_told_beside_the_usual_one() {
    let mut command = nephila();
    command.args(["bench", "ways", "--rounds", "1", "--pages", "640", "--connections", "100", "--json"]);
    command.args(["--polite-hosts", "20", "--page-bytes", "2000"]);
    let report = report(Running::start(&mut command).wait(LONG).done());
    let ways = report["ways"].as_array().expect("ways");
    let names: Vec<&str> = ways.iter().filter_map(|way| way["way"].as_str()).collect();
    assert_eq!(names, ["close", "https", "visits", "shards", "connections", "polite"], "{report}");
    for way in ways {
        assert!(way["usual"] != way["other"], "{report}");
        let [usual, other] =
            ["usual_us_per_page", "other_us_per_page"].map(|side| way[side].as_f64().unwrap());
        let ratio = way["ratio"].as_f64().unwrap();
        assert!(usual > 0.0 && other > 0.0 && (ratio - other / usual).abs() < 1e-6, "{report}");
    }
    let run = Running::start(nephila().args(["bench", "ways", "--pages", "10"])).wait(PATIENCE);
    assert!(run.code() != 0 && run.stderr.contains("give 64 pages or more"), "{}", run.stderr);
}
