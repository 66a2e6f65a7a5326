use super::Machine;
use super::parse::{self, cpu_list_text};
use serde::Serialize;

/// What of the machine a node can use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Advice {
    /// One for each of these cores.
    pub shards: usize,
    /// As `--cores` takes them; empty where the machine does not say.
    pub cores: String,
    pub cores_why: String,
    /// Open at once in all shards.
    pub sockets: u64,
    pub sockets_a_shard: u64,
    /// To one address of one server at a time.
    pub ports: Option<u64>,
    /// Of the machine, or of the control group.
    pub memory_bytes: Option<u64>,
    /// What `--memory` is if it is not given.
    pub index_bytes: Option<u64>,
}

/// Descriptors that epoll leaves to everything else: files, and a part for names.
const FILES_KEPT_BACK: u64 = 64;
const NAMES_PART: u64 = 16;

impl Advice {
    pub fn of(machine: &Machine, index_bytes_min: u64) -> Advice {
        let cpus = machine.cpus();
        let shards = cpus.shards();
        let fetches_max = machine.node().fetches_max as u64;
        let possible = match (machine.limit("Max open files"), &machine.node().uring_refused) {
            (Err(_), _) => fetches_max,
            // Direct descriptors are counted for each ring.
            (Ok((_, files)), None) => files,
            (Ok((_, files)), Some(_)) => {
                (files - files / NAMES_PART).saturating_sub(FILES_KEPT_BACK) / shards as u64
            }
        };
        let sockets_a_shard = fetches_max.min(possible);
        let range = machine.read_as("proc/sys/net/ipv4/ip_local_port_range", parse::numbers).ok();
        let ports = range.and_then(|range| match range[..] {
            [from, to] => u64::try_from(to.checked_sub(from)?.checked_add(1)?).ok(),
            _ => None,
        });
        Advice {
            shards,
            cores: cpu_list_text(cpus.for_shards()),
            cores_why: cores_why(machine),
            sockets: sockets_a_shard * shards as u64,
            sockets_a_shard,
            ports,
            memory_bytes: machine.memory_bytes(),
            index_bytes: machine.memory_bytes().map(|bytes| (bytes / 4).max(index_bytes_min)),
        }
    }

    /// A line each.
    pub fn text(&self) -> String {
        let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
        let cores = match self.cores.is_empty() {
            true => String::new(),
            false => format!(" (--cores {})", self.cores),
        };
        let mut text = format!("shards   {}{cores}: {}\n", self.shards, self.cores_why);
        text += &format!("sockets  {}, {} a shard", self.sockets, self.sockets_a_shard);
        if let Some(ports) = self.ports {
            text += &format!("; {ports} to one address of a server");
        }
        text += "\nmemory   ";
        text += &match (self.memory_bytes, self.index_bytes) {
            (Some(bytes), Some(index)) => {
                format!("{}; the doc index takes {} unless --memory says otherwise\n", gb(bytes), gb(index))
            }
            _ => "cannot tell: set --memory\n".to_string(),
        };
        text
    }
}

fn cores_why(machine: &Machine) -> String {
    let cpus = machine.cpus();
    if cpus.allowed.is_empty() {
        return "the machine does not say what cores it has".to_string();
    }
    let (threads, cores) = (cpus.allowed.len(), cpus.physical.len());
    let mut why = match threads == cores {
        true => format!("{cores} cores that this process may use"),
        false => format!("{cores} cores, with {threads} threads, that this process may use"),
    };
    if let Some(quota) = cpus.quota {
        why += &format!("; a control group gives it {quota:.1} CPUs");
    }
    why
}
