use super::code_without_status;
use super::digits::{hex, padded};
use super::stamp::{push_compact, push_rfc3339};
use crate::base::push_decimal;
use crate::limits::{REDIRECTS_MAX, URL_BYTES_MAX};
use crate::proto::record::ResultCode;
use std::io::Write;
use std::net::SocketAddr;

/// Letters of a path that are shown.
pub const PATH_LETTERS_MAX: u32 = 50;
/// Bytes of a type that are shown.
pub const TYPE_BYTES_MAX: usize = 64;
/// No line is longer: three URLs in which every byte is escaped, and the rest.
pub const LINE_BYTES_MAX: usize = 9 * URL_BYTES_MAX + 1_024;

// So the redirects of a path are always among the letters shown.
const _: () = assert!((REDIRECTS_MAX as u32) < PATH_LETTERS_MAX);

/// A finished fetch, as the log tells it. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine<'a> {
    /// When the line was made; written with milliseconds.
    pub made_us: u64,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    pub result: ResultCode,
    pub document_bytes: u64,
    /// In normal form.
    pub url: &'a str,
    pub path: Path<'a>,
    /// The URL it was found on.
    pub via: Option<&'a str>,
    /// The value of Content-Type as the server sent it; empty without one.
    pub media_type: &'a [u8],
    pub shard: u16,
    /// `None` if nothing was sent or tried.
    pub timing: Option<Timing>,
    /// XXH3 of the document.
    pub digest: Option<u128>,
    pub addr: Option<SocketAddr>,
    pub doc_id: Option<u32>,
    pub retry_after_s: Option<u32>,
    /// Of a feed.
    pub poll: Option<PollNote<'a>>,
}

/// When a feed was due, and why then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollNote<'a> {
    /// Seconds since 1970.
    pub due_s: u32,
    /// In a word.
    pub why: &'a str,
}

/// How a URL was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path<'a> {
    /// robots.txt, because a page of `origin` waits for its rules.
    Robots { origin: &'a str, rules: Rules, crawl_delay_ms: Option<u32> },
    /// Links followed from a seed, then redirects; a seed has none of either.
    Page { links: u16, redirects: u8 },
}

/// What a fetch of robots.txt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Known,
    /// A redirect: the rules are elsewhere.
    Hop,
    Unreachable,
}

impl Rules {
    pub const ALL: [Rules; 3] = [Rules::Known, Rules::Hop, Rules::Unreachable];

    pub fn name(self) -> &'static str {
        match self {
            Rules::Known => "known",
            Rules::Hop => "hop",
            Rules::Unreachable => "unreachable",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The request was on the wire; or, if the connection never stood, it was tried.
    pub sent_us: u64,
    pub took_us: u64,
    /// From the decision to ask until `sent_us`, where it is known.
    pub wait_us: Option<u32>,
}

impl Timing {
    pub fn end_us(&self) -> u64 {
        self.sent_us.saturating_add(self.took_us)
    }
}

impl LogLine<'_> {
    /// Appends the line and its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Room for what is usual, so that a line is one growth at most.
        out.reserve(self.url.len() + self.via.map_or(0, str::len) + 256);
        push_rfc3339(out, self.made_us);
        out.push(b' ');
        self.push_status(out);
        out.push(b' ');
        push_decimal(out, self.document_bytes);
        out.push(b' ');
        push_url(out, self.url);
        out.push(b' ');
        self.path.push(out);
        out.push(b' ');
        push_url(out, self.via.unwrap_or_default());
        out.push(b' ');
        push_type(out, self.media_type);
        out.extend_from_slice(b" #");
        match self.shard {
            0..1_000 => out.extend_from_slice(&padded::<3>(u32::from(self.shard))),
            shard => push_decimal(out, u64::from(shard)),
        }
        out.push(b' ');
        match self.timing {
            Some(timing) => {
                push_compact(out, timing.sent_us);
                out.push(b'+');
                push_decimal(out, timing.took_us);
            }
            None => out.push(b'-'),
        }
        match self.digest {
            Some(digest) => {
                out.extend_from_slice(b" xxh3:");
                out.extend_from_slice(&hex(digest));
            }
            None => out.extend_from_slice(b" -"),
        }
        out.push(b' ');
        self.push_notes(out);
        out.push(b'\n');
    }

    fn push_status(&self, out: &mut Vec<u8>) {
        let code = self.status.map_or_else(|| code_without_status(self.result), i32::from);
        if code < 0 {
            out.push(b'-');
        }
        push_decimal(out, u64::from(code.unsigned_abs()));
    }

    fn push_notes(&self, out: &mut Vec<u8>) {
        match self.addr {
            Some(addr) => push_addr(out, addr),
            None => out.push(b'-'),
        }
        out.push(b',');
        out.extend_from_slice(self.result.name().as_bytes());
        let mut number = |name: &[u8], number: Option<u32>| {
            if let Some(number) = number {
                out.extend_from_slice(name);
                push_decimal(out, u64::from(number));
            }
        };
        number(b",doc=", self.doc_id);
        number(b",wait=", self.timing.and_then(|timing| timing.wait_us));
        number(b",retry-after=", self.retry_after_s);
        number(b",due=", self.poll.map(|poll| poll.due_s));
        if let Path::Robots { origin, rules, crawl_delay_ms } = self.path {
            number(b",crawl-delay=", crawl_delay_ms);
            out.extend_from_slice(b",rules=");
            out.extend_from_slice(rules.name().as_bytes());
            out.extend_from_slice(b",for=");
            push_origin(out, origin);
        }
        if let Some(PollNote { why, .. }) = self.poll {
            out.extend_from_slice(b",why=");
            push_origin(out, why);
        }
    }
}

impl Path<'_> {
    fn push(self, out: &mut Vec<u8>) {
        let Path::Page { links, redirects } = self else {
            return out.push(b'P');
        };
        let (links, redirects) = (u32::from(links), u32::from(redirects));
        let left_out = (links + redirects).saturating_sub(PATH_LETTERS_MAX);
        if left_out > 0 {
            push_decimal(out, u64::from(left_out));
            out.push(b'+');
        }
        let redirects_shown = redirects.min(PATH_LETTERS_MAX);
        let links_shown = links.min(PATH_LETTERS_MAX - redirects_shown);
        out.resize(out.len() + links_shown as usize, b'L');
        out.resize(out.len() + redirects_shown as usize, b'R');
        if links + redirects == 0 {
            out.push(b'-');
        }
    }
}

/// Octets that stand for themselves in a field: printable, and no space.
pub(super) fn is_plain(octet: u8) -> bool {
    octet.is_ascii_graphic()
}

/// Looks at every octet, without leaving early: so it is done many at a time.
fn all_plain(octets: &[u8]) -> bool {
    octets.iter().fold(true, |plain, &octet| plain & is_plain(octet))
}

/// A URL in which nothing can end the field; `-` for an empty one.
fn push_url(out: &mut Vec<u8>, url: &str) {
    let octets = &url.as_bytes()[..url.len().min(URL_BYTES_MAX)];
    match octets {
        [] => out.push(b'-'),
        _ if all_plain(octets) => out.extend_from_slice(octets),
        _ => push_escaped(out, octets, is_plain),
    }
}

/// An origin as it stands in a note, where a comma would end it: host names may hold one.
pub(super) fn push_origin(out: &mut Vec<u8>, origin: &str) {
    let octets = &origin.as_bytes()[..origin.len().min(URL_BYTES_MAX)];
    match octets {
        [] => out.push(b'-'),
        _ => push_escaped(out, octets, |octet| is_plain(octet) && octet != b','),
    }
}

fn push_escaped(out: &mut Vec<u8>, octets: &[u8], plain: impl Fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &octet in octets {
        if plain(octet) {
            out.push(octet);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]);
        }
    }
}

/// The media type alone, in lower case; what no token holds becomes `_`.
fn push_type(out: &mut Vec<u8>, value: &[u8]) {
    let value = value.split(|&octet| octet == b';').next().unwrap_or_default().trim_ascii();
    if value.is_empty() {
        return out.push(b'-');
    }
    out.extend(value.iter().take(TYPE_BYTES_MAX).map(|&octet| match octet {
        b'/' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~' => octet,
        _ if octet.is_ascii_alphanumeric() => octet.to_ascii_lowercase(),
        _ => b'_',
    }));
}

fn push_addr(out: &mut Vec<u8>, addr: SocketAddr) {
    match addr {
        SocketAddr::V4(addr) => {
            for (place, octet) in addr.ip().octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                push_decimal(out, u64::from(octet));
            }
            out.push(b':');
            push_decimal(out, u64::from(addr.port()));
        }
        // The shortest form has rules of its own, which are the standard library's.
        SocketAddr::V6(addr) => {
            write!(out, "[{}]:{}", addr.ip(), addr.port()).expect("a vector takes any text");
        }
    }
}
