//! Links made absolute.

use crate::limits::URL_BYTES_MAX;
use std::borrow::Cow;

/// A link of a feed against the base that holds for it. None of an empty link, one that is too long, and one that cannot
/// be made absolute. What has a scheme is left as it is written.
pub(super) fn absolute<'a>(link: Cow<'a, str>, base: &str) -> Option<Cow<'a, str>> {
    let link = trimmed(link);
    if link.is_empty() || link.len() > URL_BYTES_MAX {
        return None;
    }
    if has_scheme(&link) {
        return Some(link);
    }
    let joined = url::Url::parse(base).ok()?.join(&link).ok()?;
    (joined.as_str().len() <= URL_BYTES_MAX).then(|| Cow::Owned(joined.into()))
}

/// Without the blanks around it, and without line ends in it.
fn trimmed(link: Cow<'_, str>) -> Cow<'_, str> {
    let is_break = |c: char| matches!(c, '\t' | '\n' | '\r');
    let link = match link {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) if text.trim().len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(text.trim().to_string()),
    };
    match link.contains(is_break) {
        true => Cow::Owned(link.replace(is_break, "")),
        false => link,
    }
}

/// Whether a text begins as an absolute URL.
pub(super) fn has_scheme(link: &str) -> bool {
    let end = link.bytes().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-')));
    link.starts_with(|c: char| c.is_ascii_alphabetic()) && end.is_some_and(|end| link.as_bytes()[end] == b':')
}

/// Whether a text can be asked for, where nobody says that it is a URL.
pub(super) fn is_web(text: &str) -> bool {
    let begins =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    (begins("http://") || begins("https://")) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_every_shape() {
        for (link, base, expected) in [
            ("http://h.test/a b", "", Some("http://h.test/a b")),
            (" \n http://h.test/\na\t ", "", Some("http://h.test/a")),
            ("/x?y", "http://h.test/feeds/rss", Some("http://h.test/x?y")),
            ("x", "http://h.test/feeds/rss", Some("http://h.test/feeds/x")),
            ("//o.test/x", "https://h.test/", Some("https://o.test/x")),
            ("javascript:alert(1)", "http://h.test/", Some("javascript:alert(1)")),
            ("x", "", None),
            ("x", "not a base", None),
            ("  ", "http://h.test/", None),
        ] {
            assert_eq!(absolute(Cow::Borrowed(link), base).as_deref(), expected, "{link}");
        }
        let long = format!("http://h.test/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(absolute(Cow::Borrowed(&long), ""), None);
        assert!(is_web("HTTPS://h.test/") && !is_web("http://a b") && !is_web("tag:h.test,2004:1"));
    }
}
