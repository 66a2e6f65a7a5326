use super::super::Machine;
use super::super::knob::{Change, Knob, Look, Mend, Status};
use super::super::machine::Unread;
use super::super::parse;
use super::super::runbook::Runbook;
use super::sysctl::{at_least, at_most, by_memory, sysctl};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        name: "net.ipv4.ip_local_port_range",
        runbook: Runbook::Ports,
        look: |machine| {
            sysctl(
                machine,
                "net.ipv4.ip_local_port_range",
                "10240 65535",
                "10240 65535",
                |now| matches!(now, [from, to] if to - from >= PORTS_MIN),
            )
        },
    },
    Knob { name: "net.ipv4.tcp_tw_reuse", runbook: Runbook::Ports, look: reuse },
    Knob {
        name: "net.ipv4.tcp_max_tw_buckets",
        runbook: Runbook::Ports,
        look: |machine| {
            let least = by_memory(machine, 16 << 10, 65_536, 1 << 20);
            at_least(machine, "net.ipv4.tcp_max_tw_buckets", least, least)
        },
    },
    Knob {
        name: "net.ipv4.tcp_max_orphans",
        runbook: Runbook::Ports,
        look: |machine| {
            let least = by_memory(machine, 64 << 10, 4_096, 1 << 18);
            at_least(machine, "net.ipv4.tcp_max_orphans", least, least)
        },
    },
    Knob {
        name: "net.ipv4.tcp_fin_timeout",
        runbook: Runbook::Ports,
        look: |machine| at_most(machine, "net.ipv4.tcp_fin_timeout", 30, 20),
    },
    Knob {
        name: "net.ipv4.tcp_syn_retries",
        runbook: Runbook::Ports,
        look: |machine| at_most(machine, "net.ipv4.tcp_syn_retries", 3, 3),
    },
    Knob { name: "conntrack", runbook: Runbook::Ports, look: conntrack },
    Knob { name: "net.ipv4.conf.all.rp_filter", runbook: Runbook::Ports, look: reverse_path },
];

/// Source ports that are enough, as they are to each address of a server.
const PORTS_MIN: i64 = 50_000;

/// Ports that wait are used again only by their time stamps.
fn reuse(machine: &Machine) -> Look {
    let stamps = "proc/sys/net/ipv4/tcp_timestamps";
    let look = sysctl(machine, "net.ipv4.tcp_tw_reuse", "1", 1, |now| now[0] == 1);
    match machine.read_as(stamps, parse::numbers) {
        Ok(now) if now[0] == 0 && look.status != Status::CannotTell => {
            let wanted = "1, with net.ipv4.tcp_timestamps 1";
            let stamps = Change::words(stamps, "0", 1);
            let mut changes = vec![stamps];
            if let Mend::Write(more) = look.mend {
                changes.extend(more);
            }
            let now = format!("{}, without time stamps", look.now);
            Look::ok(now, wanted, &look.read_from).but(Status::Slower, Mend::Write(changes))
        }
        _ => look,
    }
}

/// A table that is full drops packets.
fn conntrack(machine: &Machine) -> Look {
    let (max, count) = ("net.netfilter.nf_conntrack_max", "proc/sys/net/netfilter/nf_conntrack_count");
    let least = by_memory(machine, 8 << 10, 262_144, 2 << 20);
    let wanted = format!("none, or ≥ {least}");
    let path = super::sysctl::path(max);
    match machine.read_as(&path, parse::numbers) {
        // In a container it may be the host that follows connections.
        Err(Unread::Missing) if !machine.is_container() => Look::ok("none", wanted, &path),
        Err(why) => Look::unread(machine, &why, wanted, &path),
        Ok(_) => {
            let mut look = sysctl(machine, max, wanted, least, |now| now[0] >= least);
            let used = machine.read_as(count, parse::numbers).map_or(0, |count| count[0]);
            let full = look.now.parse().is_ok_and(|max: i64| used > max - max / 10);
            if full {
                look.now = format!("{}, {used} of them used", look.now);
                look.status = Status::Stops;
                if let Mend::Nothing = look.mend {
                    look.mend = Mend::ByHand("notrack rules for the crawler's traffic".to_string());
                }
            }
            look
        }
    }
}

/// Strict checks drop answers that come in by another card than the route goes out.
fn reverse_path(machine: &Machine) -> Look {
    let name = "net.ipv4.conf.all.rp_filter";
    let default_routes = |text: &str| {
        let fields = text.lines().skip(1).take(1_024).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let cards = fields.filter(|fields| fields.get(1) == Some(&"00000000"));
        Some(
            cards
                .filter_map(|fields| Some(fields.first()?.to_string()))
                .collect::<crate::base::SortedSet<_>>(),
        )
    };
    let cards = machine.read_as("proc/net/route", default_routes).unwrap_or_default();
    // The higher of all and of a card's own counts.
    let own = |card: &String| format!("proc/sys/net/ipv4/conf/{card}/rp_filter");
    let is_strict = |card: &String| machine.read_as(&own(card), parse::numbers).is_ok_and(|now| now[0] == 1);
    let any_strict = cards.iter().any(is_strict);
    match cards.len() {
        0 | 1 => sysctl(machine, name, "any: one way out", 1, |_| true),
        count => sysctl(machine, name, format!("2: {count} cards have a default route"), 2, |now| {
            now[0] == 2 || (now[0] == 0 && !any_strict)
        }),
    }
}
