use crate::proto::reflog::{ReflogRecord, Stamp};

/// What an entry of a queue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Url(ReflogRecord<'a>),
    Close(&'a str),
    Open(&'a str),
    /// What an old node knew of a host of a domain.
    Nice(&'a str),
    /// Nothing that is written here.
    Unknown,
}

impl Entry<'_> {
    pub fn read(line: &[u8]) -> Entry<'_> {
        if let Some(record) = record_of(line) {
            return Entry::Url(record);
        }
        let text = std::str::from_utf8(line).unwrap_or_default();
        match text.split_once(' ') {
            Some(("CLOSE", rest)) => Entry::Close(first_word(rest)),
            Some(("OPEN", rest)) => Entry::Open(first_word(rest)),
            Some(("NICE", rest)) => Entry::Nice(first_word(rest)),
            _ => Entry::Unknown,
        }
    }
}

/// The domain; what follows is its fence, or a line.
fn first_word(rest: &str) -> &str {
    rest.split(' ').next().unwrap_or_default()
}

/// A line as we write it: seven fields.
fn record_of(line: &[u8]) -> Option<ReflogRecord<'_>> {
    let mut fields = line.split(|byte| *byte == b'\t');
    let mut next = || fields.next();
    let (batch, priority, at, page) = (next()?, next()?, next()?, next()?);
    let (url, hits, tag) = (next()?, next()?, next()?);
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u32>().ok();
    let record = ReflogRecord {
        batch,
        priority: number(priority)?.try_into().ok()?,
        at: Stamp::parse(at)?,
        page,
        url,
        hits: number(hits)?,
        tag,
    };
    fields.next().is_none().then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line_or_a_word() {
        let line = b"2011072806593795\t5\t20110727200853\t4599\thttp://astroma.net/week/02.htm\t3\t";
        let Entry::Url(record) = Entry::read(line) else { panic!("a line") };
        let mut again = Vec::new();
        record.write(&mut again);
        assert_eq!(again, [&line[..], b"\n"].concat());
        assert_eq!(Entry::read(b"CLOSE a.example 1"), Entry::Close("a.example"));
        assert_eq!(Entry::read(b"OPEN a.example 2"), Entry::Open("a.example"));
        assert_eq!(Entry::read(b"NICE a.example {\"x\": 1}"), Entry::Nice("a.example"));
        for other in [&b""[..], b"CLOSED a", b"\xff\xff", &line[..40], &[&line[..], b"\tx"].concat()] {
            assert_eq!(Entry::read(other), Entry::Unknown);
        }
    }
}
