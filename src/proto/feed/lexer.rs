//! The tags of a document, as forgiving as strangers need it.
//!
//! Nothing here fails: a `<` that opens nothing is text, and what is never closed ends the document, with a word for the
//! damage. One pass forward, so that what is made up to be slow is not. A cut takes tokens away, and changes none.

use memchr::{memchr, memchr2, memmem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// With its references as they are.
    Text(&'a str),
    /// Without any.
    CData(&'a str),
    Start(Tag<'a>),
    /// The name.
    End(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub name: &'a str,
    pub attributes: &'a str,
    /// `<x/>`
    pub is_empty: bool,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    damage: Option<&'static str>,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, damage: None }
    }

    /// The first thing that was wrong.
    pub fn damage(&self) -> Option<&'static str> {
        self.damage
    }

    pub fn note(&mut self, damage: &'static str) {
        self.damage.get_or_insert(damage);
    }

    /// Where the next token begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Reads again from where a token began.
    pub fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    #[inline]
    pub fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            let at = self.at;
            if *bytes.get(at)? != b'<' {
                let end = memchr(b'<', &bytes[at..]).map_or(bytes.len(), |found| at + found);
                self.at = end;
                return Some(Token::Text(&self.text[at..end]));
            }
            match *bytes.get(at + 1).unwrap_or(&0) {
                b'/' => {
                    let Some(found) = memchr(b'>', &bytes[at..]) else { return self.cut() };
                    self.at = at + found + 1;
                    return Some(Token::End(self.text[at + 2..at + found].trim_ascii_end()));
                }
                b'!' | b'?' => {
                    if let Some(cdata) = self.declaration()? {
                        return Some(Token::CData(cdata));
                    }
                }
                octet if begins_name(octet) => return self.start(),
                _ if at + 1 == bytes.len() => return self.cut(),
                _ => {
                    self.at += 1;
                    return Some(Token::Text(&self.text[at..at + 1]));
                }
            }
        }
    }

    /// Passes over an element whose start tag came last, and over whatever is in it; its end tag, too. It ends early
    /// before what `stops` says cannot be inside of it: the end of what it stands in. Only tags of its own name are
    /// looked at, so that markup of any depth and shape costs a search for `<`.
    pub fn skip(&mut self, tag: &Tag<'a>, mut stops: impl FnMut(Boundary<'a>) -> bool) {
        if tag.is_empty {
            return;
        }
        let bytes = self.text.as_bytes();
        let mut open = 1usize;
        loop {
            let Some(found) = memchr(b'<', &bytes[self.at..]) else {
                self.at = bytes.len();
                self.note("an element is not closed");
                return;
            };
            let at = self.at + found;
            self.at = at;
            match *bytes.get(at + 1).unwrap_or(&0) {
                b'/' => {
                    let name = name_at(self.text, at + 2);
                    if name == tag.name {
                        if self.next().is_none() {
                            return;
                        }
                        open -= 1;
                        if open == 0 {
                            return;
                        }
                    } else if stops(Boundary::End(name)) {
                        self.note("an element is not closed");
                        return;
                    } else {
                        self.at = at + 2;
                    }
                }
                b'!' | b'?' => {
                    if self.declaration().is_none() {
                        return;
                    }
                }
                octet if begins_name(octet) => {
                    let name = name_at(self.text, at + 1);
                    if name == tag.name {
                        match self.start() {
                            Some(Token::Start(inner)) if !inner.is_empty => open += 1,
                            Some(_) => {}
                            None => return,
                        }
                    } else if stops(Boundary::Start(name)) {
                        self.note("an element is not closed");
                        return;
                    } else {
                        self.at = at + 1;
                    }
                }
                _ => self.at = at + 1,
            }
        }
    }

    /// What begins with `<!` or `<?`. None at the end of the document; the text of a CDATA section, or nothing that
    /// counts.
    fn declaration(&mut self) -> Option<Option<&'a str>> {
        let (bytes, at) = (self.text.as_bytes(), self.at);
        let rest = &bytes[at..];
        if rest.starts_with(b"<![CDATA[") {
            let start = at + b"<![CDATA[".len();
            let Some(end) = cdata_end(bytes, start) else { return self.cut() };
            self.at = end + b"]]>".len();
            return Some(Some(&self.text[start..end]));
        }
        let end = if rest.starts_with(b"<!--") {
            memmem::find(&rest[4..], b"-->").map(|found| 4 + found + 3)
        } else if rest.starts_with(b"<?") {
            memmem::find(rest, b"?>").map(|found| found + 2)
        } else {
            doctype_end(rest)
        };
        let Some(end) = end else { return self.cut() };
        self.at = at + end;
        Some(None)
    }

    fn start(&mut self) -> Option<Token<'a>> {
        let (bytes, at) = (self.text.as_bytes(), self.at);
        let name = name_at(self.text, at + 1);
        let name_end = at + 1 + name.len();
        let Some(end) = tag_end(bytes, name_end) else { return self.cut() };
        self.at = end + 1;
        let is_empty = bytes[end - 1] == b'/' && end > name_end;
        let attributes = &self.text[name_end..end - usize::from(is_empty)];
        Some(Token::Start(Tag { name, attributes, is_empty }))
    }

    fn cut<T>(&mut self) -> Option<T> {
        self.at = self.text.len();
        self.note("it is cut off inside a tag, a comment or a CDATA section");
        None
    }
}

/// A tag that an unknown element may not go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary<'a> {
    Start(&'a str),
    End(&'a str),
}

fn begins_name(octet: u8) -> bool {
    octet.is_ascii_alphabetic() || octet == b'_' || octet >= 0x80
}

#[inline]
fn name_at(text: &str, start: usize) -> &str {
    let rest = &text.as_bytes()[start..];
    let ends = |octet: &u8| matches!(octet, b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | b'<');
    &text[start..start + rest.iter().position(ends).unwrap_or(rest.len())]
}

/// The `>` of a tag. Only a value can hide one, and only a `=` can open a value.
#[inline]
fn tag_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    if *bytes.get(at)? == b'>' {
        return Some(at);
    }
    loop {
        let mark = at + memchr2(b'=', b'>', &bytes[at..])?;
        if bytes[mark] == b'>' {
            return Some(mark);
        }
        at = mark + 1;
        while bytes.get(at)?.is_ascii_whitespace() {
            at += 1;
        }
        if let quote @ (b'"' | b'\'') = bytes[at] {
            at += 1 + memchr(quote, &bytes[at + 1..])? + 1;
        }
    }
}

fn cdata_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let found = at + memchr(b']', &bytes[at..])?;
        if bytes[found..].starts_with(b"]]>") {
            return Some(found);
        }
        at = found + 1;
    }
}

/// Behind the `>` of a DOCTYPE, whose own declarations are in brackets. What they declare is never used.
fn doctype_end(rest: &[u8]) -> Option<usize> {
    let mark = memchr2(b'[', b'>', rest)?;
    if rest[mark] == b'>' {
        return Some(mark + 1);
    }
    let close = mark + memchr(b']', &rest[mark..])?;
    let mut at = close;
    // A value may have brackets of its own; what follows the last is a `>`.
    loop {
        let next = at + 1 + rest[at + 1..].iter().take_while(|octet| octet.is_ascii_whitespace()).count();
        if rest.get(next) == Some(&b'>') {
            return Some(next + 1);
        }
        match memchr(b']', &rest[at + 1..]) {
            Some(found) => at += 1 + found,
            None => return Some(close + 1),
        }
    }
}

/// Names and raw values, as they come.
pub(super) fn attributes(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/' || c == '=');
        if rest.is_empty() {
            return None;
        }
        let ends = |octet: &u8| octet.is_ascii_whitespace() || matches!(octet, b'=' | b'/' | b'>');
        let name_end = rest.as_bytes().iter().position(ends).unwrap_or(rest.len()).max(1);
        let name_end = (name_end..=rest.len()).find(|at| rest.is_char_boundary(*at))?;
        let (name, after) = rest.split_at(name_end);
        let Some(value) = after.trim_ascii_start().strip_prefix('=') else {
            rest = after;
            return Some((name, ""));
        };
        let value = value.trim_ascii_start();
        let (value, after) = match value.as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => {
                let value = &value[1..];
                let end = memchr(*quote, value.as_bytes()).unwrap_or(value.len());
                (&value[..end], value.get(end + 1..).unwrap_or(""))
            }
            _ => value.split_at(value.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        rest = after;
        Some((name, value))
    })
}
