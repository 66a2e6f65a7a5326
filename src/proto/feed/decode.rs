//! The text of a feed, whatever charset it says and has.
//!
//! ```text
//!   byte order mark (UTF-8, 16, 32) ──► shape of the first bytes ──► header, declaration ──► UTF-8 ──► what fits
//! ```
//!
//! A charset that is named counts if the bytes can be read in it; else the next one does, as a wrong label is more common
//! than a damaged feed.

use crate::proto::charset::{CharsetReader, Encoding};
use std::borrow::Cow;

/// What is looked at for a declaration.
const DECLARATION_BYTES_MAX: usize = 512;

/// The text, and whether something of it could not be read.
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&[u8]>,
) -> (Cow<'a, str>, Option<&'static str>) {
    if let Some(text) = utf32(bytes) {
        return (Cow::Owned(text), None);
    }
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes).or_else(|| by_shape(bytes)) {
        let (text, is_broken) = encoding.decode_without_bom_handling(&bytes[mark_bytes..]);
        // A mark of UTF-8 on something else is one of the lies.
        if !is_broken || encoding.name() != "UTF-8" {
            return (text, is_broken.then_some(UNREADABLE));
        }
    }
    // Nearly all of them, whatever they say: other charsets make no valid UTF-8 but of ASCII.
    let declared = declared(bytes);
    if let Ok(text) = str::from_utf8(bytes)
        && (is_utf8(declared)
            || text.is_ascii() && declared.is_none_or(Encoding::is_ascii_compatible)
            || declared.is_none())
    {
        return (Cow::Borrowed(text), None);
    }
    let by_header = content_type.and_then(of_header);
    for encoding in [by_header, declared].into_iter().flatten().filter(|encoding| !is_wide(encoding)) {
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return (text, None);
        }
    }
    if let Ok(text) = str::from_utf8(bytes) {
        return (Cow::Borrowed(text), None);
    }
    let mut charsets = CharsetReader::new();
    let detected = charsets.read(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), b"", None);
    let text = String::from_utf8_lossy(detected.bytes);
    let damage = matches!(text, Cow::Owned(_)).then_some(UNREADABLE);
    (Cow::Owned(text.into_owned()), damage.or(Some(WRONG_CHARSET)))
}

const UNREADABLE: &str = "some bytes are no characters in its charset";
const WRONG_CHARSET: &str = "its bytes are not in the charset that it names";

fn is_utf8(encoding: Option<&'static Encoding>) -> bool {
    encoding.is_some_and(|encoding| encoding.name() == "UTF-8")
}

/// What can be read byte by byte is not UTF-16, whatever it says.
fn is_wide(encoding: &&'static Encoding) -> bool {
    !encoding.is_ascii_compatible() && encoding.name().starts_with("UTF-16")
}

/// UTF-16 without a mark: the first two characters are ASCII, and are there for themselves.
fn by_shape(bytes: &[u8]) -> Option<(&'static Encoding, usize)> {
    let printable = |octet: u8| (b' '..0x7f).contains(&octet) || matches!(octet, b'\n' | b'\r' | b'\t');
    match *bytes.first_chunk()? {
        [first, 0, next, 0] if printable(first) && printable(next) => Some((encoding("utf-16le")?, 0)),
        [0, first, 0, next] if printable(first) && printable(next) => Some((encoding("utf-16be")?, 0)),
        _ => None,
    }
}

fn encoding(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
}

/// UTF-32, which is in no standard of the web and in some feeds.
fn utf32(bytes: &[u8]) -> Option<String> {
    let (is_big, mark_bytes) = match *bytes.first_chunk()? {
        [0, 0, 0xfe, 0xff] => (true, 4),
        [0xff, 0xfe, 0, 0] => (false, 4),
        [0, 0, 0, first] if first != 0 => (true, 0),
        [first, 0, 0, 0] if first != 0 => (false, 0),
        _ => return None,
    };
    let number = |unit: &[u8; 4]| if is_big { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) };
    let (units, _) = bytes[mark_bytes..].as_chunks();
    Some(
        units
            .iter()
            .map(|unit| char::from_u32(number(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
    )
}

/// The charset of a Content-Type header.
fn of_header(value: &[u8]) -> Option<&'static Encoding> {
    let label = value.split(|octet| *octet == b';').skip(1).find_map(|parameter| {
        let (name, label) = parameter.split_at(memchr::memchr(b'=', parameter)?);
        name.trim_ascii().eq_ignore_ascii_case(b"charset").then_some(&label[1..])
    })?;
    of_label(label)
}

/// The charset of the declaration, also where it does not stand first.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = &bytes[..bytes.len().min(DECLARATION_BYTES_MAX)];
    let declaration = &bytes[memchr::memmem::find(bytes, b"<?xml")?..];
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    of_label(declaration[at..].trim_ascii_start().strip_prefix(b"=")?)
}

/// A label with or without its quotes.
fn of_label(label: &[u8]) -> Option<&'static Encoding> {
    let label = label.trim_ascii();
    let label = match label.split_first() {
        Some((quote @ (b'"' | b'\''), rest)) => &rest[..memchr::memchr(*quote, rest).unwrap_or(rest.len())],
        _ => &label[..label.iter().position(|octet| matches!(octet, b'?' | b' ')).unwrap_or(label.len())],
    };
    let found = Encoding::for_label_no_replacement(label);
    found.or_else(|| {
        // Names that the web never knew, and feeds use.
        let others: [(&str, &str); 6] = [
            ("iso-10646-ucs-2", "utf-16"),
            ("latin-1", "iso-8859-1"),
            ("cp932", "shift_jis"),
            ("cp949", "euc-kr"),
            ("cp936", "gbk"),
            ("cp950", "big5"),
        ];
        let other = others.iter().find(|(name, _)| label.eq_ignore_ascii_case(name.as_bytes()));
        other.and_then(|(_, name)| encoding(name))
    })
}
