/// A segment of a store, and how many of its bytes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentState {
    pub segment: u64,
    pub shard: u32,
    /// Of its first page: one that was packed has another.
    pub print: u32,
    pub bytes: u64,
    /// Nothing is added to it any more.
    pub is_sealed: bool,
}

/// Some bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPiece<'a> {
    /// How far it is with these bytes, and whether that is its end.
    pub upto: SegmentState,
    pub bytes: &'a [u8],
}
