//! Elements that matter, by name and namespace.
//!
//! A prefix means what its declaration says, if that is a namespace we know, and what feeds use it for otherwise: half of
//! what is undeclared or declared wrongly is meant as it is written.

use super::lexer::{Tag, attributes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// RSS, Atom, sitemaps, and what has no prefix.
    Core,
    /// Dublin Core, elements and terms.
    Dc,
    Media,
    Itunes,
    /// When to ask: `sy:updatePeriod`.
    Syndication,
    Rdf,
    /// Google's news in a sitemap.
    News,
    Other,
}

/// Prefixes that a document declares; a few are enough.
#[derive(Default)]
pub(super) struct Prefixes<'a> {
    declared: Vec<(&'a str, Space)>,
}

const PREFIXES_MAX: usize = 64;

impl<'a> Prefixes<'a> {
    /// Notes what a tag declares.
    pub fn declare(&mut self, tag: &Tag<'a>) {
        for (name, uri) in attributes(tag.attributes) {
            if let Some(prefix) = name.strip_prefix("xmlns:")
                && let Some(space) = by_uri(uri)
                && self.declared.len() < PREFIXES_MAX
            {
                self.declared.retain(|(known, _)| *known != prefix);
                self.declared.push((prefix, space));
            }
        }
    }

    /// The namespace and the name in it.
    #[inline]
    pub fn resolve(&self, name: &'a str) -> (Space, &'a str) {
        let Some(colon) = memchr::memchr(b':', name.as_bytes()) else { return (Space::Core, name) };
        let (prefix, local) = (&name[..colon], &name[colon + 1..]);
        let declared = self.declared.iter().find(|(known, _)| *known == prefix);
        (declared.map_or_else(|| by_prefix(prefix), |(_, space)| *space), local)
    }
}

fn by_uri(uri: &str) -> Option<Space> {
    let uri = uri.trim().trim_end_matches(['/', '#']);
    let begins = |start: &str| uri.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    let known: [(&str, Space); 17] = [
        ("http://purl.org/rss/1.0/modules/syndication", Space::Syndication),
        ("http://purl.org/rss/1.0/modules/rss091", Space::Core),
        ("http://purl.org/rss/1.0/modules/", Space::Other),
        ("http://purl.org/rss/1.0", Space::Core),
        ("http://my.netscape.com/rdf/simple/0.9", Space::Core),
        ("http://backend.userland.com/rss", Space::Core),
        ("http://blogs.law.harvard.edu/tech/rss", Space::Core),
        ("http://www.w3.org/2005/atom", Space::Core),
        ("http://purl.org/atom/ns", Space::Core),
        ("http://www.sitemaps.org/schemas/sitemap/", Space::Core),
        ("http://purl.org/dc/", Space::Dc),
        ("http://search.yahoo.com/mrss", Space::Media),
        ("http://www.itunes.com/dtds/podcast", Space::Itunes),
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns", Space::Rdf),
        ("http://www.google.com/schemas/sitemap-news/", Space::News),
        ("http://www.w3.org/1999/xhtml", Space::Other),
        ("http://www.w3.org/2000/svg", Space::Other),
    ];
    known.iter().find(|(start, _)| begins(start)).map(|(_, space)| *space)
}

fn by_prefix(prefix: &str) -> Space {
    match prefix {
        "atom" | "atom10" | "atom03" | "a10" | "a" | "rss" | "rss10" => Space::Core,
        "dc" | "dcterms" | "dct" => Space::Dc,
        "media" => Space::Media,
        "itunes" => Space::Itunes,
        "sy" | "syn" => Space::Syndication,
        "rdf" => Space::Rdf,
        "news" => Space::News,
        _ => Space::Other,
    }
}

/// A name in lower case, as far as it may be one of ours.
pub(super) struct Lower {
    bytes: [u8; 20],
    len: usize,
}

impl Lower {
    #[inline]
    pub fn new(name: &str) -> Lower {
        let mut bytes = [0; 20];
        let len = name.len();
        if len <= bytes.len() {
            bytes[..len].copy_from_slice(name.as_bytes());
            bytes[..len].make_ascii_lowercase();
            return Lower { bytes, len };
        }
        Lower { bytes, len: 0 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Whether an element is an entry, by the name after its prefix.
#[inline]
pub(super) fn is_entry(local: &str) -> bool {
    ["item", "entry", "url"].iter().any(|name| local.eq_ignore_ascii_case(name))
}

pub(super) fn local(name: &str) -> &str {
    &name[memchr::memchr(b':', name.as_bytes()).map_or(0, |colon| colon + 1)..]
}
