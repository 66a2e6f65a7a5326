//! JSON Feed, 1.0 and 1.1.
//!
//! Read as it comes, without a tree: what is not asked for is passed over by counting brackets, so that nothing is as deep
//! as the document says, and an item counts when it is closed.

use super::date;
use super::entry::{Gathered, LinkKind, Markup, TitleRank, plain_title};
use super::facts::{FeedEntry, FeedError, FeedFacts, FeedFormat, FeedHints, FeedLimits, FeedSource};
use super::links::absolute;
use memchr::memchr2;
use std::borrow::Cow;

pub(super) fn read(
    text: &str,
    about: &FeedSource<'_>,
    limits: &FeedLimits,
    mut each: impl FnMut(FeedEntry<'_>),
) -> Result<FeedFacts, FeedError> {
    let mut json = Json { text, at: 0, text_bytes_max: limits.text_bytes_max };
    let mut facts = FeedFacts {
        format: FeedFormat::Json11,
        title: String::new(),
        link: None,
        language: None,
        hub: None,
        hints: FeedHints::default(),
        entries: 0,
        damage: None,
    };
    let (mut is_feed, mut has_items, mut is_full) = (false, false, false);
    let whole = json.object(|json, key| {
        match key {
            "version" => {
                let version = json.scalar()?;
                is_feed = version.contains("jsonfeed.org");
                let is_10 = version.trim_end_matches('/').ends_with("/1");
                facts.format = if is_10 { FeedFormat::Json10 } else { FeedFormat::Json11 };
            }
            "title" => facts.title = plain_title(json.scalar()?, Markup::Guess).into_owned(),
            "home_page_url" => facts.link = absolute(json.scalar()?, about.url).map(Cow::into_owned),
            "language" => {
                facts.language = Some(json.scalar()?.trim().to_string()).filter(|told| !told.is_empty())
            }
            "hubs" => json.array(|json| {
                json.object(|json, key| {
                    match key {
                        "url" => {
                            let url = absolute(json.scalar()?, about.url).map(Cow::into_owned);
                            facts.hub = facts.hub.take().or(url);
                        }
                        _ => json.skip()?,
                    }
                    Some(())
                })
            })?,
            "items" => {
                has_items = true;
                json.array(|json| {
                    if facts.entries as usize == limits.entries_max {
                        is_full = true;
                        return None;
                    }
                    let entry = item(json, about.url)?;
                    facts.entries += 1;
                    each(entry.told());
                    Some(())
                })?;
            }
            _ => json.skip()?,
        }
        Some(())
    });
    if !is_feed && !(has_items && (!facts.title.is_empty() || facts.link.is_some())) {
        return Err(FeedError::Unknown);
    }
    facts.damage = match whole {
        Some(()) => None,
        None if is_full => Some("it has more entries than are read"),
        None => Some("it is cut off or no JSON"),
    };
    Ok(facts)
}

fn item<'a>(json: &mut Json<'a>, base: &str) -> Option<Gathered<'a>> {
    let mut entry = Gathered::default();
    json.object(|json, key| {
        match key {
            "id" => entry.guid(json.scalar()?),
            "url" => entry.link(absolute(json.scalar()?, base), LinkKind::Page),
            "external_url" => entry.link(absolute(json.scalar()?, base), LinkKind::Other),
            "title" => entry.title(json.scalar()?, Markup::Guess, TitleRank::Own),
            "date_published" => entry.published_s = date::parse(&json.scalar()?),
            "date_modified" => entry.updated_s = date::parse(&json.scalar()?),
            "language" => entry.language = Some(json.scalar()?).filter(|told| !told.is_empty()),
            "author" => entry.author = name(json)?.or(entry.author.take()),
            "authors" => json.array(|json| {
                entry.author = match entry.author.take() {
                    Some(author) => {
                        json.skip()?;
                        Some(author)
                    }
                    None => name(json)?,
                };
                Some(())
            })?,
            "attachments" => json.array(|json| {
                json.object(|json, key| {
                    match key {
                        "url" => entry.link(absolute(json.scalar()?, base), LinkKind::Enclosure),
                        _ => json.skip()?,
                    }
                    Some(())
                })
            })?,
            _ => json.skip()?,
        }
        Some(())
    })?;
    Some(entry)
}

/// The name of an author. Outer `None` where the document ends.
fn name<'a>(json: &mut Json<'a>) -> Option<Option<Cow<'a, str>>> {
    let mut found = None;
    json.object(|json, key| {
        match key {
            "name" => {
                found = Some(plain_title(json.scalar()?, Markup::Plain)).filter(|name| !name.is_empty())
            }
            _ => json.skip()?,
        }
        Some(())
    })?;
    Some(found)
}

/// A place in a document. Everything is `None` where the document ends or breaks.
struct Json<'a> {
    text: &'a str,
    at: usize,
    text_bytes_max: usize,
}

impl<'a> Json<'a> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        Some(bytes[self.at])
    }

    fn eat(&mut self, octet: u8) -> Option<()> {
        (self.peek()? == octet).then(|| self.at += 1)
    }

    /// Tells the keys of an object; each must take its value. Anything else is passed over.
    fn object(&mut self, mut each: impl FnMut(&mut Json<'a>, &str) -> Option<()>) -> Option<()> {
        if self.peek()? != b'{' {
            return self.skip();
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => {
                    let key = self.string()?;
                    self.eat(b':')?;
                    each(self, &key)?;
                }
            }
        }
    }

    /// Tells the values of an array; each must take its own. Anything else is passed over.
    fn array(&mut self, mut each: impl FnMut(&mut Json<'a>) -> Option<()>) -> Option<()> {
        if self.peek()? != b'[' {
            return self.skip();
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                _ => each(self)?,
            }
        }
    }

    /// A string, or a number as it is written; empty for anything else.
    fn scalar(&mut self) -> Option<Cow<'a, str>> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => {
                self.skip()?;
                Some(Cow::Borrowed(""))
            }
            _ => {
                let word = self.word()?;
                Some(Cow::Borrowed(if matches!(word, "null" | "true" | "false") { "" } else { word }))
            }
        }
    }

    /// A number or a name. It must be followed by something: at the end of a document it may be cut.
    fn word(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let end =
            rest.bytes().position(|b| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}' | b'"'))?;
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.eat(b'"')?;
        let start = self.at;
        let end = self.string_end()?;
        let raw = &self.text[start..end];
        let raw = &raw[..raw.floor_char_boundary(self.text_bytes_max)];
        match memchr::memchr(b'\\', raw.as_bytes()) {
            None => Some(Cow::Borrowed(raw)),
            Some(_) => Some(Cow::Owned(unescaped(raw))),
        }
    }

    /// Passes over a string whose first quote was passed; returns where its last one is.
    fn string_end(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        loop {
            let mark = self.at + memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
            if bytes[mark] == b'"' {
                self.at = mark + 1;
                return Some(mark);
            }
            self.at = mark + 2;
        }
    }

    fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' | b'[' => {}
            b'"' => return self.string().map(drop),
            _ => return self.word().map(drop),
        }
        let bytes = self.text.as_bytes();
        let mut open = 0usize;
        loop {
            match *bytes.get(self.at)? {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                b'"' => {
                    self.at += 1;
                    self.string_end()?;
                    continue;
                }
                _ => {
                    let next = bytes[self.at..]
                        .iter()
                        .position(|b| matches!(b, b'"' | b'{' | b'[' | b'}' | b']'))?;
                    self.at += next;
                    continue;
                }
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }
}

/// A string with its escapes undone. Halves of a pair that are alone become a mark.
fn unescaped(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else { break };
        rest = &rest[escape.len_utf8()..];
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' | 'f' => out.push(' '),
            'u' => {
                let Some(unit) = unit(rest) else { continue };
                rest = &rest[4..];
                let low = rest.strip_prefix("\\u").and_then(self::unit);
                match (unit, low) {
                    (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                        rest = &rest[6..];
                        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    _ => out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

/// Four digits of an escape.
fn unit(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}
