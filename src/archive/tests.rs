//! What goes out comes back: documents, references, revisits; and what is damaged is told and passed by.

use super::*;
use crate::proto::http1::Flags;
use crate::proto::record::{HttpCode, ResultCode};
use crate::store_server::{DataDir, Dedup, Keeper, Medium, NewRecord, Reader, ShardStore, StoreRules};
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with the test.
struct TestDir(PathBuf);

impl TestDir {
    fn new() -> TestDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephila-archive-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        TestDir(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is stored of a fetch.
struct Page {
    url: &'static str,
    status: u16,
    result: ResultCode,
    flags: Flags,
    head: &'static str,
    body: Vec<u8>,
}

impl Page {
    fn ok(url: &'static str, body: &[u8]) -> Page {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
        Page { url, status: 200, result: ResultCode::Ok, flags: Flags::NONE, head, body: body.to_vec() }
    }
}

/// Writes a store; each page is durable before the next, so that what comes twice becomes a reference.
fn store(data: &std::path::Path, agent: &str, pages: &[Page]) {
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

fn pages() -> Vec<Page> {
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

const EXPORT: Export = Export { newest: false, size: None, force: false };

/// URL, status, result, time and document of every record, references resolved.
type Row = (String, u16, ResultCode, u64, Vec<u8>);

fn rows(data: &std::path::Path) -> Vec<Row> {
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

fn import(files: &[PathBuf], data: &std::path::Path) -> Imported {
    let import =
        Import { files: files.to_vec(), doc_bytes_max: 1 << 20, segment_bytes: 4 << 20, dedup: Dedup::Any };
    import.run(data, 0, &mut |_| {}).unwrap()
}

#[test]
fn a_store_comes_back_from_its_export() {
    let dir = TestDir::new();
    store(&dir.join("data"), "nephila/test", &pages());
    let reader = Reader::open(&dir.join("data")).unwrap();
    for name in ["out.warc.gz", "out.warc"] {
        let out = dir.join(name);
        let exported = EXPORT.to_warc(&reader, &out, &mut |_| {}).unwrap();
        let counts = (exported.responses, exported.revisits, exported.resources, exported.left_out);
        assert_eq!(counts, (8, 2, 1, 1), "{exported:?}");
        assert_eq!(exported.requests, 10);
        assert_eq!(exported.records, 1 + 11 + 10);
        assert_eq!(exported.bytes, fs::metadata(&out).unwrap().len());
        let back = dir.join(&format!("back-{name}"));
        let imported = import(&[out], &back);
        assert_eq!((imported.records, imported.skipped), (11, 0), "{imported:?}");
        let mut expected = rows(&dir.join("data"));
        expected.retain(|row| row.2 != ResultCode::ConnectTimeout);
        assert_eq!(rows(&back), expected);
    }
}

#[test]
fn an_export_has_the_same_bytes_each_time_and_no_half_of_it_is_left() {
    let dir = TestDir::new();
    store(&dir.join("data"), "nephila/test", &pages());
    let reader = Reader::open(&dir.join("data")).unwrap();
    let out = dir.join("out.warc.gz");
    EXPORT.to_warc(&reader, &out, &mut |_| {}).unwrap();
    let first = fs::read(&out).unwrap();
    let again = EXPORT.to_warc(&reader, &out, &mut |_| {});
    assert!(matches!(again, Err(ArchiveError::Exists(_))), "{again:?}");
    Export { force: true, ..EXPORT }.to_warc(&reader, &out, &mut |_| {}).unwrap();
    assert_eq!(fs::read(&out).unwrap(), first);
    let names: Vec<_> = fs::read_dir(&dir.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "the store and one file: {names:?}");
}

#[test]
fn files_are_split_and_each_begins_with_its_description() {
    let dir = TestDir::new();
    store(&dir.join("data"), "nephila/test", &pages());
    let reader = Reader::open(&dir.join("data")).unwrap();
    let export = Export { size: Some(1_500), ..EXPORT };
    let exported = export.to_warc(&reader, &dir.join("out.warc"), &mut |_| {}).unwrap();
    assert!(exported.files.len() > 2, "{exported:?}");
    for (index, file) in exported.files.iter().enumerate() {
        assert_eq!(*file, dir.join(&format!("out-{:05}.warc", index + 1)));
        let text = fs::read(file).unwrap();
        let head = String::from_utf8_lossy(&text[..400]).into_owned();
        assert!(head.starts_with("WARC/1.1\r\nWARC-Type: warcinfo\r\n"), "{head}");
        assert!(head.contains("robots: obey\r\n") || text.windows(6).any(|six| six == b"robots"), "{head}");
    }
    assert_eq!(import(&exported.files, &dir.join("back")).records, 11);
}

#[test]
fn the_newest_of_each_url_has_its_document() {
    let dir = TestDir::new();
    store(&dir.join("data"), "", &pages());
    let reader = Reader::open(&dir.join("data")).unwrap();
    let export = Export { newest: true, ..EXPORT };
    let exported = export.to_warc(&reader, &dir.join("out.warc"), &mut |_| {}).unwrap();
    assert_eq!((exported.responses, exported.revisits, exported.requests), (7, 1, 0), "{exported:?}");
    import(&[dir.join("out.warc")], &dir.join("back"));
    let back = rows(&dir.join("back"));
    let find = |url: &str| back.iter().filter(|row| row.0 == url).collect::<Vec<_>>();
    assert_eq!(find("http://a.test/").len(), 1);
    assert_eq!(find("http://a.test/")[0].4, find("http://a.test/same")[0].4);
}

#[test]
fn an_index_of_what_would_be_written_is_that_of_what_is() {
    let dir = TestDir::new();
    store(&dir.join("data"), "nephila/test", &pages());
    let reader = Reader::open(&dir.join("data")).unwrap();
    for size in [None, Some(1_000)] {
        let export = Export { size, force: true, ..EXPORT };
        let exported = export.to_warc(&reader, &dir.join("out.warc.gz"), &mut |_| {}).unwrap();
        let indexing = index_export(&export, &reader, &dir.join("out.cdxj"), &mut |_| {}).unwrap();
        let read = index_files(&exported.files, &dir.join("read.cdxj"), true).unwrap();
        assert_eq!((indexing.lines, read.lines, read.faults_total), (11, 11, 0));
        let text = fs::read_to_string(dir.join("out.cdxj")).unwrap();
        assert_eq!(text, fs::read_to_string(dir.join("read.cdxj")).unwrap());
        assert!(text.lines().is_sorted());
    }
}

#[test]
fn a_damaged_member_is_told_and_the_rest_is_read() {
    let dir = TestDir::new();
    let pages: Vec<Page> =
        ["http://a.test/0", "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"]
            .iter()
            .map(|url| Page::ok(url, url.repeat(20).as_bytes()))
            .collect();
    store(&dir.join("data"), "", &pages);
    let reader = Reader::open(&dir.join("data")).unwrap();
    for name in ["out.warc.gz", "out.warc"] {
        let sound_path = dir.join(name);
        EXPORT.to_warc(&reader, &sound_path, &mut |_| {}).unwrap();
        let sound = fs::read(&sound_path).unwrap();
        let broken = dir.join(&format!("broken-{name}"));
        for at in (0..sound.len()).step_by(41) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x55;
            fs::write(&broken, &bytes).unwrap();
            let back = dir.join("back");
            let _ = fs::remove_dir_all(&back);
            let imported = import(std::slice::from_ref(&broken), &back);
            // One record is hit, or the end of one and the begin of the next. A plain record's fields have no checksum.
            let least = if name.ends_with(".gz") { 4 } else { 3 };
            assert!(imported.records >= least, "{name} at {at}: {imported:?}");
            let good = imported.records == 5 || imported.skipped > 0 || imported.left_out > 1;
            assert!(good, "{name} at {at}: {imported:?}");
            for row in rows(&back) {
                assert!(pages.iter().any(|page| page.body == row.4), "{name} at {at}: {row:?}");
            }
        }
        for cut in (1..sound.len()).step_by(67) {
            fs::write(&broken, &sound[..cut]).unwrap();
            let back = dir.join("back");
            let _ = fs::remove_dir_all(&back);
            let imported = import(std::slice::from_ref(&broken), &back);
            assert!(imported.records <= 5 && imported.skipped <= 1, "{name} cut at {cut}: {imported:?}");
        }
    }
}

/// A WARC of another maker, from its records' fields and blocks.
fn foreign(version: &str, records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (fields, block) in records {
        let length = block.len();
        write!(
            bytes,
            "{version}\r\n{fields}WARC-Date: 2020-01-02T03:04:05Z\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        bytes.extend_from_slice(block);
        bytes.extend_from_slice(b"\r\n\r\n");
    }
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

#[test]
fn other_makers_files_are_read_as_a_fetch_would_have() {
    let dir = TestDir::new();
    let response = |url: &str| format!("WARC-Type: response\r\nWARC-Target-URI: {url}\r\n");
    let coded = gzip(b"hello");
    let gz = [&b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"[..], &coded].concat();
    let large = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &vec![b'x'; (1 << 20) + 1]].concat();
    let huge = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &vec![b'x'; 3 << 20]].concat();
    let records = [
        (
            "http://h/chunked",
            &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"[..],
        ),
        ("<http://h/dechunked>", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello there"),
        ("http://h/gz", &gz),
        ("http://h/moved", b"HTTP/1.1 301 Moved\r\nLocation: /to\r\n\r\n"),
        ("http://h/short", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
        ("http://h/undone", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n<p>text</p>"),
        ("http://h/large", &large),
        ("http://h/huge", &huge),
        ("http://h/bad", b"no response"),
        ("dns:h", b"1.2.3.4"),
    ];
    let fields: Vec<String> = records.iter().map(|(url, _)| response(url)).collect();
    let all: Vec<(&str, &[u8])> =
        fields.iter().zip(&records).map(|(fields, (_, block))| (fields.as_str(), *block)).collect();
    for version in ["WARC/0.17", "WARC/1.0", "WARC/1.1"] {
        let plain = foreign(version, &all);
        let one_member = gzip(&plain);
        let members: Vec<u8> = all.iter().flat_map(|record| gzip(&foreign(version, &[*record]))).collect();
        for (kind, bytes) in [("plain", plain), ("one", one_member), ("members", members)] {
            let (file, data) = (dir.join("f.warc"), dir.join("data"));
            fs::write(&file, bytes).unwrap();
            let _ = fs::remove_dir_all(&data);
            let imported = import(&[file], &data);
            assert_eq!(
                (imported.records, imported.skipped, imported.left_out),
                (8, 1, 1),
                "{kind}: {imported:?}"
            );
            let rows = rows(&data);
            let found = |url: &str| rows.iter().find(|row| row.0 == url).unwrap_or_else(|| panic!("{url}"));
            let is = |url: &str, status: u16, result: ResultCode, body: &[u8]| {
                let row = found(url);
                assert_eq!((row.1, row.2, &row.4[..]), (status, result, body), "{kind}, {url}");
            };
            is("http://h/chunked", 200, ResultCode::Ok, b"abc");
            is("http://h/dechunked", 200, ResultCode::Ok, b"hello there");
            is("http://h/gz", 200, ResultCode::Ok, b"hello");
            is("http://h/moved", 301, ResultCode::Redirect, b"");
            is("http://h/short", 200, ResultCode::Truncated, b"abc");
            is("http://h/undone", 200, ResultCode::Ok, b"<p>text</p>");
            is("http://h/large", 200, ResultCode::TooLarge, &vec![b'x'; 1 << 20]);
            is("http://h/huge", 200, ResultCode::TooLarge, &vec![b'x'; 1 << 20]);
            assert_eq!(found("http://h/chunked").3, 1_577_934_245_000);
        }
    }
}

#[test]
fn a_revisit_finds_its_document_even_behind_itself() {
    let dir = TestDir::new();
    let revisit = "WARC-Type: revisit\r\nWARC-Target-URI: http://h/b\r\nWARC-Payload-Digest: sha1:X\r\nWARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n";
    let response = "WARC-Type: response\r\nWARC-Target-URI: http://h/a\r\nWARC-Payload-Digest: SHA1:X\r\n";
    let lost = "WARC-Type: revisit\r\nWARC-Target-URI: http://h/c\r\nWARC-Payload-Digest: sha1:Y\r\n";
    let block = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let records: [(&str, &[u8]); 3] =
        [(revisit, b"HTTP/1.1 200 Fine\r\nContent-Length: 5\r\n\r\n"), (response, block), (lost, b"")];
    fs::write(dir.join("f.warc"), foreign("WARC/1.0", &records)).unwrap();
    let imported = import(&[dir.join("f.warc")], &dir.join("data"));
    assert_eq!((imported.responses, imported.revisits, imported.skipped), (1, 1, 1), "{imported:?}");
    let mut rows = rows(&dir.join("data"));
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(rows.len(), 2);
    assert_eq!((&*rows[1].0, &rows[1].4[..]), ("http://h/b", &b"hello"[..]));
}
