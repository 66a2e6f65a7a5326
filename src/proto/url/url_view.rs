use super::public_suffixes::registered;
use super::surt::is_address;
use crate::limits::URL_BYTES_MAX;
use memchr::memchr;
use thiserror::Error;

/// An absolute URL in normal form, in text that somebody else holds, with the places of its parts.
#[derive(Clone, Copy)]
pub struct UrlView<'a> {
    text: &'a str,
    places: Places,
}

/// Where the parts of a URL are, and what is read from them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Places {
    pub scheme: Scheme,
    pub port: u16,
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

impl<'a> UrlView<'a> {
    /// Of text that is in normal form already (it came out of a [`super::CrawlUrl`] or a [`super::LinkBase`]). Text that
    /// is not is refused or taken apart wrongly, but never panics.
    pub fn of(text: &'a str) -> Result<UrlView<'a>, UrlError> {
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
        let host_end = (authority_start + host_bytes) as u16;
        let places = Places { scheme, port, host_end, path_start: path_start as u16 };
        Ok(UrlView { text, places })
    }

    /// The places must be those of this text.
    pub(super) fn at(text: &'a str, places: Places) -> UrlView<'a> {
        UrlView { text, places }
    }

    pub(super) fn places(self) -> Places {
        self.places
    }

    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// The host as it stands in the URL; an IPv6 address is in brackets.
    pub fn host(self) -> &'a str {
        &self.text[self.places.scheme.prefix().len()..usize::from(self.places.host_end)]
    }

    /// Host and port as they go into `Host:`; a default port is not written.
    pub fn authority(self) -> &'a str {
        &self.text[self.places.scheme.prefix().len()..usize::from(self.places.path_start)]
    }

    /// Scheme and authority: what politeness and robots rules are kept by.
    pub fn origin(self) -> &'a str {
        &self.text[..usize::from(self.places.path_start)]
    }

    /// What goes into the request line.
    pub fn path_and_query(self) -> &'a str {
        &self.text[usize::from(self.places.path_start)..]
    }

    /// The path without a query; it begins with a slash.
    pub fn path(self) -> &'a str {
        let text = self.path_and_query();
        &text[..memchr(b'?', text.as_bytes()).unwrap_or(text.len())]
    }

    /// The part of the host that somebody registered, by the list of public suffixes; the host itself where there is
    /// none (an address, a bare name).
    pub fn registrable_domain(self) -> &'a str {
        registrable(self.host())
    }
}

/// The part of a host, as it stands in a URL, that somebody registered: the end of it, or all.
pub fn registrable(host: &str) -> &str {
    if is_address(host) {
        return host;
    }
    registered(host).unwrap_or(host)
}

const _: () = assert!(URL_BYTES_MAX <= u16::MAX as usize, "places in a URL are 16 bits");
