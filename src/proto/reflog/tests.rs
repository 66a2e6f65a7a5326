use super::*;
use proptest::prelude::*;

/// What was told, owned.
#[derive(Debug, PartialEq, Eq)]
enum Owned {
    Record(u64, String),
    Reject(u64, RejectReason, Vec<u8>, u32),
}

fn owned(told: Told<'_>) -> Owned {
    match told {
        Told::Record { line, record } => {
            let mut out = Vec::new();
            record.write(&mut out);
            Owned::Record(line, String::from_utf8_lossy(&out).trim_end_matches('\n').to_string())
        }
        Told::Reject(Reject { line, why, text, hits }) => Owned::Reject(line, why, text.to_vec(), hits),
    }
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Owned>, ReflogCounts) {
    let mut reader = ReflogReader::default();
    let mut all = Vec::new();
    for piece in pieces {
        reader.read(piece, |told| all.push(owned(told)));
    }
    reader.end(|told| all.push(owned(told)));
    (all, reader.counts())
}

/// One word for each thing told: the line of a record, its hits and tag; the line of a reject and its reason.
fn summary(bytes: &[u8]) -> String {
    let mut words = Vec::new();
    let mut reader = ReflogReader::default();
    let mut tell = |told: Told<'_>| {
        words.push(match told {
            Told::Record { line, record } => {
                format!("{line}:{}:{}", record.hits, String::from_utf8_lossy(record.tag))
            }
            Told::Reject(reject) => format!("{}!{}", reject.line, reject.why.name()),
        });
    };
    reader.read(bytes, &mut tell);
    reader.end(&mut tell);
    if reader.counts().unknown > 0 {
        words.push(format!("+{}", reader.counts().unknown));
    }
    words.join(" ")
}

const HEAD: &str = "2011072806593795\t5\t20110727200841\t2310";

#[test]
fn the_example_of_the_specification_is_read() {
    let text = "2011072806593795\t5\t20110727200841\t2310\t\n\
        http://fatalenergy.com.ru/power/index.php?newsid=1185458796\t1\t0\n\n\
        2011072806593795\t5\t20110727200853\t4599\t\nhttp://astroma.net/week/02.htm\t1\t0\n\n\
        2011072806593795\t5\t20110727200844\t1038\t\n\
        http://www.3dnews.ru/search/index.php?query=canon%20600d&method=and&orderby=1&order=1\t\n1\n";
    let (told, counts) = read([text.as_bytes()]);
    let expected = [
        (
            1,
            "2011072806593795\t5\t20110727200841\t2310\thttp://fatalenergy.com.ru/power/index.php?newsid=1185458796\t1\t0",
        ),
        (4, "2011072806593795\t5\t20110727200853\t4599\thttp://astroma.net/week/02.htm\t1\t0"),
        (
            7,
            "2011072806593795\t5\t20110727200844\t1038\thttp://www.3dnews.ru/search/index.php?query=canon%20600d&method=and&orderby=1&order=1\t1\t",
        ),
    ];
    assert_eq!(told, expected.map(|(line, text)| Owned::Record(line, text.to_string())));
    assert_eq!(counts, ReflogCounts { lines: 9, records: 3, ..ReflogCounts::default() });
}

/// `H` is a head up to the page, without its tab; `|` is a tab and `/` an end of line.
#[test]
fn each_case_has_its_answer() {
    let long = |bytes: usize| "x".repeat(bytes);
    let cases: Vec<(String, &str)> = [
        // Whole, and broken at either place or both, with the tab at the break and without.
        ("H|u|1|t/", "1:1:t"),
        ("H|u|1/", "1:1:"),
        ("H|u|1|/", "1:1:"),
        ("H|/u|1|t/H|u|2/", "1:1:t 3:2:"),
        ("H/u|1|t/", "1:1:t"),
        ("H|u|/1|t/", "1:1:t"),
        ("H|u/1/", "1:1:"),
        ("H/u/1|t/H|/u|/1/", "1:1:t 4:1:"),
        ("H//u///1|t/", "1:1:t"),
        ("H|  /u|1/", "1:1:"),
        // A tag that looks like a time does not begin a record.
        ("H/u|1|20110727200841/", "1:1:20110727200841"),
        // What goes on with nothing, and what does not go on.
        ("H/H|u|2/", "1!unfinished 2:2:"),
        ("H|u/H|u|2/", "1!unfinished 2:2:"),
        ("H/words/u|1/", "1!unfinished +2"),
        ("H|u/words/1/", "1!unfinished +2"),
        ("H|u/many/", "1!unfinished +1"),
        ("H|u/5|6|7/", "1!unfinished +1"),
        ("H|", "1!unfinished"),
        ("H|u", "1!unfinished"),
        // A URL of no known scheme is told by the hits behind it.
        ("H/www.a.test|3|t/", "1:3:t"),
        ("H/www.a.test/", "1!unfinished +1"),
        // Unknown lines before, between and after.
        ("words/H|u|1/17/x|y/H|u|2/more", "2:1: 5:2: +4"),
        ("u|1|t/1|2/", "+2"),
        // Ends of lines and odd bytes.
        ("H|u|1|t\r/H|u|2\r/\r/H|u|3|", "1:1:t 2:2: 4:3:"),
        ("H\r/u\r/1\r/", "1:1:"),
        ("H|u|1\rH|u|2/", "1!too_many_fields"),
        ("H|u\r|1/", "1!url_bytes"),
        ("\u{feff}H|u|1/", "1:1:"),
        ("/\u{feff}H|u|1/", "2!batch"),
        ("H|u\0|1/", "1!url_bytes"),
        ("\0H|u|1/", "1!batch"),
        ("H|u|1|\0/", "1:1:\0"),
        ("H|u|1", "1:1:"),
        ("", ""),
        ("///", ""),
        // Fields.
        ("H|u x|1|t/", "1:1:t"),
        ("H|u|x|1|t/", "1!too_many_fields"),
        ("H|u|x|1/", "1!hits"),
        ("H|u|1|t|/", "1!too_many_fields"),
        ("H||1|t/", "1!no_url"),
        ("H|u||t/", "1!hits"),
        ("1|1|20110727200841/", "1!too_few_fields"),
        ("1|1|20110727200841|/", "1!too_few_fields"),
        ("1|1|20110727200841|||1/", "1!no_url"),
        ("1|1|20110727200841||u|1/", "1!page"),
        // Hits.
        ("H|u|-1/", "1!hits"),
        ("H|u/-1/", "1!hits"),
        ("H|u|0/", "1:0:"),
        ("H|u|007/", "1:7:"),
        ("H|u|many/", "1!hits"),
        ("H|u|1.5/", "1!hits"),
        ("H|u| 1/", "1:1:"),
        ("H|u|4294967295/", "1:4294967295:"),
        ("H|u|9999999999/", "1:4294967295:"),
        ("H|u|18446744073709551616/", "1:4294967295:"),
        // Priority, batch, page.
        ("1|999|20110727200841|7|u|1/", "1:1:"),
        ("1|99999999999999999999|20110727200841|7|u|1/", "1:1:"),
        ("1|x|20110727200841|7|u|1/", "1!priority"),
        ("1||20110727200841|7|u|1/", "1!priority"),
        ("b7|5|20110727200841|7|u|1/", "1!batch"),
        ("b7|5|20110727200841|7/u|1/", "1!batch"),
        ("|5|20110727200841|7|u|1/", "1!batch"),
        ("1|5|20110727200841|x7|u|1/", "1!page"),
        ("1|5|20110727200841|7x/u|1/", "1!page"),
        // Times.
        ("1|5|00000000000000|7|u|1/", "1!time"),
        ("1|5|20111327200841|7|u|1/", "1!time"),
        ("1|5|20110230200841|7|u|1/", "1!time"),
        ("1|5|20110727200861|7|u|1/", "1!time"),
        ("1|5|20161231235960|7|u|1/", "1:1:"),
        ("1|5|19700101000000|7|u|1/", "1:1:"),
        ("1|5|20990101000000|7|u|1/", "1:1:"),
        ("1|5|2011072720084|7|u|1/", "1!time"),
        ("1|5|2011072720084|7/", "+1"),
    ]
    .map(|(case, expected)| (case.to_string(), expected))
    .into_iter()
    .chain([
        (format!("{}|5|20110727200841|7|u|1/", "9".repeat(DIGITS_MAX)), "1:1:"),
        (format!("{}|5|20110727200841|7|u|1/", "9".repeat(DIGITS_MAX + 1)), "1!batch"),
        (format!("1|5|20110727200841|{}|u|1/", "9".repeat(DIGITS_MAX + 1)), "1!page"),
        (format!("H|u|1|{}/H|u|2/", long(TAG_BYTES_MAX + 1)), "1!tag_too_long 2:2:"),
        (format!("H|u{}|1/H|u|2/", long(8_193)), "1!url_too_long 2:2:"),
        (format!("H|u|1|{}/H|u|2/", long(LINE_BYTES_MAX)), "1!line_too_long 2:2:"),
        (format!("H|u|1/{}/H|u|2/", long(10 * LINE_BYTES_MAX)), "1:1: 2!line_too_long 3:2:"),
        (format!("H/{}/u|1/", long(LINE_BYTES_MAX + 1)), "1!unfinished 2!line_too_long +1"),
        (format!("{}/", long(LINE_BYTES_MAX)), "+1"),
        (long(LINE_BYTES_MAX + 1), "1!line_too_long"),
    ])
    .collect();
    for (case, expected) in cases {
        let bytes =
            case.replace('/', "\n").replace('|', "\t").replace('u', "http://a.test/").replace('H', HEAD);
        let shown: String = case.chars().take(80).collect();
        assert_eq!(summary(bytes.as_bytes()), expected, "{shown:?}");
    }
}

#[test]
fn tags_are_kept_as_they_are_and_rejects_name_their_beginning() {
    let mut bytes = format!("{HEAD}\thttp://a.test/\t1\t").into_bytes();
    bytes.extend_from_slice(b"\xff\xfe\\t\x01\n");
    bytes.extend_from_slice(format!("x{HEAD}\thttp://a.test/{}\t7\t0\n", "y".repeat(300)).as_bytes());
    let mut seen = 0;
    ReflogReader::default().read(&bytes, |told| {
        seen += 1;
        match told {
            Told::Record { record, .. } => assert_eq!(record.tag, b"\xff\xfe\\t\x01"),
            Told::Reject(reject) => {
                assert_eq!(
                    (reject.why, reject.hits, reject.text.len()),
                    (RejectReason::Batch, 7, TEXT_BYTES_MAX)
                );
                assert!(reject.text.starts_with(b"x2011"));
            }
        }
    });
    assert_eq!(seen, 2);
}

#[test]
fn the_next_file_begins_with_line_one() {
    let mut reader = ReflogReader::default();
    let mut lines = Vec::new();
    let mut note = |told: Told<'_>| match told {
        Told::Record { line, .. } => lines.push(line),
        Told::Reject(reject) => lines.push(100 + reject.line),
    };
    let line = format!("{HEAD}\thttp://a.test/\t1\n");
    reader.read(format!("{line}{line}{HEAD}\n").as_bytes(), &mut note);
    reader.end(&mut note);
    reader.read(&vec![b'x'; LINE_BYTES_MAX + 9], &mut note);
    reader.end(&mut note);
    reader.read(format!("\u{feff}{line}").as_bytes(), &mut note);
    reader.end(&mut note);
    assert_eq!(lines, [1, 2, 103, 101, 1]);
    assert_eq!(reader.counts(), ReflogCounts { lines: 5, records: 3, rejects: 2, ..ReflogCounts::default() });
}

/// Bytes that are a reflog more or less: whole records, pieces of them, and rubbish.
fn rough() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(format!("{HEAD}\thttp://a.test/x\t3\tv1\n").into_bytes()),
        2 => Just(format!("{HEAD}\thttp://a.test/x\t3\n").into_bytes()),
        3 => Just(HEAD.as_bytes().to_vec()),
        3 => Just(b"http://a.test/".to_vec()),
        3 => Just(b"\n".to_vec()),
        3 => Just(b"\t".to_vec()),
        2 => Just(b"12".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b" ".to_vec()),
        1 => Just(b"-".to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(vec![b'z'; LINE_BYTES_MAX - 40]),
        1 => Just(b"20110230000000".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Line by line, without the short way for plain records.
fn slowly(bytes: &[u8]) -> Vec<Owned> {
    let mut reader = ReflogReader::default();
    let mut all = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let (most, last) = line.split_at(line.len() - 1);
        // Without its end in sight, no line is plain.
        reader.read(most, |told| all.push(owned(told)));
        reader.read(last, |told| all.push(owned(told)));
    }
    reader.end(|told| all.push(owned(told)));
    all
}

proptest! {
    #[test]
    fn any_cutting_tells_the_same(bytes in rough(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let (whole, counts) = read([&bytes[..]]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read(pieces), (whole, counts));
        prop_assert_eq!(slowly(&bytes), read([&bytes[..]]).0);
        prop_assert_eq!(counts.lines as usize, bytes.split_inclusive(|&byte| byte == b'\n').count());
    }

    #[test]
    fn byte_by_byte_tells_the_same(bytes in rough()) {
        let bytes = &bytes[..bytes.len().min(4_096)];
        prop_assert_eq!(read(bytes.chunks(1)), read([bytes]));
    }

    #[test]
    fn what_is_written_is_read_again(
        batch in "[0-9]{1,32}", priority: u8, at: u32, page in "[0-9]{1,32}",
        url in "http://[ -~]{1,60}", hits: u32, tag in "[!-~]{0,128}",
    ) {
        let record = ReflogRecord {
            batch: batch.as_bytes(), priority, at: Stamp::from_s(at), page: page.as_bytes(), url: url.as_bytes(), hits,
            tag: tag.as_bytes(),
        };
        let mut line = Vec::new();
        record.write(&mut line);
        let mut seen = 0;
        ReflogReader::default().read(&line, |told| {
            seen += 1;
            assert_eq!(told, Told::Record { line: 1, record });
        });
        prop_assert_eq!(seen, 1);
    }
}
