use super::stamp::Stamp;

/// One record of a reflog, with its lines joined again. What is borrowed is as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflogRecord<'a> {
    /// Decimal digits.
    pub batch: &'a [u8],
    pub priority: u8,
    /// When the URL was asked for.
    pub at: Stamp,
    /// The place where the banner stood, in decimal digits.
    pub page: &'a [u8],
    pub url: &'a [u8],
    /// More than fit are as many as fit.
    pub hits: u32,
    /// Empty where nothing was said.
    pub tag: &'a [u8],
}
