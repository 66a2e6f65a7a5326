use super::ClusterWorld;
use super::tables::LostDisk;
use super::typing::TOLD_US;
use crate::base::{Now, SortedMap, SortedSet};
use crate::doc_index::IndexStats;
use crate::engine::{ClusterView, stores_of_others};
use crate::farm::host_name;
use crate::proto::record::ResultCode;
use crate::sim::cluster::etcd::SimEtcd;
use crate::sim::cluster::judge::DURABLE_US;
use crate::sim::cluster::node::{ClusterNode, node_folder};
use crate::sim::web::PORT;
use crate::store_server::Holdings;
use std::path::{Path, PathBuf};

/// A run that takes longer than this after the last misfortune does not come to rest.
const REST_S_MAX: u64 = 1_800;

/// How a run ends, and what is there then.
impl ClusterWorld {
    /// Whether every node says that all is done; and whether it is.
    pub(super) fn is_over(&mut self, now: Now) -> bool {
        let is_all_typed = self.typing.is_told(now) && !self.may_hear_of_outsiders(now);
        // A node that has something to do, and what; nothing is known of one that was killed.
        let mut left: Option<(usize, Option<IndexStats>)> = None;
        let mut ready = 0;
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else {
                if self.died_busy[number] && !self.is_taken_over(number) {
                    left = Some((number, None));
                }
                continue;
            };
            let stats = node.core.index.actor.provider().index().stats();
            // One that stands still says what it said, and nobody hears it.
            let is_ready = node.report.get().ready && self.stalled[number] <= now;
            ready += usize::from(is_ready);
            // Who is told something knows it at once, whoever tells it.
            assert!(
                !(is_ready && self.typing.is_told(now) && stats.pending + stats.handed_out > 0),
                "node {number} says that all is done at {now:?}, and has {stats:?}",
            );
            // What one has that was taken over while it stands still is others' by now.
            let is_gone = self.stalled[number] > now && self.is_taken_over(number);
            if stats.pending + stats.handed_out > 0 && !is_gone {
                left = Some((number, Some(stats)));
            }
        }
        if let Some(left) = left.as_ref().filter(|_| ready > 0 && is_all_typed) {
            let says_so = self.nodes.iter().flatten().map(|node| node.report.get()).find(|view| view.ready);
            panic!("{ready} nodes say that all is done at {now:?}: {left:?}: {says_so:?}");
        }
        let is_ready = ready > 0 && is_all_typed;
        if is_ready && !self.is_ready {
            self.judge_what_is_told(now);
        }
        self.is_ready = is_ready;
        if now.since_us(self.plan.faults.until) > 1_000_000 * REST_S_MAX {
            let views: Vec<_> = self.nodes.iter().flatten().map(|node| node.report.get()).collect();
            panic!("it does not come to rest: {left:?}, {ready} of {} are ready: {views:?}", self.plan.nodes);
        }
        let count = self.gone.iter().filter(|is_gone| !**is_gone).count();
        let is_whole = |view: &ClusterView| view.copy.as_ref().is_none_or(|copy| copy.in_step);
        let drains = |view: &ClusterView| {
            let of_itself = view.nodes.iter().find(|node| node.number == view.node);
            // A voter stays.
            let goes = of_itself.is_some_and(|node| node.membership == "draining");
            goes && !view.voters.contains(&view.node) && view.members().count() > 1
        };
        let mut views = self.nodes.iter().flatten().map(|node| node.report.get());
        if !views.all(|view| is_whole(&view) && !drains(&view)) {
            return false;
        }
        self.is_calm && is_all_typed && self.lose_at.is_none() && self.drain_at.is_none() && ready == count
    }

    /// A node that was taken over and is back with its disk tells its URLs until it knows, and one that was told URLs before it got
    /// a number tells them when it has one: to all but the one that they tell them to, that is as if they were typed.
    pub(super) fn look_for_outsiders(&mut self, now: Now) {
        let Some(latest) = self.tables.latest() else { return };
        let is_none = |number: u16| latest.members().all(|node| node.number != number);
        let is_outsider = |(number, node): (usize, &Option<ClusterNode>)| {
            let node = node.as_ref().filter(|_| self.stalled[number] <= now);
            node.is_some_and(|node| {
                is_none(node.report.get().node) && node.core.index.actor.provider().index().stats().known > 0
            })
        };
        if self.nodes.iter().enumerate().any(is_outsider) {
            self.outsider_at = Some(now);
        }
    }

    fn may_hear_of_outsiders(&self, now: Now) -> bool {
        self.outsider_at.is_some_and(|at| now.since_us(at) <= TOLD_US)
    }

    /// A node says that all is done: what any node knows was told to its owner.
    fn judge_what_is_told(&self, now: Now) {
        let known = |node: &ClusterNode| -> SortedSet<String> {
            let index = node.core.index.actor.provider().index();
            let all = 1..=u32::try_from(index.stats().known).expect("a small web");
            let found = all.filter_map(|doc_id| index.document(doc_id).expect("the disk does not fail"));
            found.map(|found| found.discovered.url.to_string()).collect()
        };
        // Who has no number is none of them yet.
        let stands_still = |number: usize| self.stalled[number] > now;
        let running: Vec<(bool, &ClusterNode)> = (0..self.nodes.len())
            .filter_map(|number| Some((stands_still(number), self.nodes[number].as_ref()?)))
            .filter(|(_, node)| node.report.get().node != 0)
            .collect();
        let known: SortedMap<u16, _> =
            running.iter().map(|(_, node)| (node.report.get().node, known(node))).collect();
        // What one that stands still said once, nobody hears.
        let says = running.iter().find(|(stands_still, node)| !stands_still && node.report.get().ready);
        let Some((_, says)) = says else { return };
        let views = || {
            let view = |(stands_still, node): &(bool, &ClusterNode)| {
                let view = node.report.get();
                format!("node {} by table {}, stands still: {stands_still}", view.node, view.epoch)
            };
            running.iter().map(view).collect::<Vec<_>>()
        };
        // What one has that was taken over while it stands still is others' by now.
        let is_gone = |node: u16| {
            let place = self.tables.place_of(node);
            place.is_some_and(|place| stands_still(place) && self.is_taken_over(place))
        };
        let tellers = known.iter().filter(|(node, _)| !is_gone(**node));
        for (node, url) in tellers.flat_map(|(node, urls)| urls.iter().map(move |url| (node, url))) {
            let owner = says.report.owner(url).map_or(0, |owner| owner.node);
            assert!(
                owner != 0,
                "node {} says that all is done at {now:?}, and {url} of node {node} is nobody's: {:?}",
                says.report.get().node,
                views(),
            );
            assert!(
                known.get(&owner).is_none_or(|urls| urls.contains(url)),
                "node {} says that all is done at {now:?}, and node {owner} was not told {url} by node {node}: {:?}",
                says.report.get().node,
                views(),
            );
        }
    }

    /// Whether a node that runs knows that another one is gone: what that one had waits until it is back.
    fn is_taken_over(&self, number: usize) -> bool {
        let number = self.tables.number(number);
        let has_left = |view: &ClusterView| {
            view.nodes.iter().any(|node| node.number == number && node.membership == "left")
        };
        self.nodes.iter().flatten().any(|node| has_left(&node.report.get()))
    }

    /// What any node knows is known to its owner, with what became of it.
    pub(super) fn judge_the_end(&mut self) {
        if let Some(wrong) = self.plan.wrong {
            wrong.at_the_end(self.folder.path(), self.plan.nodes);
        }
        let mut urls: SortedMap<String, Vec<(u16, bool)>> = SortedMap::new();
        for node in self.nodes.iter().flatten() {
            let number = node.report.get().node;
            let index = node.core.index.actor.provider().index();
            for doc_id in 1..=u32::try_from(index.stats().known).expect("a small web") {
                let found = index.document(doc_id).expect("the disk does not fail");
                let Some(found) = found else { continue };
                let is_had = found.row.is_some_and(|row| row.result.is_some());
                urls.entry(found.discovered.url.to_string()).or_default().push((number, is_had));
            }
        }
        let owners = self.nodes.iter().flatten().next().expect("they run").report.clone();
        for (url, known) in &urls {
            let owner = owners.owner(url).expect("there is a table").node;
            let had: Vec<u16> = known.iter().filter(|(_, is_had)| *is_had).map(|(node, _)| *node).collect();
            // Whoever fetched it before it was another node's keeps it.
            assert!(had.contains(&owner), "{url} is node {owner}'s, and known to {known:?}");
            self.report.documents += 1;
        }
        for (host, target) in self.judge.borrow().pages() {
            let url = format!("http://{}:{PORT}{target}", host_name(host));
            assert!(urls.contains_key(&url), "{url} was asked for, and nobody knows it");
            self.report.success += 1;
        }
        self.judge_the_pages();
        let expected = self.reached();
        let missing: Vec<&String> = expected.iter().filter(|url| !urls.contains_key(*url)).collect();
        assert!(missing.is_empty(), "never found: {missing:?}");
        self.report.requests = self.judge.borrow().requests;
        self.report.fail_overs = self.judge.borrow().handed_on;
        self.report.unanswered = self.etcd.as_ref().map_or(0, SimEtcd::unanswered);
        self.report.takeovers = self.judge.borrow().taken;
        self.report.moves = self.judge.borrow().moved;
        self.report.known = self.judge.borrow().known;
        self.report.virtual_seconds = self.net.borrow().now().us() / 1_000_000;
    }

    /// Every page that counts can be read, at whichever node. Those of a disk that was lost are where its copy was, if they were in
    /// that by then.
    fn judge_the_pages(&mut self) {
        let folders = (0..self.nodes.len()).map(|number| node_folder(self.folder.path(), number));
        let folders = folders.filter(|folder| folder.is_dir());
        let stores: Vec<Holdings> = folders.flat_map(|folder| stores_of(&folder)).collect();
        let is_held =
            |url: &str| stores.iter().any(|store| store.holds(url).expect("the disk does not fail"));
        for node in self.nodes.iter().flatten() {
            let (view, index) = (node.report.get(), node.core.index.actor.provider().index());
            for doc_id in 1..=u32::try_from(index.stats().known).expect("a small web") {
                let Some(found) = index.document(doc_id).expect("the disk does not fail") else { continue };
                let url = &*found.discovered.url;
                let is_page = found.row.is_some_and(|row| row.result == Some(ResultCode::Ok));
                let is_ours = node.report.owner(url).is_some_and(|owner| owner.node == view.node);
                if !is_page || !is_ours {
                    continue;
                }
                let lost = self.tables.lost_disk(found.note.store);
                if is_held(url) {
                    self.report.restored += u64::from(lost.is_some());
                    continue;
                }
                let copied = lost.map(LostDisk::copied_until);
                let at = self.judge.borrow().fetched_at(url);
                assert!(
                    copied.is_some_and(|until| until.is_none_or(|until| at.plus_us(DURABLE_US) > until)),
                    "{url} of node {} cannot be read: it was fetched at {at:?} by node {} ({:?})",
                    view.node,
                    found.note.store,
                    lost,
                );
            }
        }
    }

    /// A drained node has left: nobody was away for so long that it was not waited for. With copies its pages are on two other disks,
    /// or on as many as there are.
    pub(super) fn judge_what_is_left(&self, number: usize, view: &ClusterView, now: Now) {
        // It may have been killed when it had said that it leaves: the process before this one waited.
        let leaving = view.leaving.as_ref();
        assert!(
            leaving.is_none_or(|leaving| leaving.waits_for.is_empty()),
            "node {number} has left at {now:?} without {leaving:?}"
        );
        if !self.plan.copies {
            return;
        }
        let others = view.members().filter(|node| node.membership == "member").count().min(2);
        let stores = |number: usize| -> Vec<Holdings> {
            let folder = node_folder(self.folder.path(), number);
            if folder.is_dir() { stores_of(&folder) } else { Vec::new() }
        };
        let holds = |stores: &Vec<Holdings>, url: &str| {
            stores.iter().any(|store| store.holds(url).expect("the disk does not fail"))
        };
        // Its own, and those of nodes that were gone.
        let own = node_folder(self.folder.path(), number);
        let is_kept = |folder: &PathBuf| folder.extension().is_some_and(|extension| extension == "pages");
        let kept = stores_of_others(&own).into_iter().filter(is_kept);
        let open = |folder: PathBuf| Holdings::open(&folder).expect("the disk does not fail");
        let own: Vec<Holdings> = kept.chain([own.clone()]).map(open).collect();
        let of_others = (0..self.nodes.len()).filter(|other| *other != number);
        let of_others: Vec<Vec<Holdings>> = of_others.map(stores).collect();
        for (host, target) in self.judge.borrow().pages() {
            let url = format!("http://{}:{PORT}{target}", host_name(host));
            let held = of_others.iter().filter(|stores| holds(stores, &url)).count();
            assert!(
                held >= others || !holds(&own, &url),
                "{url} is on {held} other disks of {others} at {now:?}, when node {number} has left: {leaving:?}"
            );
        }
    }

    /// The pages of hosts that were typed: all of them are reached from the first.
    fn reached(&self) -> Vec<String> {
        let path = |page: u32| if page == 0 { "/".to_string() } else { format!("/p/{page}.html") };
        let pages = |&(_, _, host): &(Now, usize, u32)| {
            let of_host = move |page| format!("http://{}:{PORT}{}", host_name(host), path(page));
            (0..self.plan.web.site.pages).map(of_host)
        };
        self.plan.typed.iter().flat_map(pages).collect()
    }
}

/// The stores of a node: its own, those that came to it, and copies of others.
fn stores_of(folder: &Path) -> Vec<Holdings> {
    let all = std::iter::once(folder.to_path_buf()).chain(stores_of_others(folder));
    all.map(|folder| Holdings::open(&folder).unwrap_or_else(|error| panic!("{error}"))).collect()
}
