use super::*;

fn url(n: u32) -> String {
    format!("http://a.example/{n}")
}

#[test]
fn a_story_is_known_by_url_guid_and_title_in_its_week() {
    let folder = Folder::new("dedup");
    let mut feeds = folder.open(FeedRules::default());
    let (a, b) =
        (add(&mut feeds, "http://a.example/feed", "a"), add(&mut feeds, "http://a.example/more", "a"));
    let other = add(&mut feeds, "http://b.example/feed", "b");
    let all = [
        entry(&url(1), "g1", "The first story", NOON),
        entry("http://a.example/", "home", "Home", NOON),
        entry(&url(2), "g2", "The second story", NOON),
    ];
    assert_eq!(brings(&mut feeds, a, &all, NOON), [url(1), url(2)]);
    let again = [
        entry(&url(1), "other", "Reworded", NOON),
        entry(&url(3), "g1", "Another title", NOON),
        entry(&url(4), "g4", "the FIRST story!", NOON + 86_400),
        entry(&url(5), "g5", "The first story", NOON + 7 * 86_400),
        entry(&url(6), "", "", 0),
    ];
    assert_eq!(brings(&mut feeds, b, &again, NOON + 60), [url(5), url(6)]);
    assert_eq!(brings(&mut feeds, other, &all, NOON + 60), [url(1), url(2)], "another source");
    let polls = *feeds.feed(b).unwrap().polls();
    assert_eq!((polls.dup_url(), polls.dup_guid(), polls.dup_title(), polls.found()), (1, 1, 1, 2));
    assert_eq!(feeds.feed(a).unwrap().polls().skipped(), 1);
    for is_closed in [false, true] {
        match is_closed {
            true => feeds.close().unwrap(),
            false => feeds.flush(true).unwrap(),
        }
        let view = StoriesView::open(&folder.0).unwrap().unwrap();
        let sources = feeds.sources().to_vec();
        let known = view.by_url(&url(4), &sources).unwrap();
        let [Known::Duplicate { of, by, week, .. }] = known[..] else { panic!("{known:?}") };
        assert_eq!((of, by, week.to_string()), (StoryId(1), DuplicateBy::Title, "2026-W47".to_string()));
        let known = view.by_url(&url(3), &sources).unwrap();
        assert!(matches!(known[..], [Known::Duplicate { of: StoryId(1), by: DuplicateBy::Guid, .. }]));
        assert_eq!(view.by_url(&url(1), &sources).unwrap().len(), 2, "in two sources");
        assert_eq!(view.by_url("http://a.example/none", &sources).unwrap().len(), 0);
    }
    // What was a duplicate stays one, whatever date it gets.
    let later = [entry(&url(4), "g4", "The first story", NOON + 30 * 86_400)];
    assert_eq!(brings(&mut feeds, b, &later, NOON + 30 * 86_400), [""; 0]);
}

#[test]
fn with_one_scope_for_all_a_story_is_there_once_and_the_scope_may_change() {
    let folder = Folder::new("scope");
    let rules = |scope| FeedRules { scope, ..FeedRules::default() };
    let mut feeds = folder.open(rules(StoryScope::All));
    let (a, b) =
        (add(&mut feeds, "http://a.example/feed", "a"), add(&mut feeds, "http://b.example/feed", "b"));
    let one = [entry(&url(1), "g", "Title one", NOON)];
    assert_eq!(brings(&mut feeds, a, &one, NOON).len(), 1);
    assert_eq!(brings(&mut feeds, b, &one, NOON).len(), 0);
    feeds.close().unwrap();
    drop(feeds);
    let mut feeds = folder.open(rules(StoryScope::Source));
    let two = [one[0].clone(), entry(&url(2), "", "", 0)];
    assert_eq!(brings(&mut feeds, a, &two, NOON), [url(2)]);
    assert_eq!(brings(&mut feeds, b, &two, NOON), [url(1), url(2)]);
}

#[test]
fn the_same_bytes_and_the_same_urls_are_redundant() {
    let mut feeds = in_memory();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let one = [entry(&url(1), "g1", "One", NOON), entry(&url(2), "g2", "Two", NOON)];
    brings(&mut feeds, feed, &one, NOON);
    let read = |feeds: &mut Feeds, entries: &[EntryRead]| {
        let read = listing(entries);
        let told = feeds.read(feed, &read, NOON, |_| panic!("nothing is new")).unwrap();
        let outcome = PollOutcome { digest: read.digest, ..PollOutcome::new(ResultCode::Ok, 200, NOON) };
        feeds.polled(feed, &outcome, NOON);
        told
    };
    assert_eq!(read(&mut feeds, &one).redundant, Some(Redundant::Digest));
    let reworded = [one[1].clone(), entry(&url(1), "g9", "One, reworded", NOON)];
    assert_eq!(read(&mut feeds, &reworded).redundant, Some(Redundant::Checksum));
    // A handler that knows the digest does not read at all.
    let outcome =
        PollOutcome { digest: listing(&reworded).digest, ..PollOutcome::new(ResultCode::Ok, 200, NOON) };
    feeds.polled(feed, &outcome, NOON);
    assert_eq!(feeds.feed(feed).unwrap().polls().redundant(), 3);
}

#[test]
fn guids_that_are_all_equal_or_change_do_no_harm() {
    let mut feeds = in_memory();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let equal: Vec<EntryRead> = (0..20).map(|n| entry(&url(n), "1", &format!("Title {n}"), NOON)).collect();
    assert_eq!(brings(&mut feeds, feed, &equal, NOON).len(), 20);
    let more: Vec<EntryRead> = (15..30).map(|n| entry(&url(n), "1", &format!("Title {n}"), NOON)).collect();
    assert_eq!(brings(&mut feeds, feed, &more, NOON + 60).len(), 10);
    let changed: Vec<EntryRead> = (15..30)
        .map(|n| entry(&url(n), &format!("x{n}"), &format!("Title {n}"), NOON))
        .chain([entry(&url(31), "y", "Title 31", NOON)])
        .collect();
    assert_eq!(brings(&mut feeds, feed, &changed, NOON + 120), [url(31)]);
    // One entry at a time, always with the same guid: the third is not believed.
    let single = add(&mut feeds, "http://b.example/feed", "b");
    let new: Vec<usize> = (0..10)
        .map(|n| {
            brings(&mut feeds, single, &[entry(&url(n), "same", &format!("Title {n}"), NOON)], NOON + n).len()
        })
        .collect();
    assert_eq!(new, [1, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    assert!(feeds.feed(single).unwrap().polls().guids_bad());
    // Two feeds of a source that count their entries from one.
    let (c, d) = (add(&mut feeds, "http://c.example/1", "c"), add(&mut feeds, "http://c.example/2", "c"));
    let counted = |of: &str| -> Vec<EntryRead> {
        (0..10)
            .map(|n| entry(&format!("http://c.example/{of}/{n}"), &n.to_string(), &format!("{of} {n}"), NOON))
            .collect()
    };
    assert_eq!(brings(&mut feeds, c, &counted("sport"), NOON).len(), 10);
    assert_eq!(brings(&mut feeds, d, &counted("world"), NOON).len(), 10);
}

/// Neither of two entries that have one guid is known by it, nor a later one because of them; readers are told so.
#[test]
fn a_guid_that_is_listed_twice_says_nothing_and_a_story_tells_whether_its_own_counts() {
    let folder = Folder::new("twice");
    let mut feeds = folder.open(FeedRules::default());
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let one = [
        entry(&url(1), "same", "One", NOON),
        entry(&url(2), "same", "Two", NOON),
        entry(&url(3), "own", "Three", NOON),
        entry(&url(4), &url(4), "Four", NOON),
    ];
    assert_eq!(brings(&mut feeds, feed, &one, NOON).len(), 4);
    let later = [entry(&url(5), "same", "Five", NOON), entry(&url(6), "own", "Six", NOON)];
    assert_eq!(brings(&mut feeds, feed, &later, NOON + 400), [url(5)]);
    feeds.flush(false).unwrap();
    let counts: Vec<bool> = stories(&folder.0).iter().map(|story| story.is_known_by_guid).collect();
    assert_eq!(counts, [false, false, true, false, true], "a guid that is the URL says nothing more");
}

#[test]
fn hostile_entries_are_bounded_and_dates_that_cannot_be_are_none() {
    let folder = Folder::new("hostile");
    let mut feeds = folder.open(FeedRules::default());
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let long = format!("http://a.example/{}", "u".repeat(8_000));
    let all = [
        entry(&long, &"g".repeat(1 << 20), &"ü".repeat(1 << 19), NOON),
        entry(&url(1), "", "a", NOON + 400 * 86_400),
        EntryRead { published_s: Some(-5), ..entry(&url(2), "", "b", 0) },
        EntryRead { published_s: Some(i64::MAX), ..entry(&url(3), "", "c", 0) },
        entry(&url(4), "", "d", NOON + 86_400),
        entry("", "x", "no URL", 0),
        entry("http://a.example", "", "home", 0),
        entry("http://a.example/index.html", "", "home", 0),
    ];
    assert_eq!(brings(&mut feeds, feed, &all, NOON).len(), 5);
    assert_eq!(feeds.feed(feed).unwrap().polls().skipped(), 3);
    feeds.flush(true).unwrap();
    let kept = stories(&folder.0);
    assert!(kept[0].title.len() <= 1_024 && kept[0].guid.len() <= 1_024 && *kept[0].url == *long);
    for story in &kept[1..4] {
        assert_eq!((story.published_s, story.provenance), (NOON, DateFrom::Seen));
    }
    assert_eq!(kept[4].published_s, NOON + 86_400, "a day ahead is kept");
    // A million of nothing.
    assert_eq!(brings(&mut feeds, feed, &[], NOON + 1).len(), 0);
    assert_eq!(brings(&mut feeds, feed, &[], NOON + 2).len(), 0);
}

#[test]
fn stories_follow_their_downloads() {
    let folder = Folder::new("downloads");
    let mut feeds = folder.open(FeedRules::default());
    let (a, b) =
        (add(&mut feeds, "http://a.example/feed", "a"), add(&mut feeds, "http://b.example/feed", "b"));
    let one =
        [entry(&url(1), "", "One", NOON), entry(&url(2), "", "Two", NOON), entry(&url(3), "", "Three", NOON)];
    for feed in [a, b] {
        let (read, mut new) = (listing(&one), Vec::new());
        feeds.read(feed, &read, NOON, |story| new.push(story.story)).unwrap();
        for (at, story) in new.iter().enumerate().take(2) {
            feeds.downloads(*story, 100 + at as u32).unwrap();
        }
    }
    feeds.fetched(100, ResultCode::Ok, NOON + 5).unwrap();
    feeds.fetched(101, ResultCode::ReadTimeout, NOON + 6).unwrap();
    feeds.fetched(999, ResultCode::Ok, NOON + 6).unwrap();
    feeds.flush(true).unwrap();
    let states = |dir: &Path| stories(dir).iter().map(|story| story.state).collect::<Vec<_>>();
    use StoryState::{Failed, Fetched, Pending};
    assert_eq!(states(&folder.0), [Fetched, Failed, Pending, Fetched, Failed, Pending]);
    drop(feeds);
    let mut feeds = folder.open(FeedRules::default());
    assert!(!feeds.awaits(100) && feeds.awaits(101));
    let mut pending = Vec::new();
    feeds.pending(|story, url, doc_id| pending.push((story, url.to_string(), doc_id))).unwrap();
    assert_eq!(pending, [(StoryId(3), url(3), None), (StoryId(6), url(3), None)]);
    feeds.fetched(101, ResultCode::Ok, NOON + 9).unwrap();
    feeds.flush(true).unwrap();
    assert_eq!(states(&folder.0), [Fetched, Fetched, Pending, Fetched, Fetched, Pending]);
}
