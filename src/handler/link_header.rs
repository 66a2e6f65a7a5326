//! `Link: <https://h.test/page>; rel="canonical"` (RFC 8288).

use crate::proto::http1::Head;
use std::borrow::Cow;

/// The target of the first link of a head whose relation is canonical. `bytes` is what the head was parsed from.
///
/// Most heads have none. Those are skipped without parsing them, as long as no server writes the word in letters
/// of both kinds.
pub(super) fn canonical<'a>(head: &Head, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let said = [&b"anonical"[..], b"ANONICAL"].iter().any(|word| memchr::memmem::find(bytes, word).is_some());
    if !said {
        return None;
    }
    head.headers(bytes).filter(|(name, _)| name.eq_ignore_ascii_case(b"link")).find_map(|(_, value)| {
        match value {
            Cow::Borrowed(value) => canonical_of(value).map(Cow::Borrowed),
            Cow::Owned(value) => canonical_of(&value).map(|target| Cow::Owned(target.to_vec())),
        }
    })
}

/// The first canonical target of one header's value.
fn canonical_of(value: &[u8]) -> Option<&[u8]> {
    let mut rest = value;
    loop {
        let open = memchr::memchr(b'<', rest)? + 1;
        let close = open + memchr::memchr(b'>', &rest[open..])?;
        let target = &rest[open..close];
        rest = &rest[close + 1..];
        let (mut is_canonical, mut of_another) = (false, false);
        while let Some((name, parameter, after)) = parameter(rest) {
            is_canonical |= name.eq_ignore_ascii_case(b"rel")
                && parameter
                    .split(u8::is_ascii_whitespace)
                    .any(|relation| relation.eq_ignore_ascii_case(b"canonical"));
            // With an anchor it is not this document that is spoken of.
            of_another |= name.eq_ignore_ascii_case(b"anchor");
            rest = after;
        }
        if is_canonical && !of_another {
            return Some(target.trim_ascii());
        }
    }
}

/// The next parameter of a link, its value without quotes, and what follows; none at a comma or at the end.
fn parameter(rest: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let rest = rest.trim_ascii_start().strip_prefix(b";")?.trim_ascii_start();
    let name_end = rest.iter().position(|octet| b"=;,".contains(octet)).unwrap_or(rest.len());
    let (name, after) = rest.split_at(name_end);
    let Some(value) = after.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else {
        return Some((name.trim_ascii(), b"", after));
    };
    let (value, after) = match value.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
            (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
        }
        None => {
            let end = value.iter().position(|octet| b";,".contains(octet)).unwrap_or(value.len());
            (value[..end].trim_ascii(), &value[end..])
        }
    };
    Some((name.trim_ascii(), value, after))
}

#[cfg(test)]
mod tests {
    use super::canonical_of;

    #[test]
    fn canonical_links_are_found() {
        for (value, expected) in [
            ("<http://h/>; rel=canonical", Some("http://h/")),
            ("<http://h/>;rel=\"Canonical\"", Some("http://h/")),
            ("</a>; rel=next, < /b >; title=\"x, y; <z>\" ; rel=\"prev canonical\"", Some("/b")),
            ("</a,b;c>; rel=canonical", Some("/a,b;c")),
            ("</a>; rel=\"alternate\"; rel=canonical", Some("/a")),
            ("</a>; rel = canonical", Some("/a")),
            ("</a>; canonical; rel=\"canonical", Some("/a")),
            ("</a>; rel=canonical; anchor=\"/b\", </c>; rel=canonical", Some("/c")),
            ("</a>; rel=noncanonical", None),
            ("</a>; title=canonical", None),
            ("</a>, rel=canonical", None),
            ("/a; rel=canonical", None),
            ("</a; rel=canonical", None),
            ("", None),
        ] {
            let found = canonical_of(value.as_bytes()).map(|target| str::from_utf8(target).unwrap());
            assert_eq!(found, expected, "{value}");
        }
    }
}
