//! The pass over a page.

use super::fact::{Element, Fact, RobotsMeta};
use super::tag::{Attributes, Close, ends_tag_name, skip};
use super::{meta, raw_text, value, words};

/// Tells `sink` the facts of a page, in page order.
pub fn scan<'a, F: FnMut(Fact<'a>)>(body: &'a [u8], sink: F) {
    scan_as(b"", body, sink);
}

/// The same for whoever `agent` is our name: `<meta name=agent>` is for us as `<meta name=robots>` is.
pub fn scan_as<'a, F: FnMut(Fact<'a>)>(agent: &[u8], body: &'a [u8], mut sink: F) {
    let mut scanner = Scanner { body, agent, base_told: false, canonical_told: false, in_foreign: false };
    let mut at = 0;
    while let Some(open) = words::find(b'<', body, at) {
        match scanner.markup_end(open, &mut sink) {
            Some(end) => at = end,
            None => return,
        }
    }
}

struct Scanner<'a, 'n> {
    body: &'a [u8],
    /// Our name; empty for none.
    agent: &'n [u8],
    base_told: bool,
    /// Or it is too late for one: the body has begun.
    canonical_told: bool,
    /// Inside svg or math, where raw text elements can close themselves.
    in_foreign: bool,
}

/// Elements whose content is text. Small, so that a [`Tag`] is returned in registers: it is asked for at every tag
/// of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawText {
    Style,
    Textarea,
    Title,
    Xmp,
    Noembed,
    Noframes,
    Iframe,
}

impl RawText {
    fn name(self) -> &'static [u8] {
        match self {
            RawText::Style => b"style",
            RawText::Textarea => b"textarea",
            RawText::Title => b"title",
            RawText::Xmp => b"xmp",
            RawText::Noembed => b"noembed",
            RawText::Noframes => b"noframes",
            RawText::Iframe => b"iframe",
        }
    }
}

const _: () = assert!(size_of::<Tag>() <= 2, "a tag goes into a register");

/// What a start tag's name means to the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// Its `href` is a link.
    Href(Element),
    /// Its `src` is a link.
    Src(Element),
    Base,
    Meta,
    Body,
    /// svg, math.
    Foreign,
    /// Text up to the end tag of its own name.
    RawText(RawText),
    Script,
    /// Text up to the end of the page.
    Plaintext,
    Other,
}

impl<'a> Scanner<'a, '_> {
    /// Reads what opens at the `<` at `open` and returns where it ends; None at the end of the page.
    #[inline]
    fn markup_end<F: FnMut(Fact<'a>)>(&mut self, open: usize, sink: &mut F) -> Option<usize> {
        let body = self.body;
        let name_start = open + 1;
        match *body.get(name_start)? {
            octet if octet.is_ascii_alphabetic() => {
                let (tag, name_end) = read_name(body, name_start)?;
                match tag {
                    Tag::Other => Some(skip(body, name_end)?.end),
                    tag => self.start_tag(tag, name_end, sink),
                }
            }
            b'/' => {
                let name_start = name_start + 1;
                match *body.get(name_start)? {
                    octet if octet.is_ascii_alphabetic() => self.end_tag_end(name_start),
                    _ => raw_text::bogus_comment_end(body, name_start),
                }
            }
            b'!' if body[name_start..].starts_with(b"!--") => {
                raw_text::comment_end(body, name_start + b"!--".len())
            }
            b'!' | b'?' => raw_text::bogus_comment_end(body, name_start),
            _ => Some(name_start),
        }
    }

    #[inline]
    fn end_tag_end(&mut self, name_start: usize) -> Option<usize> {
        // Nearly all end tags have no attributes, and few stand where their name matters.
        let mark = words::find2(b'=', b'>', self.body, name_start)?;
        if self.body[mark] == b'>' && !self.in_foreign {
            return Some(mark + 1);
        }
        let (tag, name_end) = read_name(self.body, name_start)?;
        let close = skip(self.body, name_end)?;
        self.in_foreign &= tag != Tag::Foreign;
        Some(close.end)
    }

    /// Tells the facts of a tag that has some, and passes over the raw text that it may open.
    fn start_tag<F: FnMut(Fact<'a>)>(&mut self, tag: Tag, name_end: usize, sink: &mut F) -> Option<usize> {
        let attributes = Attributes::new(self.body, name_end);
        match tag {
            Tag::Href(element) => {
                let ([href, rel], close) = attributes.collect([b"href", b"rel"])?;
                if let Some(href) = href
                    && href_link(element, href, rel, sink)
                    && !self.canonical_told
                {
                    self.canonical_told = true;
                    sink(Fact::Canonical(value::target(href)));
                }
                Some(close.end)
            }
            Tag::Src(element) => {
                let ([src], close) = attributes.collect([b"src"])?;
                if let Some(src) = src {
                    sink(Fact::Link { element, target: value::target(src), nofollow: false });
                }
                match element {
                    Element::Iframe => self.text_end(Tag::RawText(RawText::Iframe), close),
                    _ => Some(close.end),
                }
            }
            Tag::Base => {
                let ([href], close) = attributes.collect([b"href"])?;
                if let Some(href) = href
                    && !self.base_told
                {
                    self.base_told = true;
                    sink(Fact::Base(value::target(href)));
                }
                Some(close.end)
            }
            Tag::Meta => {
                let ([http_equiv, name, content], close) =
                    attributes.collect([b"http-equiv", b"name", b"content"])?;
                if let Some(content) = content {
                    meta_facts(self.agent, http_equiv, name, content, sink);
                }
                Some(close.end)
            }
            Tag::Body => {
                self.canonical_told = true;
                Some(skip(self.body, name_end)?.end)
            }
            Tag::Foreign => {
                let close = skip(self.body, name_end)?;
                self.in_foreign |= !close.self_closing;
                Some(close.end)
            }
            Tag::RawText(_) | Tag::Script => {
                let close = skip(self.body, name_end)?;
                self.text_end(tag, close)
            }
            Tag::Plaintext => None,
            Tag::Other => Some(skip(self.body, name_end)?.end),
        }
    }

    fn text_end(&self, tag: Tag, close: Close) -> Option<usize> {
        match tag {
            _ if self.in_foreign && close.self_closing => Some(close.end),
            Tag::RawText(element) => raw_text::raw_text_end(self.body, close.end, element.name()),
            Tag::Script => raw_text::script_end(self.body, close.end),
            _ => Some(close.end),
        }
    }
}

/// Tells a link, and returns whether it names the page itself.
fn href_link<'a, F: FnMut(Fact<'a>)>(
    element: Element,
    href: &'a [u8],
    rel: Option<&[u8]>,
    sink: &mut F,
) -> bool {
    let rel = rel.map(value::decode);
    let has = |token: &[u8]| rel.as_ref().is_some_and(|rel| value::has_token(rel, token));
    // A link element without a rel links nothing, and these two name an origin, not a document.
    let is_document =
        element != Element::Link || rel.is_some() && !has(b"dns-prefetch") && !has(b"preconnect");
    if is_document {
        sink(Fact::Link { element, target: value::target(href), nofollow: has(b"nofollow") });
    }
    element == Element::Link && has(b"canonical")
}

fn meta_facts<'a, F: FnMut(Fact<'a>)>(
    agent: &[u8],
    http_equiv: Option<&[u8]>,
    name: Option<&[u8]>,
    content: &'a [u8],
    sink: &mut F,
) {
    let says = |raw: Option<&[u8]>, word: &[u8]| {
        raw.is_some_and(|raw| value::decode(raw).eq_ignore_ascii_case(word))
    };
    if says(http_equiv, b"refresh")
        && let Some((delay_s, target)) = meta::refresh(content)
    {
        sink(Fact::Refresh { delay_s, target });
    }
    if says(name, b"robots") || (!agent.is_empty() && says(name, agent)) {
        let forbidden = meta::robots(content);
        if forbidden != RobotsMeta::default() {
            sink(Fact::Robots(forbidden));
        }
    }
}

/// Reads a tag's name, which opens with a letter, and returns the byte after it.
#[inline]
fn read_name(body: &[u8], start: usize) -> Option<(Tag, usize)> {
    if let Some(word) = words::word(body, start) {
        let ends = words::equal(word, b'>') | words::equal(word, b'/') | words::below(word, b' ' + 1);
        let name_bytes = words::first(ends);
        // A control character may be part of a name; that is rare enough for the long way.
        if name_bytes < 8 && ends_tag_name(body[start + name_bytes]) {
            let name = word & !(u64::MAX << (8 * name_bytes));
            return Some((tag_of(name | CASE & !(u64::MAX << (8 * name_bytes))), start + name_bytes));
        }
    }
    read_long_name(body, start)
}

fn read_long_name(body: &[u8], start: usize) -> Option<(Tag, usize)> {
    let name_bytes = body[start..].iter().position(|&octet| ends_tag_name(octet))?;
    let end = start + name_bytes;
    let name = &body[start..end];
    let tag = match name_bytes {
        ..=8 => tag_of(pack(name) | CASE & (u64::MAX >> (64 - 8 * name_bytes))),
        _ if name.eq_ignore_ascii_case(b"plaintext") => Tag::Plaintext,
        _ => Tag::Other,
    };
    Some((tag, end))
}

/// The bit that is set in lower-case letters. Setting it makes letters of nothing but letters.
const CASE: u64 = u64::from_le_bytes([0x20; 8]);

/// The tags that matter, each in the slot of its packed name.
static TAGS: [(u64, Tag); 1 << TAG_SLOT_BITS] = {
    let tags: [(&[u8], Tag); 17] = [
        (b"a", Tag::Href(Element::A)),
        (b"area", Tag::Href(Element::Area)),
        (b"link", Tag::Href(Element::Link)),
        (b"frame", Tag::Src(Element::Frame)),
        (b"iframe", Tag::Src(Element::Iframe)),
        (b"base", Tag::Base),
        (b"meta", Tag::Meta),
        (b"body", Tag::Body),
        (b"svg", Tag::Foreign),
        (b"math", Tag::Foreign),
        (b"script", Tag::Script),
        (b"style", Tag::RawText(RawText::Style)),
        (b"textarea", Tag::RawText(RawText::Textarea)),
        (b"title", Tag::RawText(RawText::Title)),
        (b"xmp", Tag::RawText(RawText::Xmp)),
        (b"noembed", Tag::RawText(RawText::Noembed)),
        (b"noframes", Tag::RawText(RawText::Noframes)),
    ];
    let mut slots = [(0, Tag::Other); 1 << TAG_SLOT_BITS];
    let mut index = 0;
    while index < tags.len() {
        let packed = pack(tags[index].0);
        assert!(slots[tag_slot(packed)].0 == 0, "two names share a slot: choose another TAG_SLOT_FACTOR");
        slots[tag_slot(packed)] = (packed, tags[index].1);
        index += 1;
    }
    slots
};

const TAG_SLOT_BITS: u32 = 5;
/// Found by trial: it gives each name of `TAGS` a slot of its own.
const TAG_SLOT_FACTOR: u64 = 0x1a26_f889_3870_3801;

const fn tag_slot(packed: u64) -> usize {
    (packed.wrapping_mul(TAG_SLOT_FACTOR) >> (u64::BITS - TAG_SLOT_BITS)) as usize
}

/// What a name means, packed in lower case. One comparison, because most names mean nothing and a decision
/// tree over so many of them is hard to foresee.
#[inline]
fn tag_of(packed: u64) -> Tag {
    let (name, tag) = TAGS[tag_slot(packed)];
    if name == packed { tag } else { Tag::Other }
}

/// A name as a word, its first byte lowest.
const fn pack(name: &[u8]) -> u64 {
    assert!(name.len() <= 8);
    let mut packed = 0u64;
    let mut index = 0;
    while index < name.len() {
        packed |= (name[index] as u64) << (8 * index);
        index += 1;
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts, one a line: `a /x`, `a! /x` for nofollow, `base /x`, `canonical /x`, `refresh 5 /x`,
    /// `robots nofollow noindex`.
    fn facts(page: &[u8]) -> String {
        let mut lines = Vec::new();
        scan(page, |fact| {
            lines.push(match fact {
                Fact::Base(target) => format!("base {}", target.escape_ascii()),
                Fact::Canonical(target) => format!("canonical {}", target.escape_ascii()),
                Fact::Link { element, target, nofollow } => {
                    let element = format!("{element:?}").to_lowercase();
                    format!("{element}{} {}", if nofollow { "!" } else { "" }, target.escape_ascii())
                }
                Fact::Refresh { delay_s, target } => format!("refresh {delay_s} {}", target.escape_ascii()),
                Fact::Robots(RobotsMeta { nofollow, noindex }) => {
                    format!(
                        "robots{}{}",
                        if nofollow { " nofollow" } else { "" },
                        if noindex { " noindex" } else { "" }
                    )
                }
            });
        });
        lines.join("\n")
    }

    #[test]
    fn samples() {
        for (page, expected) in [
            ("", ""),
            ("text < 3 <3 <", ""),
            ("<a href=/x>", "a /x"),
            ("<A\nHREF='/x'\tREL='External NoFollow'>t</A>", "a! /x"),
            ("<a rel=nofollow href=\" /x?a=1&amp;b=2 \">", "a! /x?a=1&b=2"),
            ("<a href>", "a "),
            ("<a name=x>", ""),
            ("<abbr href=/x><article href=/y><areas href=/z>", ""),
            (
                "<area href=/x><frame src=/f><iframe src=/i><a href=/no></iframe>",
                "area /x\nframe /f\niframe /i",
            ),
            ("<a href=/x", ""),
            ("<a href='/x>", ""),
            ("<p title='<a href=/x>'><a href=/y>", "a /y"),
            ("<p <a href=/x><a href=/y>", "a /y"),
            ("<p title=<a href=/x><a href=/y>", "a /y"),
            ("</p title='<a href=/x>'><a href=/y>", "a /y"),
            ("</a href=/x>", ""),
            ("<link rel=stylesheet href=/s><link href=/n><link rel=Preconnect href=//o>", "link /s"),
            (
                "<link rel='dns-prefetch' href=//o><link rel='canonical nofollow' href=/c>",
                "link! /c\ncanonical /c",
            ),
            ("<link rel=Canonical href=/1><link rel=canonical href=/2>", "link /1\ncanonical /1\nlink /2"),
            ("<body><link rel=canonical href=/1>", "link /1"),
            ("<!-- <body> --><link rel='x canonical' href=/1>", "link /1\ncanonical /1"),
            ("<a rel=canonical href=/1><link rel=canonical>", "a /1"),
            ("<base target=x><base href=/1><base href=/2>", "base /1"),
            ("<base/href=/1/><BASE HREF=/2>", "base /1/"),
            ("<!-- <a href=/x> --><a href=/y>", "a /y"),
            ("<!--><a href=/y><!---><a href=/z>", "a /y\na /z"),
            ("<!-- <a href=/x>", ""),
            ("<!doctype html \"<a href=/x>\"><a href=/y>", "a /y"),
            ("<?php '<a href=/x>' ?><a href=/y>", "a /y"),
            ("<![CDATA[<a href=/x>]]><a href=/y>", "a /y"),
            ("</ <a href=/x><a href=/y></><a href=/z>", "a /y\na /z"),
            ("<script>'<a href=/x>'</script><a href=/y>", "a /y"),
            ("<script src=/s></SCRIPT ><a href=/y>", "a /y"),
            ("<script><!-- <script></script> <a href=/x> --></script><a href=/y>", "a /y"),
            (
                "<style><a href=/x></style><textarea><a href=/x></textarea><title><a href=/x></title><a href=/y>",
                "a /y",
            ),
            (
                "<xmp><a href=/x></xmp><noembed><a href=/x></noembed><noframes><a href=/x></noframes><a href=/y>",
                "a /y",
            ),
            ("<noscript><a href=/x></noscript><template><a href=/y></template>", "a /x\na /y"),
            ("<title><a href=/x>", ""),
            ("<title/><a href=/x></title><a href=/y>", "a /y"),
            ("<svg><title/><a href=/x></svg><title/><a href=/y>", "a /x"),
            ("<svg/><title/><a href=/x>", ""),
            ("<a href=/x><PlainText><a href=/y></plaintext><a href=/z>", "a /x"),
            ("<meta http-equiv=Refresh content='5; url=/n'>", "refresh 5 /n"),
            ("<meta content=\"0;URL='/n?a&amp;b'\" http-equiv=refresh>", "refresh 0 /n?a&b"),
            ("<meta http-equiv=refresh content=31;url=/n><meta http-equiv=refresh content=5>", ""),
            (
                "<meta name=ROBOTS content='NOINDEX, nofollow'><meta name=robots content=none>",
                "robots nofollow noindex\nrobots nofollow noindex",
            ),
            (
                "<meta name=robots content=noindex><meta name=robots content=all><meta name=other content=none>",
                "robots noindex",
            ),
            ("<a href=/\u{fc}><a href='/a\n\tb'>", "a /\\xc3\\xbc\na /ab"),
        ] {
            assert_eq!(facts(page.as_bytes()), expected, "{page}");
        }
    }

    #[test]
    fn plain_targets_borrow_from_the_page() {
        scan(
            b"<a href=' /x '><a href=/y><base href=\"/b\"><meta http-equiv=refresh content='0;/r'>",
            |fact| {
                let (Fact::Link { target, .. } | Fact::Base(target) | Fact::Refresh { target, .. }) = fact
                else {
                    panic!("{fact:?}");
                };
                assert!(matches!(target, std::borrow::Cow::Borrowed(_)));
            },
        );
    }

    /// A scan that went back over its bytes would need some 10^12 steps for one of these.
    #[test]
    fn hostile_pages_take_one_pass() {
        for unit in [
            "<",
            "<a",
            "<a ",
            "<a href=",
            "<a href='",
            "<a href=x ",
            "</",
            "<!",
            "<!-",
            "<!--",
            "<!-->",
            "<!-- >",
            "-->",
            "<script",
            "<script>",
            "<script><!--",
            "<!--<script>",
            "</script",
            "<style>",
            "<style></style",
            "<title>",
            "<title></title ",
            "<textarea></",
            "<iframe>",
            "<svg><title/>",
            "<?",
            "<![CDATA[",
            "<p = ",
            "<p /",
            "&",
            "<a href=\"&#",
            "<meta http-equiv=refresh content='",
            "<a b c d e f g h",
            "<svg>",
            "--!",
            "<p\"",
            "=",
            " ",
        ] {
            for head in ["", "<script>", "<script><!--", "<title>", "<!--", "<a href='", "<a ", "<p "] {
                let page = [head, &unit.repeat((1 << 20) / unit.len())].concat();
                let mut count = 0;
                scan(page.as_bytes(), |_| count += 1);
                assert!(count <= page.len() / "<a href>".len(), "{head}{unit}");
            }
        }
    }
}
