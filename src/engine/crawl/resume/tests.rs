//! A process stores pages and is killed before it tells of them; the next one knows them all the same.

use super::resumption::{Resumed, Resumption};
use crate::doc_index::{DocIndex, DocState, DocumentInfo, IndexRules, Note, Origin, Outcome, RejectList};
use crate::engine::crawl::feeds_home::FeedsHome;
use crate::engine::crawl::open_index::index_folder;
use crate::engine::crawl::provider::{Provider, ProviderRules};
use crate::engine::inspect::feed_words::NamedFeed;
use crate::feeds::{FeedId, FeedRules, FeedsView, PollReason};
use crate::handler::{Discover, Handler, Scope, ScopeKind};
use crate::proto::http1::{Flags, Validators};
use crate::proto::job::{Held, Provenance};
use crate::proto::record::{HttpCode, ResultCode};
use crate::proto::url::CrawlUrl;
use crate::store_server::{DataDir, Dedup, Keeper, Medium, NewRecord, Reader, ShardStore, StoreRules};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const NOW_S: u32 = 1_800_000_000;
const SEED: &str = "http://a.test/";
const HTML: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\netag: \"x\"\r\n\r\n";

/// A data directory that goes away with the test.
struct Stage(PathBuf);

impl Stage {
    fn new(name: &str) -> Stage {
        let path = std::env::temp_dir().join(format!("nephila-taking-up-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Stage(path)
    }

    /// A process that knows these pages, besides what it knew, and is killed before anything is answered.
    fn knows(&self, urls: &[&str]) {
        let mut provider = self.provider();
        provider.index_mut().discover([SEED], Origin::SEED, NOW_S);
        provider.index_mut().discover(urls.iter().copied(), Origin::link(1, 1), NOW_S);
        provider.index_mut().flush(true).unwrap();
    }

    fn provider(&self) -> Provider {
        let (index, _) = DocIndex::open(&index_folder(&self.0), IndexRules::default(), NOW_S).unwrap();
        Provider::new(index, ProviderRules::plain())
    }

    /// A process that stores these, one list to a shard, and is killed.
    fn stores(&self, shards: &[&[NewRecord<'_>]]) {
        let directory = DataDir::open(&self.0).unwrap();
        let rules = StoreRules { dedup: Dedup::Any, ..StoreRules::of_size(1 << 20) };
        let mut keeper = Keeper::new(Medium::Directory(directory), rules, shards.len());
        keeper.prepare(0).unwrap();
        for (shard, records) in shards.iter().enumerate() {
            let mut store = ShardStore::new(keeper.share(shard));
            for record in *records {
                store.append(record).unwrap();
                // Each is durable before the next comes, so that one may stand for another.
                keeper.commit().unwrap();
            }
            std::mem::forget(store);
        }
    }

    fn takes_up(&self, provider: &mut Provider) -> Resumed {
        // What was left open is sealed, as at every start.
        drop(DataDir::open(&self.0).unwrap());
        Resumption::new(provider, handler(), NOW_S).run(&self.0, 0).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn handler() -> Handler {
    let mut scope = Scope::new(ScopeKind::Host, 9);
    scope.add(&CrawlUrl::parse(SEED).unwrap());
    Handler::new(Arc::new(scope), "nephila".to_string())
}

/// A record of the second after now; `bytes` is a head and what follows it.
fn record<'a>(doc_id: u32, url: &'a str, result: ResultCode, status: u16, bytes: &'a [u8]) -> NewRecord<'a> {
    let head_len = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
    NewRecord {
        doc_id,
        success: result.is_success(),
        result,
        http_code: HttpCode::of(status),
        status,
        took_ms: 400,
        fetched_unix_ms: u64::from(NOW_S) * 1_000 + 700,
        head_len,
        ..NewRecord::sample(url, bytes)
    }
}

fn page(body: &str) -> Vec<u8> {
    [HTML, body.as_bytes()].concat()
}

/// What is handed out.
fn pending(provider: &mut Provider) -> Vec<String> {
    let found = provider.index_mut().candidates(100, &RejectList::default(), NOW_S);
    let mut urls: Vec<String> = found.iter().map(|candidate| candidate.url.as_str().to_string()).collect();
    urls.sort();
    urls
}

fn known(provider: &Provider, url: &str) -> DocumentInfo {
    provider.index().look(url).unwrap().unwrap_or_else(|| panic!("{url} is known"))
}

#[test]
fn a_page_that_is_stored_is_known_with_its_links_and_is_not_asked_for_again() {
    let stage = Stage::new("page");
    stage.knows(&[]);
    let bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\netag: \"x\"\r\n\
        link: </c>; rel=\"canonical\"\r\n\r\n<a href=/a>a</a><a href=/b>b</a>";
    stage.stores(&[&[record(1, SEED, ResultCode::Ok, 200, bytes)]]);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 1);
    let stats = provider.index().stats();
    assert_eq!((stats.known, stats.success, stats.pending, stats.handed_out), (3, 1, 2, 0));
    assert_eq!(pending(&mut provider), ["http://a.test/a", "http://a.test/b"]);
    let (seed, link) = (known(&provider, SEED), known(&provider, "http://a.test/a"));
    let row = seed.row.unwrap();
    assert_eq!((row.state, row.status, row.fetches), (DocState::Success, 200, 1));
    assert_eq!(row.fetched_s, NOW_S + 1, "when it ended");
    assert_ne!(row.digest, 0);
    let held = seed.note.held.unwrap();
    assert_eq!((&*held.validators.etag, held.segment), (&b"\"x\""[..], 1));
    assert_eq!(seed.note.canonical.as_deref(), Some("http://a.test/c"));
    assert_eq!((link.discovered.origin.via, link.discovered.origin.provenance.depth), (1, 1));
    // The next process finds nothing more to do, whether this one has ended well or not.
    drop(provider);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 0);
    assert_eq!(pending(&mut provider), ["http://a.test/a", "http://a.test/b"]);
}

#[test]
fn killed_while_it_takes_up_the_next_process_goes_on() {
    let stage = Stage::new("twice");
    let urls: Vec<String> = (0..6).map(|n| format!("http://a.test/{n}")).collect();
    stage.knows(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let bodies: Vec<Vec<u8>> = (0..6).map(|n| page(&format!("<a href=/from{n}>x</a>"))).collect();
    let of = |n: usize| record(n as u32 + 2, &urls[n], ResultCode::Ok, 200, &bodies[n]);
    stage.stores(&[&[of(0), of(1), of(2)], &[of(3), of(4)]]);
    let mut provider = stage.provider();
    drop(DataDir::open(&stage.0).unwrap());
    let reader = Reader::open(&stage.0).unwrap();
    let segments = reader.tail(0, |_| true);
    assert_eq!(segments.len(), 2, "one of each shard");
    let mut taking_up = Resumption::new(&mut provider, handler(), NOW_S);
    let mut left = 2;
    reader
        .each_in(segments[0], |located, bytes| {
            if left > 0 {
                taking_up.take(&reader, &located, bytes).unwrap();
                left -= 1;
            }
        })
        .unwrap();
    drop(provider);
    // Killed once more, with another page stored.
    stage.stores(&[&[of(5)]]);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 4);
    let expected: Vec<String> =
        [SEED.to_string()].into_iter().chain((0..6).map(|n| format!("http://a.test/from{n}"))).collect();
    assert_eq!(pending(&mut provider), expected);
    assert_eq!(provider.index().stats().success, 6);
}

#[test]
fn what_stands_for_another_document_is_read_there() {
    let stage = Stage::new("dedup");
    stage.knows(&["http://a.test/1", "http://a.test/2"]);
    let bytes = page(&format!("<a href=next>n</a>{}", "x".repeat(500)));
    let (one, two) = ("http://a.test/1", "http://a.test/2");
    stage.stores(&[&[
        record(2, one, ResultCode::Ok, 200, &bytes),
        record(3, two, ResultCode::Ok, 200, &bytes),
    ]]);
    let mut references = 0;
    let reader = Reader::open(&stage.0).unwrap();
    reader.each(|located, _| references += u64::from(located.record.is_reference)).unwrap();
    assert_eq!(references, 1, "the test is about one");
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 2);
    assert_eq!(known(&provider, one).row.unwrap().digest, known(&provider, two).row.unwrap().digest);
    assert_eq!(pending(&mut provider), [SEED, "http://a.test/next"]);
}

#[test]
fn a_page_that_has_not_changed_keeps_what_is_known_of_it() {
    let stage = Stage::new("304");
    stage.knows(&[]);
    let mut provider = stage.provider();
    assert_eq!(pending(&mut provider), [SEED]);
    let validators = Validators { etag: (*b"\"x\"").into(), last_modified: Box::default() };
    let note = Note { held: Some(Held { validators, segment: 7 }), ..Note::default() };
    let outcome = Outcome { status: 200, digest: 5, ..Outcome::new(1, ResultCode::Ok, NOW_S - 9) };
    provider.index_mut().record(&Outcome { note: Some(Box::new(note.clone())), ..outcome }, None);
    provider.index_mut().flush(true).unwrap();
    drop(provider);
    stage.stores(&[&[record(
        1,
        SEED,
        ResultCode::NotModified,
        304,
        b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
    )]]);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 1);
    let found = known(&provider, SEED);
    let row = found.row.unwrap();
    assert_eq!((row.status, row.digest, row.fetches, row.fetched_s), (304, 5, 2, NOW_S + 1));
    assert_eq!(found.note, note);
    let stats = provider.index().stats();
    assert_eq!((stats.success, stats.pending), (1, 0), "it is counted once");
    drop(provider);
    assert_eq!(stage.takes_up(&mut stage.provider()).pages, 0);
}

#[test]
fn redirects_heads_and_failures_are_what_they_were() {
    let stage = Stage::new("others");
    let [moved, ring, head, late] = ["moved", "loop", "head", "late"].map(|name| format!("{SEED}{name}"));
    stage.knows(&[&moved, &ring, &head, &late]);
    let to = |path: &str| format!("HTTP/1.1 301 Moved\r\nlocation: {path}\r\n\r\n").into_bytes();
    let (to_there, to_loop) = (to("/there"), to("/loop"));
    let only_head =
        NewRecord { flags: Flags::HEAD_ONLY.bits(), ..record(4, &head, ResultCode::Ok, 200, HTML) };
    stage.stores(&[&[
        record(2, &moved, ResultCode::Redirect, 301, &to_there),
        record(3, &ring, ResultCode::RedirectLoop, 301, &to_loop),
        only_head,
        record(5, &late, ResultCode::ReadTimeout, 0, b""),
    ]]);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 4);
    let there = known(&provider, "http://a.test/there").discovered.origin;
    assert_eq!((there.via, there.provenance.hops, there.provenance.depth), (2, 1, 1));
    assert_eq!(known(&provider, &moved).note.new_url.as_deref(), Some("http://a.test/there"));
    let result = |url: &str| known(&provider, url).row.map(|row| (row.state, row.result.unwrap()));
    assert_eq!(result(&moved), Some((DocState::Success, ResultCode::Redirect)));
    assert_eq!(result(&ring), Some((DocState::Error, ResultCode::RedirectLoop)));
    assert_eq!(result(&late), Some((DocState::Pending, ResultCode::ReadTimeout)));
    assert!(known(&provider, &head).note.head_only);
    assert_eq!(provider.index().stats().waiting, 1, "what failed is tried at its time");
    assert_eq!(pending(&mut provider), [SEED, "http://a.test/there"]);
}

#[test]
fn records_of_others_and_what_cannot_be_read_are_left_alone() {
    let stage = Stage::new("alone");
    stage.knows(&["http://a.test/1", "http://a.test/2"]);
    let bytes = page("<a href=/evil>x</a>");
    stage.stores(&[&[
        record(2, "http://a.test/other", ResultCode::Ok, 200, &bytes),
        record(99, "http://a.test/none", ResultCode::Ok, 200, &bytes),
        record(3, "http://a.test/2", ResultCode::Ok, 200, b"no head\r\n\r\nat all"),
    ]]);
    let mut provider = stage.provider();
    assert_eq!(stage.takes_up(&mut provider).pages, 0);
    assert_eq!(pending(&mut provider), [SEED, "http://a.test/1", "http://a.test/2"]);
}

#[test]
fn a_seed_that_leads_elsewhere_widens_the_scope_again() {
    let stage = Stage::new("scope");
    stage.knows(&[]);
    let elsewhere = "http://b.test/";
    let to = b"HTTP/1.1 301 Moved\r\nlocation: http://b.test/\r\n\r\n";
    let bytes = page("<a href=/in>in</a><a href=http://c.test/out>out</a>");
    // The second was found by the first, and handed out, before the kill.
    let mut provider = stage.provider();
    provider.index_mut().discover([elsewhere], Origin::new(1, Provenance::SEED.next_hop()), NOW_S);
    provider.index_mut().flush(true).unwrap();
    drop(provider);
    stage.stores(&[
        &[record(1, SEED, ResultCode::Redirect, 301, to)],
        &[record(2, elsewhere, ResultCode::Ok, 200, &bytes)],
    ]);
    let mut provider = stage.provider();
    let taken = stage.takes_up(&mut provider);
    assert_eq!(taken.pages, 2);
    assert_eq!(taken.into_scope.iter().map(CrawlUrl::as_str).collect::<Vec<_>>(), [elsewhere]);
    assert_eq!(pending(&mut provider), ["http://b.test/in"]);
}

#[test]
fn a_pause_that_the_server_of_a_feed_asked_for_is_kept_though_nobody_was_told_of_it() {
    let (stage, url) = (Stage::new("feed"), "http://a.test/feed");
    let with_feeds = |named: &[NamedFeed]| {
        let (rules, discover) = (FeedRules::default(), Discover::Off);
        let mut provider = stage.provider();
        let home = FeedsHome { directory: Some(stage.0.clone()), rules, discover };
        provider.begin_feeds(home, named, NOW_S).unwrap();
        provider
    };
    let named = NamedFeed { url: CrawlUrl::parse(url).unwrap(), source: String::new(), title: String::new() };
    drop(with_feeds(&[named]));
    let bytes = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7200\r\n\r\nlater";
    stage.stores(&[&[record(1, url, ResultCode::HttpError, 429, bytes)]]);
    let mut provider = with_feeds(&[]);
    assert_eq!(stage.takes_up(&mut provider).pages, 1);
    let view = FeedsView::open(&stage.0).unwrap().unwrap();
    let polls = view.feed(FeedId(1)).unwrap().polls();
    assert_eq!((polls.due_s(), polls.why()), (NOW_S + 2 + 7_200, PollReason::RetryAfter));
}
