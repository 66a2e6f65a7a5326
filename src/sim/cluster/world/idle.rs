use super::ClusterWorld;
use crate::base::Now;
use crate::sim::cluster::node::{KEEPER, LINKS, PEERS};
use crate::sim::cluster::plan::ClusterPlan;
use std::cell::Cell;

/// What the nodes of a cluster cost that have nothing to do, all of them together.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleReport {
    /// What they were measured for.
    pub virtual_seconds: u64,
    /// CPU time of what speaks with peers, of the links to them, and of all the other actors, in microseconds.
    pub peers_us: f64,
    pub links_us: f64,
    pub others_us: f64,
    /// Turns of actors.
    pub turns: u64,
    /// Writes to links, each with one message or more, and their bytes.
    pub writes: u64,
    pub bytes: u64,
    /// When the last of them was there, nothing changed any more and all said that all is done.
    pub ready_after_s: u64,
}

/// Counts CPU time while actors turn.
pub struct Meter {
    cpu_us: fn() -> f64,
    began_us: f64,
    /// What it costs to look at the clock, in each turn.
    own_us: f64,
    spent: IdleReport,
}

/// Once there are voters each node joins anew, with its beats: nothing has changed in the table for so long.
const SETTLED_US: u64 = 60_000_000;

/// Turns of nobody, by which it is known what a look at the clock costs.
const EMPTY_TURNS: u32 = 10_000;

/// Runs nodes that have nothing to do: until all of them are there, and from then on for so long. `cpu_us` is the CPU time of this
/// thread.
pub fn run_idle(nodes: usize, seconds: u64, cpu_us: fn() -> f64) -> IdleReport {
    let mut world = ClusterWorld::new(ClusterPlan::idle(nodes));
    let table = Cell::new((0, Now::ZERO));
    world.run(|world, now| {
        let epoch = world.tables.latest().map_or(0, |view| view.epoch);
        if epoch != table.get().0 {
            table.set((epoch, now));
        }
        now.since_us(table.get().1) >= SETTLED_US && world.is_over(now)
    });
    let (from, before) = (world.net.borrow().now(), world.net.borrow().carried());
    world.meter = Some(Meter::new(cpu_us));
    let until = from.plus_us(1_000_000 * seconds);
    world.run(|_, now| now >= until);
    let carried = world.net.borrow().carried();
    let spent = world.meter.take().map(|meter| meter.spent).unwrap_or_default();
    IdleReport {
        virtual_seconds: seconds,
        writes: carried.0 - before.0,
        bytes: carried.1 - before.1,
        ready_after_s: from.us() / 1_000_000,
        ..spent
    }
}

impl Meter {
    fn new(cpu_us: fn() -> f64) -> Meter {
        let mut meter = Meter { cpu_us, began_us: 0.0, own_us: 0.0, spent: IdleReport::default() };
        for _ in 0..EMPTY_TURNS {
            meter.begins();
            meter.ended(PEERS);
        }
        Meter { own_us: meter.spent.peers_us / f64::from(EMPTY_TURNS), spent: IdleReport::default(), ..meter }
    }

    pub fn begins(&mut self) {
        self.began_us = (self.cpu_us)();
    }

    /// The actor at a seat has turned.
    pub fn ended(&mut self, seat: usize) {
        let spent_us = (self.cpu_us)() - self.began_us - self.own_us;
        let spent = &mut self.spent;
        spent.turns += 1;
        match seat {
            PEERS => spent.peers_us += spent_us,
            LINKS => spent.links_us += spent_us,
            _ => spent.others_us += spent_us,
        }
    }
}

const _: () = assert!(PEERS < KEEPER && KEEPER < LINKS, "in the order of the seats");

#[cfg(test)]
mod tests {
    use super::run_idle;

    /// More of them than a council has voters, or a word is told on to.
    #[test]
    fn a_dozen_nodes_come_together_and_fall_still() {
        let report = run_idle(12, 30, || 0.0);
        assert!(report.ready_after_s < 300, "{report:?}");
        assert!(report.turns > 0 && report.writes > 0 && report.bytes > 0, "{report:?}");
        // Nobody has anything to say but that it is there.
        assert!(report.writes < 12 * 30 * 20, "{report:?}");
    }
}
