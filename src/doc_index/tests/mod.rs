//! The index as a whole: what it promises, over restarts and kills, against a model that has everything in maps.

use super::*;
use crate::base::{Rng, fingerprint};
use crate::proto::job::{Candidate, Provenance};
use crate::proto::record::ResultCode;
use crate::proto::url::CrawlUrl;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod peers;
mod restarts;

pub(super) const NOW_S: u32 = 1_800_000_000;

pub(super) fn link(url: &str, index: &mut DocIndex, origin: Origin) {
    index.discover([url], origin, NOW_S);
}

pub(super) fn candidates(index: &mut DocIndex, want: usize) -> Vec<Candidate> {
    index.candidates(want, &RejectList::default(), NOW_S)
}

pub(super) fn done(index: &mut DocIndex, doc_id: u32) -> bool {
    index.record(&Outcome::new(doc_id, ResultCode::Ok, NOW_S), None)
}

pub(super) struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nephila-index-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn open(&self, rules: IndexRules) -> (DocIndex, Opened) {
        DocIndex::open(&self.0, rules, NOW_S).unwrap()
    }

    pub fn open_with_seeds(&self) -> (DocIndex, Vec<CrawlUrl>) {
        let mut seeds = Vec::new();
        let tell = |url| seeds.push(url);
        let (index, _) = DocIndex::open_telling(&self.0, IndexRules::default(), NOW_S, tell).unwrap();
        (index, seeds)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_chain_of_redirects_is_known_to_its_last_link() {
    let mut index = DocIndex::default();
    let hop = Provenance::SEED.next_hop();
    link("http://a/1", &mut index, Origin::SEED);
    link("http://b/2", &mut index, Origin::new(1, hop));
    link("http://c/3", &mut index, Origin::new(2, hop.next_hop()));
    let found = candidates(&mut index, 9);
    let third = found.iter().find(|candidate| candidate.provenance.hops == 2).unwrap();
    let url = |text: &str| CrawlUrl::parse(text).unwrap();
    assert!(["http://a/1", "http://b/2", "http://c/3"].iter().all(|text| third.is_loop(&url(text))));
    assert!(!third.is_loop(&url("http://a/2")));
    assert_eq!(third.via.as_deref(), Some("http://b/2"));
    assert_eq!(found.iter().find(|candidate| candidate.provenance.hops == 0).unwrap().chain, None);
}

#[test]
fn a_document_comes_with_the_page_that_named_it_whatever_host_that_is_of() {
    for at_hand in [true, false] {
        let mut index = DocIndex::default();
        link("http://a/page?1", &mut index, Origin::SEED);
        link("http://b/", &mut index, Origin::SEED);
        let (origin, via) = (Origin::link(1, 1), if at_hand { "http://a/page?1" } else { "" });
        let named = ["http://a/x", "http://b/x", "http://ab/x"];
        index.discover_links(named.map(|url| Link { url, origin, via }), NOW_S);
        let found = candidates(&mut index, 9);
        let via: Vec<_> =
            found.iter().filter(|found| found.provenance.depth == 1).map(|found| &found.via).collect();
        assert_eq!(via, [&Some("http://a/page?1".into()); 3]);
    }
}

#[test]
fn a_url_is_known_once_and_answered_once() {
    let mut index = DocIndex::default();
    index.discover(["http://a/", "http://a/"], Origin::SEED, NOW_S);
    link("http://a/", &mut index, Origin::link(1, 3));
    let found = candidates(&mut index, 9);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].doc_id, found[0].provenance.depth), (1, 0));
    assert!(candidates(&mut index, 9).is_empty(), "handed out once");
    assert_eq!(index.stats().handed_out, 1);
    assert!(done(&mut index, 1));
    assert!(!done(&mut index, 1), "the first answer stands");
    let stats = IndexStats { known: 1, success: 1, hosts: 1, ..IndexStats::default() };
    assert_eq!(index.stats(), stats);
}

#[test]
fn what_comes_back_is_next() {
    let mut index = DocIndex::default();
    for page in 0..3 {
        link(&format!("http://a/{page}"), &mut index, Origin::SEED);
    }
    let first = candidates(&mut index, 1).remove(0);
    index.put_back(first.doc_id);
    assert_eq!(candidates(&mut index, 1), [first]);
}

#[test]
fn rejected_hosts_wait() {
    let mut index = DocIndex::default();
    link("http://a/", &mut index, Origin::SEED);
    link("http://b/", &mut index, Origin::SEED);
    let reject = [fingerprint(b"http://a")].into_iter().collect();
    let found = index.candidates(9, &reject, NOW_S);
    assert_eq!(found.iter().map(|found| found.url.as_str()).collect::<Vec<_>>(), ["http://b/"]);
    assert_eq!(candidates(&mut index, 9).len(), 1);
}

#[test]
fn a_failure_comes_back_when_it_is_due_and_not_before() {
    let mut index = DocIndex::default();
    link("http://a/", &mut index, Origin::SEED);
    let mut at_s = NOW_S;
    for (tries, wait_s) in [3_600, 7_200, 14_400, 28_800, 57_600].into_iter().enumerate() {
        let found = index.candidates(9, &RejectList::default(), at_s);
        assert_eq!(found.len(), 1, "try {tries}");
        index.record(&Outcome::new(found[0].doc_id, ResultCode::ConnectTimeout, at_s), None);
        let stats = index.stats();
        assert_eq!((stats.waiting, stats.pending, stats.next_due_s), (1, 0, Some(at_s + wait_s)));
        assert!(index.candidates(9, &RejectList::default(), at_s + wait_s - 1).is_empty());
        at_s += wait_s;
    }
    let found = index.candidates(9, &RejectList::default(), at_s);
    index.record(&Outcome::new(found[0].doc_id, ResultCode::ConnectTimeout, at_s), None);
    let stats = index.stats();
    assert_eq!((stats.waiting, stats.errors, stats.next_due_s), (0, 1, None));
}

#[test]
fn budgets_hold_for_hosts_and_domains_but_not_for_what_was_typed() {
    let rules = IndexRules { pages_per_host: 3, pages_per_domain: 5, ..IndexRules::default() };
    let mut index = DocIndex::in_memory(rules);
    for page in 0..10 {
        for host in ["a.example.org", "b.example.org", "c.example.net"] {
            link(&format!("http://{host}/{page}"), &mut index, Origin::link(1, 1));
        }
        link(&format!("http://typed.example.org/{page}"), &mut index, Origin::SEED);
    }
    let known = |index: &DocIndex, host: &str| index.host(&format!("http://{host}")).unwrap();
    let of = |host: &str| known(&index, host).known;
    assert_eq!([of("a.example.org"), of("b.example.org"), of("c.example.net")], [3, 2, 3]);
    assert_eq!(of("typed.example.org"), 10);
    assert_eq!(known(&index, "c.example.net").refused, 7);
    assert_eq!(index.stats().refused, 7 + 8 + 7);
}

#[test]
fn what_the_rules_of_today_keep_out_is_pending_tomorrow() {
    let folder = Folder::new("excluded");
    let (mut index, _) = folder.open(IndexRules::default());
    link("http://a/", &mut index, Origin::SEED);
    candidates(&mut index, 1);
    index.exclude(1, "deny rule 1", NOW_S);
    let stats = index.stats();
    assert_eq!((stats.excluded, stats.pending, stats.handed_out), (1, 0, 0));
    let found = index.look("http://a/").unwrap().unwrap();
    assert_eq!((found.state(), found.note.reason.as_deref()), (DocState::Excluded, Some("deny rule 1")));
    index.flush(false).unwrap();
    drop(index);
    let (index, seeds) = folder.open_with_seeds();
    assert_eq!((index.stats().pending, seeds.len()), (1, 1));
}

#[test]
fn another_process_looks_while_this_one_writes() {
    let folder = Folder::new("view");
    let (mut index, _) = folder.open(IndexRules::default());
    for page in 0..2_000 {
        link(&format!("http://h{}/{page}", page % 10), &mut index, Origin::link(1, 1));
    }
    let found = candidates(&mut index, 500);
    for candidate in &found {
        done(&mut index, candidate.doc_id);
    }
    index.flush(false).unwrap();
    for closed in [false, true] {
        let view = IndexView::open(&folder.0).unwrap().unwrap();
        for page in [0, 1, 777, 1_999] {
            let url = format!("http://h{}/{page}", page % 10);
            let seen = view.find(&url).unwrap().unwrap();
            assert_eq!((&*seen.discovered.url, seen.doc_id), (&*url, page + 1), "closed: {closed}");
            assert_eq!(Some(&seen), index.look(&url).unwrap().as_ref());
            assert_eq!(seen.state() == DocState::Success, found.iter().any(|c| c.doc_id == seen.doc_id));
        }
        assert_eq!(view.find("http://h1/nowhere").unwrap(), None);
        let mut count = 0;
        view.each(|_, _, _| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(count, 2_000);
        index.close().unwrap();
    }
    assert!(IndexView::open(&folder.0.join("nowhere")).unwrap().is_none());
}

#[test]
fn a_foreign_file_is_left_alone() {
    let folder = Folder::new("foreign");
    fs::write(folder.0.join("ledger"), [7; 100]).unwrap();
    assert!(matches!(DocIndex::open(&folder.0, IndexRules::default(), 1), Err(IndexError::Foreign(_))));
    assert_eq!(fs::read(folder.0.join("ledger")).unwrap(), [7; 100]);
    // One that was killed before its first line is begun anew.
    fs::write(folder.0.join("ledger"), [7; 9]).unwrap();
    let (index, _) = folder.open(IndexRules::default());
    assert_eq!(index.stats().known, 0);
}

/// What must be true of an index, whatever was done to it.
#[derive(Default)]
struct Model {
    /// URL and the number of answers that were made durable.
    known: BTreeMap<String, u32>,
    /// Handed out and not answered for.
    open: BTreeMap<u32, String>,
}

/// Copies the files as a kill would leave them at this instant: what was written is there.
fn killed(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            killed(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

/// A crawl with kills: nothing that was told is forgotten, nothing is handed out twice but what was open at a kill.
fn crawl_with_kills(seed: u64, memory_bytes: usize) {
    let folder = Folder::new(&format!("kills-{seed}"));
    let image = Folder::new(&format!("kills-image-{seed}"));
    let rules = IndexRules { memory_bytes, ..IndexRules::default() };
    let mut rng = Rng::new(seed);
    let mut model = Model::default();
    let (mut index, _) = folder.open(rules.clone());
    let url = |n: u64| format!("http://h{}.test/{}/{n}", n % 13, n % 7);
    for step in 0..400 {
        match rng.below(10) {
            0..4 => {
                let links: Vec<String> = (0..rng.below(60)).map(|_| url(rng.below(3_000))).collect();
                index.discover(links.iter().map(String::as_str), Origin::link(1, rng.below(3) as u16), NOW_S);
                for link in links {
                    model.known.entry(link).or_default();
                }
            }
            4..6 => {
                for found in candidates(&mut index, rng.below(40) as usize) {
                    let url = found.url.to_string();
                    assert_eq!(model.known.get(&url), Some(&0), "seed {seed}: {url} again");
                    assert!(model.open.insert(found.doc_id, url).is_none());
                }
            }
            6..8 => {
                let answered: Vec<u32> = model.open.keys().copied().filter(|_| rng.below(2) == 0).collect();
                for doc_id in answered {
                    assert!(done(&mut index, doc_id));
                    let url = model.open.remove(&doc_id).unwrap();
                    *model.known.get_mut(&url).unwrap() += 1;
                }
            }
            8 => {
                if let Some((&doc_id, _)) = model.open.iter().next() {
                    index.put_back(doc_id);
                    model.open.remove(&doc_id);
                }
            }
            _ => {
                index.flush(rng.below(2) == 0).unwrap();
                if rng.below(4) == 0 {
                    index.close().unwrap();
                }
                killed(&folder.0, &image.0);
                drop(index);
                killed(&image.0, &folder.0);
                let opened;
                (index, opened) = folder.open(rules.clone());
                assert_eq!(opened.torn_bytes, 0, "seed {seed} step {step}");
                model.open.clear();
                let stats = index.stats();
                let answered = model.known.values().filter(|&&answers| answers > 0).count() as u64;
                assert_eq!(stats.success, answered, "seed {seed} step {step}");
                // A parked link may stand twice until it is resolved.
                assert!(stats.pending >= model.known.len() as u64 - answered, "seed {seed} step {step}");
            }
        }
    }
    loop {
        let found = candidates(&mut index, 100);
        if found.is_empty() {
            break;
        }
        for candidate in found {
            let answers = model.known.get_mut(candidate.url.as_str()).unwrap();
            assert_eq!(*answers, 0, "seed {seed}: {} again", candidate.url);
            assert!(done(&mut index, candidate.doc_id));
            *answers += 1;
        }
    }
    for doc_id in std::mem::take(&mut model.open).into_keys() {
        assert!(done(&mut index, doc_id));
    }
    assert_eq!(index.stats().known, model.known.len() as u64, "seed {seed}");
    assert_eq!(index.stats().success, model.known.len() as u64, "seed {seed}: nothing is forgotten");
}

#[test]
fn nothing_is_forgotten_or_done_twice_over_kills() {
    for seed in 0..12 {
        crawl_with_kills(seed, 1 << 30);
    }
}

#[test]
fn nothing_is_forgotten_when_memory_is_short() {
    for seed in 100..112 {
        crawl_with_kills(seed, 2_000);
    }
}

#[test]
fn a_page_is_never_done_without_its_links() {
    // A crash of the machine: any part of the ledger's end is gone, while the rows are all there.
    let folder = Folder::new("torn");
    let image = Folder::new("torn-image");
    let (mut index, _) = folder.open(IndexRules::default());
    link("http://a/0", &mut index, Origin::SEED);
    let mut links = BTreeMap::new();
    for page in 0..40 {
        let found = candidates(&mut index, 1).remove(0);
        let below: Vec<String> = (0..3).map(|n| format!("http://a/{page}.{n}")).collect();
        index.discover(below.iter().map(String::as_str), Origin::link(found.doc_id, 1), NOW_S);
        links.insert(found.url.to_string(), below);
        done(&mut index, found.doc_id);
        index.flush(false).unwrap();
    }
    drop(index);
    killed(&folder.0, &image.0);
    let whole = fs::metadata(image.0.join("ledger")).unwrap().len();
    for cut in (64..whole).step_by(41) {
        killed(&image.0, &folder.0);
        fs::OpenOptions::new().write(true).open(folder.0.join("ledger")).unwrap().set_len(cut).unwrap();
        let (index, _) = folder.open(IndexRules::default());
        let mut known = BTreeSet::new();
        let mut finished = Vec::new();
        for doc_id in 1..index.next_doc() {
            let found = index.document(doc_id).unwrap().unwrap();
            known.insert(found.discovered.url.to_string());
            finished.extend((found.state() == DocState::Success).then(|| found.discovered.url.to_string()));
        }
        for page in finished {
            assert!(links[&page].iter().all(|link| known.contains(link)), "{page} is done, cut at {cut}");
        }
        assert_eq!(index.stats().pending + index.stats().success, index.stats().known);
    }
}

#[test]
fn a_row_that_a_crash_made_void_stays_void() {
    // A row is there, and what it relies upon is not.
    let folder = Folder::new("void");
    let (mut index, _) = folder.open(IndexRules::default());
    link("http://a/0", &mut index, Origin::SEED);
    index.flush(true).unwrap();
    let whole = fs::metadata(folder.0.join("ledger")).unwrap().len();
    candidates(&mut index, 1);
    index.discover(["http://a/1", "http://a/2"], Origin::link(1, 1), NOW_S);
    done(&mut index, 1);
    candidates(&mut index, 1);
    done(&mut index, 2);
    index.flush(true).unwrap();
    drop(index);
    fs::OpenOptions::new().write(true).open(folder.0.join("ledger")).unwrap().set_len(whole).unwrap();
    // The ledger grows past where it was, with other URLs under the numbers that were lost.
    let (mut index, _) = folder.open(IndexRules::default());
    assert_eq!((index.stats().pending, index.stats().known), (1, 1));
    let others: Vec<String> = (0..50).map(|n| format!("http://b/{n}")).collect();
    index.discover(others.iter().map(String::as_str), Origin::link(1, 1), NOW_S);
    index.flush(true).unwrap();
    drop(index);
    let (index, _) = folder.open(IndexRules::default());
    assert_eq!((index.stats().success, index.stats().pending), (0, 51), "nobody was answered for");
}

#[test]
fn a_note_that_a_crash_took_is_none_and_in_nobodys_way() {
    let folder = Folder::new("notes");
    let note = |text: &str| Some(Box::new(Note { reason: Some(text.into()), ..Note::default() }));
    let rules = IndexRules { again: true, ..IndexRules::default() };
    let (mut index, _) = folder.open(rules.clone());
    link("http://a/", &mut index, Origin::SEED);
    candidates(&mut index, 1);
    index.record(&Outcome { note: note("first"), ..Outcome::new(1, ResultCode::Malformed, NOW_S) }, None);
    index.flush(true).unwrap();
    drop(index);
    fs::write(folder.0.join("notes"), []).unwrap();
    let (mut index, _) = folder.open(rules.clone());
    link("http://b/", &mut index, Origin::SEED);
    assert_eq!(candidates(&mut index, 9).len(), 2);
    index.record(&Outcome { note: note("other"), ..Outcome::new(2, ResultCode::Malformed, NOW_S) }, None);
    assert_eq!(index.look("http://a/").unwrap().unwrap().note, Note::default());
    index.record(&Outcome { note: note("again"), ..Outcome::new(1, ResultCode::Malformed, NOW_S) }, None);
    index.flush(true).unwrap();
    let reason = |index: &DocIndex, url: &str| index.look(url).unwrap().unwrap().note.reason;
    assert_eq!(reason(&index, "http://a/").as_deref(), Some("again"));
    assert_eq!(reason(&index, "http://b/").as_deref(), Some("other"));
}

#[test]
fn what_is_with_somebody_is_not_woken() {
    let mut index = DocIndex::default();
    let url = CrawlUrl::parse("http://a/").unwrap();
    index.seed(&url, true, NOW_S);
    candidates(&mut index, 1);
    index.record(&Outcome::new(1, ResultCode::ConnectTimeout, NOW_S), None);
    assert_eq!(index.stats().waiting, 1);
    // Typed again, and handed out, when the time of its retry comes.
    index.seed(&url, false, NOW_S);
    assert_eq!(candidates(&mut index, 9).len(), 1);
    assert!(index.candidates(9, &RejectList::default(), NOW_S + 9_999).is_empty());
    assert!(done(&mut index, 1));
    let stats = index.stats();
    assert_eq!((stats.success, stats.pending, stats.handed_out), (1, 0, 0));
    assert_eq!(index.host("http://a").unwrap().handed_out, 0);
}

#[test]
fn what_is_due_twice_at_one_time_is_woken_once() {
    let recrawl = Some(Recrawl { min_s: 10, start_s: 100, max_s: 1_000 });
    let rules = IndexRules { schedule: Schedule { recrawl, ..Schedule::default() }, ..IndexRules::default() };
    let mut index = DocIndex::in_memory(rules);
    link("http://a/", &mut index, Origin::SEED);
    candidates(&mut index, 1);
    index.record(&Outcome { digest: 1, ..Outcome::new(1, ResultCode::Ok, NOW_S) }, None);
    // A sitemap brings it forward, and a rule makes it due when it would have been.
    index.changed("http://a/", NOW_S + 30, NOW_S + 40);
    assert_eq!(index.candidates(9, &RejectList::default(), NOW_S + 40).len(), 1);
    index.record(&Outcome { digest: 2, ..Outcome::new(1, ResultCode::Ok, NOW_S + 40) }, Some(60));
    assert_eq!(index.candidates(9, &RejectList::default(), NOW_S + 100).len(), 1);
    index.record(&Outcome { digest: 3, ..Outcome::new(1, ResultCode::Ok, NOW_S + 100) }, Some(60));
    let stats = index.stats();
    assert_eq!((stats.success, stats.pending, stats.handed_out), (1, 0, 0));
}

#[test]
fn damage_in_the_middle_of_the_ledger_lets_its_urls_be_found_again() {
    let folder = Folder::new("hole");
    let (mut index, _) = folder.open(IndexRules::default());
    let urls: Vec<String> = (0..500).map(|n| format!("http://a/{n}")).collect();
    index.discover(urls.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
    index.close().unwrap();
    drop(index);
    let mut ledger = fs::read(folder.0.join("ledger")).unwrap();
    let middle = ledger.len() / 2;
    ledger[middle] ^= 1;
    fs::write(folder.0.join("ledger"), ledger).unwrap();
    let (mut index, opened) = folder.open(IndexRules::default());
    let lost = 500 - index.stats().known;
    assert!(opened.damaged_bytes > 0 && lost > 0 && lost < 200, "{lost} lost");
    index.discover(urls.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
    assert_eq!((index.stats().known, index.stats().pending), (500, 500), "each once");
}

#[test]
fn a_second_visit_asks_whether_it_has_changed() {
    use crate::proto::http1::Validators;
    use crate::proto::job::Held;
    let folder = Folder::new("again");
    let segments = Segments { before: vec![3], first_new: 9 };
    let rules = IndexRules { segments, again: true, ..IndexRules::default() };
    let held = |segment| {
        let validators = Validators { etag: (*b"\"x\"").into(), last_modified: Box::default() };
        Some(Held { validators, segment })
    };
    {
        let (mut index, _) = folder.open(rules.clone());
        for (page, segment) in [("a", 3), ("b", 4), ("c", 9)] {
            link(&format!("http://{page}/"), &mut index, Origin::SEED);
            let doc_id = candidates(&mut index, 1)[0].doc_id;
            let note = Some(Box::new(Note { held: held(segment), ..Note::default() }));
            index.record(&Outcome { note, digest: 5, ..Outcome::new(doc_id, ResultCode::Ok, NOW_S) }, None);
        }
        index.flush(true).unwrap();
    }
    let (mut index, _) = folder.open(rules.clone());
    let found = candidates(&mut index, 9);
    let held_of = |url: &str| found.iter().find(|c| c.url.as_str() == url).unwrap().held.as_deref().cloned();
    assert_eq!(held_of("http://a/"), held(3));
    assert_eq!(held_of("http://b/"), None, "its segment is gone");
    assert_eq!(held_of("http://c/"), None, "that number is used again by this process");
    for candidate in &found {
        index.record(&Outcome::new(candidate.doc_id, ResultCode::NotModified, NOW_S + 5), None);
    }
    let seen = index.look("http://a/").unwrap().unwrap();
    assert_eq!((seen.note.held, seen.row.unwrap().fetches), (held(3), 2), "what is stored is still true");
    index.flush(true).unwrap();
    let (index, _) = folder.open(IndexRules { again: false, ..rules });
    assert_eq!((index.stats().success, index.stats().pending), (3, 0));
}

#[test]
fn a_crawl_that_looks_again_takes_up_what_an_earlier_one_left() {
    let folder = Folder::new("recrawl");
    {
        let (mut index, _) = folder.open(IndexRules::default());
        link("http://a/", &mut index, Origin::SEED);
        candidates(&mut index, 1);
        done(&mut index, 1);
        index.flush(true).unwrap();
    }
    let recrawl = Some(Recrawl { min_s: 10, start_s: 100, max_s: 1_000 });
    let rules = IndexRules { schedule: Schedule { recrawl, ..Schedule::default() }, ..IndexRules::default() };
    let (mut index, _) = folder.open(rules.clone());
    assert_eq!(index.stats().next_due_s, Some(NOW_S + 100));
    assert!(candidates(&mut index, 9).is_empty());
    let found = index.candidates(9, &RejectList::default(), NOW_S + 100);
    assert_eq!(found.len(), 1);
    let at_s = NOW_S + 100;
    index.record(&Outcome { digest: 1, ..Outcome::new(1, ResultCode::Ok, at_s) }, Some(7));
    assert_eq!(index.stats().next_due_s, Some(at_s + 7), "a rule gives it seven seconds");
    index.flush(true).unwrap();
    // Without looking again it is simply done.
    let (index, _) = folder.open(IndexRules::default());
    assert_eq!((index.stats().waiting, index.stats().success), (0, 1));
}
