//! `<meta>`: refresh and robots.

use std::borrow::Cow;

use super::fact::RobotsMeta;
use super::value;

/// A refresh later than this is for readers who stay, and no redirect.
pub const REFRESH_DELAY_S_MAX: u32 = 30;

/// Delay and target of a refresh, by the HTML standard's steps. None if it is malformed, too late, or
/// merely reloads the page.
pub(super) fn refresh(content: &[u8]) -> Option<(u32, Cow<'_, [u8]>)> {
    let content = value::decode(content);
    let (delay_s, target) = read_refresh(&content)?;
    let target = match &content {
        Cow::Borrowed(text) => Cow::Borrowed(&text[target]),
        Cow::Owned(text) => Cow::Owned(text[target].to_vec()),
    };
    let target = value::clean(target);
    (delay_s <= REFRESH_DELAY_S_MAX && !target.is_empty()).then_some((delay_s, target))
}

/// What a list of robots directives forbids. Commas part them; many authors use spaces.
pub(super) fn robots(content: &[u8]) -> RobotsMeta {
    let content = value::decode(content);
    let mut meta = RobotsMeta::default();
    for directive in content.split(|octet| *octet == b',' || octet.is_ascii_whitespace()) {
        let all = directive.eq_ignore_ascii_case(b"none");
        meta.nofollow |= all || directive.eq_ignore_ascii_case(b"nofollow");
        meta.noindex |= all || directive.eq_ignore_ascii_case(b"noindex");
    }
    meta
}

fn read_refresh(content: &[u8]) -> Option<(u32, std::ops::Range<usize>)> {
    let skip = |at: usize, in_run: fn(&u8) -> bool| {
        at + content[at..].iter().position(|octet| !in_run(octet)).unwrap_or(content.len() - at)
    };
    let skip_space = |at| skip(at, u8::is_ascii_whitespace);

    let digits_start = skip_space(0);
    let digits_end = skip(digits_start, u8::is_ascii_digit);
    if digits_start == digits_end && content.get(digits_end) != Some(&b'.') {
        return None;
    }
    let delay_s = content[digits_start..digits_end]
        .iter()
        .fold(0u32, |delay_s, digit| delay_s.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    // The fraction counts for nothing.
    let mut at = skip(digits_end, |octet| octet.is_ascii_digit() || *octet == b'.');
    if content.get(at).is_some_and(|octet| !octet.is_ascii_whitespace() && !matches!(octet, b';' | b',')) {
        return None;
    }
    at = skip_space(at);
    if matches!(content.get(at), Some(b';' | b',')) {
        at += 1;
    }
    at = skip_space(at);

    // With a "url" but no `=` after it, the word is part of the target, and quotes are too.
    if content[at..].get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"url")) {
        let equals = skip_space(at + 3);
        if content.get(equals) != Some(&b'=') {
            return Some((delay_s, at..content.len()));
        }
        at = skip_space(equals + 1);
    }
    let mut end = content.len();
    if let Some(quote @ (b'"' | b'\'')) = content.get(at) {
        at += 1;
        end = memchr::memchr(*quote, &content[at..]).map_or(end, |close| at + close);
    }
    Some((delay_s, at..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refreshes() {
        for (content, expected) in [
            ("5; url=/a", Some((5, "/a"))),
            ("0;URL='/a'", Some((0, "/a"))),
            ("0;url=\"/a\" tail", Some((0, "/a"))),
            ("0;url='/a", Some((0, "/a"))),
            (" \n3 , Url \t= /a b ", Some((3, "/a b"))),
            ("3 /a", Some((3, "/a"))),
            ("3;/a", Some((3, "/a"))),
            ("3;'/a'b", Some((3, "/a"))),
            ("3;;/a", Some((3, ";/a"))),
            ("3; urls/a", Some((3, "urls/a"))),
            ("3; unit/a", Some((3, "unit/a"))),
            ("3; url 'x'", Some((3, "url 'x'"))),
            (".5; /a", Some((0, "/a"))),
            ("1.9.9; url=/a", Some((1, "/a"))),
            ("30;url=/a", Some((30, "/a"))),
            ("0;url=/a?b&amp;c", Some((0, "/a?b&c"))),
            ("0;url=/a\n/b", Some((0, "/a/b"))),
            ("31;url=/a", None),
            ("99999999999;url=/a", None),
            ("5", None),
            ("5;", None),
            ("5;url=", None),
            ("5;url=''", None),
            ("5x;url=/a", None),
            ("-1;url=/a", None),
            ("url=/a", None),
            ("", None),
        ] {
            let found = refresh(content.as_bytes());
            let found =
                found.as_ref().map(|(delay_s, target)| (*delay_s, str::from_utf8(target).expect("text")));
            assert_eq!(found, expected, "{content}");
        }
    }

    #[test]
    fn robots_directives() {
        for (content, nofollow, noindex) in [
            ("noindex", false, true),
            ("NoFollow", true, false),
            (" none ", true, true),
            ("noindex,nofollow", true, true),
            ("index, FOLLOW,noarchive , nofollow", true, false),
            ("noindex nofollow", true, true),
            ("index,follow", false, false),
            ("nofollowing", false, false),
            ("", false, false),
        ] {
            assert_eq!(robots(content.as_bytes()), RobotsMeta { nofollow, noindex }, "{content}");
        }
    }
}
