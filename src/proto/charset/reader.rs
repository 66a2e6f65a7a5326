use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::{label, prescan};

/// A document as text.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// UTF-8, as far as it was well-formed; without a byte order mark.
    pub bytes: &'a [u8],
    /// What the document is written in.
    pub encoding: &'static Encoding,
}

/// Reads documents in any encoding. It keeps one buffer for those that must be transcoded.
#[derive(Default)]
pub struct CharsetReader {
    text: String,
}

/// What the detector is shown of a document without a label. It costs as much as a thousand times as many bytes of
/// anything else here.
const DETECT_BYTES_MAX: usize = 4 * 1024;
/// Shown of the ASCII before a first character that is not.
const DETECT_CONTEXT_BYTES: usize = 16;
/// With that many bytes of it before the first fault, a document is UTF-8 with a fault.
const UTF_8_BYTES_MIN: usize = 16;
/// A longer text gives its memory back before the next document.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl CharsetReader {
    pub fn new() -> CharsetReader {
        CharsetReader::default()
    }

    /// The text of a document. `content_type` is the value of its header; `tld` the last label of its host, by which
    /// the detector weighs languages.
    ///
    /// A document that says it is UTF-8 is not looked at, and one in ASCII is looked at once. A transcoded text is at
    /// most three times as long as its document.
    pub fn read<'a>(&'a mut self, document: &'a [u8], content_type: &[u8], tld: Option<&str>) -> Text<'a> {
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES_MAX);
        let (encoding, mark_bytes) = match Encoding::for_bom(document) {
            Some(by_mark) => by_mark,
            None => (unmarked(document, content_type, tld), 0),
        };
        let bytes = &document[mark_bytes..];
        let as_it_is = encoding == UTF_8 || (encoding.is_ascii_compatible() && bytes.is_ascii());
        if as_it_is {
            return Text { bytes, encoding };
        }
        self.transcode(bytes, encoding);
        Text { bytes: self.text.as_bytes(), encoding }
    }

    #[cfg(test)]
    pub(super) fn text_capacity(&self) -> usize {
        self.text.capacity()
    }

    fn transcode(&mut self, bytes: &[u8], encoding: &'static Encoding) {
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let mut rest = bytes;
        loop {
            // Most of a page is ASCII; what is left is asked for again.
            self.text.reserve(rest.len() + rest.len() / 8 + 16);
            let (result, read, _) = decoder.decode_to_string(rest, &mut self.text, true);
            rest = &rest[read..];
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }
}

/// The encoding of a document that does not begin with a byte order mark.
fn unmarked(document: &[u8], content_type: &[u8], tld: Option<&str>) -> &'static Encoding {
    let by_header = label::of_content_type(content_type);
    let is_utf16 = |encoding: &Encoding| encoding == UTF_16LE || encoding == UTF_16BE;
    match by_header {
        // Text in it has zeros from the start. Without any, the label is wrong.
        Some(encoding) if is_utf16(encoding) && !document.iter().take(4).any(|octet| *octet == 0) => {}
        Some(encoding) => return encoding,
        None => {}
    }
    prescan::utf16_without_mark(document)
        .or_else(|| prescan::declared(document))
        .unwrap_or_else(|| detect(document, tld))
}

/// What the bytes look like.
fn detect(document: &[u8], tld: Option<&str>) -> &'static Encoding {
    let valid = Encoding::utf8_valid_up_to(document);
    // A document that was cut may end inside a character.
    let rest = str::from_utf8(&document[valid..]);
    if rest.is_ok() || rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none()) {
        return UTF_8;
    }
    if document[..valid].iter().filter(|octet| !octet.is_ascii()).count() >= UTF_8_BYTES_MIN {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut left = DETECT_BYTES_MAX;
    // Text between tags, as far as it is not ASCII. In no encoding that is looked for is a `<` part of a character.
    for piece in document.split_inclusive(|octet| matches!(octet, b'<' | b'>')) {
        let ascii = Encoding::ascii_valid_up_to(piece);
        if ascii == piece.len() {
            continue;
        }
        let piece = &piece[ascii.saturating_sub(DETECT_CONTEXT_BYTES)..];
        let piece = &piece[..piece.len().min(left)];
        // Never said to be the last: it may be cut inside a character.
        detector.feed(piece, false);
        left -= piece.len();
        if left == 0 {
            break;
        }
    }
    let tld = tld.filter(|tld| {
        !tld.is_empty()
            && tld.bytes().all(|octet| octet.is_ascii_lowercase() || octet == b'-' || octet.is_ascii_digit())
    });
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Deny)
}
