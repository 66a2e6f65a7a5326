use super::escapes;
use super::url_view::{Places, Scheme, UrlError, UrlView};
use crate::base::fingerprint;
use crate::limits::URL_BYTES_MAX;
use memchr::{memchr, memchr2};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// An absolute URL in normal form, with the places of its parts. Cheap to carry: one allocation, which all its clones share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrawlUrl {
    text: Arc<str>,
    places: Places,
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

    /// From text that is in normal form already (see [`UrlView::of`]).
    pub fn from_normal(text: &str) -> Result<CrawlUrl, UrlError> {
        UrlView::of(text).map(CrawlUrl::from)
    }

    pub fn view(&self) -> UrlView<'_> {
        UrlView::at(&self.text, self.places)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> Scheme {
        self.places.scheme
    }

    pub fn port(&self) -> u16 {
        self.places.port
    }

    /// The host as it stands in the URL; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        self.view().host()
    }

    /// The host for a look-up: an IPv6 address without its brackets.
    pub fn host_bare(&self) -> &str {
        self.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Host and port as they go into `Host:`; a default port is not written.
    pub fn authority(&self) -> &str {
        self.view().authority()
    }

    /// Scheme and authority: what politeness and robots rules are kept by.
    pub fn origin(&self) -> &str {
        self.view().origin()
    }

    /// What goes into the request line.
    pub fn path_and_query(&self) -> &str {
        self.view().path_and_query()
    }

    /// The path without a query; it begins with a slash.
    pub fn path(&self) -> &str {
        self.view().path()
    }

    /// The part of the host that somebody registered, by the list of public suffixes; the host itself where there is
    /// none (an address, a bare name).
    pub fn registrable_domain(&self) -> &str {
        self.view().registrable_domain()
    }

    /// The same origin with another path, which must be in normal form.
    pub fn with_path(&self, path: &str) -> CrawlUrl {
        debug_assert!(path.starts_with('/'));
        let text = format!("{}{path}", self.origin()).into();
        CrawlUrl { text, places: self.places }
    }

    pub fn fingerprint(&self) -> u64 {
        fingerprint(self.text.as_bytes())
    }
}

impl From<UrlView<'_>> for CrawlUrl {
    fn from(view: UrlView<'_>) -> CrawlUrl {
        CrawlUrl { text: view.as_str().into(), places: view.places() }
    }
}

impl<'a> From<&'a CrawlUrl> for UrlView<'a> {
    fn from(url: &'a CrawlUrl) -> UrlView<'a> {
        url.view()
    }
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
