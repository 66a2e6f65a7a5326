//! The same heads, mutated, go to httparse and to us. Where the two disagree, the reason is on a list.

use std::collections::BTreeMap;

use super::{HeadError, HeadLimits, HeadParser, HeadStep, Method};

#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Accepts { status: u16, version_minor: u8, head_bytes: usize, headers: Vec<(Vec<u8>, Vec<u8>)> },
    NeedsMore,
    Rejects,
}

fn ours(bytes: &[u8]) -> (Verdict, Option<HeadError>) {
    match HeadParser::new(HeadLimits::default(), Method::Get).parse(bytes) {
        Ok(HeadStep::Done(head)) => {
            let headers =
                head.headers(bytes).map(|(name, value)| (name.to_vec(), value.into_owned())).collect();
            let (status, version_minor, head_bytes) =
                (head.status, head.version_minor, head.head_bytes as usize);
            (Verdict::Accepts { status, version_minor, head_bytes, headers }, None)
        }
        Ok(HeadStep::NeedMore) => (Verdict::NeedsMore, None),
        Err(error) => (Verdict::Rejects, Some(error)),
    }
}

fn theirs(bytes: &[u8]) -> Verdict {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => Verdict::Accepts {
            status: response.code.unwrap(),
            version_minor: response.version.unwrap(),
            head_bytes,
            headers: response
                .headers
                .iter()
                .map(|it| (it.name.as_bytes().to_vec(), it.value.to_vec()))
                .collect(),
        },
        Ok(httparse::Status::Partial) => Verdict::NeedsMore,
        Err(_) => Verdict::Rejects,
    }
}

/// The lines of a head, without their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn is_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

type Holds = fn(&[u8], Option<HeadError>) -> bool;

/// Why we reject, or wait for more of, a head that httparse takes or still reads.
const STRICTER: [(&str, Holds); 3] = [
    ("a blank line before the status line is not skipped", |bytes, error| {
        error == Some(HeadError::NotHttp1) && bytes.first().is_some_and(|byte| b"\r\n".contains(byte))
    }),
    ("Content-Length is read, and must be sound", |_, error| {
        matches!(error, Some(HeadError::BadContentLength | HeadError::UnequalContentLength))
    }),
    ("interim heads are skipped, so the next head is read too", |bytes, _| is_interim(bytes)),
];

/// Why we take, or still read, a head that httparse rejects.
const LOOSER: [(&str, Holds); 8] = [
    ("any minor version is read", |bytes, _| !matches!(bytes.get(7), Some(b'0' | b'1'))),
    ("words of the status line are parted by any run of white space", |bytes, _| {
        let line = lines(bytes).next().unwrap_or(bytes);
        let parted = |byte: Option<&u8>| matches!(byte, Some(b'\t' | 0x0b | 0x0c));
        parted(line.get(8)) || line.get(8..10) == Some(b"  ") || parted(line.get(9)) || parted(line.get(12))
    }),
    ("the reason is ignored", |bytes, _| {
        lines(bytes).next().unwrap_or(bytes).iter().any(|&byte| is_control(byte))
    }),
    ("a fold continues a header", |bytes, _| {
        lines(bytes).skip(2).any(|line| matches!(line.first(), Some(b' ' | b'\t')))
    }),
    ("white space before a colon is trimmed", |bytes, _| {
        lines(bytes).skip(1).any(|line| matches!(before_colon(line), [.., b' ' | b'\t']))
    }),
    ("a name that is no token is an unknown header", |bytes, _| {
        lines(bytes).skip(1).any(|line| !line.is_empty() && !is_token(before_colon(line)))
    }),
    ("control bytes in a value are kept", |bytes, _| {
        lines(bytes)
            .skip(1)
            .any(|line| line.iter().any(|&byte| is_control(byte) && byte != b'\r' && byte != 0))
    }),
    ("a line is read when the byte after it is known", |bytes, _| {
        let cut = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        lines(cut).last().is_some_and(|line| !line.is_empty() && before_colon(line) == line)
    }),
];

/// Why both take a head and read it differently.
const OTHERWISE: [(&str, Holds); 1] = [("interim heads are skipped", |bytes, _| is_interim(bytes))];

fn is_interim(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HTTP/1.") && bytes.get(8..10) == Some(b" 1")
}

fn before_colon(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b':').next().unwrap_or(line)
}

/// `None` if the two agree, else the first reason that holds.
fn compare(bytes: &[u8]) -> Option<&'static str> {
    let ((ours, error), theirs) = (ours(bytes), theirs(bytes));
    if ours == theirs {
        return None;
    }
    let reasons: &[(&str, Holds)] = match (&ours, &theirs) {
        (_, Verdict::Rejects) => &LOOSER,
        (Verdict::Accepts { .. }, Verdict::Accepts { .. }) => &OTHERWISE,
        (_, _) => &STRICTER,
    };
    let reason = reasons.iter().find(|(_, holds)| holds(bytes, error));
    let Some((reason, _)) = reason else {
        let text = bytes.escape_ascii().to_string();
        panic!("no listed reason for {text:?}\n ours: {ours:?} {error:?}\n theirs: {theirs:?}");
    };
    Some(reason)
}

const HEADS: [&str; 6] = [
    "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 612\r\n\r\n",
    "HTTP/1.0 301 Moved Permanently\r\nLocation: http://example.org/\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 404\r\nX-A: \r\nX-B:b\r\nX-C:\t c \t\r\n\r\n",
    "HTTP/1.1 200 OK\nETag: \"a\"\nTransfer-Encoding: chunked\n\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
    "HTTP/1.1 500 Erreur \u{e9}\r\nSet-Cookie: a=b; path=/\r\nX: \u{e9}\r\n\r\n",
];

/// Read by httparse as heads of their own.
const INTERIM: [&str; 2] = [
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
];

/// Bytes that mean something to a parser.
const EDGE_BYTES: &[u8] = b"\r\n\0\t :;,=/.0159HTPchx\"()\x01\x0b\x0c\x1f\x7f\x80\xff";

/// A small generator with a fixed seed, so that a failure comes back.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

fn mutate(head: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(head.len());
    let edge = EDGE_BYTES[random.below(EDGE_BYTES.len())];
    match random.below(6) {
        0 | 1 => head[at] = edge,
        2 | 3 => head.insert(at, edge),
        4 => drop(head.remove(at)),
        _ => {
            let end = (at + 1 + random.below(12)).min(head.len());
            let copy = head[at..end].to_vec();
            head.splice(at..at, copy);
        }
    }
}

#[test]
fn whole_heads_read_alike() {
    for head in HEADS {
        assert_eq!(compare(head.as_bytes()), None, "{head:?}");
    }
}

#[test]
fn mutated_heads_differ_for_listed_reasons_only() {
    let heads = [&HEADS[..], &INTERIM].concat();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for round in 0..6000 {
        let mut head = heads[round % heads.len()].as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            mutate(&mut head, &mut random);
        }
        *counts.entry(compare(&head)).or_default() += 1;
    }
    let listed = STRICTER.iter().chain(&LOOSER).chain(&OTHERWISE);
    let unused: Vec<_> =
        listed.map(|it| it.0).filter(|reason| !counts.contains_key(&Some(*reason))).collect();
    assert!(counts[&None] > 1000, "{counts:#?}");
    assert!(unused.is_empty(), "reasons that never apply: {unused:?}\n{counts:#?}");
}
