//! Percent-encoding in one normal form (RFC 3986, 6.2.2): hex digits in upper case, and no escape for a character that
//! needs none. `%7euser/%c3%bc` and `~user/%C3%BC` are one document, and become one URL.

use std::borrow::Cow;

/// The text with the escapes from `start` on in normal form. It never gets longer.
pub(super) fn normal(text: &str, start: usize) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let Some(first) = memchr::memchr(b'%', &bytes[start..]).map(|at| start + at) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    // Behind the last percent sign that begins no escape. What is undone right after it must not complete it.
    let mut bare_end = 0;
    let mut at = first;
    while at < bytes.len() {
        let rest = &text[at..];
        match escape(rest.as_bytes()) {
            Some(octet) if is_unreserved(octet) && (bare_end == 0 || out.len() > bare_end + 1) => {
                out.push(char::from(octet));
                at += 3;
            }
            Some(_) => {
                out.extend(rest[..3].chars().map(|c| c.to_ascii_uppercase()));
                at += 3;
            }
            None => {
                let plain = 1 + memchr::memchr(b'%', &rest.as_bytes()[1..]).unwrap_or(rest.len() - 1);
                if rest.starts_with('%') {
                    bare_end = out.len() + 1;
                }
                out.push_str(&rest[..plain]);
                at += plain;
            }
        }
    }
    match out == text {
        true => Cow::Borrowed(text),
        false => Cow::Owned(out),
    }
}

/// The octet that an escape at the beginning stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    let &[b'%', high, low, ..] = bytes else { return None };
    let digit = |octet: u8| char::from(octet).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_equivalent_becomes_one() {
        for (text, expected) in [
            ("/a/b?c", "/a/b?c"),
            ("/%7Euser/%41%2d%5F", "/~user/A-_"),
            ("/%c3%bC?%2f%3d", "/%C3%BC?%2F%3D"),
            ("/%2541%25", "/%2541%25"),
            ("/100%", "/100%"),
            ("/%zz%4", "/%zz%4"),
            // What stands behind a percent sign by itself stays, or an escape would come out of nothing.
            ("/%%34%31", "/%%341"),
            ("/%4%31", "/%4%31"),
            ("/%4x%31", "/%4x1"),
            ("/%%4a", "/%%4A"),
            ("/%\u{e9}", "/%\u{e9}"),
        ] {
            assert_eq!(normal(text, 0), expected, "{text}");
        }
        assert_eq!(normal("%41%41", 3), "%41A", "only from the start on");
    }

    /// Every escape undone once, from left to right: what a server makes of a URL.
    fn undone(text: &str) -> Vec<u8> {
        let (mut bytes, mut out) = (text.as_bytes(), Vec::new());
        while let Some(&first) = bytes.first() {
            let (octet, used) = escape(bytes).map_or((first, 1), |octet| (octet, 3));
            out.push(octet);
            bytes = &bytes[used..];
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4_000) })]
        #[test]
        fn a_normal_form_is_its_own_and_means_the_same(text in "(%|%[0-9a-fA-F]|%[2-7][0-9a-fA-F]|[0-9aA/%é]){0,8}") {
            let once = normal(&text, 0).into_owned();
            prop_assert_eq!(normal(&once, 0), once.as_str());
            prop_assert_eq!(undone(&once), undone(&text));
            prop_assert!(once.len() <= text.len());
        }
    }
}
