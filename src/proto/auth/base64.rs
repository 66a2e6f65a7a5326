const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the base64 of some bytes (RFC 4648, section 4), padded.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |at: usize| ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
        // n bytes fill n + 1 digits.
        (0..4).for_each(|at| out.push(if at <= three.len() { digit(at) } else { b'=' }));
    }
}

/// The bytes of a base64 in the one form that [`write_base64`] gives it; nothing for any other text.
pub(crate) fn read_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let last = text.len() / 4;
    for (at, four) in text.chunks(4).enumerate() {
        let four: [u8; 4] = four.try_into().ok()?;
        let padding = four.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || padding > 0 && at + 1 < last {
            return None;
        }
        let mut bits = 0;
        for digit in &four[..4 - padding] {
            bits = bits << 6 | value_of(*digit)?;
        }
        bits <<= 6 * padding;
        let bytes = u32::to_be_bytes(bits);
        let (kept, dropped) = bytes[1..].split_at(3 - padding);
        // Bits that no byte has are zero.
        if dropped.iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

fn value_of(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            write_base64(bytes.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(read_base64(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        let mut out = Vec::new();
        write_base64(&[0xfb, 0xef, 0xff], &mut out);
        assert_eq!(out, b"++//");
    }

    #[test]
    fn only_the_one_form_is_read() {
        for bad in
            ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm9v\n", "Zm9-", "Zm\u{fc}"]
        {
            assert_eq!(read_base64(bad.as_bytes()), None, "{bad}");
        }
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 37 + length) as u8).collect();
            let mut text = Vec::new();
            write_base64(&bytes, &mut text);
            assert_eq!(read_base64(&text), Some(bytes));
        }
    }
}
