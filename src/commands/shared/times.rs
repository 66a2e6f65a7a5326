//! Times as people say them: how long ago, and since when.

use super::now_ms;
use crate::base::{rfc3339, shown, span};
use crate::proto::warc::read_date;

/// A time, and how far away it is: `2026-11-15T23:51:22.000Z (2 h ago)`. What cannot be read stays as it is.
pub(crate) fn with_age(at: &str) -> String {
    read_date(at).map_or_else(|| at.to_string(), |unix_ms| format!("{at} ({})", age(unix_ms, now_ms())))
}

/// How far a time is from now, in one unit.
pub(crate) fn age(unix_ms: u64, now_ms: u64) -> String {
    let seconds = unix_ms.abs_diff(now_ms) / 1_000;
    match (unix_ms > now_ms, span(seconds)) {
        (_, span) if seconds == 0 => span.replace("0 s", "now"),
        (true, span) => format!("in {span}"),
        (false, span) => format!("{span} ago"),
    }
}

/// A moment in the past as a flag takes it: `90s`, `30min`, `2h` or `7d` ago, a day, or a time of it in UTC.
pub(crate) fn read_since(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim_start() {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    let ago = seconds.and_then(|seconds| number.parse::<u64>().ok()?.checked_mul(seconds * 1_000));
    let as_written = |unix_ms: &u64| {
        let written = rfc3339(*unix_ms);
        text == &written[..10] || text.strip_suffix('Z') == Some(&written[..19])
    };
    let since = ago.map(|ago| now_ms().saturating_sub(ago));
    since.or_else(|| read_date(text).filter(as_written)).ok_or_else(|| {
        format!("{} is not a time, like 2h or 2026-01-01 or 2026-01-01T12:00:00Z", shown(text, 60))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_one_unit() {
        let now_ms = 1_794_744_001_000;
        for (seconds, said) in [
            (0, "now"),
            (1, "1 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7_199, "119 min ago"),
            (7_200, "2 h ago"),
            (200_000, "2 d ago"),
        ] {
            assert_eq!(age(now_ms - seconds * 1_000, now_ms), said);
        }
        assert_eq!(age(now_ms + 600_000, now_ms), "in 10 min");
        assert_eq!(with_age("never"), "never");
        assert!(with_age("1970-01-02T00:00:00.000Z").ends_with(" d ago)"));
    }

    #[test]
    fn since_is_an_age_or_a_date() {
        let now = now_ms();
        for (text, ms) in [("90s", 90_000), ("2min", 120_000), ("2h", 7_200_000), ("1d", 86_400_000)] {
            let back = now.saturating_sub(read_since(text).unwrap());
            assert!((ms - 60_000..=ms).contains(&back), "{text}: {back}");
        }
        assert_eq!(read_since("1970-01-02"), Ok(86_400_000));
        assert_eq!(read_since("2026-11-15T12:00:01Z"), Ok(1_794_744_001_000));
        for bad in ["", "2", "h", "2 weeks", "yesterday", "2026-13-01", "99999999999999999999d"] {
            assert!(read_since(bad).is_err(), "{bad}");
        }
    }
}
