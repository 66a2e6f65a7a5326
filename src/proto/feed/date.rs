//! Dates in every form of the wild.
//!
//! ```text
//!   2004-05-28T23:31:25+02:00   2004-05   20040528   2004-149        numbers first: as W3C and ISO write them
//!   Fri, 28 May 2004 23:31:25 +0200   Sept 28 04 11:31 pm EST        words: RFC 822, asctime, and what people make of them
//!   2004년 05월 28일 오후 11:31:25   28. Mai 2004   28 мая 2004      the same in other languages
//! ```
//!
//! Years have four digits, or two that mean the last century from 70 on; without a zone it is UTC. There is no date
//! before 1970 or after 9999, and none on days or at hours that there are not.

use crate::base::Civil;

/// A longer text is no date.
const DATE_BYTES_MAX: usize = 100;

/// Stories dated later than a day from now are not.
const FUTURE_S_MAX: i64 = 86_400;

/// Seconds since 1970 of a date.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > DATE_BYTES_MAX {
        return None;
    }
    by_numbers(text).or_else(|| by_the_book(text)).or_else(|| by_words(text))
}

/// A date that may be true: one by more than a day in the future is a mistake of its feed.
pub fn plausible(date_s: i64, now_s: i64) -> Option<i64> {
    (date_s <= now_s.saturating_add(FUTURE_S_MAX)).then_some(date_s)
}

/// A day and a time of it.
#[derive(Default)]
struct Parts {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    zone_s: Option<i64>,
}

impl Parts {
    fn seconds(&self) -> Option<i64> {
        let days = Civil::checked(self.year?, self.month?, self.day?)?.days();
        // Midnight has two names.
        let is_time = self.hour < 24 || (self.hour == 24 && self.minute == 0 && self.second == 0);
        if !is_time || self.minute > 59 || self.second > 60 {
            return None;
        }
        let time_s = i64::from(self.hour * 3_600 + self.minute * 60 + self.second.min(59));
        Some(i64::from(days) * 86_400 + time_s - self.zone_s.unwrap_or(0)).filter(|at_s| *at_s >= 0)
    }

    fn year_of(&mut self, digits: usize, value: u32) {
        self.year = match (digits, value) {
            (2, 0..70) => Some(2_000 + value),
            (2, _) => Some(1_900 + value),
            (4, _) => Some(value),
            _ => Some(0),
        };
    }
}

/// Digits at the beginning, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|octet| !octet.is_ascii_digit()).unwrap_or(text.len()))
}

fn number(digits: &str) -> u32 {
    digits.parse().unwrap_or(u32::MAX)
}

fn by_numbers(text: &str) -> Option<i64> {
    let (first, rest) = digits(text);
    let mut parts = Parts::default();
    let rest = match first.len() {
        4 | 2 if rest.starts_with('-') => {
            parts.year_of(first.len(), number(first));
            month_and_day(&mut parts, &rest[1..])?
        }
        4 => {
            parts.year_of(4, number(first));
            (parts.month, parts.day) = (Some(1), Some(1));
            rest
        }
        7 => {
            parts.year_of(4, number(&first[..4]));
            ordinal(&mut parts, &first[4..])?;
            rest
        }
        6 | 8 => {
            let (year, days) = first.split_at(first.len() - 4);
            parts.year_of(year.len(), number(year));
            (parts.month, parts.day) = (Some(number(&days[..2])), Some(number(&days[2..])));
            rest
        }
        _ => return None,
    };
    if rest.is_empty() {
        return parts.seconds();
    }
    let rest = rest.strip_prefix(['T', 't', ' ', '_'])?.trim_start();
    let rest = time(&mut parts, rest)?.trim_start();
    parts.zone_s = zone(rest)?;
    parts.seconds()
}

/// After `2004-`: `05`, `05-28`, `5-8`, `149`, `July-13`.
fn month_and_day<'a>(parts: &mut Parts, text: &'a str) -> Option<&'a str> {
    let (first, rest) = digits(text);
    parts.day = Some(1);
    match first.len() {
        3 => ordinal(parts, first)?,
        1 | 2 => parts.month = Some(number(first)),
        _ => return None,
    }
    match rest.strip_prefix('-') {
        Some(rest) if first.len() < 3 => {
            let (day, rest) = digits(rest);
            parts.day = Some(number(day)).filter(|_| matches!(day.len(), 1 | 2));
            Some(rest)
        }
        _ => Some(rest),
    }
}

/// The day of a year.
fn ordinal(parts: &mut Parts, text: &str) -> Option<()> {
    let (year, day) = (parts.year?, number(text));
    let first = Civil::checked(year, 1, 1)?;
    let civil = Civil::from_days(first.days() + day.checked_sub(1)?);
    (parts.month, parts.day) = (Some(civil.month), Some(civil.day));
    (civil.year == year).then_some(())
}

/// `23:31:25.5`, `23:31`, `233125`, `2331`, `23`
fn time<'a>(parts: &mut Parts, text: &'a str) -> Option<&'a str> {
    let (hour, mut rest) = digits(text);
    match hour.len() {
        1 | 2 => {
            parts.hour = number(hour);
            for slot in [&mut parts.minute, &mut parts.second] {
                let Some(after) = rest.strip_prefix(':') else { break };
                let (value, after) = digits(after);
                if value.len() > 2 || value.is_empty() {
                    return None;
                }
                (*slot, rest) = (number(value), after);
            }
        }
        4 | 6 => {
            (parts.hour, parts.minute) = (number(&hour[..2]), number(&hour[2..4]));
            parts.second = hour.get(4..).filter(|second| !second.is_empty()).map_or(0, number);
        }
        _ => return None,
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        rest = digits(fraction).1;
    }
    Some(rest)
}

/// Seconds that a zone is ahead of UTC: none where there is none, and no date where it is not one.
fn zone(text: &str) -> Option<Option<i64>> {
    let text = text.trim();
    match text.as_bytes().first() {
        None => Some(None),
        Some(b'+' | b'-') => offset(text).map(|(zone_s, _)| Some(zone_s)),
        Some(_) => named_zone(text).map(Some).or_else(|| by_gmt(text).map(Some)),
    }
}

/// `GMT+02:00`
fn by_gmt(text: &str) -> Option<i64> {
    let rest = ["GMT", "UTC", "Z"].iter().find_map(|name| text.strip_prefix(name))?;
    offset(rest.trim_start()).map(|(zone_s, _)| zone_s)
}

/// `+0200`, `+02:00`, `-5`, and what follows.
fn offset(text: &str) -> Option<(i64, &str)> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (first, rest) = digits(&text[1..]);
    let (hours, minutes, rest) = match first.len() {
        1 | 2 => match rest.strip_prefix(':').map(digits) {
            Some((minutes, rest)) if minutes.len() == 2 => (number(first), number(minutes), rest),
            _ => (number(first), 0, rest),
        },
        3 | 4 => {
            let (hours, minutes) = first.split_at(first.len() - 2);
            (number(hours), number(minutes), rest)
        }
        _ => return None,
    };
    (hours <= 24 && minutes < 60).then(|| (sign * i64::from(hours * 3_600 + minutes * 60), rest))
}

/// Names of zones, by half hours ahead of UTC. Where a name has several meanings, it is that of the continent whose feeds
/// use it most.
const ZONES: [(i64, &str); 21] = [
    (0, "z ut utc gmt wet"),
    (2, "west bst cet met mez"),
    (4, "cest mest mesz eet"),
    (6, "eest msk"),
    (8, "msd"),
    (11, "ist"),
    (16, "sgt hkt"),
    (18, "jst kst"),
    (20, "aest"),
    (22, "aedt"),
    (24, "nzst"),
    (26, "nzdt"),
    (-6, "adt brt art"),
    (-8, "ast edt"),
    (-10, "est et cdt"),
    (-12, "cst ct mdt"),
    (-14, "mst mt pdt"),
    (-16, "pst pt akdt"),
    (-18, "akst"),
    (-20, "hst"),
    (-22, "sst"),
];

fn named_zone(word: &str) -> Option<i64> {
    let is_named = |names: &str| names.split(' ').any(|name| word.eq_ignore_ascii_case(name));
    ZONES.iter().find(|(_, names)| is_named(names)).map(|(half_hours, _)| half_hours * 1_800)
}

/// What names of months begin with, in the languages that feeds are written in.
const MONTHS: [&str; 12] = [
    "jan jän ene gen янв ιαν sty oca",
    "feb fév fev фев φεβ lut şub",
    "mar mär mrz mrt maa már мар μαρ μάρ",
    "apr avr abr ápr апр απρ kwi nis",
    "may mai mag maj máj mei май мая μάι μαϊ μαι",
    "jun juin giu jún июн ιούν ιουν cze",
    "jul juil lug júl июл ιούλ ιουλ lip",
    "aug aoû ago авг αυγ αύγ sie",
    "sep set sze сен σεπ wrz",
    "oct okt ott out окт οκτ paź",
    "nov ноя νοέ νοε lis",
    "dec dez déc dic дек δεκ gru",
];

/// The month of a word in lower case.
fn month(word: &str) -> Option<u32> {
    // Days of the week that begin as months do.
    if ["mardi", "martes", "martedì", "martedi"].contains(&word) {
        return None;
    }
    let begins = |names: &&str| names.split(' ').any(|name| word.starts_with(name));
    MONTHS.iter().position(begins).map(|at| at as u32 + 1)
}

/// `Fri, 28 May 2004 21:31:25 +0000` to the letter, as nearly all RSS has it: without a look at every word there is.
fn by_the_book(text: &str) -> Option<i64> {
    let text = match text.as_bytes().get(3)? {
        b',' => text.get(4..)?.trim_start(),
        _ => text,
    };
    let (day, rest) = digits(text);
    let rest = rest.strip_prefix(' ')?;
    let (name, rest) = rest.split_at_checked(3)?;
    let names = b"janfebmaraprmayjunjulaugsepoctnovdec".as_chunks::<3>().0;
    let month = names.iter().position(|month| name.as_bytes().eq_ignore_ascii_case(month))?;
    let (year, rest) = digits(rest.strip_prefix(' ')?);
    if year.len() != 4 || !matches!(day.len(), 1 | 2) {
        return None;
    }
    let mut parts = Parts {
        year: Some(number(year)),
        month: Some(month as u32 + 1),
        day: Some(number(day)),
        ..Parts::default()
    };
    let rest = time(&mut parts, rest.strip_prefix(' ')?)?.strip_prefix(' ')?;
    parts.zone_s = match rest {
        "GMT" | "Z" | "UTC" => Some(0),
        _ => Some(offset(rest).filter(|(_, after)| after.is_empty())?.0),
    };
    parts.seconds()
}

fn by_words(text: &str) -> Option<i64> {
    let mut parts = Parts::default();
    let (mut has_time, mut is_korean, mut is_pm) = (false, false, None);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let (value, after) = digits(rest);
            if after.starts_with(':') && !has_time && value.len() <= 2 {
                rest = time(&mut parts, rest)?;
                has_time = true;
                continue;
            }
            rest = after;
            // 2004-05-28, 2004/5/28, 2004. 5. 28, 28.05.2004
            if let Some((next, last, after)) = triple(after)
                && parts.day.is_none()
            {
                let (year, day) = if value.len() == 4 { (value, last) } else { (last, value) };
                parts.year_of(year.len(), number(year));
                (parts.month, parts.day) = (Some(number(next)), Some(number(day)));
                rest = after;
                continue;
            }
            match after.trim_start().chars().next() {
                Some('년' | '年') => parts.year_of(value.len(), number(value)),
                Some('월' | '月') => parts.month = Some(number(value)),
                Some('일' | '日') => parts.day = Some(number(value)),
                Some('시' | '時') => parts.hour = number(value),
                Some('분' | '分') => parts.minute = number(value),
                Some('초' | '秒') => parts.second = number(value),
                _ if value.len() > 2 || number(value) > 31 => match parts.year {
                    None => parts.year_of(value.len(), number(value)),
                    Some(_) => return None,
                },
                _ if parts.day.is_none() => parts.day = Some(number(value)),
                _ if parts.year.is_none() => parts.year_of(value.len(), number(value)),
                _ => {}
            }
        } else if matches!(first, '+' | '-') && has_time && parts.zone_s.is_none_or(|zone_s| zone_s == 0) {
            match offset(rest) {
                Some((zone_s, after)) => (parts.zone_s, rest) = (Some(zone_s), after),
                None => rest = &rest[1..],
            }
        } else if first.is_alphabetic() {
            let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            let word = word.to_lowercase();
            match &*word {
                "am" | "오전" => is_pm = Some(false),
                "pm" | "오후" => is_pm = Some(true),
                "t" => {}
                _ => match (month(&word), named_zone(&word)) {
                    (Some(month), _) if !has_time || parts.month.is_none() => parts.month = Some(month),
                    (_, zone_s @ Some(_)) if has_time && parts.zone_s.is_none() => parts.zone_s = zone_s,
                    _ => {}
                },
            }
            is_korean |= matches!(&*word, "오전" | "오후" | "년" | "월" | "일");
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    match is_pm {
        Some(true) if parts.hour < 12 => parts.hour += 12,
        Some(false) if parts.hour == 12 => parts.hour = 0,
        _ => {}
    }
    if is_korean && parts.zone_s.is_none() {
        parts.zone_s = Some(9 * 3_600);
    }
    parts.seconds()
}

/// Two more numbers behind a first, parted by one mark.
fn triple(after: &str) -> Option<(&str, &str, &str)> {
    let mark = after.chars().next().filter(|mark| matches!(mark, '-' | '/' | '.'))?;
    let (next, rest) = digits(after[1..].trim_start_matches(' '));
    let (last, rest) = digits(rest.strip_prefix(mark)?.trim_start_matches(' '));
    // Which of two is the month nobody can say, but for dots: and with slashes the year must come first.
    let is_year_last = last.len() == 4 && mark == '.';
    ((1..=2).contains(&next.len()) && (is_year_last || (1..=2).contains(&last.len())))
        .then_some((next, last, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2004-05-28T21:31:25Z
    const AT_S: i64 = 1_085_779_885;

    #[test]
    fn dates_of_the_standards() {
        for text in [
            "Fri, 28 May 2004 21:31:25 GMT",
            "Fri, 28 May 2004 21:31:25 +0000",
            "Fri, 28 May 2004 23:31:25 +0200",
            "Fri, 28 May 2004 23:31:25 +02:00",
            "28 May 04 17:31:25 EDT",
            "Fri, 28-May-04 21:31:25 GMT",
            "Fri, 28 May 2004 14:31:25 -0700 (PDT)",
            "Fri May 28 21:31:25 2004",
            "Fri May 28 14:31:25 PDT 2004",
            "2004-05-28T21:31:25Z",
            "2004-05-28t21:31:25z",
            "2004-05-28T21:31:25.123456Z",
            "2004-05-28T23:31:25+02:00",
            "2004-05-28T23:31:25+0200",
            "2004-05-28 21:31:25",
            "2004-05-28 21:31:25 UTC",
            "2004-05-28 23:31:25 +0200",
            "20040528T213125Z",
            "2004-149T21:31:25Z",
            "2004149T213125Z",
            "04-05-28T21:31:25Z",
        ] {
            assert_eq!(parse(text), Some(AT_S), "{text}");
        }
    }

    #[test]
    fn dates_of_the_wild() {
        for text in [
            " Fri,  28  May  2004\n21:31:25  GMT ",
            "Friday, 28 May 2004 21:31:25 GMT",
            "Fry, 28 May 2004 21:31:25 UTC",
            "fri, 28 may 2004 21:31:25 gmt",
            "28 May 2004 21:31:25",
            "May 28, 2004 9:31:25 PM",
            "May 28, 2004, 09:31:25 pm UTC",
            "Fri, 28 May 2004 21:31:25 Z",
            "Fri, 28 May 2004 21:31:25 Etc/GMT",
            "Fri, 28 May 2004 23:31:25 GMT+0200",
            "Fri, 28 May 2004 23:31:25 GMT+02:00",
            "Fr, 28 Mai 2004 23:31:25 MESZ",
            "Freitag, 28. Mai 2004 23:31:25 +0200",
            "ven. 28 mai 2004 23:31:25 +0200",
            "пт, 28 мая 2004 21:31:25 GMT",
            "Παρ, 28 Μάι 2004 21:31:25 UTC",
            "2004-május-28T21:31:25Z",
            "28.05.2004 21:31:25",
            "2004/05/28 21:31:25",
            "2004년 05월 29일 오전 6:31:25",
            "2004-05-29 오전 6:31:25",
            "2004-05-28T21:31:25 GMT",
        ] {
            assert_eq!(parse(text), Some(AT_S), "{text}");
        }
        for (text, expected) in [
            ("Tue, 28 Sept 2004 21:31:25 GMT", 1_096_407_085),
            ("Mo, 1 Dez 2003 00:00:00 GMT", 1_070_236_800),
            ("mar., 05 oct. 2004 00:00:00 GMT", 1_096_934_400),
            ("Thu, 27 May 2004 24:00:00 GMT", 1_085_702_400),
            ("2004-05-27T24:00:00Z", 1_085_702_400),
            ("2004-05-28", 1_085_702_400),
            ("28 May 2004", 1_085_702_400),
            ("2004-05", 1_083_369_600),
            ("2004", 1_072_915_200),
            ("Thu, 01 Jan 70 00:00:00 GMT", 0),
            ("Fri, 01 Jan 99 00:00:00 GMT", 915_148_800),
            ("Sat, 01 Jan 00 00:00:00 GMT", 946_684_800),
            ("2004-05-28T21:31:60Z", 1_085_779_919),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            " ",
            "yesterday",
            "0000-00-00T00:00:00Z",
            "Fri, 30 Feb 2004 21:31:25 GMT",
            "2004-02-30",
            "2004-13-01",
            "Fri, 28 May 0 21:31:25 GMT",
            "Fri, 28 May 20224 21:31:25 GMT",
            "20224-05-28",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:30:00+01:00",
            "Fri, 28 May 2004 25:31:25 GMT",
            "Fri, 28 May 2004 21:61:25 GMT",
            "2004-05-28T24:00:01Z",
            "05/06/2004",
            "28 2004",
            "12345678901234567890",
            "２００４-05-28",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(
            parse(&format!("2004{}", " ".repeat(200))),
            Some(1_072_915_200),
            "blanks around it do not count"
        );
        assert_eq!(parse(&"2004-05-28 ".repeat(20)), None);
    }

    #[test]
    fn a_day_ahead_is_kept_and_years_are_not() {
        let now_s = 1_794_787_200;
        assert_eq!(plausible(now_s + 86_400, now_s), Some(now_s + 86_400));
        assert_eq!(plausible(now_s + 86_401, now_s), None);
        assert_eq!(plausible(now_s + 5 * 31_536_000, now_s), None);
        assert_eq!(plausible(0, now_s), Some(0));
        assert_eq!(plausible(i64::MAX, i64::MAX), Some(i64::MAX));
    }
}
