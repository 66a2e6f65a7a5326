/// What a line of a list says: without its comment, which begins the line or follows a blank, and without the byte order
/// mark that some editors put first. The `#` of a fragment has no blank before it.
pub fn listed(line: &str) -> &str {
    let is_blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
    let line = line.trim_matches(is_blank);
    let comment =
        line.match_indices('#').find(|(at, _)| line[..*at].chars().next_back().is_none_or(is_blank));
    comment.map_or(line, |(at, _)| line[..at].trim_end_matches(is_blank))
}

/// The text of a file without the mark that some editors begin it with.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The same of its bytes.
pub fn bytes_without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

const BYTE_ORDER_MARK: char = '\u{feff}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_follows_a_blank() {
        for (line, url) in [
            ("http://a/", "http://a/"),
            ("\u{feff}http://a/\r", "http://a/"),
            ("http://a/ # why", "http://a/"),
            ("http://a/\t#why", "http://a/"),
            ("http://a/p#frag", "http://a/p#frag"),
            ("http://a/p#frag # why", "http://a/p#frag"),
            ("# http://a/", ""),
            ("  #", ""),
            ("\u{feff}", ""),
        ] {
            assert_eq!(listed(line), url, "{line:?}");
        }
    }

    #[test]
    fn a_mark_goes_from_the_beginning_alone() {
        assert_eq!(without_mark("\u{feff}a\u{feff}"), "a\u{feff}");
        assert_eq!(bytes_without_mark(b"\xef\xbb\xbfa"), b"a");
        assert_eq!((without_mark("a"), bytes_without_mark(b"\xef\xbb")), ("a", &b"\xef\xbb"[..]));
    }
}
