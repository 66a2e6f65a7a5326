//! The promise: on any page, the facts are those that follow from the HTML standard's own tokens.
//!
//! A full tokenizer is the oracle. Its start tags, with every reference decoded, are turned into facts here
//! by the letter of the rules; pages are generated from pieces that get in each other's way, and then damaged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use html5gum::{State, Token, Tokenizer};
use proptest::prelude::*;

use super::fact::Element;
use super::{Fact, REFRESH_DELAY_S_MAX, RobotsMeta, scan};

type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

fn scanned(page: &[u8]) -> Vec<Fact<'_>> {
    let mut facts = Vec::new();
    scan(page, |fact| facts.push(fact));
    facts
}

fn expected(page: &[u8]) -> Vec<Fact<'static>> {
    let mut facts = Vec::new();
    let mut tokens = Tokenizer::new(page);
    let (mut told, mut in_foreign) = (Told::default(), false);
    while let Some(token) = tokens.next() {
        let tag = match token.expect("reading a slice cannot fail") {
            Token::StartTag(tag) => tag,
            Token::EndTag(tag) => {
                in_foreign &= !matches!(&**tag.name, b"svg" | b"math");
                continue;
            }
            _ => continue,
        };
        let attributes: Attributes =
            tag.attributes.iter().map(|(name, value)| (name.to_vec(), value.value.to_vec())).collect();
        start_tag(&tag.name, &attributes, &mut told, &mut facts);
        in_foreign |= matches!(&**tag.name, b"svg" | b"math") && !tag.self_closing;
        let text = match &**tag.name {
            b"plaintext" => Some(State::PlainText),
            _ if in_foreign && tag.self_closing => None,
            b"script" => Some(State::ScriptData),
            b"textarea" | b"title" => Some(State::RcData),
            b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
            _ => None,
        };
        if let Some(state) = text {
            tokens.set_state(state);
        }
    }
    facts
}

/// Facts that are told once.
#[derive(Default)]
struct Told {
    base: bool,
    canonical: bool,
}

fn start_tag(name: &[u8], attributes: &Attributes, told: &mut Told, facts: &mut Vec<Fact<'static>>) {
    let get = |name: &str| attributes.get(name.as_bytes());
    let is = |name: &str, word: &[u8]| get(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let rel: Vec<Vec<u8>> = get("rel")
        .map(|rel| rel.to_ascii_lowercase().split(u8::is_ascii_whitespace).map(<[u8]>::to_vec).collect())
        .unwrap_or_default();
    let has = |token: &[u8]| rel.iter().any(|found| found == token);
    let (element, source) = match name {
        b"a" => (Element::A, "href"),
        b"area" => (Element::Area, "href"),
        b"link" if get("rel").is_some() && !has(b"dns-prefetch") && !has(b"preconnect") => {
            (Element::Link, "href")
        }
        b"link" => {
            if let Some(href) = get("href")
                && has(b"canonical")
                && !std::mem::replace(&mut told.canonical, true)
            {
                facts.push(Fact::Canonical(target(href)));
            }
            return;
        }
        b"body" => {
            told.canonical = true;
            return;
        }
        b"frame" => (Element::Frame, "src"),
        b"iframe" => (Element::Iframe, "src"),
        b"base" => {
            if let Some(href) = get("href")
                && !std::mem::replace(&mut told.base, true)
            {
                facts.push(Fact::Base(target(href)));
            }
            return;
        }
        b"meta" => {
            let Some(content) = get("content") else { return };
            if is("http-equiv", b"refresh")
                && let Some((delay_s, url)) = refresh(content)
                && delay_s <= REFRESH_DELAY_S_MAX
                && !target(&url).is_empty()
            {
                facts.push(Fact::Refresh { delay_s, target: target(&url) });
            }
            let content = content.to_ascii_lowercase();
            let words: Vec<_> = content.split(|octet| b", \t\n\r\x0c".contains(octet)).collect();
            let says = |word: &[u8]| words.contains(&word) || words.contains(&b"none".as_slice());
            let meta = RobotsMeta { nofollow: says(b"nofollow"), noindex: says(b"noindex") };
            if is("name", b"robots") && (meta.nofollow || meta.noindex) {
                facts.push(Fact::Robots(meta));
            }
            return;
        }
        _ => return,
    };
    if let Some(value) = get(source) {
        let nofollow = source == "href" && has(b"nofollow");
        facts.push(Fact::Link { element, target: target(value), nofollow });
        if element == Element::Link && has(b"canonical") && !std::mem::replace(&mut told.canonical, true) {
            facts.push(Fact::Canonical(target(value)));
        }
    }
}

fn target(decoded: &[u8]) -> Cow<'static, [u8]> {
    let kept = decoded.trim_ascii().iter().copied().filter(|octet| !b"\t\r\n".contains(octet));
    Cow::Owned(kept.collect())
}

/// The standard's refresh steps, one by one on a shrinking input.
fn refresh(content: &[u8]) -> Option<(u32, Vec<u8>)> {
    fn take(input: &mut &[u8], wanted: impl Fn(u8) -> bool) -> Vec<u8> {
        let mut taken = Vec::new();
        while let [first, rest @ ..] = *input
            && wanted(*first)
        {
            taken.push(*first);
            *input = rest;
        }
        taken
    }
    let space = |octet: u8| octet.is_ascii_whitespace();
    let mut input = content;
    take(&mut input, space);
    let digits = take(&mut input, |octet| octet.is_ascii_digit());
    if digits.is_empty() && !input.starts_with(b".") {
        return None;
    }
    let delay_s = format!("0{}", String::from_utf8_lossy(&digits)).parse().unwrap_or(u32::MAX);
    take(&mut input, |octet| octet.is_ascii_digit() || octet == b'.');
    if let Some(&next) = input.first() {
        if !space(next) && next != b';' && next != b',' {
            return None;
        }
        take(&mut input, space);
        if let [b';' | b',', rest @ ..] = input {
            input = rest;
        }
        take(&mut input, space);
    }
    let whole = input.to_vec();
    if let [b'u' | b'U', rest @ ..] = input {
        let [b'r' | b'R', b'l' | b'L', rest @ ..] = rest else {
            return Some((delay_s, whole));
        };
        input = rest;
        take(&mut input, space);
        let [b'=', rest @ ..] = input else {
            return Some((delay_s, whole));
        };
        input = rest;
        take(&mut input, space);
    }
    let url = match input {
        [quote @ (b'\'' | b'"'), rest @ ..] => rest.split(|octet| octet == quote).next().unwrap_or(rest),
        _ => input,
    };
    Some((delay_s, url.to_vec()))
}

fn piece() -> impl Strategy<Value = String> {
    let one_of = |pieces: &'static [&'static str]| prop::sample::select(pieces).prop_map(str::to_owned);
    prop_oneof![
        4 => tag(),
        2 => one_of(&[
            "<!--", "-->", "--!>", "<!-->", "<!--->", "->", "--", "<!", "<?", "</", "</>", "<", ">", "<![CDATA[", "]]>", "<!doctype html>",
        ]),
        2 => one_of(&[
            "<script>", "</script>", "<SCRIPT", "</Script ", "<style>", "</style>", "<title>", "</title>", "<title/>", "<xmp>",
            "</xmp/", "<textarea>", "</textarea>", "<noembed>", "</noembed>", "<noframes>", "</noframes>", "</iframe>", "<noscript>",
            "<svg>", "<svg/>", "</svg>", "<math>", "</math>",
        ]),
        1 => one_of(&["text", " ", "\n", "\r\n", "\0", "=", "\"", "'", "/", "&", "a href=/z", "<plaintext>"]),
    ]
}

fn tag() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "a", "A", "area", "link", "LINK", "frame", "iframe", "base", "meta", "Meta", "p", "div", "abbr",
        "as", "/a", "svg", "body",
    ]);
    let close = prop::sample::select(vec![">", ">", ">", "/>", " />", " >", ""]);
    (name, prop::collection::vec(attribute(), 0..4), close)
        .prop_map(|(name, attributes, close)| format!("<{name}{}{close}", attributes.concat()))
}

fn attribute() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec![" ", " ", " ", "\n", "\t", "\r\n", "/", "\x0c", ""]);
    let name = prop::sample::select(vec![
        "href",
        "href",
        "HREF",
        "src",
        "rel",
        "Rel",
        "content",
        "content",
        "http-equiv",
        "name",
        "class",
        "class/",
        "=",
        "\"",
    ]);
    let equals = prop::sample::select(vec!["=", "=", "=", " = ", "=\n", "", "=="]);
    let quote = prop::sample::select(vec!["\"", "'", "", "\""]);
    let parts = prop::sample::select(vec![
        "/x",
        "x y",
        "&amp;",
        "&amp=",
        "&ltx",
        "&lt",
        "&gt;",
        "&quot;",
        "&apos;",
        "&#65;",
        "&#x2F",
        "&#128;",
        "&#10;",
        "&#0;",
        "&",
        "&#",
        "?q=1",
        "\t",
        " ",
        "nofollow",
        "NOFOLLOW ",
        "preconnect",
        "canonical",
        "refresh",
        "robots",
        "noindex,",
        "none",
        "5; url=",
        "0;URL='",
        "40;",
        "url",
        ">",
        "<a",
        "\0",
        "=",
        "é",
        ";",
    ]);
    let value = prop_oneof![
        prop::collection::vec(parts, 0..4).prop_map(|parts| parts.concat()),
        prop::sample::select(vec![
            "refresh",
            "robots",
            "stylesheet",
            "canonical",
            "nofollow",
            "5; url=/n",
            "noindex, nofollow"
        ])
        .prop_map(str::to_owned),
    ];
    (space, name, equals, quote, value)
        .prop_map(|(space, name, equals, quote, value)| format!("{space}{name}{equals}{quote}{value}{quote}"))
}

/// Bytes that turn one construct into another. No letters: they could spell a named reference that the
/// oracle knows and the scan leaves alone.
const DAMAGE: &[u8] = b"<>/=\"' -!&;#?1\n\t\r\x0c\0\xff";

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = (any::<prop::sample::Index>(), prop::sample::select(DAMAGE), any::<bool>());
    let page = prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat().into_bytes());
    (page, prop::collection::vec(damage, 0..6)).prop_map(|(mut page, damages)| {
        for (at, octet, insert) in damages {
            let at = at.index(page.len() + 1);
            if insert || at == page.len() {
                page.insert(at, octet);
            } else {
                page[at] = octet;
            }
        }
        page
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whole_pages_tell_the_same_facts(pieces in prop::collection::vec(piece(), 0..24)) {
        let page = pieces.concat();
        prop_assert_eq!(scanned(page.as_bytes()), expected(page.as_bytes()));
    }

    #[test]
    fn plain_tags_tell_the_same_facts(tags in prop::collection::vec(tag(), 0..12)) {
        let page = tags.concat();
        prop_assert_eq!(scanned(page.as_bytes()), expected(page.as_bytes()));
    }

    #[test]
    fn damaged_pages_tell_the_same_facts(page in damaged()) {
        prop_assert_eq!(scanned(&page), expected(&page), "{}", page.escape_ascii());
    }

    #[test]
    fn scripts_end_where_the_standard_ends_them(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<script>", "<script ", "</script>", "</script", "<!--", "-->", "--", "-", ">", "<", "<!", "!", "/", "x", "<a href=/x>",
        ]), 0..16),
    ) {
        let page = format!("<script>{}</script><a href=/y>", pieces.concat());
        prop_assert_eq!(scanned(page.as_bytes()), expected(page.as_bytes()));
    }

    #[test]
    fn random_bytes_do_no_harm(page in prop::collection::vec(any::<u8>(), 0..300)) {
        scanned(&page);
    }
}
