//! The first bytes of a document, searched for what they say of themselves before anything is decoded.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::label;

/// How far a browser looks, and so what authors keep to.
const PRESCAN_BYTES: usize = 1_024;

/// UTF-16 by its first two characters, which in a document are ASCII: `<h`, `<!`, `<?`.
pub(super) fn utf16_without_mark(document: &[u8]) -> Option<&'static Encoding> {
    let printable = |octet: u8| (b' '..0x7f).contains(&octet);
    match document.first_chunk()? {
        [b'<', 0, next, 0] if printable(*next) => Some(UTF_16LE),
        [0, b'<', 0, next] if printable(*next) => Some(UTF_16BE),
        _ => None,
    }
}

/// The encoding that a `<meta>` or an XML declaration names, by the HTML standard's prescan. It knows comments, tags
/// and their attributes, and nothing of scripts.
pub(super) fn declared(document: &[u8]) -> Option<&'static Encoding> {
    let bytes = &document[..document.len().min(PRESCAN_BYTES)];
    let mut at = 0;
    while let Some(mark) = memchr::memchr(b'<', &bytes[at..]) {
        let tag = at + mark;
        let rest = &bytes[tag..];
        at = if rest.starts_with(b"<!--") {
            // The two hyphens that open it may close it.
            tag + 2 + memchr::memmem::find(&rest[2..], b"-->").map_or(rest.len(), |end| end + 3)
        } else if is_meta(rest) {
            let mut attributes = Attributes { bytes, at: tag + 5 };
            if let Some(encoding) = meta(&mut attributes) {
                return Some(encoding);
            }
            attributes.at
        } else if matches!(rest, [b'<', b'/', letter, ..] | [b'<', letter, ..] if letter.is_ascii_alphabetic())
        {
            let name_end = rest.iter().position(|octet| octet.is_ascii_whitespace() || *octet == b'>');
            let mut attributes = Attributes { bytes, at: tag + name_end.unwrap_or(rest.len()) };
            while attributes.next().is_some() {}
            attributes.at
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            tag + memchr::memchr(b'>', rest).map_or(rest.len(), |end| end + 1)
        } else {
            tag + 1
        };
        if at >= bytes.len() {
            break;
        }
    }
    xml_declaration(bytes)
}

fn is_meta(rest: &[u8]) -> bool {
    rest.get(1..5).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
        && rest.get(5).is_some_and(|next| next.is_ascii_whitespace() || *next == b'/')
}

fn meta(attributes: &mut Attributes<'_>) -> Option<&'static Encoding> {
    let (mut charset, mut http_equiv, mut content) = (None, None, None);
    while let Some((name, value)) = attributes.next() {
        let slot = match () {
            () if name.eq_ignore_ascii_case(b"charset") => &mut charset,
            () if name.eq_ignore_ascii_case(b"http-equiv") => &mut http_equiv,
            () if name.eq_ignore_ascii_case(b"content") => &mut content,
            () => continue,
        };
        // The first of a name counts.
        slot.get_or_insert(value);
    }
    let pragma = http_equiv.is_some_and(|value| value.eq_ignore_ascii_case(b"content-type"));
    let encoding = match (charset, content) {
        (Some(charset), _) => label::of_label(charset),
        (None, Some(content)) if pragma => label::of_meta_content(content),
        _ => None,
    };
    encoding.map(readable)
}

/// What can be read as bytes is not UTF-16, whatever it says.
fn readable(encoding: &'static Encoding) -> &'static Encoding {
    match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    }
}

fn xml_declaration(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let end = memchr::memchr(*quote, value)?;
    label::of_label(&value[..end]).map(readable)
}

/// The attributes of a tag, as the prescan reads them.
struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    /// The next name and value; none at the end of the tag or of the bytes, where `at` then is.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.skip(|octet| octet.is_ascii_whitespace() || octet == b'/');
        if self.peek()? == b'>' {
            self.at += 1;
            return None;
        }
        let name_start = self.at;
        // A `=` may open a name.
        self.at += 1;
        self.skip(|octet| !octet.is_ascii_whitespace() && !matches!(octet, b'/' | b'>' | b'='));
        let name = &self.bytes[name_start..self.at];
        self.skip(|octet| octet.is_ascii_whitespace());
        if self.peek()? != b'=' {
            return Some((name, b""));
        }
        self.at += 1;
        self.skip(|octet| octet.is_ascii_whitespace());
        let value = match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let start = self.at;
                self.skip(|octet| octet != quote);
                let value = &self.bytes[start..self.at];
                // A value that is cut off is none.
                self.peek()?;
                self.at += 1;
                value
            }
            _ => {
                let start = self.at;
                self.skip(|octet| !octet.is_ascii_whitespace() && octet != b'>');
                self.peek()?;
                &self.bytes[start..self.at]
            }
        };
        Some((name, value))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, in_run: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&in_run) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations() {
        for (text, expected) in [
            ("<meta charset=windows-1251>", "windows-1251"),
            ("<!doctype html><html lang='>'><META\nCharSet = \"Shift_JIS\" />", "Shift_JIS"),
            ("<meta/charset='euc-kr'>", "EUC-KR"),
            ("<meta http-equiv=Content-Type content='text/html; charset=gbk'>", "GBK"),
            ("<meta content='text/html; charset=big5' http-equiv=\"content-type\">", "Big5"),
            ("<meta name=x content='charset=big5'><meta charset=koi8-u>", "KOI8-U"),
            ("<meta content='charset=big5'>", ""),
            ("<meta charset=nonsense><meta charset=koi8-r>", "KOI8-R"),
            ("<meta charset=koi8-r charset=big5>", "KOI8-R"),
            ("<meta charset=utf-16le>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<meta charset=utf-7>", ""),
            ("<!-- <meta charset=big5> --><meta charset=koi8-r>", "KOI8-R"),
            ("<!--><meta charset=big5>", "Big5"),
            ("<a title='<meta charset=big5>'><meta charset=koi8-r>", "KOI8-R"),
            ("<! <meta charset=big5><meta charset=koi8-r>", "KOI8-R"),
            ("<metadata charset=big5>", ""),
            ("<meta charset='big5", ""),
            ("<meta charset=big5", ""),
            ("1 < 2 <meta charset=big5>", "Big5"),
            ("<?xml version='1.0' encoding=\"windows-1250\"?><html>", "windows-1250"),
            ("<?xml encoding='windows-1250'?><meta charset=koi8-r>", "KOI8-R"),
            ("<?xml version='1.0'?>", ""),
            ("<", ""),
            ("", ""),
        ] {
            assert_eq!(declared(text.as_bytes()).map_or("", Encoding::name), expected, "{text}");
            for cut in 0..text.len() {
                let _ = declared(&text.as_bytes()[..cut]);
            }
        }
    }

    #[test]
    fn a_meta_past_the_first_kibibyte_is_not_seen() {
        let meta = "<meta charset=koi8-r>";
        let page = |before: usize| format!("{}{meta}", " ".repeat(before));
        assert_eq!(declared(page(1_024 - meta.len()).as_bytes()).map(Encoding::name), Some("KOI8-R"));
        assert_eq!(declared(page(1_024 - meta.len() + 1).as_bytes()), None);
    }

    #[test]
    fn two_characters_tell_utf_16() {
        assert_eq!(utf16_without_mark(b"<\0h\0"), Some(UTF_16LE));
        assert_eq!(utf16_without_mark(b"\0<\0!"), Some(UTF_16BE));
        for bytes in [&b"<html"[..], b"<\0\0\0", b"\0\0\0<", b"<\0h", b""] {
            assert_eq!(utf16_without_mark(bytes), None);
        }
    }
}
