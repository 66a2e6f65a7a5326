use super::super::Machine;
use super::super::knob::{Change, Form, Knob, Look, Mend, Status};
use super::super::machine::Unread;
use super::super::parse;
use super::super::runbook::Runbook;
use crate::base::SortedSet;

pub(super) const KNOBS: &[Knob] = &[
    Knob { name: "nic-queues", runbook: Runbook::Nic, look: queues },
    Knob { name: "nic-irqs", runbook: Runbook::Nic, look: interrupts },
    Knob { name: "nic-rings", runbook: Runbook::Nic, look: rings },
    Knob { name: "nic-offloads", runbook: Runbook::Nic, look: offloads },
    Knob { name: "rps", runbook: Runbook::Nic, look: steering },
];

const CARDS: &str = "sys/class/net";

fn no_card() -> Look {
    Look::not_here("no network card", CARDS)
}

fn receive_queues(machine: &Machine, nic: &str) -> Vec<String> {
    let folder = format!("{CARDS}/{nic}/queues");
    machine.names(&folder, "rx-").iter().map(|queue| format!("{folder}/{queue}")).collect()
}

/// Whether the packets of a card are handed on to several CPUs.
fn is_steered(machine: &Machine, queue: &str) -> Result<bool, Unread> {
    Ok(machine.read_as(&format!("{queue}/rps_cpus"), parse::mask)? != "0")
}

/// One for each shard, or packets handed on by software.
fn queues(machine: &Machine) -> Look {
    let shards = machine.cpus().shards();
    let wanted = format!("≥ {shards}, one a shard");
    let counts: Vec<(&String, Vec<String>)> =
        machine.nics().iter().map(|nic| (nic, receive_queues(machine, nic))).collect();
    let Some((nic, fewest)) = counts.iter().min_by_key(|(_, queues)| queues.len()) else { return no_card() };
    let at = format!("{CARDS}/{nic}/queues");
    let steered = fewest.iter().any(|queue| is_steered(machine, queue).unwrap_or(false));
    match fewest.len() {
        0 => Look::unread(machine, &Unread::Missing, wanted, &at),
        count if count >= shards => Look::ok(format!("{nic} {count}"), wanted, &at),
        count if steered => Look::ok(format!("{nic} {count}, and rps"), wanted, &at),
        count => Look::ok(format!("{nic} {count}"), wanted, &at).by_hand(
            Status::Slower,
            match machine.is_virtual() {
                true => "more queues from the host of this virtual machine, or rps".to_string(),
                false => format!("ethtool -L {nic} combined {shards}, or rps"),
            },
        ),
    }
}

/// Each queue's on a core of its own.
fn interrupts(machine: &Machine) -> Look {
    let wanted = "a core for each queue";
    let many: Vec<&String> =
        machine.nics().iter().filter(|nic| receive_queues(machine, nic).len() > 1).collect();
    if many.is_empty() {
        return match machine.nics().is_empty() {
            true => no_card(),
            false => Look::not_here("one queue", CARDS),
        };
    }
    let text = match machine.read("proc/interrupts") {
        Err(why) => return Look::unread(machine, &why, wanted, "proc/interrupts"),
        Ok(text) => text,
    };
    let cpus = &machine.cpus().allowed;
    let (mut now, mut changes) = (Vec::new(), Vec::new());
    for nic in many {
        let device = std::fs::canonicalize(machine.root().join(format!("{CARDS}/{nic}/device")));
        let device = device.ok().and_then(|path| Some(path.file_name()?.to_str()?.to_string()));
        let input = format!("{}-input", device.unwrap_or_default());
        let queue = format!("{nic}-");
        let numbers = parse::interrupts(&text, |name| name.starts_with(&queue) || name.starts_with(&input));
        let at = |irq: &u32| format!("proc/irq/{irq}/smp_affinity_list");
        let list = |path: &str| machine.read_as(path, parse::cpu_list).ok().filter(|list| !list.is_empty());
        let effective =
            |irq: &u32| list(&format!("proc/irq/{irq}/effective_affinity_list")).or_else(|| list(&at(irq)));
        let places: Vec<Vec<usize>> = numbers.iter().filter_map(effective).collect();
        if places.len() < numbers.len() {
            return Look::unread(machine, &Unread::Strange, wanted, "proc/irq");
        }
        if places.len() < 2 {
            return Look::cannot_tell(
                format!("{nic}'s interrupts have other names"),
                wanted,
                "proc/interrupts",
            );
        }
        let distinct = places.iter().collect::<SortedSet<_>>().len();
        now.push(format!("{nic}: {} on {distinct} cores", places.len()));
        if distinct < places.len().min(cpus.len()) {
            let spread = numbers.iter().zip(cpus.iter().cycle());
            changes.extend(
                spread.filter_map(|(irq, cpu)| {
                    Some(Change::words(&at(irq), &machine.read(&at(irq)).ok()?, cpu))
                }),
            );
        }
    }
    let look = Look::ok(now.join(", "), wanted, "proc/interrupts");
    if changes.is_empty() { look } else { look.but(Status::Slower, Mend::Write(changes)) }
}

/// How long the rings are is told by the driver alone; that they were too short, by what it could not take.
fn rings(machine: &Machine) -> Look {
    let wanted = "no packet missed";
    let Some(first) = machine.nics().first() else { return no_card() };
    let mut look = Look::ok("none missed", wanted, &format!("{CARDS}/{first}/statistics/rx_missed_errors"));
    for nic in machine.nics() {
        for name in ["rx_missed_errors", "rx_fifo_errors"] {
            let path = format!("{CARDS}/{nic}/statistics/{name}");
            match machine.read_as(&path, parse::numbers) {
                Err(why) => return Look::unread(machine, &why, wanted, &path),
                Ok(missed) if missed[0] > 0 && look.status == Status::Ok => {
                    look = Look::ok(format!("{nic}: {} missed since boot", missed[0]), wanted, &path)
                        .by_hand(Status::Slower, format!("ethtool -G {nic} rx 4096"));
                }
                Ok(_) => {}
            }
        }
    }
    look
}

fn offloads(machine: &Machine) -> Look {
    match machine.nics().first() {
        None => no_card(),
        Some(nic) => Look::cannot_tell(format!("ethtool -k {nic} tells"), "gro and tso on", CARDS),
    }
}

/// Only where there are fewer queues than shards.
fn steering(machine: &Machine) -> Look {
    let cpus = &machine.cpus().allowed;
    let (mut now, mut at, mut changes) = (Vec::new(), CARDS.to_string(), Vec::new());
    let mut wants_some = false;
    for nic in machine.nics() {
        let queues = receive_queues(machine, nic);
        let wants = queues.len() < machine.cpus().shards();
        let mask = if wants { parse::cpu_mask(cpus) } else { "0".to_string() };
        wants_some |= wants;
        for queue in queues {
            at = format!("{queue}/rps_cpus");
            match machine.read_as(&at, parse::mask) {
                Err(Unread::Missing) if !machine.is_container() => {
                    return Look::not_here("the kernel has none", &at);
                }
                Err(why) => return Look::unread(machine, &why, "", &at),
                Ok(is) => {
                    if (is != "0") != wants {
                        changes.push(Change::of(Form::Mask, &at, &is, &mask));
                    }
                    now.push(is);
                }
            }
        }
    }
    if now.is_empty() {
        return no_card();
    }
    now.dedup();
    let wanted = if wants_some { "on: fewer queues than shards" } else { "0: a queue for each shard" };
    let look = Look::ok(now.join(" "), wanted, &at);
    if changes.is_empty() { look } else { look.but(Status::Slower, Mend::Write(changes)) }
}
