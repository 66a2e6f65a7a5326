//! Dates as W3C writes them: `2024`, `2024-05`, `2024-05-17`, `2024-05-17T10:30Z`, `2024-05-17T10:30:15.5+02:00`.

use crate::base::Civil;

/// Seconds since 1970 of a date, at its beginning where it leaves the rest open; `None` for what is no date, or one
/// before 1970 or after 2106. Without a zone it is read as UTC.
pub(super) fn seconds(text: &str) -> Option<u32> {
    let mut rest = text.trim().as_bytes();
    let year = number(&mut rest, 4)?;
    let month = if skip(&mut rest, b"-") { number(&mut rest, 2)? } else { 1 };
    let day = if skip(&mut rest, b"-") { number(&mut rest, 2)? } else { 1 };
    let midnight = i64::from(Civil::checked(year, month, day)?.days()) * 86_400;
    // Many write a blank where the T belongs.
    if !skip(&mut rest, b"Tt ") {
        return rest.is_empty().then(|| u32::try_from(midnight).ok()).flatten();
    }
    let hours = number(&mut rest, 2)?;
    let minutes = if skip(&mut rest, b":") { number(&mut rest, 2)? } else { return None };
    let seconds = if skip(&mut rest, b":") { number(&mut rest, 2)? } else { 0 };
    if skip(&mut rest, b".,") {
        let digits = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
        rest = &rest[digits..];
    }
    // A leap second is the last of its minute.
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    while skip(&mut rest, b" ") {}
    let zone_s = zone(rest)?;
    let time_s = i64::from(hours * 3_600 + minutes * 60 + seconds.min(59));
    u32::try_from(midnight + time_s - zone_s).ok()
}

/// Seconds that a zone is ahead of UTC.
fn zone(mut rest: &[u8]) -> Option<i64> {
    if matches!(rest, b"" | b"Z" | b"z" | b"UTC" | b"GMT") {
        return Some(0);
    }
    let sign = match rest.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    rest = &rest[1..];
    let hours = number(&mut rest, 2)?;
    skip(&mut rest, b":");
    let minutes = if rest.is_empty() { 0 } else { number(&mut rest, 2)? };
    (rest.is_empty() && hours <= 23 && minutes <= 59).then(|| sign * i64::from(hours * 3_600 + minutes * 60))
}

/// A number of exactly that many digits.
fn number(rest: &mut &[u8], digits: usize) -> Option<u32> {
    let (head, tail) = rest.split_at_checked(digits)?;
    if !head.iter().all(u8::is_ascii_digit) {
        return None;
    }
    *rest = tail;
    Some(head.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

/// Whether one of these came next, and was passed.
fn skip(rest: &mut &[u8], any_of: &[u8]) -> bool {
    match rest.split_first() {
        Some((first, tail)) if any_of.contains(first) => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn dates_in_every_length() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2005", Some(1_104_537_600)),
            ("2005-01", Some(1_104_537_600)),
            (" 2005-01-01\n", Some(1_104_537_600)),
            ("2005-01-01T00:00Z", Some(1_104_537_600)),
            ("2005-01-01T01:00+01:00", Some(1_104_537_600)),
            ("2004-12-31T19:00:00-05:00", Some(1_104_537_600)),
            ("2005-01-01T00:00:59.999z", Some(1_104_537_659)),
            ("2005-01-01 00:00:01", Some(1_104_537_601)),
            ("2005-01-01 00:00:01 +0000", Some(1_104_537_601)),
            ("2005-01-01T00:00:60Z", Some(1_104_537_659)),
            ("1970-01-01T00:30+01:00", None),
            ("1969-12-31", None),
            ("2107-01-01", None),
            ("2005-02-30", None),
            ("2005-1-1", None),
            ("2005-01-01T", None),
            ("2005-01-01T10", None),
            ("2005-01-01T24:00Z", None),
            ("2005-01-01T10:00X", None),
            ("2005-01-01x", None),
            ("20050101", None),
            ("yesterday", None),
            ("", None),
            ("２００５", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
