//! Inside a tag: attributes, and where the tag ends.

use super::words;

/// White space in markup; a CR is a line end not yet normalised.
const SPACE: u8 = 1;
/// Ends an attribute name: white space, `/`, `>`, `=`.
const NAME_END: u8 = 2;
/// Ends an unquoted value: white space, `>`.
const VALUE_END: u8 = 4;
/// Ends a tag name: white space, `/`, `>`.
const TAG_NAME_END: u8 = 8;

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let spaces = b" \t\n\r\x0c";
    let mut index = 0;
    while index < spaces.len() {
        class[spaces[index] as usize] = SPACE | NAME_END | VALUE_END | TAG_NAME_END;
        index += 1;
    }
    class[b'/' as usize] = NAME_END | TAG_NAME_END;
    class[b'>' as usize] = NAME_END | VALUE_END | TAG_NAME_END;
    class[b'=' as usize] = NAME_END;
    class
};

/// Where a tag ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Close {
    /// The byte after its `>`.
    pub end: usize,
    pub self_closing: bool,
}

/// Reads the attributes of a tag from the end of its name to its `>`.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    /// `name_end` is the byte after the tag's name.
    pub fn new(body: &'a [u8], name_end: usize) -> Attributes<'a> {
        Attributes { body, at: name_end }
    }

    /// The raw values of these attributes, the first of each name, and where the tag closes. None if the
    /// page ends before it does. An attribute without a value has an empty one.
    #[inline]
    pub fn collect<const N: usize>(mut self, names: [&[u8]; N]) -> Option<([Option<&'a [u8]>; N], Close)> {
        let mut values = [None; N];
        loop {
            match self.step()? {
                Step::Attribute { name, value } => {
                    for (slot, wanted) in values.iter_mut().zip(names) {
                        if slot.is_none() && name.eq_ignore_ascii_case(wanted) {
                            *slot = Some(value);
                        }
                    }
                }
                Step::Close(close) => return Some((values, close)),
            }
        }
    }

    #[inline]
    fn step(&mut self) -> Option<Step<'a>> {
        let body = self.body;
        let mut at = self.at;
        let mut slash = false;
        // A `/` counts only right before the `>`; elsewhere it is as good as a space.
        loop {
            match *body.get(at)? {
                b'>' => {
                    return Some(Step::Close(Close { end: at + 1, self_closing: slash }));
                }
                b'/' => slash = true,
                octet if is(octet, SPACE) => slash = false,
                _ => break,
            }
            at += 1;
        }
        let name_start = at;
        // A `=` here opens a name.
        at += 1;
        while !is(*body.get(at)?, NAME_END) {
            at += 1;
        }
        let name = &body[name_start..at];
        while is(*body.get(at)?, SPACE) {
            at += 1;
        }
        let mut value = &body[at..at];
        if body[at] == b'=' {
            at += 1;
            while is(*body.get(at)?, SPACE) {
                at += 1;
            }
            match body[at] {
                quote @ (b'"' | b'\'') => {
                    let start = at + 1;
                    let end = words::find(quote, body, start)?;
                    value = &body[start..end];
                    at = end + 1;
                }
                _ => {
                    let start = at;
                    while !is(*body.get(at)?, VALUE_END) {
                        at += 1;
                    }
                    value = &body[start..at];
                }
            }
        }
        self.at = at;
        Some(Step::Attribute { name, value })
    }
}

enum Step<'a> {
    Attribute { name: &'a [u8], value: &'a [u8] },
    Close(Close),
}

/// Where a tag closes, for tags whose attributes do not matter. None if the page ends before it does.
///
/// Only a value can hide a `>`, and only a `=` can open one; so this goes from `=` to `=`.
#[inline]
pub(super) fn skip(body: &[u8], name_end: usize) -> Option<Close> {
    if body.get(name_end) == Some(&b'>') {
        return Some(Close { end: name_end + 1, self_closing: false });
    }
    // Where an attribute's name may start.
    let mut names_start = name_end;
    let mut at = name_end;
    loop {
        let mark = words::find2(b'=', b'>', body, at)?;
        let before = &body[names_start..mark];
        if body[mark] == b'>' {
            return Some(Close { end: mark + 1, self_closing: before.last() == Some(&b'/') });
        }
        at = mark + 1;
        // Without a name before it, a `=` opens one.
        if matches!(before.trim_ascii_end().last(), None | Some(b'/')) {
            continue;
        }
        while is(*body.get(at)?, SPACE) {
            at += 1;
        }
        match body[at] {
            quote @ (b'"' | b'\'') => at = words::find(quote, body, at + 1)? + 1,
            _ => {
                while !is(*body.get(at)?, VALUE_END) {
                    at += 1;
                }
            }
        }
        names_start = at;
    }
}

/// Whether a tag's name ends before this byte.
#[inline]
pub(super) fn ends_tag_name(octet: u8) -> bool {
    is(octet, TAG_NAME_END)
}

#[inline]
fn is(octet: u8, class: u8) -> bool {
    CLASS[octet as usize] & class != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    type Collected<'a> = Option<(Option<&'a [u8]>, Option<&'a [u8]>, bool, &'a [u8])>;

    fn collect(body: &[u8]) -> Collected<'_> {
        let ([href, rel], close) = Attributes::new(body, 0).collect([b"href", b"rel"])?;
        Some((href, rel, close.self_closing, &body[close.end..]))
    }

    #[test]
    fn attributes_as_in_the_standard() {
        let cases: &[(&[u8], Collected<'_>)] = &[
            (b">x", Some((None, None, false, b"x"))),
            (b"/>x", Some((None, None, true, b"x"))),
            (b"/ >", Some((None, None, false, b""))),
            (b" href=a>", Some((Some(b"a"), None, false, b""))),
            (b" href=a/>", Some((Some(b"a/"), None, false, b""))),
            (b" href='a'/>", Some((Some(b"a"), None, true, b""))),
            (b"/href=a>", Some((Some(b"a"), None, false, b""))),
            (b" HREF = \"a>b\" rel\n=\t'c'>d", Some((Some(b"a>b"), Some(b"c"), false, b"d"))),
            (b" href=a href=b>", Some((Some(b"a"), None, false, b""))),
            (b" href href=b>", Some((Some(b""), None, false, b""))),
            (b" href=>", Some((Some(b""), None, false, b""))),
            (b" href='a'rel=b>", Some((Some(b"a"), Some(b"b"), false, b""))),
            (b" =\"x>y\"", Some((None, None, false, b"y\""))),
            (b" a/=\"x>y\"", Some((None, None, false, b"y\""))),
            (b" ==\"x>y\">z", Some((None, None, false, b"z"))),
            (b" \"href=a\">", Some((None, None, false, b""))),
            (b" a=b\"c>", Some((None, None, false, b""))),
            (b" data-href=a xhref=b>", Some((None, None, false, b""))),
            (b" href=\"a>", None),
            (b" href", None),
            (b" href=", None),
            (b" href=a", None),
            (b"", None),
        ];
        for (body, expected) in cases {
            assert_eq!(collect(body), *expected, "{}", body.escape_ascii());
            let closed = skip(body, 0).map(|close| (close.self_closing, &body[close.end..]));
            assert_eq!(
                closed,
                expected.map(|(_, _, self_closing, rest)| (self_closing, rest)),
                "{}",
                body.escape_ascii()
            );
        }
    }
}
