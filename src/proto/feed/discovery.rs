//! Feeds that a page or a header names.
//!
//! ```text
//!   <link rel="alternate" type="application/rss+xml" title="News" href="/feed">
//!   Link: </feed>; rel="alternate"; type="application/rss+xml"
//! ```
//!
//! Not those of comments, and not what content systems call so: descriptions for embedding, and interfaces for programs.

use super::entities;
use super::lexer::attributes;
use super::plain::plain;
use crate::base::named_enum;
use crate::proto::url::{CrawlUrl, LinkBase};
use std::borrow::Cow;

/// Feeds told of one page, and the bytes of it that are looked at.
const FOUND_MAX: usize = 32;
const PAGE_BYTES_MAX: usize = 1 << 20;
const TITLE_BYTES_MAX: usize = 1_024;

/// A feed that a page says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered<'a> {
    /// In normal form.
    pub url: &'a str,
    pub kind: DiscoveredKind,
    /// Plain text; empty if it has none.
    pub title: Cow<'a, str>,
}

named_enum! {
    /// What the type of a link says; the feed itself may be another.
    pub enum DiscoveredKind {
        Rss = "rss",
        Atom = "atom",
        Json = "json",
    }
}

/// Tells the feeds that a page of HTML names, each once.
pub fn find(html: &[u8], base: &CrawlUrl, told: impl FnMut(Discovered<'_>)) {
    let html = &html[..html.len().min(PAGE_BYTES_MAX)];
    let mut found = Found { links: LinkBase::new(base), urls: Vec::new(), told };
    let mut has_base = false;
    let mut rest = html;
    while let Some(open) = memchr::memchr(b'<', rest) {
        rest = &rest[open + 1..];
        if rest.starts_with(b"!--") {
            let Some(end) = memchr::memmem::find(rest, b"-->") else { return };
            rest = &rest[end..];
            continue;
        }
        let name_end = rest.iter().take(8).position(|octet| !octet.is_ascii_alphanumeric()).unwrap_or(0);
        let name = &rest[..name_end];
        if name.eq_ignore_ascii_case(b"link") {
            let Some(end) = tag_end(rest) else { return };
            let tag = String::from_utf8_lossy(&rest[name_end..end]);
            found.link(&Link::of_tag(&tag));
            rest = &rest[end..];
        } else if name.eq_ignore_ascii_case(b"base") && !has_base {
            let Some(end) = tag_end(rest) else { return };
            let tag = String::from_utf8_lossy(&rest[name_end..end]);
            if let Some((_, href)) = attributes(&tag).find(|(name, _)| name.eq_ignore_ascii_case("href")) {
                has_base = true;
                found.rebase(href);
            }
            rest = &rest[end..];
        } else if [&b"script"[..], b"style", b"template"].iter().any(|raw| name.eq_ignore_ascii_case(raw)) {
            rest = &rest[raw_end(rest, name)..];
        }
    }
}

/// Tells the feeds that the value of a `Link` header names.
pub fn find_in_header(value: &[u8], base: &CrawlUrl, told: impl FnMut(Discovered<'_>)) {
    let value = String::from_utf8_lossy(&value[..value.len().min(TITLE_BYTES_MAX * 8)]);
    let mut found = Found { links: LinkBase::new(base), urls: Vec::new(), told };
    let mut rest = &*value;
    while let Some(open) = rest.find('<') {
        let Some(close) = rest[open..].find('>') else { return };
        let (href, after) = (&rest[open + 1..open + close], &rest[open + close + 1..]);
        let end = outside_quotes(after, ',');
        let mut link = Link { href: Cow::Borrowed(href), ..Link::default() };
        let mut parameters = &after[..end];
        while !parameters.is_empty() {
            let end = outside_quotes(parameters, ';');
            if let Some((name, value)) = parameters[..end].split_once('=') {
                link.put(name.trim(), value.trim().trim_matches('"'));
            }
            parameters = parameters.get(end + 1..).unwrap_or("");
        }
        found.link(&link);
        rest = after.get(end..).unwrap_or("");
    }
}

/// Where a mark stands that is not in quotes, or the end.
fn outside_quotes(text: &str, mark: char) -> usize {
    let mut in_quotes = false;
    text.find(|c: char| {
        in_quotes ^= c == '"';
        c == mark && !in_quotes
    })
    .unwrap_or(text.len())
}

/// The `>` of a tag, quotes respected.
fn tag_end(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr3(b'>', b'"', b'\'', &rest[at..])?;
        match rest[at] {
            b'>' => return Some(at),
            quote => at += 1 + memchr::memchr(quote, &rest[at + 1..])? + 1,
        }
    }
}

/// Behind the text of an element that holds no markup.
fn raw_end(rest: &[u8], name: &[u8]) -> usize {
    let ends = |at: &usize| {
        rest[at + 1..].first() == Some(&b'/')
            && rest.get(at + 2..at + 2 + name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name))
    };
    memchr::memchr_iter(b'<', rest).find(ends).unwrap_or(rest.len())
}

#[derive(Default)]
struct Link<'a> {
    href: Cow<'a, str>,
    rel: Cow<'a, str>,
    kind: Cow<'a, str>,
    title: Cow<'a, str>,
}

impl<'a> Link<'a> {
    fn of_tag(tag: &'a str) -> Link<'a> {
        let mut link = Link::default();
        for (name, value) in attributes(tag) {
            link.put(name, value);
        }
        link
    }

    fn put(&mut self, name: &str, value: &'a str) {
        let slot = match () {
            () if name.eq_ignore_ascii_case("href") => &mut self.href,
            () if name.eq_ignore_ascii_case("rel") => &mut self.rel,
            () if name.eq_ignore_ascii_case("type") => &mut self.kind,
            () if name.eq_ignore_ascii_case("title") => &mut self.title,
            () => return,
        };
        *slot = entities::decode(value);
    }

    /// What kind of a feed it leads to, if to any.
    fn kind(&self) -> Option<DiscoveredKind> {
        let is_alternate = self
            .rel
            .split_ascii_whitespace()
            .any(|rel| rel.eq_ignore_ascii_case("alternate") || rel.eq_ignore_ascii_case("feed"));
        let kind = self.kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let kind = match &*kind {
            "application/rss+xml" | "application/rdf+xml" | "application/x-rss+xml" | "text/rss+xml" => {
                DiscoveredKind::Rss
            }
            "application/atom+xml" | "application/x.atom+xml" | "text/atom+xml" => DiscoveredKind::Atom,
            "application/feed+json" | "application/json" => DiscoveredKind::Json,
            _ => return None,
        };
        (is_alternate && !self.is_other()).then_some(kind)
    }

    /// What is no feed of stories, though it says so.
    fn is_other(&self) -> bool {
        let href = self.href.to_ascii_lowercase();
        let others =
            ["/wp-json/", "oembed", "/comments/feed", "/comments/default", "feed=comments", "rest_route="];
        others.iter().any(|other| href.contains(other))
            || self.title.to_ascii_lowercase().contains("comments feed")
    }
}

struct Found<F> {
    links: LinkBase,
    urls: Vec<String>,
    told: F,
}

impl<F: FnMut(Discovered<'_>)> Found<F> {
    fn rebase(&mut self, href: &str) {
        let mut url = String::new();
        if self.links.resolve(entities::decode(href).trim().as_bytes(), &mut url).is_ok()
            && let Ok(base) = CrawlUrl::from_normal(&url)
        {
            self.links = LinkBase::new(&base);
        }
    }

    fn link(&mut self, link: &Link<'_>) {
        let Some(kind) = link.kind() else { return };
        let mut url = String::new();
        let is_web = self.links.resolve(link.href.trim().as_bytes(), &mut url).is_ok();
        if !is_web || self.urls.len() == FOUND_MAX || self.urls.contains(&url) {
            return;
        }
        let title = &link.title[..link.title.floor_char_boundary(TITLE_BYTES_MAX)];
        (self.told)(Discovered { url: &url, kind, title: plain(Cow::Borrowed(title), false) });
        self.urls.push(url);
    }
}
