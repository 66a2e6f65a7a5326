//! The promise: what comes in a content coding is stored without it, byte for byte; what cannot be decoded is kept as far
//! as it could be, and says so; and a small response never becomes a large document.

use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

// Fixtures --------------------------------------------------------------------------------------------------

/// A page with a link.
static PAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = "the quick brown fox jumps over the lazy dog. ".repeat(8);
    format!("<!doctype html><title>coded</title><a href=/linked>x</a> {words}").into_bytes()
});

/// [`PAGE`], by the reference encoder at its best quality.
const PAGE_BR: &str = "1ba001008c946ee6229d1ce9813a48cbe82bc992aac2de9c72c05ecba2e4723a61a47ab7b1b15c2282d8896a4432f49513f5696b\
    ce2fb1175186e53e757951c00ce27d7bfb83961900";

/// A hundred mebibytes of zeros, by the same.
const BOMB_BR: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf7\
    7ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffe3ffff1ffc1300715800a07bffc7\
    ffff3ff82700e2b00040f7fe8fffff7ff04f00c4610180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ff9ff\
    ff837f02200e0b0074ef7f00";

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut coded = vec![0; zstd_safe::compress_bound(plain.len())];
    let length = zstd_safe::compress(&mut coded[..], plain, 1).unwrap();
    coded.truncate(length);
    coded
}

fn br() -> Vec<u8> {
    bytes_of(PAGE_BR)
}

/// Bytes that do not shrink.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(step).collect()
}

fn coded(codings: &str, body: &[u8]) -> Reply {
    let codings: String = codings.lines().map(|line| format!("Content-Encoding: {line}\r\n")).collect();
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{codings}Content-Length: {length}\r\n\r\n");
    Reply::raw([head.as_bytes(), body].concat())
}

// Codings that are whole ------------------------------------------------------------------------------------

struct Case {
    name: &'static str,
    reply: fn() -> Reply,
    plain: fn() -> Vec<u8>,
    flags: &'static [&'static str],
}

const DECODED: &[&str] = &["decoded"];

fn case(name: &'static str, reply: fn() -> Reply) -> Case {
    Case { name, reply, plain: || PAGE.clone(), flags: DECODED }
}

#[rustfmt::skip]
fn whole() -> Vec<Case> {
    vec![
        case("gzip", || coded("gzip", &gzip(&PAGE))),
        case("x-gzip", || coded("x-gzip", &gzip(&PAGE))),
        case("upper case", || coded("GZIP", &gzip(&PAGE))),
        case("white space", || coded(" \t gzip \t", &gzip(&PAGE))),
        case("deflate with its wrapper", || coded("deflate", &zlib(&PAGE))),
        case("deflate without", || coded("deflate", &raw_deflate(&PAGE))),
        case("br", || coded("br", &br())),
        case("zstd", || coded("zstd", &zstd(&PAGE))),
        case("zstd in two frames", || coded("zstd", &[zstd(&PAGE[..100]), zstd(&PAGE[100..])].concat())),
        case("gzip in three members", || coded("gzip", &[gzip(&PAGE[..9]), gzip(b""), gzip(&PAGE[9..])].concat())),
        case("gzip, then br", || coded("br, gzip", &gzip(&br()))),
        case("in two headers", || coded("br\nzstd", &zstd(&br()))),
        case("a list with holes", || coded(", gzip,, deflate ,", &zlib(&gzip(&PAGE)))),
        case("identity among them", || coded("identity, gzip", &gzip(&PAGE))),
        case("five of them", || coded("gzip, deflate, zstd, gzip, gzip", &gzip(&gzip(&zstd(&zlib(&gzip(&PAGE))))))),
        case("in chunks", || {
            let (body, head) = (gzip(&PAGE), "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n");
            let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for piece in body.chunks(7) {
                bytes.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            }
            Reply::raw([&bytes[..], b"0\r\n\r\n"].concat())
        }),
        case("a byte at a time", || Reply { piece: Some(1), ..coded("gzip", &gzip(&PAGE)) }),
        case("to the close", || {
            let head = "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n";
            Reply::raw([head.as_bytes(), &gzip(&PAGE)].concat()).then_close()
        }),
        Case { flags: &[], ..case("identity", || coded("identity", &PAGE)) },
        Case { flags: &[], ..case("no coding at all", || coded("", &PAGE)) },
        Case { plain: Vec::new, ..case("nothing, in gzip", || coded("gzip", &gzip(b""))) },
        Case { plain: Vec::new, flags: &[], ..case("gzip without a byte", || coded("gzip", b"")) },
        Case { plain: || noise(300_000), ..case("what does not shrink", || coded("gzip", &gzip(&noise(300_000)))) },
    ]
}

/// Whatever it came in, the document is stored plain, listed by its plain size and digest, and its links are followed.
#[test]
fn documents_are_stored_without_their_coding() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match asked.target.as_str() {
            "/linked" => Reply::text("reached"),
            _ => (whole()[asked.name()[1..].trim_end_matches(".test").parse::<usize>().unwrap()].reply)(),
        });
        let cases = whole();
        let urls: Vec<String> = (0..cases.len()).map(|n| stage.url(&format!("c{n}.test"), "/")).collect();
        stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
        let stored = stage.stored();
        let mut wrong = String::new();
        for (case, url) in cases.iter().zip(&urls) {
            let (listed, plain) = (&stored[url], (case.plain)());
            let seen =
                (&*listed.result, listed.success, listed.bytes, &*listed.sha1, &*listed.flags.join(" "));
            let sha1 = sha1_hex(&plain);
            if seen != ("ok", true, plain.len() as u64, &sha1, &case.flags.join(" ")) {
                wrong += &format!("{}: {listed:?}, not {} bytes {:?}\n", case.name, plain.len(), case.flags);
            } else if cat(&stage.data, url) != plain {
                wrong += &format!("{}: another document\n", case.name);
            }
            if plain == *PAGE && !stored.contains_key(&format!("{url}linked")) {
                wrong += &format!("{}: its link was not followed\n", case.name);
            }
        }
        assert!(wrong.is_empty(), "{driver}:\n{wrong}");
    });
}

#[test]
fn servers_are_told_what_we_can_decode() {
    let mut stage = Stage::new(|_| Reply::text("x"));
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    for asked in stage.server.asked() {
        let said = asked.header("Accept-Encoding").expect("it is said");
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert!(said.split(',').any(|word| word.trim() == coding), "{coding} in {said:?}");
        }
    }
}

/// Robots rules in a coding are rules.
#[test]
fn robots_rules_are_decoded() {
    for (coding, encode) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("deflate", zlib), ("zstd", zstd)] {
        let mut stage = Stage::with_robots(move |asked| match asked.target.as_str() {
            "/robots.txt" => coded(coding, &encode(b"User-agent: *\nDisallow: /private\n")),
            _ => Reply::text("x"),
        });
        let urls = [stage.url("a.test", "/private"), stage.url("a.test", "/public")];
        let report = stage.crawl(&urls);
        assert_eq!(result_count(&report, "robots_denied"), 1, "{coding}: {report}");
        assert_eq!(stage.server.targets(), ["/robots.txt", "/public"], "{coding}");
    }
}

// Codings that are not --------------------------------------------------------------------------------------

/// What a server says, by name.
type Said = (&'static str, fn() -> Reply);

/// Each on a host of its own, with both drivers: its name, its record and its document.
#[track_caller]
fn each(settings: &str, replies: &'static [Said], check: impl Fn(&str, &Listed, &[u8]) + Sync) {
    by_each_driver(|driver| {
        let number = |asked: &Asked| asked.name()[1..].trim_end_matches(".test").parse::<usize>().unwrap();
        let mut stage = Stage::new(move |asked| replies[number(asked)].1());
        stage.settings(settings);
        let urls: Vec<String> = (0..replies.len()).map(|n| stage.url(&format!("c{n}.test"), "/")).collect();
        stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver, "--depth", "0"]));
        let stored = stage.stored();
        for ((name, _), url) in replies.iter().zip(&urls) {
            let (listed, document) = (&stored[url], cat(&stage.data, url));
            let seen = (listed.bytes, &*listed.sha1);
            assert_eq!(seen, (document.len() as u64, &*sha1_hex(&document)), "{name}: {listed:?}");
            check(name, listed, &document);
        }
    });
}

/// The response is whole and its coding is not: what could be decoded is kept.
#[test]
fn a_coding_that_breaks_off_keeps_its_beginning() {
    fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(bytes.len() / 2);
        bytes
    }
    const REPLIES: &[Said] = &[
        ("gzip", || coded("gzip", &cut(gzip(&noise(200_000))))),
        ("zlib", || coded("deflate", &cut(zlib(&noise(200_000))))),
        ("deflate", || coded("deflate", &cut(raw_deflate(&noise(200_000))))),
        ("zstd", || coded("zstd", &cut(zstd(&noise(600_000))))),
        ("under gzip", || coded("deflate, gzip", &gzip(&cut(zlib(&noise(200_000)))))),
        ("the second member", || {
            coded("gzip", &[gzip(&noise(200_000)[..100_000]), cut(gzip(&noise(200_000)[100_000..]))].concat())
        }),
    ];
    each("", REPLIES, |name, listed, document| {
        assert_eq!((&*listed.result, listed.success), ("decode_failed", false), "{name}: {listed:?}");
        assert_eq!(listed.flags, ["content_coding_broken", "decoded"], "{name}");
        assert!(document.len() > 30_000 && noise(600_000).starts_with(document), "{name}: {listed:?}");
        assert!(name != "the second member" || document.len() > 100_000, "{listed:?}");
    });
}

#[test]
fn codings_that_are_rubbish() {
    fn flipped(mut bytes: Vec<u8>, from_end: usize) -> Vec<u8> {
        let at = bytes.len() - from_end;
        bytes[at] ^= 0x55;
        bytes
    }
    const REPLIES: &[Said] = &[
        ("a wrong checksum", || coded("gzip", &flipped(gzip(&PAGE), 6))),
        ("a wrong length", || coded("gzip", &flipped(gzip(&PAGE), 2))),
        ("a wrong checksum, zlib", || coded("deflate", &flipped(zlib(&PAGE), 1))),
        ("plain text that says gzip", || coded("gzip", &PAGE)),
        ("plain text that says br", || coded("br", b"\xff\xff\xff\xff plain")),
        ("plain text that says zstd", || coded("zstd", &PAGE)),
        ("the codings in the wrong order", || coded("gzip, deflate", &gzip(&zlib(&PAGE)))),
        ("a coding nobody knows", || coded("sdch", &PAGE)),
        ("a known one under an unknown one", || coded("gzip, aes128gcm", &gzip(&PAGE))),
        ("six of them", || {
            coded("gzip,gzip,gzip,gzip,gzip,gzip", &(0..6).fold(PAGE.clone(), |all, _| gzip(&all)))
        }),
    ];
    each("", REPLIES, |name, listed, document| {
        assert_eq!((&*listed.result, listed.success), ("decode_failed", false), "{name}: {listed:?}");
        assert!(listed.flags.iter().any(|flag| flag == "content_coding_broken"), "{name}: {listed:?}");
        if name == "a coding nobody knows" {
            assert_eq!(document, *PAGE, "what came is kept");
        }
        if name.starts_with("a wrong") {
            assert_eq!(document, *PAGE, "what was decoded is kept");
        }
    });
}

/// The connection ends inside the coding: that is the fault of the connection.
#[test]
fn a_response_cut_in_its_coding_is_truncated() {
    fn cut(reply: Reply, bytes: usize) -> Reply {
        Reply { bytes: reply.bytes[..bytes].to_vec(), ..Reply::hang_up() }
    }
    const REPLIES: &[Said] = &[
        ("gzip", || cut(coded("gzip", &gzip(&noise(200_000))), 100_000)),
        ("deflate", || cut(coded("deflate", &raw_deflate(&noise(200_000))), 100_000)),
        ("zstd", || cut(coded("zstd", &zstd(&noise(400_000))), 300_000)),
    ];
    each("", REPLIES, |name, listed, document| {
        assert_eq!((&*listed.result, listed.success), ("truncated", false), "{name}: {listed:?}");
        assert!(listed.flags.iter().any(|flag| flag == "decoded"), "{name}: {listed:?}");
        assert!(document.len() > 30_000 && noise(400_000).starts_with(document), "{name}: {listed:?}");
    });
}

/// An error in a coding is an error, and its document is plain.
#[test]
fn an_error_page_is_decoded_too() {
    let mut stage = Stage::new(|_| {
        let mut reply = coded("deflate", &zlib(&PAGE));
        reply.bytes.splice(9..15, *b"404 No");
        reply
    });
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    assert_record(&stage.stored()[&url], "http_error", Some(404), &PAGE, DECODED);
}

// Bombs -----------------------------------------------------------------------------------------------------

#[test]
fn the_limit_holds_for_what_was_decoded() {
    const REPLIES: &[Said] = &[
        ("just so", || coded("gzip", &gzip(&[b'x'; 1_000]))),
        ("gzip", || coded("gzip", &gzip(&[b'x'; 1_001]))),
        ("zstd", || coded("zstd", &zstd(&[b'x'; 1_001]))),
        ("deflate, gzip", || coded("deflate, gzip", &gzip(&zlib(&[b'x'; 1_001])))),
        // More on the wire than may be stored is too much, whatever it would decode to.
        ("noise", || coded("gzip", &gzip(&noise(1_000)))),
    ];
    each("[spider]\nmax_doc_size = 1000\n", REPLIES, |name, listed, document| {
        let (result, flags) = match name {
            "just so" => ("ok", DECODED),
            _ => ("too_large", &["cut", "decoded"][..]),
        };
        assert_record(listed, result, Some(200), document, flags);
        match name {
            "noise" => assert!(document.len() > 900 && noise(1_000).starts_with(document), "{listed:?}"),
            _ => assert_eq!(document, [b'x'; 1_000], "{name}"),
        }
    });
}

const ZEROS: usize = 128 << 20;

/// A bomb of each kind, made once.
static BOMBS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let zeros = vec![0; ZEROS];
    let gzipped = gzip(&zeros);
    let twice = gzip(&gzipped);
    vec![
        ("deflate", zlib(&zeros)),
        ("zstd", zstd(&zeros)),
        ("gzip, gzip", twice.clone()),
        ("gzip, gzip, br", bytes_of(BOMB_BR)),
        ("gzip, gzip, gzip", gzip(&twice)),
        ("gzip", gzipped),
        ("br", bytes_of(BOMB_BR)),
    ]
});

/// The most memory that a crawl of a server's pages ever had, in kB.
#[track_caller]
fn memory_of(bombs: bool, data: &mut Option<Stage>) -> u64 {
    let mut stage = Stage::new(move |asked| match asked.target[1..].parse::<usize>() {
        Ok(n) if bombs => coded(BOMBS[n].0, &BOMBS[n].1),
        Ok(_) => coded("gzip", &gzip(&[0; 100_000])),
        // So that the crawl is there to be looked at when the rest is done.
        Err(_) => Reply::text("last").after_ms(1_500),
    });
    stage.settings("[spider]\nmax_doc_size = 4000000\n");
    let count = BOMBS.len();
    let mut urls: Vec<String> =
        (0..count).map(|n| stage.url(&format!("b{n}.test"), &format!("/{n}"))).collect();
    urls.push(stage.url("last.test", "/last"));
    let mut running = Running::start(&mut stage.command(&urls));
    let (mut memory, status) = (0, format!("/proc/{}/status", running.pid()));
    while !running.has_ended() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        memory = memory.max(most.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = running.wait(PATIENCE).done().json();
    assert_eq!(report["pages"], count as u64 + 1, "{report}");
    *data = Some(stage);
    memory
}

/// What a bomb becomes is no larger than a document may be, nor is the process that took it.
#[test]
fn a_bomb_is_a_document_of_the_largest_size() {
    let mut stage = None;
    let usual = memory_of(false, &mut stage);
    let with_bombs = memory_of(true, &mut stage);
    let mut stage = stage.unwrap();
    for (n, (coding, _)) in BOMBS.iter().enumerate() {
        let url = stage.url(&format!("b{n}.test"), &format!("/{n}"));
        let listed = &stage.stored()[&url];
        assert!(["too_large", "decode_failed"].contains(&&*listed.result), "{coding}: {listed:?}");
        assert!(listed.bytes <= 4_000_000, "{coding}: {listed:?}");
        let flag = if listed.result == "too_large" { "cut" } else { "content_coding_broken" };
        assert!(listed.flags.iter().any(|said| said == flag), "{coding}: {listed:?}");
    }
    assert!(with_bombs < usual + 64 * 1_024, "{with_bombs} kB, and {usual} kB with small pages");
}
