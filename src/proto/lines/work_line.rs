use super::fields::{decimal, fields};
use super::{Dialect, LineError};
use crate::base::canonical;
use crate::limits::{LINE_BYTES_MAX, URL_BYTES_MAX};
use crate::proto::job::TransId;
use crate::proto::url::CrawlUrl;
use std::io::Write;
use std::net::IpAddr;

/// A URL as it goes to a spider.
#[derive(Clone, Copy, Debug)]
pub struct WorkOrder<'a> {
    pub trans: TransId,
    pub doc_id: u32,
    pub ip: IpAddr,
    pub url: &'a CrawlUrl,
}

impl WorkOrder<'_> {
    /// Appends the line, with its end; four fields in push, five in pull. A line that would be too long (a long
    /// URL whose host is named twice) is an error, and nothing is written: such a URL cannot be sent.
    pub fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), LineError> {
        let start = out.len();
        let WorkOrder { trans, doc_id, ip, url } = self;
        let trans = trans.as_u64();
        match dialect {
            Dialect::Push => writeln!(out, "{trans} {doc_id} {ip} {url}"),
            Dialect::Pull => writeln!(out, "{trans} {doc_id} {ip} {} {url}", url.host_bare()),
        }
        .expect("a vector takes everything");
        if out.len() - start > LINE_BYTES_MAX {
            out.truncate(start);
            return Err(LineError::TooLong { bytes_max: LINE_BYTES_MAX });
        }
        Ok(())
    }
}

/// What a spider reads in a line of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkLine<'a> {
    Work {
        trans: TransId,
        doc_id: u32,
        ip: IpAddr,
        url: CrawlUrl,
        /// Told in pull only. The URL names its host, too, and is what counts.
        host_name: Option<&'a str>,
        /// By the number of fields.
        dialect: Dialect,
    },
    /// Somebody waits for an answer to this transaction, though it cannot be fetched.
    Bad {
        trans: TransId,
        /// 0 if that too cannot be read.
        doc_id: u32,
        /// Pull if the number of fields fits neither.
        dialect: Dialect,
        /// The URL as far as it is printable.
        url_text: &'a str,
        reason: String,
    },
}

impl WorkLine<'_> {
    /// Reads a line without its end. An error if not even its transaction can be read.
    pub fn parse(line: &[u8]) -> Result<WorkLine<'_>, LineError> {
        let mut words: [&[u8]; 5] = [b""; 5];
        let mut count = 0;
        for field in fields(line) {
            if count < words.len() {
                words[count] = field;
            }
            count += 1;
        }
        let Some(trans) = decimal::<u64>(words[0]).map(TransId::from) else {
            return Err(LineError::unreadable("not a line of work: no transaction id", line));
        };
        let doc_id = decimal::<u32>(words[1]);
        let (dialect, host_name, url) = match count {
            4 => (Dialect::Push, None, words[3]),
            _ => (Dialect::Pull, Some(words[3]), words[4]),
        };
        // With a space in the URL nobody knows where it begins: everything after the address is shown.
        let url_bytes = if count > words.len() { after_address(line) } else { url };
        let bad = |reason: String| WorkLine::Bad {
            trans,
            doc_id: doc_id.unwrap_or(0),
            dialect,
            url_text: printable(url_bytes),
            reason,
        };
        if count != 4 && count != 5 {
            return Ok(bad(format!("a line of work has 4 or 5 fields, not {count}")));
        }
        let Some(doc_id) = doc_id else {
            return Ok(bad("the document id is not a number".to_string()));
        };
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let Some(ip) = text(words[2]).and_then(|ip| ip.parse().ok()).map(canonical) else {
            return Ok(bad("the address is neither IPv4 nor IPv6".to_string()));
        };
        let host_name = match host_name.map(text) {
            Some(None) => return Ok(bad("the host name is not UTF-8".to_string())),
            Some(name) => name,
            None => None,
        };
        let Some(url) = text(url) else {
            return Ok(bad("the URL is not UTF-8".to_string()));
        };
        Ok(match CrawlUrl::parse(url) {
            Ok(url) => WorkLine::Work { trans, doc_id, ip, url, host_name, dialect },
            Err(error) => bad(error.to_string()),
        })
    }
}

/// What follows the first three fields.
fn after_address(line: &[u8]) -> &[u8] {
    let mut rest = line;
    for _ in 0..3 {
        let start = rest.iter().position(|&b| b != b' ').unwrap_or(rest.len());
        let len = memchr::memchr(b' ', &rest[start..]).unwrap_or(rest.len() - start);
        rest = &rest[start + len..];
    }
    rest.trim_ascii()
}

/// The beginning of a text up to what cannot be printed, no longer than a URL may be.
fn printable(bytes: &[u8]) -> &str {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to there"),
    };
    let ends = valid.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
    let printable = ends.take_while(|&(end, c)| !c.is_control() && end <= URL_BYTES_MAX);
    &valid[..printable.last().map_or(0, |(end, _)| end)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::lines::LineBuffer;
    use proptest::prelude::*;

    #[test]
    fn fields_tell_the_dialects_apart() {
        let url = CrawlUrl::parse("http://h.test:81/a?b").unwrap();
        let order =
            WorkOrder { trans: TransId::from(7), doc_id: 3, ip: "127.0.0.1".parse().unwrap(), url: &url };
        for (dialect, line, host_name) in [
            (Dialect::Push, "7 3 127.0.0.1 http://h.test:81/a?b", None),
            (Dialect::Pull, "7 3 127.0.0.1 h.test http://h.test:81/a?b", Some("h.test")),
        ] {
            let mut out = Vec::new();
            order.write(dialect, &mut out).unwrap();
            assert_eq!(out, format!("{line}\n").as_bytes());
            let work = WorkLine::Work {
                trans: order.trans,
                doc_id: 3,
                ip: order.ip,
                url: url.clone(),
                host_name,
                dialect,
            };
            assert_eq!(WorkLine::parse(line.as_bytes()), Ok(work));
        }
    }

    #[test]
    fn a_line_with_a_transaction_is_answered_for() {
        for (line, doc_id, dialect, url_text, reason) in [
            ("7", 0, Dialect::Pull, "", "4 or 5 fields, not 1"),
            ("7 3 1.2.3.4", 3, Dialect::Pull, "", "4 or 5 fields, not 3"),
            ("7 3 1.2.3.4 h http://h/a b", 3, Dialect::Pull, "h http://h/a b", "4 or 5 fields, not 6"),
            ("7 x 1.2.3.4 http://h/", 0, Dialect::Push, "http://h/", "document id"),
            ("7 4294967296 1.2.3.4 http://h/", 0, Dialect::Push, "http://h/", "document id"),
            ("7 3 h http://h/", 3, Dialect::Push, "http://h/", "address"),
            ("7 3 1.2.3.4 ftp://h/", 3, Dialect::Push, "ftp://h/", "only http and https"),
            ("7 3 ::1 h nonsense", 3, Dialect::Pull, "nonsense", "not a URL"),
            ("7 3 ::1 h non\u{1b}sense", 3, Dialect::Pull, "non", "not a URL"),
        ] {
            match WorkLine::parse(line.as_bytes()).unwrap() {
                WorkLine::Bad { trans, doc_id: id, dialect: spoken, url_text: text, reason: why } => {
                    assert_eq!(trans.as_u64(), 7);
                    assert_eq!((id, spoken, text), (doc_id, dialect, url_text), "{line:?}");
                    assert!(why.contains(reason), "{line:?}: {why}");
                }
                other => panic!("{line:?}: {other:?}"),
            }
        }
        let line = b"7 3 ::1 http://h/\xff\xfe";
        assert!(matches!(WorkLine::parse(line), Ok(WorkLine::Bad { url_text: "http://h/", .. })));
    }

    #[test]
    fn without_a_transaction_there_is_nobody_to_answer() {
        for line in ["", " ", "GET 3", "x 3 1.2.3.4 http://h/", "-1 3 1.2.3.4 http://h/"] {
            let error = WorkLine::parse(line.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("not a line of work"), "{line:?}: {error}");
        }
    }

    /// A long URL fits in push; in pull its host may be too much.
    #[test]
    fn what_does_not_fit_is_not_written() {
        let url = |host: usize| {
            let start = format!("http://{}/", "h".repeat(host));
            CrawlUrl::parse(&format!("{start}{}", "a".repeat(8_000 - start.len()))).unwrap()
        };
        let ip = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
        let write = |dialect, url: &CrawlUrl| {
            let mut out = b"GET 1\n".to_vec();
            let order = WorkOrder { trans: TransId::from(u64::MAX), doc_id: u32::MAX, ip, url };
            let written = order.write(dialect, &mut out);
            (written, out.len())
        };
        assert_eq!(write(Dialect::Push, &url(250)).0, Ok(()));
        assert_eq!(write(Dialect::Pull, &url(20)).0, Ok(()));
        assert_eq!(
            write(Dialect::Pull, &url(250)),
            (Err(LineError::TooLong { bytes_max: LINE_BYTES_MAX }), 6)
        );
    }

    proptest! {
        #[test]
        fn orders_come_back(
            id in any::<u64>(),
            doc_id in any::<u32>(),
            ip in any::<IpAddr>(),
            path in "[a-z/?=%]{0,40}",
            push in any::<bool>(),
            piece in 1usize..40,
        ) {
            let url = CrawlUrl::parse(&format!("http://h.test:8080/{path}")).unwrap();
            let dialect = if push { Dialect::Push } else { Dialect::Pull };
            let (trans, mut out) = (TransId::from(id), Vec::new());
            WorkOrder { trans, doc_id, ip, url: &url }.write(dialect, &mut out).unwrap();
            let host_name = (!push).then_some("h.test");
            let mut buffer = LineBuffer::default();
            let mut seen = 0;
            for piece in out.chunks(piece) {
                buffer.push(piece);
                while let Some(line) = buffer.next_line().unwrap() {
                    let ip = canonical(ip);
                    let work = WorkLine::Work { trans, doc_id, ip, url: url.clone(), host_name, dialect };
                    prop_assert_eq!(WorkLine::parse(line), Ok(work));
                    seen += 1;
                }
            }
            prop_assert_eq!(seen, 1);
        }

        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = WorkLine::parse(&line);
        }

        #[test]
        fn no_fields_make_it_panic(line in "([0-9]{1,21} )?(.{0,6} ){0,6}.{0,20}") {
            let _ = WorkLine::parse(line.as_bytes());
        }
    }
}
