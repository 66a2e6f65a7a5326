use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding};

/// A piece of a query in the encoding of its page, to be percent-encoded. A character that the encoding does not have
/// becomes its reference, percent-encoded already, as browsers send it: `%26%23960%3B`.
pub fn encode_query<'a>(encoding: &'static Encoding, text: &'a str) -> Cow<'a, [u8]> {
    let encoding = encoding.output_encoding();
    if text.is_ascii() || encoding == encoding_rs::UTF_8 {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(text.len() + 16);
    let mut rest = text;
    loop {
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Cow::Owned(bytes),
            // Room for at least the longest character and a change of state.
            EncoderResult::OutputFull => bytes.reserve(rest.len() + 16),
            EncoderResult::Unmappable(character) => {
                bytes.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::*;

    #[test]
    fn queries_go_out_in_the_encoding_of_the_page() {
        for (encoding, text, bytes) in [
            (UTF_8, "q=é", "q=é".as_bytes()),
            (UTF_16LE, "q=é", "q=é".as_bytes()),
            (WINDOWS_1252, "q=é€", b"q=\xe9\x80"),
            (WINDOWS_1251, "q=Ж&π=1", b"q=\xc6&%26%23960%3B=1"),
            (SHIFT_JIS, "東京", b"\x93\x8c\x8b\x9e"),
            (EUC_KR, "한", b"\xc7\xd1"),
            (GBK, "中文", b"\xd6\xd0\xce\xc4"),
            (ISO_2022_JP, "a東", b"a\x1b$BEl\x1b(B"),
            (WINDOWS_1252, "plain", b"plain"),
            (WINDOWS_1252, "😀", b"%26%23128512%3B"),
        ] {
            assert_eq!(&*encode_query(encoding, text), bytes, "{text}");
        }
        let long = "é東".repeat(2_000);
        assert_eq!(encode_query(WINDOWS_1252, &long).len(), 2_000 * (1 + "%26%2326481%3B".len()));
    }
}
