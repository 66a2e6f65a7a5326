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
    by_numbers(text).or_else(|| by_words(text))
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

/// Names of zones, in half hours ahead of UTC. Where a name has several meanings, it is that of the continent whose feeds
/// use it most.
const ZONES: [(&str, i64); 44] = [
    ("z", 0),
    ("ut", 0),
    ("utc", 0),
    ("gmt", 0),
    ("wet", 0),
    ("west", 2),
    ("bst", 2),
    ("cet", 2),
    ("cest", 4),
    ("met", 2),
    ("mest", 4),
    ("mez", 2),
    ("mesz", 4),
    ("eet", 4),
    ("eest", 6),
    ("msk", 6),
    ("msd", 8),
    ("ast", -8),
    ("adt", -6),
    ("est", -10),
    ("edt", -8),
    ("et", -10),
    ("cst", -12),
    ("cdt", -10),
    ("ct", -12),
    ("mst", -14),
    ("mdt", -12),
    ("mt", -14),
    ("pst", -16),
    ("pdt", -14),
    ("pt", -16),
    ("akst", -18),
    ("akdt", -16),
    ("hst", -20),
    ("brt", -6),
    ("art", -6),
    ("ist", 11),
    ("sgt", 16),
    ("hkt", 16),
    ("jst", 18),
    ("kst", 18),
    ("aest", 20),
    ("aedt", 22),
    ("nzst", 24),
];

fn named_zone(word: &str) -> Option<i64> {
    let zone = ZONES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    zone.map(|(_, half_hours)| half_hours * 1_800)
}

/// What names of months begin with, in the languages that feeds are written in. The first that fits counts.
const MONTHS: [(&str, u32); 73] = [
    ("jan", 1),
    ("jän", 1),
    ("ene", 1),
    ("gen", 1),
    ("янв", 1),
    ("ιαν", 1),
    ("sty", 1),
    ("oca", 1),
    ("feb", 2),
    ("fév", 2),
    ("fev", 2),
    ("фев", 2),
    ("φεβ", 2),
    ("lut", 2),
    ("şub", 2),
    ("mar", 3),
    ("mär", 3),
    ("mrz", 3),
    ("mrt", 3),
    ("maa", 3),
    ("már", 3),
    ("мар", 3),
    ("μαρ", 3),
    ("μάρ", 3),
    ("apr", 4),
    ("avr", 4),
    ("abr", 4),
    ("ápr", 4),
    ("апр", 4),
    ("απρ", 4),
    ("kwi", 4),
    ("nis", 4),
    ("may", 5),
    ("mai", 5),
    ("mag", 5),
    ("maj", 5),
    ("máj", 5),
    ("mei", 5),
    ("ма", 5),
    ("μάι", 5),
    ("μαϊ", 5),
    ("jun", 6),
    ("juin", 6),
    ("giu", 6),
    ("jún", 6),
    ("июн", 6),
    ("ιούν", 6),
    ("ιουν", 6),
    ("cze", 6),
    ("jul", 7),
    ("juil", 7),
    ("lug", 7),
    ("júl", 7),
    ("июл", 7),
    ("ιούλ", 7),
    ("ιουλ", 7),
    ("lip", 7),
    ("aug", 8),
    ("aoû", 8),
    ("ago", 8),
    ("авг", 8),
    ("αυγ", 8),
    ("αύγ", 8),
    ("sep", 9),
    ("set", 9),
    ("sze", 9),
    ("сен", 9),
    ("σεπ", 9),
    ("oct", 10),
    ("okt", 10),
    ("ott", 10),
    ("out", 10),
    ("окт", 10),
];
const LATE_MONTHS: [(&str, u32); 15] = [
    ("οκτ", 10),
    ("paź", 10),
    ("nov", 11),
    ("ноя", 11),
    ("νοέ", 11),
    ("νοε", 11),
    ("lis", 11),
    ("dec", 12),
    ("dez", 12),
    ("déc", 12),
    ("dic", 12),
    ("дек", 12),
    ("δεκ", 12),
    ("gru", 12),
    ("wrz", 9),
];

fn month(word: &str) -> Option<u32> {
    // Days of the week that begin as months do.
    if ["mardi", "martes", "martedì", "martedi", "mart", "saturday"].contains(&word) {
        return None;
    }
    MONTHS.iter().chain(&LATE_MONTHS).find(|(start, _)| word.starts_with(start)).map(|(_, month)| *month)
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
