//! Tables, registers, rights, tickets and quiet, each against a judge that is shown to fail.
//!
//! `NEPHILA_PEER_SEEDS=20000` runs the models longer; `NEPHILA_PEER_SEED=n` runs one. A failure prints its seed.

mod assign;
mod beat;
mod clock;
mod council;
mod linear;
mod outside;
mod quiet;
mod register;
mod rights;
mod sponsor;
mod table;
mod ticket;
mod unborn;
mod voting;
mod words;

use crate::peer::{NodeState, Table, TableNode};
use crate::proto::partition::{Partition, Spread};
use std::ops::Range;

/// The seeds that a model runs: a few, or as the environment says.
pub(super) fn seeds(few: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("NEPHILA_PEER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NEPHILA_PEER_SEEDS").unwrap_or(few),
    }
}

/// Tells the seed if the test fails while it is held.
pub(super) struct SeedNote(pub(super) u64);

impl Drop for SeedNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with NEPHILA_PEER_SEED={}", self.0);
        }
    }
}

pub(super) fn partition(number: u16) -> Partition {
    Partition::new(number).unwrap()
}

pub(super) fn node(number: u16) -> TableNode {
    TableNode {
        number,
        id: 0x5eed_0000 + u64::from(number) * 7_919,
        generation: 1,
        address: format!("192.0.2.{number}:7174"),
        weight: 1,
        state: NodeState::Member,
    }
}

pub(super) fn table_of(nodes: u16) -> Table {
    let voters = if nodes >= 3 { vec![1, 2, 3] } else { vec![1] };
    Table::first((1..=nodes).map(node).collect(), voters, Spread::Domain, 9).unwrap()
}
