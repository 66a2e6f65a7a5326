//! However the bytes are cut, the facts are the same, and no bytes make the parser panic.

use proptest::prelude::*;

use super::*;

/// Everything the parser says about one response.
#[derive(Debug, PartialEq)]
struct Facts {
    head: Result<Head, Option<HeadError>>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    document: Vec<u8>,
    /// Bytes of the whole response that were its own, if the body's end was found.
    consumed: Option<usize>,
    too_large: bool,
    body_error: Option<BodyError>,
    end: Option<BodyEnd>,
    keep_alive: bool,
    flags: Flags,
}

#[derive(Clone, Copy)]
struct Limits {
    head: HeadLimits,
    body: BodyLimits,
}

const SMALL: Limits = Limits {
    head: HeadLimits { head_bytes_max: 300, header_lines_max: 8, interim_max: 2 },
    body: BodyLimits { doc_bytes_max: 40, chunk_ext_bytes_max: 12, trailer_bytes_max: 12 },
};

/// Receives `pieces` one after the other, as a connection would, and then its end.
fn receive(pieces: &[&[u8]], method: Method, limits: Limits) -> Facts {
    let mut facts = Facts {
        head: Err(None),
        headers: vec![],
        document: vec![],
        consumed: None,
        too_large: false,
        body_error: None,
        end: None,
        keep_alive: false,
        flags: Flags::NONE,
    };
    let mut parser = HeadParser::new(limits.head, method);
    let mut received = Vec::new();
    let mut pieces = pieces.iter();
    let head = loop {
        let Some(piece) = pieces.next() else { return facts };
        received.extend_from_slice(piece);
        match parser.parse(&received) {
            Ok(HeadStep::NeedMore) => {}
            Ok(HeadStep::Done(head)) => break head,
            Err(error) => {
                facts.head = Err(Some(error));
                return facts;
            }
        }
    };
    facts.head = Ok(head);
    facts.headers =
        head.headers(&received).map(|(name, value)| (name.to_vec(), value.into_owned())).collect();

    let mut decoder = BodyDecoder::new(head.framing, limits.body);
    let mut pushed = head.head_bytes as usize;
    let first = received.split_off(pushed);
    for piece in std::iter::once(&first[..]).chain(pieces.copied()) {
        match decoder.push(piece, &mut facts.document) {
            Ok(BodyStep::NeedMore) => pushed += piece.len(),
            Ok(BodyStep::Done { consumed }) => {
                facts.consumed = Some(pushed + consumed);
                break;
            }
            Ok(BodyStep::TooLarge) => {
                facts.too_large = true;
                break;
            }
            Err(error) => {
                facts.body_error = Some(error);
                break;
            }
        }
    }
    assert_eq!(decoder.doc_bytes(), facts.document.len() as u64);
    facts.end = Some(decoder.end());
    facts.keep_alive = head.keep_alive && decoder.keep_alive();
    facts.flags = head.flags | decoder.flags();
    facts
}

fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain(std::iter::once(bytes.len()));
    starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect()
}

/// Whole, in two pieces at every byte, and byte by byte.
fn same_facts_however_cut(bytes: &[u8], method: Method, limits: Limits) -> Facts {
    let whole = receive(&[bytes], method, limits);
    for at in 0..=bytes.len() {
        let cut = receive(&[&bytes[..at], &bytes[at..]], method, limits);
        assert_eq!(cut, whole, "cut at {at}: {:?}", bytes.escape_ascii().to_string());
    }
    let bytewise = receive(&bytes.chunks(1).collect::<Vec<_>>(), method, limits);
    assert_eq!(bytewise, whole, "byte by byte: {:?}", bytes.escape_ascii().to_string());
    whole
}

/// Responses of every kind the rules name, good and bad.
const SAMPLES: [&str; 46] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    "HTTP/1.1 200\nA: b\nContent-Length: 0\n\n",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.0 200 OK\r\n\r\nto the end",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nzzz",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n00\r\nA: b\r\nC:\r\n\r\nextra",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\n0 ;x\n\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhelloo",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0x5\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n-1\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nffffffffffffffff\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\nx",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;0123456789\r\nhello\r\n0;0123\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: 0123456789\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA\r\rB\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30\r\n0123456789012345678901234567890123456789",
    "HTTP/1.1 200 OK\r\nContent-Length: 41\r\n\r\n01234567890123456789012345678901234567890",
    "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789!",
    "HTTP/1.1 200 OK\r\n\r\n01234567890123456789012345678901234567890",
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\nLink : </a>\n\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 100 a\r\n\r\nHTTP/1.1 100 b\r\n\r\nHTTP/1.1 100 c\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 301 Moved\r\nLocation:\r\n  /a \r\n\t/b\r\nX :y\r\n: z\r\nContent-Length: 3 , 3\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nabc",
    "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
    "HTTP/1.1 200 OK\r\nrubbish\r\n fold: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA:1\r\nA:2\r\nA:3\r\nA:4\r\nA:5\r\nA:6\r\nA:7\r\nA:8\r\nA:9\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA:1\r\n 2\r\n 3\r\n 4\r\n 5\r\n 6\r\n 7\r\n 8\r\n 9\r\n\r\n",
    "HTTP/1.1\t\x0b 200\tOK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "\r\nHTTP/1.1 200 OK\r\n\r\n",
    "ICY 200 OK\r\n\r\n",
    "<html>hello</html>",
    "",
];

#[test]
fn every_sample_cut_at_every_byte() {
    for sample in SAMPLES {
        same_facts_however_cut(sample.as_bytes(), Method::Get, SMALL);
        same_facts_however_cut(sample.as_bytes(), Method::Head, SMALL);
    }
}

#[test]
fn a_head_past_the_limit_is_refused_wherever_it_is_cut() {
    let small = Limits { head: HeadLimits { head_bytes_max: 40, ..SMALL.head }, ..SMALL };
    for value_bytes in 0..40 {
        let text = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\nbody", "x".repeat(value_bytes));
        let facts = same_facts_however_cut(text.as_bytes(), Method::Get, small);
        let fits = text.len() - 4 <= 40;
        assert_eq!(facts.head.is_ok(), fits, "{value_bytes}");
        assert!(fits || facts.head == Err(Some(HeadError::HeadTooLarge)));
    }
}

/// A clock would be fickle; the furthest byte looked back at is not. A parser that started over would need the first
/// bytes again, so they are overwritten as soon as their lines are complete.
#[test]
fn lines_that_were_complete_are_not_read_again() {
    let text = "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n e\r\nContent-Length: 5\r\n\r\n".as_bytes();
    let mut parser = HeadParser::new(HeadLimits::default(), Method::Get);
    let mut received = Vec::new();
    let mut last_line = 0;
    for (index, &byte) in text.iter().enumerate() {
        received.push(byte);
        let step = parser.parse(&received).expect("a good head");
        assert_eq!(matches!(step, HeadStep::Done(_)), index + 1 == text.len());
        // The line before a fold or a peek is still needed, the ones before it are not.
        if byte == b'\n' {
            received[..last_line].fill(0);
            last_line = if text.get(index + 1) == Some(&b' ') { last_line } else { index + 1 };
        }
    }
}

/// Names that matter and names that do not, with values that do.
fn header_line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Content-Length",
        "content-type",
        "Transfer-Encoding",
        "Connection",
        "Location",
        "ETag",
        "Server",
        "X",
        "",
    ]);
    let value = prop::sample::select(vec![
        "5",
        "7",
        "5, 5",
        "+5",
        "chunked",
        "gzip, chunked",
        "close",
        "keep-alive",
        "text/html; charset=x",
        "a\r\n b",
        "",
        "\u{e9}",
        "a\rb",
    ]);
    let parts = (
        prop::sample::select(vec![":", ": ", " :", ":\t"]),
        prop::sample::select(vec!["\r\n", "\n", " \r\n"]),
    );
    (name, value, parts).prop_map(|(name, value, (colon, end))| format!("{name}{colon}{value}{end}"))
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let status = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\n",
        "HTTP/1.1 304\r\n",
        "HTTP/1.1 100 a\r\n\r\nHTTP/1.1 404 b\r\n",
    ]);
    let piece = prop::sample::select(vec![
        "5\r\nhello\r\n",
        "a\n0123456789\n",
        "1 ;a=b\r\nx\r\n",
        "0\r\n",
        "A: b\r\n",
        "\r\n",
        "\n",
        "z",
        "7\r\nshort",
    ]);
    let headers = prop::collection::vec(header_line(), 0..6);
    (status, headers, prop::collection::vec(piece, 0..8)).prop_map(|(status, headers, body)| {
        format!("{status}{}\r\n{}", headers.concat(), body.concat()).into_bytes()
    })
}

/// Pieces that come close to HTTP, so that random input gets past the first byte.
fn almost_http() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        prop::sample::select(vec![
            &b"HTTP/1."[..],
            b"HTTP/1.1 200 OK\r\n",
            b"\r\n",
            b"\n",
            b"\r",
            b"\0",
            b" ",
            b"\t",
            b":",
            b"Content-Length: ",
            b"Transfer-Encoding: chunked\r\n",
            b"5",
            b"0",
            b"ffff",
            b";",
            b",",
            b"HTTP/1.1 100\n\n",
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn method() -> impl Strategy<Value = Method> {
    prop::sample::select(vec![Method::Get, Method::Head])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn random_cuts_of_generated_responses(
        bytes in response(), cuts in prop::collection::vec(any::<usize>(), 0..12), method in method(),
    ) {
        let whole = receive(&[&bytes], method, SMALL);
        prop_assert_eq!(receive(&cut(&bytes, &cuts), method, SMALL), whole);
    }

    #[test]
    fn random_cuts_of_what_is_almost_http(
        bytes in almost_http(), cuts in prop::collection::vec(any::<usize>(), 0..12), method in method(),
    ) {
        let whole = receive(&[&bytes], method, SMALL);
        prop_assert_eq!(receive(&cut(&bytes, &cuts), method, SMALL), whole);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), good_start in any::<bool>()) {
        let mut text = if good_start { b"HTTP/1.1 200 OK\r\n".to_vec() } else { vec![] };
        text.extend_from_slice(&bytes);
        receive(&[&text], Method::Get, SMALL);
        for framing in [Framing::None, Framing::Length(50), Framing::Chunked, Framing::Close] {
            let mut decoder = BodyDecoder::new(framing, SMALL.body);
            let mut document = vec![];
            let _ = decoder.push(&bytes, &mut document);
            prop_assert!(document.len() as u64 <= SMALL.body.doc_bytes_max);
        }
    }

    #[test]
    fn chunks_decode_to_what_was_encoded(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut encoded = Vec::new();
        for chunk in &chunks {
            encoded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            encoded.extend_from_slice(chunk);
            encoded.extend_from_slice(b"\r\n");
        }
        encoded.extend_from_slice(b"0\r\n\r\n");
        let mut decoder = BodyDecoder::new(Framing::Chunked, BodyLimits::default());
        let mut document = Vec::new();
        let mut done = false;
        for piece in cut(&encoded, &cuts) {
            done = matches!(decoder.push(piece, &mut document), Ok(BodyStep::Done { .. }));
        }
        prop_assert!(done);
        prop_assert_eq!(document, chunks.concat());
    }
}
