//! Where a mistake is, and what was probably meant.

use crate::base::edits;

/// The line that a syntax error is on.
pub(super) fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1
}

/// A hint at the known name that is closest to what was typed.
pub(super) fn nearest(typed: &str, known: &[String]) -> String {
    let best = known.iter().min_by_key(|name| edits(typed, name));
    match best {
        Some(name) if edits(typed, name) <= typed.len() / 2 + 1 => format!(" (did you mean {name}?)"),
        _ => format!(" (known are {})", known.join(", ")),
    }
}
