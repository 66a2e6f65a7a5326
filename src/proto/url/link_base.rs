use super::{CrawlUrl, UrlError};
use crate::limits::URL_BYTES_MAX;
use crate::proto::charset::{Encoding, encode_query};
use std::cell::OnceCell;

/// What the links of one page are resolved against: its URL, or its `<base href>`.
pub struct LinkBase {
    url: CrawlUrl,
    /// The base up to and including the last slash of its path.
    directory_end: usize,
    /// What the page is written in, unless it is UTF-8: the query of a link goes out in it.
    encoding: Option<&'static Encoding>,
    /// Parsed only when a link leaves the short path.
    parsed: OnceCell<url::Url>,
}

/// Why a link leads nowhere we go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// Empty, or only a fragment: the page itself.
    SamePage,
    Url(UrlError),
}

/// Bytes that stand for themselves in a path or a query: no escape, no dot, no delimiter.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = (b as u8).is_ascii_alphanumeric()
            || matches!(b as u8, b'-' | b'_' | b'~' | b'/' | b'=' | b'&' | b'+' | b',');
        b += 1;
    }
    table
};

impl LinkBase {
    pub fn new(url: &CrawlUrl) -> LinkBase {
        let path_start = url.origin().len();
        let path_end = memchr::memchr(b'?', url.as_str().as_bytes()).unwrap_or(url.as_str().len());
        let directory_end =
            memchr::memrchr(b'/', &url.as_str().as_bytes()[..path_end]).map_or(path_start, |at| at + 1);
        LinkBase { url: url.clone(), directory_end, encoding: None, parsed: OnceCell::new() }
    }

    /// The same for links of a page in this encoding. The links themselves are given in UTF-8 all the same.
    pub fn of_page_in(self, encoding: &'static Encoding) -> LinkBase {
        let encoding = Some(encoding.output_encoding()).filter(|encoding| encoding.name() != "UTF-8");
        LinkBase { encoding, ..self }
    }

    /// Writes the normal form of `link` to `out`, which is cleared first.
    pub fn resolve(&self, link: &[u8], out: &mut String) -> Result<(), LinkError> {
        out.clear();
        let before_fragment = match memchr::memchr(b'#', link) {
            Some(at) => &link[..at],
            None => link,
        };
        if before_fragment.is_empty() {
            return Err(LinkError::SamePage);
        }
        if self.resolve_plain(before_fragment, out) {
            return Ok(());
        }
        out.clear();
        self.resolve_by_the_book(link, out).map_err(LinkError::Url)
    }

    /// The short path: `/abs/path?x=1`, `rel/path.html`, `../rel/path.html`, `http://host/path` made of plain bytes only.
    /// False when the link is out of the ordinary; what is in `out` then means nothing.
    fn resolve_plain(&self, link: &[u8], out: &mut String) -> bool {
        let path = match link[0] {
            b'/' => {
                if link.get(1) == Some(&b'/') {
                    return false;
                }
                out.push_str(self.url.origin());
                link
            }
            b'h' if link.starts_with(b"http://") || link.starts_with(b"https://") => {
                let host_start = if link[4] == b's' { 8 } else { 7 };
                let Some(slash) = memchr::memchr(b'/', &link[host_start..]) else {
                    return false;
                };
                let (authority, path) = link[host_start..].split_at(slash);
                let same_origin = link.starts_with(self.url.origin().as_bytes())
                    && self.url.origin().len() == host_start + authority.len();
                if !same_origin && !host_is_plain(authority) {
                    return false;
                }
                if !path_is_plain(path) || link.len() > URL_BYTES_MAX {
                    return false;
                }
                push_ascii(out, link);
                return true;
            }
            b'.' => {
                let (directory, rest) = self.steps_up(link);
                // A slash here would be an empty segment.
                if rest.first() == Some(&b'/') {
                    return false;
                }
                out.push_str(directory);
                rest
            }
            b if PLAIN[usize::from(b)] => {
                out.push_str(&self.url.as_str()[..self.directory_end]);
                link
            }
            _ => return false,
        };
        if !path_is_plain(path) || out.len() + path.len() > URL_BYTES_MAX {
            return false;
        }
        push_ascii(out, path);
        true
    }

    /// The directory that the dot segments at the start of a link lead to, and the rest of the link. Above the top is the top.
    fn steps_up<'l>(&self, link: &'l [u8]) -> (&str, &'l [u8]) {
        let top = self.url.origin().len() + 1;
        let (mut directory, mut rest) = (&self.url.as_str()[..self.directory_end], link);
        loop {
            if let Some(behind) = rest.strip_prefix(b"../") {
                let above = memchr::memrchr(b'/', &directory.as_bytes()[..directory.len() - 1]);
                directory = &directory[..above.map_or(top, |slash| slash + 1).max(top)];
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix(b"./") {
                rest = behind;
            } else {
                return (directory, rest);
            }
        }
    }

    fn resolve_by_the_book(&self, link: &[u8], out: &mut String) -> Result<(), UrlError> {
        if link.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        let parsed = self.parsed.get_or_init(|| {
            url::Url::parse(self.url.as_str())
                .unwrap_or_else(|_| url::Url::parse("http://invalid.invalid/").expect("a constant"))
        });
        let text = String::from_utf8_lossy(link);
        let joined = match self.encoding {
            Some(encoding) if !text.is_ascii() => url::Url::options()
                .base_url(Some(parsed))
                .encoding_override(Some(&|query| encode_query(encoding, query)))
                .parse(&text),
            _ => parsed.join(&text),
        };
        let mut joined = joined.map_err(|e| UrlError::Syntax(e.to_string()))?;
        joined.set_fragment(None);
        out.push_str(CrawlUrl::from_parsed(&joined)?.as_str());
        Ok(())
    }
}

const OF_NO_HOST: u8 = 1;
const HYPHEN: u8 = 2;

const HOST_KINDS: [u8; 256] = {
    let mut kinds = [OF_NO_HOST; 256];
    let mut b = 0;
    while b < 128 {
        kinds[b as usize] = match b {
            b'a'..=b'z' | b'0'..=b'9' | b'.' => 0,
            b'-' => HYPHEN,
            _ => OF_NO_HOST,
        };
        b += 1;
    }
    kinds
};

/// Lower-case letters, digits, dots and hyphens, with a last label that cannot be read as a number: a name that
/// is its own normal form. Punycode is left to the standard's checks.
pub(super) fn host_is_plain(host: &[u8]) -> bool {
    let kinds = host.iter().fold(0, |kinds, &b| kinds | HOST_KINDS[usize::from(b)]);
    let last = host.iter().rposition(|&b| b == b'.').map_or(0, |dot| dot + 1);
    kinds & OF_NO_HOST == 0
        && host.get(last).is_some_and(u8::is_ascii_lowercase)
        && host[0] != b'.'
        && !(kinds & HYPHEN != 0 && host.windows(4).any(|label| label == b"xn--"))
}

/// Plain bytes with at most one `?`, and dots only where they cannot form a dot segment. A colon in the first
/// segment of a relative link would be a scheme; it is not plain, so such links are not taken here.
fn path_is_plain(path: &[u8]) -> bool {
    let mut previous = b'/';
    let mut in_query = false;
    for &b in path {
        match b {
            b'.' if previous == b'/' && !in_query => return false,
            b'.' => {}
            b'?' if !in_query => in_query = true,
            _ if PLAIN[usize::from(b)] => {}
            _ => return false,
        }
        previous = b;
    }
    true
}

fn push_ascii(out: &mut String, bytes: &[u8]) {
    debug_assert!(bytes.is_ascii());
    out.push_str(std::str::from_utf8(bytes).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(base: &str, link: &str) -> Result<String, LinkError> {
        let mut out = String::new();
        LinkBase::new(&CrawlUrl::parse(base).unwrap()).resolve(link.as_bytes(), &mut out).map(|()| out)
    }

    /// As the `url` crate has it, with every escape undone that needs none, or in upper case: by another way than ours.
    fn by_the_book(base: &str, link: &str) -> Option<String> {
        let mut url = url::Url::parse(base).unwrap().join(link).ok()?;
        url.set_fragment(None);
        let text = url.to_string();
        let web = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
        (web && url.password().is_none()).then(|| escapes_by_the_book(&text))
    }

    fn escapes_by_the_book(text: &str) -> String {
        // The places of escapes are found first, and each is judged by what stands before it in the text.
        let bytes = text.as_bytes();
        let is_escape = |at: usize| {
            bytes[at] == b'%' && bytes[at + 1..].iter().take(2).filter(|b| b.is_ascii_hexdigit()).count() == 2
        };
        let (mut at, mut out, mut plain_before) = (0, String::new(), 2);
        while at < bytes.len() {
            if !is_escape(at) {
                plain_before = if bytes[at] == b'%' { 0 } else { plain_before + 1 };
                out.push(bytes[at].into());
                at += 1;
                continue;
            }
            let octet = u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap();
            if (octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)) && plain_before >= 2 {
                out.push(octet.into());
            } else {
                out.push_str(&text[at..at + 3].to_uppercase());
                plain_before = 2.max(plain_before);
            }
            at += 3;
        }
        out
    }

    #[test]
    fn links_as_pages_have_them() {
        let base = "http://h.test:8080/a/b.html?q";
        assert_eq!(resolved(base, "/x").unwrap(), "http://h.test:8080/x");
        assert_eq!(resolved(base, "c.html#top").unwrap(), "http://h.test:8080/a/c.html");
        assert_eq!(resolved(base, "../c").unwrap(), "http://h.test:8080/c");
        assert_eq!(resolved(base, "//other.test/c").unwrap(), "http://other.test/c");
        assert_eq!(resolved(base, "?z=1").unwrap(), "http://h.test:8080/a/b.html?z=1");
        assert_eq!(resolved(base, "http://0x7f.1/a").unwrap(), "http://127.0.0.1/a");
        assert_eq!(resolved(base, "/%7eu/%41%c3%bc?%2D").unwrap(), "http://h.test:8080/~u/A%C3%BC?-");
        assert_eq!(resolved(base, "#only"), Err(LinkError::SamePage));
        assert_eq!(resolved(base, ""), Err(LinkError::SamePage));
        assert!(matches!(resolved(base, "mailto:a@b"), Err(LinkError::Url(UrlError::Scheme(_)))));
        assert!(matches!(resolved(base, "javascript:void(0)"), Err(LinkError::Url(UrlError::Scheme(_)))));
    }

    #[test]
    fn the_short_path_is_taken_for_plain_links() {
        let base = LinkBase::new(&CrawlUrl::parse("http://h.test/a/").unwrap());
        for link in [
            "/p/3.html",
            "3.html",
            "http://h.test/p/3.html?a=b&c=d",
            "/p/3.html?x=1",
            "http://o.test/a.b",
            "../3.html",
            ".././../../b/c.html?x",
            "./",
        ] {
            assert!(base.resolve_plain(link.as_bytes(), &mut String::new()), "{link}");
        }
        for link in [
            "/a/./b",
            "b/../c",
            "..",
            "..//b",
            "//x/y",
            "/%41",
            "http://xn--a.test/",
            "http://1.2/",
            "http://h",
            "a b",
            "a:b",
            "/a'b",
        ] {
            assert!(!base.resolve_plain(link.as_bytes(), &mut String::new()), "{link}");
        }
    }

    #[test]
    fn a_query_goes_out_in_the_encoding_of_its_page_and_a_path_in_utf_8() {
        use encoding_rs::{GBK, SHIFT_JIS, UTF_8, UTF_16LE, WINDOWS_1251, WINDOWS_1252};
        let base = CrawlUrl::parse("http://h.test/a/?%C3%A9").unwrap();
        for (encoding, link, expected) in [
            (UTF_8, "/é?é", "http://h.test/%C3%A9?%C3%A9"),
            (UTF_16LE, "/é?é", "http://h.test/%C3%A9?%C3%A9"),
            (WINDOWS_1252, "/é?é=€&x y", "http://h.test/%C3%A9?%E9=%80&x%20y"),
            (WINDOWS_1251, "дом?q=дом", "http://h.test/a/%D0%B4%D0%BE%D0%BC?q=%E4%EE%EC"),
            (WINDOWS_1251, "?q=π&r=π#ж", "http://h.test/a/?q=%26%23960%3B&r=%26%23960%3B"),
            (SHIFT_JIS, "//o.test/?東京", "http://o.test/?%93%8C%8B%9E"),
            (GBK, "/p/%E4?%E4中", "http://h.test/p/%E4?%E4%D6%D0"),
            (WINDOWS_1252, "/plain?q=1", "http://h.test/plain?q=1"),
        ] {
            let mut out = String::new();
            LinkBase::new(&base).of_page_in(encoding).resolve(link.as_bytes(), &mut out).unwrap();
            assert_eq!(out, expected, "{link} in {}", encoding.name());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn every_link_resolves_as_the_standard_says(
            base in "http://[a-z]{1,3}(\\.test)?(:8[0-9])?/([a-z.]{0,3}/){0,3}[a-z.]{0,3}(\\?[a-z=./]{0,4})?",
            link in "(http:|https:|/|//|\\?|(\\.\\./|\\./){1,3}|)([a-z0-9A-Z./:?#%=&@\\\\ ~+,;_-]|%[2-7][0-9a-fA-F]|%[eE]9){0,14}",
        ) {
            let mut url = url::Url::parse(&base).unwrap();
            url.set_fragment(None);
            let base = url.as_str();
            match resolved(base, &link) {
                Ok(text) => prop_assert_eq!(Some(text), by_the_book(base, &link)),
                Err(LinkError::SamePage) => prop_assert!(link.is_empty() || link.starts_with('#')),
                Err(_) => prop_assert_eq!(None, by_the_book(base, &link)),
            }
        }
    }
}
