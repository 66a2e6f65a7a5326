//! The walk over a feed in XML.
//!
//! ```text
//!   rss > channel > item  > title, link, guid, …     what is unknown is passed over, whatever is in it
//!   RDF > channel, item   > …
//!   feed          > entry > …
//!   urlset        > url   > loc, news:news > title
//!   root            entry   field
//! ```

use super::date;
use super::entities;
use super::entry::{Gathered, LinkKind, Markup, TitleRank, plain_title};
use super::facts::{FeedEntry, FeedError, FeedFacts, FeedFormat, FeedLimits, FeedSource};
use super::hints::Hints;
use super::lexer::{Boundary, Lexer, Tag, Token, attributes};
use super::links::absolute;
use super::names::{Lower, Prefixes, Space, is_entry, local};
use super::plain::{self, plain};
use std::borrow::Cow;

/// Tags that are looked at for one that begins a feed.
const TAGS_BEFORE_ROOT_MAX: usize = 16;

pub(super) fn read<'a>(
    text: &'a str,
    about: &FeedSource<'_>,
    limits: &FeedLimits,
    mut each: impl FnMut(FeedEntry<'_>),
) -> Result<FeedFacts, FeedError> {
    let mut lexer = Lexer::new(text);
    let (root, format) = root(&mut lexer)?;
    let mut walk = Walk {
        lexer,
        limits,
        prefixes: Prefixes::default(),
        base: about.url.to_string(),
        root: root.name,
        entry: None,
        hints: Hints::default(),
        facts: FeedFacts {
            format,
            title: String::new(),
            link: None,
            language: None,
            hub: None,
            hints: Hints::default().told(),
            entries: 0,
            damage: None,
        },
    };
    walk.scope(&root);
    if !root.is_empty {
        walk.walk(&mut each);
    }
    let Walk { mut facts, lexer, hints, .. } = walk;
    facts.damage = lexer.damage();
    facts.hints = hints.told();
    Ok(facts)
}

/// The element that a feed begins with, and what it makes the document. Something around it does no harm.
fn root<'a>(lexer: &mut Lexer<'a>) -> Result<(Tag<'a>, FeedFormat), FeedError> {
    let mut tags = 0;
    while let Some(token) = lexer.next() {
        let Token::Start(tag) = token else { continue };
        match Lower::new(local(tag.name)).as_bytes() {
            b"rss" => return Ok((tag, rss_format(&tag))),
            b"rdf" => {
                let is_090 = attributes(tag.attributes)
                    .any(|(name, uri)| name == "xmlns" && uri.contains("my.netscape.com"));
                return Ok((tag, if is_090 { FeedFormat::Rss090 } else { FeedFormat::Rss10 }));
            }
            b"feed" => {
                let is_03 = attributes(tag.attributes).any(|(name, value)| {
                    (name == "version" && value.starts_with("0."))
                        || (name.starts_with("xmlns")
                            && value.to_ascii_lowercase().starts_with("http://purl.org/atom"))
                });
                return Ok((tag, if is_03 { FeedFormat::Atom03 } else { FeedFormat::Atom10 }));
            }
            b"channel" => {
                let has_href = attributes(tag.attributes).any(|(name, _)| name.eq_ignore_ascii_case("href"));
                return Ok((tag, if has_href { FeedFormat::Cdf } else { FeedFormat::Rss20 }));
            }
            b"urlset" => return Ok((tag, FeedFormat::NewsSitemap)),
            b"sitemapindex" => return Err(FeedError::SitemapIndex),
            b"html" | b"head" | b"body" => return Err(FeedError::Html),
            _ => {}
        }
        tags += 1;
        if tags == TAGS_BEFORE_ROOT_MAX {
            break;
        }
    }
    Err(FeedError::Unknown)
}

fn rss_format(tag: &Tag<'_>) -> FeedFormat {
    let version = attributes(tag.attributes).find(|(name, _)| name.eq_ignore_ascii_case("version"));
    match version.map_or("", |(_, version)| version.trim()) {
        "0.90" => FeedFormat::Rss090,
        "0.91" => FeedFormat::Rss091,
        "0.92" => FeedFormat::Rss092,
        "0.93" => FeedFormat::Rss093,
        "0.94" => FeedFormat::Rss094,
        "1.0" => FeedFormat::Rss10,
        _ => FeedFormat::Rss20,
    }
}

/// Where in the document we are, and what is known of it.
struct Walk<'a, 'l> {
    lexer: Lexer<'a>,
    limits: &'l FeedLimits,
    prefixes: Prefixes<'a>,
    /// What links are relative to, but for an entry's own.
    base: String,
    root: &'a str,
    entry: Option<Gathered<'a>>,
    hints: Hints,
    facts: FeedFacts,
}

impl<'a> Walk<'a, '_> {
    fn walk(&mut self, each: &mut impl FnMut(FeedEntry<'_>)) {
        while let Some(token) = self.lexer.next() {
            match token {
                Token::Text(_) | Token::CData(_) => {}
                Token::Start(tag) => {
                    let (space, name) = self.prefixes.resolve(tag.name);
                    if space == Space::Core && is_entry(name) && self.is_entry_here(name) {
                        if self.entry.is_some() {
                            self.lexer.note("an entry is not closed");
                            self.close(each);
                        }
                        if self.facts.entries as usize == self.limits.entries_max {
                            self.lexer.note("it has more entries than are read");
                            return;
                        }
                        self.open(&tag);
                        if tag.is_empty {
                            self.close(each);
                        }
                    } else if self.entry.is_some() {
                        self.entry_element(&tag, space, name);
                    } else {
                        self.feed_element(&tag, space, name);
                    }
                }
                Token::End(name) => {
                    let closes = self.entry.as_ref().is_some_and(|entry| entry.container == name);
                    let ends = name == self.root;
                    if closes
                        || (self.entry.is_some() && (ends || local(name).eq_ignore_ascii_case("channel")))
                    {
                        self.close(each);
                    }
                    if ends {
                        return self.after();
                    }
                }
            }
        }
        self.lexer.note(match self.entry {
            Some(_) => "it is cut off inside an entry",
            None => "it is cut off",
        });
    }

    /// What follows a document is none of it.
    fn after(&mut self) {
        while let Some(token) = self.lexer.next() {
            if let Token::Start(_) = token {
                return self.lexer.note("something follows its end");
            }
        }
    }

    /// `url` is an entry of sitemaps only: it is also a part of a picture.
    fn is_entry_here(&self, name: &str) -> bool {
        let is_sitemap = self.facts.format == FeedFormat::NewsSitemap;
        is_sitemap == name.eq_ignore_ascii_case("url")
    }

    fn open(&mut self, tag: &Tag<'a>) {
        let mut entry = Gathered::new(tag.name);
        if !tag.attributes.is_empty() {
            self.prefixes.declare(tag);
            for (name, value) in attributes(tag.attributes) {
                match Lower::new(local(name)).as_bytes() {
                    b"about" => entry.about(self.value(value)),
                    b"base" if name != "base" => {
                        entry.base = absolute(entities::decode(value), &self.base).map(Cow::into_owned);
                    }
                    b"lang" => entry.language = language(self.value(value)),
                    b"href" => entry.link(absolute(self.value(value), &self.base), LinkKind::Page),
                    b"lastmod" => entry.updated_s = date::parse(value),
                    _ => {}
                }
            }
        }
        self.entry = Some(entry);
    }

    fn close(&mut self, each: &mut impl FnMut(FeedEntry<'_>)) {
        if let Some(entry) = self.entry.take() {
            self.facts.entries += 1;
            each(entry.told());
        }
    }

    /// What an element of the feed says for all that is in it.
    fn scope(&mut self, tag: &Tag<'a>) {
        self.prefixes.declare(tag);
        for (name, value) in attributes(tag.attributes) {
            match name {
                "xml:base" => {
                    if let Some(base) = absolute(entities::decode(value), &self.base) {
                        self.base = base.into_owned();
                    }
                }
                "xml:lang" => {
                    let told = language(self.value(value)).map(Cow::into_owned);
                    self.facts.language = self.facts.language.take().or(told);
                }
                _ => {}
            }
        }
    }

    fn feed_element(&mut self, tag: &Tag<'a>, space: Space, name: &'a str) {
        let lower = Lower::new(name);
        match (space, lower.as_bytes()) {
            (Space::Core, b"channel" | b"rss" | b"feed") => self.scope(tag),
            (Space::Core, b"items" | b"skiphours" | b"skipdays") | (Space::Rdf, _) => {}
            (Space::Core | Space::Dc, b"title") if self.facts.title.is_empty() => {
                let markup = self.markup(tag);
                if let Some(text) = self.text(tag) {
                    self.facts.title = plain_title(text, markup).into_owned();
                }
            }
            (Space::Core, b"link") => self.feed_link(tag),
            (Space::Core | Space::Dc, b"language") => {
                if let Some(text) = self.text(tag) {
                    self.facts.language = language(text).map(Cow::into_owned).or(self.facts.language.take());
                }
            }
            (Space::Core, b"ttl") => self.hint(tag, Hints::ttl),
            (Space::Core, b"hour") => self.hint(tag, Hints::skip_hour),
            (Space::Core, b"day") => self.hint(tag, Hints::skip_day),
            (Space::Syndication, b"updateperiod") => self.hint(tag, Hints::period),
            (Space::Syndication, b"updatefrequency") => self.hint(tag, Hints::frequency),
            _ => self.skip(tag),
        }
    }

    fn hint(&mut self, tag: &Tag<'a>, tell: fn(&mut Hints, &str)) {
        if let Some(text) = self.text(tag) {
            tell(&mut self.hints, &text);
        }
    }

    fn feed_link(&mut self, tag: &Tag<'a>) {
        let link = self.link(tag);
        let Some((url, rel, _)) = link else { return };
        let slot = match rel {
            Rel::Alternate => &mut self.facts.link,
            Rel::Hub => &mut self.facts.hub,
            Rel::Enclosure | Rel::Other => return,
        };
        if slot.is_none() {
            *slot = url.map(Cow::into_owned);
        }
    }

    fn entry_element(&mut self, tag: &Tag<'a>, space: Space, name: &'a str) {
        let lower = Lower::new(name);
        match (space, lower.as_bytes()) {
            (Space::Core | Space::Dc | Space::News, b"title") => self.title(tag, TitleRank::Own),
            (Space::Media | Space::Itunes, b"title") => self.title(tag, TitleRank::Media),
            (Space::Core, b"link") => {
                let Some((url, rel, is_page)) = self.link(tag) else { return };
                let kind = match rel {
                    Rel::Alternate if is_page => LinkKind::Page,
                    Rel::Alternate => LinkKind::Other,
                    Rel::Enclosure => LinkKind::Enclosure,
                    Rel::Hub | Rel::Other => return,
                };
                self.gather(|entry| entry.link(url, kind));
            }
            (Space::Core, b"loc") => {
                if let Some(text) = self.text(tag) {
                    let url = self.resolved(text, tag);
                    self.gather(|entry| entry.link(url, LinkKind::Page));
                }
            }
            (Space::Core, b"guid" | b"id") => {
                if let Some(text) = self.text(tag) {
                    self.gather(|entry| entry.guid(text));
                }
            }
            (Space::Core, b"pubdate" | b"published" | b"issued") | (Space::Dc, b"issued") => {
                if let Some(at_s) = self.date(tag) {
                    self.gather(|entry| entry.published_s = Some(at_s));
                }
            }
            (Space::News, b"publication_date") => {
                if let Some(at_s) = self.date(tag) {
                    self.gather(|entry| entry.published_s = Some(at_s));
                }
            }
            (Space::Core, b"updated" | b"modified" | b"lastbuilddate" | b"lastmod")
            | (Space::Dc, b"date" | b"modified") => {
                if let Some(at_s) = self.date(tag) {
                    self.gather(|entry| entry.updated_s = Some(at_s));
                }
            }
            (Space::Core | Space::Dc, b"created") => {
                if let Some(at_s) = self.date(tag) {
                    self.gather(|entry| entry.created_s = Some(at_s));
                }
            }
            (Space::Core, b"author") | (Space::Dc, b"creator" | b"author") | (Space::Itunes, b"author") => {
                let author = self.author(tag);
                self.gather(|entry| {
                    if entry.author.is_none() {
                        entry.author = author;
                    }
                });
            }
            (Space::Dc | Space::News, b"language") => {
                let told = self.text(tag).and_then(language);
                self.gather(|entry| entry.language = entry.language.take().or(told));
            }
            (Space::Core, b"enclosure") | (Space::Media, b"content") => {
                if let Some((_, url)) = attributes(tag.attributes).find(|(name, _)| *name == "url") {
                    let url = self.resolved(self.value(url), tag);
                    self.gather(|entry| entry.link(url, LinkKind::Enclosure));
                }
                if space == Space::Core {
                    self.skip(tag);
                }
            }
            // What they hold counts as if they were not there.
            (Space::Media, b"group") | (Space::News, b"news" | b"publication") => {}
            _ => self.skip(tag),
        }
    }

    fn gather(&mut self, tell: impl FnOnce(&mut Gathered<'a>)) {
        if let Some(entry) = &mut self.entry {
            tell(entry);
        }
    }

    fn title(&mut self, tag: &Tag<'a>, rank: TitleRank) {
        let markup = self.markup(tag);
        if let Some(text) = self.text(tag) {
            self.gather(|entry| entry.title(text, markup, rank));
        }
    }

    fn date(&mut self, tag: &Tag<'a>) -> Option<i64> {
        date::parse(&self.text(tag)?)
    }

    /// How a title is written. Atom says so, and of the rest nobody knows.
    fn markup(&self, tag: &Tag<'a>) -> Markup {
        let kind = attributes(tag.attributes).find(|(name, _)| *name == "type").map(|(_, kind)| kind.trim());
        let is_atom = matches!(self.facts.format, FeedFormat::Atom03 | FeedFormat::Atom10);
        match kind {
            // Its tags are taken out as tags, and what is left is text.
            Some("xhtml" | "application/xhtml+xml") => Markup::Plain,
            Some("html" | "text/html" | "HTML") => Markup::Html,
            _ if is_atom => Markup::Plain,
            _ => Markup::Guess,
        }
    }

    /// A link: its URL, what it is, and whether it leads to a page. None where the document ends.
    fn link(&mut self, tag: &Tag<'a>) -> Option<(Option<Cow<'a, str>>, Rel, bool)> {
        let (mut href, mut rel, mut is_page) = (None, Rel::Alternate, true);
        for (name, value) in attributes(tag.attributes) {
            match name {
                "href" | "url" | "uri" => href = Some(value),
                "rel" => rel = Rel::new(value),
                "type" => {
                    is_page =
                        matches!(value.trim(), "" | "html" | "text/html" | "application/xhtml+xml" | "xhtml")
                }
                _ => {}
            }
        }
        match href {
            Some(href) => {
                self.skip(tag);
                Some((self.resolved(self.value(href), tag), rel, is_page))
            }
            None => {
                let text = self.text(tag)?;
                Some((self.resolved(text, tag), rel, is_page))
            }
        }
    }

    /// A link against whatever holds for this tag.
    fn resolved(&self, link: Cow<'a, str>, tag: &Tag<'a>) -> Option<Cow<'a, str>> {
        let base = self.entry.as_ref().and_then(|entry| entry.base.as_deref()).unwrap_or(&self.base);
        let own = attributes(tag.attributes).find(|(name, _)| *name == "xml:base");
        match own.and_then(|(_, own)| absolute(entities::decode(own), base)) {
            Some(own) => absolute(link, &own),
            None => absolute(link, base),
        }
    }

    /// Who wrote it: the text, or that of its `name`.
    fn author(&mut self, tag: &Tag<'a>) -> Option<Cow<'a, str>> {
        if tag.is_empty {
            return None;
        }
        let (mut own, mut named) = (None, None);
        while let Some(token) = self.lexer.next() {
            match token {
                Token::Text(text) if own.is_none() && !text.trim_ascii().is_empty() => {
                    own = Some(entities::decode(self.cut(text)));
                }
                Token::CData(text) if own.is_none() => own = Some(Cow::Borrowed(self.cut(text))),
                Token::Start(inner) if named.is_none() && local(inner.name).eq_ignore_ascii_case("name") => {
                    named = self.text(&inner);
                }
                Token::Start(inner) => self.skip(&inner),
                Token::End(name) if name == tag.name => break,
                _ => {}
            }
        }
        named.or(own).map(|author| plain_title(author, Markup::Guess)).filter(|author| !author.is_empty())
    }

    /// The text of an element up to its end, without the tags in it. None if the document ends before it does.
    fn text(&mut self, tag: &Tag<'a>) -> Option<Cow<'a, str>> {
        let mut text = Cow::Borrowed("");
        if tag.is_empty {
            return Some(text);
        }
        let mut open = 1usize;
        loop {
            let before = self.lexer.at();
            match self.lexer.next()? {
                Token::Text(part) => self.put(&mut text, entities::decode(self.cut(part))),
                Token::CData(part) => self.put(&mut text, Cow::Borrowed(self.cut(part))),
                Token::Start(inner) => {
                    if inner.name == tag.name && !inner.is_empty {
                        open += 1;
                    }
                    if !plain::is_inline(local(inner.name)) {
                        self.put(&mut text, Cow::Borrowed(" "));
                    }
                }
                Token::End(name) if name == tag.name => {
                    open -= 1;
                    if open == 0 {
                        return Some(text);
                    }
                }
                Token::End(name) if self.is_end_around(name) => {
                    self.lexer.back_to(before);
                    self.lexer.note("an element is not closed");
                    return Some(text);
                }
                Token::End(name) => {
                    if !plain::is_inline(local(name)) {
                        self.put(&mut text, Cow::Borrowed(" "));
                    }
                }
            }
        }
    }

    /// Whether an end tag is that of what the fields of an entry, or of the feed, stand in.
    fn is_end_around(&self, name: &str) -> bool {
        match &self.entry {
            Some(entry) => entry.container == name,
            None => name == self.root || local(name).eq_ignore_ascii_case("channel"),
        }
    }

    fn put(&self, text: &mut Cow<'a, str>, part: Cow<'a, str>) {
        if text.is_empty() {
            *text = part;
        } else if !part.is_empty() && text.len() < self.limits.text_bytes_max {
            text.to_mut().push_str(&part);
        }
    }

    /// A piece within the bound of a text.
    fn cut(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(self.limits.text_bytes_max)]
    }

    /// The value of an attribute.
    fn value(&self, raw: &'a str) -> Cow<'a, str> {
        entities::decode(self.cut(raw))
    }

    fn skip(&mut self, tag: &Tag<'a>) {
        let container = self.entry.as_ref().map(|entry| entry.container);
        let mut nested = 0usize;
        self.lexer.skip(tag, |boundary| match (boundary, container) {
            (Boundary::Start(name), Some(container)) if name == container => {
                nested += 1;
                false
            }
            (Boundary::End(name), Some(container)) if name == container => {
                nested = match nested.checked_sub(1) {
                    Some(nested) => nested,
                    None => return true,
                };
                false
            }
            (Boundary::Start(name), None) => {
                is_entry(local(name)) && !local(name).eq_ignore_ascii_case("url")
            }
            _ => false,
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rel {
    Alternate,
    Enclosure,
    Hub,
    Other,
}

impl Rel {
    fn new(rel: &str) -> Rel {
        let has = |token: &str| rel.split_ascii_whitespace().any(|found| found.eq_ignore_ascii_case(token));
        match () {
            () if has("alternate") || rel.trim_ascii().is_empty() => Rel::Alternate,
            () if has("enclosure") => Rel::Enclosure,
            () if has("hub") => Rel::Hub,
            () => Rel::Other,
        }
    }
}

/// Longer than any tag of a language.
const LANGUAGE_BYTES_MAX: usize = 35;

fn language(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let text = plain(text, false);
    (!text.is_empty() && text.len() <= LANGUAGE_BYTES_MAX).then_some(text)
}
