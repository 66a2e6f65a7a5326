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
    if let Some(text) = utf32(bytes).or_else(|| ebcdic(bytes)) {
        return (Cow::Owned(text), None);
    }
    if let Some((encoding, mark_bytes)) = Encoding::for_bom(bytes).or_else(|| by_shape(bytes)) {
        let (text, is_broken) = encoding.decode_without_bom_handling(&bytes[mark_bytes..]);
        // A mark of UTF-8 on something else is one of the lies.
        if !is_broken || encoding.name() != "UTF-8" {
            return (text, is_broken.then_some(UNREADABLE));
        }
    }
    // Nearly all of them, whatever they say: text of a charset with a byte a character is valid UTF-8 by no accident.
    let declared = declared(bytes);
    if let Ok(text) = str::from_utf8(bytes)
        && declared.is_none_or(|declared| {
            declared.name() == "UTF-8"
                || declared.is_single_byte()
                || (text.is_ascii() && declared.is_ascii_compatible())
        })
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
    // What they look like, without what they say.
    let mut charsets = CharsetReader::new();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let declaration_bytes = match bytes.starts_with(b"<?xml") {
        true => memchr::memchr(b'>', bytes).map_or(0, |end| end + 1),
        false => 0,
    };
    let detected = charsets.read(&bytes[declaration_bytes..], b"", None);
    let text = String::from_utf8_lossy(detected.bytes);
    let damage = matches!(text, Cow::Owned(_)).then_some(UNREADABLE);
    (Cow::Owned(text.into_owned()), damage.or(Some(WRONG_CHARSET)))
}

const UNREADABLE: &str = "some bytes are no characters in its charset";
const WRONG_CHARSET: &str = "its bytes are not in the charset that it names";

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

/// EBCDIC of mainframes by its first bytes, `<?xm`. Whichever of its tables a feed is written in, markup and plain letters
/// are at the places of this one, that of code page 37.
fn ebcdic(bytes: &[u8]) -> Option<String> {
    bytes
        .starts_with(&[0x4c, 0x6f, 0xa7, 0x94])
        .then(|| bytes.iter().map(|b| char::from(CP_037[usize::from(*b)])).collect())
}

/// As code points of Latin-1.
#[rustfmt::skip]
const CP_037: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x9c, 0x09, 0x86, 0x7f, 0x97, 0x8d, 0x8e, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x9d, 0x85, 0x08, 0x87, 0x18, 0x19, 0x92, 0x8f, 0x1c, 0x1d, 0x1e, 0x1f,
    0x80, 0x81, 0x82, 0x83, 0x84, 0x0a, 0x17, 0x1b, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x05, 0x06, 0x07,
    0x90, 0x91, 0x16, 0x93, 0x94, 0x95, 0x96, 0x04, 0x98, 0x99, 0x9a, 0x9b, 0x14, 0x15, 0x9e, 0x1a,
    0x20, 0xa0, 0xe2, 0xe4, 0xe0, 0xe1, 0xe3, 0xe5, 0xe7, 0xf1, 0xa2, 0x2e, 0x3c, 0x28, 0x2b, 0x7c,
    0x26, 0xe9, 0xea, 0xeb, 0xe8, 0xed, 0xee, 0xef, 0xec, 0xdf, 0x21, 0x24, 0x2a, 0x29, 0x3b, 0xac,
    0x2d, 0x2f, 0xc2, 0xc4, 0xc0, 0xc1, 0xc3, 0xc5, 0xc7, 0xd1, 0xa6, 0x2c, 0x25, 0x5f, 0x3e, 0x3f,
    0xf8, 0xc9, 0xca, 0xcb, 0xc8, 0xcd, 0xce, 0xcf, 0xcc, 0x60, 0x3a, 0x23, 0x40, 0x27, 0x3d, 0x22,
    0xd8, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0xab, 0xbb, 0xf0, 0xfd, 0xfe, 0xb1,
    0xb0, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0xaa, 0xba, 0xe6, 0xb8, 0xc6, 0xa4,
    0xb5, 0x7e, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0xa1, 0xbf, 0xd0, 0xdd, 0xde, 0xae,
    0x5e, 0xa3, 0xa5, 0xb7, 0xa9, 0xa7, 0xb6, 0xbc, 0xbd, 0xbe, 0x5b, 0x5d, 0xaf, 0xa8, 0xb4, 0xd7,
    0x7b, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0xad, 0xf4, 0xf6, 0xf2, 0xf3, 0xf5,
    0x7d, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x50, 0x51, 0x52, 0xb9, 0xfb, 0xfc, 0xf9, 0xfa, 0xff,
    0x5c, 0xf7, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0xb2, 0xd4, 0xd6, 0xd2, 0xd3, 0xd5,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0xb3, 0xdb, 0xdc, 0xd9, 0xda, 0x9f,
];

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
