use super::cpu::thread_us;
use super::record::RecordArgs;
use crate::commands::shared::Failure;
use crate::sim::{CLUSTER_IDLE_NODES_MAX, run_idle};
use clap::Args;
use serde::Serialize;

/// Measure what the nodes of a cluster cost that have nothing to do: statuses, beats and looks at the table
///
/// The nodes run in virtual time on one thread, with the product's own actors, over links that are memory: what the kernel and TLS
/// cost is not in it, and comes on top with every write.
#[derive(Args)]
#[command(after_help = "Example:\n  nephila bench idle --nodes 100 --seconds 60")]
pub(super) struct IdleBenchArgs {
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(2..=CLUSTER_IDLE_NODES_MAX as i64))]
    nodes: u16,
    /// Virtual seconds to measure, once all nodes are there
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    #[command(flatten)]
    record: RecordArgs,
}

/// Of one node and one second.
#[derive(Serialize)]
struct IdleFigures {
    nodes: u16,
    virtual_seconds: u64,
    /// Virtual seconds until all of them were there.
    joined_after_s: u64,
    cpu_us: f64,
    peers_us: f64,
    links_us: f64,
    others_us: f64,
    turns: f64,
    writes: f64,
    bytes: f64,
    bound_us: f64,
    not_measured: &'static str,
}

/// CPU of an idle node a second.
const BOUND_US: f64 = 1_000.0;
const NOT_MEASURED: &str = "the kernel's part of sockets and timers, and TLS";

impl IdleBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        let report = run_idle(usize::from(self.nodes), self.seconds, thread_us);
        let each = |all: f64| all / f64::from(self.nodes) / report.virtual_seconds as f64;
        let figures = IdleFigures {
            nodes: self.nodes,
            virtual_seconds: report.virtual_seconds,
            joined_after_s: report.ready_after_s,
            cpu_us: each(report.peers_us + report.links_us + report.others_us),
            peers_us: each(report.peers_us),
            links_us: each(report.links_us),
            others_us: each(report.others_us),
            turns: each(report.turns as f64),
            writes: each(report.writes as f64),
            bytes: each(report.bytes as f64),
            bound_us: BOUND_US,
            not_measured: NOT_MEASURED,
        };
        self.record.tell(&figures, IdleFigures::text)
    }
}

impl IdleFigures {
    fn text(&self) -> String {
        let IdleFigures { nodes, virtual_seconds, cpu_us, peers_us, links_us, others_us, .. } = self;
        let within = if *cpu_us <= self.bound_us { "within" } else { "above" };
        format!(
            "{nodes} nodes with nothing to do, for {virtual_seconds} virtual s; of a node and second:\n  CPU {cpu_us:.0} µs, {within} the bound of {:.0} µs (peers {peers_us:.0}, links {links_us:.0}, all else {others_us:.0})\n  {:.1} writes to links, {:.0} bytes, {:.1} turns of actors\n  not measured: {}\n",
            self.bound_us, self.writes, self.bytes, self.turns, self.not_measured
        )
    }
}
