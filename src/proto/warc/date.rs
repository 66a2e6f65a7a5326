use crate::base::{Civil, rfc3339};

/// A moment as `WARC-Date` tells it, with its milliseconds.
pub fn warc_date(unix_ms: u64) -> String {
    rfc3339(unix_ms)
}

/// A `WARC-Date` as the fourteen digits of an index: seconds, whatever follows them. `None` for what is no date.
pub fn timestamp(date: &str) -> Option<String> {
    let parts = parts(date)?;
    let [year, month, day, hour, minute, second, _] = parts;
    Some(format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"))
}

/// A `WARC-Date` in milliseconds since 1970; `None` for what is no date, or lies before.
pub fn read_date(date: &str) -> Option<u64> {
    let [year, month, day, hour, minute, second, ms] = parts(date)?;
    let days = u64::from(Civil::checked(year, month, day)?.days());
    let seconds = u64::from(hour) * 3_600 + u64::from(minute) * 60 + u64::from(second);
    Some((days * 86_400 + seconds) * 1_000 + u64::from(ms))
}

/// Year, month, day, hour, minute, second, millisecond. The day must be given; what is left out after it is zero.
fn parts(date: &str) -> Option<[u32; 7]> {
    let mut parts = [0; 7];
    let date = date.trim();
    let date = date.strip_suffix('Z').unwrap_or(date);
    let mut count = 0;
    for text in date.split(|c: char| !c.is_ascii_digit()) {
        let digits = if count == 6 { &text[..text.len().min(3)] } else { text };
        if count == 7 || digits.is_empty() || digits.len() > 4 {
            return None;
        }
        let number: u32 = digits.parse().ok()?;
        parts[count] = if count == 6 { number * 10_u32.pow(3 - digits.len() as u32) } else { number };
        count += 1;
    }
    let [_, month, day, hour, minute, second, _] = parts;
    // A leap second is the one before it.
    parts[5] = second.min(59);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    (count >= 3 && is_date && hour < 24 && minute < 60 && second <= 60).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_and_are_cut_to_seconds_in_an_index() {
        for unix_ms in [0, 1, 951_782_400_000, 1_709_251_199_999, 4_102_444_800_001] {
            assert_eq!(read_date(&warc_date(unix_ms)), Some(unix_ms));
        }
        assert_eq!(timestamp("2013-12-26T10:11:12Z").unwrap(), "20131226101112");
        assert_eq!(timestamp("2013-12-26T10:11:12.999999999Z").unwrap(), "20131226101112");
        assert_eq!(read_date("2013-12-26T10:11:12.5Z"), read_date("2013-12-26T10:11:12.500Z"));
        assert_eq!(timestamp("2013-12-26").unwrap(), "20131226000000");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in ["", "Z", "2013", "2013-12", "2013-13-01T00:00:00Z", "2013-12-26T24:00:00Z", "yesterday"]
        {
            assert_eq!((timestamp(text), read_date(text)), (None, None), "{text}");
        }
        for text in ["2013-12-26T10:11:12+01:00", "99999-12-26T10:11:12Z", "2013--12-26"] {
            assert_eq!(timestamp(text), None, "{text}");
        }
        assert_eq!(read_date("2013-02-30T00:00:00Z"), None);
        assert_eq!(read_date("1969-12-31T23:59:59Z"), None);
    }
}
