use crate::base::Civil;

/// A date as servers write them into cookies (RFC 6265, 5.1.1), in seconds since 1970. Order, separators and
/// weekday do not matter; the first part that looks like a time, a day, a month or a year is it. What lies before
/// 1970 is over anyway, and is 0.
pub(super) fn cookie_date(text: &[u8]) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(|byte| is_delimiter(*byte)) {
        if time.is_none()
            && let Some(found) = time_of(word)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(word, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(word)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(word, 2, 4)
        {
            year = Some(found);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        year @ 0..=69 => 2_000 + year,
        year @ 70..=99 => 1_900 + year,
        year => year,
    };
    if year < 1_601 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if year < 1_970 {
        // The calendar repeats after 400 years.
        return Civil::checked(year + 400, month, day).map(|_| 0);
    }
    let days = Civil::checked(year, month, day)?.days();
    Some(u64::from(days) * 86_400 + u64::from(hour * 3_600 + minute * 60 + second))
}

/// All that is printable but letters, digits and the colon.
fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// A number of so many digits at the beginning of a word; what follows is not a digit.
fn number(word: &[u8], digits_min: usize, digits_max: usize) -> Option<u32> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = |total: u32, byte: &u8| total * 10 + u32::from(byte - b'0');
    (digits_min..=digits_max).contains(&digits).then(|| word[..digits].iter().fold(0, value))
}

/// `8:49:37`, and whatever follows it.
fn time_of(word: &[u8]) -> Option<(u32, u32, u32)> {
    let mut fields = word.splitn(3, |byte| *byte == b':');
    let whole = |field: &[u8]| field.iter().all(u8::is_ascii_digit).then(|| number(field, 1, 2)).flatten();
    Some((whole(fields.next()?)?, whole(fields.next()?)?, number(fields.next()?, 1, 2)?))
}

/// By its first three letters.
fn month_of(word: &[u8]) -> Option<u32> {
    const MONTHS: [&[u8; 3]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let letters: [u8; 3] = word.get(..3)?.try_into().ok()?;
    MONTHS
        .iter()
        .position(|month| **month == letters.map(|byte| byte.to_ascii_lowercase()))
        .map(|at| at as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ways_to_write_one_second() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 6-Nov-1994 8:49:37 GMT",
            "1994 November 6 08:49:37",
            "08:49:37 06 NOV 94 UTC",
            "Sun,06/Nov/1994;08:49:37",
            "06th Nov 1994ad 08:49:37Z",
        ] {
            assert_eq!(cookie_date(text.as_bytes()), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn years_of_two_digits_and_years_long_gone() {
        assert_eq!(cookie_date(b"01 Jan 70 00:00:01"), Some(1));
        assert_eq!(cookie_date(b"01 Jan 69 00:00:00"), Some(3_124_224_000));
        assert_eq!(cookie_date(b"01 Jan 1969 00:00:00"), Some(0));
        assert_eq!(cookie_date(b"29 Feb 1604 00:00:00"), Some(0));
        assert_eq!(cookie_date(b"31 Dec 9999 23:59:59"), Some(253_402_300_799));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "0",
            "-1",
            "tomorrow",
            "06 Nov 1994",
            "Nov 1994 08:49:37",
            "06 Nov 1600 08:49:37",
            "29 Feb 1994 08:49:37",
            "31 Nov 1994 08:49:37",
            "00 Nov 1994 08:49:37",
            "06 Nov 1994 24:49:37",
            "06 Nov 1994 08:60:37",
            "06 Nov 1994 08:49:60",
            "06 Nov 1994 08:49",
            "06 Nov 1994 008:49:37",
            "06 Nov 19940 08:49:37",
            "06 No 1994 08:49:37",
        ] {
            assert_eq!(cookie_date(text.as_bytes()), None, "{text}");
        }
    }
}
