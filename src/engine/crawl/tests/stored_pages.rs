//! Whether a document is held is asked for little, and what our own packing moves is not taken for lost.

use crate::engine::crawl::stored_pages::StoredPages;
use crate::handler::{Handler, Scope, ScopeKind};
use crate::proto::http1::Validators;
use crate::proto::job::Held;
use crate::proto::url::CrawlUrl;
use crate::store_server::{
    DataDir, Dedup, Keeper, Maintenance, Medium, NewRecord, Retention, RetentionRules, ShardShare,
    ShardStore, StoreRules,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store of earlier processes that goes away with the test.
struct Stored(PathBuf);

impl Stored {
    fn new(name: &str) -> Stored {
        let path = std::env::temp_dir().join(format!("nephila-stored-pages-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Stored(path)
    }

    fn keeper(&self) -> Keeper {
        let rules = StoreRules { dedup: Dedup::Any, ..StoreRules::of_size(1 << 24) };
        let mut keeper = Keeper::new(Medium::Directory(DataDir::open(&self.0).unwrap()), rules, 1);
        keeper.prepare(0).unwrap();
        keeper
    }

    /// A process stores these, and its segment is sealed and indexed.
    fn segment<'a>(&self, records: impl IntoIterator<Item = (&'a str, &'a [u8])>) {
        let mut keeper = self.keeper();
        let mut store = ShardStore::new(keeper.share(0));
        for (url, body) in records {
            store.append(&NewRecord::sample(url, body)).unwrap();
        }
        store.finish();
        keeper.close().unwrap();
        let mut maintenance = Maintenance::new(&self.0, RetentionRules::all(1 << 24), keeper.shares());
        maintenance.turn(&keeper.take_sealed()).unwrap();
    }

    /// One that is in no index: whoever looks for something looks through a thousand records.
    fn bare_segment(&self, number: u64) {
        let urls: Vec<String> = (0..1_000).map(|page| format!("http://h/{number}/{page}")).collect();
        self.segment(urls.iter().map(|url| (url.as_str(), &b"little"[..])));
        fs::remove_file(self.file(number, "idx")).unwrap();
    }

    fn file(&self, number: u64, extension: &str) -> PathBuf {
        self.0.join(format!("segments/{number:010}-000.{extension}"))
    }

    /// What a process knows whose first segment is this one.
    fn pages(&self, first_new: u64, share: &Arc<ShardShare>) -> StoredPages {
        let handler = Handler::new(Arc::new(Scope::new(ScopeKind::Host, 9)), "nephila".to_string());
        let mut pages = StoredPages::new(self.0.clone(), first_new, handler);
        pages.tell(vec![share.clone()]);
        pages
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn held(segment: u64) -> Held {
    Held { validators: Validators::default(), segment }
}

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::parse(text).unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = crate::base::Rng::new(seed);
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

/// Bytes that this thread has read from files.
fn bytes_read() -> u64 {
    let told = fs::read_to_string(Path::new("/proc/thread-self/io")).unwrap();
    told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// A batch of candidates costs a look at the start of each record, whatever the documents take.
#[test]
fn whether_documents_are_held_is_asked_without_reading_them() {
    let stored = Stored::new("cheap");
    let urls: Vec<String> = (0..100).map(|page| format!("http://h/{page}")).collect();
    let bodies: Vec<Vec<u8>> = (0..100).map(|page| noise(page + 1, 100_000)).collect();
    stored.segment(urls.iter().zip(&bodies).map(|(url, body)| (url.as_str(), &body[..])));
    let keeper = stored.keeper();
    let mut pages = stored.pages(2, &keeper.share(0));
    let before = bytes_read();
    assert!(urls.iter().all(|text| pages.holds(&url(text), &held(1))));
    let read = bytes_read() - before;
    assert!(read < 1_000_000, "{read} bytes for a hundred documents of 100,000");
}

/// What refers to a document that is gone does not have every segment without an index looked through, each time.
#[test]
fn references_to_nothing_cost_no_more_than_others() {
    let stored = Stored::new("references");
    let page = noise(1, 4_000);
    stored.segment([("http://h/first", &page[..])]);
    let urls: Vec<String> = (0..100).map(|page| format!("http://h/{page}")).collect();
    stored.segment(urls.iter().map(|url| (url.as_str(), &page[..])));
    stored.bare_segment(3);
    assert!(stored.file(2, "seg").metadata().unwrap().len() < 50_000, "they are references");
    for extension in ["seg", "idx"] {
        fs::remove_file(stored.file(1, extension)).unwrap();
    }
    let keeper = stored.keeper();
    let mut pages = stored.pages(4, &keeper.share(0));
    let before = bytes_read();
    assert!(!urls.iter().any(|text| pages.holds(&url(text), &held(2))));
    let read = bytes_read() - before;
    assert!(read < 10_000_000, "{read} bytes for a hundred references");
}

/// A segment that cannot be read is not tried again for each document.
#[test]
fn what_cannot_be_read_is_remembered() {
    let stored = Stored::new("unreadable");
    stored.segment([("http://h/", &b"page"[..])]);
    stored.bare_segment(2);
    let keeper = stored.keeper();
    fs::create_dir(stored.file(99, "seg")).unwrap();
    let mut pages = stored.pages(3, &keeper.share(0));
    let before = bytes_read();
    assert!(!(0..100).any(|_| pages.holds(&url("http://h/"), &held(1))));
    let read = bytes_read() - before;
    assert!(read < 20_000_000, "{read} bytes for a hundred questions");
    // It is read when it can be.
    fs::remove_dir(stored.file(99, "seg")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert!(pages.holds(&url("http://h/"), &held(1)));
}

/// Records move when we pack segments ourselves. They are found where they are, and nothing else is given up.
#[test]
fn what_we_pack_is_not_lost() {
    let stored = Stored::new("packed");
    let (page, old, new, other) = (noise(1, 4_000), noise(2, 9_000), noise(3, 9_000), noise(4, 9_000));
    stored.segment([("http://h/hot", &old[..]), ("http://h/cold", &page[..])]);
    stored.segment([("http://h/hot", &new[..])]);
    stored.segment([("http://h/refers", &page[..]), ("http://h/other", &other[..])]);
    let keeper = stored.keeper();
    let share = keeper.share(0);
    let mut pages = stored.pages(4, &share);
    for (text, segment) in [("http://h/cold", 1), ("http://h/refers", 3), ("http://h/other", 3)] {
        assert!(pages.holds(&url(text), &held(segment)), "{text}");
    }
    let rules = RetentionRules { segment_bytes: 20_000, ..RetentionRules::all(1 << 24) };
    assert_eq!(Retention::new(&stored.0, rules, keeper.shares()).repack().unwrap().records, 1);
    assert_eq!((share.retired(), stored.file(1, "seg").exists()), (2, false), "two of three were packed");
    for (text, segment) in [("http://h/cold", 1), ("http://h/refers", 3), ("http://h/other", 3)] {
        assert!(pages.stands(&url(text), &held(segment)), "{text}");
        assert_eq!(share.retired(), 2, "{text}");
    }
    assert!(pages.holds(&url("http://h/refers"), &held(3)));
    // A document that went with what we let go ourselves is no sign that others do.
    assert!(!pages.stands(&url("http://h/never"), &held(1)));
    assert_eq!(share.retired(), 2);
}

/// Somebody removes what nobody of us let go: nothing relies on what was there before.
#[test]
fn what_was_removed_is_lost() {
    let stored = Stored::new("removed");
    stored.segment([("http://h/a", &b"a page"[..])]);
    stored.segment([("http://h/b", &b"b page"[..])]);
    let keeper = stored.keeper();
    let share = keeper.share(0);
    let mut pages = stored.pages(3, &share);
    assert!(pages.holds(&url("http://h/a"), &held(1)));
    fs::remove_file(stored.file(1, "seg")).unwrap();
    assert!(pages.stands(&url("http://h/b"), &held(2)));
    assert_eq!(share.retired(), 0);
    assert!(!pages.stands(&url("http://h/a"), &held(1)));
    assert_eq!(share.retired(), 2);
    assert!(!pages.holds(&url("http://h/b"), &held(2)), "it may go, too");
    assert!(pages.holds(&url("http://h/a"), &held(3)), "what is stored from here on is held");
}

/// A record whose document does not check is asked about, and its 304 stands for nothing.
#[test]
fn a_304_stands_on_a_document_that_was_read() {
    let stored = Stored::new("damaged");
    let page = noise(1, 4_000);
    stored.segment([("http://h/", &page[..])]);
    let mut bytes = fs::read(stored.file(1, "seg")).unwrap();
    bytes[4_096 + 2_000] ^= 1;
    fs::write(stored.file(1, "seg"), bytes).unwrap();
    let keeper = stored.keeper();
    let mut pages = stored.pages(2, &keeper.share(0));
    assert!(!pages.stands(&url("http://h/"), &held(1)));
}
