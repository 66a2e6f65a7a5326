//! Where a mistake is, and what was probably meant.

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

/// Letters to change, add or drop to turn one word into the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
