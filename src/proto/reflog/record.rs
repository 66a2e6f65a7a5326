use super::stamp::Stamp;
use crate::base::push_decimal;

/// One record of a reflog, with its lines joined again. What is borrowed is as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflogRecord<'a> {
    /// Decimal digits.
    pub batch: &'a [u8],
    /// More than fits is as much as fits: nobody goes by it, and a line is not lost for it.
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

/// Digits of a batch or a page.
pub const DIGITS_MAX: usize = 32;
/// With the longest URL, a record still fits into a line between master and node, and into one that hands over a domain.
pub const TAG_BYTES_MAX: usize = 128;

impl ReflogRecord<'_> {
    /// Writes it as one line, with seven fields and its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.batch);
        out.push(b'\t');
        push_decimal(out, u64::from(self.priority));
        out.push(b'\t');
        out.extend_from_slice(&self.at.digits());
        out.push(b'\t');
        out.extend_from_slice(self.page);
        out.push(b'\t');
        out.extend_from_slice(self.url);
        out.push(b'\t');
        push_decimal(out, u64::from(self.hits));
        out.push(b'\t');
        out.extend_from_slice(self.tag);
        out.push(b'\n');
    }
}
