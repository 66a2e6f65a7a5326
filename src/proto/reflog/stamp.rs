use crate::base::Civil;
use crate::limits::MASTER_AHEAD_S;

/// A time as a reflog writes it, `20110727200841`, in UTC; kept as seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u32);

const DAY_S: u32 = 86_400;

impl Stamp {
    pub const fn from_s(seconds: u32) -> Stamp {
        Stamp(seconds)
    }

    /// Seconds since 1970.
    pub const fn s(self) -> u32 {
        self.0
    }

    /// Whether it may be a time of this world: one that is further ahead than clocks are apart was made by a clock that is
    /// wrong.
    pub const fn is_credible(self, now_s: u32) -> bool {
        self.0 <= now_s.saturating_add(MASTER_AHEAD_S)
    }

    /// Fourteen digits of a moment that there is; `None` otherwise. Second 60 is the last of its minute.
    pub fn parse(text: &[u8]) -> Option<Stamp> {
        let digits: &[u8; 14] = text.try_into().ok()?;
        let number = |from: usize, to: usize| {
            digits[from..to].iter().try_fold(0u32, |sum, digit| {
                digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0'))
            })
        };
        let date = Civil::checked(number(0, 4)?, number(4, 6)?, number(6, 8)?)?;
        let (hour, minute, second) = (number(8, 10)?, number(10, 12)?, number(12, 14)?);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let of_day = hour * 3_600 + minute * 60 + second.min(59);
        date.days().checked_mul(DAY_S)?.checked_add(of_day).map(Stamp)
    }

    /// As it is written.
    pub fn digits(self) -> [u8; 14] {
        let (date, of_day) = (Civil::from_days(self.0 / DAY_S), self.0 % DAY_S);
        let mut digits = [0; 14];
        let pairs = [date.year / 100, date.year % 100, date.month, date.day];
        for (place, number) in digits.as_chunks_mut().0.iter_mut().zip(pairs.into_iter().chain(hms(of_day))) {
            *place = pair(number);
        }
        digits
    }
}

fn hms(of_day: u32) -> [u32; 3] {
    [of_day / 3_600, of_day / 60 % 60, of_day % 60]
}

fn pair(number: u32) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}

/// Reads stamps one after the other, of which nearly all are of the same day.
#[derive(Clone, Copy, Debug)]
pub struct StampReader {
    date: [u8; 8],
    day_s: u32,
}

impl Default for StampReader {
    fn default() -> StampReader {
        StampReader { date: *b"19700101", day_s: 0 }
    }
}

impl StampReader {
    /// What [`Stamp::parse`] says.
    pub fn parse(&mut self, text: &[u8]) -> Option<Stamp> {
        let (date, time) = text.split_first_chunk()?;
        if *date != self.date {
            let stamp = Stamp::parse(text)?;
            *self = StampReader { date: *date, day_s: stamp.0 - stamp.0 % DAY_S };
            return Some(stamp);
        }
        let time: &[u8; 6] = time.try_into().ok()?;
        let digits = time.map(|byte| u32::from(byte.wrapping_sub(b'0')));
        let [hour, minute, second] = [0, 2, 4].map(|at| digits[at] * 10 + digits[at + 1]);
        if digits.iter().any(|&digit| digit > 9) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        self.day_s.checked_add(hour * 3_600 + minute * 60 + second.min(59)).map(Stamp)
    }
}

/// Writes stamps one after the other, of which nearly all are of the same day.
#[derive(Clone, Copy, Debug)]
pub struct StampWriter {
    day: u32,
    digits: [u8; 14],
}

impl Default for StampWriter {
    fn default() -> StampWriter {
        StampWriter { day: 0, digits: Stamp(0).digits() }
    }
}

impl StampWriter {
    /// What [`Stamp::digits`] says.
    pub fn digits(&mut self, stamp: Stamp) -> [u8; 14] {
        let (day, of_day) = (stamp.0 / DAY_S, stamp.0 % DAY_S);
        if day != self.day {
            *self = StampWriter { day, digits: stamp.digits() };
        }
        let time = self.digits[8..].as_chunks_mut().0;
        time.iter_mut().zip(hms(of_day)).for_each(|(place, number)| *place = pair(number));
        self.digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn a_stamp_is_read_and_written() {
        let stamp = Stamp::parse(b"20110727200841").unwrap();
        assert_eq!((stamp.s(), &stamp.digits()), (1_311_797_321, b"20110727200841"));
        assert_eq!(Stamp::parse(b"19700101000000"), Some(Stamp(0)));
        assert_eq!(Stamp::parse(b"20161231235960"), Stamp::parse(b"20161231235959"));
        for bad in [
            "00000000000000",
            "20111327200841",
            "20110230000000",
            "2011072720084",
            "20110727200861",
            "2011072720o841",
            "21990101000000",
        ] {
            assert_eq!(Stamp::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn one_after_the_other_they_are_the_same() {
        let mut rng = Rng::new(5);
        let (mut reader, mut writer) = (StampReader::default(), StampWriter::default());
        let mut at_s = 0u32;
        for turn in 0..100_000u32 {
            at_s = match turn % 50 {
                0 => rng.next_u64() as u32,
                1 => u32::MAX - turn,
                _ => at_s.saturating_add(rng.next_u64() as u32 % 2_000),
            };
            let mut text = Stamp(at_s).digits();
            assert_eq!(writer.digits(Stamp(at_s)), text);
            assert_eq!(reader.parse(&text), Some(Stamp(at_s)));
            text[rng.next_u64() as usize % 14] = b"0123456789:/\0a6"[rng.next_u64() as usize % 15];
            assert_eq!(reader.parse(&text), Stamp::parse(&text), "{text:?}");
            assert_eq!(reader.parse(&text[..13]), None);
        }
        assert_eq!(StampReader::default().parse(b"\x00\x00\x00\x00\x00\x00\x00\x00000000"), None);
    }
}
