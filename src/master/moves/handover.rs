use super::super::epoch::DomainBy;
use crate::limits::{HANDED_BYTES_MAX, MASTER_LINE_BYTES_MAX};
use crate::proto::lines::Handed;
use crate::proto::reflog::Stamp;

/// What a domain brings along from its old node: `MARK`, `NICE` and `URL` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handover {
    lines: Vec<u8>,
    left_out: u64,
}

/// A part as a node sends it, and the mark. Links with longer ones are refused.
const HANDOVER_BYTES_MAX: usize = HANDED_BYTES_MAX + 2 * MASTER_LINE_BYTES_MAX;
/// The longest word that stands before a line.
const WORD_BYTES_MAX: usize = 5;

impl Handover {
    pub fn from_lines(lines: Vec<u8>) -> Handover {
        Handover { lines, left_out: 0 }
    }

    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines that had no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub fn push(&mut self, handed: Handed<'_>) {
        match handed {
            Handed::Url(line) => self.add(b"URL ", line),
            Handed::Nice(line) => self.add(b"NICE ", line),
        }
    }

    /// The time up to which the old node had everything that the master of the handover was given.
    pub fn set_mark(&mut self, mark: Stamp) {
        self.add(b"MARK ", &mark.digits());
    }

    fn add(&mut self, word: &[u8], line: &[u8]) {
        let bytes = word.len() + line.len() + 1;
        if self.lines.len() + bytes > HANDOVER_BYTES_MAX || memchr::memchr(b'\n', line).is_some() {
            self.left_out += 1;
            return;
        }
        for part in [word, line, b"\n"] {
            self.lines.extend_from_slice(part);
        }
    }

    pub fn mark(&self) -> Option<Stamp> {
        self.of(b"MARK ").last().and_then(Stamp::parse)
    }

    pub fn nice(&self) -> impl Iterator<Item = &[u8]> {
        self.of(b"NICE ")
    }

    /// Lines with URLs of the domain: a node cannot put those of another into a queue.
    pub fn urls(&self, domain: &str, by: DomainBy) -> impl Iterator<Item = &[u8]> {
        self.of(b"URL ").filter(move |line| by.is_line_of(line, domain))
    }

    /// Lines of a kind. They may come from a database: what no master would have written is passed over.
    fn of<'a>(&'a self, word: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
        let is_line = |line: &&[u8]| !line.is_empty() && line.len() < MASTER_LINE_BYTES_MAX - WORD_BYTES_MAX;
        self.lines
            .split(|byte| *byte == b'\n')
            .filter_map(move |line| line.strip_prefix(word))
            .filter(is_line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handover_is_read_as_it_was_written_and_rubbish_is_passed_over() {
        let mut handover = Handover::default();
        handover.push(Handed::Nice(b"{\"host\":\"a.ru\"}"));
        handover.push(Handed::Url(b"1\t5\t20110727200841\t2\thttp://a.ru/\t1\t"));
        handover.push(Handed::Url(b"1\nOPEN b.ru"));
        handover.set_mark(Stamp::from_s(9));
        assert_eq!(handover.left_out(), 1);
        let mut lines = handover.lines().to_vec();
        lines.extend_from_slice(b"URL \nURL OPEN x\nWHAT\nMARK x");
        let read = Handover::from_lines(lines);
        assert_eq!(read.nice().collect::<Vec<_>>(), [b"{\"host\":\"a.ru\"}"]);
        assert_eq!(read.urls("a.ru", DomainBy::Registrable).count(), 1);
        let handed = |url: &str, by| {
            let line = format!("URL 1\t5\t20110727200841\t2\t{url}\t1\t\n");
            Handover::from_lines(line.into_bytes()).urls("a.ru", by).count()
        };
        for (url, counts) in [
            ("http://a.ru:8080/x", [1, 1]),
            ("https://www.a.ru/?x", [1, 0]),
            ("http://ba.ru/", [0, 0]),
            ("http://b.ru/a.ru", [0, 0]),
            ("http://a.ru.b.ru/", [0, 0]),
            ("ftp://a.ru/", [0, 0]),
            ("a.ru", [0, 0]),
            ("http://", [0, 0]),
        ] {
            assert_eq!([DomainBy::Registrable, DomainBy::Host].map(|by| handed(url, by)), counts, "{url}");
        }
        assert_eq!((handover.mark(), read.mark()), (Some(Stamp::from_s(9)), None));
    }
}
