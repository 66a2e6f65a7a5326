/// A fingerprint that only the disk can tell about, one of many that are asked about at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub fingerprint: u64,
    /// The caller's own, to tell which one it was.
    pub index: u32,
    pub known: bool,
}
