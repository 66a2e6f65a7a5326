//! What is exported can be imported: documents, references, revisits; and damage is reported and skipped.

mod world;

use super::*;
use crate::proto::record::ResultCode;
use crate::store_server::Reader;
use std::fs;
use std::io::{Read, Write};
use world::{EXPORT, Page, TestDir, import, pages, rows, store};

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

/// Two thousand documents and as many revisits of them, the last first, in one gzip member: each record is read once, and
/// those that come before their documents twice.
#[test]
fn revisits_within_one_gzip_member_cost_one_read_each() {
    let dir = TestDir::new();
    const COUNT: usize = 2_000;
    let body = |n: usize| format!("document {n} {}", "x".repeat(100));
    let record = |kind: &str, url: String, payload: &str, body: String| {
        let fields = format!(
            "WARC-Type: {kind}\r\nWARC-Target-URI: http://h/{url}\r\nWARC-Payload-Digest: sha1:{payload}\r\n"
        );
        (fields, format!("HTTP/1.1 200 OK\r\n\r\n{body}"))
    };
    let mut responses: Vec<(String, String)> =
        (0..COUNT).map(|n| record("response", n.to_string(), &n.to_string(), body(n))).collect();
    // Stored as a reference to the first of them.
    responses.push(record("response", "same/0".to_string(), "same", body(0)));
    let mut revisits: Vec<(String, String)> =
        (0..COUNT).map(|n| record("revisit", format!("again/{n}"), &n.to_string(), String::new())).collect();
    revisits.push(record("revisit", "again/same/0".to_string(), "same", String::new()));
    revisits.reverse();
    let all = 2 * (COUNT as u64 + 1);
    for (name, first, second, read) in
        [("behind", &responses, &revisits, all), ("before", &revisits, &responses, all + all / 2)]
    {
        let records: Vec<(&str, &[u8])> =
            first.iter().chain(second).map(|(fields, block)| (&**fields, block.as_bytes())).collect();
        let file = dir.join(&format!("{name}.warc.gz"));
        fs::write(&file, gzip(&foreign("WARC/1.0", &records))).unwrap();
        let data = dir.join(name);
        // The second import finds every document in the store already.
        for _ in 0..2 {
            let imported = import(std::slice::from_ref(&file), &data);
            assert_eq!((imported.records, imported.skipped), (all, 0), "{name}: {imported:?}");
            assert_eq!(imported.records_read, read, "{name}");
        }
        let rows = rows(&data);
        assert_eq!(rows.len() as u64, 2 * all);
        for (url, _, _, _, document) in rows {
            let n = url.rsplit('/').next().unwrap().parse().unwrap();
            assert_eq!(document, body(n).into_bytes(), "{url}");
        }
    }
}
