//! The promise: settings of the machine are told as they are, what cannot be told is never called wrong, and what is
//! changed comes back as it was, also after a failure half-way and a kill.
//!
//! Most of it runs on a tree of files that stands for a machine (`--root`); the real kernel is changed only in a network
//! namespace of the test's own.

use crate::machine_tree::*;
use crate::orders::{can_trace, injected};
use crate::support::*;
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

// Look ------------------------------------------------------------------------------------------------------

#[test]
fn a_machine_on_which_all_is_right_is_told_so() {
    let dir = machine();
    let run = tune(dir.path(), &["check", "--json", "--strict"]).done();
    assert_eq!(run.stderr, "");
    let report = run.json();
    let tally = &report["tally"];
    let wrong: Vec<&Value> =
        report["settings"].as_array().unwrap().iter().filter(|row| row["status"] != "ok").collect();
    assert_eq!((&tally["ok"], &tally["cannot_tell"]), (&40.into(), &2.into()), "{wrong:#?}");
    let untold: Vec<&str> = wrong.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(untold, UNTOLD);
    let advice = &report["advice"];
    assert_eq!((&advice["shards"], &advice["cores"]), (&4.into(), &"0-3".into()), "{advice}");
    assert_eq!((&advice["sockets"], &advice["ports"]), (&65_536.into(), &55_296.into()), "{advice}");
    assert_eq!(advice["index_bytes"], 4_u64 << 30, "{advice}");
    let text = tune(dir.path(), &["check"]).done().text();
    let head: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["setting", "now", "wanted", "costs", "mend"]);
    assert!(text.ends_with("tune     40 ok, 0 slower, 0 stops, 2 cannot tell\n"), "{text}");
    assert_eq!(tune(dir.path(), &["apply", "--yes"]).done().text(), "nothing to change\n");
    assert!(!dir.join("var").exists());
}

#[test]
fn each_wrong_setting_is_told_mended_and_brought_back() {
    for (name, path, text, costs) in WRONG {
        let dir = machine();
        dir.write(path, text);
        let before = values(dir.path());
        let run = tune(dir.path(), &["check", "--json"]);
        assert_eq!(run.code(), i32::from(*costs == "stops"), "{name}");
        let found = by_name(&run.json());
        let row = &found[*name];
        assert_eq!(row["status"], *costs, "{name}: {row}");
        assert!(!row["mend"].as_str().unwrap().is_empty(), "{name}: {row}");
        let applied = tune(dir.path(), &["apply", "--yes", "--json"]).done().json();
        let changed = applied["changed"].as_array().unwrap();
        match row["mend"] == "nephila tune apply" {
            true => {
                assert!(changed.iter().all(|line| line["name"] == *name), "{name}: {applied}");
                let found = settings(dir.path());
                assert_eq!(status(&found, name), "ok", "{name}: {}", found[*name]);
                tune(dir.path(), &["revert"]).done();
            }
            false => {
                assert!(changed.is_empty(), "{name}: {applied}");
                assert_eq!(applied["by_hand"][0]["name"], *name, "{applied}");
            }
        }
        assert_eq!(values(dir.path()), before, "{name}");
        assert!(!dir.join("var/lib/nephila-tune/undo.json").exists(), "{name}");
    }
    let told: Vec<&str> = WRONG.iter().map(|(name, ..)| *name).collect();
    let dir = machine();
    for name in settings(dir.path()).keys().filter(|name| !UNTOLD.contains(&name.as_str())) {
        // These hang on several files, and have tests of their own.
        let several = ["nic-queues", "smt"].contains(&name.as_str());
        assert!(several || told.contains(&name.as_str()), "{name} is never wrong here");
    }
}

#[test]
fn what_is_missing_or_strange_cannot_be_told() {
    for (name, path, _, _) in WRONG {
        let without =
            MISSING.iter().find(|(_, at, _)| at == path).map_or("cannot tell", |(.., status)| status);
        for (text, expected) in
            [(None, without), (Some("\u{fffd} nonsense of 7 words, [ ] -1\n"), "cannot tell")]
        {
            let dir = machine();
            match text {
                Some(text) => drop(dir.write(path, text)),
                None => std::fs::remove_file(dir.join(path)).unwrap(),
            }
            let found = settings(dir.path());
            let row = &found[*name];
            // What is read as words or beside the setting itself is not strange.
            let free = ["mitigations", "conntrack", "net.ipv4.tcp_tw_reuse"];
            let is_free = free.contains(name) && text.is_some();
            assert!(row["status"] == expected || is_free, "{name} with {text:?}: {row}");
            assert_ne!(row["status"], "stops", "{name} with {text:?}: {row}");
            // Whatever it says, nothing is changed by it that could not be brought back.
            if found.values().all(|row| row["mend"] != "nephila tune apply") {
                continue;
            }
            let before = values(dir.path());
            tune(dir.path(), &["apply", "--yes"]).done();
            tune(dir.path(), &["revert"]).done();
            assert_eq!(values(dir.path()), before, "{name} with {text:?}");
        }
    }
    // An empty tree, as a strict container has it.
    let dir = TempDir::in_memory();
    std::fs::create_dir(dir.join("data")).unwrap();
    let found = settings(dir.path());
    for (name, row) in &found {
        let expected = ["cannot tell", "not here", "ok"];
        assert!(expected.contains(&row["status"].as_str().unwrap()), "{name}: {row}");
    }
    assert_eq!(tune(dir.path(), &["check", "--strict"]).code(), 0);
}

#[test]
fn a_container_hides_and_a_host_decides() {
    let dir = machine();
    dir.write("run/.containerenv", "");
    dir.write("proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
    for path in [
        "proc/sys/net/ipv4/tcp_mem",
        "proc/sys/net/netfilter/nf_conntrack_max",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ] {
        std::fs::remove_file(dir.join(path)).unwrap();
    }
    std::fs::remove_dir_all(dir.join("sys/class/net/eth0")).unwrap();
    let found = settings(dir.path());
    for name in ["net.ipv4.tcp_mem", "conntrack"] {
        assert_eq!(found[name]["now"], "hidden by the container", "{}", found[name]);
        assert_eq!(status(&found, name), "cannot tell");
    }
    assert!(found["cpu-governor"]["now"].as_str().unwrap().contains("the host decides"));
    for name in ["nic-queues", "nic-irqs", "nic-rings", "nic-offloads", "rps"] {
        assert_eq!(status(&found, name), "not here", "{}", found[name]);
    }
}

/// Run as nobody, who may not read some of the files.
#[test]
fn what_may_not_be_read_is_said_to_be_so() {
    let dir = machine();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let hidden = ["proc/sys/net/core/somaxconn", "proc/cmdline", "etc/resolv.conf", "proc/interrupts"];
    for path in hidden {
        std::fs::set_permissions(dir.join(path), Permissions::from_mode(0o000)).unwrap();
    }
    let binary = dir.join("nephila");
    std::fs::copy(env!("CARGO_BIN_EXE_nephila"), &binary).unwrap();
    let nobody = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary).arg("tune");
        command.args(args).arg("--root").arg(dir.path());
        Running::start(&mut command).wait(PATIENCE)
    };
    let data = dir.join("data");
    let data = data.to_str().unwrap();
    let report = nobody(&["check", "--json", "--data", data]).done().json();
    for name in ["net.core.somaxconn", "mitigations", "resolver", "nic-irqs"] {
        let row = report["settings"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(
            (&row["status"], &row["now"]),
            (&"cannot tell".into(), &"may not be read".into()),
            "{row}"
        );
    }
    // And nothing is changed by whom it is not for.
    dir.write("proc/sys/net/ipv4/tcp_syn_retries", "6\n");
    let before = std::fs::read_to_string(dir.join("proc/sys/net/ipv4/tcp_syn_retries")).unwrap();
    let refused = nobody(&["apply", "--yes", "--data", data]);
    assert_eq!((refused.code(), refused.text().as_str()), (3, ""), "{}", refused.stderr);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("tcp_syn_retries") && refused.stderr.contains("as root"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_to_string(dir.join("proc/sys/net/ipv4/tcp_syn_retries")).unwrap(), before);
    assert!(!dir.join("var").exists());
    // Nor brought back, and never said to be nothing.
    tune(dir.path(), &["apply", "--yes"]).done();
    for mode in [0o755, 0o700] {
        std::fs::set_permissions(dir.join("var/lib/nephila-tune"), Permissions::from_mode(mode)).unwrap();
        let refused = nobody(&["revert"]);
        assert_eq!((refused.code(), refused.stderr.lines().count()), (3, 1), "{mode:o}: {}", refused.stderr);
        assert!(refused.stderr.contains("as root"), "{}", refused.stderr);
    }
    tune(dir.path(), &["revert"]).done();
}

/// The machine that the tests run on, whatever it is.
#[test]
fn this_machine_is_told_by_root_and_by_nobody() {
    let dir = TempDir::new();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let binary = dir.join("nephila");
    std::fs::copy(env!("CARGO_BIN_EXE_nephila"), &binary).unwrap();
    let root = Command::new(&binary).args(["tune", "check", "--json"]).output().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
    let nobody = command.args(["tune", "check", "--json"]).current_dir("/").output().unwrap();
    for output in [&root, &nobody] {
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stops = report["tally"]["stops"].as_u64().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(stops > 0)), "{report}");
        assert_eq!(report["settings"].as_array().unwrap().len(), 42);
        assert!(
            report["advice"]["shards"].as_u64().unwrap() >= 1 && report["tally"]["ok"].as_u64().unwrap() > 5
        );
    }
}

#[test]
fn shards_and_memory_are_those_that_masks_threads_and_groups_leave() {
    let dir = machine();
    let advice = || tune(dir.path(), &["check", "--json"]).json()["advice"].clone();
    for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
        dir.write(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
    }
    let threads = advice();
    assert_eq!((&threads["shards"], &threads["cores"]), (&2.into(), &"0-1".into()), "{threads}");
    let found = settings(dir.path());
    assert_eq!((status(&found, "smt"), &found["smt"]["mend"]), ("slower", &"--cores 0-1".into()));
    dir.write("proc/self/status", "Cpus_allowed_list:\t1-3\n");
    assert_eq!(advice()["cores"], "1-2", "the mask leaves 1 and 3 of one core, and 2");
    let group = "sys/fs/cgroup/system.slice/nephila@x.service";
    dir.write(&format!("{group}/cpuset.cpus.effective"), "2-3\n");
    assert_eq!(advice()["cores"], "2-3");
    dir.write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
    dir.write(&format!("{group}/cpu.max"), "max 100000\n");
    let quota = advice();
    assert_eq!((&quota["shards"], &quota["cores"]), (&1.into(), &"2".into()), "{quota}");
    assert!(quota["cores_why"].as_str().unwrap().contains("1.5 CPUs"), "{quota}");
    dir.write(&format!("{group}/memory.max"), "1073741824\n");
    assert_eq!(
        (&advice()["memory_bytes"], &advice()["index_bytes"]),
        (&(1_u64 << 30).into(), &(1_u64 << 28).into())
    );
    // The hierarchies of before.
    let dir = machine();
    dir.write("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n");
    dir.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "536870912\n");
    dir.write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "200000\n");
    dir.write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    let old = tune(dir.path(), &["check", "--json"]).json()["advice"].clone();
    assert_eq!((&old["shards"], &old["memory_bytes"]), (&2.into(), &(1_u64 << 29).into()), "{old}");
}

/// The higher of `all` and a card's own counts.
#[test]
fn a_card_that_is_strict_drops_what_the_others_bring() {
    let dir = machine();
    dir.write("proc/sys/net/ipv4/conf/all/rp_filter", "0\n");
    assert_eq!(status(&settings(dir.path()), "net.ipv4.conf.all.rp_filter"), "ok");
    dir.write("proc/sys/net/ipv4/conf/eth1/rp_filter", "1\n");
    assert_eq!(status(&settings(dir.path()), "net.ipv4.conf.all.rp_filter"), "slower");
    tune(dir.path(), &["apply", "--yes"]).done();
    assert_eq!(status(&settings(dir.path()), "net.ipv4.conf.all.rp_filter"), "ok");
    tune(dir.path(), &["revert"]).done();
    assert_eq!(
        std::fs::read_to_string(dir.join("proc/sys/net/ipv4/conf/all/rp_filter")).unwrap().trim(),
        "0"
    );
}

#[test]
fn queues_that_are_fewer_than_shards_are_made_up_for() {
    let dir = machine();
    for queue in ["rx-1", "rx-2", "rx-3"] {
        std::fs::remove_dir_all(dir.join("sys/class/net/eth0/queues").join(queue)).unwrap();
    }
    let found = settings(dir.path());
    assert_eq!((status(&found, "nic-queues"), status(&found, "rps")), ("slower", "slower"));
    assert_eq!(status(&found, "nic-irqs"), "not here");
    tune(dir.path(), &["apply", "--yes"]).done();
    let mask = || std::fs::read_to_string(dir.join("sys/class/net/eth0/queues/rx-0/rps_cpus")).unwrap();
    assert_eq!(mask(), "f\n");
    let found = settings(dir.path());
    assert_eq!(
        (status(&found, "nic-queues"), status(&found, "rps")),
        ("ok", "ok"),
        "{}",
        found["nic-queues"]
    );
    tune(dir.path(), &["revert"]).done();
    assert_eq!(mask(), "0\n");
}

// Explain ---------------------------------------------------------------------------------------------------

#[test]
fn each_setting_is_explained_and_a_wrong_name_finds_the_nearest() {
    let dir = machine();
    for (nth, (name, row)) in settings(dir.path()).into_iter().enumerate() {
        let text = tune(dir.path(), &["explain", &name]).done().text();
        assert!(text.starts_with(&format!("## {name}\n")), "{text}");
        assert!(text.contains(&format!("\nhere      {}\n", row["status"].as_str().unwrap())), "{text}");
        // Who follows the runbook is not told otherwise by the check.
        let words = text.replace('\n', " ");
        if let Some((_, rest)) = words.split_once("Wanted: at least ") {
            let least = rest.split(['.', ',', ' ']).next().unwrap();
            assert_eq!(row["wanted"], format!("≥ {least}"), "{name}");
        }
        if nth < 3 {
            assert_eq!(tune(dir.path(), &["explain", &name, "--json"]).done().json()["now"], row["now"]);
        }
    }
    for (typed, meant) in
        [("tcp_tw_reuse", "net.ipv4.tcp_tw_reuse"), ("nofiles", "nofile"), ("LimitMEMLOCK", "memlock")]
    {
        let run = tune(dir.path(), &["explain", typed]);
        assert_eq!(
            (run.code(), run.text().as_str(), run.stderr.lines().count()),
            (2, "", 1),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(&format!("did you mean {meant}?")), "{}", run.stderr);
    }
    let run = tune(dir.path(), &["explain", "\u{1b}[31mzzzzzzzzz"]);
    assert!(
        run.code() == 2 && !run.stderr.contains('\u{1b}') && !run.stderr.contains("did you"),
        "{}",
        run.stderr
    );
}

// Change ----------------------------------------------------------------------------------------------------

/// Everything that can be written is wrong.
fn worst() -> TempDir {
    let dir = machine();
    for (_, path, text, _) in WRONG.iter().filter(|(name, ..)| *name != "conntrack") {
        dir.write(path, text);
    }
    for (path, text) in [
        ("proc/self/limits", "Max open files  1024  4096 files\nMax locked memory  65536  8388608 bytes\n"),
        ("proc/self/mountinfo", "27 1 8:0 / / rw - ext4 /dev/sda rw\n"),
        ("proc/sys/vm/dirty_bytes", "0\n"),
        ("proc/sys/vm/dirty_ratio", "20\n"),
        ("proc/sys/vm/dirty_background_bytes", "0\n"),
        ("proc/sys/vm/dirty_background_ratio", "10\n"),
    ] {
        dir.write(path, text);
    }
    dir
}

#[test]
fn scripts_are_taken_by_a_shell_and_do_what_they_say() {
    let dir = worst();
    let before = values(dir.path());
    let here = dir.path().to_str().unwrap();
    // In the tree, and not in the kernel.
    let script =
        |args: &[&str]| tune(dir.path(), args).done().text().replace("put '/", &format!("put '{here}/"));
    let (there, back) = (script(&["script"]), script(&["script", "--revert"]));
    for line in
        ["# To keep the sysctls over a boot", "#   net.ipv4.tcp_tw_reuse = 1", "# By hand", "# The way back"]
    {
        assert!(there.contains(line), "{line} in {there}");
    }
    // A file in /etc hides that of the package if it has its name.
    assert!(!there.contains("90-nephila.conf"), "{there}");
    let shell = |text: &str, check: &[&str]| {
        let path = dir.write("tune.sh", text);
        let output = Command::new(check[0]).args(&check[1..]).arg(&path).output().unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(
            output.status.success(),
            "{check:?}: {}{}\n{text}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let has_shellcheck = Command::new("shellcheck").arg("--version").output().is_ok();
    for text in [&there, &back] {
        shell(text, &["sh", "-n"]);
        if has_shellcheck {
            shell(text, &["shellcheck"]);
        }
    }
    shell(&there, &["sh"]);
    let after = tune(dir.path(), &["check", "--json"]).json();
    let left = after["settings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["mend"] == "nephila tune apply")
        .count();
    assert_eq!(left, 0, "{after}");
    assert_ne!(values(dir.path()), before);
    shell(&back, &["sh"]);
    let mut now = values(dir.path());
    // By its share a kernel sets the bytes to nothing; a tree does not.
    for name in ["proc/sys/vm/dirty_bytes", "proc/sys/vm/dirty_background_bytes"] {
        now.insert(name.to_string(), "0".to_string());
    }
    assert_eq!(now, before);
    let lines = tune(dir.path(), &["script", "--json"]).done().json_lines();
    assert!(lines.len() > 25 && lines.iter().all(|line| line["path"].as_str().unwrap().starts_with('/')));
}

/// The file that keeps them over a boot, and the running machine, are told the same.
#[test]
fn the_drop_in_says_what_apply_sets() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning/sysctl.d/90-nephila.conf");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| line.trim_start_matches('-').split_once(" = "));
    let lines: Vec<(&str, &str)> = lines.filter(|(name, _)| !name.starts_with('#')).collect();
    assert!(lines.len() >= 15, "{text}");
    let dir = worst();
    let changes = tune(dir.path(), &["script", "--json"]).done().json_lines();
    for (name, value) in &lines {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let change = changes.iter().find(|change| change["path"] == path.as_str());
        assert!(change.is_none_or(|change| change["to"] == *value), "{name} = {value}: {change:?}");
        assert!(change.is_some() || *name == "net.netfilter.nf_conntrack_max", "{name} is set by no knob");
        dir.write(path.trim_start_matches('/'), format!("{value}\n"));
    }
    // The kernel's default.
    dir.write("proc/sys/net/ipv4/tcp_timestamps", "1\n");
    let found = settings(dir.path());
    for (name, _) in &lines {
        assert!(found.get(*name).is_none_or(|row| row["status"] == "ok"), "{}", found[*name]);
    }
}

#[test]
fn apply_asks_keeps_the_oldest_and_revert_brings_it_back() {
    let dir = worst();
    let before = values(dir.path());
    assert_eq!(tune(dir.path(), &["check"]).code(), 0, "it is slower, and goes");
    assert_eq!(tune(dir.path(), &["check", "--strict"]).code(), 1);
    let unasked = tune(dir.path(), &["apply"]);
    assert_eq!((unasked.code(), values(dir.path()) == before), (2, true), "{}", unasked.stderr);
    assert!(unasked.stderr.contains("--yes") && unasked.stderr.lines().count() == 1, "{}", unasked.stderr);
    let applied = tune(dir.path(), &["apply", "--yes"]).done();
    let text = applied.text();
    assert!(text.contains("/proc/sys/net/ipv4/tcp_syn_retries: 6 -> 3\n"), "{text}");
    assert!(text.contains("not changed") && text.contains("  nofile: LimitNOFILE="), "{text}");
    // Somebody makes one worse; a second run does not take that for what was.
    dir.write("proc/sys/net/ipv4/tcp_syn_retries", "5\n");
    tune(dir.path(), &["apply", "--yes"]).done();
    // And another is changed behind its back, to something that is right.
    dir.write("proc/sys/net/core/somaxconn", "8192\n");
    let run = tune(dir.path(), &["revert"]);
    assert_eq!(run.code(), 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("/proc/sys/net/core/somaxconn is left as it is: it was 128"),
        "{}",
        run.stderr
    );
    let mut expected = before.clone();
    expected.insert("proc/sys/net/core/somaxconn".to_string(), "8192".to_string());
    let mut now = values(dir.path());
    let undo = now.remove("var/lib/nephila-tune/undo.json").expect("what is left is kept");
    assert!(undo.contains("somaxconn") && !undo.contains("tcp_syn_retries"), "{undo}");
    assert_eq!(now, expected);
    tune(dir.path(), &["revert", "--force"]).done();
    assert_eq!(values(dir.path()), before);
    let none = tune(dir.path(), &["revert", "--json"]).done().json();
    assert_eq!(none["back"], 0);
}

/// Whoever closed io_uring to users meant it: to open it is a decision, and the way is told.
#[test]
fn what_an_administrator_closed_is_not_opened() {
    let dir = machine();
    for closed in ["1\n", "2\n"] {
        dir.write("proc/sys/kernel/io_uring_disabled", closed);
        let applied = tune(dir.path(), &["apply", "--yes", "--json"]).done().json();
        assert_eq!(std::fs::read_to_string(dir.join("proc/sys/kernel/io_uring_disabled")).unwrap(), closed);
        let mend = applied["by_hand"][0]["mend"].as_str().unwrap();
        assert!(mend.contains("io_uring_group"), "{mend}");
    }
}

#[test]
fn a_failure_half_way_changes_nothing() {
    if !can_trace() {
        return;
    }
    for (what, file) in
        [("openat", "proc/sys/net/ipv4/tcp_syn_retries"), ("write", "proc/sys/net/core/somaxconn")]
    {
        let dir = worst();
        let before = values(dir.path());
        let path = dir.join(file);
        // Read once to be looked at, opened once to see whether it may be written to.
        let when = if what == "openat" { 3 } else { 1 };
        let mut words = injected(what, &format!("error=EINVAL:when={when}"));
        words.extend(["-P".to_string(), path.display().to_string()]);
        let mut traced = Command::new(&words[0]);
        let nephila = command(dir.path(), &["apply", "--yes", "--json"]);
        traced.args(&words[1..]).arg(nephila.get_program()).args(nephila.get_args());
        let run = Running::start(&mut traced).wait(PATIENCE);
        assert_eq!((run.code(), run.text().as_str()), (3, ""), "{}", run.stderr);
        assert!(run.stderr.contains(file) && run.stderr.contains("put back"), "{}", run.stderr);
        assert_eq!(values(dir.path()), before, "{what}");
    }
}

#[test]
fn a_kill_half_way_is_brought_back_by_revert() {
    if !can_trace() {
        return;
    }
    for file in
        ["proc/sys/net/ipv4/tcp_syn_retries", "proc/sys/fs/nr_open", "proc/sys/vm/dirty_background_bytes"]
    {
        let dir = worst();
        let before = values(dir.path());
        let mut words = injected("openat", "signal=KILL:when=3");
        words.extend(["-P".to_string(), dir.join(file).display().to_string()]);
        let mut traced = Command::new(&words[0]);
        let nephila = command(dir.path(), &["apply", "--yes"]);
        traced.args(&words[1..]).arg(nephila.get_program()).args(nephila.get_args());
        let run = Running::start(&mut traced).wait(PATIENCE);
        assert_eq!(run.status.code(), None, "{}", run.stderr);
        assert!(dir.join("var/lib/nephila-tune/undo.json").exists(), "{file}: kept before the first change");
        tune(dir.path(), &["revert"]).done();
        assert_eq!(values(dir.path()), before, "{file}");
    }
}

/// What is on disk before the first change is also there after the loss of power: it was synced, and its name too.
#[test]
fn what_was_there_is_synced_before_the_first_change() {
    if !can_trace() {
        return;
    }
    let dir = worst();
    let trace = dir.join("trace");
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2,write", "-o"])
        .arg(&trace);
    let nephila = command(dir.path(), &["apply", "--yes"]);
    traced.arg(nephila.get_program()).args(nephila.get_args());
    Running::start(&mut traced).wait(PATIENCE).done();
    let trace = std::fs::read_to_string(trace).unwrap();
    let at = |part: &[&str]| {
        let line = trace.lines().position(|line| part.iter().all(|part| line.contains(part)));
        line.unwrap_or_else(|| panic!("{part:?} in {trace}"))
    };
    let order = [
        at(&["fsync(", "undo.fresh"]),
        at(&["rename", "undo.json"]),
        at(&["fsync(", "nephila-tune>"]),
        at(&["write(", "/proc/sys/fs/nr_open>"]),
    ];
    assert!(order.is_sorted(), "{order:?} in {trace}");
}

#[test]
fn an_undo_file_that_cannot_be_read_stops_everything() {
    let change = |path: &str, back: &str| {
        format!(
            r#"{{"version":1,"changes":[{{"path":"{path}","form":"words","was":"x","to":"nameserver 127.0.0.1","back":["{back}","x"]}}]}}"#
        )
    };
    let retries = "proc/sys/net/ipv4/tcp_syn_retries";
    for text in [
        "",
        "{\"version\":1,\"chang",
        "{\"version\":9,\"changes\":[]}",
        // Files that no setting is in.
        &change("etc/resolv.conf", retries),
        &change("proc/sys/../../etc/resolv.conf", retries),
        &change("/etc/nephila-is-not-here", retries),
        &change(retries, "etc/resolv.conf"),
    ] {
        let dir = worst();
        dir.write("var/lib/nephila-tune/undo.json", text);
        let before = values(dir.path());
        for args in [&["apply", "--yes", "--json"][..], &["revert"]] {
            let run = tune(dir.path(), args);
            assert_eq!((run.code(), run.stderr.lines().count()), (3, 1), "{args:?} {text}: {}", run.stderr);
            assert!(run.stderr.contains("undo.json"), "{}", run.stderr);
            assert_eq!(values(dir.path()), before, "{args:?} {text}");
        }
    }
}

/// Needs root: settings of the network of a namespace of its own, in the real kernel.
#[test]
fn the_kernel_takes_what_is_applied_and_what_is_brought_back() {
    let dir = TempDir::new();
    let nephila = env!("CARGO_BIN_EXE_nephila");
    let undo = dir.join("undo.json");
    // A tree with the network's part of the kernel's own files in it, and nothing else that could be changed.
    let script = format!(
        "set -eu\nmkdir -p tree/proc/sys/net tree/proc/self tree/data\n\
         mount --bind /proc/sys/net tree/proc/sys/net\ncp /proc/meminfo tree/proc/\n\
         cat /proc/self/limits > tree/proc/self/limits\n\
         seen() {{ cat /proc/sys/net/ipv4/{{ip_local_port_range,tcp_tw_reuse,tcp_fin_timeout,tcp_syn_retries,tcp_max_syn_backlog}} /proc/sys/net/core/somaxconn; }}\n\
         echo 128 > /proc/sys/net/core/somaxconn\necho 6 > /proc/sys/net/ipv4/tcp_syn_retries\n\
         seen > before\n\
         {nephila} tune apply --yes --root tree --data tree/data --undo {undo} > applied\n\
         cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_syn_retries > changed\n\
         {nephila} tune check --root tree --data tree/data > checked\n\
         {nephila} tune revert --root tree --undo {undo}\nseen > after\ncmp before after\n",
        undo = undo.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "bash", "-c", &script]).current_dir(dir.path());
    let run = Running::start(&mut command).wait(PATIENCE).done();
    assert_eq!(run.text().lines().count(), 1, "{}", run.text());
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(read("changed"), "16384\n3\n", "{}", read("applied"));
    let checked = read("checked");
    let row = checked.lines().find(|line| line.starts_with("net.ipv4.ip_local_port_range")).unwrap();
    assert!(row.contains("10240 65535") && row.trim_end().ends_with('-'), "{checked}");
    assert!(!undo.exists());
}

// Disk, and the line of a start -----------------------------------------------------------------------------

#[test]
fn a_disk_is_measured_and_kept() {
    let dir = TempDir::new();
    let disk =
        |args: &[&str]| run(["tune", "disk", "--data", dir.path().to_str().unwrap()].iter().chain(args));
    let said = disk(&["--seconds", "1", "--json"]).done().json();
    assert!(said["fdatasync_p50_us"].as_u64() <= said["fdatasync_p99_us"].as_u64(), "{said}");
    assert!(
        said["mb_per_second"].as_f64().unwrap() > 0.0 && said["bytes"].as_u64().unwrap() <= 1 << 30,
        "{said}"
    );
    let kept: Value = serde_json::from_slice(&std::fs::read(dir.join("disk.json")).unwrap()).unwrap();
    assert_eq!(kept, said);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    let found =
        run(["tune", "explain", "disk-speed", "--json", "--data", dir.path().to_str().unwrap()]).done();
    assert!(found.json()["now"].as_str().unwrap().contains(" MB/s"), "{}", found.text());
    // Ended in the middle of it, nothing is left behind either.
    let mut command = nephila();
    let running = Running::start(command.args(["tune", "disk", "--seconds", "30", "--data"]).arg(dir.path()));
    wait_for("it writes", PATIENCE, || {
        let about = std::fs::read_dir(format!("/proc/{}/fd", running.pid())).ok()?;
        let links = about.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links.into_iter().any(|link| link.to_string_lossy().contains("disk-speed")).then_some(())
    });
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.wait(PATIENCE);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let missing = run(["tune", "disk", "--data", dir.join("none").to_str().unwrap()]);
    assert_eq!((missing.code(), missing.stderr.lines().count()), (3, 1), "{}", missing.stderr);
}

#[test]
fn each_start_says_how_the_machine_stands() {
    let web = LogServer::start(|_| Reply::text("x"));
    let dir = TempDir::new();
    let start = |args: &[&str]| {
        let mut command = crawl_command(&dir.join("data"));
        Running::start(command.arg(web.url("/")).args(args)).wait(PATIENCE).done().stderr
    };
    let stderr = start(&[]);
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("tune: ")).collect();
    assert!(lines.len() == 1 && lines[0].contains(" ok, ") && lines[0].contains(" slower, "), "{stderr}");
    let tally =
        run(["tune", "check", "--json", "--data", dir.join("data").to_str().unwrap()]).json()["tally"]
            .clone();
    assert!(
        lines[0].starts_with(&format!("tune: {} ok, {} slower, ", tally["ok"], tally["slower"])),
        "{stderr} {tally}"
    );
    assert!(!start(&["--again", "-q"]).contains("tune: "));
}
