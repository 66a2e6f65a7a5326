use super::LineError;
use super::fields::{decimal, fields};
use crate::base::named_enum;
use crate::proto::job::TransId;
use std::io::Write;

named_enum! {
    /// The two ways of speaking. Each side understands both, and answers in the dialect it was spoken to.
    pub enum Dialect {
        /// Work comes when asked for: `GET <URL_COUNT>`, `DONE <TRANS_ID>`.
        Pull = "pull",
        /// Work comes unasked: `<TRANS_ID> DONE`.
        Push = "push",
    }
}

/// What a spider says to a URL server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpiderWord {
    /// It can take so many URLs more.
    Get(u32),
    /// The fetch is open and needs more time.
    Working(TransId),
    /// The fetch has ended, well or not, and its record is durable.
    Done(TransId, Option<Reported>),
}

/// What a spider may add to DONE, so that niceness knows how the host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// 0 without a response.
    pub status: u16,
    pub took_ms: u32,
    /// 0 if the server did not ask for a pause.
    pub retry_after_s: u32,
}

impl SpiderWord {
    /// Reads a line without its end, in the word order of either dialect.
    pub fn parse(line: &[u8]) -> Result<SpiderWord, LineError> {
        let wrong = |what| Err(LineError::unreadable(what, line));
        let mut words: [&[u8]; 5] = [b""; 5];
        let mut count = 0;
        for field in fields(line) {
            if count == words.len() {
                return wrong("too many words for GET, WORKING or DONE");
            }
            words[count] = field;
            count += 1;
        }
        // `DONE <TRANS_ID>` or `<TRANS_ID> DONE`: put the word first.
        if count >= 2 && matches!(words[1], b"WORKING" | b"DONE") {
            words.swap(0, 1);
        }
        let trans = || decimal::<u64>(words[1]).map(TransId::from);
        match (words[0], count) {
            (b"GET", 2) => match decimal(words[1]) {
                Some(urls) => Ok(SpiderWord::Get(urls)),
                None => wrong("GET without a count"),
            },
            (b"WORKING", 2) => match trans() {
                Some(trans) => Ok(SpiderWord::Working(trans)),
                None => wrong("WORKING without a transaction id"),
            },
            (b"DONE", 2 | 5) => {
                let Some(trans) = trans() else {
                    return wrong("DONE without a transaction id");
                };
                if count == 2 {
                    return Ok(SpiderWord::Done(trans, None));
                }
                match (decimal(words[2]), decimal(words[3]), decimal(words[4])) {
                    (Some(status), Some(took_ms), Some(retry_after_s)) => {
                        Ok(SpiderWord::Done(trans, Some(Reported { status, took_ms, retry_after_s })))
                    }
                    _ => wrong("DONE with a report that is not three numbers"),
                }
            }
            (b"GET" | b"WORKING" | b"DONE", _) => wrong("the wrong number of words"),
            _ => wrong("neither GET, WORKING nor DONE"),
        }
    }

    /// Appends the line, with its end, in the word order of a dialect.
    pub fn write(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let status = |out: &mut Vec<u8>, word: &str, trans: TransId| {
            let id = trans.as_u64();
            match dialect {
                Dialect::Push => write!(out, "{id} {word}"),
                Dialect::Pull => write!(out, "{word} {id}"),
            }
        };
        let written = match self {
            SpiderWord::Get(urls) => write!(out, "GET {urls}"),
            SpiderWord::Working(trans) => status(out, "WORKING", *trans),
            SpiderWord::Done(trans, None) => status(out, "DONE", *trans),
            SpiderWord::Done(trans, Some(Reported { status: code, took_ms, retry_after_s })) => {
                status(out, "DONE", *trans).and_then(|()| write!(out, " {code} {took_ms} {retry_after_s}"))
            }
        };
        written.expect("a vector takes everything");
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPORT: Reported = Reported { status: 200, took_ms: 35, retry_after_s: 0 };

    #[test]
    fn either_word_order_is_read() {
        let twelve = TransId::from(12);
        for (line, word) in [
            ("GET 0", SpiderWord::Get(0)),
            ("GET 4294967295", SpiderWord::Get(u32::MAX)),
            ("WORKING 12", SpiderWord::Working(twelve)),
            ("12 WORKING", SpiderWord::Working(twelve)),
            ("DONE 12", SpiderWord::Done(twelve, None)),
            ("12 DONE", SpiderWord::Done(twelve, None)),
            ("12   DONE ", SpiderWord::Done(twelve, None)),
            ("DONE 12 200 35 0", SpiderWord::Done(twelve, Some(REPORT))),
            ("12 DONE 200 35 0", SpiderWord::Done(twelve, Some(REPORT))),
            ("DONE 18446744073709551615", SpiderWord::Done(TransId::from(u64::MAX), None)),
        ] {
            assert_eq!(SpiderWord::parse(line.as_bytes()), Ok(word), "{line:?}");
        }
    }

    #[test]
    fn anything_else_is_named() {
        for (line, what) in [
            ("", "neither GET, WORKING nor DONE"),
            ("get 3", "neither GET, WORKING nor DONE"),
            ("12", "neither GET, WORKING nor DONE"),
            ("12 GET", "neither GET, WORKING nor DONE"),
            ("GET", "the wrong number of words"),
            ("GET -1", "GET without a count"),
            ("GET +1", "GET without a count"),
            ("GET 4294967296", "GET without a count"),
            ("WORKING x", "WORKING without a transaction id"),
            ("WORKING DONE", "DONE without a transaction id"),
            ("DONE 18446744073709551616", "DONE without a transaction id"),
            ("DONE 1 200", "the wrong number of words"),
            ("DONE 1 200 x 0", "DONE with a report that is not three numbers"),
            ("DONE 1 70000 1 0", "DONE with a report that is not three numbers"),
            ("DONE 1 200 35 0 9", "too many words for GET, WORKING or DONE"),
            ("DONE\t1", "neither GET, WORKING nor DONE"),
        ] {
            let error = SpiderWord::parse(line.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with(what), "{line:?}: {error}");
        }
        let error = SpiderWord::parse(&[b"\x1b[2J\xff", &[b'x'; 9_000][..]].concat()).unwrap_err();
        assert!(error.to_string().contains("\\u{1b}[2J\u{fffd}xxx") && error.to_string().len() < 300);
    }

    fn word() -> impl Strategy<Value = SpiderWord> {
        let report = (any::<u16>(), any::<u32>(), any::<u32>())
            .prop_map(|(status, took_ms, retry_after_s)| Reported { status, took_ms, retry_after_s });
        prop_oneof![
            any::<u32>().prop_map(SpiderWord::Get),
            any::<u64>().prop_map(|id| SpiderWord::Working(id.into())),
            (any::<u64>(), prop::option::of(report))
                .prop_map(|(id, report)| SpiderWord::Done(id.into(), report)),
        ]
    }

    proptest! {
        #[test]
        fn words_come_back(word in word(), push in any::<bool>()) {
            let mut out = Vec::new();
            word.write(if push { Dialect::Push } else { Dialect::Pull }, &mut out);
            prop_assert_eq!(out.pop(), Some(b'\n'));
            prop_assert_eq!(out[0].is_ascii_digit(), push && !matches!(word, SpiderWord::Get(_)));
            prop_assert_eq!(SpiderWord::parse(&out), Ok(word));
        }

        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = SpiderWord::parse(&line);
        }

        #[test]
        fn no_words_make_it_panic(line in "(DONE|GET|WORKING|[0-9]{1,25}| ){0,7}") {
            let _ = SpiderWord::parse(line.as_bytes());
        }
    }
}
