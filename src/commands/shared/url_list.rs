//! URLs as users type them and as files list them.

use super::Failure;
use super::event_log::tell;
use crate::base::{AddressGuard, listed, shown};
use crate::engine::Event;
use crate::proto::url::{CrawlUrl, UrlError};
use std::path::Path;

/// A URL as it was typed.
pub(crate) fn parse_url(text: &str) -> Result<CrawlUrl, Failure> {
    CrawlUrl::parse(text).map_err(|e| Failure::Usage(said(text, &e)))
}

/// What is wrong with a URL. One that only lacks its scheme is known by its host.
fn said(text: &str, error: &UrlError) -> String {
    // Perhaps a password stands before it.
    if let Some((_, behind)) = text.rsplit_once('@') {
        return format!("…@{}: {error}", shown(behind, 200));
    }
    let meant =
        Some(text).filter(|text| !text.contains("://")).map(|text| format!("{}://{text}", scheme_for(text)));
    let is_host = |url: &CrawlUrl| {
        let bare = url.host_bare();
        bare == "localhost" || bare.contains('.') || url.authority() != bare
    };
    match meant.and_then(|meant| CrawlUrl::parse(&meant).ok()).filter(is_host) {
        Some(url) => format!("{} has no scheme: did you mean {url} ?", shown(text, 200)),
        None => format!("{}: {error}", shown(text, 200)),
    }
}

/// What is at a port or on a network of one's own rarely speaks TLS.
fn scheme_for(text: &str) -> &'static str {
    let is_plain = CrawlUrl::parse(&format!("http://{text}")).is_ok_and(|url| {
        let bare = url.host_bare();
        let is_private = |ip| AddressGuard::default().check(ip, 80).is_err();
        let has_port = text.split(['/', '?', '#']).next().is_some_and(|authority| {
            authority
                .rsplit_once(':')
                .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
        });
        has_port || bare == "localhost" || bare.ends_with(".localhost") || bare.parse().is_ok_and(is_private)
    });
    if is_plain { "http" } else { "https" }
}

/// The URLs of a file, one a line. A bad line is named and skipped.
pub(crate) fn read_urls(path: &Path, flag: &str, urls: &mut Vec<CrawlUrl>) -> Result<(), Failure> {
    let text = std::fs::read(path).map_err(|e| {
        Failure::Usage(format!("cannot read {}: {e} (name a file of URLs with {flag})", path.display()))
    })?;
    for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let line = listed(line);
        if line.is_empty() {
            continue;
        }
        match CrawlUrl::parse(line) {
            Ok(url) => urls.push(url),
            Err(e) => {
                let (path, number) = (path.display(), number + 1);
                let text = format!("nephila: {path}:{number}: skipped: {}", said(line, &e));
                tell(Event::UrlSkipped, vec![("path", path.into()), ("line", number.into())], text);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_a_scheme_is_asked_about() {
        let said = |text: &str| said(text, &CrawlUrl::parse(text).unwrap_err());
        assert_eq!(said("example.org"), "example.org has no scheme: did you mean https://example.org/ ?");
        for (typed, meant) in [
            ("localhost:8000/x", "http://localhost:8000/x"),
            ("localhost", "http://localhost/"),
            ("192.168.0.1/a", "http://192.168.0.1/a"),
            ("example.org:8080", "http://example.org:8080/"),
            ("9.9.9.9", "https://9.9.9.9/"),
        ] {
            assert!(said(typed).contains(&format!("did you mean {meant} ?")), "{typed}: {}", said(typed));
        }
        for other in ["nonsense", "ftp://example.org/", "mailto:a@example.org", "a b.c", ""] {
            assert!(!said(other).contains("did you mean"), "{other}");
        }
    }
}
