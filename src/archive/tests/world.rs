//! Stores to export and import.

use super::super::*;
use crate::proto::http1::Flags;
use crate::proto::record::{HttpCode, ResultCode};
use crate::store_server::Dedup;
use crate::store_server::{DataDir, Keeper, Medium, NewRecord, Reader, ShardStore, StoreRules};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with the test.
pub(super) struct TestDir(pub(super) PathBuf);

impl TestDir {
    pub(super) fn new() -> TestDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-archive-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        TestDir(path)
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is stored of a fetch.
pub(super) struct Page {
    pub(super) url: &'static str,
    pub(super) status: u16,
    pub(super) result: ResultCode,
    pub(super) flags: Flags,
    pub(super) head: &'static str,
    pub(super) body: Vec<u8>,
}

impl Page {
    pub(super) fn ok(url: &'static str, body: &[u8]) -> Page {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
        Page { url, status: 200, result: ResultCode::Ok, flags: Flags::NONE, head, body: body.to_vec() }
    }
}

/// Writes a store; each page is durable before the next, so that what comes twice becomes a reference.
pub(super) fn store(data: &std::path::Path, agent: &str, pages: &[Page]) {
    let rules = StoreRules { agent: agent.to_string(), dedup: Dedup::Any, ..StoreRules::of_size(4 << 20) };
    let mut keeper = Keeper::new(Medium::Directory(DataDir::open(data).unwrap()), rules, 1);
    keeper.prepare(0).unwrap();
    let mut store = ShardStore::new(keeper.share(0));
    for (index, page) in pages.iter().enumerate() {
        let bytes = [page.head.as_bytes(), &page.body].concat();
        let record = NewRecord {
            doc_id: 7,
            url: page.url,
            new_url: None,
            success: page.result.is_success(),
            result: page.result,
            http_code: HttpCode::of(page.status),
            status: page.status,
            flags: page.flags.bits(),
            took_ms: 12,
            fetched_unix_ms: 1_700_000_000_123 + index as u64 * 1_000,
            ip: "127.0.0.1".parse().unwrap(),
            port: 80,
            bytes: &bytes,
            head_len: page.head.len(),
        };
        store.append(&record).unwrap();
        keeper.turn(0).unwrap();
    }
    store.finish();
    keeper.close().unwrap();
}

pub(super) fn pages() -> Vec<Page> {
    let long = b"<p>a document that is long enough to be referred to, and not stored twice</p>".repeat(3);
    vec![
        Page::ok("http://a.test/", &long),
        Page::ok("http://a.test/same", &long),
        Page {
            head: "HTTP/1.1 304 Same\r\n\r\n",
            status: 304,
            result: ResultCode::NotModified,
            ..Page::ok("http://a.test/", b"")
        },
        Page {
            head: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            flags: Flags::DECODED,
            ..Page::ok("http://a.test/gz?b=1&a=2", b"plain by now")
        },
        Page {
            status: 404,
            result: ResultCode::HttpError,
            head: "HTTP/1.0 404 No\r\n\r\n",
            ..Page::ok("http://b.test/", b"no")
        },
        Page {
            status: 302,
            result: ResultCode::Redirect,
            head: "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
            ..Page::ok("http://b.test/r", b"")
        },
        Page {
            flags: Flags::CUT,
            result: ResultCode::TooLarge,
            ..Page::ok("http://b.test/cut", b"only the begin")
        },
        Page { result: ResultCode::Truncated, ..Page::ok("http://b.test/torn", b"ha") },
        Page { head: "", ..Page::ok("http://b.test/headless", b"by the store protocol") },
        Page { head: "", status: 0, ..Page::ok("http://b.test/bare", b"a document and nothing else") },
        Page {
            head: "",
            status: 0,
            result: ResultCode::ConnectTimeout,
            ..Page::ok("http://b.test/none", b"")
        },
        Page {
            head: "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
            flags: Flags::HEAD_ONLY,
            ..Page::ok("http://a.test/same", b"")
        },
    ]
}

pub(super) const EXPORT: Export = Export { newest: false, size: None, force: false };

/// URL, status, result, time and document of every record, references resolved.
pub(super) type Row = (String, u16, ResultCode, u64, Vec<u8>);

pub(super) fn rows(data: &std::path::Path) -> Vec<Row> {
    let reader = Reader::open(data).unwrap();
    let mut rows = Vec::new();
    let damaged = reader.each(|located, bytes| {
        let document = reader.document_of(&located, bytes).unwrap().expect("the document is there");
        let record = located.record;
        rows.push((record.url, record.status, record.result, record.fetched_unix_ms, document.body));
    });
    assert!(damaged.unwrap().is_empty());
    rows
}

pub(super) fn import(files: &[PathBuf], data: &std::path::Path) -> Imported {
    let import =
        Import { files: files.to_vec(), doc_bytes_max: 1 << 20, segment_bytes: 4 << 20, dedup: Dedup::Any };
    import.run(data, 0, &mut |_| {}).unwrap()
}
