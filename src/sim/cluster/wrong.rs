use super::node::node_folder;
use std::fs;
use std::path::Path;

/// Something that is wrong on purpose, so that it is seen whether the judge finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// One node asks ten times as often as it may: the pace of hosts and addresses.
    Pace,
    /// Clocks run at less than half and more than one and a half times the true rate: whose a host is.
    Clocks,
    /// A node that is killed loses its index: URLs that were found.
    Index,
    /// With a node that is killed, what others have of its knowledge goes: pages that are asked for once.
    Copies,
    /// The pages of nodes that are gone go: what counts can be read.
    Pages,
    /// Voters that are killed forget what they promised: one table of an epoch.
    Council,
    /// Two nodes are cut off from each other for good: all comes to rest.
    Cut,
}

impl Wrong {
    pub const ALL: [Wrong; 7] =
        [Wrong::Pace, Wrong::Clocks, Wrong::Index, Wrong::Copies, Wrong::Pages, Wrong::Council, Wrong::Cut];

    pub fn name(self) -> &'static str {
        match self {
            Wrong::Pace => "pace",
            Wrong::Clocks => "clocks",
            Wrong::Index => "index",
            Wrong::Copies => "copies",
            Wrong::Pages => "pages",
            Wrong::Council => "council",
            Wrong::Cut => "cut",
        }
    }

    pub fn from_name(name: &str) -> Option<Wrong> {
        Wrong::ALL.into_iter().find(|wrong| wrong.name() == name)
    }

    /// A node was killed, which has a number.
    pub fn when_killed(self, folder: &Path, nodes: usize, (node, number): (usize, u16)) {
        let own = node_folder(folder, node);
        let gone = match self {
            Wrong::Index => own.join("index"),
            Wrong::Council => own.join("cluster/council"),
            Wrong::Copies => return forget_known(folder, nodes, number),
            _ => return,
        };
        let _ = fs::remove_dir_all(gone);
    }

    /// All is done.
    pub fn at_the_end(self, folder: &Path, nodes: usize) {
        for node in (0..nodes).filter(|_| self == Wrong::Pages) {
            let copies =
                fs::read_dir(node_folder(folder, node).join("copies")).into_iter().flatten().flatten();
            for copy in copies.filter(|copy| copy.path().extension().is_some_and(|name| name == "pages")) {
                let _ = fs::remove_dir_all(copy.path());
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
