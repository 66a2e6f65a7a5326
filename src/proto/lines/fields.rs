//! Fields of a line: apart by one space or more, numbers in plain decimal.

use std::str::FromStr;

pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ').filter(|field| !field.is_empty())
}

/// Digits and nothing else; Rust's own reading would take a plus sign, too.
pub(super) fn decimal<T: FromStr>(field: &[u8]) -> Option<T> {
    if !field.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(field).ok()?.parse().ok()
}
