use std::borrow::Cow;

/// What a WWW-Authenticate value is made of, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A challenge begins.
    Scheme(&'a [u8]),
    /// Of the challenge that began last; the value is out of its quotes.
    Param { name: &'a [u8], value: Cow<'a, [u8]> },
    /// Neither: the challenge that began last cannot be trusted, and nothing after it is read.
    Broken,
}

/// Walks a value. One comma parts both parameters and challenges, so what a word is shows only behind it: a word
/// with an equals sign is a parameter, any other begins a challenge.
///
/// ```text
///   Negotiate oRQw==, Digest realm="a, b", nonce=xyz,, Basic
///   Scheme            Scheme Param         Param       Scheme
/// ```
///
/// A missing comma between two parameters is forgiven. The one long word that some schemes have in place of
/// parameters is skipped.
pub(super) struct Items<'a> {
    rest: &'a [u8],
    in_challenge: bool,
}

impl<'a> Items<'a> {
    pub fn new(value: &'a [u8]) -> Items<'a> {
        Items { rest: value, in_challenge: false }
    }

    fn broken(&mut self) -> Option<Item<'a>> {
        self.rest = &[];
        Some(Item::Broken)
    }

    /// A value behind an equals sign: a quoted string, or whatever stands before the next comma or space.
    fn value(&mut self) -> Option<Cow<'a, [u8]>> {
        let Some(inside) = self.rest.strip_prefix(b"\"") else {
            return Some(Cow::Borrowed(take_while(&mut self.rest, |byte| {
                !matches!(byte, b',' | b' ' | b'\t' | b'"')
            })));
        };
        let end = inside.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if inside[end] == b'"' {
            self.rest = &inside[end + 1..];
            return Some(Cow::Borrowed(&inside[..end]));
        }
        let mut value = Vec::new();
        let mut bytes = inside.iter();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => value.push(*bytes.next()?),
                byte => value.push(*byte),
            }
        }
        self.rest = bytes.as_slice();
        Some(Cow::Owned(value))
    }

    /// Behind a scheme: skips a token68, which ends at a comma or the end, where a parameter goes on.
    fn skip_token68(&mut self) {
        let mut rest = self.rest;
        take_while(&mut rest, is_space);
        let word = take_while(&mut rest, |byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
        take_while(&mut rest, |byte| byte == b'=');
        take_while(&mut rest, is_space);
        let ends = rest.first().is_none_or(|byte| *byte == b',');
        // A word alone behind a scheme, without padding, may be a scheme whose comma is missing; it is not ours.
        if !word.is_empty() && ends {
            self.rest = rest;
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        take_while(&mut self.rest, |byte| byte == b',' || is_space(byte));
        if self.rest.is_empty() {
            return None;
        }
        let word = take_while(&mut self.rest, is_token);
        if word.is_empty() {
            return self.broken();
        }
        let mut behind = self.rest;
        take_while(&mut behind, is_space);
        if behind.first() == Some(&b'=') {
            if !self.in_challenge {
                return self.broken();
            }
            self.rest = &behind[1..];
            take_while(&mut self.rest, is_space);
            return match self.value() {
                Some(value) => Some(Item::Param { name: word, value }),
                None => self.broken(),
            };
        }
        if !self.rest.first().is_none_or(|byte| *byte == b',' || is_space(*byte)) {
            return self.broken();
        }
        self.in_challenge = true;
        self.skip_token68();
        Some(Item::Scheme(word))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn take_while<'a>(rest: &mut &'a [u8], wanted: impl Fn(u8) -> bool) -> &'a [u8] {
    let end = rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
    let (taken, left) = rest.split_at(end);
    *rest = left;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schemes as they are, parameters as `name=value`, and `!` where it broke.
    fn items(value: &str) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Items::new(value.as_bytes())
            .map(|item| match item {
                Item::Scheme(name) => text(name),
                Item::Param { name, value } => format!("{}={}", text(name), text(&value)),
                Item::Broken => "!".to_string(),
            })
            .collect()
    }

    #[test]
    fn commas_part_parameters_and_challenges() {
        assert_eq!(
            items("Negotiate oRQw/+==, Digest realm=\"a, Basic b\", nonce=xyz , ,Basic,\tNTLM"),
            ["Negotiate", "Digest", "realm=a, Basic b", "nonce=xyz", "Basic", "NTLM"]
        );
        assert_eq!(items("Basic realm = \"a\"\tcharset=UTF-8"), ["Basic", "realm=a", "charset=UTF-8"]);
        assert_eq!(items("Digest realm=, nonce=\"\""), ["Digest", "nonce="], "a lone `realm=` is a token68");
        assert_eq!(items(" , "), Vec::<String>::new());
    }

    #[test]
    fn backslashes_are_taken_out_of_quoted_strings() {
        assert_eq!(items(r#"Basic realm="a\"b\\c\d", x="y""#), ["Basic", r#"realm=a"b\cd"#, "x=y"]);
    }

    #[test]
    fn nothing_is_read_behind_a_break() {
        for (value, read) in [
            ("Basic realm=\"a", vec!["Basic", "!"]),
            ("Basic realm=\"a\\", vec!["Basic", "!"]),
            ("Basic realm=\"a\\\"", vec!["Basic", "!"]),
            ("=a, Basic", vec!["!"]),
            ("realm=a, Basic", vec!["!"]),
            ("Basic, \"x\", Digest nonce=a", vec!["Basic", "!"]),
            ("Basic/x y", vec!["!"]),
            ("Basic realm=a\"b\", c=d", vec!["Basic", "realm=a", "!"]),
        ] {
            assert_eq!(items(value), read, "{value}");
        }
    }
}
