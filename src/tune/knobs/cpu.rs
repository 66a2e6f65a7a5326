use super::super::Machine;
use super::super::knob::{Change, Knob, Look, Mend, Status};
use super::super::machine::Unread;
use super::super::parse::{cpu_list, cpu_list_text, numbers, word};
use super::super::runbook::Runbook;
use super::sysctl::sysctl;

pub(super) const KNOBS: &[Knob] = &[
    Knob { name: "cpu-governor", runbook: Runbook::Cpu, look: governor },
    Knob { name: "c-states", runbook: Runbook::Cpu, look: idle_states },
    Knob { name: "smt", runbook: Runbook::Cpu, look: threads },
    Knob { name: "isolcpus", runbook: Runbook::Cpu, look: isolated },
    Knob { name: "numa-balancing", runbook: Runbook::Cpu, look: numa },
    Knob { name: "mitigations", runbook: Runbook::Cpu, look: mitigations },
    Knob { name: "clocksource", runbook: Runbook::Cpu, look: clock },
];

const CPUS: &str = "sys/devices/system/cpu";

/// What a machine does not decide on itself.
fn not_ours(machine: &Machine, what: &str, at: &str) -> Look {
    match machine.is_virtual() {
        true => Look::not_here(format!("{what}: the host decides"), at),
        false => Look::not_here(what, at),
    }
}

fn governor(machine: &Machine) -> Look {
    let (mut now, mut changes) = (Vec::new(), Vec::new());
    let path = |cpu: &usize| format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
    for at in machine.cpus().allowed.iter().map(path) {
        match machine.read_as(&at, word) {
            Err(Unread::Missing) => return not_ours(machine, "no cpufreq", &at),
            Err(why) => return Look::unread(machine, &why, "performance", &at),
            Ok(is) => {
                if is != "performance" {
                    changes.push(Change::words(&at, &is, "performance"));
                }
                now.push(is);
            }
        }
    }
    if now.is_empty() {
        return Look::unread(machine, &Unread::Missing, "performance", CPUS);
    }
    now.sort_unstable();
    now.dedup();
    let look = Look::ok(now.join(", "), "performance", &path(&machine.cpus().allowed[0]));
    if changes.is_empty() { look } else { look.but(Status::Slower, Mend::Write(changes)) }
}

/// A core that needs longer than this to wake adds to every time.
const WAKE_US_MAX: i64 = 10;

fn idle_states(machine: &Machine) -> Look {
    let wanted = format!("none slower than {WAKE_US_MAX} µs");
    let (mut deep, mut changes, mut seen) = (Vec::new(), Vec::new(), false);
    for cpu in &machine.cpus().allowed {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in machine.names(&folder, "state") {
            seen = true;
            let file = |name: &str| format!("{folder}/{state}/{name}");
            let number = |name: &str| machine.read_as(&file(name), |text| Some(numbers(text)?[0]));
            let (latency, disabled) = match (number("latency"), number("disable")) {
                (Ok(latency), Ok(disabled)) => (latency, disabled),
                (Err(why), _) | (_, Err(why)) => {
                    return Look::unread(machine, &why, wanted, &file("disable"));
                }
            };
            if latency > WAKE_US_MAX && disabled == 0 {
                let name = machine.read(&file("name")).unwrap_or_else(|_| state.clone());
                deep.push(format!("{} {latency} µs", name.trim()));
                changes.push(Change::words(&file("disable"), "0", 1));
            }
        }
    }
    let at = format!("{CPUS}/cpu0/cpuidle");
    if !seen {
        return not_ours(machine, "no cpuidle", &at);
    }
    deep.sort_unstable();
    deep.dedup();
    match deep.is_empty() {
        true => Look::ok("shallow", wanted, &at),
        false => Look::ok(deep.join(", "), wanted, &at).but(Status::Slower, Mend::Write(changes)),
    }
}

/// Two shards on the threads of one core share it.
fn threads(machine: &Machine) -> Look {
    let at = format!("{CPUS}/cpu0/topology/thread_siblings_list");
    let cpus = machine.cpus();
    let wanted = "a shard a core";
    if cpus.allowed.is_empty() || !machine.exists(&at) {
        return Look::unread(machine, &Unread::Missing, wanted, &at);
    }
    let (threads, cores) = (cpus.allowed.len(), cpus.physical.len());
    match threads == cores {
        true => Look::ok("a thread a core", wanted, &at),
        false => Look::ok(format!("{threads} threads on {cores} cores"), wanted, &at)
            .by_hand(Status::Slower, format!("--cores {}", cpu_list_text(cpus.for_shards()))),
    }
}

/// Only for machines that do nothing else. Cores that are kept free must also be used.
fn isolated(machine: &Machine) -> Look {
    let at = format!("{CPUS}/isolated");
    let cpus = machine.cpus();
    if let Err(why) = machine.read_as(&at, cpu_list) {
        return Look::unread(machine, &why, "none, or used", &at);
    }
    let list = cpu_list_text(&cpus.isolated);
    let look = Look::ok(if list.is_empty() { "none" } else { &list }, "none, or used", &at);
    match cpus.isolated.iter().all(|cpu| cpus.allowed.contains(cpu)) {
        true => look,
        false => look.by_hand(Status::Slower, format!("taskset -c {list}, or CPUAffinity= in the unit")),
    }
}

fn numa(machine: &Machine) -> Look {
    let (name, nodes) = ("kernel.numa_balancing", machine.names("sys/devices/system/node", "node").len());
    let at = super::sysctl::path(name);
    match nodes {
        0 | 1 if !machine.exists(&at) => Look::not_here("one node", &at),
        0 | 1 => sysctl(machine, name, "any: one node", 0, |_| true),
        _ => sysctl(machine, name, format!("0: {nodes} nodes"), 0, |now| now[0] == 0),
    }
}

/// What comes from the network is hostile: they stay on, whatever they cost.
fn mitigations(machine: &Machine) -> Look {
    let at = "proc/cmdline";
    match machine.read(at) {
        Err(why) => Look::unread(machine, &why, "on", at),
        Ok(text) => match text.split_whitespace().any(|word| word == "mitigations=off") {
            false => Look::ok("on", "on", at),
            true => Look::ok("off: a risk, not slow", "on", at)
                .by_hand(Status::Slower, "take mitigations=off from the kernel's command line"),
        },
    }
}

/// Clocks that are read without a system call.
const FAST_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

fn clock(machine: &Machine) -> Look {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let at = format!("{folder}/current_clocksource");
    let now = match machine.read_as(&at, word) {
        Err(why) => return Look::unread(machine, &why, "tsc", &at),
        Ok(now) => now,
    };
    let others = machine.read(&format!("{folder}/available_clocksource")).unwrap_or_default();
    let others: Vec<&str> = others.split_whitespace().collect();
    let better = FAST_CLOCKS.iter().find(|clock| others.contains(clock));
    let look = Look::ok(&now, "tsc, or another fast one", &at);
    match better {
        _ if FAST_CLOCKS.contains(&&*now) => look,
        Some(clock) => look.but(Status::Slower, Mend::Write(vec![Change::words(&at, &now, clock)])),
        None => look.by_hand(Status::Slower, "the kernel found no fast clock: dmesg | grep clocksource"),
    }
}
