use crate::base::Civil;

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
        let mut at = 0;
        for (number, width) in [
            (date.year, 4),
            (date.month, 2),
            (date.day, 2),
            (of_day / 3_600, 2),
            (of_day / 60 % 60, 2),
            (of_day % 60, 2),
        ] {
            let mut rest = number;
            for place in (at..at + width).rev() {
                digits[place] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            at += width;
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
