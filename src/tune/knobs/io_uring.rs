use super::super::Machine;
use super::super::knob::{Knob, Look, Status};
use super::super::machine::Unread;
use super::super::parse;
use super::super::runbook::Runbook;
use super::sysctl::path;

pub(super) const KNOBS: &[Knob] = &[
    Knob { name: "kernel.io_uring_disabled", runbook: Runbook::IoUring, look: disabled },
    Knob { name: "io-wq", runbook: Runbook::IoUring, look: workers },
];

/// Without io_uring a crawl takes epoll, and more CPU for each page.
fn disabled(machine: &Machine) -> Look {
    const CAP_SYS_ADMIN: u32 = 21;
    let (at, wanted) = (path("kernel.io_uring_disabled"), "0, or 1 and in its group");
    let refused = machine.node().uring_refused.as_deref();
    let now = match (machine.read_as(&at, |text| Some(parse::numbers(text)?[0])), refused) {
        (Ok(now), _) => now,
        // Kernels before 6.6 have no switch.
        (Err(Unread::Missing), None) => return Look::ok("no switch, and it works", wanted, &at),
        (Err(_), Some(cause)) => {
            return Look::ok("refused", wanted, &at).by_hand(Status::Slower, cause);
        }
        (Err(why), None) => return Look::unread(machine, &why, wanted, &at),
    };
    let group = machine.read_as(&path("kernel.io_uring_group"), |text| Some(parse::numbers(text)?[0]));
    let groups = |text: &str| {
        let rows = [parse::row(text, "Gid")?, parse::row(text, "Groups").unwrap_or_default()].join(" ");
        parse::numbers(&rows)
    };
    let groups = machine.read_as("proc/self/status", groups).unwrap_or_default();
    let in_group = group.is_ok_and(|group| groups.contains(&group));
    let look = Look::ok(now, wanted, &at);
    let is_open = now == 0 || (now == 1 && (in_group || machine.has_capability(CAP_SYS_ADMIN)));
    match (is_open, refused) {
        (true, None) => look,
        // By a filter of system calls, in most cases.
        (true, Some(cause)) => Look::ok("0, but refused", wanted, &at).by_hand(Status::Slower, cause),
        // Closed by somebody who meant it: what opens it for the crawler alone is told, and not done.
        (false, _) => look.by_hand(
            Status::Slower,
            "for the crawler alone: sysctl kernel.io_uring_group=GID kernel.io_uring_disabled=1",
        ),
    }
}

/// Workers that one crawl needs for what its rings cannot do without waiting.
const WORKERS_EACH: usize = 4;

/// Only a process that runs has them: its threads by their names.
fn workers(machine: &Machine) -> Look {
    let most = WORKERS_EACH * machine.cpus().shards();
    let wanted = format!("≤ {most}");
    let Some(pid) = machine.node().pid else {
        return Look::cannot_tell("no crawl runs in --data", wanted, "proc/PID/task");
    };
    let at = format!("proc/{pid}/task");
    let tasks = machine.names(&at, "");
    if tasks.is_empty() {
        return Look::unread(machine, &Unread::Missing, wanted, &at);
    }
    let is_worker = |task: &&String| {
        machine.read(&format!("{at}/{task}/comm")).is_ok_and(|name| name.starts_with("iou-wrk-"))
    };
    let count = tasks.iter().filter(is_worker).count();
    let look = Look::ok(count, wanted, &at);
    match count <= most {
        true => look,
        false => look.by_hand(Status::Slower, "a kernel that need not wait for sockets (6.1 or later)"),
    }
}
