//! An index as that of a node of a cluster: what other nodes are to fetch is known and told, never pending.

use super::*;
use crate::base::SortedSet;
use crate::doc_index::{MovingItem, OutItem, Outcome, ToTell};
use crate::proto::partition::{PARTITIONS, Partition, Partitioner, Share, Spread};
use crate::proto::record::ResultCode;
use std::sync::Arc;

const ME: u16 = 1;
const OTHER: u16 = 2;
const THIRD: u16 = 3;

fn partitioner() -> Partitioner {
    Partitioner::new(Spread::Host, 7)
}

fn share(owner: impl Fn(Partition) -> u16) -> Arc<Share> {
    let owners: Vec<u16> = Partition::all().map(owner).collect();
    Arc::new(Share::new(partitioner(), ME, 1, &owners))
}

/// Hosts by turns: `http://h0/` is ours, `http://h1/` another's, and so on, as far as their partitions differ.
fn of_host(number: usize) -> Partition {
    partitioner().of(&format!("http://h{number}/"))
}

fn shared(ours: &[usize], third: &[usize]) -> Arc<Share> {
    let of = |hosts: &[usize]| hosts.iter().map(|&host| of_host(host)).collect::<SortedSet<_>>();
    let (ours, third) = (of(ours), of(third));
    share(|partition| match (ours.contains(&partition), third.contains(&partition)) {
        (true, _) => ME,
        (_, true) => THIRD,
        _ => OTHER,
    })
}

fn rules(share: &Arc<Share>) -> IndexRules {
    IndexRules { share: Some(share.clone()), ..IndexRules::default() }
}

fn pending(index: &mut DocIndex) -> Vec<String> {
    let mut found: Vec<_> = candidates(index, 99).iter().map(|found| found.url.to_string()).collect();
    found.sort();
    found
}

fn told(index: &DocIndex, to: u16) -> Vec<(String, ToTell)> {
    let outbox = index.outbox(0, u64::MAX, |node| node == to).unwrap();
    outbox.items.into_iter().map(|OutItem { url, told, .. }| (url.into(), told)).collect()
}

#[test]
fn what_others_are_to_fetch_is_known_told_and_never_pending_whatever_ends_the_process() {
    let folder = Folder::new("peers-foreign");
    let share = shared(&[0], &[2]);
    let (mut index, _) = folder.open(rules(&share));
    for round in 0..3 {
        for url in ["http://h0/a", "http://h1/a", "http://h1/b", "http://h2/a", "http://h1/a"] {
            link(url, &mut index, Origin::link(0, 1));
        }
        let stats = index.stats();
        assert_eq!((stats.known, stats.foreign, stats.pending), (4, 3, 1), "round {round}");
        index.flush(true).unwrap();
        let found = Origin::link(0, 1);
        let to = |node| ToTell::Owner { node, found };
        let of_other = [("http://h1/a".into(), to(OTHER)), ("http://h1/b".into(), to(OTHER))];
        assert_eq!(told(&index, OTHER), of_other, "each once");
        assert_eq!(told(&index, THIRD), [("http://h2/a".into(), to(THIRD))]);
        assert_eq!(told(&index, ME), []);
        drop(index);
        (index, _) = folder.open(rules(&share));
    }
    assert_eq!(pending(&mut index), ["http://h0/a"]);
}

#[test]
fn what_is_typed_is_told_to_its_owner_and_spans_the_scope_of_all() {
    let folder = Folder::new("peers-typed");
    let share = shared(&[0], &[]);
    let (mut index, _) = folder.open(rules(&share));
    let url = |text: &str| CrawlUrl::parse(text).unwrap();
    link("http://h1/b", &mut index, Origin::link(0, 1));
    index.flush(true).unwrap();
    let before = index.ledger_end();
    for typed in ["http://h0/a", "http://h1/a", "http://h1/b"] {
        index.seed(&url(typed), false, NOW_S);
    }
    index.flush(true).unwrap();
    let outbox = index.outbox(before, u64::MAX, |_| true).unwrap();
    let items: Vec<_> = outbox.items.iter().map(|item| (&*item.url, item.told)).collect();
    let to_owner = ToTell::Owner { node: OTHER, found: Origin::SEED };
    let expected = [
        ("http://h0/a", ToTell::All),
        ("http://h1/a", to_owner),
        ("http://h1/a", ToTell::All),
        // It was known as a link: its owner hears that it was typed.
        ("http://h1/b", to_owner),
        ("http://h1/b", ToTell::All),
    ];
    assert_eq!(items, expected);
    assert_eq!(outbox.upto, index.ledger_end());
    assert_eq!(index.outbox(outbox.upto, u64::MAX, |_| true).unwrap().items, []);
    assert_eq!(pending(&mut index), ["http://h0/a"]);
}

#[test]
fn what_comes_from_others_is_pending_once_and_not_told_on() {
    let folder = Folder::new("peers-adopted");
    let share = shared(&[0], &[]);
    let (mut index, _) = folder.open(rules(&share));
    let url = |text: &str| CrawlUrl::parse(text).unwrap();
    let deep = Origin { priority: 9, ..Origin::link(77, 3) };
    assert!(index.adopt(&url("http://h0/a"), deep, NOW_S));
    assert!(!index.adopt(&url("http://h0/a"), deep, NOW_S), "it comes again after a broken link");
    assert!(index.adopt(&url("http://h0/s"), Origin::SEED, NOW_S));
    assert!(!index.adopt(&url("http://h0/s"), Origin::SEED, NOW_S));
    assert!(index.adopt_scope(&url("http://h9/there"), NOW_S));
    assert!(!index.adopt_scope(&url("http://h9/there"), NOW_S));
    index.flush(true).unwrap();
    assert_eq!(told(&index, OTHER), [], "nothing goes round in circles");
    let found = candidates(&mut index, 9);
    let first = found.iter().find(|found| found.url.as_str() == "http://h0/a").unwrap();
    assert_eq!((first.provenance.depth, first.via.as_deref(), &first.chain), (3, None, &None));
    drop(index);
    let mut seeds = Vec::new();
    let (mut index, _) =
        DocIndex::open_telling(&folder.0, rules(&share), NOW_S, |url| seeds.push(url.to_string())).unwrap();
    assert_eq!(seeds, ["http://h0/s", "http://h9/there"], "what is in scope outlasts the process");
    assert_eq!(pending(&mut index), ["http://h0/a", "http://h0/s"]);
}

#[test]
fn a_seed_that_another_node_has_typed_brings_back_what_the_rules_had_left_out() {
    let mut index = DocIndex::default();
    assert_eq!(index.set_share(shared(&[0], &[])).unwrap(), Ok(()));
    link("http://h0/out", &mut index, Origin::link(0, 1));
    let doc_id = candidates(&mut index, 1)[0].doc_id;
    index.exclude(doc_id, "scope", NOW_S);
    assert_eq!(pending(&mut index), [""; 0]);
    let url = CrawlUrl::parse("http://h0/out").unwrap();
    assert!(!index.adopt(&url, Origin::link(0, 1), NOW_S));
    assert_eq!(pending(&mut index), [""; 0]);
    assert!(!index.adopt(&url, Origin::SEED, NOW_S));
    assert_eq!(pending(&mut index), ["http://h0/out"]);
}

#[test]
fn partitions_that_are_gained_bring_what_was_found_for_them_and_those_with_urls_are_not_lost() {
    let folder = Folder::new("peers-gained");
    let (mut index, _) = folder.open(rules(&shared(&[0], &[])));
    for url in ["http://h0/a", "http://h1/a", "http://h2/a", "http://h2/b"] {
        link(url, &mut index, Origin::link(0, 1));
    }
    let both = shared(&[0, 2], &[]);
    assert_eq!(index.set_share(both.clone()).unwrap(), Ok(()));
    let stats = index.stats();
    assert_eq!((stats.known, stats.foreign, stats.pending), (4, 1, 3));
    assert_eq!(index.set_share(both.clone()).unwrap(), Ok(()), "twice is once");
    assert_eq!(index.stats(), stats);
    let lost = index.set_share(shared(&[1], &[])).unwrap().unwrap_err();
    let mut with_urls = vec![of_host(0), of_host(2)];
    with_urls.sort();
    assert_eq!(lost.0, with_urls);
    index.flush(true).unwrap();
    drop(index);
    let (mut index, _) = folder.open(rules(&both));
    assert_eq!(index.stats(), stats);
    assert_eq!(index.partition_docs(of_host(2)), 2);
    assert_eq!(pending(&mut index), ["http://h0/a", "http://h2/a", "http://h2/b"]);
}

#[test]
fn an_index_that_joins_a_cluster_keeps_what_it_has() {
    let folder = Folder::new("peers-joins");
    let (mut index, _) = folder.open(IndexRules::default());
    link("http://h0/a", &mut index, Origin::link(0, 1));
    assert_eq!(index.set_share(shared(&[1], &[])).unwrap().unwrap_err().0, [of_host(0)]);
    assert_eq!(index.set_share(shared(&[0], &[])).unwrap(), Ok(()));
    assert_eq!(pending(&mut index), ["http://h0/a"]);
}

#[test]
fn a_stretch_ends_and_the_next_goes_on() {
    let mut index = DocIndex::default();
    assert_eq!(index.set_share(share(|_| OTHER)).unwrap(), Ok(()));
    let urls: Vec<String> = (0..20_000).map(|n| format!("http://h{}/{n}", n % 50)).collect();
    for some in urls.chunks(100) {
        index.discover(some.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
        index.flush(false).unwrap();
    }
    let (mut at, mut stretches, mut items) = (0, 0, Vec::new());
    loop {
        let outbox = index.outbox(at, u64::MAX, |node| node == OTHER).unwrap();
        if outbox.upto == at {
            break;
        }
        assert!(outbox.items.iter().all(|item| (at..outbox.upto).contains(&item.at)));
        (at, stretches) = (outbox.upto, stretches + 1);
        items.extend(outbox.items.into_iter().map(|item| String::from(item.url)));
    }
    assert!(stretches > 2, "{stretches}");
    assert_eq!(items, urls);
    assert_eq!(PARTITIONS, 4_096);
}

/// What is known of the documents of some hosts, as it goes to another node.
fn moving(index: &mut DocIndex, hosts: &[usize]) -> Vec<MovingItem> {
    let partitions = hosts.iter().map(|&host| of_host(host)).collect();
    let (mut items, mut from) = (Vec::new(), 0);
    loop {
        let moving = index.moving(from, &partitions).unwrap();
        items.extend(moving.items);
        if moving.is_whole {
            return items;
        }
        from = moving.upto;
    }
}

fn leave(index: &mut DocIndex, hosts: &[usize]) {
    index.begin_to_leave(&hosts.iter().map(|&host| of_host(host)).collect());
}

fn answer(index: &mut DocIndex, url: &str, result: ResultCode) {
    let found = index.look(url).unwrap().unwrap();
    assert!(index.is_open(found.doc_id), "{url}");
    let status = if result == ResultCode::Ok { 200 } else { 0 };
    assert!(index.record(&Outcome { status, ..Outcome::new(found.doc_id, result, NOW_S) }, None));
}

/// A partition goes from one node to the other and back: what is pending, waits or is done there is so here, and the one that
/// gave it away asks for nothing of it, whatever ends the processes.
#[test]
fn a_partition_moves_with_what_is_known_of_its_urls() {
    let (from, to) = (Folder::new("peers-from"), Folder::new("peers-to"));
    let (ours, theirs) = (shared(&[0, 1], &[]), shared(&[2], &[]));
    let (mut giver, _) = from.open(rules(&ours));
    for path in ["done", "gone", "waits", "pending"] {
        link(&format!("http://h0/{path}"), &mut giver, Origin::link(0, 1));
    }
    link("http://h1/other", &mut giver, Origin::link(0, 1));
    assert_eq!(candidates(&mut giver, 9).len(), 5);
    answer(&mut giver, "http://h0/done", ResultCode::Ok);
    answer(&mut giver, "http://h0/gone", ResultCode::RobotsDenied);
    answer(&mut giver, "http://h0/waits", ResultCode::ReadTimeout);
    let of = |index: &DocIndex, url: &str| index.look(url).unwrap().unwrap().doc_id;
    assert!(giver.is_out(&SortedSet::from([of_host(0)])));
    for url in ["http://h0/pending", "http://h1/other"] {
        giver.put_back(of(&giver, url));
    }
    assert!(!giver.is_out(&SortedSet::from([of_host(0)])));
    assert!(giver.stats().waiting == 1 && giver.stats().pending == 2, "{:?}", giver.stats());
    leave(&mut giver, &[0]);
    assert_eq!(
        giver.leaving().map(|leaving| ["http://h0", "http://h1"].map(|origin| leaving.holds(origin))),
        Some([true, false])
    );
    let items = moving(&mut giver, &[0]);
    assert_eq!(items.iter().map(|item| !item.row.is_empty()).collect::<Vec<_>>(), [true, true, true, false]);
    // The node that gets it keeps it, and asks for nothing of it yet; it may come twice.
    let (mut taker, _) = to.open(rules(&theirs));
    for round in 0..2 {
        for MovingItem { url, origin, row, .. } in &items {
            let url = CrawlUrl::parse(url).unwrap();
            assert_eq!(taker.take_moved(&url, *origin, row, NOW_S), Some(round == 0), "{url}");
        }
        let stats = taker.stats();
        assert_eq!((stats.known, stats.foreign, stats.success, stats.errors), (4, 2, 1, 1), "{stats:?}");
        assert_eq!((stats.pending, stats.waiting, stats.own_success()), (0, 0, 0), "{stats:?}");
        taker.flush(true).unwrap();
        drop(taker);
        (taker, _) = to.open(rules(&theirs));
    }
    assert_eq!(told(&taker, OTHER).len(), 4, "nothing says who handed it over: its owner is told");
    // It is given away only when it was to leave.
    let (without, with) = (shared(&[1], &[]), shared(&[2, 0], &[]));
    giver.stay(&SortedSet::from([of_host(0)]));
    assert_eq!(giver.set_share(without.clone()).unwrap().unwrap_err().0, [of_host(0)]);
    leave(&mut giver, &[0]);
    assert_eq!(giver.set_share(without.clone()).unwrap(), Ok(()));
    let given = giver.stats();
    assert_eq!((given.known, given.foreign, given.pending, given.waiting), (5, 2, 1, 0), "{given:?}");
    assert_eq!((given.success, given.errors), (1, 1), "its store has them");
    assert_eq!(given.own_success(), 0, "over all nodes a page counts once");
    assert_eq!(taker.set_share(with.clone()).unwrap(), Ok(()));
    let got = taker.stats();
    assert_eq!((got.known, got.foreign, got.pending, got.waiting), (4, 0, 1, 1), "{got:?}");
    assert_eq!((got.success, got.own_success()), (1, 1));
    assert_eq!(pending(&mut taker), ["http://h0/pending"]);
    taker.put_back(of(&taker, "http://h0/pending"));
    let later = taker.candidates(9, &RejectList::default(), NOW_S + 86_400);
    assert!(later.iter().any(|found| found.url.as_str() == "http://h0/waits"), "its time comes");
    later.iter().for_each(|found| taker.put_back(found.doc_id));
    // Both have one number here, so that it came back to who fetched it; a third node is told who that was.
    assert_eq!(taker.look("http://h0/done").unwrap().unwrap().note.said(), None);
    let elsewhere = Folder::new("peers-third");
    let owners: Vec<u16> = Partition::all().map(|_| OTHER).collect();
    let (mut third, _) = elsewhere.open(rules(&Arc::new(Share::new(partitioner(), THIRD, 1, &owners))));
    let done = items.iter().find(|item| &*item.url == "http://h0/done").unwrap();
    assert_eq!(PageElsewhere::of(&done.row), Some(PageElsewhere { node: ME, fetched_s: NOW_S }));
    third.take_moved(&CrawlUrl::parse(&done.url).unwrap(), done.origin, &done.row, NOW_S);
    let note = third.look("http://h0/done").unwrap().unwrap().note;
    assert_eq!(note.said().as_deref(), Some("fetched by node 1, whose store has it"));
    // Both are killed, and go by the table.
    giver.flush(true).unwrap();
    drop(giver);
    let (mut giver, _) = from.open(rules(&without));
    assert_eq!((giver.stats().pending, giver.stats().foreign, giver.stats().waiting), (1, 2, 0));
    assert_eq!((giver.stats().success, giver.stats().own_success()), (1, 0));
    // What a process before had stored, and is taken up, counts where it did.
    let done = of(&giver, "http://h0/done");
    assert!(giver.take_up(done) && giver.stats().success == 0);
    answer(&mut giver, "http://h0/done", ResultCode::Ok);
    assert_eq!((giver.stats().success, giver.stats().own_success()), (1, 0));
    assert_eq!(pending(&mut giver), ["http://h1/other"]);
    assert!(
        giver.candidates(9, &RejectList::default(), NOW_S + 86_400).is_empty(),
        "nothing of it is due here"
    );
    // And back again: what became of it since comes along.
    assert!(candidates(&mut taker, 9).len() == 2);
    answer(&mut taker, "http://h0/pending", ResultCode::Ok);
    taker.put_back(of(&taker, "http://h0/waits"));
    leave(&mut taker, &[0]);
    for MovingItem { url, origin, row, .. } in moving(&mut taker, &[0]) {
        assert_eq!(giver.take_moved(&CrawlUrl::parse(&url).unwrap(), origin, &row, NOW_S), Some(false));
    }
    assert_eq!(giver.set_share(ours.clone()).unwrap(), Ok(()));
    let back = giver.stats();
    assert_eq!(
        (back.success, back.errors, back.foreign, back.waiting + back.pending),
        (2, 1, 0, 1),
        "{back:?}"
    );
    assert_eq!(back.own_success(), 2);
}

/// Who handed documents over knows them. If it is taken over before their partition has come, the owner after it need not, and is
/// told of them by the node that was to get it.
#[test]
fn what_was_handed_over_is_told_to_every_owner_but_the_one_that_did() {
    let folder = Folder::new("peers-handed");
    let (before, after) = (shared(&[2], &[]), shared(&[2], &[0]));
    let (mut index, _) = folder.open(rules(&before));
    let handed = Origin { via: Origin::via_node(OTHER), ..Origin::link(0, 1) };
    let urls = ["http://h0/a", "http://h0/b"];
    for url in urls {
        assert_eq!(index.take_moved(&CrawlUrl::parse(url).unwrap(), handed, &[], NOW_S), Some(true));
    }
    link("http://h0/found", &mut index, Origin::link(0, 1));
    index.flush(true).unwrap();
    let urls_told =
        |index: &DocIndex, to| told(index, to).into_iter().map(|(url, _)| url).collect::<Vec<_>>();
    assert_eq!(urls_told(&index, OTHER), ["http://h0/found"]);
    assert_eq!(index.set_share(after.clone()).unwrap(), Ok(()));
    for round in 0..2 {
        assert_eq!(urls_told(&index, OTHER), Vec::<String>::new(), "round {round}");
        assert_eq!(
            urls_told(&index, THIRD),
            ["http://h0/a", "http://h0/b", "http://h0/found"],
            "round {round}"
        );
        drop(index);
        (index, _) = folder.open(rules(&after));
    }
    // The one that did owns it again, and knows it still.
    assert_eq!(index.set_share(before).unwrap(), Ok(()));
    assert_eq!(urls_told(&index, OTHER), ["http://h0/found"]);
}

/// Rows that are damaged on their way are told, and never believed.
#[test]
fn a_row_that_cannot_be_read_is_not_taken() {
    let mut giver = DocIndex::default();
    assert_eq!(giver.set_share(shared(&[0], &[])).unwrap(), Ok(()));
    link("http://h0/a", &mut giver, Origin::link(0, 1));
    assert_eq!(candidates(&mut giver, 1).len(), 1);
    answer(&mut giver, "http://h0/a", ResultCode::Ok);
    let item = moving(&mut giver, &[0]).remove(0);
    let url = CrawlUrl::parse(&item.url).unwrap();
    for at in 0..item.row.len() {
        let mut taker = DocIndex::default();
        assert_eq!(taker.set_share(shared(&[2], &[])).unwrap(), Ok(()));
        let mut row = item.row.clone();
        row[at] ^= 4;
        let taken = taker.take_moved(&url, item.origin, &row, NOW_S);
        let stats = taker.stats();
        // Behind the note there is nothing that counts.
        assert!(taken.is_none() && stats.known == 0 || stats.success == 1, "byte {at}: {stats:?}");
        let cut = taker.take_moved(&url, item.origin, &item.row[..at], NOW_S);
        assert!(at >= 64 || cut.is_some() == (at == 0), "cut at {at}");
    }
}

/// All that is told for a copy, from a place on; and where the next goes on.
fn copied(index: &mut DocIndex, from: &mut u64) -> (Vec<MovingItem>, Vec<String>) {
    let (mut items, mut in_scope) = (Vec::new(), Vec::new());
    loop {
        let piece = index.copying(*from).unwrap();
        assert!(!piece.is_torn);
        items.extend(piece.items);
        in_scope.extend(piece.in_scope.into_iter().map(|(_, url)| url.into()));
        *from = piece.upto;
        if piece.is_whole {
            return (items, in_scope);
        }
    }
}

/// Whoever takes a node over knows by its copy what that one knew: what is done is done, what it had found for others is told,
/// and what was out is pending.
#[test]
fn a_copy_has_everything_once_and_then_what_changes() {
    let folder = Folder::new("peers-copied");
    let (mut index, _) = folder.open(rules(&shared(&[0], &[3])));
    let url = |text: &str| CrawlUrl::parse(text).unwrap();
    index.seed(&url("http://h0/"), false, NOW_S);
    for path in ["http://h0/done", "http://h0/out", "http://h3/foreign", "http://h2/ours"] {
        link(path, &mut index, Origin::link(1, 1));
    }
    let mut from = 0;
    let (items, in_scope) = copied(&mut index, &mut from);
    let urls = |items: &[MovingItem]| items.iter().map(|item| item.url.to_string()).collect::<Vec<_>>();
    assert_eq!(
        urls(&items),
        ["http://h0/", "http://h0/done", "http://h0/out", "http://h3/foreign", "http://h2/ours"]
    );
    assert_eq!(in_scope, ["http://h0/"]);
    assert!(items.iter().all(|item| item.row.is_empty()));
    assert_eq!(copied(&mut index, &mut from), (vec![], vec![]), "nothing is told twice");
    let mut known = items;
    assert_eq!(candidates(&mut index, 9).len(), 3);
    answer(&mut index, "http://h0/", ResultCode::Ok);
    answer(&mut index, "http://h0/done", ResultCode::Ok);
    link("http://h0/new", &mut index, Origin::link(2, 2));
    let (items, _) = copied(&mut index, &mut from);
    assert_eq!(urls(&items), ["http://h0/new", "http://h0/", "http://h0/done"], "links before their page");
    known.extend(items);
    // Found, fetched and read between two looks: what it led to is told before it is done.
    assert_eq!(candidates(&mut index, 9).len(), 1);
    answer(&mut index, "http://h0/new", ResultCode::Ok);
    link("http://h0/newer", &mut index, Origin::link(4, 3));
    assert_eq!(candidates(&mut index, 9).len(), 1);
    answer(&mut index, "http://h0/newer", ResultCode::Ok);
    link("http://h0/newest", &mut index, Origin::link(5, 4));
    let (items, _) = copied(&mut index, &mut from);
    let with_row: Vec<(&str, bool)> = items.iter().map(|item| (&*item.url, !item.row.is_empty())).collect();
    let expected = [
        ("http://h0/newer", false),
        ("http://h0/newest", false),
        ("http://h0/new", true),
        ("http://h0/newer", true),
    ];
    assert_eq!(with_row, expected);
    known.extend(items);
    // Who takes over: the partition is another's until the index has everything.
    let mut taker = DocIndex::default();
    assert_eq!(taker.set_share(shared(&[2], &[3])).unwrap(), Ok(()));
    for MovingItem { url, origin, row, .. } in &known {
        assert!(taker.take_moved(&CrawlUrl::parse(url).unwrap(), *origin, row, NOW_S).is_some());
    }
    assert!(taker.take_over_scope(&url("http://h0/"), NOW_S));
    assert_eq!(taker.set_share(shared(&[2, 0], &[3])).unwrap(), Ok(()));
    let left = ["http://h0/newest", "http://h0/out", "http://h2/ours"];
    assert_eq!(pending(&mut taker), left, "also what was found for the one that takes over");
    assert_eq!((taker.stats().success, taker.stats().foreign), (4, 1), "{:?}", taker.stats());
    taker.flush(true).unwrap();
    let found = ToTell::Owner { node: THIRD, found: Origin { via: Origin::VIA_PEER, ..Origin::link(1, 1) } };
    let told = told(&taker, THIRD);
    assert!(told.contains(&("http://h3/foreign".to_string(), found)), "{told:?}");
    assert!(told.contains(&("http://h0/".to_string(), ToTell::All)), "{told:?}");
    // A copy that is begun anew has everything once.
    let mut from = 0;
    let (items, _) = copied(&mut index, &mut from);
    assert_eq!(items.iter().filter(|item| !item.row.is_empty()).count(), 4);
    assert_eq!(items.len(), 8);
}

#[test]
fn a_copy_of_which_nobody_takes_what_changes_is_torn() {
    let mut index = DocIndex::default();
    assert_eq!(index.set_share(share(|_| ME)).unwrap(), Ok(()));
    assert!(index.copying(64).unwrap().is_torn, "it was never begun");
    link("http://h0/a", &mut index, Origin::link(0, 1));
    assert!(!index.copying(0).unwrap().is_torn);
    assert_eq!(candidates(&mut index, 1).len(), 1);
    answer(&mut index, "http://h0/a", ResultCode::Ok);
    let end = index.ledger_end();
    let row = index.row(1);
    (1..=1 << 12).for_each(|doc_id| index.documents_mut().put(doc_id, row));
    assert!(!index.copying(end).unwrap().is_torn);
    (1..=1 + (1 << 12)).for_each(|doc_id| index.documents_mut().put(doc_id, row));
    assert!(index.copying(end).unwrap().is_torn);
    assert!(!index.copying(0).unwrap().is_torn);
}
