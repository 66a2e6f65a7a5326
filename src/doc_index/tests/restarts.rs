//! What one process leaves to the next.

use super::*;

#[test]
fn a_clock_that_was_wrong_once_parks_nothing_for_years() {
    let folder = Folder::new("clock");
    let recrawl = Some(Recrawl { min_s: 10, start_s: 100, max_s: 1_000 });
    let rules = |recrawl, fixed_s_max| IndexRules {
        schedule: Schedule { retry_first_s: 60, recrawl, fixed_s_max, ..Schedule::default() },
        ..IndexRules::default()
    };
    let wrong_s = u32::MAX - 5;
    {
        let (mut index, _) = folder.open(rules(recrawl, 0));
        index.discover(["http://a/had", "http://b/failed", "http://c/typed"], Origin::SEED, wrong_s);
        for found in index.candidates(9, &RejectList::default(), wrong_s) {
            let failed = found.url.as_str() == "http://b/failed";
            let result = if failed { ResultCode::ReadTimeout } else { ResultCode::Ok };
            index.record(&Outcome { digest: 7, ..Outcome::new(found.doc_id, result, wrong_s) }, None);
        }
        index.flush(true).unwrap();
    }
    // A minute for the failure and a hundred seconds for the others, as from an answer at this moment.
    for rules in [rules(recrawl, 5_000), rules(recrawl, 0)] {
        let (mut index, _) = folder.open(rules);
        assert_eq!((index.stats().waiting, index.stats().next_due_s), (3, Some(NOW_S + 60)));
        assert!(index.candidates(9, &RejectList::default(), NOW_S + 59).is_empty());
        index.changed("http://c/typed", NOW_S - 5, NOW_S);
        assert_eq!(candidates(&mut index, 9).len(), 1, "a sitemap knows better than that clock");
        index.put_back(3);
        assert_eq!(index.candidates(9, &RejectList::default(), NOW_S + 100).len(), 3);
    }
    // Without looking again only the failure waits.
    let (index, _) = folder.open(rules(None, 0));
    assert_eq!((index.stats().waiting, index.stats().next_due_s), (1, Some(NOW_S + 60)));
    drop(index);
    // One that looks again and finds no time noted goes by when it was had, but not by a time to come.
    let (mut index, _) = folder.open(rules(None, 0));
    let found = index.look("http://a/had").unwrap().unwrap();
    assert_eq!(found.row.unwrap().fetched_s, wrong_s);
    index.documents_mut().put(1, Row { due_s: 0, ..found.row.unwrap() });
    index.flush(true).unwrap();
    drop(index);
    let (index, _) = folder.open(rules(recrawl, 0));
    let found = index.look("http://a/had").unwrap().unwrap();
    assert_eq!(found.row.unwrap().due_s, NOW_S + 100);
}

#[test]
fn a_page_read_by_other_rules_is_one_until_it_is_read_again() {
    let folder = Folder::new("other-rules");
    let rules = |signature| IndexRules { signature, again: true, ..IndexRules::default() };
    {
        let (mut index, _) = folder.open(rules(1));
        for url in ["http://a/", "http://b/", "http://c/"] {
            link(url, &mut index, Origin::SEED);
        }
        for found in candidates(&mut index, 9) {
            done(&mut index, found.doc_id);
            assert!(!index.was_read_by_other_rules(found.doc_id));
        }
        index.flush(true).unwrap();
    }
    // The first process with other rules is stopped before it has asked for any.
    folder.open(rules(2));
    {
        let (mut index, _) = folder.open(rules(2));
        for found in candidates(&mut index, 9) {
            assert!(index.was_read_by_other_rules(found.doc_id));
        }
        index.was_read_again(1);
        index.record(&Outcome::new(1, ResultCode::NotModified, NOW_S), None);
        // The store could not tell its links.
        index.record(&Outcome::new(3, ResultCode::NotModified, NOW_S), None);
        // This one was not read, nor has its head any links.
        let note = Some(Box::new(Note { head_only: true, ..Note::default() }));
        index.record(&Outcome::new(2, ResultCode::ReadTimeout, NOW_S), None);
        assert_eq!(candidates(&mut index, 9).len(), 0);
        index.seed(&CrawlUrl::parse("http://b/").unwrap(), true, NOW_S);
        assert_eq!(candidates(&mut index, 9).len(), 1);
        index.record(&Outcome { note, ..Outcome::new(2, ResultCode::Ok, NOW_S) }, None);
        index.flush(true).unwrap();
    }
    let (mut index, _) = folder.open(rules(2));
    assert_eq!([1, 2, 3].map(|doc_id| index.was_read_by_other_rules(doc_id)), [false, true, true]);
    drop(index);
    let (mut index, _) = folder.open(rules(1));
    assert_eq!([1, 2, 3].map(|doc_id| index.was_read_by_other_rules(doc_id)), [true, true, true]);
}

#[test]
fn a_row_never_finds_the_validators_of_another_version() {
    use crate::proto::http1::Validators;
    use crate::proto::job::Held;
    let (folder, image) = (Folder::new("version"), Folder::new("version-image"));
    let rules = IndexRules { again: true, ..IndexRules::default() };
    let fetched = |index: &mut DocIndex, etag: &str, digest| {
        let validators = Validators { etag: etag.as_bytes().into(), last_modified: Box::default() };
        let note = Some(Box::new(Note { held: Some(Held { validators, segment: 1 }), ..Note::default() }));
        assert_eq!(candidates(index, 1).len(), 1);
        index.record(&Outcome { note, digest, ..Outcome::new(1, ResultCode::Ok, NOW_S) }, None);
        index.flush(true).unwrap();
    };
    let (mut index, _) = folder.open(rules.clone());
    link("http://a/", &mut index, Origin::SEED);
    fetched(&mut index, "\"1\"", 11);
    drop(index);
    killed(&folder.0, &image.0);
    let (mut index, _) = folder.open(rules.clone());
    let etag =
        |index: &DocIndex| index.look("http://a/").unwrap().unwrap().note.held.map(|h| h.validators.etag);
    assert_eq!(etag(&index).as_deref(), Some(&b"\"1\""[..]));
    fetched(&mut index, "\"2\"", 22);
    assert_eq!(etag(&index).as_deref(), Some(&b"\"2\""[..]));
    drop(index);
    // A crash took the row, and left the note, which has the place of the one before.
    assert_eq!(
        fs::metadata(folder.0.join("notes")).unwrap().len(),
        fs::metadata(image.0.join("notes")).unwrap().len()
    );
    fs::copy(folder.0.join("notes"), image.0.join("notes")).unwrap();
    let (mut index, _) = image.open(rules.clone());
    assert_eq!(etag(&index), None);
    assert_eq!(candidates(&mut index, 1)[0].held, None, "it is asked for whole");
}

#[test]
fn a_crawl_that_does_not_look_again_moves_no_time_to_do_so() {
    let folder = Folder::new("month");
    let month_s = 2_592_000;
    let recrawl = Some(Recrawl { min_s: month_s, start_s: month_s, max_s: month_s });
    let often = Some(Recrawl { min_s: 10, start_s: 10, max_s: 10 });
    let rules = |recrawl| IndexRules {
        schedule: Schedule { recrawl, ..Schedule::default() },
        ..IndexRules::default()
    };
    let (mut index, _) = folder.open(rules(recrawl));
    link("http://a/", &mut index, Origin::SEED);
    let doc_id = candidates(&mut index, 1)[0].doc_id;
    assert!(done(&mut index, doc_id));
    index.flush(true).unwrap();
    drop(index);
    // Neither a plain crawl, nor one in more of a hurry, nor a machine whose clock was not set.
    drop(folder.open(rules(None)));
    drop(folder.open(rules(often)));
    drop(DocIndex::open(&folder.0, rules(recrawl), 1_000).unwrap());
    let (index, _) = folder.open(rules(recrawl));
    assert_eq!((index.stats().waiting, index.stats().next_due_s), (1, Some(NOW_S + month_s)));
}

#[test]
fn parked_links_outlast_a_start_that_is_torn() {
    let folder = Folder::new("parked");
    let image = Folder::new("parked-image");
    let rules = IndexRules { memory_bytes: 2_000, ..IndexRules::default() };
    let (mut index, _) = folder.open(rules.clone());
    let urls: Vec<String> = (0..9_000).map(|n| format!("http://a/{n}")).collect();
    index.discover(urls.iter().map(String::as_str), Origin::link(0, 1), NOW_S);
    index.close().unwrap();
    assert!(!index.bytes().seen_is_complete, "the test is of nothing if memory knows all");
    let more: Vec<String> = (0..200).map(|n| format!("http://b/{n}")).collect();
    index.discover(more.iter().map(String::as_str), Origin::link(1, 1), NOW_S);
    let parked = |index: &DocIndex| more.iter().filter(|url| index.is_parked(url)).count();
    assert!(parked(&index) > 100, "{} are parked", parked(&index));
    index.flush(true).unwrap();
    drop(index);
    let before = fs::metadata(folder.0.join("ledger")).unwrap().len();
    let (mut index, _) = folder.open(rules.clone());
    index.flush(true).unwrap();
    assert!(parked(&index) > 100, "they are parked still");
    candidates(&mut index, 10_000);
    index.flush(true).unwrap();
    drop(index);
    killed(&folder.0, &image.0);
    let whole = fs::metadata(image.0.join("ledger")).unwrap().len();
    assert!(whole > before);
    for cut in (before..=whole).step_by(97) {
        killed(&image.0, &folder.0);
        fs::OpenOptions::new().write(true).open(folder.0.join("ledger")).unwrap().set_len(cut).unwrap();
        let (mut index, _) = folder.open(rules.clone());
        candidates(&mut index, 20_000);
        assert_eq!(index.stats().known, 9_200, "the ledger was cut at {cut} of {whole}");
    }
}

#[test]
fn a_row_that_a_crash_made_void_keeps_what_was_wished() {
    let folder = Folder::new("void-wish");
    let url = CrawlUrl::parse("http://a/").unwrap();
    let (mut index, _) = folder.open(IndexRules::default());
    index.seed(&url, true, NOW_S);
    index.flush(true).unwrap();
    index.seed(&url, false, NOW_S);
    let found = candidates(&mut index, 1).remove(0);
    assert!(!found.provenance.head_only);
    let before = fs::metadata(folder.0.join("ledger")).unwrap().len();
    index.discover(["http://a/1"], Origin::link(found.doc_id, 1), NOW_S);
    assert!(done(&mut index, found.doc_id));
    index.flush(true).unwrap();
    drop(index);
    fs::OpenOptions::new().write(true).open(folder.0.join("ledger")).unwrap().set_len(before).unwrap();
    let (mut index, _) = folder.open(IndexRules::default());
    let found = candidates(&mut index, 9);
    assert_eq!(found.iter().map(|found| found.provenance.head_only).collect::<Vec<_>>(), [false]);
}
