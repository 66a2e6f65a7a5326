//! What a page says about itself: names and values of `meta`, dates of `time`, JSON-LD.

use super::tag::{Attributes, ends_tag_name, skip};
use super::{raw_text, value};
use std::borrow::Cow;

/// One finding, in page order. Values are as written, character references decoded as far as links need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// `<meta name|property|itemprop content>`.
    Meta { name: Cow<'a, [u8]>, content: Cow<'a, [u8]> },
    /// `<time datetime>`.
    Time(Cow<'a, [u8]>),
    /// `<script type=application/ld+json>`.
    JsonLd(&'a [u8]),
}

/// Shows what a page says about itself.
pub fn about<'a>(body: &'a [u8], mut sink: impl FnMut(About<'a>)) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &body[at..]) {
        match read(body, at + found + 1, &mut sink) {
            Some(next) => at = next,
            None => return,
        }
    }
}

fn read<'a>(body: &'a [u8], after: usize, sink: &mut impl FnMut(About<'a>)) -> Option<usize> {
    let first = *body.get(after)?;
    if body[after..].starts_with(b"!--") {
        return raw_text::comment_end(body, after + 3);
    }
    if matches!(first, b'!' | b'?') {
        return raw_text::bogus_comment_end(body, after);
    }
    if !first.is_ascii_alphabetic() {
        return Some(after);
    }
    let name_end = after + body[after..].iter().position(|&octet| ends_tag_name(octet))?;
    let name = &body[after..name_end];
    let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
    let attributes = Attributes::new(body, name_end);
    if is(b"meta") {
        let ([name, property, itemprop, content], close) =
            attributes.collect([b"name", b"property", b"itemprop", b"content"])?;
        if let (Some(name), Some(content)) = (property.or(name).or(itemprop), content) {
            sink(About::Meta { name: value::decode(name), content: value::decode(content) });
        }
        Some(close.end)
    } else if is(b"time") {
        let ([datetime], close) = attributes.collect([b"datetime"])?;
        if let Some(datetime) = datetime {
            sink(About::Time(value::decode(datetime)));
        }
        Some(close.end)
    } else if is(b"script") {
        let ([kind], close) = attributes.collect([b"type"])?;
        let end = raw_text::script_end(body, close.end)?;
        if kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/ld+json")) {
            let text = &body[close.end..end];
            let text_end = memchr::memrchr(b'<', text).unwrap_or(text.len());
            sink(About::JsonLd(&text[..text_end]));
        }
        Some(end)
    } else if is(b"style") {
        raw_text::raw_text_end(body, skip(body, name_end)?.end, b"style")
    } else {
        Some(skip(body, name_end)?.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(page: &str) -> String {
        let mut lines = Vec::new();
        about(page.as_bytes(), |about| {
            lines.push(match about {
                About::Meta { name, content } => {
                    format!("{}={}", name.escape_ascii(), content.escape_ascii())
                }
                About::Time(time) => format!("time {}", time.escape_ascii()),
                About::JsonLd(json) => format!("json {}", json.escape_ascii()),
            });
        });
        lines.join(" | ")
    }

    #[test]
    fn samples() {
        for (page, expected) in [
            (
                "<meta property='article:published_time' content=2024-01-02>",
                "article:published_time=2024-01-02",
            ),
            ("<META NAME=date CONTENT='a &amp; b'><meta name=x>", "date=a & b"),
            (
                "<!-- <meta name=a content=b> --><time datetime='2024-01-02T03:04Z'>x</time>",
                "time 2024-01-02T03:04Z",
            ),
            ("<script>'<meta name=a content=b>'</script><style><time datetime=1></style>", ""),
            ("<script type=\"application/ld+json\">{\"a\":1}</script>", r#"json {\"a\":1}"#),
            ("<script type=application/ld+json>{", ""),
            ("<meta name=a", ""),
        ] {
            assert_eq!(told(page), expected, "{page}");
        }
    }
}
