//! What a tree of a page would cost, before anybody builds one.
//!
//! Parsers that build a tree look through all open elements for many a tag, and what walks the tree walks down its
//! depth: a page of a million nested elements costs them minutes and their stack. Here the open elements are
//! counted as the tree builder of the standard keeps them, but for what it does at its corners.

use super::raw_text;
use super::tag::{ends_tag_name, skip};

/// What a page may have at most.
#[derive(Clone, Copy, Debug)]
pub struct ShapeLimits {
    /// Elements in elements. Those whose end may be left out, as of paragraphs and list items, do not count.
    pub depth_max: usize,
    pub elements_max: usize,
}

/// Why no tree should be built of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misshapen {
    TooDeep,
    TooMany,
}

/// Says whether a tree of a page stays within limits.
pub fn check_shape(body: &[u8], limits: &ShapeLimits) -> Result<(), Misshapen> {
    let mut shape = Shape { open: Vec::new(), formatting: 0, elements: 0, limits };
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &body[at..]) {
        let after = at + found + 1;
        let next = match body.get(after) {
            Some(b'!') if body[after..].starts_with(b"!--") => raw_text::comment_end(body, after + 3),
            Some(b'!' | b'?') => raw_text::bogus_comment_end(body, after),
            Some(b'/') => match body.get(after + 1) {
                Some(octet) if octet.is_ascii_alphabetic() => shape.end_tag(body, after + 1),
                _ => raw_text::bogus_comment_end(body, after),
            },
            Some(octet) if octet.is_ascii_alphabetic() => shape.start_tag(body, after)?,
            _ => Some(after),
        };
        // What never closes ends the page.
        let Some(next) = next else { break };
        at = next;
    }
    Ok(())
}

struct Shape<'a> {
    open: Vec<Open>,
    /// Those of them that a parser opens again in every block while they are not closed.
    formatting: usize,
    elements: usize,
    limits: &'a ShapeLimits,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Open {
    name: Name,
    kind: Kind,
}

/// The first bytes of a tag's name, in lower case.
type Name = [u8; 16];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Has no end tag.
    Void,
    /// Its end may be left out; it stands in nothing of its kind.
    Implied,
    Formatting,
    /// No end tag outside of it reaches into it.
    Boundary,
    /// The end tag of a phrase does not reach beyond it.
    Block,
    Script,
    Style,
    Phrase,
}

impl Shape<'_> {
    fn start_tag(&mut self, body: &[u8], start: usize) -> Result<Option<usize>, Misshapen> {
        let (name, kind, name_end) = read_name(body, start);
        let Some(close) = skip(body, name_end) else { return Ok(None) };
        let reopens = matches!(kind, Kind::Implied | Kind::Block | Kind::Boundary);
        self.elements += 1 + if reopens { self.formatting } else { 0 };
        if self.elements > self.limits.elements_max {
            return Err(Misshapen::TooMany);
        }
        match kind {
            Kind::Void | Kind::Implied => return Ok(Some(close.end)),
            Kind::Script => return Ok(raw_text::script_end(body, close.end)),
            Kind::Style => return Ok(raw_text::raw_text_end(body, close.end, b"style")),
            _ if close.self_closing && self.is_in_drawing() => return Ok(Some(close.end)),
            _ => {}
        }
        // A link ends the link before it.
        if name == *b"a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
            && let Some(at) = self.find(name, Kind::Formatting)
        {
            self.open.remove(at);
            self.formatting -= 1;
        }
        self.open.push(Open { name, kind });
        self.formatting += usize::from(kind == Kind::Formatting);
        match self.open.len() > self.limits.depth_max {
            true => Err(Misshapen::TooDeep),
            false => Ok(Some(close.end)),
        }
    }

    fn end_tag(&mut self, body: &[u8], start: usize) -> Option<usize> {
        let (name, kind, name_end) = read_name(body, start);
        let close = skip(body, name_end)?;
        if let Some(at) = self.find(name, kind) {
            let left = self.open[at..].iter().filter(|open| open.kind == Kind::Formatting).count();
            self.formatting -= left;
            self.open.truncate(at);
        }
        Some(close.end)
    }

    /// The open element that an end tag closes.
    fn find(&self, name: Name, kind: Kind) -> Option<usize> {
        let is_phrase = matches!(kind, Kind::Phrase | Kind::Formatting);
        for (at, open) in self.open.iter().enumerate().rev() {
            if open.name == name {
                return Some(at);
            }
            if open.kind == Kind::Boundary || (open.kind == Kind::Block && is_phrase) {
                return None;
            }
        }
        None
    }

    /// In svg and math an element may close itself.
    fn is_in_drawing(&self) -> bool {
        let boundary = self.open.iter().rev().find(|open| open.kind == Kind::Boundary);
        boundary.is_some_and(|open| open.name.starts_with(b"svg\0") || open.name.starts_with(b"math\0"))
    }
}

fn read_name(body: &[u8], start: usize) -> (Name, Kind, usize) {
    let bytes = body[start..].iter().position(|&octet| ends_tag_name(octet)).unwrap_or(body.len() - start);
    let mut name = Name::default();
    let kept = bytes.min(name.len());
    name[..kept].copy_from_slice(&body[start..start + kept]);
    name.make_ascii_lowercase();
    (name, kind_of(&name[..kept]), start + bytes)
}

fn kind_of(name: &[u8]) -> Kind {
    match name {
        b"area" | b"base" | b"br" | b"col" | b"embed" | b"hr" | b"img" | b"input" | b"link" | b"meta"
        | b"param" | b"source" | b"track" | b"wbr" => Kind::Void,
        b"html" | b"head" | b"body" | b"p" | b"li" | b"dt" | b"dd" | b"tr" | b"td" | b"th" | b"thead"
        | b"tbody" | b"tfoot" | b"caption" | b"colgroup" | b"option" | b"optgroup" | b"rb" | b"rp"
        | b"rt" | b"rtc" => Kind::Implied,
        b"a" | b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small" | b"strike"
        | b"strong" | b"tt" | b"u" => Kind::Formatting,
        b"applet" | b"desc" | b"foreignobject" | b"marquee" | b"math" | b"object" | b"select" | b"svg"
        | b"table" | b"template" => Kind::Boundary,
        b"address" | b"article" | b"aside" | b"blockquote" | b"button" | b"center" | b"details"
        | b"dialog" | b"dir" | b"div" | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"footer"
        | b"form" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header" | b"hgroup" | b"main"
        | b"menu" | b"nav" | b"ol" | b"pre" | b"search" | b"section" | b"summary" | b"ul" => Kind::Block,
        b"script" => Kind::Script,
        b"style" => Kind::Style,
        _ => Kind::Phrase,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShapeLimits = ShapeLimits { depth_max: 100, elements_max: 10_000 };

    fn checked(page: &str) -> Result<(), Misshapen> {
        check_shape(page.as_bytes(), &LIMITS)
    }

    #[test]
    fn pages_as_they_are_written_pass() {
        for unit in [
            "<p>text",
            "<ul><li>a<li>b</ul>",
            "<table><tr><td>a<td>b<tr><td>c</table>",
            "<div><span>never closed</div>",
            "<div><b><i>wrong order</b></i></div>",
            "<a href=/1>one<a href=/2>two",
            "<br><img src=x><hr/>",
            "<svg><path d='M0'/><g><use/></g></svg>",
            "<script>'<div><div><div>'</script>",
            "<style>/* <div> */</style>",
            "<!-- <div> --><!doctype html>",
            "<p title='<div>'>a</p>",
            "a < b <3",
            "<select><option>a<option>b</select>",
            "</div></p>",
        ] {
            assert_eq!(checked(&unit.repeat(1_000)), Ok(()), "{unit}");
        }
    }

    #[test]
    fn bombs_do_not() {
        for (unit, why) in [
            ("<div>", Misshapen::TooDeep),
            ("<DIV class=a>", Misshapen::TooDeep),
            ("<b>", Misshapen::TooDeep),
            ("<x-y>", Misshapen::TooDeep),
            ("<div/>", Misshapen::TooDeep),
            // End tags of nothing that is open, or of what they cannot reach.
            ("<div></b>", Misshapen::TooDeep),
            ("<div><table></div>", Misshapen::TooDeep),
            ("<span><div></span>", Misshapen::TooDeep),
            ("<div title='</div>'>", Misshapen::TooDeep),
            ("<div><!-- </div> -->", Misshapen::TooDeep),
            ("<div><script></div></script>", Misshapen::TooDeep),
            ("<p>a</p>", Misshapen::TooMany),
        ] {
            assert_eq!(checked(&unit.repeat(20_000)), Err(why), "{unit}");
        }
        // Formatting that is opened again in each paragraph makes many elements of few tags.
        let reopened = format!("{}{}", "<b><i><u><s><em><tt>".repeat(10), "<p>a</p>".repeat(1_000));
        assert_eq!(checked(&reopened), Err(Misshapen::TooMany));
        assert_eq!(checked(&"<p>a</p>".repeat(1_000)), Ok(()));
    }

    #[test]
    fn what_is_cut_anywhere_is_read_to_its_end() {
        let page = "<!-- c --><div class='a b'><script>x</script><style>y</style></div a=b><p/>&<";
        for end in 0..=page.len() {
            assert_eq!(checked(&page[..end]), Ok(()), "{}", &page[..end]);
        }
    }
}
