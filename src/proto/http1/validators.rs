//! What a stored response is asked about when it is asked for again.

use super::head::Head;
use super::headers::unfold;
use super::span::Span;

/// ETag and Last-Modified as the server wrote them; empty where it did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    pub etag: Box<[u8]>,
    pub last_modified: Box<[u8]>,
}

/// A longer one is not worth its memory and its bytes in every request.
const VALIDATOR_BYTES_MAX: usize = 256;

impl Validators {
    /// Those of a response. What could not be sent back as it came is passed over.
    pub fn of(head: &Head, head_bytes: &[u8]) -> Option<Validators> {
        let read = |span: Span| -> Box<[u8]> {
            let value = unfold(span.of(head_bytes));
            let sound = value.len() <= VALIDATOR_BYTES_MAX && value.iter().all(|&b| b >= b' ' && b != 0x7f);
            if sound { value.as_ref().into() } else { Box::default() }
        };
        let validators = Validators { etag: read(head.etag), last_modified: read(head.last_modified) };
        (validators != Validators::default()).then_some(validators)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeadLimits, HeadParser, HeadStep, Method};
    use super::*;

    fn of(lines: &str) -> Option<Validators> {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        match HeadParser::new(HeadLimits::default(), Method::Get).parse(text.as_bytes()) {
            Ok(HeadStep::Done(head)) => Validators::of(&head, text.as_bytes()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn they_are_kept_as_they_came_or_not_at_all() {
        assert_eq!(of("ETag: W/\"x\"\r\n").unwrap().etag[..], b"W/\"x\""[..]);
        assert_eq!(of("Last-Modified: a\r\n b\r\n").unwrap().last_modified[..], b"a b"[..]);
        assert_eq!(of("ETag: a\x01b\r\n"), None);
        assert_eq!(of(&format!("ETag: {}\r\n", "x".repeat(257))), None);
        assert_eq!(of(""), None);
    }
}
