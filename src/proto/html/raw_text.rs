//! Stretches without markup: comments and the text of script, style and their like.
//!
//! Each function is given the byte after the opening and returns the byte after the closing. None means
//! that the page ends first.

use super::tag::{ends_tag_name, skip};

/// After `<!--`. Closed by `-->` or `--!>`, and by a `>` or `->` right at the start.
pub(super) fn comment_end(body: &[u8], start: usize) -> Option<usize> {
    let text = &body[start..];
    if text.starts_with(b">") {
        return Some(start + 1);
    }
    if text.starts_with(b"->") {
        return Some(start + 2);
    }
    let closes = |before: &[u8]| before.ends_with(b"--") || before.ends_with(b"--!");
    let close = memchr::memchr_iter(b'>', text).find(|&close| closes(&text[..close]))?;
    Some(start + close + 1)
}

/// After `<!` or `<?` that open no comment, or `</` before no letter: doctypes, processing instructions,
/// CDATA. All of them end at the first `>`.
pub(super) fn bogus_comment_end(body: &[u8], start: usize) -> Option<usize> {
    Some(start + memchr::memchr(b'>', &body[start..])? + 1)
}

/// After the start tag of an element whose text ends only at its own end tag.
pub(super) fn raw_text_end(body: &[u8], start: usize, name: &[u8]) -> Option<usize> {
    let text = &body[start..];
    let open = memchr::memchr_iter(b'<', text).find(|&open| is_tag(&text[open + 1..], b"/", name))?;
    let name_end = start + open + b"</".len() + name.len();
    Some(skip(body, name_end)?.end)
}

/// After a script's start tag.
///
/// A script may hold `<!-- … -->`, and in it a whole `<script>…</script>`, whose end tag is not the
/// script's own.
pub(super) fn script_end(body: &[u8], start: usize) -> Option<usize> {
    #[derive(PartialEq)]
    enum Text {
        Script,
        /// After `<!--`.
        Escaped,
        /// After `<script` in escaped text.
        DoubleEscaped,
    }
    let mut text = Text::Script;
    // Where the dashes of a `-->` may start.
    let mut dashes_start = start;
    let mut at = start;
    loop {
        let found = match text {
            Text::Script => memchr::memchr(b'<', &body[at..]),
            Text::Escaped | Text::DoubleEscaped => memchr::memchr2(b'<', b'>', &body[at..]),
        };
        let mark = at + found?;
        let after = &body[mark + 1..];
        at = mark + 1;
        match text {
            Text::Script if after.starts_with(b"!--") => {
                text = Text::Escaped;
                dashes_start = mark + b"<!".len();
            }
            Text::Script | Text::Escaped if is_tag(after, b"/", b"script") => {
                return Some(skip(body, mark + b"</script".len())?.end);
            }
            Text::Script => {}
            Text::Escaped | Text::DoubleEscaped if body[mark] == b'>' => {
                if body[dashes_start..mark].ends_with(b"--") {
                    text = Text::Script;
                }
            }
            Text::Escaped if is_tag(after, b"", b"script") => text = Text::DoubleEscaped,
            Text::DoubleEscaped if is_tag(after, b"/", b"script") => text = Text::Escaped,
            Text::Escaped | Text::DoubleEscaped => {}
        }
    }
}

/// Whether a tag of this name opens (`slash` empty) or closes (`/`) here, after its `<`.
fn is_tag(after: &[u8], slash: &[u8], name: &[u8]) -> bool {
    let Some(rest) = after.strip_prefix(slash) else {
        return false;
    };
    rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && rest.get(name.len()).is_some_and(|&octet| ends_tag_name(octet))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(body: &[u8], end: Option<usize>) -> Option<&str> {
        end.map(|end| str::from_utf8(&body[end..]).expect("samples are text"))
    }

    #[test]
    fn comments() {
        for (text, after) in [
            (" a -->x", Some("x")),
            ("-->x", Some("x")),
            (">x", Some("x")),
            ("->x", Some("x")),
            ("-!>-->x", Some("x")),
            ("a--!>x", Some("x")),
            ("a-->b-->", Some("b-->")),
            ("--->x", Some("x")),
            ("<!-->x", Some("x")),
            ("a > b -> c -- > d", None),
            ("", None),
        ] {
            assert_eq!(rest(text.as_bytes(), comment_end(text.as_bytes(), 0)), after, "{text}");
        }
    }

    #[test]
    fn raw_texts() {
        for (text, after) in [
            ("a</style>x", Some("x")),
            ("</STYLE >x", Some("x")),
            ("</style/>x", Some("x")),
            ("</style a='>'>x", Some("x")),
            ("</ style></styles></style\0></style>x", Some("x")),
            ("<</style>x", Some("x")),
            ("</style", None),
            ("</style a='>", None),
            ("", None),
        ] {
            assert_eq!(rest(text.as_bytes(), raw_text_end(text.as_bytes(), 0, b"style")), after, "{text}");
        }
    }

    #[test]
    fn scripts() {
        for (text, after) in [
            ("if (a<b) {}</script>x", Some("x")),
            ("\"<a href=/x>\"</Script\n>x", Some("x")),
            ("<!-- </script>x", Some("x")),
            ("<!-- <script> </script> --></script>x", Some("x")),
            ("<!-- <script> </script> </script>x", Some("x")),
            ("<!-- <script> --> </script>x", Some("x")),
            ("<!-- <script> </script>x", None),
            ("<!--><script></script>x", Some("x")),
            ("<!---><script></script>x", Some("x")),
            ("<!-- <scripts></script>x", Some("x")),
            ("<script></script>x", Some("x")),
            ("", None),
        ] {
            assert_eq!(rest(text.as_bytes(), script_end(text.as_bytes(), 0)), after, "{text}");
        }
    }
}
