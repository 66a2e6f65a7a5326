//! Canonical escapes, and the match of a pattern against a path.
//!
//! Both sides are put in one spelling before they are compared octet by octet:
//!
//! | octet | canonical |
//! |---|---|
//! | unreserved (`A-Za-z0-9-._~`), raw or escaped | raw |
//! | reserved (`:/?#[]@!&'()+,;=`), raw | raw |
//! | reserved, escaped | `%XX`, upper case: a `%2F` is data where a `/` is structure |
//! | anything else (space, quotes, octets from 128 up), raw or escaped | `%XX`, upper case |
//! | `%` without two hex digits | `%25` |
//! | `*` and `$`, escaped, or raw in a path | `%2A`, `%24` |
//! | `*` in a pattern, `$` as its last octet | raw: the two operators |
//!
//! So a canonical path holds no raw `*` or `$`, and those in a canonical pattern are always operators.

use std::borrow::Cow;

use memchr::memmem;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Octets that stand for themselves on both sides.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut octet = 0;
    while octet < 256 {
        plain[octet] = is_unreserved(octet as u8)
            || matches!(
                octet as u8,
                b':' | b'/'
                    | b'?'
                    | b'#'
                    | b'['
                    | b']'
                    | b'@'
                    | b'!'
                    | b'&'
                    | b'\''
                    | b'('
                    | b')'
                    | b'+'
                    | b','
                    | b';'
                    | b'='
            );
        octet += 1;
    }
    plain
};

/// The canonical spelling of a path and query.
pub(super) fn canonical_path(path: &[u8]) -> Cow<'_, [u8]> {
    match path.iter().position(|&octet| !PLAIN[octet as usize]) {
        None => Cow::Borrowed(path),
        Some(plain_bytes) => {
            let mut canonical = Vec::with_capacity(path.len() + 16);
            canonical.extend_from_slice(&path[..plain_bytes]);
            push_canonical(&path[plain_bytes..], &mut canonical);
            Cow::Owned(canonical)
        }
    }
}

/// Appends the canonical spelling of a rule's pattern.
pub(super) fn push_canonical_pattern(pattern: &[u8], canonical: &mut Vec<u8>) {
    let (body, anchored) = match pattern {
        [body @ .., b'$'] => (body, true),
        body => (body, false),
    };
    for (index, segment) in body.split(|&octet| octet == b'*').enumerate() {
        if index > 0 {
            canonical.push(b'*');
        }
        push_canonical(segment, canonical);
    }
    if anchored {
        canonical.push(b'$');
    }
}

/// Whether a canonical pattern has operators in it. Without, it is a plain prefix.
pub(super) fn has_operators(pattern: &[u8]) -> bool {
    pattern.last() == Some(&b'$') || memchr::memchr(b'*', pattern).is_some()
}

/// Matches a canonical pattern with operators against a canonical path, from its first octet.
///
/// Each segment between stars is taken at its leftmost place after the one before it, which is right
/// because a star matches any run: an earlier place never leaves less room. Nothing is tried twice, so the
/// time is linear in pattern and path.
pub(super) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (body, anchored) = match pattern {
        [body @ .., b'$'] => (body, true),
        body => (body, false),
    };
    let Some(star) = memchr::memchr(b'*', body) else {
        return if anchored { path == body } else { path.starts_with(body) };
    };
    let Some(mut rest) = path.strip_prefix(&body[..star]) else {
        return false;
    };
    let mut segments = &body[star + 1..];
    while let Some(star) = memchr::memchr(b'*', segments) {
        let segment = &segments[..star];
        let Some(found) = memmem::find(rest, segment) else {
            return false;
        };
        rest = &rest[found + segment.len()..];
        segments = &segments[star + 1..];
    }
    if anchored { rest.ends_with(segments) } else { memmem::find(rest, segments).is_some() }
}

fn push_canonical(text: &[u8], canonical: &mut Vec<u8>) {
    let mut rest = text;
    while let [octet, tail @ ..] = rest {
        rest = tail;
        let escaped = match (octet, tail) {
            (b'%', [high, low, after @ ..]) => hex_pair(*high, *low).map(|value| (value, after)),
            _ => None,
        };
        match escaped {
            Some((value, after)) => {
                rest = after;
                if is_unreserved(value) {
                    canonical.push(value);
                } else {
                    push_escape(value, canonical);
                }
            }
            None if PLAIN[*octet as usize] => canonical.push(*octet),
            None => push_escape(*octet, canonical),
        }
    }
}

fn push_escape(octet: u8, canonical: &mut Vec<u8>) {
    canonical.extend_from_slice(&[b'%', HEX[(octet >> 4) as usize], HEX[(octet & 15) as usize]]);
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |octet: u8| (octet as char).to_digit(16).map(|value| value as u8);
    Some(digit(high)? << 4 | digit(low)?)
}

const fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical_pattern(pattern: &[u8]) -> Vec<u8> {
        let mut canonical = Vec::new();
        push_canonical_pattern(pattern, &mut canonical);
        canonical
    }

    /// The definition, tried out in full.
    fn matches_by_definition(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) => true,
            (b"$", _) => path.is_empty(),
            ([b'*', rest @ ..], _) => (0..=path.len()).any(|skip| matches_by_definition(rest, &path[skip..])),
            ([first, rest @ ..], [octet, tail @ ..]) => first == octet && matches_by_definition(rest, tail),
            (_, []) => false,
        }
    }

    #[test]
    fn canonical_spellings() {
        for (path, canonical) in [
            (&b"/a/b?c=d&e"[..], &b"/a/b?c=d&e"[..]),
            (b"/%62%61%7A", b"/baz"),
            (b"/%7ejoe", b"/~joe"),
            (b"/a%2fb", b"/a%2Fb"),
            (b"/\xe3\x83\x84", b"/%E3%83%84"),
            (b"/%e3%83%84", b"/%E3%83%84"),
            (b"/a b\"", b"/a%20b%22"),
            (b"/100%", b"/100%25"),
            (b"/%zz%4", b"/%25zz%254"),
            (b"/*$", b"/%2A%24"),
            (b"/%2a%24", b"/%2A%24"),
        ] {
            assert_eq!(canonical_path(path), canonical, "{}", path.escape_ascii());
        }
        assert!(matches!(canonical_path(b"/plain?x=1"), Cow::Borrowed(_)));
        for (pattern, canonical) in [
            (&b"/*.gif$"[..], &b"/*.gif$"[..]),
            (b"/a$b", b"/a%24b"),
            (b"/a$$", b"/a%24$"),
            (b"/%2a%24", b"/%2A%24"),
            (b"/%2A*", b"/%2A*"),
            (b"$", b"$"),
        ] {
            assert_eq!(canonical_pattern(pattern), canonical, "{}", pattern.escape_ascii());
        }
    }

    #[test]
    fn a_hostile_pattern_takes_one_pass() {
        let pattern = [b"/".as_slice(), &b"*a".repeat(20_000), b"*b$"].concat();
        let path = [b"/".as_slice(), &b"a".repeat(60_000)].concat();
        assert!(!matches(&pattern, &path));
    }

    fn octets_of(alphabet: &'static [u8], bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(alphabet), 0..=bytes_max)
    }

    proptest! {
        #[test]
        fn matcher_equals_the_definition(
            pattern in octets_of(b"ab/**$%2A", 10), path in octets_of(b"ab/ab/$%2A*", 14),
        ) {
            let (pattern, path) = (canonical_pattern(&pattern), canonical_path(&path));
            prop_assert_eq!(matches(&pattern, &path), matches_by_definition(&pattern, &path));
            if !has_operators(&pattern) {
                prop_assert_eq!(path.starts_with(&pattern), matches_by_definition(&pattern, &path));
            }
        }

        #[test]
        fn canonical_is_a_fixed_point(path in prop::collection::vec(any::<u8>(), 0..40)) {
            let once = canonical_path(&path).into_owned();
            prop_assert!(once.is_ascii());
            prop_assert_eq!(&*canonical_path(&once), &*once);
            let pattern = canonical_pattern(&path);
            prop_assert!(pattern.is_ascii());
            prop_assert_eq!(canonical_pattern(&pattern), pattern);
        }

        #[test]
        fn escaping_an_unreserved_octet_changes_nothing(path in "/[a-z/]{1,12}", at in any::<prop::sample::Index>()) {
            let at = at.index(path.len());
            let octet = path.as_bytes()[at];
            let escaped = format!("{}%{octet:02x}{}", &path[..at], &path[at + 1..]);
            let same = canonical_path(path.as_bytes()) == canonical_path(escaped.as_bytes());
            prop_assert_eq!(same, is_unreserved(octet));
        }
    }
}
