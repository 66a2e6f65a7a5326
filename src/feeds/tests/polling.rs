use super::*;

const WEEK: u32 = 604_800;

fn polled(feeds: &mut Feeds, feed: FeedId, result: ResultCode, status: u16, at_s: u32) -> NextPoll {
    feeds.polled(feed, &PollOutcome::new(result, status, at_s), at_s)
}

/// A feed that has said 304 once, and brought a story at `NOON`.
fn conditional(feeds: &mut Feeds) -> FeedId {
    let feed = add(feeds, "http://a.example/feed", "a");
    same(feeds, feed, NOON - 5_000);
    brings(feeds, feed, &[entry("http://a.example/1", "", "One", 0)], NOON);
    feed
}

#[test]
fn the_back_off_doubles_to_the_second_with_a_restart_before_each_poll() {
    let folder = Folder::new("backoff");
    let mut feeds = folder.open(FeedRules::default());
    let feed = conditional(&mut feeds);
    let mut at_s = feeds.next(feed, NOON).unwrap().due_s;
    assert_eq!(at_s, NOON + 300);
    for wait_s in [600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 76_800, 153_600, 307_200, WEEK, WEEK] {
        feeds.flush(true).unwrap();
        drop(feeds);
        feeds = folder.open(FeedRules::default());
        let next = same(&mut feeds, feed, at_s);
        assert_eq!(next.due_s - at_s, wait_s);
        assert_eq!(next.why, if wait_s == WEEK { PollReason::PollMax } else { PollReason::Backoff });
        at_s = next.due_s;
    }
    brings(&mut feeds, feed, &[entry("http://a.example/2", "", "Two", 0)], at_s);
    assert_eq!(feeds.next(feed, at_s).unwrap().due_s, at_s + 300, "a new story begins anew");
}

#[test]
fn who_never_said_304_is_asked_by_the_hour() {
    let mut feeds = in_memory();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    assert_eq!(
        feeds.next(feed, NOON).unwrap(),
        NextPoll { due_s: NOON, why: PollReason::New, unconditional: false }
    );
    brings(&mut feeds, feed, &[entry("http://a.example/1", "", "One", 0)], NOON);
    let next = feeds.next(feed, NOON).unwrap();
    assert_eq!((next.due_s, next.why), (NOON + 3_600, PollReason::PollMinPlain));
    assert!(next.text(NOON).contains("never said that nothing has changed"), "{}", next.text(NOON));
    let unasked = PollOutcome::new(ResultCode::NotModified, 304, NOON + 3_600);
    assert_eq!(
        feeds.polled(feed, &unasked, NOON + 3_600).why,
        PollReason::Failed,
        "a 304 that nobody asked for"
    );
    same(&mut feeds, feed, NOON + 3_601);
    brings(&mut feeds, feed, &[entry("http://a.example/2", "", "Two", 0)], NOON + 7_200);
    assert_eq!(feeds.next(feed, NOON + 7_200).unwrap().due_s, NOON + 7_500);
}

#[test]
fn hints_put_a_poll_off_up_to_their_cap_and_are_named() {
    let hour = 3_600;
    /// Hints, max-age, Retry-After; seconds until the next poll, and why then.
    type Case = (FeedHints, Option<u32>, Option<u32>, u32, PollReason);
    let cases: [Case; 8] = [
        (FeedHints { ttl_s: Some(7_200), ..FeedHints::default() }, None, None, 7_200, PollReason::Ttl),
        (FeedHints { ttl_s: Some(u32::MAX), ..FeedHints::default() }, None, None, 86_400, PollReason::Ttl),
        (FeedHints { ttl_s: Some(60), ..FeedHints::default() }, None, None, 300, PollReason::Backoff),
        (FeedHints { period_s: Some(5_000), ..FeedHints::default() }, None, None, 5_000, PollReason::Period),
        (FeedHints::default(), Some(31_536_000), None, 86_400, PollReason::MaxAge),
        (FeedHints::default(), Some(900), Some(1_000), 1_000, PollReason::RetryAfter),
        (FeedHints::default(), None, Some(317_100), 86_400, PollReason::RetryAfter),
        (
            FeedHints { skip_hours: 0b11 << 12, ..FeedHints::default() },
            None,
            None,
            2 * hour,
            PollReason::SkipHours,
        ),
    ];
    for (hints, max_age_s, retry_after_s, wait_s, why) in cases {
        let mut feeds = in_memory();
        let feed = conditional(&mut feeds);
        let mut read = listing(&[entry("http://a.example/9", "", "Nine", 0)]);
        read.facts.hints = hints;
        feeds.read(feed, &read, NOON, |_| {}).unwrap();
        let outcome = PollOutcome { max_age_s, retry_after_s, ..PollOutcome::new(ResultCode::Ok, 200, NOON) };
        let next = feeds.polled(feed, &outcome, NOON);
        assert_eq!((next.due_s - NOON, next.why), (wait_s, why), "{hints:?} {max_age_s:?} {retry_after_s:?}");
        assert!(!why.sentence().is_empty());
    }
}

#[test]
fn a_failure_is_tried_again_with_the_next_poll_and_404_never_ends_a_feed() {
    let mut feeds = in_memory();
    let feed = conditional(&mut feeds);
    let mut at_s = NOON + 300;
    for (result, status, wait_s) in [
        (ResultCode::HttpError, 404, 600),
        (ResultCode::DnsFailed, 0, 1_200),
        (ResultCode::HttpError, 503, 2_400),
        (ResultCode::ReadTimeout, 0, 4_800),
    ] {
        let next = polled(&mut feeds, feed, result, status, at_s);
        assert_eq!((next.due_s - at_s, next.why), (wait_s, PollReason::Failed));
        at_s = next.due_s;
    }
    for _ in 0..100 {
        at_s = polled(&mut feeds, feed, ResultCode::HttpError, 404, at_s).due_s;
    }
    let polls = *feeds.feed(feed).unwrap().polls();
    assert_eq!((polls.failures(), polls.failing_s()), (104, NOON + 300));
    assert_eq!(feeds.feed(feed).unwrap().state(), FeedState::Active);
    let html = PollOutcome { not_a_feed: true, ..PollOutcome::new(ResultCode::Ok, 200, at_s) };
    assert_eq!(feeds.polled(feed, &html, at_s).why, PollReason::Failed, "a page in place of a feed");
    same(&mut feeds, feed, at_s + 1);
    assert_eq!(feeds.feed(feed).unwrap().polls().failures(), 0);
    let next = polled(&mut feeds, feed, ResultCode::HttpError, 410, at_s + 2);
    assert_eq!((next.due_s, next.why), (0, PollReason::Gone));
    assert_eq!(feeds.feed(feed).unwrap().state(), FeedState::Gone);
    assert!(!feeds.poll(feed, at_s + 3), "it is not asked by a poll");
    assert!(
        !feeds.add(&NewFeed { url: "http://a.example/feed", ..NewFeed::default() }, at_s + 9).unwrap().is_new
    );
    assert_eq!(feeds.next(feed, at_s + 9).unwrap().due_s, at_s + 9, "added again, it gets another chance");
}

#[test]
fn a_feed_moves_when_it_is_sent_to_one_place_twice_and_two_become_one() {
    let folder = Folder::new("moves");
    let mut feeds = folder.open(FeedRules::default());
    let (old, new, other) = ("http://a.example/feed", "http://a.example/new", "http://b.example/feed");
    let feed = add(&mut feeds, old, "a");
    let second = add(&mut feeds, other, "b");
    feeds.bind(feed, 7);
    feeds.bind(second, 8);
    let sent = |feeds: &mut Feeds, to: &str, at_s: u32| {
        let outcome = PollOutcome { moved_to: Some(to), ..PollOutcome::new(ResultCode::Redirect, 301, at_s) };
        feeds.polled(feed, &outcome, at_s)
    };
    sent(&mut feeds, new, NOON);
    sent(&mut feeds, "http://a.example/elsewhere", NOON + 1);
    assert_eq!(feeds.feed(feed).unwrap().url(), old, "two places are none");
    sent(&mut feeds, new, NOON + 2);
    feeds.flush(true).unwrap();
    drop(feeds);
    let mut feeds = folder.open(FeedRules::default());
    assert_eq!(sent(&mut feeds, new, NOON + 3).why, PollReason::Moved);
    assert_eq!((feeds.feed(feed).unwrap().url(), feeds.at(7)), (new, None), "it has no document there yet");
    assert_eq!(feeds.by_url(old), Some(feed), "the old place is known");
    feeds.bind(feed, 9);
    sent(&mut feeds, other, NOON + 4);
    let next = sent(&mut feeds, other, NOON + 5);
    assert_eq!((next.due_s, next.why), (0, PollReason::Merged));
    feeds.flush(true).unwrap();
    drop(feeds);
    let feeds = folder.open(FeedRules::default());
    for url in [old, new, other] {
        assert_eq!(feeds.by_url(url), Some(second), "{url}");
    }
    assert_eq!(feeds.feed(feed).unwrap().merged(), Some(second));
    assert_eq!((feeds.at(8), feeds.at(9)), (Some(second), None));
}

#[test]
fn ten_304s_over_a_long_silence_are_doubted_and_a_lie_is_found() {
    for (published_s, lies) in [(1, true), (NOON + 9_999_999, false)] {
        let mut feeds = in_memory();
        let feed = add(&mut feeds, "http://a.example/feed", "a");
        let first: Vec<EntryRead> =
            (0..5).map(|n| entry(&format!("http://a.example/{n}"), "", "", NOON - n * 600)).collect();
        brings(&mut feeds, feed, &first, NOON);
        assert_eq!(feeds.feed(feed).unwrap().polls().mean_gap_s(), 600);
        let (mut at_s, mut doubted) = (feeds.next(feed, NOON).unwrap().due_s, 0);
        for number in 1..=10 {
            let next = same(&mut feeds, feed, at_s);
            assert_eq!(next.unconditional, number == 10, "poll {number}");
            doubted = at_s;
            at_s = next.due_s;
        }
        let published_s = if published_s == 1 { doubted - 50 } else { at_s - 1 };
        let mut listed = first;
        listed.insert(0, entry("http://a.example/new", "", "", published_s));
        brings(&mut feeds, feed, &listed, at_s);
        let next = feeds.next(feed, at_s).unwrap();
        assert_eq!((next.unconditional, feeds.feed(feed).unwrap().polls().lies()), (lies, lies));
        assert_eq!(next.why, if lies { PollReason::PollMinPlain } else { PollReason::Backoff });
    }
    let mut feeds = in_memory();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let at = |n: u32| NOON + n * 1_000;
    (0..30)
        .for_each(|n| assert!(!same(&mut feeds, feed, at(n)).unconditional, "nothing is known of its pace"));
}

#[test]
fn a_listing_that_shares_nothing_with_the_one_before_is_a_gap() {
    let mut feeds =
        Feeds::in_memory(FeedRules { schedule: FeedSchedule::Rate, ..FeedRules::default() }, 1).unwrap();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    same(&mut feeds, feed, NOON - 1);
    let list = |from: u32| -> Vec<EntryRead> {
        (from..from + 20)
            .map(|n| entry(&format!("http://a.example/{n}"), "", "", NOON - 900_000 + n * 40_000))
            .collect()
    };
    brings(&mut feeds, feed, &list(0), NOON);
    brings(&mut feeds, feed, &list(15), NOON + 100_000);
    assert_eq!(feeds.feed(feed).unwrap().polls().gaps(), 0);
    let polls = *feeds.feed(feed).unwrap().polls();
    assert_eq!(polls.due_s() - polls.attempt_s(), polls.mean_gap_s() / 2);
    brings(&mut feeds, feed, &list(40), NOON + 200_000);
    let polls = *feeds.feed(feed).unwrap().polls();
    assert_eq!(polls.gaps(), 1);
    assert_eq!(polls.due_s() - polls.attempt_s(), (polls.mean_gap_s() / 2) >> 1, "half of what it would be");
    // Without dates, whichever way they are listed.
    for backwards in [false, true] {
        let mut feeds = in_memory();
        let feed = add(&mut feeds, "http://a.example/feed", "a");
        for from in (0..40).step_by(10) {
            let mut entries: Vec<EntryRead> =
                (from..from + 15).map(|n| entry(&format!("http://a.example/{n}"), "", "", 0)).collect();
            if backwards {
                entries.reverse();
            }
            brings(&mut feeds, feed, &entries, NOON + from);
        }
        assert_eq!(feeds.feed(feed).unwrap().polls().gaps(), 0, "{backwards}");
    }
}

/// A poll is noted as of the end of its second; whoever asks within that second has no wrong clock.
#[test]
fn the_second_in_which_a_poll_ended_is_not_the_future() {
    let mut feeds = in_memory();
    let feed = conditional(&mut feeds);
    let due_s = same(&mut feeds, feed, NOON + 30 * 86_400).due_s;
    assert_eq!(due_s, NOON + 30 * 86_400 + WEEK);
    let next = feeds.next(feed, NOON + 30 * 86_400 - 1).unwrap();
    assert_eq!((next.due_s, next.why), (due_s, PollReason::PollMax));
}

#[test]
fn a_clock_that_was_wrong_puts_nothing_off_for_long() {
    let mut feeds = in_memory();
    let feed = conditional(&mut feeds);
    let wrong = same(&mut feeds, feed, NOON + 400 * 86_400);
    assert_eq!(wrong.why, PollReason::PollMax);
    let next = feeds.next(feed, NOON + 300).unwrap();
    assert_eq!((next.due_s, next.why), (NOON + 300 + 600, PollReason::Clock), "as if it had been asked now");
    // Set back between two polls: the silence is not less than nothing.
    assert_eq!(same(&mut feeds, feed, NOON - 100).due_s, NOON - 100 + 300);
    // Never set.
    assert_eq!(same(&mut feeds, feed, 40).due_s, 340);
    assert_eq!(feeds.next(feed, 50).unwrap().due_s, 340);
}

/// A clock that was ahead wrote all of a book; the next process has the right one.
#[test]
fn what_a_clock_that_was_ahead_has_written_is_mended_at_the_next_opening() {
    for ahead_s in [3 * 86_400, 365 * 86_400] {
        let folder = Folder::new("ahead");
        let mut feeds = folder.open(FeedRules::default());
        let then_s = NOON + ahead_s;
        let url = |name: &str| format!("http://{name}.example/feed");
        let new = |feeds: &mut Feeds, name: &str| {
            feeds.add(&NewFeed { url: &url(name), ..NewFeed::default() }, then_s).unwrap().feed
        };
        let [quick, silent, failing, waits, unasked, wished, paused] =
            ["quick", "silent", "failing", "waits", "unasked", "wished", "paused"]
                .map(|name| new(&mut feeds, name));
        for feed in [quick, silent, failing, waits, wished, paused] {
            same(&mut feeds, feed, then_s - 80_000);
            brings(&mut feeds, feed, &[entry(&url("story"), "", "One", 0)], then_s - 40_000);
        }
        brings(&mut feeds, quick, &[entry(&url("two"), "", "Two", 0)], then_s);
        same(&mut feeds, silent, then_s);
        polled(&mut feeds, failing, ResultCode::DnsFailed, 0, then_s);
        let asks = PollOutcome {
            retry_after_s: Some(80_000),
            ..PollOutcome::new(ResultCode::HttpError, 429, then_s)
        };
        feeds.polled(waits, &asks, then_s);
        feeds.poll(wished, then_s);
        feeds.pause(paused);
        feeds.flush(true).unwrap();
        drop(feeds);
        let mut feeds = folder.open(FeedRules::default());
        feeds.mend(NOON);
        for (feed, wait_s, what) in [
            (quick, 300, "news a moment ago"),
            (silent, 40_300, "a silence is as long as it was"),
            (failing, 40_300, "so is one that fails"),
            (waits, 80_000, "what its server asked for is kept"),
            (unasked, 0, "never asked"),
            (wished, 0, "asked for by somebody"),
        ] {
            let polls = feeds.feed(feed).unwrap().polls();
            assert_eq!(polls.due_s(), NOON + wait_s, "{what}: {polls:?}");
            for at_s in [polls.attempt_s(), polls.success_s(), polls.since_s(), polls.failing_s()] {
                assert!(at_s <= NOON, "{what}: {polls:?}");
            }
        }
        assert_eq!(feeds.feed(paused).unwrap().polls().due_s(), 0, "what is paused stays so");
        // It is on the disk, and mended once.
        feeds.flush(true).unwrap();
        drop(feeds);
        let mut feeds = folder.open(FeedRules::default());
        feeds.mend(NOON + 100);
        assert_eq!(feeds.feed(quick).unwrap().polls().due_s(), NOON + 300);
    }
}

/// A fault of our rules is none of the feed: it does not fail, and its interval stays as it is.
#[test]
fn what_the_rules_of_a_crawl_refuse_is_no_failure_and_puts_nothing_off() {
    let mut feeds = in_memory();
    let feed = conditional(&mut feeds);
    let mut at_s = same(&mut feeds, feed, NOON + 300).due_s;
    assert_eq!(at_s, NOON + 900);
    let before = *feeds.feed(feed).unwrap().polls();
    assert_eq!(feeds.refused_until(feed, at_s), at_s + 600);
    assert_eq!(*feeds.feed(feed).unwrap().polls(), before, "nothing was asked, nothing is noted");
    for _ in 0..50 {
        let refused =
            PollOutcome { is_refused: true, ..PollOutcome::new(ResultCode::BlockedAddress, 0, at_s) };
        let next = feeds.polled(feed, &refused, at_s);
        assert_eq!((next.due_s, next.why), (at_s + 600, PollReason::Refused));
        at_s = next.due_s;
    }
    let known = feeds.feed(feed).unwrap();
    let polls = known.polls();
    assert_eq!((polls.failures(), polls.failed(), polls.failing_s()), (0, 0, 0));
    assert_eq!((known.state(), polls.polls()), (FeedState::Active, before.polls() + 50));
    let never = add(&mut feeds, "http://never.example/feed", "n");
    assert_eq!(feeds.refused_until(never, NOON), NOON + 3_600);
}

/// A listing of other entries is another one, also where some bits of their prints are equal.
#[test]
fn entries_that_share_sixteen_bits_are_not_the_same() {
    let mut feeds = in_memory();
    let feed = add(&mut feeds, "http://a.example/feed", "a");
    let source = feeds.feed(feed).unwrap().source();
    let mut scratch = Vec::new();
    let mut print = |url: &str| {
        crate::feeds::prints::print_of(7, crate::feeds::prints::PrintKind::Url, source, 0, url, &mut scratch)
    };
    let url = |n: u32| format!("http://a.example/{n}");
    let first: Vec<u64> = (0..4).map(|n| print(&url(n))).collect();
    let alike = (4..).find(|&n| first.iter().any(|first| *first as u16 == print(&url(n)) as u16)).unwrap();
    let listed = |numbers: [u32; 4]| numbers.map(|n| entry(&url(n), "", "", 0));
    brings(&mut feeds, feed, &listed([0, 1, 2, 3]), NOON);
    brings(&mut feeds, feed, &listed([alike, 1_000_001, 1_000_002, 1_000_003]), NOON + 4_000);
    assert_eq!(feeds.feed(feed).unwrap().polls().gaps(), 1);
}

/// Hashes of 16 bits are of no use; a listing is compared with none of them.
#[test]
fn records_with_hashes_of_sixteen_bits_are_read_and_make_no_gap() {
    let polls: Polls = serde_json::from_str(r#"{"polls":3,"tops":[1,2,3,4]}"#).unwrap();
    assert_eq!((polls.polls(), polls.newest()), (3, [0; 4]));
}

#[test]
fn feeds_are_paused_resumed_asked_for_and_removed() {
    let folder = Folder::new("ops");
    let mut feeds = folder.open(FeedRules::default());
    let feed = conditional(&mut feeds);
    feeds.bind(feed, 3);
    feeds.take_moved_due();
    let told = feeds.apply(&FeedOp::Pause { feed }, NOON + 10).unwrap();
    assert_eq!((told.done, told.due_s, told.why), (true, 0, PollReason::Paused));
    assert_eq!(same(&mut feeds, feed, NOON + 20).due_s, 0, "what was open when it was paused");
    assert!(!feeds.apply(&FeedOp::Poll { feed }, NOON + 30).unwrap().done);
    assert_eq!(feeds.apply(&FeedOp::Resume { feed }, NOON + 40).unwrap().due_s, NOON + 40);
    assert_eq!(feeds.apply(&FeedOp::Poll { feed }, NOON + 50).unwrap().why, PollReason::Asked);
    assert!(feeds.apply(&FeedOp::Remove { feed }, NOON + 60).unwrap().done);
    assert!(!feeds.apply(&FeedOp::Remove { feed }, NOON + 60).unwrap().done);
    assert_eq!(feeds.take_moved_due(), [feed; 4]);
    feeds.flush(true).unwrap();
    drop(feeds);
    let mut feeds = folder.open(FeedRules::default());
    assert_eq!((feeds.feeds().count(), feeds.at(3)), (0, None));
    let text = serde_json::to_string(&FeedOp::Add {
        url: "http://a.example/feed".into(),
        source: String::new(),
        title: String::new(),
    });
    let op: FeedOp = serde_json::from_str(&text.unwrap()).unwrap();
    let told = feeds.apply(&op, NOON).unwrap();
    assert_eq!((told.feed, told.is_new), (FeedId(2), true), "numbers are not used again");
}

#[test]
fn a_page_gives_way_to_the_feeds_that_it_names_and_they_lead_no_further() {
    let folder = Folder::new("page");
    let mut feeds = folder.open(FeedRules::default());
    let page = add(&mut feeds, "http://a.example/", "A");
    let not_a_feed = PollOutcome { not_a_feed: true, ..PollOutcome::new(ResultCode::Ok, 200, NOON) };
    feeds.polled(page, &not_a_feed, NOON);
    assert!(feeds.may_be_page(page));
    let named = [("http://a.example/rss", "News"), ("http://b.example/atom", "")];
    feeds.is_page(page, named.into_iter(), NOON).unwrap();
    feeds.flush(true).unwrap();
    drop(feeds);
    let mut feeds = folder.open(FeedRules::default());
    let next = feeds.next(page, NOON).unwrap();
    assert_eq!((next.due_s, next.why), (0, PollReason::Page));
    let rss = feeds.by_url("http://a.example/rss").unwrap();
    let atom = feeds.by_url("http://b.example/atom").unwrap();
    for found in [rss, atom] {
        let known = feeds.feed(found).unwrap();
        assert_eq!((known.named_by(), known.polls().due_s()), (Some(page), NOON));
        assert_eq!(&*feeds.source(known.source()).unwrap().name, "A");
        assert!(!feeds.may_be_page(found), "nobody asked for what it may lead to");
    }
    assert!(
        !feeds.add(&NewFeed { url: "http://a.example/", ..NewFeed::default() }, NOON + 9).unwrap().is_new
    );
    assert_eq!(
        feeds.next(page, NOON + 9).unwrap().due_s,
        NOON + 9,
        "who adds it again has it looked at again"
    );
    brings(&mut feeds, page, &[entry("http://a.example/1", "", "One", 0)], NOON + 9);
    assert!(!feeds.may_be_page(page), "what was a feed once is one that is broken");
}

#[test]
fn a_front_page_that_everybody_is_sent_to_ends_no_feed() {
    let mut feeds = in_memory();
    let page = add(&mut feeds, "http://a.example/", "A");
    let feed = add(&mut feeds, "http://a.example/rss", "A");
    brings(&mut feeds, feed, &[entry("http://a.example/1", "", "One", 0)], NOON);
    feeds.is_page(page, [("http://a.example/rss", "")].into_iter(), NOON).unwrap();
    let moved = |at_s| PollOutcome {
        moved_to: Some("http://a.example/"),
        ..PollOutcome::new(ResultCode::Redirect, 301, at_s)
    };
    for nth in 1..=3 {
        feeds.polled(feed, &moved(NOON + nth * 3_600), NOON + nth * 3_600);
    }
    let known = feeds.feed(feed).unwrap();
    assert_eq!((known.state(), known.merged()), (FeedState::Active, None));
    assert!(known.polls().due_s() > 0);
}
