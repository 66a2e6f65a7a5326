use super::node::node_folder;
use crate::engine::{NodeFiles, stores_of_others};
use std::fs;
use std::path::Path;

/// Something that is wrong on purpose, so that it is seen whether the judge finds it. What each breaks is told in the manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// One node asks ten times as often as it may: the pace of hosts and addresses.
    Pace,
    /// Clocks run at less than half and more than one and a half times the true rate: whose a host is.
    Clocks,
    /// A keeper that is killed forgets what it lent: whose an address is.
    Tickets,
    /// A node that is killed loses its index: URLs that were found.
    Index,
    /// With a node that is killed, what others have of its knowledge goes: pages that are asked for once.
    Copies,
    /// The pages that nodes have of others go: what counts can be read.
    Pages,
    /// Voters forget the table that they voted for last: one table of an epoch.
    Council,
    /// An etcd says that a swap was done which found something else than it expected: one table of an epoch.
    Etcd,
    /// Two nodes are cut off from each other for good: all comes to rest.
    Cut,
    /// A node that is killed takes it that others were told all that it knows: what is said to be ready.
    Cursors,
}

/// What befalls nodes.
pub struct Wanted {
    pub every_ms: u64,
    pub trouble_ms: u64,
    /// Of cuts, delays, resets, kills and stalls.
    pub weights: [u64; 5],
}

/// A node that was killed.
pub struct Killed<'a> {
    pub folder: &'a Path,
    pub nodes: usize,
    pub place: usize,
    /// Its number by the table, and the epoch of that.
    pub number: u16,
    pub epoch: u64,
}

impl Wrong {
    pub const ALL: [Wrong; 10] = [
        Wrong::Pace,
        Wrong::Clocks,
        Wrong::Tickets,
        Wrong::Index,
        Wrong::Copies,
        Wrong::Pages,
        Wrong::Council,
        Wrong::Etcd,
        Wrong::Cut,
        Wrong::Cursors,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Wrong::Pace => "pace",
            Wrong::Clocks => "clocks",
            Wrong::Tickets => "tickets",
            Wrong::Index => "index",
            Wrong::Copies => "copies",
            Wrong::Pages => "pages",
            Wrong::Council => "council",
            Wrong::Etcd => "etcd",
            Wrong::Cut => "cut",
            Wrong::Cursors => "cursors",
        }
    }

    pub fn from_name(name: &str) -> Option<Wrong> {
        Wrong::ALL.into_iter().find(|wrong| wrong.name() == name)
    }

    /// Whether it shows only where nodes that are silent are taken over.
    pub fn takes_over(self) -> bool {
        matches!(self, Wrong::Clocks | Wrong::Council | Wrong::Etcd)
    }

    /// What has to befall nodes for it to show, in place of what a seed draws.
    pub fn wants(self) -> Option<Wanted> {
        let wanted = |every_ms, trouble_ms, weights| Some(Wanted { every_ms, trouble_ms, weights });
        match self {
            // Whoever stands still is taken over, by a majority of the others.
            Wrong::Clocks => wanted(20_000, 120_000, [0, 0, 0, 0, 1]),
            Wrong::Tickets => wanted(4_000, 2_000, [0, 0, 0, 1, 0]),
            // Whoever is back is in the next table.
            Wrong::Council => wanted(8_000, 2_000, [0, 0, 0, 1, 0]),
            Wrong::Cursors => wanted(4_000, 120_000, [1, 0, 0, 1, 0]),
            _ => None,
        }
    }

    pub fn when_killed(self, killed: &Killed<'_>) {
        let &Killed { folder, nodes, place, number, epoch } = killed;
        let own = node_folder(folder, place);
        match self {
            Wrong::Index => drop(fs::remove_dir_all(own.join("index"))),
            Wrong::Copies => forget_known(folder, nodes, number),
            Wrong::Tickets => forget_lent(&own),
            Wrong::Cursors if own.is_dir() => {
                let files = NodeFiles::open(&own).unwrap_or_else(|error| panic!("{error}"));
                let all = (1..=u16::try_from(2 * nodes).expect("a few")).map(|node| (node, u64::MAX));
                files.keep_cursors(epoch, all).expect("the disk does not fail");
            }
            _ => {}
        }
    }

    /// All is done.
    pub fn at_the_end(self, folder: &Path, nodes: usize) {
        for node in (0..nodes).filter(|_| self == Wrong::Pages) {
            for store in stores_of_others(&node_folder(folder, node)) {
                let _ = fs::remove_dir_all(store.join("segments"));
            }
        }
    }
}

fn forget_known(folder: &Path, nodes: usize, number: u16) {
    for node in 0..nodes {
        let copy = node_folder(folder, node).join("copies").join(number.to_string());
        for name in ["known", "known.new"] {
            let _ = fs::remove_file(copy.join(name));
        }
    }
}

/// Leaves the first line: it is as if nothing was lent.
fn forget_lent(own: &Path) {
    let path = own.join("cluster/tickets");
    if let Some(text) = fs::read(&path).ok()
        && let Some(end) = text.iter().position(|byte| *byte == b'\n')
    {
        fs::write(&path, &text[..=end]).expect("the disk does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_says_what_each_breaks() {
        let manual = include_str!("../../manual/cluster.md");
        let rows = manual.lines().skip_while(|line| !line.contains("is broken by `--wrong`")).skip(2);
        let named = rows.map_while(|row| row.strip_prefix("| ")?.split(" | ").nth(1));
        let names = Wrong::ALL.map(|wrong| format!("`{}`", wrong.name()));
        assert!(named.eq(names.iter().map(String::as_str)), "in the order of the promises");
    }
}
