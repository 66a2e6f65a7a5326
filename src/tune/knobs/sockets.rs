use super::super::Machine;
use super::super::knob::{Change, Knob, Look, Mend, Status};
use super::super::parse;
use super::super::runbook::Runbook;
use super::sysctl::{at_least, path, sysctl};

pub(super) const KNOBS: &[Knob] = &[
    Knob { name: "net.ipv4.tcp_rmem", runbook: Runbook::Sockets, look: receive },
    Knob { name: "net.ipv4.tcp_wmem", runbook: Runbook::Sockets, look: send },
    Knob { name: "net.ipv4.tcp_mem", runbook: Runbook::Sockets, look: all },
    Knob {
        name: "net.core.somaxconn",
        runbook: Runbook::Sockets,
        look: |machine| at_least(machine, "net.core.somaxconn", 4_096, 16_384),
    },
    Knob {
        name: "net.ipv4.tcp_max_syn_backlog",
        runbook: Runbook::Sockets,
        look: |machine| at_least(machine, "net.ipv4.tcp_max_syn_backlog", 4_096, 16_384),
    },
    Knob {
        name: "net.core.netdev_max_backlog",
        runbook: Runbook::Sockets,
        look: |machine| at_least(machine, "net.core.netdev_max_backlog", 5_000, 10_000),
    },
    Knob { name: "busy-poll", runbook: Runbook::Sockets, look: busy_poll },
];

/// Each connection may have the default in flight; a page seldom needs the largest.
fn receive(machine: &Machine) -> Look {
    let wanted = "default ≤ 131072, largest ≥ 4194304";
    sysctl(
        machine,
        "net.ipv4.tcp_rmem",
        wanted,
        "4096 65536 6291456",
        |now| matches!(now, [_, default, largest] if *default <= 131_072 && *largest >= 4 << 20),
    )
}

fn send(machine: &Machine) -> Look {
    let wanted = "default ≤ 65536, largest ≥ 1048576";
    sysctl(
        machine,
        "net.ipv4.tcp_wmem",
        wanted,
        "4096 16384 4194304",
        |now| matches!(now, [_, default, largest] if *default <= 65_536 && *largest >= 1 << 20),
    )
}

/// Bytes in the kernel that an open fetch may need.
const FETCH_BYTES: u64 = 64 << 10;

/// Counted in pages: what all sockets of the node may hold at once, but no more than a quarter of the memory.
fn all(machine: &Machine) -> Look {
    let name = "net.ipv4.tcp_mem";
    let Some(memory) = machine.memory_bytes() else {
        return Look::cannot_tell("unknown: so is the memory", "a quarter of the memory", &path(name));
    };
    let fetches = (machine.cpus().shards() * machine.node().fetches_max) as u64;
    let pages = |bytes: u64| (bytes / machine.page_bytes()) as i64;
    let least = pages((memory / 4).min(fetches * FETCH_BYTES));
    let to = format!("{} {} {}", pages(memory / 8), pages(memory / 16 * 3), pages(memory / 4));
    sysctl(
        machine,
        name,
        format!("largest ≥ {least} pages"),
        to,
        |now| matches!(now, [_, _, high] if *high >= least),
    )
}

fn busy_poll(machine: &Machine) -> Look {
    let names = ["net.core.busy_poll", "net.core.busy_read"].map(path);
    let mut changes = Vec::new();
    let mut now = Vec::new();
    for path in &names {
        match machine.read_as(path, |text| Some((parse::numbers(text)?[0], text.to_string()))) {
            Err(why) => return Look::unread(machine, &why, "0", path),
            Ok((number, text)) => {
                now.push(number.to_string());
                changes.extend((number != 0).then(|| Change::words(path, &text, 0)));
            }
        }
    }
    now.dedup();
    let look = Look::ok(now.join(" and "), "0", &names[0]);
    if changes.is_empty() { look } else { look.but(Status::Slower, Mend::Write(changes)) }
}
