use super::cookie_date::cookie_date;
use crate::limits::COOKIE_BYTES_MAX;
use crate::proto::url::{CrawlUrl, Scheme};

/// A Set-Cookie value that the origin which sent it may set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SetCookie<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// Begins with a slash.
    pub path: &'a [u8],
    /// Seconds since 1970; without it, the end of the crawl.
    pub expires_s: Option<u64>,
}

/// Attributes as they stand; of several of one name the last counts.
#[derive(Default)]
struct Attributes<'a> {
    domain: &'a [u8],
    path: Option<&'a [u8]>,
    expires_s: Option<u64>,
    max_age_s: Option<u64>,
    secure: bool,
}

impl<'a> SetCookie<'a> {
    /// Reads what `url` sent, or `None` if it is no cookie or not one for that URL to set.
    pub fn parse(url: &'a CrawlUrl, text: &'a [u8], now_unix_s: u64) -> Option<SetCookie<'a>> {
        // A tab may stand around parts; inside a cookie it is refused with every other control character.
        if text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            return None;
        }
        let mut parts = text.split(|byte| *byte == b';');
        let (name, value) = split_trimmed(parts.next()?);
        let value = value?;
        if name.is_empty() || [name, value].iter().any(|part| part.contains(&b'\t')) {
            return None;
        }
        let attributes = Attributes::read(parts, now_unix_s);
        if attributes.secure && url.scheme() != Scheme::Https {
            return None;
        }
        if !attributes.domain.is_empty() && !domain_holds(attributes.domain, url.host()) {
            return None;
        }
        if !prefix_is_kept(name, &attributes) {
            return None;
        }
        let path = attributes.path.filter(|path| path.starts_with(b"/")).unwrap_or_else(|| default_path(url));
        if name.len() + value.len() + path.len() > COOKIE_BYTES_MAX || path.contains(&b'\t') {
            return None;
        }
        Some(SetCookie { name, value, path, expires_s: attributes.max_age_s.or(attributes.expires_s) })
    }
}

impl<'a> Attributes<'a> {
    fn read(parts: impl Iterator<Item = &'a [u8]>, now_unix_s: u64) -> Attributes<'a> {
        let mut attributes = Attributes::default();
        for part in parts {
            let (name, value) = split_trimmed(part);
            let value = value.unwrap_or_default();
            if name.eq_ignore_ascii_case(b"secure") {
                attributes.secure = true;
            } else if name.eq_ignore_ascii_case(b"domain") {
                attributes.domain = value.strip_prefix(b".").unwrap_or(value);
            } else if name.eq_ignore_ascii_case(b"path") {
                attributes.path = Some(value);
            } else if name.eq_ignore_ascii_case(b"max-age") {
                attributes.max_age_s = max_age(value, now_unix_s).or(attributes.max_age_s);
            } else if name.eq_ignore_ascii_case(b"expires") {
                attributes.expires_s = cookie_date(value).or(attributes.expires_s);
            }
        }
        attributes
    }
}

/// The second at which a cookie of that age ends. Less than nothing is at once.
fn max_age(value: &[u8], now_unix_s: u64) -> Option<u64> {
    let (gone, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let age =
        digits.iter().fold(0_u64, |age, byte| age.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
    Some(if gone { 0 } else { now_unix_s.saturating_add(age) })
}

/// Whether a domain is the host or one that the host lies in. An address lies in nothing but itself.
fn domain_holds(domain: &[u8], host: &str) -> bool {
    let host = host.as_bytes();
    let is_address =
        host.first() == Some(&b'[') || host.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let Some(at) = host.len().checked_sub(domain.len()) else { return false };
    host[at..].eq_ignore_ascii_case(domain) && (at == 0 || (host[at - 1] == b'.' && !is_address))
}

/// A name may promise how its cookie was set, and such a promise must be true. The jar is one of an origin, so
/// Secure alone says https.
fn prefix_is_kept(name: &[u8], attributes: &Attributes<'_>) -> bool {
    let begins =
        |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if begins(b"__Host-") {
        attributes.secure && attributes.domain.is_empty() && attributes.path == Some(b"/")
    } else {
        !begins(b"__Secure-") || attributes.secure
    }
}

/// The directory of a URL.
fn default_path(url: &CrawlUrl) -> &[u8] {
    let path = path_of(url);
    match memchr::memrchr(b'/', path) {
        None | Some(0) => b"/",
        Some(end) => &path[..end],
    }
}

/// The path of a URL without its query.
pub(super) fn path_of(url: &CrawlUrl) -> &[u8] {
    let target = url.path_and_query().as_bytes();
    &target[..memchr::memchr(b'?', target).unwrap_or(target.len())]
}

/// Both sides of the first equals sign, without white space around them.
fn split_trimmed(part: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', part) {
        Some(at) => (part[..at].trim_ascii(), Some(part[at + 1..].trim_ascii())),
        None => (part.trim_ascii(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000;

    /// `name=value path expires`, or nothing.
    fn parsed(url: &str, text: &str) -> Option<String> {
        let url = CrawlUrl::parse(url).unwrap();
        SetCookie::parse(&url, text.as_bytes(), NOW).map(|cookie| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let expires = cookie.expires_s.map_or("-".to_string(), |at| at.to_string());
            format!("{}={} {} {expires}", text(cookie.name), text(cookie.value), text(cookie.path))
        })
    }

    fn https(text: &str) -> Option<String> {
        parsed("https://a.example.org/x/y?/z", text)
    }

    #[test]
    fn names_values_and_white_space() {
        assert_eq!(https("a=b").as_deref(), Some("a=b /x -"));
        assert_eq!(https(" a\t= b=c \t;x").as_deref(), Some("a=b=c /x -"));
        assert_eq!(https("a=").as_deref(), Some("a= /x -"));
        assert_eq!(https("a=\"b, c\"").as_deref(), Some("a=\"b, c\" /x -"), "quotes belong to the value");
        for refused in
            ["", "a", "=b", " = ", ";a=b", "a=b\r\nX: y", "a=\0", "a=b; Path=/\x1b", "a=b\tc", "a\tb=c"]
        {
            assert_eq!(https(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn paths_are_given_or_the_directory() {
        for (url, text, path) in [
            ("http://h/", "a=b", "/"),
            ("http://h/x", "a=b", "/"),
            ("http://h/x/", "a=b", "/x"),
            ("http://h/x/y", "a=b", "/x"),
            ("http://h/x?q=/y/z", "a=b", "/"),
            ("http://h/x/y", "a=b; path=/else", "/else"),
            ("http://h/x/y", "a=b; PATH = /p/ ", "/p/"),
            ("http://h/x/y", "a=b; path=/p; path=/q", "/q"),
            ("http://h/x/y", "a=b; path=rel", "/x"),
            ("http://h/x/y", "a=b; path=/p; path=", "/x"),
        ] {
            assert_eq!(parsed(url, text), Some(format!("a=b {path} -")), "{url} {text}");
        }
    }

    #[test]
    fn a_life_is_told_by_max_age_or_else_by_expires() {
        for (text, expires) in [
            ("a=b; max-age=5", "1005"),
            ("a=b; Max-Age=0", "1000"),
            ("a=b; max-age=-1", "0"),
            ("a=b; max-age=99999999999999999999999", "18446744073709551615"),
            ("a=b; max-age=5; max-age=6", "1006"),
            ("a=b; max-age=5x", "-"),
            ("a=b; max-age=+5", "-"),
            ("a=b; max-age=-", "-"),
            ("a=b; max-age", "-"),
            ("a=b; expires=Thu, 01-Jan-1970 00:33:20 GMT", "2000"),
            ("a=b; expires=never", "-"),
            ("a=b; max-age=5; expires=Thu, 01-Jan-1970 00:33:20 GMT", "1005"),
            ("a=b; expires=Thu, 01-Jan-1970 00:33:20 GMT; max-age=5", "1005"),
        ] {
            assert_eq!(https(text), Some(format!("a=b /x {expires}")), "{text}");
        }
    }

    #[test]
    fn a_domain_can_refuse_but_not_widen() {
        for domain in ["a.example.org", ".a.example.org", "A.Example.ORG", "example.org", "org", "", "."] {
            assert!(https(&format!("a=b; domain={domain}")).is_some(), "{domain}");
        }
        for domain in ["b.example.org", "x.a.example.org", "ample.org", "evil.test", "example.org."] {
            assert_eq!(https(&format!("a=b; domain={domain}")), None, "{domain}");
        }
        assert!(parsed("http://192.0.2.1/", "a=b; domain=192.0.2.1").is_some());
        assert_eq!(parsed("http://192.0.2.1/", "a=b; domain=2.1"), None);
        assert!(parsed("http://[2001:db8::1]/", "a=b; domain=[2001:db8::1]").is_some());
    }

    #[test]
    fn secure_needs_https_and_prefixes_need_what_they_promise() {
        assert!(https("a=b; secure").is_some());
        assert_eq!(parsed("http://h/", "a=b; Secure"), None);
        assert_eq!(parsed("http://h/", "a=b; secure=no"), None);
        for kept in [
            "__Secure-a=b; secure",
            "__Host-a=b; secure; path=/",
            "__Host-a=b; secure; path=/; domain=",
            "__Hosta=b",
        ] {
            assert!(https(kept).is_some(), "{kept}");
        }
        for broken in [
            "__Secure-a=b",
            "__SECURE-a=b",
            "__Host-a=b; path=/",
            "__Host-a=b; secure",
            "__Host-a=b; secure; path=/x",
            "__Host-a=b; secure; path=/; domain=a.example.org",
            "__host-a=b; secure; path=/; domain=example.org",
        ] {
            assert_eq!(https(broken), None, "{broken}");
        }
        assert_eq!(parsed("http://h/", "__Secure-a=b; secure"), None);
    }

    #[test]
    fn a_cookie_has_a_size() {
        let fits = format!("a={}", "b".repeat(COOKIE_BYTES_MAX - 2));
        assert!(parsed("http://h/", &fits).is_some());
        assert_eq!(parsed("http://h/", &format!("{fits}b")), None);
        assert_eq!(parsed("http://h/", &format!("{fits}; path=/x")), None);
    }
}
