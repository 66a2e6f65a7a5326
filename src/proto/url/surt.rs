//! A URL with its host turned round, so that what belongs together begins alike.
//!
//! ```text
//!   http://www.example.com:8080/Path?q   ──►   com,example,www,:8080)/Path?q
//! ```
//!
//! This is the form of scope rules. It is less than the key of a CDX index: nothing is taken out of the URL, `www` stays,
//! and the path keeps its case. The scheme does not stand in it, so that a rule holds for http and https. An address is
//! not turned round: `127.0.0.1,)/`.

use super::UrlView;
use std::cmp::Ordering;
use std::net::Ipv4Addr;

/// The form of one URL, read from the URL where it stands.
#[derive(Clone, Copy)]
pub(super) struct Surt<'a> {
    host: &'a str,
    is_address: bool,
    /// Colon and port, if it is not the default.
    port: &'a str,
    path: &'a str,
}

impl<'a> Surt<'a> {
    pub fn of(url: UrlView<'a>) -> Surt<'a> {
        let host = url.host();
        let is_address = is_address(host);
        Surt { host, is_address, port: &url.authority()[host.len()..], path: url.path_and_query() }
    }

    fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        let whole = self.is_address.then_some(self.host);
        let labels = (!self.is_address).then(|| self.host.rsplit('.')).into_iter().flatten();
        let labels = whole.into_iter().chain(labels);
        let host = labels.flat_map(|label| label.bytes().chain([b',']));
        host.chain(self.port.bytes()).chain([b')']).chain(self.path.bytes())
    }

    pub fn starts_with(self, prefix: &[u8]) -> bool {
        let mut bytes = self.bytes();
        prefix.iter().all(|&wanted| bytes.next() == Some(wanted))
    }

    /// How a list that is sorted by its bytes has it.
    pub fn cmp(self, other: &[u8]) -> Ordering {
        self.bytes().cmp(other.iter().copied())
    }
}

/// A host that is an address, not a name.
pub(super) fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || (host.ends_with(|last: char| last.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_ok())
}

/// A prefix as people write it, in the form that URLs are compared in: with or without `http://(` before it, and with or
/// without the comma after the last label of a host that is closed. `None` for what no URL begins with.
pub(super) fn prefix(written: &str) -> Option<Vec<u8>> {
    let text = written
        .strip_prefix("http://")
        .or_else(|| written.strip_prefix("https://"))
        .map_or(Some(written), |rest| rest.strip_prefix('('))?;
    if text.is_empty() || !text.bytes().all(|octet| octet.is_ascii_graphic()) {
        return None;
    }
    let Some(close) = text.find(')') else {
        // A slash can only stand after the host; a dot only in an address.
        let begins_a_host = !text.contains(['/', '?', '#', '(']);
        return begins_a_host.then(|| text.to_ascii_lowercase().into_bytes());
    };
    let (host, path) = (text[..close].to_ascii_lowercase(), &text[close + 1..]);
    if host.contains(['/', '?', '#', '(']) || !(path.is_empty() || path.starts_with('/')) {
        return None;
    }
    // An address of version 6 has colons of its own.
    let after = host.rfind(']').map_or(0, |end| end + 1);
    let (name, port) = host.split_at(host[after..].find(':').map_or(host.len(), |colon| after + colon));
    let comma = if name.ends_with(',') { "" } else { "," };
    (!name.is_empty() && name != ",").then(|| format!("{name}{comma}{port}){path}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::url::CrawlUrl;

    fn form(url: &str) -> String {
        let url = CrawlUrl::parse(url).unwrap();
        String::from_utf8(Surt::of(url.view()).bytes().collect()).unwrap()
    }

    #[test]
    fn hosts_are_turned_round_and_nothing_else() {
        for (url, expected) in [
            ("http://www.Example.com/A/b?C=d", "com,example,www,)/A/b?C=d"),
            ("https://example.com", "com,example,)/"),
            ("https://example.com:8443/x", "com,example,:8443)/x"),
            ("http://localhost/", "localhost,)/"),
            ("http://127.0.0.1:81/x", "127.0.0.1,:81)/x"),
            ("http://[::1]:81/x", "[::1],:81)/x"),
        ] {
            assert_eq!(form(url), expected);
            let url = CrawlUrl::parse(url).unwrap();
            let surt = Surt::of(url.view());
            assert_eq!(surt.cmp(expected.as_bytes()), Ordering::Equal);
            for end in 0..=expected.len() {
                assert!(surt.starts_with(&expected.as_bytes()[..end]));
            }
            assert!(
                !surt.starts_with(format!("{expected}x").as_bytes()) && !surt.starts_with(b"com,exemple")
            );
        }
    }

    #[test]
    fn every_way_to_write_a_prefix_is_one_form() {
        for (written, expected) in [
            ("com,example,", "com,example,"),
            ("COM,Example", "com,example"),
            ("com,example)/Private", "com,example,)/Private"),
            ("com,example,)/Private", "com,example,)/Private"),
            ("http://(com,example,)/", "com,example,)/"),
            ("http://(com,example", "com,example"),
            ("https://(com,example:81)/", "com,example,:81)/"),
            ("com,example,:81)", "com,example,:81)"),
            ("127.0.0.1)/x", "127.0.0.1,)/x"),
            ("[::1]:81)/", "[::1],:81)/"),
            ("org,a)/x)/(y)", "org,a,)/x)/(y)"),
        ] {
            assert_eq!(prefix(written).as_deref(), Some(expected.as_bytes()), "{written}");
        }
        for written in
            ["", "http://example.com/", "com,example/x", "com,example)x", ")/x", ",)/x", "cöm,", "a b"]
        {
            assert_eq!(prefix(written), None, "{written}");
        }
    }
}
