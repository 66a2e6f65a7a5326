use crate::base::{Now, SortedMap, SortedSet};
use crate::engine::ClusterView;
use crate::farm::host_name;
use crate::peer::Table;
use crate::sim::cluster::node::ClusterNode;
use crate::sim::web::PORT;
use std::sync::Arc;

/// The tables that nodes were seen to go by, and what each told with them. Nodes are at places, and have numbers by the table.
pub struct SeenTables {
    /// The table of each epoch that any node was seen to go by.
    tables: SortedMap<u64, Arc<Table>>,
    /// The same as it is told: its nodes and who owns how much.
    views: SortedMap<u64, ClusterView>,
    places: Vec<Place>,
    /// Nodes that are gone by the latest table, by their numbers.
    left: SortedSet<u16>,
    /// The number of the node that has each host, by the latest table that any node was seen to go by.
    host_owners: Vec<u16>,
    lost_disk: Option<LostDisk>,
}

#[derive(Clone, Default)]
struct Place {
    /// The number that the node was last known by.
    number: u16,
    /// What it last told of the table that it goes by, while it runs; and when that was seen.
    told: Option<Arc<ClusterView>>,
    at: Now,
    /// The table that it was last seen to go by, of this process or of one before it.
    table: Option<Arc<Table>>,
}

/// A node whose disk is lost.
#[derive(Debug)]
pub struct LostDisk {
    number: u16,
    place: usize,
    /// What it told last, and when.
    told: Option<Arc<ClusterView>>,
    at: Now,
}

/// What is otherwise than by the table before.
#[derive(Default)]
pub struct News {
    pub gone: Vec<Gone>,
    /// Hosts that are other nodes' now.
    pub moved: Vec<u32>,
}

/// A node that is gone since the table before.
pub struct Gone {
    pub place: usize,
    pub hosts: Vec<u32>,
    /// Whoever has its partitions knows what it knew then.
    pub known: Option<Now>,
}

impl LostDisk {
    /// Up to when another node has everything of it.
    pub fn copied_until(&self) -> Option<Now> {
        self.told.as_ref().and_then(|told| copied_until(told, self.at))
    }
}

impl SeenTables {
    pub fn new(places: usize, hosts: u32) -> SeenTables {
        SeenTables {
            tables: SortedMap::new(),
            views: SortedMap::new(),
            places: vec![Place::default(); places],
            left: SortedSet::new(),
            host_owners: vec![0; hosts as usize],
            lost_disk: None,
        }
    }

    pub fn number(&self, place: usize) -> u16 {
        self.places[place].number
    }

    /// The last of them.
    pub fn latest(&self) -> Option<&ClusterView> {
        self.views.values().next_back()
    }

    pub fn place_of(&self, number: u16) -> Option<usize> {
        self.places.iter().position(|place| place.number == number)
    }

    pub fn told(&self, place: usize) -> Option<&Arc<ClusterView>> {
        self.places[place].told.as_ref()
    }

    /// The node with this number, if it has lost its disk.
    pub fn lost_disk(&self, number: u16) -> Option<&LostDisk> {
        self.lost_disk.as_ref().filter(|lost| lost.number == number)
    }

    /// The hosts of a node, by the latest table.
    fn hosts_of(&self, number: u16) -> Vec<u32> {
        let hosts = self.host_owners.iter().enumerate().filter(|(_, of)| **of == number);
        hosts.map(|(host, _)| host as u32).collect()
    }

    /// A node loses its disk: another one comes in its place. Tells the hosts that it had.
    pub fn lose_disk(&mut self, place: usize) -> Vec<u32> {
        let Place { number, told, at, .. } = std::mem::take(&mut self.places[place]);
        self.lost_disk = Some(LostDisk { number, place, told, at });
        self.hosts_of(number)
    }

    /// Looks at what a node goes by: epochs only grow, and two tables of one epoch are equal. Tells what is new by it.
    pub fn look(&mut self, place: usize, node: &ClusterNode, now: Now) -> News {
        if let Some(table) = node.peers().table() {
            self.look_at_table(place, table);
        }
        let report = &node.report;
        let view = report.get();
        let here = &mut self.places[place];
        let is_known = here.told.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view));
        if view.epoch == 0 || is_known {
            return News::default();
        }
        (here.number, here.told, here.at) = (view.node, Some(view.clone()), now);
        let mut view = ClusterView::clone(&view);
        let mut news = News::default();
        if self.views.keys().next_back().is_none_or(|last| view.epoch >= *last) {
            news.gone = self.look_who_left(&view);
            for (host, owner) in self.host_owners.iter_mut().enumerate() {
                let url = format!("http://{}:{PORT}/", host_name(host as u32));
                // One that has just begun may know of a table and go by none yet.
                let found = report.owner(&url).filter(|found| found.epoch == view.epoch);
                let now = found.map_or(*owner, |found| found.node);
                if std::mem::replace(owner, now) != now {
                    news.moved.push(host as u32);
                }
            }
        }
        // What is of the node that tells, and not of the table.
        (view.node, view.ready, view.received, view.received_new, view.round) = (0, false, 0, 0, 0);
        (view.taken_over, view.copy, view.takes_in, view.council) = (false, None, 0, None);
        (view.leaving, view.safe) = (None, 0);
        for node in &mut view.nodes {
            (node.linked, node.told) = (false, None);
        }
        let first = self.views.entry(view.epoch).or_insert_with(|| view.clone());
        assert_eq!(*first, view, "two views of epoch {}", view.epoch);
        news
    }

    fn look_at_table(&mut self, place: usize, table: &Arc<Table>) {
        let here = &mut self.places[place];
        if here.table.as_ref().is_some_and(|known| Arc::ptr_eq(known, table)) {
            return;
        }
        let (epoch, before) = (table.epoch(), here.table.as_ref().map_or(0, |table| table.epoch()));
        assert!(epoch >= before, "the table of node {place} went back from epoch {before} to {epoch}");
        here.table = Some(table.clone());
        let first = self.tables.entry(epoch).or_insert_with(|| table.clone());
        assert!(
            first == table,
            "two tables of epoch {epoch}: node {place} goes by {:?}, and another by {:?}",
            table.nodes(),
            first.nodes(),
        );
    }

    /// Nodes that are gone since the table before, and what is known of them by who took them over.
    fn look_who_left(&mut self, view: &ClusterView) -> Vec<Gone> {
        let left = view.nodes.iter().filter(|node| node.membership == "left");
        let left: SortedSet<u16> = left.map(|node| node.number).collect();
        let gone = left.difference(&self.left).filter_map(|&number| self.gone(number, view)).collect();
        self.left = left;
        gone
    }

    fn gone(&self, number: u16, view: &ClusterView) -> Option<Gone> {
        let lost_disk = self.lost_disk(number);
        let place = self.place_of(number).or(lost_disk.map(|lost| lost.place))?;
        let (told, at) = match lost_disk {
            Some(lost) => (lost.told.as_ref(), lost.at),
            None => (self.places[place].told.as_ref(), self.places[place].at),
        };
        let known = told.and_then(|told| self.known_of(number, told, at, view));
        Some(Gone { place, hosts: self.hosts_of(number), known })
    }

    /// Up to when another node knows all that a node knew which is gone by this table: if it has both its copy and its partitions.
    fn known_of(&self, lost: u16, told: &ClusterView, at: Now, view: &ClusterView) -> Option<Now> {
        let (_, before) = self.views.range(..view.epoch).next_back()?;
        let had = |view: &ClusterView, node: u16| {
            view.nodes.iter().find(|known| known.number == node).map_or(0, |known| known.partitions)
        };
        let copy = told.copy.as_ref()?;
        let came = had(view, copy.node).saturating_sub(had(before, copy.node));
        let has_all = came == had(before, lost) && before.epoch + 1 == view.epoch;
        copied_until(told, at).filter(|_| has_all)
    }
}

/// Up to when another node has everything of one that told this at a time.
fn copied_until(told: &ClusterView, at: Now) -> Option<Now> {
    let copy = told.copy.as_ref().filter(|copy| copy.knowledge.was_whole && copy.pages.was_whole)?;
    let behind_ms = copy.knowledge.behind_ms.max(copy.pages.behind_ms);
    Some(Now::from_us(at.us().saturating_sub(1_000 * behind_ms)))
}
