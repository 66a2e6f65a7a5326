use super::ClusterWorld;
use crate::base::Now;
use crate::sim::cluster::node::{links_of, node_folder};
use std::fs;
use std::path::{Path, PathBuf};

/// What the disks of voters go back to.
#[derive(Default)]
pub struct Forgetting {
    /// The voters of the table that something is kept of, if it is the latest.
    kept: Option<Vec<u16>>,
    keep_at: Now,
}

/// What is kept is of a table that everybody goes by.
const SETTLED_US: u64 = 2_000_000;
/// So long nobody hears of the table that was voted for.
const CUT_US: u64 = 60_000_000;

/// Voters that forget, on purpose.
impl ClusterWorld {
    /// When a table is new, and known to the node at `first` only, the other voters lose their power, and their disks what they
    /// wrote last: that they voted for it. They go on from the table before.
    pub(super) fn forget_votes(&mut self, first: Option<usize>, now: Now) {
        let Some(first) = first else {
            if self.forgetting.kept.is_none() && now >= self.forgetting.keep_at {
                for number in 0..self.plan.nodes {
                    replace(&self.cluster_of(number), &self.kept_of(number));
                }
                self.forgetting.kept = self.tables.latest().map(|table| table.voters.clone());
            }
            return;
        };
        let kept = self.forgetting.kept.take();
        self.forgetting.keep_at = now.plus_us(SETTLED_US);
        let voters = self.tables.latest().map_or(Vec::new(), |table| table.voters.clone());
        let places = voters.iter().filter_map(|voter| self.tables.place_of(*voter));
        let places: Vec<usize> = places.filter(|place| *place != first).collect();
        // Nobody who has heard of it is left but for one, and those who forgot are a majority.
        if kept.as_ref() != Some(&voters) || self.is_calm || 2 * places.len() <= voters.len() {
            return;
        }
        for other in (0..self.plan.nodes).filter(|other| *other != first) {
            self.net.borrow_mut().cut(links_of(first), links_of(other), now.plus_us(CUT_US));
        }
        for place in places {
            self.kill(place, now, now);
            replace(&self.kept_of(place), &self.cluster_of(place));
        }
    }

    fn cluster_of(&self, number: usize) -> PathBuf {
        node_folder(self.folder.path(), number).join("cluster")
    }

    fn kept_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("kept-{number}"))
    }
}

/// Makes what a voter has of tables the same as it is elsewhere.
fn replace(from: &Path, to: &Path) {
    let of_tables = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_of_tables = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name == "table" || name.starts_with("council-")
        };
        entries.filter(is_of_tables).collect()
    };
    if !from.is_dir() {
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    of_tables(to).iter().for_each(|path| fs::remove_file(path).expect("it is there"));
    for path in of_tables(from) {
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("it is there");
    }
}
