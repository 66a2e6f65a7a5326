use sha1::{Digest, Sha1};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Base 32 (RFC 4648, section 6) of bytes whose number is a multiple of five, as that of every SHA-1 is: no padding.
pub fn base32(bytes: &[u8]) -> String {
    debug_assert!(bytes.len().is_multiple_of(5));
    let mut out = String::with_capacity(bytes.len() / 5 * 8);
    for five in bytes.chunks_exact(5) {
        let bits = five.iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
        out.extend((0..8).map(|at| char::from(ALPHABET[(bits >> (35 - 5 * at)) as usize & 31])));
    }
    out
}

/// A digest field: `sha1:` and base 32.
pub fn sha1_label(hash: Sha1) -> String {
    format!("sha1:{}", base32(&hash.finalize()))
}

/// The namespace of our record ids.
const NAMESPACE: [u8; 16] = *b"nephila-warc-id\0";

/// The id of a record: a UUID of version 5, which is the SHA-1 of a name. The same record has the same id in every
/// export.
pub fn record_id(name: &[&[u8]]) -> String {
    let mut hash = Sha1::new();
    hash.update(NAMESPACE);
    for part in name {
        // The length keeps two lists of parts apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("<urn:uuid:{}-{}-{}-{}-{}>", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_as_everybody_writes_them() {
        assert_eq!(base32(b"fooba"), "MZXW6YTB");
        assert_eq!(sha1_label(Sha1::new()), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }

    #[test]
    fn an_id_follows_from_its_name() {
        let id = record_id(&[b"a", b"bc"]);
        assert_eq!(id, record_id(&[b"a", b"bc"]));
        assert_ne!(id, record_id(&[b"ab", b"c"]));
        assert_eq!(id.len(), "<urn:uuid:00000000-0000-5000-8000-000000000000>".len());
        assert_eq!(&id[24..25], "5", "{id}");
        assert!("89ab".contains(&id[29..30]), "{id}");
    }
}
