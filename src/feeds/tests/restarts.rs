//! Files that end anywhere, or are not what they were.

use super::*;
use std::collections::BTreeSet;
use std::fs;

const FILES: [&str; 3] = ["feeds/journal", "stories/ledger", "stories/rows"];

type Saved = [Vec<u8>; 3];

fn save(dir: &Path) -> Saved {
    FILES.map(|name| fs::read(dir.join(name)).unwrap())
}

fn lay_out(dir: &Path, saved: &[&[u8]; 3]) {
    let _ = fs::remove_dir_all(dir.join("stories/seen"));
    for (name, bytes) in FILES.iter().zip(saved) {
        fs::write(dir.join(name), bytes).unwrap();
    }
}

fn url(n: u32) -> String {
    format!("http://a.example/{n}")
}

fn one(n: u32) -> EntryRead {
    entry(&url(n), &format!("g{n}"), &format!("Story {n}"), NOON)
}

/// The second poll of a feed, in which one is known, two are new and one is a duplicate; and a feed that is new.
fn second(feeds: &mut Feeds) {
    let (a, b) = (FeedId(1), add(feeds, "http://b.example/feed", "b"));
    let retitled = entry(&url(9), "", "Story 1", NOON);
    brings(feeds, a, &[one(1), one(3), retitled.clone(), one(4)], NOON + 400);
    brings(feeds, b, &[one(1), one(2)], NOON + 401);
}

/// Files after the first flush and after the second.
fn two_flushes(folder: &Folder) -> (Saved, Saved) {
    let mut feeds = folder.open(FeedRules::default());
    let a = add(&mut feeds, "http://a.example/feed", "a");
    brings(&mut feeds, a, &[one(1), one(2)], NOON);
    feeds.flush(false).unwrap();
    let first = save(&folder.0);
    second(&mut feeds);
    feeds.flush(false).unwrap();
    (first, save(&folder.0))
}

/// Opens it, lets the polls happen again, and says what stories there are then, which are never two.
fn repeated(folder: &Folder, whole: bool) -> Vec<(u32, String)> {
    let (mut feeds, told) = Feeds::open(&folder.0, FeedRules::default()).unwrap();
    second(&mut feeds);
    feeds.flush(false).unwrap();
    drop(feeds);
    let view = FeedsView::open(&folder.0).unwrap().unwrap();
    assert_eq!(view.feeds().count(), 2);
    let mut found: Vec<(u32, String)> =
        stories(&folder.0).iter().map(|story| (story.source.0, story.url.to_string())).collect();
    found.sort();
    let once: BTreeSet<_> = found.iter().collect();
    assert_eq!(once.len(), found.len(), "{found:?}");
    if whole {
        let all = [(1, url(1)), (1, url(2)), (1, url(3)), (1, url(4)), (2, url(1)), (2, url(2))];
        assert_eq!(found, all, "{told:?}");
    }
    found
}

#[test]
fn a_kill_at_any_byte_of_a_flush_repeats_and_neither_loses_nor_doubles_a_story() {
    let folder = Folder::new("cuts");
    let ([journal, ledger, rows], [journal_2, ledger_2, rows_2]) = two_flushes(&folder);
    let mut cases = 0;
    let mut check = |saved: [&[u8]; 3]| {
        lay_out(&folder.0, &saved);
        repeated(&folder, true);
        cases += 1;
    };
    for cut in journal.len()..=journal_2.len() {
        // What stories refer to comes first, what came of polls last.
        check([&journal_2[..cut], &ledger, &rows]);
        check([&journal_2[..cut], &ledger_2, &rows_2]);
    }
    for cut in ledger.len()..=ledger_2.len() {
        check([&journal, &ledger_2[..cut], &rows]);
        // The power failed: the disk has the end, and not what was to be there before.
        check([&journal_2, &ledger_2[..cut], &rows_2]);
    }
    for cut in rows.len()..=rows_2.len() {
        check([&journal_2, &ledger_2, &rows_2[..cut]]);
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn a_byte_that_is_not_what_it_was_is_told_or_does_no_harm() {
    let folder = Folder::new("flips");
    let (_, saved) = two_flushes(&folder);
    let (mut refused, mut told, mut harmless) = (0, 0, 0);
    for file in 0..3 {
        for at in 0..saved[file].len() {
            let mut damaged = saved.clone();
            damaged[file][at] ^= 1 << (at % 8);
            lay_out(&folder.0, &damaged.each_ref().map(Vec::as_slice));
            match Feeds::open(&folder.0, FeedRules::default()) {
                Err(e) => {
                    assert!(
                        e.kind() == std::io::ErrorKind::InvalidData && e.to_string().contains('('),
                        "{e}"
                    );
                    refused += 1;
                    continue;
                }
                Ok((_, about)) if !about.is_empty() => told += 1,
                Ok(_) => harmless += 1,
            }
            lay_out(&folder.0, &damaged.each_ref().map(Vec::as_slice));
            let is_told = !Feeds::open(&folder.0, FeedRules::default()).unwrap().1.is_empty();
            lay_out(&folder.0, &damaged.each_ref().map(Vec::as_slice));
            repeated(&folder, !is_told);
        }
    }
    assert!(refused > 100 && told > 100 && harmless > 50, "{refused} {told} {harmless}");
}

#[test]
fn the_journal_is_made_anew_when_half_of_it_is_old() {
    let folder = Folder::new("compact");
    let mut feeds = folder.open(FeedRules::default());
    let ids: Vec<FeedId> =
        (0..10).map(|n| add(&mut feeds, &format!("http://{n}.example/feed"), "")).collect();
    let mut longest = 0;
    for round in 0..300 {
        for &feed in &ids {
            same(&mut feeds, feed, NOON + round * 300);
        }
        feeds.flush(false).unwrap();
        longest = longest.max(fs::metadata(folder.0.join(FILES[0])).unwrap().len());
    }
    assert!(longest < 400_000, "{longest}");
    drop(feeds);
    let feeds = folder.open(FeedRules::default());
    assert!(feeds.feeds().all(|feed| feed.polls().polls() == 300));
    let view = FeedsView::open(&folder.0).unwrap().unwrap();
    let last = view.last_polls(FeedId(3), 5);
    assert_eq!(last.iter().map(Polls::polls).collect::<Vec<_>>(), [296, 297, 298, 299, 300]);
}

#[test]
fn a_feed_takes_300_bytes_of_memory_and_a_story_40() {
    let folder = Folder::new("memory");
    let mut feeds = folder.open(FeedRules { memory_bytes: 16 << 20, ..FeedRules::default() });
    let mut first = FeedId(0);
    for n in 0..20_000 {
        let url = format!("https://www.example-{n}.org/section/feeds/rss.xml");
        first = feeds
            .add(&NewFeed { url: &url, source: "one", title: "Example news of today" }, NOON)
            .unwrap()
            .feed;
        feeds.bind(first, n + 1);
    }
    let of_feeds = feeds.ram_bytes().0;
    assert!(of_feeds <= 20_000 * 300, "{} bytes a feed", of_feeds / 20_000);
    let mut post = |from: u32| {
        for part in (from..from + 50_000).step_by(1_000) {
            let all: Vec<EntryRead> = (part..part + 1_000).map(one).collect();
            let mut new = Vec::new();
            feeds.read(first, &listing(&all), NOON, |story| new.push(story.story)).unwrap();
            for (at, story) in new.into_iter().enumerate() {
                let doc_id = 100_000 + part + at as u32;
                feeds.downloads(story, doc_id).unwrap();
                feeds.fetched(doc_id, ResultCode::Ok, NOON).unwrap();
            }
            feeds.flush(false).unwrap();
        }
        feeds.ram_bytes().1
    };
    let (before, after) = (post(0), post(50_000));
    assert!(after - before <= 50_000 * 40, "{} bytes a story", (after - before) / 50_000);
    let on_disk = fs::metadata(folder.0.join(FILES[1])).unwrap().len()
        + fs::metadata(folder.0.join(FILES[2])).unwrap().len();
    let texts: usize =
        (0..100_000).map(|n| one(n).url.len() + one(n).guid.len() + one(n).title.len() + 2).sum();
    assert!(
        on_disk - texts as u64 <= 100_000 * 60,
        "{} bytes a story on disk",
        (on_disk - texts as u64) / 100_000
    );
}

/// Killed between what a poll brought and how it ended: the back-off begins anew all the same.
#[test]
fn a_poll_that_brought_news_counts_as_one_though_it_is_noted_by_the_next_process() {
    let folder = Folder::new("news");
    let mut feeds = folder.open(FeedRules::default());
    let a = add(&mut feeds, "http://a.example/feed", "a");
    brings(&mut feeds, a, &[one(1)], NOON);
    same(&mut feeds, a, NOON + 3_600);
    let later_s = NOON + 10 * 3_600;
    feeds.read(a, &listing(&[one(1), one(2)]), later_s, |_| {}).unwrap();
    feeds.flush(false).unwrap();
    drop(feeds);
    let mut feeds = folder.open(FeedRules::default());
    assert_eq!(brings(&mut feeds, a, &[one(1), one(2)], later_s), [""; 0], "they are known");
    assert_eq!(feeds.feed(a).unwrap().polls().due_s(), later_s + 300);
}
