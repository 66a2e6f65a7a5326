/// What stands behind every block, and is no part of it.
pub const RECORD_END: &[u8] = b"\r\n\r\n";

/// Appends one record; its length follows from the parts of its block. A line end in a value would begin another field,
/// so none is written.
pub fn write_record(out: &mut Vec<u8>, fields: &[(&str, impl AsRef<str>)], block: &[&[u8]]) {
    out.extend_from_slice(b"WARC/1.1\r\n");
    for (name, value) in fields {
        debug_assert!(!name.is_empty() && !name.contains([':', '\r', '\n']), "our own names");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend(value.as_ref().bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
        out.extend_from_slice(b"\r\n");
    }
    let length: usize = block.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
    for part in block {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(RECORD_END);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_the_standard_draws() {
        let mut out = Vec::new();
        write_record(&mut out, &[("WARC-Type", "resource"), ("X", "a\r\nEvil: b")], &[b"one", b" two"]);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "WARC/1.1\r\nWARC-Type: resource\r\nX: aEvil: b\r\nContent-Length: 7\r\n\r\none two\r\n\r\n"
        );
    }
}
