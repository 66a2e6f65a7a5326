//! Where a mistake is, and what was probably meant.

use crate::base::edits;

/// The line that a place in a text is on.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Names that are listed when none of them is near.
const LISTED_MAX: usize = 13;

/// A hint at the known name that is closest to what was typed, if it is near: a slip or two of the keyboard away.
pub(super) fn nearest(typed: &str, known: &[&str]) -> String {
    let slips_max = (1 + typed.chars().count() / 4).min(3);
    let best = known.iter().min_by_key(|name| edits(typed, name));
    match best.filter(|name| edits(typed, name) <= slips_max) {
        Some(name) => format!(" (did you mean {name}?)"),
        None if known.len() <= LISTED_MAX => format!(" (known are {})", known.join(", ")),
        None => " (nephila help settings lists all)".to_string(),
    }
}
