use super::escapes;
use super::surt::is_address;
use crate::base::fingerprint;
use crate::limits::URL_BYTES_MAX;
use memchr::{memchr, memchr2};
use std::fmt;
use std::ops::Range;
use thiserror::Error;

/// An absolute URL in normal form, with the places of its parts. Cheap to carry: one allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrawlUrl {
    text: Box<str>,
    scheme: Scheme,
    port: u16,
    /// The host, without brackets or port, is `text[host_start..host_end]`.
    host_end: u16,
    /// Path and query are `text[path_start..]`; never empty, as the path begins with a slash.
    path_start: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn port_default(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Scheme::Http => "http://",
            Scheme::Https => "https://",
        }
    }
}

#[derive(Debug, Error, PartialEq, Eq, Clone)]
pub enum UrlError {
    #[error("not a URL: {0}")]
    Syntax(String),
    #[error("only http and https can be crawled, not {0}")]
    Scheme(String),
    #[error("a URL with a user name or password is not asked for")]
    Credentials,
    #[error("longer than {URL_BYTES_MAX} bytes")]
    TooLong,
}

impl CrawlUrl {
    /// Parses and normalises what a user typed or a server sent. The fragment is dropped, and escapes that stand for the
    /// same are written the same.
    pub fn parse(text: &str) -> Result<CrawlUrl, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        let mut url = url::Url::parse(text.trim()).map_err(|e| UrlError::Syntax(e.to_string()))?;
        url.set_fragment(None);
        CrawlUrl::from_parsed(&url)
    }

    /// From a URL of the `url` crate whose fragment is gone.
    pub(super) fn from_parsed(url: &url::Url) -> Result<CrawlUrl, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme(url.scheme().chars().take(20).collect()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials);
        }
        let path_start = url[..url::Position::BeforePath].len();
        CrawlUrl::from_normal(&escapes::normal(url.as_str(), path_start))
    }

    /// From text that is in normal form already (it came out of a `CrawlUrl` or a [`super::LinkBase`]). Text that
    /// is not is refused or taken apart wrongly, but never panics.
    pub fn from_normal(text: &str) -> Result<CrawlUrl, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        let scheme = [Scheme::Http, Scheme::Https]
            .into_iter()
            .find(|s| text.starts_with(s.prefix()))
            .ok_or_else(|| UrlError::Scheme(text.chars().take(20).collect()))?;
        let syntax = |what: &str| UrlError::Syntax(what.to_string());
        let authority_start = scheme.prefix().len();
        let path_start = memchr(b'/', &text.as_bytes()[authority_start..])
            .map(|at| authority_start + at)
            .ok_or_else(|| syntax("no path"))?;
        let authority = &text[authority_start..path_start];
        // An IPv6 host has colons of its own, inside brackets.
        let host_bytes = match authority.rfind(']') {
            Some(end) => end + 1,
            None => authority.find(':').unwrap_or(authority.len()),
        };
        if host_bytes == 0 {
            return Err(syntax("empty host"));
        }
        let port = match &authority[host_bytes..] {
            "" => scheme.port_default(),
            rest => rest
                .strip_prefix(':')
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| syntax("invalid port number"))?,
        };
        Ok(CrawlUrl {
            text: text.into(),
            scheme,
            port,
            host_end: (authority_start + host_bytes) as u16,
            path_start: path_start as u16,
        })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host as it stands in the URL; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.text[self.scheme.prefix().len()..usize::from(self.host_end)]
    }

    /// The host for a look-up: an IPv6 address without its brackets.
    pub fn host_bare(&self) -> &str {
        self.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Host and port as they go into `Host:`; a default port is not written.
    pub fn authority(&self) -> &str {
        &self.text[self.scheme.prefix().len()..usize::from(self.path_start)]
    }

    /// Scheme and authority: what politeness and robots rules are kept by.
    pub fn origin(&self) -> &str {
        &self.text[..usize::from(self.path_start)]
    }

    /// What goes into the request line.
    pub fn path_and_query(&self) -> &str {
        &self.text[usize::from(self.path_start)..]
    }

    /// The path without a query; it begins with a slash.
    pub fn path(&self) -> &str {
        let text = self.path_and_query();
        &text[..memchr(b'?', text.as_bytes()).unwrap_or(text.len())]
    }

    /// The part of the host that somebody registered, by the list of public suffixes; the host itself where there is
    /// none (an address, a bare name).
    pub fn registrable_domain(&self) -> &str {
        registrable(self.host())
    }

    /// The same origin with another path, which must be in normal form.
    pub fn with_path(&self, path: &str) -> CrawlUrl {
        debug_assert!(path.starts_with('/'));
        CrawlUrl {
            text: format!("{}{path}", self.origin()).into(),
            scheme: self.scheme,
            port: self.port,
            host_end: self.host_end,
            path_start: self.path_start,
        }
    }

    pub fn fingerprint(&self) -> u64 {
        fingerprint(self.text.as_bytes())
    }
}

/// The part of a host, as it stands in a URL, that somebody registered: the end of it, or all.
pub fn registrable(host: &str) -> &str {
    if is_address(host) {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

/// The place of the host in a URL in normal form: without its port, an IPv6 address in brackets. Of any other text it is
/// some place in it.
pub fn host_place(url: &[u8]) -> Range<usize> {
    let from = if url.get(4) == Some(&b's') { 8 } else { 7 }.min(url.len());
    let end = match url.get(from) {
        Some(b'[') => memchr(b']', &url[from..]).map(|bracket| bracket + 1),
        _ => memchr2(b'/', b':', &url[from..]),
    };
    from..end.map_or(url.len(), |end| from + end)
}

impl fmt::Debug for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const _: () = assert!(URL_BYTES_MAX <= u16::MAX as usize, "places in a URL are 16 bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let url = CrawlUrl::parse("HTTP://Example.COM:8080/a/../b?q=1#frag").unwrap();
        assert_eq!(url.as_str(), "http://example.com:8080/b?q=1");
        assert_eq!((url.host(), url.port(), url.authority()), ("example.com", 8080, "example.com:8080"));
        assert_eq!((url.origin(), url.path_and_query()), ("http://example.com:8080", "/b?q=1"));
        assert_eq!(url.with_path("/robots.txt").as_str(), "http://example.com:8080/robots.txt");

        let url = CrawlUrl::parse("https://[::1]:444").unwrap();
        assert_eq!((url.host(), url.host_bare(), url.port()), ("[::1]", "::1", 444));
        assert_eq!(url.path_and_query(), "/");
        assert_eq!(CrawlUrl::parse("http://a:80/").unwrap().authority(), "a");
    }

    #[test]
    fn the_domain_is_what_somebody_registered() {
        for (url, domain, path) in [
            ("http://a.b.example.co.uk/x?/y", "example.co.uk", "/x"),
            ("http://example.com", "example.com", "/"),
            ("http://com/?q", "com", "/"),
            ("http://localhost/a/b", "localhost", "/a/b"),
            ("http://10.1.2.3:80/a", "10.1.2.3", "/a"),
            ("http://[::1]/", "[::1]", "/"),
        ] {
            let url = CrawlUrl::parse(url).unwrap();
            assert_eq!((url.registrable_domain(), url.path()), (domain, path), "{url}");
        }
    }

    #[test]
    fn escapes_that_mean_the_same_are_one() {
        let url = CrawlUrl::parse("http://h/%7eu/%c3%bc/a%2eb/%2e%2E/x?%3d=%61").unwrap();
        assert_eq!(url.as_str(), "http://h/~u/%C3%BC/x?%3D=a");
        assert_eq!(CrawlUrl::parse("http://h/a?").unwrap().as_str(), "http://h/a?", "a query that is empty");
        assert_eq!(CrawlUrl::parse("http://h.test./").unwrap().host(), "h.test.");
    }

    #[test]
    fn numeric_hosts_are_normalised() {
        for host in ["2130706433", "0x7f.1", "0177.0.0.1", "127.1"] {
            assert_eq!(CrawlUrl::parse(&format!("http://{host}/")).unwrap().host(), "127.0.0.1");
        }
    }

    #[test]
    fn what_is_not_crawled() {
        assert!(matches!(CrawlUrl::parse("file:///etc/passwd"), Err(UrlError::Scheme(_))));
        assert!(matches!(CrawlUrl::parse("data:text/html,x"), Err(UrlError::Scheme(_))));
        assert_eq!(CrawlUrl::parse("http://u:p@h/"), Err(UrlError::Credentials));
        assert!(matches!(CrawlUrl::parse("nonsense"), Err(UrlError::Syntax(_))));
        assert_eq!(CrawlUrl::parse(&format!("http://h/{}", "a".repeat(9_000))), Err(UrlError::TooLong));
        // Host confusion: the standard's reading, whatever the looks.
        assert_eq!(CrawlUrl::parse("http://good.test\\@evil.test/").unwrap().host(), "good.test");
        assert_eq!(CrawlUrl::parse("http://good.test#@evil.test/").unwrap().host(), "good.test");
    }
}
