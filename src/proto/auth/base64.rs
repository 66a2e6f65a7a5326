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
        }
        let mut out = Vec::new();
        write_base64(&[0xfb, 0xef, 0xff], &mut out);
        assert_eq!(out, b"++//");
    }
}
