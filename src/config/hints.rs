//! Where a mistake is, and what was probably meant.

use crate::base::edits;

/// The line that a place in a text is on.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

/// A hint at the known name that is closest to what was typed.
pub(super) fn nearest(typed: &str, known: &[String]) -> String {
    let best = known.iter().min_by_key(|name| edits(typed, name));
    match best {
        Some(name) if edits(typed, name) <= typed.len() / 2 + 1 => format!(" (did you mean {name}?)"),
        _ => format!(" (known are {})", known.join(", ")),
    }
}
