//! A response head as it is archived: for a document without its codings, and with the length that follows.

use crate::proto::http1::{Flags, HeadLimits, HeadParser, HeadStep, Method, unfold};
use memchr::memchr;

const ORIGINAL: &[u8] = b"X-Archive-Orig-";

/// The final head of a response, changed where the stored document is not what came: the names of headers that are no longer
/// true get a prefix. `None` for bytes that are no head.
pub(super) fn archived(head: &[u8], flags: Flags, body_bytes: usize) -> Option<Vec<u8>> {
    let method = if flags.contains(Flags::HEAD_ONLY) { Method::Head } else { Method::Get };
    let Ok(HeadStep::Done(parsed)) = HeadParser::new(HeadLimits::default(), method).parse(head) else {
        return None;
    };
    // Interim responses are not part of this one.
    let head = head.get(parsed.head_start as usize..parsed.head_bytes as usize)?;
    let mut out = Vec::with_capacity(head.len() + 64);
    let (status_line, mut rest) = head.split_at(line_end(head));
    out.extend_from_slice(status_line.trim_ascii_end());
    out.extend_from_slice(b"\r\n");
    let mut length_told = false;
    while let Some((field, after)) = next_field(rest) {
        rest = after;
        let Some(colon) = memchr(b':', field) else { continue };
        let (name, value) = (field[..colon].trim_ascii(), unfold(&field[colon + 1..]));
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if is(b"Content-Length") {
            let length = body_bytes.to_string();
            if *value != *length.as_bytes() {
                put(&mut out, &[ORIGINAL, name], &value);
            }
            if !std::mem::replace(&mut length_told, true) {
                put(&mut out, &[name], length.as_bytes());
            }
        } else if is(b"Transfer-Encoding") || is(b"Content-Encoding") && flags.contains(Flags::DECODED) {
            put(&mut out, &[ORIGINAL, name], &value);
        } else if field.contains(&b'\n') {
            // Not every reader knows that a header may continue on the next line.
            put(&mut out, &[name], &value);
        } else {
            out.extend_from_slice(field);
            out.extend_from_slice(b"\r\n");
        }
    }
    if !length_told {
        put(&mut out, &[b"Content-Length"], body_bytes.to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    Some(out)
}

/// A head for a document that came without one.
pub(super) fn made_up(status: u16, body_bytes: usize) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    };
    format!("HTTP/1.1 {status} {reason}\r\nContent-Length: {body_bytes}\r\n\r\n").into_bytes()
}

fn put(out: &mut Vec<u8>, name: &[&[u8]], value: &[u8]) {
    for part in name {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The next header with its folded lines, without the end of the last, and what follows; `None` at the blank line.
fn next_field(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut end = line_end(rest);
    while matches!(rest.get(end), Some(b' ' | b'\t')) {
        end += line_end(&rest[end..]);
    }
    let (field, after) = rest.split_at(end);
    let field = field.strip_suffix(b"\n").unwrap_or(field);
    let field = field.strip_suffix(b"\r").unwrap_or(field);
    (!field.is_empty()).then_some((field, after))
}

fn line_end(bytes: &[u8]) -> usize {
    memchr(b'\n', bytes).map_or(bytes.len(), |lf| lf + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archived_text(head: &str, flags: Flags, body_bytes: usize) -> String {
        String::from_utf8(archived(head.as_bytes(), flags, body_bytes).unwrap()).unwrap()
    }

    #[test]
    fn what_is_true_stays_as_it_was_spelt() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type:text/html \r\ncontent-LENGTH:  5\r\nX : y\r\n\r\n";
        assert_eq!(
            archived_text(head, Flags::NONE, 5),
            "HTTP/1.1 200 OK\r\nContent-Type:text/html \r\ncontent-LENGTH: 5\r\nX : y\r\n\r\n"
        );
    }

    #[test]
    fn what_is_not_true_any_more_gets_another_name() {
        let head =
            "HTTP/1.1 200 OK\nContent-Encoding: gzip\nTransfer-Encoding:\n chunked\nContent-Length: 3\n\n";
        assert_eq!(
            archived_text(head, Flags::DECODED, 10),
            "HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Encoding: gzip\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\nX-Archive-Orig-Content-Length: 3\r\nContent-Length: 10\r\n\r\n"
        );
        // A coding that was not removed is still true.
        let text = archived_text("HTTP/1.0 200\r\nContent-Encoding: compress\r\n\r\n", Flags::NONE, 4);
        assert_eq!(text, "HTTP/1.0 200\r\nContent-Encoding: compress\r\nContent-Length: 4\r\n\r\n");
    }

    #[test]
    fn interim_responses_are_left_out_and_what_is_no_head_is_none() {
        let head = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\nA: b\r\n \r\n\tc\r\n\r\n";
        assert_eq!(
            archived_text(head, Flags::NONE, 0),
            "HTTP/1.1 204 No\r\nA: b c\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(archived(b"junk\r\n\r\n", Flags::NONE, 0), None);
        assert_eq!(archived(b"HTTP/1.1 200 OK\r\n", Flags::NONE, 0), None);
    }
}
