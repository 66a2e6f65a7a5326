/// What a coded body may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingLimits {
    /// Bytes of the decoded document; one of exactly this size is whole.
    pub bytes_max: u64,
    /// Decoded bytes for a byte on the wire, once [`RATIO_FLOOR_BYTES`] are decoded.
    pub ratio_max: u32,
    /// Codings on top of each other.
    pub layers_max: u8,
}

/// Below this any ratio is fine: it costs less than a millisecond, and a short page of blanks is no attack.
pub(super) const RATIO_FLOOR_BYTES: u64 = 1 << 20;

impl CodingLimits {
    /// The usual bounds around a size of document.
    ///
    /// Pages of text come to ratios of 3 to 20, long tables that a program wrote to 50 or so. A bomb needs all that
    /// its coding can do: 1,032 for deflate, a hundred times as much for br and zstd. 200 lies well between.
    pub const fn new(bytes_max: u64) -> CodingLimits {
        CodingLimits { bytes_max, ratio_max: 200, layers_max: 5 }
    }
}
