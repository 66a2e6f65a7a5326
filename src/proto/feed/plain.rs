//! HTML as plain text: what a title says, without how it is to look.

use super::entities;
use std::borrow::Cow;

/// Elements whose text is none of a title.
const UNSEEN: [&str; 2] = ["script", "style"];

/// Elements that stand in the middle of a word without parting it, and others that titles have.
const INLINE: &str = "a abbr acronym b bdo big cite code del em font i ins s small span strong sub sup tt u";
const OTHERS: &str = "blockquote br center dfn div h1 h2 h3 h4 hr img kbd label li nobr ol p pre q samp script strike \
    style table td tr ul var wbr";

/// A text of a feed as plain text: markup taken out and references undone if it `is_html`, control characters and marks
/// that turn text around taken out, one blank between words.
pub fn plain<'a>(text: Cow<'a, str>, is_html: bool) -> Cow<'a, str> {
    let has_markup = is_html && memchr::memchr2(b'<', b'&', text.as_bytes()).is_some();
    if has_markup {
        return Cow::Owned(in_one_line(&entities::decode(&without_tags(&text))));
    }
    match text {
        Cow::Borrowed(text) => {
            let text = text.trim();
            if is_in_one_line(text) { Cow::Borrowed(text) } else { Cow::Owned(in_one_line(text)) }
        }
        Cow::Owned(text) => {
            let is_clean = is_in_one_line(&text) && text.trim().len() == text.len();
            Cow::Owned(if is_clean { text } else { in_one_line(&text) })
        }
    }
}

/// Whether a text looks like HTML where nobody says whether it is: with a tag that closes, or a reference.
pub(super) fn looks_like_html(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_tag = || {
        memchr::memchr_iter(b'<', bytes).any(|at| {
            let name = tag_name(&text[at + 1..]);
            is_known(name) && memchr::memchr(b'>', &bytes[at..]).is_some()
        })
    };
    match memchr::memchr2(b'<', b'&', bytes) {
        None => false,
        Some(_) => has_tag() || matches!(entities::decode(text), Cow::Owned(decoded) if decoded != text),
    }
}

fn is_known(name: &str) -> bool {
    is_inline(name) || OTHERS.split(' ').any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether words go on across a tag of this name.
pub(super) fn is_inline(name: &str) -> bool {
    INLINE.split(' ').any(|inline| name.eq_ignore_ascii_case(inline))
}

/// The name after a `<` or `</`; empty if it is no tag.
fn tag_name(after: &str) -> &str {
    let after = after.strip_prefix('/').unwrap_or(after);
    match after.as_bytes().first() {
        Some(octet) if octet.is_ascii_alphabetic() => {
            &after[..after.bytes().position(|octet| !octet.is_ascii_alphanumeric()).unwrap_or(after.len())]
        }
        _ => "",
    }
}

/// Takes tags and comments out. Those that part words leave a blank.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = memchr::memchr(b'<', rest.as_bytes()) {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let after = &rest[1..];
        let end = if let Some(comment) = after.strip_prefix("!--") {
            comment.find("-->").map(|end| 4 + end + 3)
        } else if after.starts_with(['!', '?', '/']) || !tag_name(after).is_empty() {
            after.find('>').map(|end| 1 + end + 1)
        } else {
            None
        };
        let Some(end) = end else {
            out.push('<');
            rest = after;
            continue;
        };
        let name = tag_name(after);
        if !is_inline(name) {
            out.push(' ');
        }
        rest = &rest[end..];
        if let Some(unseen) = UNSEEN.iter().find(|unseen| name.eq_ignore_ascii_case(unseen))
            && !after.starts_with('/')
        {
            rest = &rest[end_of(unseen, rest)..];
        }
    }
    out.push_str(rest);
    out
}

/// Where the end tag of an element begins.
fn end_of(name: &str, text: &str) -> usize {
    memchr::memchr_iter(b'<', text.as_bytes())
        .find(|at| text[at + 1..].starts_with('/') && tag_name(&text[at + 1..]).eq_ignore_ascii_case(name))
        .unwrap_or(text.len())
}

/// Marks that turn text around, and what cannot be seen at all.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        || (c.is_control() && !c.is_whitespace())
}

fn is_in_one_line(text: &str) -> bool {
    // Plain ASCII, which is most of them, is looked at as bytes, many at once as nothing ends it.
    let bytes = text.as_bytes();
    let is_plain = bytes.iter().fold(true, |is_plain, octet| is_plain & (b' '..0x7f).contains(octet))
        || text.chars().all(|c| !is_unseen(c) && (c == ' ' || !c.is_whitespace()));
    let behind = bytes.get(1..).unwrap_or_default();
    is_plain && !bytes.iter().zip(behind).fold(false, |two, pair| two | (pair == (&b' ', &b' ')))
}

fn in_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        if c.is_whitespace() {
            blank = !out.is_empty();
        } else if !is_unseen(c) {
            if std::mem::take(&mut blank) {
                out.push(' ');
            }
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_as_plain_text() {
        for (html, expected) in [
            ("Plain title", "Plain title"),
            ("  two\n\tlines ", "two lines"),
            ("<b>Bold</b> and <i>ital</i>ic", "Bold and italic"),
            ("one<br/>two<p>three</p>", "one two three"),
            ("AT&amp;T &nbsp;&copy; 3 &lt; 4", "AT&T © 3 < 4"),
            ("a < b > c <3", "a < b > c <3"),
            ("x<!-- no -->y<script>alert('<b>')</script>z<style>p{}", "x y z"),
            ("<img src='x' alt='>'>", "'>"),
            ("open <b", "open <b"),
            ("bell\u{7} \u{1b}[31mred\u{9b}1m \u{202e}evil\u{202c}", "bell [31mred1m evil"),
            ("soft\u{ad}hyphen zero\u{200b}width", "softhyphen zerowidth"),
            ("शिक्षा में\u{a0}नया", "शिक्षा में नया"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(plain(Cow::Borrowed(html), true), expected, "{html}");
            assert_eq!(plain(Cow::Owned(html.to_string()), true), expected, "{html}");
        }
        assert!(matches!(plain(Cow::Borrowed(" Grüße "), true), Cow::Borrowed("Grüße")));
        assert_eq!(plain(Cow::Borrowed("a <b>&amp;  c"), false), "a <b>&amp; c");
    }

    #[test]
    fn what_looks_like_html() {
        for (text, expected) in [
            ("a <b>c</b>", true),
            ("a<br>b", true),
            ("AT&amp;T", true),
            ("x &#8211; y", true),
            ("a < b", false),
            ("generics: Vec<T>", false),
            ("the <title> tag", false),
            ("R&D", false),
            ("<b unclosed", false),
            ("", false),
        ] {
            assert_eq!(looks_like_html(text), expected, "{text}");
        }
    }
}
