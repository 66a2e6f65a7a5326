use super::LineError;
use super::fields::decimal;
use crate::limits::{MASTER_LINE_BYTES_MAX, TAKE_ENTRIES};
use crate::proto::reflog::Stamp;
use std::io::Write;

/// What a node says to a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeWord<'a> {
    /// It wants entries of its queue, so many at most; with a mark, if it keeps one.
    Take { server: u16, from: TakeFrom, max: u32, marked: bool },
    /// Everything below this number is durable with it.
    Done { server: u16, seq: u64 },
    /// URLs that wait with it.
    Load { server: u16, pending: u64, mark: Option<Stamp> },
    /// What a domain brings along that it has closed.
    Hand { domain: &'a str, handed: Handed<'a> },
    /// Nothing of the domain is open, and all that it brings along was sent.
    Closed { domain: &'a str },
    /// A page with a query was fetched; canonical is the URL that it says it has.
    Page { status: u16, digest: u64, canonical: Option<&'a str>, url: &'a str },
    /// A Clean-param line of the robots.txt of an origin.
    Clean { origin: &'a str, rule: &'a str },
    /// Another master says by what it deals domains.
    Peer { terms: u64 },
}

/// Where a node goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeFrom {
    /// At this entry of this master's queue.
    Seq(u64),
    /// At whatever this master was given from this time on.
    Since(Stamp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed<'a> {
    /// A URL that waited, as a line of a reflog.
    Url(&'a [u8]),
    /// A line of the journal of hosts.
    Nice(&'a [u8]),
}

/// What a master says to a node; the first four are entries of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterWord<'a> {
    /// A line of a reflog.
    Line(&'a [u8]),
    /// From here on the domain is not asked any more. Fences rise: what has one that is not above the last of its domain
    /// comes a second time, from the other master, and says nothing.
    Close { domain: &'a str, fence: u32 },
    /// What its old node knew of a host.
    Nice { domain: &'a str, line: &'a [u8] },
    /// The domain is this node's.
    Open { domain: &'a str, fence: u32 },
    /// That is all for now: the next entry has this number. Everything that the master was given up to the time of the
    /// mark is below it.
    Upto { seq: u64, mark: Option<Stamp> },
    /// What a closed domain brings along is durable here.
    Fenced { domain: &'a str },
    /// By what this master deals domains, for the other one.
    Peer { terms: u64 },
    /// Why the link is closed.
    Error(&'a str),
}

/// The rest of a line, word by word.
struct Words<'a> {
    line: &'a [u8],
    rest: &'a [u8],
}

/// What a domain may have at most, as a name in DNS; an address in brackets is shorter.
const DOMAIN_BYTES_MAX: usize = 255;

impl<'a> Words<'a> {
    /// A line, and its first word.
    fn of(line: &'a [u8]) -> (&'a [u8], Words<'a>) {
        let mut words = Words { line, rest: line };
        (words.word().unwrap_or_default(), words)
    }

    fn wrong<T>(&self, what: &'static str) -> Result<T, LineError> {
        Err(LineError::unreadable(what, self.line))
    }

    /// What is left, without spaces before it.
    fn rest(&mut self) -> &'a [u8] {
        let start = self.rest.iter().position(|&byte| byte != b' ').unwrap_or(self.rest.len());
        &std::mem::take(&mut self.rest)[start..]
    }

    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    fn number<T: std::str::FromStr>(&mut self, what: &'static str) -> Result<T, LineError> {
        match self.word().and_then(decimal) {
            Some(number) => Ok(number),
            None => self.wrong(what),
        }
    }

    /// Visible ASCII.
    fn name(&mut self, bytes_max: usize, what: &'static str) -> Result<&'a str, LineError> {
        let visible = |word: &&[u8]| word.len() <= bytes_max && word.iter().all(u8::is_ascii_graphic);
        match self.word().filter(visible).and_then(|word| str::from_utf8(word).ok()) {
            Some(name) => Ok(name),
            None => self.wrong(what),
        }
    }

    fn domain(&mut self) -> Result<&'a str, LineError> {
        self.name(DOMAIN_BYTES_MAX, "no domain where one must stand")
    }

    fn terms(&mut self) -> Result<u64, LineError> {
        match self.word().and_then(hex16) {
            Some(terms) => Ok(terms),
            None => self.wrong("PEER without terms of 16 hexadecimal digits"),
        }
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, LineError> {
        match str::from_utf8(self.rest()) {
            Ok(text) if !text.is_empty() => Ok(text),
            _ => self.wrong(what),
        }
    }

    fn end(mut self, what: &'static str) -> Result<(), LineError> {
        if self.rest().is_empty() { Ok(()) } else { self.wrong(what) }
    }
}

/// A line of a reflog begins with its batch.
fn is_reflog(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_digit)
}

impl NodeWord<'_> {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Result<NodeWord<'_>, LineError> {
        let (first, mut words) = Words::of(line);
        let word = match first {
            b"TAKE" => return take(words),
            b"DONE" => NodeWord::Done {
                server: words.number("DONE without a server")?,
                seq: words.number("DONE without a sequence number")?,
            },
            b"LOAD" => {
                let server = words.number("LOAD without a server")?;
                let pending = words.number("LOAD without a count")?;
                match words.word().map(Stamp::parse) {
                    Some(None) => return words.wrong("LOAD with a mark that is no time of 14 digits"),
                    mark => NodeWord::Load { server, pending, mark: mark.flatten() },
                }
            }
            b"HAND" => {
                let domain = words.domain()?;
                let kind = words.word();
                let handed = match (kind, words.rest()) {
                    (Some(b"URL"), line) if is_reflog(line) => Handed::Url(line),
                    (Some(b"URL"), _) => return words.wrong("HAND URL without a line of a reflog"),
                    (Some(b"NICE"), line) if !line.is_empty() => Handed::Nice(line),
                    (Some(b"NICE"), _) => return words.wrong("HAND NICE without a line"),
                    _ => return words.wrong("HAND with neither URL nor NICE"),
                };
                return Ok(NodeWord::Hand { domain, handed });
            }
            b"CLOSED" => NodeWord::Closed { domain: words.domain()? },
            b"PAGE" => {
                let status = words.number("PAGE without a status")?;
                let Some(digest) = words.word().and_then(hex16) else {
                    return words.wrong("PAGE without a digest of 16 hexadecimal digits");
                };
                let canonical = words.name(MASTER_LINE_BYTES_MAX, "PAGE without a canonical URL or -")?;
                let url = words.name(MASTER_LINE_BYTES_MAX, "PAGE without a URL")?;
                let canonical = Some(canonical).filter(|&canonical| canonical != "-");
                NodeWord::Page { status, digest, canonical, url }
            }
            b"CLEAN" => {
                let origin = words.name(MASTER_LINE_BYTES_MAX, "CLEAN without an origin")?;
                return Ok(NodeWord::Clean { origin, rule: words.text("CLEAN without a rule in UTF-8")? });
            }
            b"PEER" => NodeWord::Peer { terms: words.terms()? },
            _ => return words.wrong("neither TAKE, DONE, LOAD, HAND, CLOSED, PAGE, CLEAN nor PEER"),
        };
        words.end("words too many")?;
        Ok(word)
    }

    /// Appends the line, with its end. What does not go into one is an error, and nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), LineError> {
        written(out, |out| match *self {
            NodeWord::Take { server, from, max, marked } => {
                let marked = if marked { " MARKED" } else { "" };
                match from {
                    TakeFrom::Seq(seq) => write!(out, "TAKE {server} {seq} {max}{marked}"),
                    TakeFrom::Since(stamp) => {
                        write!(out, "TAKE {server} SINCE ")?;
                        out.extend_from_slice(&stamp.digits());
                        write!(out, " {max}{marked}")
                    }
                }
            }
            NodeWord::Done { server, seq } => write!(out, "DONE {server} {seq}"),
            NodeWord::Load { server, pending, mark } => {
                write!(out, "LOAD {server} {pending}")?;
                mark.map_or(Ok(()), |mark| {
                    [b" ", &mark.digits()[..]].iter().try_for_each(|part| out.write_all(part))
                })
            }
            NodeWord::Hand { domain, handed } => {
                let (kind, line) = match handed {
                    Handed::Url(line) => ("URL", line),
                    Handed::Nice(line) => ("NICE", line),
                };
                write!(out, "HAND {domain} {kind} ")?;
                out.write_all(line)
            }
            NodeWord::Closed { domain } => write!(out, "CLOSED {domain}"),
            NodeWord::Page { status, digest, canonical, url } => {
                write!(out, "PAGE {status} {digest:016x} {} {url}", canonical.unwrap_or("-"))
            }
            NodeWord::Clean { origin, rule } => write!(out, "CLEAN {origin} {rule}"),
            NodeWord::Peer { terms } => write!(out, "PEER {terms:016x}"),
        })
    }
}

/// `<server> <seq> <max> [MARKED]` or `<server> SINCE <stamp> [<max>] [MARKED]`.
fn take(mut words: Words<'_>) -> Result<NodeWord<'_>, LineError> {
    let server = words.number("TAKE without a server")?;
    let (from, max) = match words.word() {
        Some(b"SINCE") => match words.word().and_then(Stamp::parse) {
            Some(stamp) => (TakeFrom::Since(stamp), words.word()),
            None => return words.wrong("TAKE SINCE without a time of 14 digits"),
        },
        word => match word.and_then(decimal) {
            Some(seq) => (TakeFrom::Seq(seq), Some(words.word().unwrap_or_default())),
            None => return words.wrong("TAKE without a sequence number or SINCE"),
        },
    };
    let (max, marked) = match max {
        None => (TAKE_ENTRIES, None),
        Some(b"MARKED") if matches!(from, TakeFrom::Since(_)) => (TAKE_ENTRIES, max),
        Some(max) => match decimal(max).filter(|&max: &u32| !matches!(max, 0)) {
            Some(max) => (max, words.word()),
            None => return words.wrong("TAKE without a count from 1"),
        },
    };
    if marked.is_some_and(|word| word != b"MARKED") {
        return words.wrong("TAKE ends with MARKED or with nothing");
    }
    words.end("words too many")?;
    Ok(NodeWord::Take { server, from, max, marked: marked.is_some() })
}

impl MasterWord<'_> {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Result<MasterWord<'_>, LineError> {
        if is_reflog(line) {
            return Ok(MasterWord::Line(line));
        }
        let (first, mut words) = Words::of(line);
        let word = match first {
            b"UPTO" => {
                let seq = words.number("UPTO without a sequence number")?;
                let mark = match words.word().map(Stamp::parse) {
                    Some(None) => return words.wrong("UPTO with a mark that is no time of 14 digits"),
                    mark => mark.flatten(),
                };
                MasterWord::Upto { seq, mark }
            }
            b"CLOSE" => {
                MasterWord::Close { domain: words.domain()?, fence: words.number("CLOSE without a fence")? }
            }
            b"OPEN" => {
                MasterWord::Open { domain: words.domain()?, fence: words.number("OPEN without a fence")? }
            }
            b"FENCED" => MasterWord::Fenced { domain: words.domain()? },
            b"NICE" => {
                let domain = words.domain()?;
                return match words.rest() {
                    b"" => words.wrong("NICE without a line"),
                    line => Ok(MasterWord::Nice { domain, line }),
                };
            }
            b"PEER" => MasterWord::Peer { terms: words.terms()? },
            b"ERROR" => return Ok(MasterWord::Error(words.text("ERROR without a text in UTF-8")?)),
            _ => {
                return words
                    .wrong("neither a line of a reflog nor UPTO, CLOSE, OPEN, NICE, FENCED, PEER or ERROR");
            }
        };
        words.end("words too many")?;
        Ok(word)
    }

    /// Appends the line, with its end. What does not go into one is an error, and nothing is written.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), LineError> {
        written(out, |out| match *self {
            MasterWord::Line(line) => out.write_all(line),
            MasterWord::Close { domain, fence } => write!(out, "CLOSE {domain} {fence}"),
            MasterWord::Open { domain, fence } => write!(out, "OPEN {domain} {fence}"),
            MasterWord::Nice { domain, line } => {
                write!(out, "NICE {domain} ")?;
                out.write_all(line)
            }
            MasterWord::Upto { seq, mark: None } => write!(out, "UPTO {seq}"),
            MasterWord::Upto { seq, mark: Some(mark) } => {
                write!(out, "UPTO {seq} ")?;
                out.write_all(&mark.digits())
            }
            MasterWord::Fenced { domain } => write!(out, "FENCED {domain}"),
            MasterWord::Peer { terms } => write!(out, "PEER {terms:016x}"),
            MasterWord::Error(text) => write!(out, "ERROR {text}"),
        })
    }
}

fn hex16(word: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(word).ok()?;
    let is_hex = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// Appends one line, or nothing.
fn written(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>,
) -> Result<(), LineError> {
    let start = out.len();
    write(out).expect("a vector takes everything");
    let line = &out[start..];
    let wrong = if line.len() >= MASTER_LINE_BYTES_MAX {
        Some(LineError::TooLong { bytes_max: MASTER_LINE_BYTES_MAX })
    } else {
        memchr::memchr(b'\n', line).map(|_| LineError::unreadable("a line with a line feed in it", line))
    };
    match wrong {
        None => out.push(b'\n'),
        Some(error) => {
            out.truncate(start);
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &[u8] = b"20110728\t5\t20110727200841\t2310\thttp://a.ru/ b\t1\t0";

    fn stamp() -> Stamp {
        Stamp::parse(b"20110727200841").unwrap()
    }

    #[test]
    fn words_of_a_node() {
        let take = |from, max, marked| NodeWord::Take { server: 7, from, max, marked };
        let handed = [b"HAND a.ru URL ", LINE].concat();
        for (line, word) in [
            (&b"TAKE 7 0 100"[..], take(TakeFrom::Seq(0), 100, false)),
            (b"TAKE  7 9223372036854775808 1 MARKED ", take(TakeFrom::Seq(1 << 63), 1, true)),
            (b"TAKE 7 SINCE 20110727200841", take(TakeFrom::Since(stamp()), TAKE_ENTRIES, false)),
            (b"TAKE 7 SINCE 20110727200841 MARKED", take(TakeFrom::Since(stamp()), TAKE_ENTRIES, true)),
            (b"TAKE 7 SINCE 20110727200841 5 MARKED", take(TakeFrom::Since(stamp()), 5, true)),
            (b"DONE 7 18446744073709551615", NodeWord::Done { server: 7, seq: u64::MAX }),
            (b"LOAD 65535 0", NodeWord::Load { server: u16::MAX, pending: 0, mark: None }),
            (b"LOAD 7 5 20110727200841", NodeWord::Load { server: 7, pending: 5, mark: Some(stamp()) }),
            (&handed, NodeWord::Hand { domain: "a.ru", handed: Handed::Url(LINE) }),
            (b"HAND a.ru NICE {} x ", NodeWord::Hand { domain: "a.ru", handed: Handed::Nice(b"{} x ") }),
            (b"PEER ffffffffffffffff", NodeWord::Peer { terms: u64::MAX }),
            (b"CLOSED [::1]", NodeWord::Closed { domain: "[::1]" }),
            (
                b"PAGE 200 00FF00000000000a - http://a.ru/?x=1",
                NodeWord::Page {
                    status: 200,
                    digest: 0x00ff_0000_0000_000a,
                    canonical: None,
                    url: "http://a.ru/?x=1",
                },
            ),
            (
                b"CLEAN http://a.ru ref&sid /path",
                NodeWord::Clean { origin: "http://a.ru", rule: "ref&sid /path" },
            ),
        ] {
            assert_eq!(NodeWord::parse(line), Ok(word), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn words_of_a_master() {
        for (line, word) in [
            (LINE, MasterWord::Line(LINE)),
            (b"CLOSE a.ru 1", MasterWord::Close { domain: "a.ru", fence: 1 }),
            (b"OPEN a.ru 4294967295", MasterWord::Open { domain: "a.ru", fence: u32::MAX }),
            (b"NICE a.ru {\"a\": 1}", MasterWord::Nice { domain: "a.ru", line: b"{\"a\": 1}" }),
            (b"UPTO 12", MasterWord::Upto { seq: 12, mark: None }),
            (b"UPTO 12 20110727200841", MasterWord::Upto { seq: 12, mark: Some(stamp()) }),
            (b"FENCED a.ru", MasterWord::Fenced { domain: "a.ru" }),
            (b"PEER 00000000000000ff", MasterWord::Peer { terms: 255 }),
            (b"ERROR no server 9", MasterWord::Error("no server 9")),
        ] {
            assert_eq!(MasterWord::parse(line), Ok(word), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, what) in [
            ("", "neither TAKE, DONE, LOAD, HAND, CLOSED, PAGE, CLEAN nor PEER"),
            ("PEER", "PEER without terms of 16 hexadecimal digits"),
            ("PEER 12", "PEER without terms of 16 hexadecimal digits"),
            ("PEER 00000000000000ff 1", "words too many"),
            ("take 7 0 1", "neither TAKE"),
            ("TAKE", "TAKE without a server"),
            ("TAKE 65536 0 1", "TAKE without a server"),
            ("TAKE -1 0 1", "TAKE without a server"),
            ("TAKE 7", "TAKE without a sequence number or SINCE"),
            ("TAKE 7 18446744073709551616 1", "TAKE without a sequence number or SINCE"),
            ("TAKE 7 0", "TAKE without a count from 1"),
            ("TAKE 7 0 0", "TAKE without a count from 1"),
            ("TAKE 7 0 MARKED", "TAKE without a count from 1"),
            ("TAKE 7 SINCE 20110230000000", "TAKE SINCE without a time of 14 digits"),
            ("TAKE 7 SINCE", "TAKE SINCE without a time of 14 digits"),
            ("TAKE 7 0 1 marked", "TAKE ends with MARKED or with nothing"),
            ("TAKE 7 0 1 MARKED 2", "words too many"),
            ("DONE 7", "DONE without a sequence number"),
            ("DONE 7 1 2", "words too many"),
            ("LOAD 7 many", "LOAD without a count"),
            ("LOAD 7 1 2", "LOAD with a mark that is no time of 14 digits"),
            ("LOAD 7 1 20110727200841 2", "words too many"),
            ("HAND", "no domain where one must stand"),
            ("HAND gr\u{fc}n.ru URL 1", "no domain where one must stand"),
            ("HAND a.ru URL http://a.ru/", "HAND URL without a line of a reflog"),
            ("HAND a.ru NICE ", "HAND NICE without a line"),
            ("HAND a.ru ALL x", "HAND with neither URL nor NICE"),
            ("CLOSED", "no domain where one must stand"),
            ("CLOSED a b", "words too many"),
            ("PAGE 70000 0 - u", "PAGE without a status"),
            ("PAGE 200 12 - u", "PAGE without a digest of 16 hexadecimal digits"),
            ("PAGE 200 +123456789abcdef - u", "PAGE without a digest of 16 hexadecimal digits"),
            ("PAGE 200 0123456789abcdef u", "PAGE without a URL"),
            ("CLEAN", "CLEAN without an origin"),
            ("CLEAN http://a.ru ", "CLEAN without a rule in UTF-8"),
        ] {
            let error = NodeWord::parse(line.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with(what), "{line:?}: {error}");
        }
        for (line, what) in [
            ("", "neither a line of a reflog nor UPTO"),
            ("http://a.ru/", "neither a line of a reflog nor UPTO"),
            ("UPTO", "UPTO without a sequence number"),
            ("UPTO 1 2", "UPTO with a mark that is no time of 14 digits"),
            ("CLOSE", "no domain where one must stand"),
            ("CLOSE a.ru", "CLOSE without a fence"),
            ("OPEN a.ru -1", "OPEN without a fence"),
            ("NICE a.ru", "NICE without a line"),
            ("PEER x", "PEER without terms of 16 hexadecimal digits"),
            ("ERROR", "ERROR without a text in UTF-8"),
        ] {
            let error = MasterWord::parse(line.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with(what), "{line:?}: {error}");
        }
        assert!(NodeWord::parse(format!("CLOSED {}", "a".repeat(256)).as_bytes()).is_err());
    }

    #[test]
    fn what_does_not_go_into_a_line_is_not_written() {
        let mut out = b"before\n".to_vec();
        let url = "u".repeat(5_000);
        let page = NodeWord::Page { status: 200, digest: 1, canonical: Some(&url), url: &url };
        assert_eq!(page.write(&mut out), Err(LineError::TooLong { bytes_max: MASTER_LINE_BYTES_MAX }));
        assert!(MasterWord::Error("a\nUPTO 9").write(&mut out).is_err());
        let longest = [b"1", &vec![b'x'; MASTER_LINE_BYTES_MAX - 2][..]].concat();
        assert_eq!(out, b"before\n");
        MasterWord::Line(&longest).write(&mut out).unwrap();
        assert_eq!(out.len(), 7 + MASTER_LINE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(
            line in "(TAKE|DONE|LOAD|HAND|CLOSED|PAGE|CLEAN|PEER|UPTO|NICE|ERROR|SINCE|MARKED|URL|-|a\\.ru|[0-9]{1,20}|20110727200841|[0-9a-f]{16}| ){0,12}",
        ) {
            let mut out = Vec::new();
            if let Ok(word) = NodeWord::parse(line.as_bytes()) {
                word.write(&mut out).unwrap();
                prop_assert_eq!(out.pop(), Some(b'\n'));
                prop_assert_eq!(NodeWord::parse(&out), Ok(word));
            }
            out.clear();
            if let Ok(word) = MasterWord::parse(line.as_bytes()) {
                word.write(&mut out).unwrap();
                prop_assert_eq!(out.pop(), Some(b'\n'));
                prop_assert_eq!(MasterWord::parse(&out), Ok(word));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (NodeWord::parse(&line), MasterWord::parse(&line));
        }
    }
}
