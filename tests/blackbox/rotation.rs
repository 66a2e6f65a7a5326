//! The promise: crawl.log is written in parts of a bounded size, and a new one begins when SIGUSR1 asks for it. Nothing that
//! was written is lost or written over, whenever the process is killed; every part tells the rules that its lines were
//! written by; the audit reads all parts as one log, compressed or not, and tells which of them are missing.

use crate::support::*;
use nephila::farm::SiteSpec;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The finished parts of a directory by their number, and the open one last.
fn parts(data: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(data) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name());
    let mut numbers: Vec<u32> =
        names.filter_map(|name| name.to_str()?.strip_prefix("crawl.log.")?.parse().ok()).collect();
    numbers.sort_unstable();
    let finished = numbers.iter().map(|number| data.join(format!("crawl.log.{number}")));
    finished.chain(std::iter::once(data.join("crawl.log")).filter(|open| open.exists())).collect()
}

/// All parts, one behind the other. The open one is read first, as it may be finished meanwhile.
fn joined(data: &Path) -> String {
    let open = std::fs::read_to_string(data.join("crawl.log")).unwrap_or_default();
    let mut all = parts(data);
    all.retain(|path| !path.ends_with("crawl.log"));
    let mut text: String = all.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    if !text.ends_with(&open) {
        text += &open;
    }
    text
}

fn farm() -> Farm {
    Farm::start(SiteSpec { hosts: 12, pages: 15, page_bytes: 500, ..SiteSpec::default() })
}

fn crawl(farm: &Farm, data: &Path, args: &[&str]) -> Command {
    let mut command = crawl_command(data);
    command.arg("--hosts-file").arg(farm.hosts_file()).arg("--seeds").arg(farm.seeds_file()).args(args);
    command
}

/// What an audit came to, and its exit status.
fn audit(args: &[&Path]) -> (Value, i32) {
    let mut command = nephila();
    command.args(["audit", "--json"]).args(args);
    let run = Running::start(&mut command).wait(PATIENCE);
    (run.json(), run.code())
}

fn audit_data(data: &Path) -> (Value, i32) {
    audit(&[Path::new("--data"), data])
}

/// What must be the same however the log is cut.
fn judged(report: &Value) -> Value {
    let mut report = report.clone();
    for key in ["smallest_gap_ms", "torn_lines", "violations"] {
        report.as_object_mut().unwrap().remove(key);
    }
    report
}

#[test]
fn parts_are_bounded_begin_with_the_rules_and_are_one_log() {
    let (farm, dir) = (farm(), TempDir::new());
    let data = dir.join("data");
    let run = Running::start(
        crawl(&farm, &data, &["--log-bytes", "6kB", "--req-host-per-sec", "40"]).args(["--depth", "9"]),
    )
    .wait(PATIENCE)
    .done();
    let all = parts(&data);
    assert!(all.len() > 4, "{all:?}");
    assert!(run.stderr.contains("crawl.log: part 1 is finished: crawl.log.1 ("), "{}", run.stderr);
    let mut starts = Vec::new();
    for (number, path) in all.iter().enumerate() {
        let text = std::fs::read_to_string(path).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("# nephila ") && first.contains(" req_host_per_sec=40 "), "{first}");
        assert!(
            first.contains(" agent=nephila ") && first.ends_with(&format!(" part={}", number + 1)),
            "{first}"
        );
        starts.push(first.split(' ').nth(4).unwrap().to_string());
        // The last batch of lines may be the only one, and longer.
        assert!(text.len() < 70_000 && text.lines().count() > 1, "{}: {}", path.display(), text.len());
    }
    assert!(starts.iter().all(|start| *start == starts[0]), "one run: {starts:?}");
    let (over_parts, status) = audit_data(&data);
    assert_eq!(
        (status, &over_parts["runs"], &over_parts["missing_parts"]),
        (0, &1.into(), &serde_json::json!([]))
    );
    dir.write("joined/crawl.log", joined(&data));
    let (over_one, _) = audit_data(&dir.join("joined"));
    assert_eq!(judged(&over_parts), judged(&over_one));
    assert!(over_parts["requests"].as_u64().unwrap() > 150, "{over_parts}");
    // Named in any order, their numbers count.
    let files: Vec<&Path> = all.iter().rev().map(PathBuf::as_path).collect();
    assert_eq!(audit(&files), audit_data(&data));
}

#[test]
fn a_signal_begins_a_part_and_a_kill_loses_no_line() {
    let (farm, dir) = (farm(), TempDir::new());
    let data = dir.join("data");
    let slow = ["--req-host-per-sec", "8", "--log-bytes", "2kB"];
    let mut before = String::new();
    for round in 0..5 {
        let mut running = Running::start(&mut crawl(&farm, &data, &slow));
        // A signal that comes before a program listens for it ends the program, as it does any.
        wait_for("it listens", PATIENCE, || running.stderr().contains("driver:").then_some(()));
        let had = parts(&data).len();
        wait_for("some parts are finished", PATIENCE, || {
            assert!(!running.has_ended(), "{}", running.stderr());
            running.signal(Signal::SIGUSR1);
            (parts(&data).len() >= had + 3 + round).then_some(())
        });
        let seen = joined(&data);
        running.signal(Signal::SIGKILL);
        drop(running.wait(PATIENCE));
        let after = joined(&data);
        assert!(seen.starts_with(&before), "round {round}: what the run before left is there");
        assert!(after.starts_with(seen.rsplit_once('\n').map_or("", |(whole, _)| whole)), "round {round}");
        before = after.rsplit_once('\n').map_or(String::new(), |(whole, _)| format!("{whole}\n"));
    }
    let last = Running::start(&mut crawl(&farm, &data, &["--req-host-per-sec", "50", "--log-bytes", "1GiB"]));
    wait_for("it runs", PATIENCE, || last.stderr().contains("driver:").then_some(()));
    last.wait(PATIENCE).done();
    let (report, status) = audit_data(&data);
    assert_eq!((status, &report["runs"], &report["violations_total"]), (0, &6.into(), &0.into()), "{report}");
    dir.write("joined/crawl.log", joined(&data));
    assert_eq!(judged(&report), judged(&audit_data(&dir.join("joined")).0));
    // Nothing else was left in the directory.
    assert!(!data.join("crawl.fresh").exists());
}

#[test]
fn missing_and_compressed_parts_are_told_of_and_read() {
    let (farm, dir) = (farm(), TempDir::new());
    let data = dir.join("data");
    Running::start(&mut crawl(&farm, &data, &["--log-bytes", "6kB", "--req-host-per-sec", "40"]))
        .wait(PATIENCE)
        .done();
    let whole = audit_data(&data);
    let status =
        Command::new("gzip").arg(data.join("crawl.log.1")).arg(data.join("crawl.log.2")).status().unwrap();
    assert!(status.success() && data.join("crawl.log.2.gz").exists());
    assert_eq!(
        judged(&audit_data(&data).0)["by_ip"],
        judged(&whole.0)["by_ip"],
        "compressed, it says the same"
    );
    // One that is being compressed is there twice.
    let gz = std::fs::read(data.join("crawl.log.2.gz")).unwrap();
    std::fs::write(data.join("crawl.log.3.gz"), &gz[..gz.len() / 2]).unwrap();
    assert_eq!(audit_data(&data).0["requests"], whole.0["requests"]);
    std::fs::remove_file(data.join("crawl.log.3.gz")).unwrap();

    let third = std::fs::read(data.join("crawl.log.3")).unwrap();
    std::fs::remove_file(data.join("crawl.log.3")).unwrap();
    let run = run([Path::new("audit"), Path::new("--data"), &data]);
    assert_eq!(run.code(), 1, "{}", run.text());
    assert!(
        run.text().contains("part 3 is missing of ") && run.stderr.contains("not whole"),
        "{}",
        run.text()
    );
    let (report, _) = audit_data(&data);
    assert_eq!(
        (&report["missing_parts"][0]["from"], &report["violations_total"]),
        (&3.into(), &0.into()),
        "{report}"
    );

    // What went by age is told, and is no fault; the rules that were learnt then are taken on trust, and counted.
    std::fs::write(data.join("crawl.log.3"), third).unwrap();
    std::fs::remove_file(data.join("crawl.log.1.gz")).unwrap();
    let (report, status) = audit_data(&data);
    assert_eq!((status, &report["missing_parts"][0]["to"]), (0, &1.into()), "{report}");
    assert!(report["unproven"].as_u64().unwrap() > 0, "{report}");

    std::fs::write(data.join("crawl.log.2.gz"), &gz[..gz.len() / 2]).unwrap();
    let cut = run_audit_fails(&data);
    assert!(cut.contains("crawl.log.2.gz") && cut.contains("damaged"), "{cut}");
}

fn run_audit_fails(data: &Path) -> String {
    let run = run([Path::new("audit"), Path::new("--data"), data]);
    assert_eq!(run.code(), 3, "{}", run.stderr);
    run.stderr
}

#[test]
fn parts_beyond_a_bound_go_and_a_resume_goes_on_counting() {
    let (farm, dir) = (farm(), TempDir::new());
    let data = dir.join("data");
    let config = dir.write("c.toml", "[store]\nlog_parts_max = 2\nlog_bytes = \"6kB\"\n");
    let run = Running::start(crawl(&farm, &data, &["--req-host-per-sec", "40", "--config"]).arg(&config))
        .wait(PATIENCE)
        .done();
    assert!(run.stderr.contains("oldest went, as log_parts_max is 2"), "{}", run.stderr);
    let all = parts(&data);
    assert_eq!(all.len(), 3, "{all:?}");
    let first = std::fs::read_to_string(&all[2]).unwrap();
    // Somebody carried the parts away: the numbers go on.
    all[..2].iter().for_each(|part| std::fs::remove_file(part).unwrap());
    Running::start(crawl(&farm, &data, &["--again", "--req-host-per-sec", "40", "--config"]).arg(&config))
        .wait(PATIENCE)
        .done();
    let part =
        |text: &str| text.lines().next().unwrap().rsplit_once("part=").unwrap().1.parse::<u32>().unwrap();
    let open = std::fs::read_to_string(data.join("crawl.log")).unwrap();
    assert!(part(&open) > part(&first) && data.join(format!("crawl.log.{}", part(&open) - 1)).exists());
}

#[test]
fn a_process_without_a_log_says_so_and_goes_on() {
    let dir = TempDir::new();
    let mut command = nephila();
    command.args(["storeserver", "--listen", "127.0.0.1:0", "--json", "--data"]).arg(dir.join("data"));
    let server = Running::start(&mut command);
    wait_for("it listens", PATIENCE, || server.stderr().contains("listening on").then_some(()));
    server.signal(Signal::SIGUSR1);
    wait_for("it says so", PATIENCE, || server.stderr().contains("writes no crawl.log").then_some(()));
    server.signal(Signal::SIGTERM);
    server.wait(PATIENCE).done();
}
