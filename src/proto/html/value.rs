//! Attribute values: character references, link targets, token lists.

use std::borrow::Cow;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The named references that are decoded, without their semicolon, and whether it may be missing.
const NAMED: [(&[u8], char, bool); 9] = [
    (b"amp", '&', true),
    (b"AMP", '&', true),
    (b"lt", '<', true),
    (b"LT", '<', true),
    (b"gt", '>', true),
    (b"GT", '>', true),
    (b"quot", '"', true),
    (b"QUOT", '"', true),
    (b"apos", '\'', false),
];

/// Numeric references to 0x80–0x9F mean the windows-1252 characters of these octets.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// A link's target: decoded, trimmed of white space, without tabs and line ends.
#[inline]
pub(super) fn target(raw: &[u8]) -> Cow<'_, [u8]> {
    // Without an early exit this runs many bytes at a time.
    let plain = raw.iter().fold(true, |plain, &octet| plain & (octet >= b' ') & (octet != b'&'));
    if plain { Cow::Borrowed(raw.trim_ascii()) } else { clean(decode(raw)) }
}

/// Trims a decoded target and takes its tabs and line ends out, as the URL standard does.
pub(super) fn clean(decoded: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let breaks = |octet: &u8| matches!(octet, b'\t' | b'\n' | b'\r');
    match decoded {
        Cow::Borrowed(text) => {
            let text = text.trim_ascii();
            if text.iter().any(breaks) {
                Cow::Owned(text.iter().copied().filter(|octet| !breaks(octet)).collect())
            } else {
                Cow::Borrowed(text)
            }
        }
        Cow::Owned(text) => {
            Cow::Owned(text.trim_ascii().iter().copied().filter(|octet| !breaks(octet)).collect())
        }
    }
}

/// Decodes character references by the rules for attributes, and NUL as the standard does.
pub(super) fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr2(b'&', 0, raw) else {
        return Cow::Borrowed(raw);
    };
    let mut decoded = Vec::with_capacity(raw.len() + 2);
    decoded.extend_from_slice(&raw[..first]);
    let mut rest = &raw[first..];
    while let [mark, tail @ ..] = rest {
        let (text, after) = match mark {
            0 => (Some(REPLACEMENT), tail),
            _ => reference(tail).map_or((None, tail), |(text, after)| (Some(text), after)),
        };
        match text {
            Some(text) => decoded.extend_from_slice(text.encode_utf8(&mut [0; 4]).as_bytes()),
            None => decoded.push(b'&'),
        }
        let next = memchr::memchr2(b'&', 0, after).unwrap_or(after.len());
        decoded.extend_from_slice(&after[..next]);
        rest = &after[next..];
    }
    Cow::Owned(decoded)
}

/// Whether a list of tokens parted by white space has this one, in any case.
pub(super) fn has_token(list: &[u8], token: &[u8]) -> bool {
    list.split(u8::is_ascii_whitespace).any(|found| found.eq_ignore_ascii_case(token))
}

/// The character that a reference names, and what comes after it. `text` starts after the `&`.
fn reference(text: &[u8]) -> Option<(char, &[u8])> {
    match text {
        [b'#', b'x' | b'X', digits @ ..] => numeric(digits, 16),
        [b'#', digits @ ..] => numeric(digits, 10),
        _ => named(text),
    }
}

fn named(text: &[u8]) -> Option<(char, &[u8])> {
    let (name, character, may_be_open) = NAMED.into_iter().find(|(name, ..)| text.starts_with(name))?;
    match &text[name.len()..] {
        [b';', after @ ..] => Some((character, after)),
        // In `?a=1&lt=2` the author meant a parameter.
        [b'=', ..] => None,
        [next, ..] if next.is_ascii_alphanumeric() => None,
        after => may_be_open.then_some((character, after)),
    }
}

fn numeric(text: &[u8], radix: u32) -> Option<(char, &[u8])> {
    let mut value = 0u32;
    let mut digits = 0;
    while let Some(digit) = text.get(digits).and_then(|&octet| (octet as char).to_digit(radix)) {
        value = value.saturating_mul(radix).saturating_add(digit);
        digits += 1;
    }
    if digits == 0 {
        return None;
    }
    let after = &text[digits..];
    let character = match value {
        0 => REPLACEMENT,
        0x80..=0x9f => WINDOWS_1252[(value - 0x80) as usize],
        _ => char::from_u32(value).unwrap_or(REPLACEMENT),
    };
    Some((character, after.strip_prefix(b";").unwrap_or(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        for (raw, decoded) in [
            ("/a?b=1&amp;c=2", "/a?b=1&c=2"),
            ("/a?b=1&c=2", "/a?b=1&c=2"),
            ("&lt;&gt;&quot;&apos;&AMP;", "<>\"'&"),
            ("&amp", "&"),
            ("&amp&lt x", "&< x"),
            ("?a&amp=1&ampx&lt1", "?a&amp=1&ampx&lt1"),
            ("&apos", "&apos"),
            ("&copy;&nbsp;", "&copy;&nbsp;"),
            ("&#65;&#x42;&#X43;&#68E&#x46", "ABCDEF"),
            ("&#65=", "A="),
            ("&#;&#x;&#xg&#", "&#;&#x;&#xg&#"),
            ("&#0;&#xD800;&#x110000;&#99999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&#128;&#x9f;&#x81;", "€Ÿ\u{81}"),
            ("a\0b", "a\u{fffd}b"),
            ("&amp;amp;", "&amp;"),
            ("&", "&"),
        ] {
            assert_eq!(decode(raw.as_bytes()), decoded.as_bytes(), "{raw}");
        }
    }

    #[test]
    fn targets() {
        for (raw, cleaned) in [
            ("/a", "/a"),
            (" \t/a\r\n", "/a"),
            ("/a\n b\t", "/a b"),
            ("&#32;/a&#9;b&#10;", "/ab"),
            ("\u{c}/a\u{c}b\u{c}", "/a\u{c}b"),
            ("", ""),
            (" ", ""),
        ] {
            assert_eq!(target(raw.as_bytes()), cleaned.as_bytes(), "{raw:?}");
        }
        assert!(matches!(target(b"  /a "), Cow::Borrowed(b"/a")));
    }

    #[test]
    fn tokens() {
        assert!(has_token(b"external\nNOFOLLOW  ugc", b"nofollow"));
        assert!(!has_token(b"nofollow,ugc xnofollow", b"nofollow"));
        assert!(!has_token(b"", b"nofollow"));
    }
}
