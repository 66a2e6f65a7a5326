//! The promise: every coding gives back the document; a cut or damaged one gives back a beginning of it; and nothing
//! that a server sends costs more than the limits say.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;
use crate::proto::http1::{HeadLimits, HeadParser, HeadStep, Method};

const PAGE: &[u8] = include_bytes!("testdata/page.html");
const PAGE_BR: &[u8] = include_bytes!("testdata/page.html.br");
/// 64 MiB of zeros.
const BOMB_BR: [u8; 52] = [
    0xcf, 0xff, 0xff, 0x7f, 0x00, 0x24, 0x00, 0xe2, 0xb1, 0x40, 0x72, 0xef, 0xff, 0xf9, 0xff, 0xff, 0x0f,
    0x80, 0x04, 0x40, 0x1c, 0x16, 0x80, 0xee, 0xfd, 0x3f, 0xff, 0xff, 0xff, 0x01, 0x90, 0x00, 0x88, 0xc3,
    0x02, 0xd0, 0xbd, 0xff, 0xe7, 0xff, 0xff, 0x3f, 0x00, 0x12, 0x00, 0x71, 0x58, 0x00, 0xba, 0xf7, 0xff,
    0x03,
];
const LIMITS: CodingLimits = CodingLimits::new(16 << 20);

fn gzip(document: &[u8]) -> Vec<u8> {
    let mut coder = GzEncoder::new(Vec::new(), Compression::best());
    coder.write_all(document).unwrap();
    coder.finish().unwrap()
}

fn zlib(document: &[u8]) -> Vec<u8> {
    let mut coder = ZlibEncoder::new(Vec::new(), Compression::default());
    coder.write_all(document).unwrap();
    coder.finish().unwrap()
}

fn raw_deflate(document: &[u8]) -> Vec<u8> {
    let mut coder = DeflateEncoder::new(Vec::new(), Compression::default());
    coder.write_all(document).unwrap();
    coder.finish().unwrap()
}

fn zstd_with(document: &[u8], parameter: zstd_safe::CParameter) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(parameter).unwrap();
    let mut coded = vec![0; zstd_safe::compress_bound(document.len())];
    let bytes = context.compress2(&mut coded[..], document).unwrap();
    coded.truncate(bytes);
    coded
}

fn zstd(document: &[u8]) -> Vec<u8> {
    zstd_with(document, zstd_safe::CParameter::ChecksumFlag(true))
}

fn noise(bytes: usize) -> Vec<u8> {
    let step = |word: &u64| Some(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let words = std::iter::successors(Some(1), step);
    words.flat_map(|word| ((word >> 32) as u32).to_le_bytes()).take(bytes).collect()
}

/// The page in every coding.
fn pages() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("gzip", gzip(PAGE)),
        ("X-GZIP", gzip(PAGE)),
        ("deflate", zlib(PAGE)),
        ("deflate", raw_deflate(PAGE)),
        ("br", PAGE_BR.to_vec()),
        ("zstd", zstd(PAGE)),
        ("deflate, gzip", gzip(&zlib(PAGE))),
        ("br, identity, zstd", zstd(PAGE_BR)),
    ]
}

/// A document that a failing test does not print byte by byte.
#[derive(Clone, PartialEq, Eq)]
struct Document(Vec<u8>);

impl std::ops::Deref for Document {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes from {}", self.len(), self[..self.len().min(40)].escape_ascii())
    }
}

fn decode_within(header: &str, coded: &[u8], limits: &CodingLimits) -> (Decoded, Document) {
    let mut out = b"head".to_vec();
    let decoded = ContentDecoder::new().decode(header.as_bytes(), coded, limits, &mut out);
    assert!(out.starts_with(b"head"));
    (decoded, Document(out.split_off(4)))
}

fn page() -> Document {
    Document(PAGE.to_vec())
}

fn nothing() -> Document {
    Document(Vec::new())
}

fn decode(header: &str, coded: &[u8]) -> (Decoded, Document) {
    decode_within(header, coded, &LIMITS)
}

#[test]
fn every_coding_gives_back_the_document() {
    // One decoder for all, as in a spider: no document leaves a trace in the next.
    let mut decoder = ContentDecoder::new();
    for _ in 0..2 {
        for (header, coded) in pages() {
            let mut out = Vec::new();
            assert_eq!(
                decoder.decode(header.as_bytes(), &coded, &LIMITS, &mut out),
                Decoded::Whole,
                "{header}"
            );
            assert!(out == PAGE, "{header}");
            assert_ne!(
                decoder.decode(header.as_bytes(), &coded[..coded.len() / 2], &LIMITS, &mut out),
                Decoded::Whole
            );
        }
    }
}

#[test]
fn a_document_of_many_steps_comes_whole() {
    let long: Vec<u8> = (0..50_000u32)
        .flat_map(|n| format!("<p>{}</p>\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect();
    for (header, coded) in [
        ("gzip", gzip(&long)),
        ("deflate", zlib(&long)),
        ("deflate", raw_deflate(&long)),
        ("zstd", zstd(&long)),
    ] {
        let (decoded, out) = decode(header, &coded);
        assert_eq!(decoded, Decoded::Whole, "{header}");
        assert!(*out == *long, "{header}");
    }
}

#[test]
fn a_body_cut_anywhere_gives_the_beginning_of_the_document() {
    for (header, coded) in pages() {
        let mut longest = 0;
        for cut in 0..coded.len() {
            let (decoded, out) = decode(header, &coded[..cut]);
            assert_eq!(
                decoded,
                if cut == 0 { Decoded::Plain } else { Decoded::Broken },
                "{header} cut at {cut}"
            );
            assert!(PAGE.starts_with(&out), "{header} cut at {cut}");
            assert!(out.len() >= longest, "{header} cut at {cut}: more bytes, less document");
            longest = out.len();
        }
        assert!(longest > PAGE.len() * 9 / 10, "{header}: {longest}");
    }
}

#[test]
fn nothing_to_undo_is_plain() {
    for header in ["", "identity", " Identity , ,", "none", "utf-8"] {
        assert_eq!(decode(header, b"text"), (Decoded::Plain, nothing()), "{header}");
    }
    // A server labels an empty body like any other.
    assert_eq!(decode("gzip", b""), (Decoded::Plain, nothing()));
}

#[test]
fn an_unknown_coding_anywhere_leaves_the_body_alone() {
    for header in ["compress", "gzip, compress", "compress, gzip", "gzip br", "br;q=1"] {
        assert_eq!(decode(header, &gzip(PAGE)), (Decoded::Unknown, nothing()), "{header}");
    }
}

#[test]
fn members_and_frames_follow_each_other() {
    let (a, b) = PAGE.split_at(1_000);
    let members = [gzip(a), gzip(b""), gzip(b)].concat();
    assert_eq!(decode("gzip", &members), (Decoded::Whole, page()));
    let skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    let frames = [&skipped[..], &zstd(a), skipped, &zstd(b), skipped].concat();
    assert_eq!(decode("zstd", &frames), (Decoded::Whole, page()));
    // Cut inside the second of them.
    let (decoded, out) = decode("gzip", &members[..gzip(a).len() + 4]);
    assert_eq!((decoded, &out[..]), (Decoded::Broken, a));
}

#[test]
fn what_follows_the_stream_is_left_alone() {
    for rubbish in [&[0u8; 512][..], b"\n", b"<!-- served by -->"] {
        for (header, coded) in pages() {
            let padded = [&coded[..], rubbish].concat();
            assert_eq!(decode(header, &padded), (Decoded::Whole, page()), "{header}");
        }
    }
}

#[test]
fn a_gzip_header_may_hold_everything() {
    let plain = gzip(PAGE);
    let mut full = plain[..10].to_vec();
    full[3] = 0b1_1110;
    full.extend(b"\x05\0extraname.html\0a comment\0\x12\x34");
    full.extend(&plain[10..]);
    assert_eq!(decode("gzip", &full), (Decoded::Whole, page()));
}

#[test]
fn a_body_that_is_not_in_its_coding_is_broken_and_nothing_is_made_of_it() {
    for header in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "zstd, br"] {
        assert_eq!(decode(header, PAGE), (Decoded::Broken, nothing()), "{header}");
        assert_eq!(decode(header, b"<html></html>"), (Decoded::Broken, nothing()), "{header}");
    }
}

#[test]
fn a_coding_named_once_too_often_costs_nothing_but_a_flag() {
    for (header, coded) in
        [("gzip, gzip", gzip(PAGE)), ("gzip, br", PAGE_BR.to_vec()), ("br, zstd, gzip", gzip(PAGE))]
    {
        assert_eq!(decode(header, &coded), (Decoded::Broken, page()), "{header}");
    }
    let (decoded, out) = decode_within("gzip, gzip", &gzip(PAGE), &CodingLimits::new(100));
    assert_eq!((decoded, &out[..]), (Decoded::Broken, &PAGE[..100]));
}

#[test]
fn a_wrong_checksum_or_length_keeps_the_document() {
    for (header, coded, last) in
        [("gzip", gzip(PAGE), 8), ("deflate", zlib(PAGE), 4), ("zstd", zstd(PAGE), 4)]
    {
        for back in 1..=last {
            let mut bad = coded.clone();
            let at = bad.len() - back;
            bad[at] ^= 0x40;
            assert_eq!(decode(header, &bad), (Decoded::Broken, page()), "{header} {back}");
        }
    }
}

#[test]
fn a_document_of_exactly_the_limit_is_whole() {
    for (header, coded) in pages() {
        let len = PAGE.len() as u64;
        assert_eq!(decode_within(header, &coded, &CodingLimits::new(len)), (Decoded::Whole, page()));
        for limit in [len - 1, 1_000, 1, 0] {
            let (decoded, out) = decode_within(header, &coded, &CodingLimits::new(limit));
            assert_eq!((decoded, &out[..]), (Decoded::TooLarge, &PAGE[..limit as usize]), "{header} {limit}");
        }
        assert_eq!(decode_within(header, &coded, &CodingLimits::new(u64::MAX)).0, Decoded::Whole);
    }
}

#[test]
fn bombs_are_stopped_early() {
    let zeros = vec![0; 32 << 20];
    for (header, coded) in [
        ("gzip", gzip(&zeros)),
        ("deflate", raw_deflate(&zeros)),
        ("br", BOMB_BR.to_vec()),
        ("zstd", zstd(&zeros)),
    ] {
        let (decoded, out) = decode(header, &coded);
        assert_eq!(decoded, Decoded::Bomb, "{header}");
        assert!(out.len() >= 1 << 20 && out.len() < 3 << 20, "{header}: {}", out.len());
        // A bomb behind a layer is one, too.
        let (decoded, out) = decode(&format!("{header}, gzip"), &gzip(&coded));
        assert_eq!(decoded, Decoded::Bomb, "{header}");
        assert!(out.len() < 3 << 20, "{header}: {}", out.len());
    }
}

/// Each layer by itself stays below the ratio; what counts is the wire.
#[test]
fn layers_do_not_multiply_the_ratio() {
    let mut dense = Vec::new();
    for n in 0..10_000u32 {
        dense.extend(n.wrapping_mul(2_654_435_761).to_le_bytes());
        dense.extend([b' '; 396]);
    }
    let inner = gzip(&dense);
    let thrice = inner.repeat(3);
    let outer = zstd(&thrice);
    let limits = CodingLimits { ratio_max: 60, ..LIMITS };
    assert!(dense.len() / inner.len() < 60 && thrice.len() / outer.len() < 60);
    assert_eq!(decode_within("gzip", &thrice, &limits).0, Decoded::Whole);
    assert_eq!(decode_within("zstd", &outer, &limits).0, Decoded::Whole);
    assert_eq!(decode_within("gzip, zstd", &outer, &limits).0, Decoded::Bomb);
}

#[test]
fn a_short_page_may_shrink_as_much_as_it_can() {
    let blanks = vec![b' '; 1 << 20];
    assert_eq!(decode("zstd", &zstd(&blanks)), (Decoded::Whole, Document(blanks)));
}

#[test]
fn the_bytes_between_layers_are_bounded_as_well() {
    // Bytes that do not shrink, so that no ratio gives them away.
    let noise = noise(300_000);
    let coded = gzip(&noise);
    let (decoded, out) = decode_within("deflate, gzip", &coded, &CodingLimits::new(1_000));
    assert!(out.len() <= 1_000);
    assert_ne!(decoded, Decoded::Whole);
    // Padding behind the inner stream is where such bytes would hide.
    let padded = gzip(&[zlib(b"short"), noise].concat());
    assert_eq!(
        decode_within("deflate, gzip", &padded, &CodingLimits::new(1_000)),
        (Decoded::Bomb, Document(b"short".to_vec()))
    );
}

#[test]
fn at_most_five_layers_are_undone() {
    let mut coded = PAGE.to_vec();
    for layers in 1..=6 {
        coded = gzip(&coded);
        let header = vec!["gzip"; layers].join(",");
        let expected = if layers <= 5 { (Decoded::Whole, page()) } else { (Decoded::Bomb, nothing()) };
        assert_eq!(decode(&header, &coded), expected, "{layers}");
    }
    let header = "gzip,".repeat(10_000);
    assert_eq!(decode(&header, &coded).0, Decoded::Bomb);
    assert_eq!(decode(&(header + "identity, what"), &coded).0, Decoded::Unknown);
}

#[test]
fn a_flood_of_empty_members_is_a_bomb() {
    assert_eq!(decode("gzip", &gzip(b"").repeat(100_000)).0, Decoded::Bomb);
    assert_eq!(decode("zstd", b"\x50\x2a\x4d\x18\0\0\0\0".repeat(100_000).as_slice()).0, Decoded::Bomb);
    assert_eq!(decode("gzip", &gzip(b"").repeat(1_000)), (Decoded::Whole, nothing()));
}

/// A frame header alone: its window as an exponent of two, and no size, or a size in a single segment.
fn zstd_header(window_log: Option<u8>, size: u64) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd];
    match window_log {
        Some(log) => frame.extend([0x00, (log - 10) << 3]),
        None => {
            frame.push(0b1110_0000);
            frame.extend(size.to_le_bytes());
        }
    }
    frame
}

#[test]
fn a_zstd_window_above_eight_mebibytes_is_refused_and_claims_are_not_believed() {
    // One block of five bytes as they are, the last.
    let block = [0x29, 0, 0, b'a', b'b', b'c', b'd', b'e'];
    for log in [10, 21, 23] {
        let coded = [zstd_header(Some(log), 0), block.to_vec()].concat();
        assert_eq!(decode("zstd", &coded), (Decoded::Whole, Document(b"abcde".to_vec())), "{log}");
    }
    for log in [24, 27, 31, 41] {
        let coded = [zstd_header(Some(log), 0), block.to_vec()].concat();
        assert_eq!(decode("zstd", &coded), (Decoded::Broken, nothing()), "{log}");
    }
    for size in [u64::MAX, 1 << 40, 1 << 31] {
        let coded = [zstd_header(None, size), block.to_vec()].concat();
        let mut out = Vec::new();
        let decoded = ContentDecoder::new().decode(b"zstd", &coded, &LIMITS, &mut out);
        assert_eq!(decoded, Decoded::Broken);
        assert!(out.capacity() < 1 << 20, "{size}: {}", out.capacity());
    }
}

#[test]
fn what_is_kept_between_uses_is_bounded() {
    let kept_max = super::zstd::KEPT_BYTES_MAX + 2 * 256 * 1024;
    let mut decoder = ContentDecoder::new();
    let mut decode = |header: &str, coded: &[u8], document: &[u8]| {
        let mut out = Vec::new();
        assert_eq!(decoder.decode(header.as_bytes(), coded, &LIMITS, &mut out), Decoded::Whole);
        assert!(out == document);
        decoder.kept_bytes()
    };
    let noise = noise(9 << 20);
    for window_log in [21, 23] {
        let coded = zstd_with(&noise, zstd_safe::CParameter::WindowLog(window_log));
        assert!(decode("zstd, zstd", &zstd(&coded), &noise) <= kept_max);
    }
    // And what is usual is kept, not made anew for every page.
    assert!(decode("zstd", &zstd(PAGE), PAGE) > 64 * 1024);
}

#[test]
fn the_document_takes_no_more_memory_than_it_may() {
    for limit in [100_000u64, 1 << 20, 3 << 20] {
        let mut out = Vec::new();
        let limits = CodingLimits { bytes_max: limit, ratio_max: u32::MAX, layers_max: 5 };
        let decoded = ContentDecoder::new().decode(b"br", &BOMB_BR, &limits, &mut out);
        assert_eq!((decoded, out.len() as u64), (Decoded::TooLarge, limit));
        assert!(out.capacity() as u64 <= limit + 1, "{limit}: {}", out.capacity());
    }
}

#[test]
fn repeated_and_folded_headers_are_one_list() {
    let read = |text: &[u8]| {
        let HeadStep::Done(head) = HeadParser::new(HeadLimits::default(), Method::Get).parse(text).unwrap()
        else {
            panic!("a whole head");
        };
        String::from_utf8(header_of(&head, text).into_owned()).unwrap()
    };
    assert_eq!(read(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), "");
    assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"), "gzip");
    assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Encoding:\r\nCONTENT-ENCODING: br,\r\n gzip\r\nA: b\r\ncontent-encoding: zstd\r\n\r\n"), "br, gzip,zstd");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 3_000 } else { 200_000 }))]

    /// Whatever the bytes are, the caps hold and what stood in `out` stays.
    #[test]
    fn damaged_bodies_stay_within_the_caps(
        which in 0..8usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        tail in prop::collection::vec(any::<u8>(), 0..20),
        bytes_max in prop_oneof![Just(0u64), 1..8_000u64, Just(16 << 20)],
        header in prop_oneof![Just(None), "(gzip|br|zstd|deflate)(, (gzip|br|zstd|deflate)){0,2}".prop_map(Some)],
    ) {
        static PAGES: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(pages);
        let (own, mut coded) = PAGES[which].clone();
        for (at, octet) in edits {
            let at = at.index(coded.len());
            coded[at] = octet;
        }
        coded.extend(tail);
        let header = header.unwrap_or_else(|| own.to_string());
        let (decoded, out) = decode_within(&header, &coded, &CodingLimits::new(bytes_max));
        prop_assert!(out.len() as u64 <= bytes_max);
        prop_assert!(decoded != Decoded::TooLarge || out.len() as u64 == bytes_max);
        prop_assert!(decoded != Decoded::Plain);
    }

    #[test]
    fn rubbish_stays_within_the_caps(
        header in "(gzip|br|zstd|deflate)(, (gzip|br|zstd|deflate)){0,2}",
        magic in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd", b"\x78\x9c"]),
        rubbish in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let (_, out) = decode_within(&header, &[magic, &rubbish].concat(), &CodingLimits::new(5_000));
        prop_assert!(out.len() <= 5_000);
    }
}
