use crate::base::Civil;

/// A date in a header (RFC 9110, 5.6.7), in seconds since 1970: the form of today and the two that came before it.
///
/// ```text
///   Sun, 06 Nov 1994 08:49:37 GMT
///   Sunday, 06-Nov-94 08:49:37 GMT
///   Sun Nov  6 08:49:37 1994
/// ```
pub fn http_date(text: &[u8]) -> Option<u64> {
    let text = str::from_utf8(text).ok()?.trim();
    let mut words = text.split([' ', '-']).filter(|word| !word.is_empty());
    let weekday = words.next()?;
    let (day, month, year, time) = if weekday.ends_with(',') {
        let (day, month, year) = (words.next()?, words.next()?, words.next()?);
        let time = words.next()?;
        words.next().filter(|zone| *zone == "GMT")?;
        (day, month, year, time)
    } else {
        let (month, day, time) = (words.next()?, words.next()?, words.next()?);
        (day, month, words.next()?, time)
    };
    if words.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| month.eq_ignore_ascii_case(name))? as u32 + 1;
    let year = match (year.len(), number(year)?) {
        // Two digits: this century, as nobody asks us to wait for the last one.
        (2, year) => 2_000 + year,
        (4, year) => year,
        _ => return None,
    };
    let mut parts = time.split(':');
    let (hour, minute, second) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = Civil::checked(year, month, number(day)?)?.days();
    Some(u64::from(days) * 86_400 + u64::from(hour * 3_600 + minute * 60 + second))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// At most four digits, and nothing else.
fn number(word: &str) -> Option<u32> {
    let digits = !word.is_empty() && word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_and_no_other() {
        assert_eq!(http_date(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date(b" Sun Nov  6 08:49:37 1994 "), Some(784_111_777));
        assert_eq!(http_date(b"Sunday, 15-Nov-26 00:00:00 GMT"), Some(1_794_700_800));
        for rubbish in [
            "",
            "120",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 2026 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT and more",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT",
        ] {
            assert_eq!(http_date(rubbish.as_bytes()), None, "{rubbish}");
        }
    }
}
