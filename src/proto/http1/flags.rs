//! Oddities of a response that was accepted all the same.

use std::fmt;
use std::ops::BitOr;

/// A set of oddities, kept on the stored record as one word.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// `Name : value`; the name was trimmed.
    pub const SPACE_BEFORE_COLON: Flags = Flags(1 << 0);
    /// `: value`; the line was kept and means nothing.
    pub const EMPTY_NAME: Flags = Flags(1 << 1);
    /// Both Transfer-Encoding and Content-Length came; the former won.
    pub const TE_AND_CL: Flags = Flags(1 << 2);
    /// Transfer-Encoding in an HTTP/1.0 response; the body ran to close.
    pub const TE_IN_HTTP10: Flags = Flags(1 << 3);
    /// A transfer coding besides chunked was named; the document bytes are still in it.
    pub const TE_CODING_LEFT: Flags = Flags(1 << 4);
    /// White space after a chunk size.
    pub const CHUNK_SIZE_SPACE: Flags = Flags(1 << 5);
    /// LF without CR in chunk framing.
    pub const BARE_LF_CHUNK: Flags = Flags(1 << 6);
    /// A body that ran to close ended without the TLS close_notify. The connection's owner sets it.
    pub const NO_CLOSE_NOTIFY: Flags = Flags(1 << 7);
    /// The content coding broke off; what was decoded is kept. The content decoder sets it.
    pub const CONTENT_CODING_BROKEN: Flags = Flags(1 << 8);

    /// The document is longer than what is kept of it. Whoever cuts it sets it.
    pub const CUT: Flags = Flags(1 << 9);
    /// The document came in a content coding and is stored without it. The content decoder sets it.
    pub const DECODED: Flags = Flags(1 << 10);
    /// The certificate is past its end or before its start. The connection's owner sets these four.
    pub const CERT_EXPIRED: Flags = Flags(1 << 11);
    /// Nobody we trust has signed the certificate.
    pub const CERT_UNKNOWN_ISSUER: Flags = Flags(1 << 12);
    /// The certificate is for other names.
    pub const CERT_WRONG_NAME: Flags = Flags(1 << 13);
    /// The certificate is wrong in another way.
    pub const CERT_BAD: Flags = Flags(1 << 14);
    /// Only the head was asked for.
    pub const HEAD_ONLY: Flags = Flags(1 << 15);
    /// Only the head was wanted, but the server does not answer HEAD: it was asked with GET, and left at the head.
    pub const HEAD_BY_GET: Flags = Flags(1 << 16);
    /// The page, or a header of it, asks not to be indexed. The handler sets it.
    pub const NOINDEX: Flags = Flags(1 << 17);
    /// A part of the document (206), which nobody asked for. Whoever asked sets it.
    pub const PARTIAL: Flags = Flags(1 << 18);

    /// A feed that names the same URLs as before: in place of its document stands `(redundant feed)`. The handler sets it.
    pub const REDUNDANT_FEED: Flags = Flags(1 << 19);

    const NAMES: [(Flags, &'static str); 20] = [
        (Flags::SPACE_BEFORE_COLON, "space_before_colon"),
        (Flags::EMPTY_NAME, "empty_name"),
        (Flags::TE_AND_CL, "te_and_cl"),
        (Flags::TE_IN_HTTP10, "te_in_http10"),
        (Flags::TE_CODING_LEFT, "te_coding_left"),
        (Flags::CHUNK_SIZE_SPACE, "chunk_size_space"),
        (Flags::BARE_LF_CHUNK, "bare_lf_chunk"),
        (Flags::NO_CLOSE_NOTIFY, "no_close_notify"),
        (Flags::CONTENT_CODING_BROKEN, "content_coding_broken"),
        (Flags::CUT, "cut"),
        (Flags::DECODED, "decoded"),
        (Flags::CERT_EXPIRED, "cert_expired"),
        (Flags::CERT_UNKNOWN_ISSUER, "cert_unknown_issuer"),
        (Flags::CERT_WRONG_NAME, "cert_wrong_name"),
        (Flags::CERT_BAD, "cert_bad"),
        (Flags::HEAD_ONLY, "head_only"),
        (Flags::HEAD_BY_GET, "head_by_get"),
        (Flags::NOINDEX, "noindex"),
        (Flags::PARTIAL, "partial"),
        (Flags::REDUNDANT_FEED, "redundant_feed"),
    ];

    /// The word as stored.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The set of a stored word. Bits without a name are kept.
    pub fn from_bits(bits: u32) -> Flags {
        Flags(bits)
    }

    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn insert(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// The flag of a name.
    pub fn from_name(name: &str) -> Option<Flags> {
        Flags::NAMES.iter().find(|(_, known)| *known == name).map(|(flag, _)| *flag)
    }

    /// The names in the set, in snake case and bit order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::NAMES.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn names_follow_the_bits() {
        let mut flags = Flags::NONE;
        assert!(flags == Flags::NONE);
        flags.insert(Flags::BARE_LF_CHUNK);
        flags.insert(Flags::TE_AND_CL);
        assert!(flags.contains(Flags::TE_AND_CL) && !flags.contains(Flags::TE_IN_HTTP10));
        assert_eq!(flags.names().collect::<Vec<_>>(), ["te_and_cl", "bare_lf_chunk"]);
        assert_eq!(Flags::from_bits(flags.bits()), flags);
    }

    #[test]
    fn every_flag_has_a_bit_and_a_name_of_its_own() {
        let all = Flags::NAMES.iter().fold(Flags::NONE, |set, (flag, _)| {
            assert!(flag.bits().is_power_of_two() && !set.contains(*flag));
            assert_eq!(flag.names().next().and_then(Flags::from_name), Some(*flag));
            set | *flag
        });
        assert_eq!(all.names().count(), Flags::NAMES.len());
    }
}
