//! Product tokens: the name by which a robots.txt speaks of a crawler.

/// The product token of a User-Agent: its first word, up to a character outside `A-Za-z_-`.
///
/// `Nephila/1.0 (+https://example.org/bot)` is `Nephila`. Empty if the text opens with anything else.
pub fn product_token(user_agent: &str) -> &str {
    let user_agent = user_agent.trim_ascii_start();
    // The prefix is ASCII, so the cut is at a character boundary.
    &user_agent[..token_bytes(user_agent.as_bytes())]
}

/// Whom a `User-agent:` line addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// Our product token.
    Us,
    /// `*`: whoever is not named elsewhere.
    Anyone,
    /// Another crawler, or nobody.
    Other,
}

impl Addressee {
    /// Reads the value of a `User-agent:` line; a version or comment after the token does not count.
    pub(super) fn of(value: &[u8], product_token: &[u8]) -> Addressee {
        if let [b'*', rest @ ..] = value
            && rest.first().is_none_or(u8::is_ascii_whitespace)
        {
            return Addressee::Anyone;
        }
        let token = &value[..token_bytes(value)];
        if !token.is_empty() && token.eq_ignore_ascii_case(product_token) {
            Addressee::Us
        } else {
            Addressee::Other
        }
    }
}

fn token_bytes(text: &[u8]) -> usize {
    let in_token = |octet: &u8| octet.is_ascii_alphabetic() || matches!(octet, b'_' | b'-');
    text.iter().position(|octet| !in_token(octet)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_the_first_word() {
        for (user_agent, token) in [
            ("Nephila/1.0 (+https://example.org)", "Nephila"),
            ("  Foo_Bar-Bot 2", "Foo_Bar-Bot"),
            ("Bot2", "Bot"),
            ("Mozilla/5.0 (compatible; X)", "Mozilla"),
            ("ünbot", ""),
            ("bücher", "b"),
            ("", ""),
        ] {
            assert_eq!(product_token(user_agent), token, "{user_agent}");
        }
    }

    #[test]
    fn lines_address() {
        for (value, addressee) in [
            (&b"foobot"[..], Addressee::Us),
            (b"FooBot/1.0", Addressee::Us),
            (b"FOOBOT and friends", Addressee::Us),
            (b"FooBot-News", Addressee::Other),
            (b"Foo", Addressee::Other),
            (b"", Addressee::Other),
            (b"*", Addressee::Anyone),
            (b"* everyone", Addressee::Anyone),
            (b"*bot", Addressee::Other),
        ] {
            assert_eq!(Addressee::of(value, b"FooBot"), addressee, "{}", value.escape_ascii());
        }
        assert_eq!(Addressee::of(b"", b""), Addressee::Other);
    }
}
