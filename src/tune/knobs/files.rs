use super::super::Machine;
use super::super::knob::{Change, Form, Knob, Look, Mend, Status};
use super::super::machine::Unread;
use super::super::parse;
use super::super::runbook::Runbook;
use super::sysctl::{at_least, sysctl};

pub(super) const KNOBS: &[Knob] = &[
    Knob { name: "nofile", runbook: Runbook::FilesAndMemory, look: nofile },
    Knob {
        name: "fs.nr_open",
        runbook: Runbook::FilesAndMemory,
        look: |machine| at_least(machine, "fs.nr_open", NOFILE as i64, 2 * NOFILE as i64),
    },
    Knob {
        name: "fs.file-max",
        runbook: Runbook::FilesAndMemory,
        look: |machine| at_least(machine, "fs.file-max", 4 * NOFILE as i64, 4 * NOFILE as i64),
    },
    Knob { name: "memlock", runbook: Runbook::FilesAndMemory, look: memlock },
    Knob {
        name: "vm.max_map_count",
        runbook: Runbook::FilesAndMemory,
        look: |machine| at_least(machine, "vm.max_map_count", 262_144, 262_144),
    },
    Knob { name: "vm.swappiness", runbook: Runbook::FilesAndMemory, look: swappiness },
    Knob { name: "transparent-huge-pages", runbook: Runbook::FilesAndMemory, look: huge_pages },
];

/// The limit of open files that the units set.
const NOFILE: u64 = 1 << 20;
/// Descriptors that a node does not start without, and those more for each shard.
const NOFILE_MIN: u64 = 128;
const NOFILE_MIN_SHARD: u64 = 16;
/// Beside the sockets: segments, rings, logs, names.
const NOFILE_REST: u64 = 8_192;

/// The hard limit: a node raises the soft one to it.
fn nofile(machine: &Machine) -> Look {
    let shards = machine.cpus().shards() as u64;
    let useful = (shards * machine.node().fetches_max as u64 + NOFILE_REST).min(NOFILE);
    let wanted = format!("≥ {useful}");
    let path = "proc/self/limits";
    match machine.limit("Max open files") {
        Err(why) => Look::unread(machine, &why, wanted, path),
        Ok((_, hard)) => {
            let look = Look::ok(shown_limit(hard, 1, ""), wanted, path);
            let status = match hard {
                _ if hard < NOFILE_MIN + NOFILE_MIN_SHARD * shards => Status::Stops,
                _ if hard < useful => Status::Slower,
                _ => return look,
            };
            look.by_hand(status, format!("LimitNOFILE={NOFILE} in the unit, or ulimit -n"))
        }
    }
}

fn memlock(machine: &Machine) -> Look {
    const CAP_IPC_LOCK: u32 = 14;
    let path = "proc/self/limits";
    match machine.limit("Max locked memory") {
        Err(why) => Look::unread(machine, &why, "unlimited", path),
        Ok((_, hard)) => {
            let limit = shown_limit(hard, 1_024, " KiB");
            let look = Look::ok(&limit, "unlimited", path);
            match (hard == u64::MAX, machine.has_capability(CAP_IPC_LOCK)) {
                (true, _) => look,
                (_, true) => Look { now: format!("{limit}, but as root"), ..look },
                _ => look.by_hand(Status::Slower, "LimitMEMLOCK=infinity in the unit, or ulimit -l"),
            }
        }
    }
}

fn shown_limit(limit: u64, unit: u64, name: &str) -> String {
    if limit == u64::MAX { "unlimited".to_string() } else { format!("{}{name}", limit / unit) }
}

fn swappiness(machine: &Machine) -> Look {
    // A heading, and a line for each swap device.
    let has_swap = machine.read("proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    let wanted = if has_swap { "≤ 1" } else { "any: no swap is on" };
    sysctl(machine, "vm.swappiness", wanted, 1, |now| now[0] <= 1 || !has_swap)
}

fn huge_pages(machine: &Machine) -> Look {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let read = machine.read_as(path, |text| Some((parse::chosen(text)?.to_string(), text.to_string())));
    match read {
        Err(Unread::Missing) if !machine.is_container() => Look::not_here("the kernel has none", path),
        Err(why) => Look::unread(machine, &why, "madvise", path),
        Ok((now, _)) if now == "madvise" => Look::ok(now, "madvise", path),
        Ok((now, text)) => Look::ok(now, "madvise", path)
            .but(Status::Slower, Mend::Write(vec![Change::of(Form::Choice, path, &text, "madvise")])),
    }
}
