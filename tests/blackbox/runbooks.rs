//! The promise: every runbook section is whole and its commands are those of the drop-ins; what it calls measured can be
//! measured again.

use crate::support::*;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LEADS: [&str; 6] = ["Check", "Apply", "Revert", "Why", "Risk", "Measured"];

const KNOBS: [(&str, &str); 8] = [
    (
        "files-and-memory.md",
        "nofile fs.nr_open fs.file-max memlock vm.max_map_count vm.swappiness transparent-huge-pages",
    ),
    (
        "ports.md",
        "net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_max_orphans \
         net.ipv4.tcp_fin_timeout net.ipv4.tcp_syn_retries conntrack net.ipv4.conf.all.rp_filter",
    ),
    (
        "sockets.md",
        "net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem net.core.somaxconn net.ipv4.tcp_max_syn_backlog \
         net.core.netdev_max_backlog busy-poll",
    ),
    ("nic.md", "nic-queues nic-irqs nic-rings nic-offloads rps"),
    ("cpu.md", "cpu-governor c-states smt isolcpus numa-balancing mitigations clocksource"),
    ("disk.md", "vm.dirty_bytes vm.dirty_background_bytes disk-scheduler file-system disk-speed"),
    ("dns.md", "resolver"),
    ("io_uring.md", "kernel.io_uring_disabled io-wq"),
];

fn tuning(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(tuning(name)).unwrap_or_else(|e| panic!("tuning/{name}: {e}"))
}

/// What stands under one heading, by its leads. Lines of a paragraph are joined.
type Section = BTreeMap<String, String>;

fn sections(file: &str) -> Vec<(String, Section)> {
    let text = text(file);
    let mut sections = Vec::new();
    for part in text.split("\n## ").skip(1) {
        let (name, body) = part.split_once('\n').unwrap();
        let mut leads = Vec::new();
        let mut section = Section::new();
        for paragraph in body.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            let (lead, rest) = paragraph
                .strip_prefix("**")
                .and_then(|rest| rest.split_once("** "))
                .unwrap_or_else(|| panic!("{file}, {name}: no lead: {paragraph}"));
            leads.push(lead.to_string());
            section.insert(lead.to_string(), rest.replace('\n', " "));
        }
        assert_eq!(leads, LEADS, "{file}, {name}");
        sections.push((name.to_string(), section));
    }
    sections
}

fn all_sections() -> BTreeMap<String, Section> {
    KNOBS.iter().flat_map(|(file, _)| sections(file)).collect()
}

/// What is in backquotes.
fn commands(paragraph: &str) -> Vec<&str> {
    paragraph.split('`').skip(1).step_by(2).collect()
}

struct Setting {
    name: String,
    value: String,
    may_be_missing: bool,
}

fn settings() -> Vec<Setting> {
    text("sysctl.d/90-nephila.conf")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.split_once(" = ").unwrap_or_else(|| panic!("not NAME = VALUE: {line}"));
            let may_be_missing = name.starts_with('-');
            let name = name.trim_start_matches('-').to_string();
            Setting { name, value: value.to_string(), may_be_missing }
        })
        .collect()
}

fn in_proc(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

#[test]
fn every_section_is_there_and_whole() {
    for (file, names) in KNOBS {
        let found: Vec<String> = sections(file).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names.split_whitespace().collect::<Vec<_>>(), "{file}");
        assert!(text("README.md").contains(file), "the index names {file}");
    }
}

#[test]
fn what_is_called_measured_can_be_measured_again() {
    let mut cited = Vec::new();
    for (name, section) in all_sections() {
        let measured = &section["Measured"];
        let says_why = ["Cannot be shown", "Not ", "Nothing to compare"];
        if says_why.iter().any(|why| measured.starts_with(why)) {
            continue;
        }
        let lab = measured.split("`tuning/lab/").nth(1).and_then(|rest| rest.split('`').next());
        let lab = lab.unwrap_or_else(|| panic!("{name}: neither a command nor a reason: {measured}"));
        assert!(measured.bytes().filter(u8::is_ascii_digit).count() >= 2, "{name}: no figures: {measured}");
        cited.push(lab.to_string());
        let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/runs");
        let record = std::fs::read_dir(runs)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.to_str().unwrap().ends_with(&format!("-tuning-{lab}.json")))
            .unwrap_or_else(|| panic!("{name}: no record of tuning/lab/{lab}"));
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        assert_eq!(record["command"], format!("tuning/lab/{lab}"));
        assert!(!record["figures"].as_array().unwrap().is_empty(), "{lab}");
    }
    cited.sort();
    cited.dedup();
    assert!(cited.len() >= 5, "{cited:?}");
    let mut scripts: Vec<String> = std::fs::read_dir(tuning("lab"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.metadata().unwrap().permissions().mode() & 0o100 != 0)
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    scripts.sort();
    assert_eq!(scripts, cited, "every script is for a section, and is there");
}

#[test]
fn the_drop_in_sets_what_the_runbooks_say() {
    let sections = all_sections();
    let settings = settings();
    assert!(settings.len() >= 15);
    for Setting { name, value, may_be_missing } in &settings {
        let of_name =
            |(_, section): &(&String, &Section)| section["Apply"].contains(&format!("sysctl -w {name}="));
        let (heading, section) =
            sections.iter().find(of_name).unwrap_or_else(|| panic!("no section sets {name}"));
        assert!(heading == name || *may_be_missing, "{name} stands under {heading}");
        let wanted = [format!("sysctl -w {name}={value}"), format!("sysctl -w {name}='{value}'")];
        assert!(
            commands(&section["Apply"]).iter().any(|command| wanted.iter().any(|wanted| wanted == command)),
            "{name}: the runbook says {}, the drop-in {value}",
            section["Apply"]
        );
        assert!(in_proc(name).exists() || *may_be_missing, "{name} is no setting of this kernel");
        for number in value.split(' ') {
            number.parse::<u64>().unwrap_or_else(|e| panic!("{name}: {number}: {e}"));
        }
    }
    // And the other way round: what has a fixed value and is applied by sysctl is there, unless the file says why not.
    let file = text("sysctl.d/90-nephila.conf");
    for (heading, section) in &sections {
        let fixed = section["Apply"].contains(&format!("sysctl -w {heading}="));
        assert!(!fixed || file.contains(heading.as_str()), "{heading} is missing");
    }
}

#[test]
fn limits_are_those_of_the_runbook() {
    let sections = all_sections();
    let file = text("limits.d/90-nephila.conf");
    let lines: Vec<Vec<&str>> = file
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let [who, kind, item, value] = line[..] else { panic!("four words: {line:?}") };
        assert_eq!(who, "nephila");
        assert!(["soft", "hard"].contains(&kind));
        assert!(sections[item]["Check"].contains(&format!("Wanted: {value}.")), "{item} {value}");
    }
}

/// Settings of the network are a namespace's own, where they can be applied and reverted.
#[test]
fn network_commands_work_as_typed() {
    let mut script = String::from("set -eu\nPATH=$PATH:/usr/sbin:/sbin\n");
    let mut count = 0;
    for (_, section) in all_sections() {
        for lead in ["Check", "Apply", "Revert"] {
            for command in commands(&section[lead]) {
                let names: Vec<&str> = command.split_whitespace().skip(1).collect();
                let is_own = command.starts_with("sysctl ")
                    && !command.contains('|')
                    && names.iter().all(|word| !word.starts_with("vm.") && !word.starts_with("fs."))
                    && !command.contains("kernel.")
                    // Of the whole machine, and not to be seen in a namespace.
                    && !["orphans", "tcp_mem", "netdev_max", "busy_", "nf_conntrack"].iter().any(|of| command.contains(of));
                if is_own {
                    script += &format!("{command}\n");
                    count += 1;
                }
            }
        }
    }
    assert!(count >= 20, "{script}");
    let mut shell = Command::new("unshare");
    shell.args(["--net", "bash", "-c", &script]);
    Running::start(&mut shell).wait(PATIENCE).done();
}

/// One script of the lab, with counts that are the same on any machine.
#[test]
fn the_lab_shows_a_before_and_an_after() {
    let dir = TempDir::new();
    let record = dir.join("run.json");
    let mut lab = Command::new(tuning("lab/time-wait-buckets"));
    lab.env("NEPHILA", env!("CARGO_BIN_EXE_nephila")).env("RECORD", &record);
    let run = Running::start(&mut lab).wait(PATIENCE * 3).done();
    let run_json: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(run_json["knob"], "net.ipv4.tcp_max_tw_buckets", "{}", run.text());
    let dropped = &run_json["figures"][0];
    assert!(dropped["before"].as_u64().unwrap() > 1_000 && dropped["after"] == 0, "{}", run.text());
}

#[test]
fn unbound_takes_its_file() {
    let mut check = Command::new("bash");
    check.args(["-c", "PATH=$PATH:/usr/sbin unbound-checkconf \"$0\""]).arg(tuning("unbound/nephila.conf"));
    Running::start(&mut check).wait(PATIENCE).done();
}
